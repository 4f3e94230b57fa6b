#include "transport.h"

/* Tests define a lower limit. */
#ifndef CLIENTS_MAX
#define CLIENTS_MAX 65535
#endif
enum { INDEX_BITS = 16 };

/* The context of a transport is a handle, which combines the index of the client's place in the
 * table with the generation of the place. The handle of a released transport therefore does not
 * match a newer client in the same place. */
typedef struct place {
  client *client; /* NULL if the place is vacant */
  uint64_t uses;  /* the generation */
  size_t next_vacant; /* 0 at the end */
} place;

/* Written under process_lock(), and read without the lock. A function called while its transport is
 * being released finds either the client or NULL. Pages of the table that are never used occupy no
 * memory. */
static place places[CLIENTS_MAX + 1]; /* 0 is not used */
static size_t last_place, vacant;

bool clients_add(client *c) {
  size_t index = 0;
  process_lock();
  if (vacant != 0) {
    index = vacant;
    vacant = places[index].next_vacant;
  } else if (last_place < CLIENTS_MAX) {
    index = ++last_place;
  }
  if (index != 0) {
    c->handle = (places[index].uses + 1) << INDEX_BITS | index;
    __atomic_store_n(&places[index].uses, places[index].uses + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&places[index].client, c, __ATOMIC_RELAXED);
  }
  process_unlock();
  return index != 0;
}

static size_t index_of(const void *context) {
  return (uintptr_t)context & ((1u << INDEX_BITS) - 1);
}

client *clients_take(const void *context) {
  size_t index = index_of(context);
  client *c;
  process_lock();
  c = clients_at(context);
  if (c != NULL) {
    __atomic_store_n(&places[index].client, NULL, __ATOMIC_RELAXED);
    places[index].next_vacant = vacant;
    vacant = index;
  }
  process_unlock();
  return c;
}

void clients_remove(client *c) { clients_take((void *)(uintptr_t)c->handle); }

client *clients_at(const void *context) {
  uint64_t handle = (uintptr_t)context;
  size_t index = index_of(context);
  const place *p = &places[index <= CLIENTS_MAX ? index : 0];
  client *c = __atomic_load_n(&p->client, __ATOMIC_RELAXED);
  const uint64_t uses = __atomic_load_n(&p->uses, __ATOMIC_RELAXED);
  return c != NULL && uses == handle >> INDEX_BITS ? c : NULL;
}

/* In the child of a fork, clients_find() fails without acquiring a reference, because the child
 * frees the client when it releases the transport, even if references remain. */
multicast_status clients_find(const void *context, client **out) {
  multicast_status status = MULTICAST_ERROR_INVALID_HANDLE;
  client *c;
  process_lock();
  c = clients_at(context);
  if (c != NULL) status = client_is_in_child(c) ? MULTICAST_ERROR_STATE : MULTICAST_OK;
  if (status == MULTICAST_OK) client_retain(c);
  process_unlock();
  *out = status == MULTICAST_OK ? c : NULL;
  return status;
}

multicast_status clients_find_transport(const multicast_transport *transport, client **out) {
  multicast_status status = MULTICAST_ERROR_INVALID_HANDLE;
  *out = NULL;
  if (transport != NULL) status = clients_find(transport->context, out);
  if (status != MULTICAST_OK || (*out)->publish == transport->publish) return status;
  client_release(*out);
  *out = NULL;
  return MULTICAST_ERROR_INVALID_HANDLE;
}

uint64_t deadline_of(uint64_t timeout_ns) {
  const uint64_t now = now_ns();
  return timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
}

/* Called under the lock, which `wait` releases while it waits. */
static multicast_status wait_for_flush(client *c, uint64_t deadline,
                                       multicast_status (*wait)(client *c, uint64_t deadline)) {
  flushing f = {c->flushing, c->outbox.tickets, false}, **at = &c->flushing;
  multicast_status status;
  c->flushing = &f;
  status = wait(c, deadline);
  while (*at != &f) at = &(*at)->next;
  *at = f.next;
  return status == MULTICAST_OK && f.has_lost ? MULTICAST_ERROR_STATE : status;
}

multicast_status client_flush(const multicast_transport *transport, uint64_t timeout_ns,
                              multicast_status (*wait)(client *c, uint64_t deadline)) {
  const uint64_t deadline = deadline_of(timeout_ns);
  client *c;
  multicast_status status = clients_find_transport(transport, &c);
  if (c == NULL) return status;
  if (pthread_equal(pthread_self(), c->thread)) {
    status = MULTICAST_ERROR_STATE;
  } else {
    pthread_mutex_lock(&c->lock);
    status = wait_for_flush(c, deadline, wait);
    pthread_mutex_unlock(&c->lock);
  }
  client_release(c);
  return status;
}

multicast_status client_get_stats(const multicast_transport *transport, void *out, void *stats,
                                  size_t size, void (*fill)(const client *c, void *stats)) {
  client *c;
  const multicast_status status = clients_find_transport(transport, &c);
  if (c == NULL) return status;
  pthread_mutex_lock(&c->lock);
  fill(c, stats);
  pthread_mutex_unlock(&c->lock);
  client_release(c);
  return struct_write(out, stats, size) ? MULTICAST_OK : MULTICAST_ERROR_INVALID_ARGUMENT;
}
