#include "transport.h"

#include <stdlib.h>

/* Under the lock. Whether a payload of this size may be appended now. */
static multicast_status check(const client *c, size_t size) {
  const settings *s = &c->settings;
  if (c->largest > 0 && size > c->largest) return MULTICAST_ERROR_LIMIT;
  if (c->is_stopping || (s->refuses_offline && !c->is_connected)) return MULTICAST_ERROR_STATE;
  return c->outbox.waiting < s->capacity || s->overflow == MULTICAST_OVERFLOW_DROP_OLDEST
             ? MULTICAST_OK
             : MULTICAST_ERROR_QUEUE_FULL;
}

/* Under the lock. */
static void append(client *c, publication *p) {
  if (c->outbox.waiting >= c->settings.capacity) {
    publication *oldest = outbox_take(&c->outbox);
    blocks_give(&c->blocks, oldest, oldest->whole);
    ++c->counts.dropped;
    pthread_cond_broadcast(&c->changed); /* a flush may wait for it */
  }
  outbox_append(&c->outbox, p);
  if (c->may_publish) client_wake(c); /* else it is sent when others were */
}

/* What the engine adds to it. */
static void complete_draft(const client *c, draft *d, const char *name, uint32_t event) {
  const engine *e = c->engine;
  d->header_size = e->write_header == NULL ? 0 : e->write_header(c, d->header, d->payload);
  d->is_retained = e->retains != NULL && e->retains(c, name, event);
}

static multicast_status append_draft(client *c, const draft *d) {
  const size_t whole = draft_size(d);
  const bool is_small = whole <= BLOCK_SIZE;
  publication *p = is_small ? NULL : publication_write(malloc(whole), d);
  multicast_status status = MULTICAST_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&c->lock);
  if (is_small || p != NULL) status = check(c, d->payload.size);
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

static void count_refused(client *c) {
  pthread_mutex_lock(&c->lock);
  ++c->counts.refused;
  pthread_mutex_unlock(&c->lock);
}

static multicast_status publish(void *context, const char *protocol, uint32_t event,
                                const void *payload, size_t size) {
  client *c = clients_at(context);
  const unsigned forks = process_forks();
  draft d;
  if (c == NULL) return MULTICAST_ERROR_INVALID_HANDLE;
  if (client_is_in_child(c)) return MULTICAST_ERROR_STATE;
  d.payload = (span){payload, size};
  d.address_size =
      coding_write(c->engine->coding, d.address, c->settings.prefix, protocol, event);
  if (d.address_size == 0 || (payload == NULL && size > 0)) return MULTICAST_ERROR_INVALID_ARGUMENT;
  if (size > c->settings.max_payload) {
    count_refused(c);
    return MULTICAST_ERROR_LIMIT;
  }
  complete_draft(c, &d, protocol, event);
  if (forks != process_forks()) return MULTICAST_ERROR_STATE; /* a caller's function has forked */
  return append_draft(c, &d);
}

/* False: out of memory. */
static bool want(client *c, const char *name, bool is_wanted) {
  bool is_done;
  pthread_mutex_lock(&c->lock);
  is_done = names_want(&c->names, name, is_wanted);
  client_wake(c);
  pthread_mutex_unlock(&c->lock);
  return is_done;
}

static multicast_status subscribe(void *context, const char *protocol) {
  client *c = clients_at(context);
  if (c == NULL) return MULTICAST_ERROR_INVALID_HANDLE;
  if (client_is_in_child(c)) return MULTICAST_ERROR_STATE;
  if (name_size(protocol) == 0) return MULTICAST_ERROR_INVALID_ARGUMENT;
  return want(c, protocol, true) ? MULTICAST_OK : MULTICAST_ERROR_OUT_OF_MEMORY;
}

static void unsubscribe(void *context, const char *protocol) {
  client *c = clients_at(context);
  if (c != NULL && !client_is_in_child(c) && name_size(protocol) > 0) want(c, protocol, false);
}

/* The threads and their calls are not here: what is left are this reference and the inbox's. */
static void release_in_child(client *c) {
  __atomic_store_n(&c->references, c->inbox.id != 0 ? 2 : 1, __ATOMIC_RELAXED);
  if (c->inbox.id != 0) multicast_destroy(c->inbox);
}

static void release(void *context) {
  client *c = clients_take(context);
  if (c == NULL) return;
  if (client_is_in_child(c)) {
    release_in_child(c);
  } else {
    client_stop(c);
  }
  client_release(c);
}

multicast_transport client_transport(client *c) {
  multicast_transport transport = multicast_transport_default();
  transport.context = (void *)(uintptr_t)c->handle;
  transport.publish = publish;
  transport.subscribe = subscribe;
  transport.unsubscribe = unsubscribe;
  transport.release = release;
  return transport;
}
