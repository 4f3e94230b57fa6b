/* Reads the rings of peers. A hostile peer may write anything at any time, so this code first
 * copies each entry, and then checks the copy. */

#include "reader.h"

#include "../Common/transport.h"
#include "answer.h"
#include "question.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 100 };

/* Stores the tail, so that the peer may overwrite the entries before the tail. The release order
 * ensures that these entries have been copied. Pairs with ring_look(). */
static void store_tail(local_client *c, peer *p) {
  p->told_tail = p->position;
  /* order: tail */
  __atomic_store_n(&c->memory.board->slots[p->place].tail, p->position, __ATOMIC_RELEASE);
}

/* The result of reading an entry or of skipping overwritten entries. */
typedef enum reading { READ_NONE, READ_ONE, READ_OVERWRITTEN, READ_INVALID } reading;

/* Called after an entry has been copied. Entries before the returned position may have been
 * overwritten during the copy. If the peer was killed between its stores of `oldest` and `counted`,
 * it has overwritten only entries before `counted`. */
static uint64_t oldest_of(const peer *p) {
  const board *b = p->memory.board;
  /* Pairs with the fence in show_oldest() in ring.c. */
  __atomic_thread_fence(__ATOMIC_ACQUIRE); /* order: overwritten */
  return p->is_killed ? __atomic_load_n(&b->counted, __ATOMIC_RELAXED) & ~(uint64_t)COUNT_BIT
                      : __atomic_load_n(&b->oldest, __ATOMIC_RELAXED);
}

static bool is_overwritten(const peer *p) { return oldest_of(p) > p->position; }

/* Skips to the oldest remaining entry, and counts the lost entries. `dropped` is the number of
 * entries for this process before `oldest`, and `seen` is the number of entries that have been read
 * or counted as lost. `dropped` cannot exceed `seen` by more than the number of entries that fit
 * between `position` and `oldest`. Returns READ_OVERWRITTEN if the peer is currently updating these
 * values. The caller must then try again soon instead of waiting to be woken, because the peer's
 * next entry may be for other peers. */
static reading catch_up_at_once(local_client *c, peer *p, uint64_t *head) {
  const board *b = p->memory.board;
  const uint64_t counted = __atomic_load_n(&b->counted, __ATOMIC_ACQUIRE); /* order: dropped */
  const uint64_t dropped = __atomic_load_n(
      &b->slots[p->place_there].dropped[counted & COUNT_BIT], __ATOMIC_RELAXED);
  const uint64_t oldest = oldest_of(p);
  uint64_t lost;
  if (oldest != (counted & ~(uint64_t)COUNT_BIT) || oldest < p->position) return READ_OVERWRITTEN;
  lost = dropped > p->seen ? dropped - p->seen : 0;
  if (lost > (oldest - p->position) / ENTRY_LEAST) return READ_INVALID;
  *head = __atomic_load_n(&b->head, __ATOMIC_ACQUIRE); /* order: shown */
  p->position = oldest;
  p->seen += lost;
  p->lost += lost;
  __atomic_store_n(&c->overwritten, c->overwritten + lost, __ATOMIC_RELAXED);
  return READ_NONE;
}

static reading catch_up(local_client *c, peer *p, uint64_t *head) {
  reading result = catch_up_at_once(c, p, head);
  int tries;
  if (result != READ_OVERWRITTEN || !p->has_ended) return result;
  /* Either the peer has closed the connection but continues to write, or it was killed while
   * writing. */
  for (tries = 0; tries < TRIES; ++tries) {
    result = catch_up_at_once(c, p, head);
    if (result != READ_OVERWRITTEN) return result;
    sched_yield();
  }
  p->is_killed = true;
  result = catch_up_at_once(c, p, head);
  return result == READ_INVALID ? READ_INVALID : READ_NONE;
}

/* ---- An entry -------------------------------------------------------------------------------- */

