/* Answers questions. A question contains all data that the reply needs, so the library stores
 * nothing for a question that is never answered. */

#include "transport.h"

#include <stdlib.h>

/* Called under the lock. Replaces the answerer of a name with `*a`, which may be NULL, and stores
 * the old answerer in `*a`. */
static multicast_status replace(client *c, const char *name, answerer **a) {
  known_name *known = names_find(&c->answered, name);
  answerer *old = known == NULL ? NULL : known->answerer;
  multicast_status status;
  if (c->is_stopping) return MULTICAST_ERROR_INVALID_HANDLE;
  if (*a == NULL && old == NULL) return MULTICAST_ERROR_NOT_FOUND;
  status = client_want(c, &c->answered, name, *a != NULL);
  if (status != MULTICAST_OK) return status;
  if (known == NULL) known = names_find(&c->answered, name);
  known->answerer = *a;
  *a = old;
  client_wake(c);
  return MULTICAST_OK;
}

static multicast_status answer(client *c, const char *name, answerer **a) {
  multicast_status status;
  if (name_size(name) == 0) return MULTICAST_ERROR_INVALID_ARGUMENT;
  pthread_mutex_lock(&c->lock);
  status = replace(c, name, a);
  pthread_mutex_unlock(&c->lock);
  return status;
}

multicast_status client_answer(const multicast_transport *transport, const char *name,
                               void (*function)(void), void *context,
                               void (*release)(void *context)) {
  answerer *a = NULL;
  multicast_status status;
  client *c;
  if (function != NULL) {
    a = malloc(sizeof *a);
    if (a == NULL) {
      if (release != NULL) release(context);
      return MULTICAST_ERROR_OUT_OF_MEMORY;
    }
    *a = (answerer){1, function, context, release};
  }
  status = clients_find_transport(transport, &c);
  if (c != NULL) {
    status = answer(c, name, &a);
    client_release(c);
  }
  answerer_drop(a); /* the old one, or the new one if it could not be set */
  return status;
}

int64_t client_be_asked(client *c, const char *name, uint32_t event, span payload, origin from) {
  const unsigned forks = process_forks();
  const known_name *known;
  answerer *a;
  pthread_mutex_lock(&c->lock);
  known = names_find(&c->answered, name);
  a = known == NULL ? NULL : known->answerer;
  if (a != NULL) __atomic_add_fetch(&a->references, 1, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&c->lock);
  if (a == NULL) {
    if (c->engine->refuse != NULL) c->engine->refuse(c, from, MULTICAST_ERROR_STATE);
    return MULTICAST_ERROR_STATE;
  }
  if (payload.size == 0) payload.at = NULL;
  c->engine->answer(a, c->handle, event, payload, from);
  if (forks == process_forks()) answerer_drop(a);
  return 1;
}

multicast_status client_reply(uint64_t transport, origin to, const void *payload, size_t size) {
  multicast_status status;
  client *c;
  if (payload == NULL && size > 0) return MULTICAST_ERROR_INVALID_ARGUMENT;
  status = clients_find((const void *)(uintptr_t)transport, &c);
  if (c == NULL) return status;
  status = c->engine->reply(c, to, (span){payload, size});
  client_release(c);
  return status;
}
