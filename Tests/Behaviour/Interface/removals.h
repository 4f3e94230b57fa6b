/* Provides a function for every way to remove a registration, and removals on another thread. */

#ifndef REMOVALS_H
#define REMOVALS_H

#include "queues.h"
#include "threads.h"

/* ---- Ways to remove -------------------------------------------------------------------------- */

/* A registration, and a way to remove it. */
typedef struct removal removal;
struct removal {
  int64_t (*remove)(removal *);
  multicast_queue queue;
  multicast target;
  multicast_delegate delegate;
  multicast_token token;
  multicast_lifetime lifetime;
  blocker *b;    /* the context of the delegate, if the removal has to wait for a call */
  gate returned;
  int64_t result;
  bool had_left; /* whether the call had ended when the removal returned */
  pthread_t thread;
};

/* Each function removes the registration in one way, and returns MULTICAST_OK or another status. If
 * the library returns the number of removed delegates, which should be 1, the function subtracts
 * 1. */
int64_t by_remove(removal *r);
int64_t by_token(removal *r);
int64_t by_nowait(removal *r);
int64_t by_within(removal *r);
int64_t by_within_without_limit(removal *r);
int64_t by_context(removal *r);
int64_t by_place(removal *r);
int64_t by_all(removal *r);
int64_t by_many(removal *r);
int64_t by_destroy(removal *r);
int64_t by_lifetime(removal *r);
int64_t by_queue(removal *r);
int64_t by_unique(removal *r);

/* Adds a delegate with a queue, so that each way can remove it. */
void add_removable(removal *r, multicast_delegate d, multicast_queue q, void (*release)(void *));

/* ---- On another thread ----------------------------------------------------------------------- */

/* Prepares the removal of the delegate `blocking(b)`. The caller still has to add it to the
 * multicast. */
void prepare_removal(removal *r, multicast target, blocker *b, int64_t (*remove)(removal *));

/* The body of a thread that performs a removal. */
void *remove_in_thread(void *argument);

/* Performs a removal on another thread while `b` is being called. Expects the removal to wait until
 * the call has returned, and to return `result`. */
void expect_to_wait(removal *r, int64_t result);

/* ---- While another thread is inside a call --------------------------------------------------- */

/* The removal of a delegate that another thread is calling. */
typedef struct running_call {
  blocker b;
  invoker i;
  removal r;
} running_call;
void begin_running_call(running_call *c, int64_t (*remove)(removal *));

/* The removal of a delegate with a queue, in which one call is running and two more are waiting. */
typedef struct queued_call {
  blocker b;
  runner run;
  removal r;
} queued_call;
void begin_queued_call(queued_call *c, int64_t (*remove)(removal *));

/* ---- Inside the delegate's own call ---------------------------------------------------------- */

/* The context of a delegate that removes itself. */
typedef struct own_removal {
  removal r;
  int64_t result;
  int releases, releases_inside, calls;
} own_removal;
void remove_itself(void *context, uint32_t event, const void *payload, size_t size);
void release_itself(void *context);

/* ---- Contexts that are freed after the removal ----------------------------------------------- */

/* A context that no call may use once the delegate has been removed. `alive` is not atomic, so that
 * the thread sanitizer reports a call that races with the removal. */
typedef struct guarded {
  uint32_t alive;
} guarded;
multicast_delegate begin_guarded(guarded *g);
void end_guarded(guarded *g);

#endif
