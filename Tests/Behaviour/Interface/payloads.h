/* Payloads that count their copies and releases, and threads that wait for the calls that they
 * queue. */

#ifndef PAYLOADS_H
#define PAYLOADS_H

#include "queues.h"
#include "threads.h"

/* ---- Cargo ----------------------------------------------------------------------------------- */

/* A payload that is handed over. */
typedef struct cargo {
  int releases;
  size_t size; /* that of its release */
  pthread_t released_on;
} cargo;
void release_cargo(const void *payload, size_t size);

/* What copy_cargo has made; in one test at most MOST_COPIES. */
enum { MOST_COPIES = 64 };
extern cargo copies[MOST_COPIES];
extern int copy_count;
const void *copy_cargo(const void *payload, size_t size);

/* Counts its calls, and says that there is no memory. */
extern int refused_copies;
const void *copy_nothing(const void *payload, size_t size);

/* Invocations that hand the cargo over, and that have it copied. */
multicast_invocation handing_over(cargo *c);
multicast_invocation copying(cargo *c);
int64_t hand_over(multicast m, cargo *c);

/* ---- Delegates ------------------------------------------------------------------------------- */

/* What the last call has received. */
typedef struct seen {
  int calls;
  uint32_t event;
  const void *payload;
  size_t size;
  int releases; /* of the payload, which is cargo, at that time */
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
  long number; /* as the system counts threads; 0 before it begins */
} waiter;
void begin_waiting(waiter *w, multicast m, const multicast_invocation *how);

/* Expects that the thread still waits after a while. */
void expect_to_be_waiting(waiter *w);

/* Expects that the invocation ends, and what it returns and reports. */
void expect_waited(waiter *w, int64_t result, uint64_t finished, uint64_t unfinished);

#define CHECK_OUTCOME(out, CALLED, QUEUED, REFUSED, FINISHED, UNFINISHED)                     \
  do {                                                                                        \
    CHECK_EQ((out).called, CALLED);                                                           \
    CHECK_EQ((out).queued, QUEUED);                                                           \
    CHECK_EQ((out).refused, REFUSED);                                                         \
    CHECK_EQ((out).finished, FINISHED);                                                       \
    CHECK_EQ((out).unfinished, UNFINISHED);                                                   \
  } while (0)

/* What an invocation returns, and its outcome: called, queued and so on. */
#define CHECK_INVOKED(target, how, result, ...)                                               \
  do {                                                                                        \
    multicast_outcome outcome = MULTICAST_OUTCOME_INIT;                                       \
    CHECK_EQ(multicast_invoke_with(target, how, &outcome), result);                           \
    CHECK_OUTCOME(outcome, __VA_ARGS__);                                                      \
  } while (0)

#endif
