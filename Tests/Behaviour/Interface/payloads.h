/* Payloads that count their copies and releases, and threads that wait for the calls that they
 * have queued. */

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

/* The results of copy_cargo(), at most MOST_COPIES per test. */
enum { MOST_COPIES = 64 };
extern cargo copies[MOST_COPIES];
extern int copy_count;
const void *copy_cargo(const void *payload, size_t size);

/* Counts its calls and reports that no memory is left. */
extern int refused_copies;
const void *copy_nothing(const void *payload, size_t size);

/* Invocations that hand over a cargo, or that copy it. */
multicast_invocation handing_over(cargo *c);
multicast_invocation copying(cargo *c);
int64_t hand_over(multicast m, cargo *c);

/* ---- Delegates ------------------------------------------------------------------------------- */

/* The last call that a delegate received. */
typedef struct seen {
  int calls;
  uint32_t event;
  const void *payload;
  size_t size;
  int releases; /* if the payload is a cargo: its releases at that time */
} seen;
multicast_delegate seeing(seen *s);

/* ---- Waiting --------------------------------------------------------------------------------- */

multicast_invocation waiting(void);

/* A thread that invokes with MULTICAST_WAIT. */
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

/* Expects the thread to be still waiting after A_WHILE_MS. */
void expect_to_be_waiting(waiter *w);

/* Expects the invocation to end with this result and outcome. */
void expect_waited(waiter *w, int64_t result, uint64_t finished, uint64_t unfinished);

#define CHECK_OUTCOME(out, CALLED, QUEUED, REFUSED, FINISHED, UNFINISHED)                     \
  do {                                                                                        \
    CHECK_EQ((out).called, CALLED);                                                           \
    CHECK_EQ((out).queued, QUEUED);                                                           \
    CHECK_EQ((out).refused, REFUSED);                                                         \
    CHECK_EQ((out).finished, FINISHED);                                                       \
    CHECK_EQ((out).unfinished, UNFINISHED);                                                   \
  } while (0)

/* Checks the result of an invocation and its outcome: called, queued, refused, finished,
 * unfinished. */
#define CHECK_INVOKED(target, how, result, ...)                                               \
  do {                                                                                        \
    multicast_outcome outcome = MULTICAST_OUTCOME_INIT;                                       \
    CHECK_EQ(multicast_invoke_with(target, how, &outcome), result);                           \
    CHECK_OUTCOME(outcome, __VA_ARGS__);                                                      \
  } while (0)

#endif
