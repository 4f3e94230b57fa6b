/* Publishes to this client's own ring. Writers hold the client's lock. Readers take no lock. */

#include "ring.h"

#include "../Common/transport.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- The tails of readers -------------------------------------------------------------------- */

void ring_look(local_client *c, peer *p) {
  uint64_t tail;
  /* The peer's first message about names sets `has_tail`. Before that message, the slot may still
   * contain the tail for another client's ring, if that client previously had the same place. */
  if (!p->has_tail || p->is_over || p->tail >= p->last) return;
  /* Entries before this tail may be overwritten. The acquire order ensures that the peer has
   * finished copying them. Pairs with store_tail() in reader.c. */
  /* order: tail */
  tail = __atomic_load_n(&p->memory.board->slots[p->place_there].tail, __ATOMIC_ACQUIRE);
  if (tail >= p->tail && tail <= c->head) {
    p->tail = tail;
  } else {
    p->is_over = true;
    __atomic_store_n(&p->is_false, true, __ATOMIC_RELAXED);
    client_wake(&c->base);
  }
}

/* Returns the position of the first entry that the peer may not have read, or the head if the peer
 * has read everything. */
static uint64_t unread(const local_client *c, const peer *p) {
  if (p->is_over || p->tail >= p->last) return c->head;
  return p->tail > p->first ? p->tail : p->first;
}

peer *ring_slowest(local_client *c, uint64_t position) {
  peer *p, *slowest = NULL;
  for (p = c->peers; p != NULL; p = p->next) {
    ring_look(c, p);
    if (unread(c, p) >= position) continue;
    position = unread(c, p);
    slowest = p;
  }
  return slowest;
}

void ring_wait(local_client *c, bool is_waiting) {
  if (is_waiting) ++c->waits;
  else --c->waits;
  __atomic_store_n(&c->memory.board->is_waited_for, c->waits > 0, __ATOMIC_RELAXED);
}

/* ---- Room ------------------------------------------------------------------------------------ */

/* Increments the number of dropped entries for each reader of an entry. */
static void count_dropped(local_client *c, const entry *r, uint64_t position) {
  FOR_PLACES(place, &r->readers) {
    peer *p = c->at[place];
    /* When the entry was written, this place may have belonged to another peer. */
    if (p != NULL && position >= p->start) ++p->dropped;
  }
}

/* Stores `oldest` before entries are overwritten. A reader checks `oldest` after it has copied an
 * entry. The fence pairs with the fence in reader.c, so that a reader that has seen new bytes or
 * new counts also sees the new `oldest`. There are two arrays of counts. While this function writes
 * one array, `counted` selects the other one, so that readers find valid counts even if the process
 * is killed in this function. */
static void show_oldest(local_client *c, bool has_counts) {
  board *b = c->memory.board;
  const uint64_t which = ~b->counted & COUNT_BIT;
  peer *p;
  __atomic_store_n(&b->oldest, c->oldest, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE); /* order: overwritten */
  for (p = has_counts ? c->peers : NULL; p != NULL; p = p->next)
    __atomic_store_n(&b->slots[p->place].dropped[which], p->dropped, __ATOMIC_RELAXED);
  __atomic_store_n(&b->counted, c->oldest | which, __ATOMIC_RELEASE); /* order: dropped */
}

/* Frees at least a sixteenth of the ring at a time, if possible, so that readers rarely have to
 * reload the cache line that contains `oldest`. */
