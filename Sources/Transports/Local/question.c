/* Questions that this process asks, until they are answered. */

#include "question.h"

#include "../Common/transport.h"
#include "ring.h"

#include <stdlib.h>
#include <string.h>

/* A peer that is asked. */
typedef struct asked {
  struct asked *next; /* of those that were answered */
  unsigned place;
  pid_t pid;
  multicast_status status;
  unsigned char *payload;
  size_t size;
  char name[NAME_SHOWN + 1];
} asked;

/* Under the lock. It has memory of its own: if a function of the caller ends the thread, it stays
 * here, with the reference to the client. */
struct inquiry {
  inquiry *next;
  uint64_t number;
  places awaited;        /* these have yet to answer */
  asked *first, **place; /* what is to be told, in the order in which it has come */
  unsigned count;
  asked peers[];
};

/* ---- Answers --------------------------------------------------------------------------------- */

/* Under the lock. It is awaited, and is the only one with this place: a peer that comes has that of
 * another one only when that is not awaited any more. */
static asked *settle(inquiry *i, unsigned place, multicast_status status) {
  asked *a = i->peers;
  while (a->place != place || !places_have(&i->awaited, place)) ++a;
  places_remove(&i->awaited, place);
  a->status = status;
  *i->place = a;
  i->place = &a->next;
  return a;
}

/* A peer may send any number, more than once, and without having been asked. */
void question_answered(local_client *c, const peer *p, uint64_t number, multicast_status status,
                       span payload) {
  inquiry *i;
  pthread_mutex_lock(&c->base.lock);
  i = c->inquiries;
  while (i != NULL && i->number != number) i = i->next;
  if (i == NULL || !places_have(&i->awaited, p->place)) {
    ++c->late;
  } else {
    asked *a = settle(i, p->place, status);
    if (status == MULTICAST_OK && payload.size > 0) {
      a->payload = c->payload; /* it is where `payload` is */
      a->size = payload.size;
      c->payload = NULL;
      c->payload_size = 0;
    }
    pthread_cond_broadcast(&c->base.changed);
  }
  pthread_mutex_unlock(&c->base.lock);
}

