#include "transport.h"

#include <stdlib.h>

multicast_status client_check(const client *c, size_t size) {
  const settings *s = &c->settings;
  if (c->largest > 0 && size > c->largest) return MULTICAST_ERROR_LIMIT;
  if (c->is_stopping || (s->refuses_offline && !c->is_connected)) return MULTICAST_ERROR_STATE;
  return c->outbox.waiting < s->capacity || s->overflow == MULTICAST_OVERFLOW_DROP_OLDEST
             ? MULTICAST_OK
             : MULTICAST_ERROR_QUEUE_FULL;
}

/* Called under the lock. */
static void append(client *c, publication *p) {
  if (c->outbox.waiting >= c->settings.capacity) {
    publication *oldest = outbox_take(&c->outbox);
    if (oldest->is_question)
      inquiry_end(inquiry_find(&c->inquiries, oldest->number), MULTICAST_ERROR_QUEUE_FULL);
    client_drop_publications(c, oldest->ticket, 1);
    blocks_give(&c->blocks, oldest, oldest->whole);
  }
  outbox_append(&c->outbox, p);
  if (c->may_publish) client_wake(c); /* otherwise it waits for earlier publications */
}

multicast_status client_send(client *c, draft *d) {
  const engine *e = c->engine;
  multicast_status status = MULTICAST_ERROR_OUT_OF_MEMORY;
  publication *p;
  size_t whole;
  bool is_small;
  d->header_size = e->write_header == NULL ? 0 : e->write_header(c, d->header, d->payload);
  whole = draft_size(d);
  is_small = whole <= BLOCK_SIZE;
  p = is_small ? NULL : publication_write(malloc(whole), d);
  pthread_mutex_lock(&c->lock);
  if (is_small || p != NULL) status = client_check(c, d->payload.size);
  if (status == MULTICAST_OK && is_small) {
    p = publication_write(blocks_take(&c->blocks), d);
    if (p == NULL) status = MULTICAST_ERROR_OUT_OF_MEMORY;
  }
  if (status == MULTICAST_OK) append(c, p);
  else ++c->counts.refused;
  pthread_mutex_unlock(&c->lock);
  if (status != MULTICAST_OK) free(p);
  return status;
}

multicast_status client_publish(client *c, const char *name, uint32_t event, span payload) {
  const unsigned forks = process_forks();
  const engine *e = c->engine;
  draft d;
  d.payload = payload;
  d.number = 0;
  d.is_question = false;
  d.address_size = coding_write(e->coding, d.address, c->settings.prefix, name, event);
  d.is_retained = e->retains != NULL && e->retains(c, name, event);
  if (forks != process_forks()) return MULTICAST_ERROR_STATE; /* `retains` has forked */
  return client_send(c, &d);
}
