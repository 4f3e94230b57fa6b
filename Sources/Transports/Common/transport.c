#include "transport.h"

#include <string.h>

static void count_refused(client *c) {
  pthread_mutex_lock(&c->lock);
  ++c->counts.refused;
  pthread_mutex_unlock(&c->lock);
}

static multicast_status publish(void *context, const char *name, uint32_t event,
                                const void *payload, size_t size) {
  client *c = clients_at(context);
  if (c == NULL) return MULTICAST_ERROR_INVALID_HANDLE;
  if (client_is_in_child(c)) return MULTICAST_ERROR_STATE;
  if (name_size(name) == 0 || (payload == NULL && size > 0))
    return MULTICAST_ERROR_INVALID_ARGUMENT;
  if (size > c->settings.max_payload) {
    count_refused(c);
    return MULTICAST_ERROR_LIMIT;
  }
  return c->engine->publish(c, name, event, (span){payload, size});
}

static multicast_status want(client *c, names *all, const char *name, bool is_wanted) {
  multicast_status status;
  pthread_mutex_lock(&c->lock);
  status = client_want(c, all, name, is_wanted);
  client_wake(c);
  pthread_mutex_unlock(&c->lock);
  return status;
}

/* Returns whether `name` stands for a prefix. To pass a prefix, the broadcaster passes an empty
 * string whose NUL is followed by the prefix. */
static bool is_prefix(const client *c, const char *name) {
  return c->engine->has_prefixes && name != NULL && name[0] == '\0';
}

static multicast_status want_prefix(client *c, const char *prefix, bool is_wanted) {
  char text[NAME_MAX_SIZE + 1] = "*";
  const size_t size = strnlen(prefix, NAME_MAX_SIZE);
  if (size == NAME_MAX_SIZE) return MULTICAST_ERROR_INVALID_ARGUMENT;
  memcpy(text + 1, prefix, size); /* the rest of `text` is zero already */
  return want(c, &c->prefixes, text, is_wanted);
}

static multicast_status subscribe(void *context, const char *name) {
  client *c = clients_at(context);
  multicast_status status;
  if (c == NULL) return MULTICAST_ERROR_INVALID_HANDLE;
  if (client_is_in_child(c)) return MULTICAST_ERROR_STATE;
  if (is_prefix(c, name)) return want_prefix(c, name + 1, true);
  if (name_size(name) == 0) return MULTICAST_ERROR_INVALID_ARGUMENT;
  status = want(c, &c->names, name, true);
  if (status == MULTICAST_OK && c->engine->observed != NULL) c->engine->observed(c, name);
  return status;
}

static void unsubscribe(void *context, const char *name) {
  client *c = clients_at(context);
  if (c == NULL || client_is_in_child(c)) return;
  if (is_prefix(c, name)) want_prefix(c, name + 1, false);
  else if (name_size(name) > 0) want(c, &c->names, name, false);
}

/* The parent's threads do not exist in a child, so the references that those threads and their
 * calls held are removed. Only the references of the transport and the inbox remain. */
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
  transport.flags = c->engine->has_prefixes ? MULTICAST_TRANSPORT_PREFIXES : 0;
  transport.publish = publish;
  transport.subscribe = subscribe;
  transport.unsubscribe = unsubscribe;
  transport.release = release;
  return transport;
}