void questions_end(local_client *c, const peer *p) {
  inquiry *i;
  pthread_mutex_lock(&c->base.lock);
  for (i = c->inquiries; i != NULL; i = i->next) {
    if (places_have(&i->awaited, p->place)) settle(i, p->place, MULTICAST_ERROR_NOT_FOUND);
  }
  pthread_cond_broadcast(&c->base.changed);
  pthread_mutex_unlock(&c->base.lock);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* Under the lock. NULL: no memory. */
static inquiry *begin(local_client *c, const places *peers) {
  const int count = __builtin_popcountll(peers->words[0]) + __builtin_popcountll(peers->words[1]);
  inquiry *i = calloc(1, sizeof *i + (size_t)count * sizeof i->peers[0]);
  if (i == NULL) return NULL;
  i->number = ++c->inquiry_numbers;
  i->awaited = *peers;
  i->place = &i->first;
  FOR_PLACES(place, peers) {
    const peer *p = c->at[place];
    asked *a = &i->peers[i->count++];
    a->place = (unsigned)place;
    a->pid = p->pid;
    memcpy(a->name, p->name, sizeof a->name);
  }
  i->next = c->inquiries;
  c->inquiries = i;
  return i;
}

static void end(local_client *c, inquiry *i) {
  inquiry **place = &c->inquiries;
  while (*place != i) place = &(*place)->next;
  *place = i->next;
  while (i->count > 0) free(i->peers[--i->count].payload);
  free(i);
}

/* Under the lock. Those that answer, but for those that have ended: of these nobody tells. */
static places who_answers(const local_client *c, const topic *t) {
  places all = t->wanted_by;
  FOR_PLACES(place, &t->wanted_by) {
    if (c->at[place]->is_over) places_remove(&all, (unsigned)place);
  }
  return all;
}

/* Under the lock, which it may give up. */
static multicast_status send_question(local_client *c, letter *l, uint64_t deadline,
                                      inquiry **out) {
  const topic *t = topic_find(&c->base.answered, l->name);
  multicast_status status;
  places peers;
  if (c->base.is_stopping) return MULTICAST_ERROR_INVALID_HANDLE;
  if (l->payload.size > c->options.max_payload) return MULTICAST_ERROR_LIMIT;
  if (t == NULL || places_are_none(&t->wanted_by)) return MULTICAST_ERROR_NOT_FOUND;
  status = ring_get_room(c, letter_size(l), deadline);
  if (c->base.is_stopping) return MULTICAST_ERROR_INVALID_HANDLE; /* topics may be freed then */
  if (status != MULTICAST_OK) return status;
  peers = who_answers(c, t);
  if (places_are_none(&peers)) return MULTICAST_ERROR_NOT_FOUND;
  *out = begin(c, &peers);
  if (*out == NULL) return MULTICAST_ERROR_OUT_OF_MEMORY;
  l->number = (*out)->number;
  ring_write(c, l, &peers);
  ring_show(c, &peers);
  return MULTICAST_OK;
}

/* Under the lock, which it gives up. Waits for the next one that is to be told; NULL: there will be
 * none. When the time is over, that is told of the others. */
static asked *next_of(local_client *c, inquiry *i, uint64_t deadline, multicast_status *status) {
  asked *a;
  while (i->first == NULL && !places_are_none(&i->awaited) && !c->base.is_stopping) {
    if (now_ns() < deadline) {
      client_wait_until(&c->base, deadline);
    } else {
      const places late = i->awaited;
      FOR_PLACES(place, &late) settle(i, (unsigned)place, MULTICAST_ERROR_TIMEOUT);
      *status = MULTICAST_ERROR_TIMEOUT;
    }
  }
  a = i->first;
  if (a == NULL && !places_are_none(&i->awaited)) *status = MULTICAST_ERROR_INVALID_HANDLE;
  if (a == NULL) return NULL;
  i->first = a->next;
  if (i->first == NULL) i->place = &i->first;
  return a;
}

typedef bool visitor(void *context, multicast_status status, int32_t pid, const char *peer,
                     const void *payload, size_t size);

/* False: the visitor has forked, and this is the child. */
static bool ask(local_client *c, letter *l, uint64_t deadline, visitor *visit, void *context,
                multicast_status *status) {
  const unsigned forks = process_forks();
  inquiry *i = NULL;
  bool goes_on = true;
  asked *a;
  pthread_mutex_lock(&c->base.lock);
  *status = send_question(c, l, deadline, &i);
  *(*status == MULTICAST_OK ? &c->sent : &c->base.counts.refused) += 1;
  while (i != NULL && goes_on && (a = next_of(c, i, deadline, status)) != NULL) {
    pthread_mutex_unlock(&c->base.lock);
    goes_on = visit(context, a->status, a->pid, a->name, a->payload, a->size);
    if (forks != process_forks()) return false;
    pthread_mutex_lock(&c->base.lock);
  }
  if (i != NULL) end(c, i);
  pthread_mutex_unlock(&c->base.lock);
  return true;
}

multicast_status multicast_local_ask(const multicast_transport *transport, const char *name,
                                     uint32_t event, const void *payload, size_t size,
                                     uint64_t timeout_ns, visitor *visit, void *context) {
  letter l = {ENTRY_QUESTION, name, event, {payload, size}, 0};
  const uint64_t deadline = deadline_of(timeout_ns);
  multicast_status status = MULTICAST_ERROR_STATE;
  client *c;
  if (name_size(name) == 0 || (payload == NULL && size > 0) || visit == NULL)
    return MULTICAST_ERROR_INVALID_ARGUMENT;
  c = clients_find_transport(transport);
  if (c == NULL) return MULTICAST_ERROR_INVALID_HANDLE;
  if (!client_is_in_child(c) && !pthread_equal(pthread_self(), c->thread) &&
      !ask((local_client *)c, &l, deadline, visit, context, &status))
    return MULTICAST_ERROR_STATE; /* the reference was the parent's */
  client_release(c);
  return status;
}
