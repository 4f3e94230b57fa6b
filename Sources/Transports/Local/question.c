/* The questions that this process asks. */

#include "question.h"

#include "../Common/transport.h"
#include "ring.h"

#include <stdlib.h>
#include <string.h>

/* A peer that has been asked, and its result. */
typedef struct asked {
  told told;
  unsigned place;
  char name[NAME_SHOWN + 1];
} asked;

/* Protected by the lock. */
typedef struct peer_inquiry {
  inquiry base;
  places awaited; /* peers that have not answered yet */
  places unknown; /* peers that may have no answerer for the name; their silence is not reported */
  bool was_told; /* a result was reported */
  unsigned count;
  asked peers[];
} peer_inquiry;

/* ---- Answers --------------------------------------------------------------------------------- */

/* Called under the lock. Reports the result for an awaited peer. The place identifies the peer,
 * because a new peer can occupy the same place only after the question has stopped waiting for the
 * old peer. */
static told *settle(peer_inquiry *i, unsigned place, multicast_status status) {
  asked *a = i->peers;
  while (a->place != place || !places_have(&i->awaited, place)) ++a;
  places_remove(&i->awaited, place);
  a->told.status = status;
  if (status == MULTICAST_OK || status == MULTICAST_ERROR_OUT_OF_MEMORY ||
      !places_have(&i->unknown, place)) {
    i->was_told = true;
    inquiry_tell(&i->base, &a->told);
  } else {
    pthread_cond_signal(&i->base.changed); /* this may have been the last awaited peer */
  }
  return &a->told;
}

/* `number` cannot be trusted, because a peer may answer twice or without being asked. */
void question_answered(local_client *c, const peer *p, uint64_t number, multicast_status status,
                       span payload) {
  peer_inquiry *i;
  pthread_mutex_lock(&c->base.lock);
  i = (peer_inquiry *)inquiry_find(&c->base.inquiries, number);
  if (i == NULL || !places_have(&i->awaited, p->place)) {
    ++c->late;
  } else {
    told *a = settle(i, p->place, status);
    /* Copy the peer's name, which may have been unknown when the question was asked. */
    memcpy((char *)(uintptr_t)a->peer, p->name, sizeof p->name);
    if (status == MULTICAST_OK && payload.size > 0) {
      a->payload = c->payload; /* takes ownership of the client's buffer */
      a->size = payload.size;
      c->payload = NULL;
      c->payload_size = 0;
    }
  }
  pthread_mutex_unlock(&c->base.lock);
}

void questions_end(local_client *c, const peer *p) {
  const inquiries *all = &c->base.inquiries;
  inquiry *i;
  pthread_mutex_lock(&c->base.lock);
  for (i = inquiry_next(all, NULL); i != NULL; i = inquiry_next(all, i)) {
    peer_inquiry *own = (peer_inquiry *)i;
    if (places_have(&own->awaited, p->place)) settle(own, p->place, MULTICAST_ERROR_NOT_FOUND);
  }
  pthread_mutex_unlock(&c->base.lock);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* Called under the lock. Returns NULL if there is no memory. */
static inquiry *begin(local_client *c, const places *peers) {
  const int count = __builtin_popcountll(peers->words[0]) + __builtin_popcountll(peers->words[1]);
  peer_inquiry *i = calloc(1, sizeof *i + (size_t)count * sizeof i->peers[0]);
  if (i == NULL) return NULL;
  i->awaited = *peers;
  i->unknown = c->unknown;
  FOR_PLACES(place, peers) {
    const peer *p = c->at[place];
    asked *a = &i->peers[i->count++];
    a->place = (unsigned)place;
    a->told.pid = p->pid;
    a->told.peer = memcpy(a->name, p->name, sizeof a->name);
  }
  inquiry_add(&c->base.inquiries, &i->base);
  return &i->base;
}

void question_forget(client *c, inquiry *base) {
  peer_inquiry *i = (peer_inquiry *)base;
  (void)c;
  while (i->count > 0) free(i->peers[--i->count].told.payload);
  free(i);
}

/* Called under the lock. Returns the peers to ask. These are the connected peers that answer
 * questions about the name or have not announced their names yet. */
static places who_answers(const local_client *c, const char *name) {
  const topic *t = topic_find(&c->base.answered, name);
  const places all = t == NULL ? c->unknown : places_with(&c->unknown, &t->wanted_by);
  places there = all;
  FOR_PLACES(place, &all) {
    if (c->at[place]->is_over) places_remove(&there, (unsigned)place);
  }
  return there;
}

/* Called under the lock. May release the lock while it waits for room in the ring. */
static multicast_status send_question(local_client *c, letter *l, uint64_t deadline,
                                      inquiry **out) {
  places peers = who_answers(c, l->name);
  multicast_status status;
  if (c->base.is_stopping) return MULTICAST_ERROR_INVALID_HANDLE;
  if (l->payload.size > c->options.max_payload) return MULTICAST_ERROR_LIMIT;
  if (places_are_none(&peers)) return MULTICAST_ERROR_NOT_FOUND;
  status = ring_get_room(c, letter_size(l), deadline);
  if (c->base.is_stopping) return MULTICAST_ERROR_INVALID_HANDLE;
  if (status != MULTICAST_OK) return status;
  peers = who_answers(c, l->name); /* may have changed while the lock was released */
  if (places_are_none(&peers)) return MULTICAST_ERROR_NOT_FOUND;
  *out = begin(c, &peers);
  if (*out == NULL) return MULTICAST_ERROR_OUT_OF_MEMORY;
  l->number = (*out)->number;
  ring_write(c, l, &peers);
  ring_show(c, &peers);
  return MULTICAST_OK;
}

inquiry *question_ask(client *base, const query *q, multicast_status *status) {
  letter l = {ENTRY_QUESTION, q->name, q->event, q->payload, 0};
  local_client *c = (local_client *)base;
  inquiry *i = NULL;
  *status = send_question(c, &l, q->deadline, &i);
  *(*status == MULTICAST_OK ? &c->sent : &base->counts.refused) += 1;
  return i;
}

/* When the deadline has passed, reports a timeout for each peer that has not answered. */
told *question_next(client *c, inquiry *base, uint64_t deadline, multicast_status *status) {
  peer_inquiry *i = (peer_inquiry *)base;
  while (base->first == NULL && !places_are_none(&i->awaited) && !c->is_stopping) {
    if (now_ns() < deadline) {
      client_wait_for_answer(c, base, deadline);
    } else {
      const places late = i->awaited;
      FOR_PLACES(place, &late) settle(i, (unsigned)place, MULTICAST_ERROR_TIMEOUT);
      *status = MULTICAST_ERROR_TIMEOUT;
    }
  }
  if (base->first == NULL && !places_are_none(&i->awaited))
    *status = MULTICAST_ERROR_INVALID_HANDLE;
  else if (!i->was_told && *status == MULTICAST_OK)
    *status = MULTICAST_ERROR_NOT_FOUND;
  return inquiry_take(base);
}
