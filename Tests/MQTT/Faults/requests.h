/* What libmulticast-mqtt asks libc and libmosquitto for. A test can have one request refused. */

#ifndef REQUESTS_H
#define REQUESTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <mosquitto.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- For tests ------------------------------------------------------------------------------- */

typedef enum request {
  ANY_REQUEST,
  MALLOC,
  CALLOC,
  ALIGNED_ALLOC,
  STRDUP,
  ATFORK,
  CONDITION_ATTRIBUTES,
  THREAD_ATTRIBUTES,
  THREAD,
  EVENTFD,
  RANDOM,
  LIBRARY_INIT,
  NEW_CLIENT,
  USER,
  TLS_SETTINGS,
  PROPERTY,
  CONNECTION,
  PUBLICATION,
  SUBSCRIPTION,
  CANCELLATION,
  READING,
} request;

typedef enum asking_thread {
  OF_THE_TEST, /* that has called requests_are_of_the_test() */
  OF_A_TRANSPORT,
} asking_thread;

void requests_are_of_the_test(void);

/* From now on so many requests of this kind on such threads are granted, and the next one refused:
 * once. */
void refuse_request(request kind, int granted, asking_thread asking);

/* Ends that. Whether one was refused. */
bool refusal_was_made(void);

/* Whether what was refused was memory. */
bool refusal_was_of_memory(void);

/* What the library has now: blocks of memory, and clients of libmosquitto. */
int held_blocks(void);
int held_clients(void);

/* ---- For the library: see replace.h ---------------------------------------------------------- */

void *ask_malloc(size_t size);
void *ask_calloc(size_t count, size_t size);
void *ask_aligned_alloc(size_t alignment, size_t size);
char *ask_strdup(const char *text);
void give_back(void *block);
int ask_atfork(void (*before)(void), void (*parent)(void), void (*child)(void));
int ask_condition_attributes(pthread_condattr_t *attributes);
int ask_thread_attributes(pthread_attr_t *attributes);
int ask_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
               void *argument);
int ask_eventfd(unsigned value, int flags);
ssize_t ask_random(void *bytes, size_t size, unsigned flags);
int ask_library_init(void);
struct mosquitto *ask_new_client(const char *id, bool is_clean, void *object);
void give_back_client(struct mosquitto *m);
int ask_user(struct mosquitto *m, const char *user, const char *password);
int ask_tls_settings(struct mosquitto *m, const char *ca_file, const char *ca_path,
                     const char *cert_file, const char *key_file,
                     int (*password)(char *buffer, int size, int is_writing, void *object));
int ask_property(mosquitto_property **all, int identifier, uint32_t value);
int ask_connection(struct mosquitto *m, const char *host, int port, int keep_alive,
                   const char *address, const mosquitto_property *all);
int ask_publication(struct mosquitto *m, int *id, const char *topic, int size, const void *payload,
                    int qos, bool is_retained);
int ask_subscription(struct mosquitto *m, int *id, const char *filter, int qos, int options,
                     const mosquitto_property *all);
int ask_cancellation(struct mosquitto *m, int *id, const char *filter);
int ask_reading(struct mosquitto *m, int packets);

#endif
