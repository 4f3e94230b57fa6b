#include "transport.h"

/* Returns false if `visit` has called fork() and this process is the child. */
static bool ask(client *c, const query *q, visitor *visit, void *context,
                multicast_status *status) {
  const unsigned forks = process_forks();
  bool goes_on = true;
  inquiry *i;
  const told *t;
  pthread_mutex_lock(&c->lock);
  *status = MULTICAST_OK;
  i = c->engine->ask(c, q, status);
  while (i != NULL && goes_on && (t = c->engine->next(c, i, q->deadline, status)) != NULL) {
    pthread_mutex_unlock(&c->lock);
    goes_on = visit(context, t->status, t->pid, t->peer, t->payload, t->size);
    if (forks != process_forks()) return false;
    pthread_mutex_lock(&c->lock);
  }
  if (i != NULL) {
    inquiry_remove(&c->inquiries, i);
    c->engine->forget(c, i);
  }
  pthread_mutex_unlock(&c->lock);
  return true;
}

multicast_status client_ask(const multicast_transport *transport, const query *q, visitor *visit,
                            void *context) {
  multicast_status status;
  client *c;
  if (name_size(q->name) == 0 || (q->payload.at == NULL && q->payload.size > 0) || visit == NULL)
    return MULTICAST_ERROR_INVALID_ARGUMENT;
  status = clients_find_transport(transport, &c);
  if (c == NULL) return status;
  if (pthread_equal(pthread_self(), c->thread)) status = MULTICAST_ERROR_STATE;
  else if (!ask(c, q, visit, context, &status))
    return MULTICAST_ERROR_STATE; /* the parent owns the reference */
  client_release(c);
  return status;
}
