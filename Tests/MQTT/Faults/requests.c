#include "requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>

static struct {
  pthread_mutex_t lock;
  bool is_on;
  request kind;
  asking_thread asking;
  int granted; /* so many more */
  bool has_refused, has_refused_memory;
  int blocks, clients;
} plan = {PTHREAD_MUTEX_INITIALIZER, false, ANY_REQUEST, OF_THE_TEST, 0, false, false, 0, 0};

static _Thread_local bool is_of_the_test;

/* ---- For tests ------------------------------------------------------------------------------- */

void requests_are_of_the_test(void) { is_of_the_test = true; }

void refuse_request(request kind, int granted, asking_thread asking) {
  pthread_mutex_lock(&plan.lock);
  plan.is_on = true;
  plan.kind = kind;
  plan.asking = asking;
  plan.granted = granted;
  plan.has_refused = plan.has_refused_memory = false;
  pthread_mutex_unlock(&plan.lock);
}

static bool read_locked(const bool *flag) {
  bool value;
  pthread_mutex_lock(&plan.lock);
  value = *flag;
  pthread_mutex_unlock(&plan.lock);
  return value;
}

bool refusal_was_made(void) {
  pthread_mutex_lock(&plan.lock);
  plan.is_on = false;
  pthread_mutex_unlock(&plan.lock);
  return read_locked(&plan.has_refused);
}

bool refusal_was_of_memory(void) { return read_locked(&plan.has_refused_memory); }

static int change(int *number, int by) {
  int value;
  pthread_mutex_lock(&plan.lock);
  value = *number += by;
  pthread_mutex_unlock(&plan.lock);
  return value;
}

int held_blocks(void) { return change(&plan.blocks, 0); }
int held_clients(void) { return change(&plan.clients, 0); }

/* ---- Refusals -------------------------------------------------------------------------------- */

static bool refuses(request kind, bool is_memory) {
  bool is_refused = false;
  pthread_mutex_lock(&plan.lock);
  if (plan.is_on && (plan.kind == ANY_REQUEST || plan.kind == kind) &&
      (plan.asking == OF_THE_TEST) == is_of_the_test) {
    is_refused = plan.granted-- == 0;
    if (is_refused) {
      plan.is_on = false;
      plan.has_refused = true;
      plan.has_refused_memory = is_memory;
    }
  }
  pthread_mutex_unlock(&plan.lock);
  return is_refused;
}

/* ---- libc ------------------------------------------------------------------------------------ */

static void *counted(void *block) {
  if (block != NULL) change(&plan.blocks, 1);
  return block;
}

void *ask_malloc(size_t size) { return refuses(MALLOC, true) ? NULL : counted(malloc(size)); }

void *ask_calloc(size_t count, size_t size) {
  return refuses(CALLOC, true) ? NULL : counted(calloc(count, size));
}

void *ask_aligned_alloc(size_t alignment, size_t size) {
  return refuses(ALIGNED_ALLOC, true) ? NULL : counted(aligned_alloc(alignment, size));
}

char *ask_strdup(const char *text) {
  return refuses(STRDUP, true) ? NULL : counted(strdup(text));
}

void give_back(void *block) {
  if (block != NULL) change(&plan.blocks, -1);
  free(block);
}

int ask_atfork(void (*before)(void), void (*parent)(void), void (*child)(void)) {
  return refuses(ATFORK, true) ? ENOMEM : pthread_atfork(before, parent, child);
}

int ask_condition_attributes(pthread_condattr_t *attributes) {
  return refuses(CONDITION_ATTRIBUTES, true) ? ENOMEM : pthread_condattr_init(attributes);
}

int ask_thread_attributes(pthread_attr_t *attributes) {
  return refuses(THREAD_ATTRIBUTES, true) ? ENOMEM : pthread_attr_init(attributes);
}

int ask_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
               void *argument) {
  return refuses(THREAD, false) ? EAGAIN : pthread_create(thread, attributes, body, argument);
}

int ask_eventfd(unsigned value, int flags) {
  if (!refuses(EVENTFD, false)) return eventfd(value, flags);
  errno = EMFILE;
  return -1;
}

ssize_t ask_random(void *bytes, size_t size, unsigned flags) {
  if (!refuses(RANDOM, false)) return getrandom(bytes, size, flags);
  errno = ENOSYS;
  return -1;
}

/* ---- libmosquitto ---------------------------------------------------------------------------- */

int ask_library_init(void) {
  return refuses(LIBRARY_INIT, true) ? MOSQ_ERR_NOMEM : mosquitto_lib_init();
}

struct mosquitto *ask_new_client(const char *id, bool is_clean, void *object) {
  struct mosquitto *m;
  if (refuses(NEW_CLIENT, true)) {
    errno = ENOMEM;
    return NULL;
  }
  m = mosquitto_new(id, is_clean, object);
  if (m != NULL) change(&plan.clients, 1);
  return m;
}

void give_back_client(struct mosquitto *m) {
  change(&plan.clients, -1);
  mosquitto_destroy(m);
}

int ask_user(struct mosquitto *m, const char *user, const char *password) {
  return refuses(USER, true) ? MOSQ_ERR_NOMEM : mosquitto_username_pw_set(m, user, password);
}

int ask_tls_settings(struct mosquitto *m, const char *ca_file, const char *ca_path,
                     const char *cert_file, const char *key_file,
                     int (*password)(char *buffer, int size, int is_writing, void *object)) {
  return refuses(TLS_SETTINGS, true)
             ? MOSQ_ERR_NOMEM
             : mosquitto_tls_set(m, ca_file, ca_path, cert_file, key_file, password);
}

int ask_property(mosquitto_property **all, int identifier, uint32_t value) {
  return refuses(PROPERTY, true) ? MOSQ_ERR_NOMEM
                                 : mosquitto_property_add_int32(all, identifier, value);
}

int ask_connection(struct mosquitto *m, const char *host, int port, int keep_alive,
                   const char *address, const mosquitto_property *all) {
  return refuses(CONNECTION, true)
             ? MOSQ_ERR_NOMEM
             : mosquitto_connect_bind_v5(m, host, port, keep_alive, address, all);
}

int ask_publication(struct mosquitto *m, int *id, const char *topic, int size, const void *payload,
                    int qos, bool is_retained) {
  return refuses(PUBLICATION, true)
             ? MOSQ_ERR_NOMEM
             : mosquitto_publish(m, id, topic, size, payload, qos, is_retained);
}

int ask_subscription(struct mosquitto *m, int *id, const char *filter, int qos, int options,
                     const mosquitto_property *all) {
  return refuses(SUBSCRIPTION, true) ? MOSQ_ERR_NOMEM
                                     : mosquitto_subscribe_v5(m, id, filter, qos, options, all);
}

int ask_cancellation(struct mosquitto *m, int *id, const char *filter) {
  return refuses(CANCELLATION, true) ? MOSQ_ERR_NOMEM : mosquitto_unsubscribe(m, id, filter);
}

int ask_reading(struct mosquitto *m, int packets) {
  return refuses(READING, true) ? MOSQ_ERR_NOMEM : mosquitto_loop_read(m, packets);
}
