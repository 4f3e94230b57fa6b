/* Questions that peers ask: who answers them here, and the answers. What is to be known of a
 * question until it is answered, is in the question itself: nothing is kept of those that never
 * are. */

#include "answer.h"

#include "../Common/transport.h"
#include "ring.h"

#include <stdlib.h>

/* ---- Who answers ----------------------------------------------------------------------------- */

static void answerer_drop(answerer *a) {
  if (a == NULL) return;
  if (__atomic_sub_fetch(&a->references, 1, __ATOMIC_ACQ_REL) > 0) return; /* order: references */
  if (a->release != NULL) a->release(a->context);
  free(a);
}

void answerers_release(answerer *all) {
  while (all != NULL) {
    answerer *a = all;
    all = a->next;
    answerer_drop(a);
  }
}

/* Under the lock. The new one, or NULL; in its place then, the old one. */
static multicast_status replace(local_client *c, const char *name, answerer **a) {
  names *all = &c->base.answered;
  answerer *old;
  topic *t;
  if (c->base.is_stopping) return MULTICAST_ERROR_INVALID_HANDLE;
  t = *a == NULL ? topic_find(all, name) : topic_make(all, name);
  if (*a != NULL && t == NULL) return MULTICAST_ERROR_OUT_OF_MEMORY;
  if (*a == NULL && (t == NULL || t->answerer == NULL)) return MULTICAST_ERROR_NOT_FOUND;
  old = t->answerer;
  t->answerer = *a;
  names_want(all, name, *a != NULL); /* needs no memory for a name that is known */
  client_wake(&c->base);
  *a = old;
  return MULTICAST_OK;
}

static multicast_status answer(client *c, const char *name, answerer **a) {
  multicast_status status;
  if (c == NULL) return MULTICAST_ERROR_INVALID_HANDLE;
  if (name_size(name) == 0) return MULTICAST_ERROR_INVALID_ARGUMENT;
  if (client_is_in_child(c)) return MULTICAST_ERROR_STATE;
  pthread_mutex_lock(&c->lock);
  status = replace((local_client *)c, name, a);
  pthread_mutex_unlock(&c->lock);
  return status;
}

multicast_status multicast_local_answer(
    const multicast_transport *transport, const char *name,
    void (*function)(void *context, const multicast_local_question *question, uint32_t event,
                     const void *payload, size_t size),
    void *context, void (*release)(void *context)) {
  answerer *a = NULL;
  multicast_status status;
  client *c;
  if (function != NULL) {
    a = malloc(sizeof *a);
    if (a == NULL) {
      if (release != NULL) release(context);
      return MULTICAST_ERROR_OUT_OF_MEMORY;
    }
    *a = (answerer){NULL, 1, function, context, release};
  }
  c = clients_find_transport(transport);
  status = answer(c, name, &a);
  if (c != NULL) client_release(c);
  answerer_drop(a); /* the old one, or one that could not be used */
  return status;
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* Under the lock. Who has asked; NULL: it has gone. Programs may have made the number up: there may
 * be a peer of it that is not met yet. */
static peer *asker(const local_client *c, uint64_t number) {
  peer *p = c->peers;
  while (p != NULL && (p->number != number || !p->is_met || p->is_over)) p = p->next;
  return p;
}

/* Under the lock, which it may give up. */
static multicast_status send_answer(local_client *c, origin to, multicast_status status,
                                    span payload, uint64_t until) {
  const letter l = {ENTRY_ANSWER, "", (uint32_t)status, payload, to.number};
  places only = {{0, 0}};
  multicast_status result;
  const peer *p;
  if (asker(c, to.peer) == NULL) return MULTICAST_ERROR_NOT_FOUND;
  result = ring_get_room(c, letter_size(&l), until);
  if (result != MULTICAST_OK) return result;
  p = asker(c, to.peer); /* it may have gone meanwhile */
  if (p == NULL) return MULTICAST_ERROR_NOT_FOUND;
  places_add(&only, p->place);
  ring_write(c, &l, &only);
  ring_show(c, &only);
  return MULTICAST_OK;
}

void answer_refuse(local_client *c, origin to, multicast_status why) {
  pthread_mutex_lock(&c->base.lock);
  /* Else it is told soon that this one has gone. */
  if (!c->base.is_stopping) send_answer(c, to, why, (span){NULL, 0}, 0);
  pthread_mutex_unlock(&c->base.lock);
}

multicast_status multicast_local_reply(const multicast_local_question *question,
                                       const void *payload, size_t size) {
  multicast_status status = MULTICAST_ERROR_STATE;
  client *c;
  if (question == NULL || (payload == NULL && size > 0)) return MULTICAST_ERROR_INVALID_ARGUMENT;
  c = clients_find((const void *)(uintptr_t)question->transport);
  if (c == NULL) return MULTICAST_ERROR_INVALID_HANDLE;
  if (!client_is_in_child(c)) {
    local_client *own = (local_client *)c;
    pthread_mutex_lock(&c->lock);
    status = size > own->options.max_payload
                 ? MULTICAST_ERROR_LIMIT
                 : send_answer(own, (origin){question->peer, question->number}, MULTICAST_OK,
                               (span){payload, size}, MULTICAST_FOREVER);
    pthread_mutex_unlock(&c->lock);
  }
  client_release(c);
  return status;
}

int64_t local_answer(client *base, const char *name, uint32_t event, span payload, origin from) {
  const multicast_local_question question = {base->handle, from.peer, from.number};
  const unsigned forks = process_forks();
  answerer *a;
  const topic *t;
  pthread_mutex_lock(&base->lock);
  t = topic_find(&base->answered, name);
  a = t == NULL ? NULL : t->answerer;
  if (a != NULL) __atomic_add_fetch(&a->references, 1, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&base->lock);
  if (a == NULL) {
    answer_refuse((local_client *)base, from, MULTICAST_ERROR_STATE);
    return MULTICAST_ERROR_STATE;
  }
  a->function(a->context, &question, event, payload.size == 0 ? NULL : payload.at, payload.size);
  if (forks == process_forks()) answerer_drop(a);
  return 1;
}