static bool is_entry(const peer *p, const entry *r, uint64_t left) {
  return left <= p->memory.ring_size && r->size % 8 == 0 && r->size >= sizeof *r &&
         r->size <= left && r->kind <= ENTRY_ANSWER && r->name_size <= NAME_MAX_SIZE &&
         (r->name_size == 0) == (r->kind == ENTRY_ANSWER) &&
         r->payload_size <= p->memory.ring_size / 2 &&
         r->size >= entry_size(r->name_size, r->payload_size + number_size(r->kind)) &&
         (r->kind != ENTRY_ANSWER || is_status_of_answer(r->event));
}

/* Returns a buffer for a copy of the payload, or NULL if there is no memory. */
static unsigned char *payload_of(local_client *c, size_t size) {
  unsigned char *larger;
  if (size <= c->payload_size) return c->payload;
  larger = malloc(size);
  if (larger == NULL) return NULL;
  free(c->payload);
  c->payload = larger;
  c->payload_size = size;
  return larger;
}

/* Delivers a notification or a question. */
static void deliver(local_client *c, const char *name, uint32_t event, span payload, origin from) {
  client *base = &c->base;
  const unsigned forks = process_forks();
  int64_t result;
  if (base->inbox.id != 0) {
    if (!client_receive(base, name, event, payload, from) && from.peer != 0)
      answer_refuse(base, from, MULTICAST_ERROR_OUT_OF_MEMORY);
    return;
  }
  if (from.peer != 0)
    result = client_be_asked(base, name, event, payload, from);
  else
    result = multicast_broadcaster_deliver(base->settings.broadcaster, name, event, payload.at,
                                           payload.size);
  client_end_in_child(forks);
  if (result < 0) client_count_lost(base);
  /* An atomic increment is not needed, because only this thread changes the count. */
  else __atomic_store_n(&base->delivered, base->delivered + 1, __ATOMIC_RELEASE); /* order: shown */
}

/* Processes the copy of an entry. The peer's `position` has already moved past the entry. */
static void heed(local_client *c, const peer *p, const entry *r, const char *name, span payload,
                 uint64_t number) {
  const bool has_no_memory = payload.size > 0 && payload.at == NULL;
  const origin from = {r->kind == ENTRY_QUESTION ? p->number : 0, number};
  if (r->kind == ENTRY_ANSWER) {
    question_answered(c, p, number,
                      has_no_memory ? MULTICAST_ERROR_OUT_OF_MEMORY : (multicast_status)r->event,
                      payload);
    return;
  }
  __atomic_store_n(&c->received, c->received + 1, __ATOMIC_RELAXED);
  if (!has_no_memory) {
    deliver(c, name, r->event, payload, from);
  } else {
    client_count_lost(&c->base);
    if (from.peer != 0) answer_refuse(&c->base, from, MULTICAST_ERROR_OUT_OF_MEMORY);
  }
}

/* Returns whether the peer wrote the entry at `position` before it knew the names of this process.
 * The peer stores `known` once, before it stores a head that includes later entries. A reader that
 * sees such a head therefore also sees `known`. */
static bool was_unknown(peer *p) {
  const slot *s = &p->memory.board->slots[p->place_there];
  if (p->known_from == UINT64_MAX) p->known_from = __atomic_load_n(&s->known, __ATOMIC_RELAXED);
  return p->position < p->known_from;
}

/* Returns whether the name or prefix `known` has observers, and the first announcement of names to
 * the peer included it. Does not consult the announcement if the peer has ended. Called under the
 * lock. */
static bool was_told(const peer *p, const known_name *known) {
  const topic *t;
  if (known == NULL || !known->is_wanted) return false;
  t = known->subscription;
  return p->has_ended || (t != NULL && places_have(&t->told_to, p->place));
}

/* Returns whether to deliver a publication that the peer wrote before it knew the names of this
 * process. Such a publication is delivered if the first announcement of names included its name or
 * a prefix of its name. If the name is announced later, the peer then sends the retained values of
 * the name. A peer that has ended cannot send retained values, so its publication is delivered if
 * the name has observers now. */
