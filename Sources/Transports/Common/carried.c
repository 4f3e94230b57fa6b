/* Questions that are sent through a broker. A broker reports neither how many clients will answer
 * nor whether they still exist. A question therefore ends as soon as one of the following is true:
 * the asker has enough answers, the time is up, the question cannot be sent, the broker reports
 * that nobody receives it, or the connection ends. */

#include "transport.h"

#include <stdlib.h>
#include <string.h>

/* Protected by the lock. */
typedef struct carried {
  inquiry base;
  uint32_t waiting; /* number of answers in the list */
  bool is_answered;
  told *shown; /* the answer that was returned last */
} carried;

/* ---- Arriving answers ------------------------------------------------------------------------ */

/* Called under the lock. Returns NULL if the question has ended. */
static carried *find(const client *c, uint64_t number) {
  carried *i = (carried *)inquiry_find(&c->inquiries, number);
  return i != NULL && i->base.end == MULTICAST_PENDING ? i : NULL;
}

void carried_end(client *c, uint64_t number, multicast_status why) {
  inquiry_end(inquiry_find(&c->inquiries, number), why);
}

void carried_end_all(client *c) {
  const multicast_status why =
      c->is_stopping ? MULTICAST_ERROR_INVALID_HANDLE : MULTICAST_ERROR_STATE;
  inquiry *i;
  for (i = inquiry_next(&c->inquiries, NULL); i != NULL; i = inquiry_next(&c->inquiries, i))
    inquiry_end(i, why);
}

static told *make_told(span payload) {
  told *t = malloc(sizeof *t + payload.size);
  if (t == NULL) return NULL;
  *t = (told){.status = MULTICAST_OK, .peer = "", .size = payload.size};
  if (payload.size > 0) t->payload = memcpy(t + 1, payload.at, payload.size);
  return t;
}

void carried_answered(client *c, uint64_t number, span payload) {
  const bool is_large = payload.size > c->settings.max_payload;
  told *t = is_large ? NULL : make_told(payload);
  carried *i;
  pthread_mutex_lock(&c->lock);
  ++c->counts.received;
  i = is_large ? NULL : find(c, number);
  if (i == NULL) {
    ++c->counts.ignored;
  } else if (t == NULL || i->waiting >= c->settings.capacity) {
    ++c->counts.lost;
    carried_end(c, number, t == NULL ? MULTICAST_ERROR_OUT_OF_MEMORY : MULTICAST_ERROR_QUEUE_FULL);
  } else {
    inquiry_tell(&i->base, t);
    ++i->waiting;
    i->is_answered = true;
    t = NULL;
  }
  pthread_mutex_unlock(&c->lock);
  free(t);
}

/* ---- Sending --------------------------------------------------------------------------------- */

bool carried_may_send(client *c) {
  const publication *first = c->outbox.first;
  return first != NULL && !(first->is_question && names_find(&c->answered, "")->is_changed);
}

publication *carried_take(client *c) {
  while (carried_may_send(c)) {
    publication *p = outbox_take(&c->outbox);
    if (!p->is_question || find(c, p->number) != NULL) return p;
    ++c->counts.dropped;
    pthread_cond_broadcast(&c->changed); /* for flushes */
    blocks_give(&c->blocks, p, p->whole);
  }
  return NULL;
}

multicast_status carried_reply(client *c, origin to, span payload) {
  draft d;
  d.payload = payload;
  d.address_size = c->engine->write_return(c, d.address, to);
  d.number = to.number;
  d.is_question = d.is_retained = false;
  return payload.size > c->settings.max_payload ? MULTICAST_ERROR_LIMIT : client_send(c, &d);
}

static multicast_status send_question(client *c, const query *q, uint64_t number) {
  draft d;
  d.payload = q->payload;
  d.address_size =
      coding_write(c->engine->questions, d.address, c->settings.prefix, q->name, q->event);
  d.number = number;
  d.is_question = true;
  d.is_retained = false;
  return client_send(c, &d);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* Called under the lock, which it releases while it waits. Fails immediately if the outbox is
 * full. */
static multicast_status wait_until_connected(client *c, const query *q) {
  while (!c->is_connected && !c->is_stopping) {
    const multicast_status status = client_check(c, q->payload.size);
    if (status != MULTICAST_OK) return status;
    if (now_ns() >= q->deadline) return MULTICAST_ERROR_TIMEOUT;
    client_wait_until(c, q->deadline);
  }
  if (c->is_stopping) return MULTICAST_ERROR_INVALID_HANDLE;
  return c->has_questions ? MULTICAST_OK : MULTICAST_ERROR_STATE;
}

/* Called under the lock for each question. The first call schedules the subscription to the
 * client's return address, which is sent before the question. Returns false if there is no
 * memory. */
static bool subscribe_answers(client *c) {
  return names_find(&c->answered, "") != NULL ||
         client_want(c, &c->answered, "", true) == MULTICAST_OK;
}

/* Called under the lock. Returns NULL if there is no memory. */
static carried *begin(client *c) {
  carried *i = subscribe_answers(c) ? calloc(1, sizeof *i) : NULL;
  if (i == NULL) return NULL;
  i->base.end = MULTICAST_PENDING;
  inquiry_add(&c->inquiries, &i->base);
  return i;
}

inquiry *carried_ask(client *c, const query *q, multicast_status *status) {
  carried *i = NULL;
  *status = MULTICAST_ERROR_LIMIT;
  if (q->payload.size <= c->settings.max_payload) *status = wait_until_connected(c, q);
  if (*status == MULTICAST_OK) {
    i = begin(c);
    if (i == NULL) *status = MULTICAST_ERROR_OUT_OF_MEMORY;
  }
  if (i == NULL) {
    ++c->counts.refused;
    return NULL;
  }
  /* If the connection ends while the lock is released, carried_end_all() ends the inquiry, and
   * carried_take() drops the question. */
  pthread_mutex_unlock(&c->lock);
  *status = send_question(c, q, i->base.number);
  pthread_mutex_lock(&c->lock);
  if (*status == MULTICAST_OK) return &i->base;
  if (c->is_stopping) *status = MULTICAST_ERROR_INVALID_HANDLE;
  inquiry_remove(&c->inquiries, &i->base);
  carried_forget(c, &i->base);
  return NULL;
}

told *carried_next(client *c, inquiry *base, uint64_t deadline, multicast_status *status) {
  carried *i = (carried *)base;
  while (base->end == MULTICAST_PENDING) {
    if (c->is_stopping) base->end = MULTICAST_ERROR_INVALID_HANDLE;
    else if (now_ns() >= deadline)
      base->end = i->is_answered ? MULTICAST_OK : MULTICAST_ERROR_TIMEOUT;
    else if (base->first == NULL) client_wait_for_answer(c, base, deadline);
    else break;
  }
  free(i->shown);
  i->shown = inquiry_take(base);
  if (i->shown == NULL) *status = base->end;
  else --i->waiting;
  return i->shown;
}

void carried_forget(client *c, inquiry *base) {
  carried *i = (carried *)base;
  told *t;
  while ((t = inquiry_take(base)) != NULL) {
    ++c->counts.ignored;
    free(t);
  }
  free(i->shown);
  free(i);
}
