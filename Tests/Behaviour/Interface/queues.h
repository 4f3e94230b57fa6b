/* Queues, and common operations on them. */

#ifndef QUEUES_H
#define QUEUES_H

#include "threads.h"

/* ---- Creation -------------------------------------------------------------------------------- */

multicast_queue default_queue(void);

#define TEST_OF_QUEUE(NAME) \
  TEST_OF(NAME, (multicast m, multicast_queue q), (multicast_create(), default_queue()))

/* Adds a delegate with these flags and count_release_of() as its `release`. */
multicast_token add_flagged(multicast m, multicast_delegate d, multicast_queue q, uint32_t flags);

/* A full queue that blocks invocations. The queue has room for one call, and one call is
 * waiting. */
typedef struct narrow {
  multicast_queue queue;
  multicast target;
  multicast_token token;
} narrow;
void fill_narrow(narrow *n, const multicast_add_options *more);

/* ---- Statistics ------------------------------------------------------------------------------ */

/* Returns all statistics that are not zero, except for `highest`, as in "pending 1, queued 3,
 * delivered 2". */
const char *figures(multicast_queue q);

/* ---- Running threads ------------------------------------------------------------------------- */

/* A thread that runs a queue once. */
typedef struct runner {
  multicast_queue queue;
  size_t max;
  int64_t result;
  gate returned;
  pthread_t thread;
} runner;
void run_in_background(runner *r, multicast_queue q, size_t max);
int64_t run_finished(runner *r);
int64_t run_elsewhere(multicast_queue q, size_t max);

/* The body of a thread that makes all of a queue's waiting calls. */
void *run_on_a_new_thread(void *argument);

/* ---- Calls that use their queue -------------------------------------------------------------- */

/* The context of a delegate whose calls use their queue or their multicast. */
typedef struct requeuer {
  multicast target;
  multicast_queue queue;
  int left;       /* how many times the calls will queue another call */
  int made;
  int64_t nested; /* the sum of the results of the runs inside its calls */
} requeuer;
void begin_requeuing(requeuer *r, multicast_function function, int left);

/* A delegate function. Calls with odd numbers make the next call in a nested run. */
void run_inside(void *context, uint32_t event, const void *payload, size_t size);

/* add_destroyer() adds a delegate with the queue `doomed`. The delegate's call destroys the queue
 * and notes "d". The delegate's releases are counted. */
extern multicast_queue doomed;
void add_destroyer(multicast m);

/* A visitor that calls each delegate. The delegates' contexts must point to ints. */
bool visit_all(void *context, const multicast_delegate *delegate);

#endif
