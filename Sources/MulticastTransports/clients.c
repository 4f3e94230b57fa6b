/* All clients, and the functions that look for one. */

#include "client.h"

#include <search.h>

static void *all; /* a tree, under the lock that a fork takes */

static int compare(const void *a, const void *b) { return (a > b) - (a < b); }

bool clients_add(client *c) {
  bool is_added;
  process_lock();
  is_added = tsearch(c, &all, compare) != NULL;
  process_unlock();
  return is_added;
}

void clients_remove(client *c) {
  process_lock();
  tdelete(c, &all, compare);
  process_unlock();
}

/* The client of a transport, with a reference for the caller; NULL: there is none. */
static client *find(const multicast_transport *transport) {
  client *c = NULL;
  if (transport == NULL || transport->context == NULL) return NULL;
  process_lock();
  if (tfind(transport->context, &all, compare) != NULL) {
    c = transport->context;
    client_retain(c);
  }
  process_unlock();
  return c;
}

multicast_status client_flush(const multicast_transport *transport, uint64_t timeout_ns,
                              multicast_status (*wait)(client *c, uint64_t deadline)) {
  client *c = find(transport);
  multicast_status status = MULTICAST_ERROR_STATE;
  uint64_t now = now_ns();
  uint64_t deadline = timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
  if (c == NULL) return MULTICAST_ERROR_INVALID_HANDLE;
  if (!client_is_in_child(c) && !pthread_equal(pthread_self(), c->thread)) {
    pthread_mutex_lock(&c->lock);
    status = wait(c, deadline);
    pthread_mutex_unlock(&c->lock);
  }
  client_release(c);
  return status;
}

multicast_status client_get_stats(const multicast_transport *transport, void *out, void *stats,
                                  size_t size, void (*fill)(const client *c, void *stats)) {
  client *c = find(transport);
  multicast_status status = MULTICAST_ERROR_STATE;
  if (c == NULL) return MULTICAST_ERROR_INVALID_HANDLE;
  if (!client_is_in_child(c)) {
    pthread_mutex_lock(&c->lock);
    fill(c, stats);
    pthread_mutex_unlock(&c->lock);
    status = struct_write(out, stats, size) ? MULTICAST_OK : MULTICAST_ERROR_INVALID_ARGUMENT;
  }
  client_release(c);
  return status;
}