static bool is_for_here(local_client *c, const peer *p, const char *name) {
  const known_name *prefix = NULL;
  bool result;
  pthread_mutex_lock(&c->base.lock);
  result = was_told(p, names_find(&c->base.names, name));
  while (!result &&
         (prefix = names_next_prefix(&c->base.prefixes, prefix, name)) != NULL)
    result = was_told(p, prefix);
  pthread_mutex_unlock(&c->base.lock);
  return result;
}

/* Copies the entry at `position`, and delivers it if it is for this process. */
static reading read_one(local_client *c, peer *p, uint64_t left) {
  const unsigned char *at = memory_at(&p->memory, p->position);
  char name[NAME_MAX_SIZE + 1];
  span payload = {NULL, 0};
  uint64_t number = 0;
  bool is_wanted;
  entry r;
  if (left < sizeof r) return READ_INVALID; /* entries before the head are complete */
  memcpy(&r, at, sizeof r);
  if (is_overwritten(p)) return READ_OVERWRITTEN;
  if (!is_entry(p, &r, left)) return READ_INVALID;
  if (!places_have(&r.readers, p->place_there)) {
    p->position += r.size;
    return READ_NONE;
  }
  at += sizeof r;
  memcpy(name, at, r.name_size);
  name[r.name_size] = '\0';
  if (r.payload_size > 0) {
    unsigned char *copy = payload_of(c, r.payload_size);
    if (copy != NULL) memcpy(copy, at + r.name_size, r.payload_size);
    payload = (span){copy, r.payload_size};
  }
  memcpy(&number, at + r.name_size + r.payload_size, number_size(r.kind));
  if (is_overwritten(p)) return READ_OVERWRITTEN;
  if (strlen(name) != r.name_size) return READ_INVALID;
  is_wanted = r.kind != ENTRY_NOTIFICATION || !was_unknown(p) || is_for_here(c, p, name);
  p->position += r.size;
  ++p->seen;
  if (!is_wanted) return READ_NONE;
  heed(c, p, &r, name, payload, number);
  return READ_ONE;
}

/* ---- The ring -------------------------------------------------------------------------------- */

/* Stores the tail after each eighth of the ring, or immediately if the peer is waiting for room. */
static void tell_tail(local_client *c, peer *p) {
  if (p->position - p->told_tail >= p->memory.ring_size / 8 ||
      __atomic_load_n(&p->memory.board->is_waited_for, __ATOMIC_RELAXED) != 0)
    store_tail(c, p);
}

int reader_read(local_client *c, peer *p, int most) {
  const board *b = p->memory.board;
  /* Loads `begin` before `head`, so that `begin` is not greater than `head`. Both loads pair with
   * the stores in ring.c, so that all entries before the head are complete. */
  /* order: shown */
  const uint64_t begin = __atomic_load_n(&b->slots[p->place_there].begin, __ATOMIC_ACQUIRE);
  uint64_t head = __atomic_load_n(&b->head, __ATOMIC_ACQUIRE); /* order: shown */
  int count = 0, tries = 0;
  if (begin > p->position) p->position = begin;
  p->is_behind = false;
  /* Until this process has announced all its names to the peer, it cannot decide which of the
   * peer's publications to deliver. */
  if (!p->is_told && !p->has_ended && was_unknown(p)) return 0;
  while (count >= 0 && count < most && p->position != head &&
         !__atomic_load_n(&c->base.is_stopping, __ATOMIC_RELAXED)) {
    reading result = head < p->position ? READ_INVALID : read_one(c, p, head - p->position);
    if (result == READ_OVERWRITTEN && tries++ < TRIES) result = catch_up(c, p, &head);
    if (result == READ_ONE) ++count;
    if (result == READ_INVALID) count = -1;
    p->is_behind = result == READ_OVERWRITTEN;
    if (p->is_behind) break;
    tell_tail(c, p);
  }
  if (p->position != p->told_tail) store_tail(c, p);
  return count;
}
