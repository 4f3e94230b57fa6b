#include "transport.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>

/* ---- The thread ------------------------------------------------------------------------------ */

/* Waits before the next attempt to connect. Shortens the delay by a random part of up to a quarter,
 * so that clients that have been disconnected together do not reconnect together. */
static void back_off(client *c) {
  uint64_t delay = c->settings.reconnect_min_ns, most = c->settings.reconnect_max_ns, random = 0;
  unsigned i;
  client_free_blocks(c);
  /* A connection that ends within a second counts as a failure, which makes the delay longer. Two
   * clients with the same identifier therefore disconnect each other less and less often. */
  if (c->connected_at != 0 && now_ns() - c->connected_at > ns_of_second) c->failures = 0;
  for (i = 0; i < c->failures && delay < most; ++i) delay *= 2;
  if (delay > most) delay = most;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) == (ssize_t)sizeof random && delay >= 4)
    delay -= random % (delay / 4);
  delay += now_ns();
  pthread_mutex_lock(&c->lock);
  names_forget(&c->names);
  names_forget(&c->answered);
  names_forget(&c->prefixes);
  while (!c->is_stopping && client_wait_until(c, delay)) {
  }
  pthread_mutex_unlock(&c->lock);
  if (c->failures < 64) ++c->failures;
}

static void *run(void *argument) {
  client *c = argument;
  while (!client_is_stopping(c)) {
    c->connected_at = 0;
    if (!c->engine->run(c)) back_off(c);
  }
  c->engine->end(c);
  pthread_mutex_lock(&c->lock);
  arrivals_free(&c->arrivals);
  c->is_done = true;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
  client_release(c);
  return NULL;
}

/* ---- Start and end --------------------------------------------------------------------------- */

static client *create(const engine *e, const settings *s) {
  client *c = calloc(1, e->size);
  if (c == NULL) return NULL;
  c->engine = e;
  c->settings = *s;
  c->settings.release = NULL;
  c->references = 1;
  c->wakeup = -1;
  c->fork_count = process_forks();
  pthread_mutex_init(&c->lock, NULL);
  process_make_condition(&c->changed);
  return c;
}

static multicast_status start_thread(client *c) {
  int result;
  client_retain(c);
  /* The new thread first acquires the lock, so it waits until `thread` has been stored. */
  pthread_mutex_lock(&c->lock);
  result = process_start_thread(&c->thread, run, c);
  if (result == 0) pthread_setname_np(c->thread, c->engine->thread_name);
  pthread_mutex_unlock(&c->lock);
  if (result == 0) return MULTICAST_OK;
  client_release(c);
  return result == ENOMEM ? MULTICAST_ERROR_OUT_OF_MEMORY : MULTICAST_ERROR_SYSTEM;
}

static multicast_status begin(client *c, const settings *s, multicast_transport *out) {
  multicast_status status;
  c->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (c->wakeup < 0) return MULTICAST_ERROR_SYSTEM;
  status = client_create_inbox(c);
  if (status != MULTICAST_OK) return status;
  status = MULTICAST_ERROR_LIMIT;
  if (clients_add(c)) {
    /* Set these before the thread starts, because functions that it calls may use them. */
    *out = client_transport(c);
    c->publish = out->publish;
    c->settings.release = s->release;
    status = start_thread(c);
    if (status == MULTICAST_OK) return status;
    c->settings.release = NULL;
    clients_remove(c);
    memset(out, 0, sizeof *out);
  }
  if (c->inbox.id != 0) multicast_destroy(c->inbox);
  return status;
}

static multicast_status connect_with(const engine *e, settings *s, const void *options,
                                     multicast_transport *out) {
  multicast_status status;
  client *c;
  if (!process_start(e->start, e->in_child)) return MULTICAST_ERROR_SYSTEM;
  status = settings_complete(s, e->default_payload, e->largest_payload);
  if (status != MULTICAST_OK) return status;
  c = create(e, s);
  if (c == NULL) return MULTICAST_ERROR_OUT_OF_MEMORY;
  status = e->prepare(c, options);
  if (status == MULTICAST_OK) status = begin(c, s, out);
  if (status != MULTICAST_OK) client_release(c);
  return status;
}

/* In every engine's options, the flags are the second 32-bit word. */
static uint32_t flags_of(const void *options) {
  return ((const uint32_t *)options)[1];
}

multicast_status client_connect(const engine *e, const void *options, void *copy,
                                multicast_transport *out) {
  multicast_status status = MULTICAST_ERROR_INVALID_ARGUMENT;
  settings s;
  if (out != NULL) memset(out, 0, sizeof *out);
  if (!struct_read(copy, options, e->options_size) || (flags_of(copy) & ~e->flags) != 0)
    return status;
  if (e->settle(copy, &s) && out != NULL) status = connect_with(e, &s, copy, out);
  if (status != MULTICAST_OK && s.release != NULL) s.release(s.context);
  return status;
}
