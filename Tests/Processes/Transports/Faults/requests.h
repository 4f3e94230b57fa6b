/* The requests of a transport's library to libc, which tests can refuse. The requests to the client
 * libraries are in Tests/Processes/MQTT/Faults and Tests/Processes/NATS/Faults. */

#ifndef TRANSPORTS_REQUESTS_H
#define TRANSPORTS_REQUESTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* ---- For tests ------------------------------------------------------------------------------- */

enum {
  ANY_REQUEST,
  MALLOC,
  CALLOC,
  STRDUP,
  ATFORK,
  CONDITION_ATTRIBUTES,
  THREAD_ATTRIBUTES,
  THREAD,
  EVENTFD,
  RANDOM,
  STREAM,
  POLL,
  RECEIVING,
  LIBRARY_INIT,
  FIRST_OF_LIBRARY /* kinds of requests that only one library makes */
};

typedef enum asking_thread {
  OF_THE_TEST, /* the thread that has called requests_are_of_the_test() */
  OF_A_TRANSPORT,
} asking_thread;

void requests_are_of_the_test(void);

/* Grants the next `granted` requests of the given kind on the given threads, and refuses the
 * `refused` requests after them. */
void refuse_requests(int kind, int granted, int refused, asking_thread asking);
void refuse_request(int kind, int granted, asking_thread asking); /* one */

/* Ends the refusals. Returns whether a request was refused. */
bool refusal_was_made(void);

/* Returns whether the first refused request was for memory. */
bool refusal_was_of_memory(void);

/* The maximum number of transports in these tests. */
#define TRANSPORTS_MAX 24

/* Return the number of memory blocks, or of client library objects, that the library holds. */
int held_blocks(void);
int held_objects(void);

/* ---- For the library: see replace.h ---------------------------------------------------------- */

bool is_refused(int kind, bool is_memory);
void count_objects(int more);

void *ask_malloc(size_t size);
void *ask_calloc(size_t count, size_t size);
char *ask_strdup(const char *text);
void give_back(void *block);
int ask_atfork(void (*before)(void), void (*parent)(void), void (*child)(void));
int ask_condition_attributes(pthread_condattr_t *attributes);
int ask_thread_attributes(pthread_attr_t *attributes);
int ask_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
               void *argument);
int ask_eventfd(unsigned value, int flags);
ssize_t ask_random(void *bytes, size_t size, unsigned flags);
FILE *ask_stream(const char *path, const char *mode);
int ask_poll(struct pollfd *watched, nfds_t count, int timeout_ms);
ssize_t ask_receiving(int socket, void *bytes, size_t size, int flags);

#endif
