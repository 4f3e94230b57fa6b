/* The engine of libmulticast-local. Implements options, creation of clients, flushing and
 * statistics. */

#include "answer.h"
#include "descriptors.h"
#include "question.h"
#include "ring.h"
#include "session.h"

#define TRANSPORT(name) multicast_local_##name
#include "../Common/exports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
  OPTIONS_SIZE = 120, /* in version 1.1 */
  STATS_SIZE = 128,
  RING_DEFAULT = 1 << 23,
  /* The largest payload is ENTRY_REST bytes smaller than half the ring, which leaves room for the
   * entry's header and name. */
  ENTRY_REST = 1024,
  PAYLOAD_MAX = RING_MOST / 2
};
_Static_assert(sizeof(multicast_local_options) == OPTIONS_SIZE, "the header says so");
_Static_assert(sizeof(multicast_local_stats) == STATS_SIZE, "the header says so");

/* ---- Options --------------------------------------------------------------------------------- */

static void set_defaults(multicast_local_options *o) {
  uint64_t size = RING_LEAST;
  if (o->group == NULL) o->group = "default";
  if (o->name == NULL) o->name = program_invocation_short_name;
  if (o->ring_bytes == 0) o->ring_bytes = RING_DEFAULT;
  if (o->ring_bytes >= RING_LEAST) {
    while (size < o->ring_bytes && size <= RING_MOST) size *= 2;
    o->ring_bytes = size;
  }
  if (o->max_payload == 0) o->max_payload = (uint32_t)(o->ring_bytes / 2) - ENTRY_REST;
  if (o->block_ns == 0) o->block_ns = ns_of_second;
}

/* Called after set_defaults(). */
static bool are_valid(const multicast_local_options *o) {
  return group_is_name(o->group) && o->ring_bytes >= RING_LEAST && o->ring_bytes <= RING_MOST &&
         o->max_payload <= o->ring_bytes / 2 - ENTRY_REST &&
         (o->overflow == MULTICAST_OVERFLOW_REFUSE || o->overflow == MULTICAST_OVERFLOW_BLOCK ||
          o->overflow == MULTICAST_OVERFLOW_DROP_OLDEST) &&
         (o->directory == NULL || o->directory[0] == '/');
}

static bool settle(void *options, settings *s) {
  multicast_local_options *o = options;
  set_defaults(o);
  /* Peers may have a larger limit for payloads than this client. */
  *s = (settings){SETTINGS_OF(o), .max_payload = PAYLOAD_MAX};
  return are_valid(o);
}

/* The offsets of the strings in the options that prepare() copies. */
static const size_t option_texts[] = {offsetof(multicast_local_options, group),
                                      offsetof(multicast_local_options, directory),
                                      offsetof(multicast_local_options, name)};
enum { TEXTS = sizeof option_texts / sizeof *option_texts };

/* ---- The engine ------------------------------------------------------------------------------ */

static bool start(void) { return true; }

static void close_file(int file) {
  if (file >= 0) close(file);
}

static void free_client(client *base) {
  local_client *c = (local_client *)base;
  close_file(c->memory_file);
  close_file(c->poller);
  memory_close(&c->memory);
  /* The child of a fork does not free the buffer, because the client's thread may have been
   * replacing it, or an observer may be using it. */
  if (!client_is_in_child(base)) free(c->payload);
  texts_free(&c->texts);
}

/* With a slash or with "/." at its end, the path of a symbolic link leads to the folder behind the
 * link, and open_own() would not notice the link. */
static void trim_path(char *path) {
  size_t size = strlen(path);
  while (size > 1 && (path[size - 1] == '/' || (path[size - 1] == '.' && path[size - 2] == '/')))
    path[--size] = '\0';
}

