/* Provides payloads that count how often they are copied and released, and threads that wait for
 * the calls they have queued. */

#ifndef PAYLOADS_H
#define PAYLOADS_H

#include "queues.h"
#include "threads.h"

/* ---- Cargo ----------------------------------------------------------------------------------- */

/* A payload that invocations hand over. */
typedef struct cargo {
  int releases;
  size_t size; /* the size that `release` received */
  pthread_t released_on;
} cargo;
void release_cargo(const void *payload, size_t size);

/* The copies that copy_cargo() has made. A test can make at most MOST_COPIES copies. */
enum { MOST_COPIES = 64 };
extern cargo copies[MOST_COPIES];
extern int copy_count;
const void *copy_cargo(const void *payload, size_t size);

/* The number of calls to refuse_to_copy(), which reports that no memory is left. */
extern int refused_copies;
const void *copy_nothing(const void *payload, size_t size);

/* handing_over() returns an invocation that hands over the cargo; copying() returns an invocation
 * that copies it. */
multicast_invocation handing_over(cargo *c);
multicast_invocation copying(cargo *c);
int64_t hand_over(multicast m, cargo *c);

/* ---- Delegates ------------------------------------------------------------------------------- */

/* The most recent call to a delegate. */
typedef struct seen {
  int calls;
  uint32_t event;
  const void *payload;
  size_t size;
  int releases; /* the releases of the payload at that time, if it is a cargo */
} seen;
multicast_delegate seeing(seen *s);

/* ---- Waiting --------------------------------------------------------------------------------- */

multicast_invocation waiting(void);

/* A thread that invokes a multicast with MULTICAST_WAIT. */
typedef struct waiter {
  multicast target;
  multicast_invocation how;
  multicast_outcome out;
  int64_t result;
  gate returned;
  pthread_t thread;
  long number; /* the system's thread number; 0 before the thread starts */
} waiter;
void begin_waiting(waiter *w, multicast m, const multicast_invocation *how);

/* Expects the thread to be asleep, and still to be waiting after A_WHILE_MS. */
void expect_to_be_waiting(waiter *w);

/* Waits for the invocation to end, and expects the given result and outcome. */
void expect_waited(waiter *w, int64_t result, uint64_t finished, uint64_t unfinished);

#define CHECK_OUTCOME(out, CALLED, QUEUED, REFUSED, FINISHED, UNFINISHED)                     \
  do {                                                                                        \
    CHECK_EQ((out).called, CALLED);                                                           \
    CHECK_EQ((out).queued, QUEUED);                                                           \
    CHECK_EQ((out).refused, REFUSED);                                                         \
    CHECK_EQ((out).finished, FINISHED);                                                       \
    CHECK_EQ((out).unfinished, UNFINISHED);                                                   \
  } while (0)

/* Checks the result and the outcome of an invocation. The last arguments are the expected values of
 * the fields `called`, `queued`, `refused`, `finished` and `unfinished`. */
#define CHECK_INVOKED(target, how, result, ...)                                               \
  do {                                                                                        \
    multicast_outcome outcome = MULTICAST_OUTCOME_INIT;                                       \
    CHECK_EQ(multicast_invoke_with(target, how, &outcome), result);                           \
    CHECK_OUTCOME(outcome, __VA_ARGS__);                                                      \
  } while (0)

#endif