bool ring_make_room(local_client *c, size_t bytes, bool may_drop) {
  const uint64_t size = c->memory.ring_size, end = c->head + bytes, least = end - size;
  const peer *slowest;
  uint64_t goal, limit = c->head, next;
  if (end <= c->oldest + size) return true;
  if (!may_drop) {
    slowest = ring_slowest(c, c->head);
    if (slowest != NULL) limit = unread(c, slowest);
    if (limit < least) return false;
  }
  goal = c->oldest + size / 16 > least ? c->oldest + size / 16 : least;
  while (c->oldest < goal) {
    const entry *r = (const entry *)(const void *)memory_at(&c->memory, c->oldest);
    next = c->oldest + r->size;
    if (next > limit) break;
    if (c->options.overflow == MULTICAST_OVERFLOW_DROP_OLDEST) count_dropped(c, r, c->oldest);
    c->oldest = next;
  }
  show_oldest(c, c->options.overflow == MULTICAST_OVERFLOW_DROP_OLDEST);
  return end <= c->oldest + size;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Updates a reader's positions after an entry has been written for this reader. If the reader had
 * no unread entries, sets `begin` to the new entry, so that the reader skips earlier entries for
 * other peers. */
static void address(local_client *c, peer *p, uint64_t position, uint64_t end) {
  if (p->last > p->tail && position - p->tail > c->memory.ring_size / 8) ring_look(c, p);
  if (p->last <= p->tail) {
    p->first = position;
    /* order: shown */
    __atomic_store_n(&c->memory.board->slots[p->place].begin, position, __ATOMIC_RELEASE);
  }
  p->last = end;
}

size_t letter_size(const letter *l) {
  return entry_size(strlen(l->name), l->payload.size + number_size(l->kind));
}

void ring_write(local_client *c, const letter *l, const places *readers) {
  const size_t name_bytes = strlen(l->name), size = letter_size(l);
  unsigned char *at = memory_at(&c->memory, c->head);
  const entry r = {.size = (uint32_t)size,
                   .name_size = (uint16_t)name_bytes,
                   .kind = (uint16_t)l->kind,
                   .payload_size = (uint32_t)l->payload.size,
                   .event = l->event,
                   .readers = *readers};
  memcpy(at, &r, sizeof r);
  at += sizeof r;
  memcpy(at, l->name, name_bytes); /* NOLINT(bugprone-not-null-terminated-result) */
  at += name_bytes;
  if (l->payload.size > 0) memcpy(at, l->payload.at, l->payload.size);
  memcpy(at + l->payload.size, &l->number, number_size(l->kind));
  FOR_PLACES(place, readers) address(c, c->at[place], c->head, c->head + size);
  c->head += size;
}

void ring_write_kept(local_client *c, const topic *t, const value *except, const places *readers) {
  const value *v;
  for (v = t->values; v != NULL; v = v->next) {
    if (v == except) continue;
    const letter l = {.name = t->name->text, .event = v->event, .payload = {v->payload, v->size}};
    ring_write(c, &l, readers);
  }
}

/* Wakes a sleeping reader once per sleep. The reader stores that it is asleep, executes a fence,
 * and then reads the heads (go_to_sleep() in session.c). This function stores the head, executes a
 * fence, and then reads whether the reader is asleep. At least one of the two threads therefore
 * sees the other thread's store.
 *
 * If the socket is full, the reader has unread messages and will wake up. If the system has no
 * memory for a message, the reader finds the entry when it wakes up after a second. */
void ring_show(local_client *c, const places *readers) {
  /* The release order ensures that readers see complete entries. */
  __atomic_store_n(&c->memory.board->head, c->head, __ATOMIC_RELEASE); /* order: shown */
  __atomic_thread_fence(__ATOMIC_SEQ_CST); /* order: sleeping_peer */
  FOR_PLACES(place, readers) {
    peer *p = c->at[place];
    uint32_t sleeps;
    if (!p->is_met) continue; /* the peer reads the ring after it has received the hello */
    sleeps = __atomic_load_n(&p->memory.board->sleeps, __ATOMIC_RELAXED);
    if (sleeps % 2 == 0 || sleeps == p->woken) continue;
    p->woken = sleeps;
    message_send(p->socket, MESSAGE_WAKE, 0, 0, NULL, -1);
  }
}

/* ---- Publishing ------------------------------------------------------------------------------ */

/* Called under the lock, which it releases while it waits. Waits a moment for the slowest reader.
 * Also checks whether that reader's connection has ended, because no other thread would detect this
 * if the caller is the client's thread. */
static void wait_for_slowest(local_client *c, uint64_t position, uint64_t deadline) {
  const uint64_t now = now_ns(), left = deadline > now ? deadline - now : 0;
  const struct timespec moment = time_of_ns(left < ns_of_millisecond / 5 ? left
                                                                         : ns_of_millisecond / 5);
  peer *p = ring_slowest(c, position);
  struct pollfd watched = {-1, POLLRDHUP, 0};
  uint64_t number = 0;
  unsigned place = 0;
  if (p != NULL) {
    watched.fd = p->socket;
    number = p->number;
    place = p->place;
  }
  pthread_mutex_unlock(&c->base.lock);
  if (ppoll(&watched, 1, &moment, NULL) < 0) watched.revents = 0;
  pthread_mutex_lock(&c->base.lock);
  /* Check that the peer still exists, because otherwise the descriptor may have been reused for
   * another file. */
  p = c->at[place];
  if ((watched.revents & (POLLRDHUP | POLLHUP)) != 0 && p != NULL && p->number == number)
    p->is_over = true;
}

multicast_status ring_get_room(local_client *c, size_t bytes, uint64_t until) {
  const multicast_overflow how = c->options.overflow;
  uint64_t deadline;
  bool has_room = ring_make_room(c, bytes, how == MULTICAST_OVERFLOW_DROP_OLDEST);
  if (has_room || how != MULTICAST_OVERFLOW_BLOCK)
    return has_room ? MULTICAST_OK : MULTICAST_ERROR_QUEUE_FULL;
  deadline = deadline_of(c->options.block_ns);
  if (deadline > until) deadline = until;
  ring_wait(c, true);
  while (!has_room && !c->base.is_stopping && now_ns() < deadline) {
    wait_for_slowest(c, c->head + bytes - c->memory.ring_size, deadline);
    has_room = ring_make_room(c, bytes, false);
  }
  ring_wait(c, false);
  return has_room ? MULTICAST_OK : MULTICAST_ERROR_QUEUE_FULL;
}

/* Called under the lock. Returns whether the topic's retained values, including `v`, would fit into
 * half the ring, so that they can be written together. */
static bool may_keep(const local_client *c, const topic *t, const value *v) {
  const value *replaced = topic_value(t, v->event);
  return topic_kept(t, replaced) + entry_size(strlen(t->name->text), v->size) <=
         c->memory.ring_size / 2;
}

/* The readers of a publication, including peers that have not announced their names. Before the
 * publication, each peer in `to_be_offered` is sent the retained values of the name, so that it
 * receives each value once and in order. The value that the publication replaces is not sent. This
 * struct is valid only while the lock is held. */
typedef struct addressees {
  topic *topic; /* may be NULL */
  const value *replaced; /* may be NULL */
  places all, to_be_offered;
  size_t bytes; /* required room in the ring */
} addressees;

static addressees find_addressees(local_client *c, const letter *l, bool is_retained) {
  addressees a = {.topic = topic_find(&c->base.names, l->name), .all = c->unknown};
  const known_name *prefix = names_next_prefix(&c->base.prefixes, NULL, l->name);
  for (; prefix != NULL; prefix = names_next_prefix(&c->base.prefixes, prefix, l->name)) {
    const topic *t = prefix->subscription;
    if (t != NULL) a.all = places_with(&a.all, &t->wanted_by);
  }
  if (a.topic != NULL) {
    if (is_retained) a.replaced = topic_value(a.topic, l->event);
    a.all = places_with(&a.all, &a.topic->wanted_by);
    a.to_be_offered = places_in_both(&c->offering, &a.all);
    a.to_be_offered = places_with(&a.to_be_offered, &c->unknown);
    a.to_be_offered = places_without(&a.to_be_offered, &a.topic->offered_to);
  }
  if (places_are_none(&a.all)) return a;
  a.bytes = letter_size(l);
  if (!places_are_none(&a.to_be_offered)) a.bytes += topic_kept(a.topic, a.replaced);
  return a;
}

/* Called under the lock, which it may release while it waits for room. During the wait, peers and
 * retained values may change and topics may be freed, so this function finds the addressees again
 * after each wait. */
static multicast_status get_addressees(local_client *c, const letter *l, bool is_retained,
                                       addressees *a) {
  const bool may_drop = c->options.overflow == MULTICAST_OVERFLOW_DROP_OLDEST;
  multicast_status status = MULTICAST_OK;
  *a = find_addressees(c, l, is_retained);
  while (status == MULTICAST_OK && !ring_make_room(c, a->bytes, may_drop)) {
    status = ring_get_room(c, a->bytes, MULTICAST_FOREVER);
    if (c->base.is_stopping) return MULTICAST_ERROR_STATE;
    if (status == MULTICAST_OK) *a = find_addressees(c, l, is_retained);
  }
  return status;
}

/* Called under the lock. */
static void send_to(local_client *c, const letter *l, const addressees *a) {
  if (places_are_none(&a->all)) {
    ++c->unwanted;
    return;
  }
  if (!places_are_none(&a->to_be_offered)) {
    ring_write_kept(c, a->topic, a->replaced, &a->to_be_offered);
    a->topic->offered_to = places_with(&a->topic->offered_to, &a->to_be_offered);
  }
  ring_write(c, l, &a->all);
  ring_show(c, &a->all);
  ++c->sent;
}

/* Called under the lock. Creates the topic for a value that will be retained. */
static multicast_status make_topic(local_client *c, const letter *l, const value *v,
                                   addressees *a) {
  topic *t = topic_make(&c->base.names, l->name);
  if (t == NULL) return MULTICAST_ERROR_OUT_OF_MEMORY;
  if (!may_keep(c, t, v)) {
    topic_drop(&c->base.names, t);
    return MULTICAST_ERROR_LIMIT;
  }
  *a = find_addressees(c, l, true); /* needs the same room, because a new topic has no values yet */
  return MULTICAST_OK;
}

/* Called under the lock, which it may release to wait. `v` is the value to retain, or NULL. */
static multicast_status publish(local_client *c, const letter *l, value *v) {
  addressees a;
  multicast_status status = get_addressees(c, l, v != NULL, &a);
  if (status == MULTICAST_OK && v != NULL) status = make_topic(c, l, v, &a);
  if (status != MULTICAST_OK) return status;
  send_to(c, l, &a);
  if (v != NULL) topic_keep(a.topic, v);
  return MULTICAST_OK;
}

multicast_status local_publish(client *base, const char *name, uint32_t event, span payload) {
  local_client *c = (local_client *)base;
  const unsigned forks = process_forks();
  const multicast_local_options *o = &c->options;
  const bool is_kept = o->retains != NULL && o->retains(base->settings.context, name, event);
  const letter l = {.name = name, .event = event, .payload = payload};
  multicast_status status = MULTICAST_ERROR_LIMIT;
  value *v = NULL;
  if (forks != process_forks()) return MULTICAST_ERROR_STATE; /* `retains` has forked */
  if (payload.size <= o->max_payload) {
    if (is_kept) v = value_make(event, payload);
    status = is_kept && v == NULL ? MULTICAST_ERROR_OUT_OF_MEMORY : MULTICAST_OK;
  }
  pthread_mutex_lock(&base->lock);
  if (status == MULTICAST_OK && base->is_stopping) status = MULTICAST_ERROR_STATE;
  if (status == MULTICAST_OK) status = publish(c, &l, v);
  if (status != MULTICAST_OK) ++base->counts.refused;
  pthread_mutex_unlock(&base->lock);
  if (status != MULTICAST_OK) free(v);
  return status;
}