static multicast_status prepare(client *base, const void *options) {
  local_client *c = (local_client *)base;
  c->options = *(const multicast_local_options *)options;
  c->memory_file = c->poller = c->group.folder = c->group.listener = -1;
  if (!texts_copy(&c->texts, &c->options, option_texts, TEXTS))
    return MULTICAST_ERROR_OUT_OF_MEMORY;
  /* These change the copies in `texts`, not the caller's strings. */
  ((char *)(uintptr_t)c->options.name)[text_fit(c->options.name, NAME_SHOWN)] = '\0';
  if (c->options.directory != NULL) trim_path((char *)(uintptr_t)c->options.directory);
  c->memory_file = memory_create(&c->memory, c->options.ring_bytes);
  if (c->memory_file == -ENOMEM) return MULTICAST_ERROR_OUT_OF_MEMORY;
  c->poller = epoll_create1(EPOLL_CLOEXEC);
  return c->memory_file >= 0 && c->poller >= 0 ? MULTICAST_OK : MULTICAST_ERROR_SYSTEM;
}

static const engine transport_engine = {
    .thread_name = "multicast-local",
    .options_size = OPTIONS_SIZE,
    .size = sizeof(local_client),
    .default_payload = PAYLOAD_MAX,
    .largest_payload = PAYLOAD_MAX,
    .most_names = NAMES_MAX,
    .has_prefixes = true,
    .settle = settle,
    .start = start,
    .prepare = prepare,
    .publish = local_publish,
    .answer = call_answerer,
    .refuse = answer_refuse,
    .reply = answer_reply,
    .ask = question_ask,
    .next = question_next,
    .forget = question_forget,
    .observed = local_give_kept,
    .run = session_run,
    .end = session_end,
    .in_child = descriptors_close_in_child,
    .free = free_client,
};

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Called under the lock. Returns whether a peer has processed all changes of names up to `change`,
 * and read all entries before `position`. A peer whose connection has ended is not up to date,
 * because it may still be reconnected. */
static bool is_up_to_date(local_client *c, peer *p, uint64_t change, uint64_t position) {
  ring_look(c, p);
  return !p->is_over && p->is_known && p->confirmed >= change &&
         (p->tail >= position || p->tail >= p->last);
}

static bool is_flushed(local_client *c, uint64_t change, uint64_t position) {
  peer *p = c->peers;
  while (p != NULL && is_up_to_date(c, p, change, position)) p = p->next;
  return p == NULL && c->base.is_connected && c->told >= change;
}

static multicast_status wait_until_flushed(client *base, uint64_t deadline) {
  local_client *c = (local_client *)base;
  const uint64_t change = client_changes(&c->base), position = c->head;
  multicast_status status = MULTICAST_OK;
  ring_wait(c, true);
  /* Checks is_stopping first, because is_flushed() returns true once a client that is stopping has
   * removed its peers. */
  while (status == MULTICAST_OK && (base->is_stopping || !is_flushed(c, change, position))) {
    const uint64_t now = now_ns(), soon = now + ns_of_millisecond;
    if (base->is_stopping) status = MULTICAST_ERROR_INVALID_HANDLE;
    else if (now >= deadline) status = MULTICAST_ERROR_TIMEOUT;
    else client_wait_until(base, soon < deadline ? soon : deadline);
  }
  ring_wait(c, false);
  return status;
}

/* ---- Statistics ------------------------------------------------------------------------------ */

static void fill_stats(const client *base, void *stats) {
  const local_client *c = (const local_client *)base;
  multicast_local_stats *out = stats;
  out->connected = base->is_connected;
  out->names = (uint32_t)base->names.wanted;
  out->peers = (uint32_t)(c->joined - c->gone);
  out->max_payload = c->options.max_payload;
  out->joined = c->joined;
  out->gone = c->gone;
  out->expelled = c->expelled;
  out->published = c->sent + c->unwanted;
  out->sent = c->sent;
  out->unwanted = c->unwanted;
  out->late = c->late;
  out->refused = base->counts.refused;
  /* Reads `delivered` before `received`, so that `delivered` is never greater than `received`. */
  out->delivered = __atomic_load_n(&base->delivered, __ATOMIC_ACQUIRE); /* order: shown */
  out->overwritten = __atomic_load_n(&c->overwritten, __ATOMIC_RELAXED);
  out->lost = client_lost(base) + out->overwritten;
  out->received = __atomic_load_n(&c->received, __ATOMIC_RELAXED);
}
