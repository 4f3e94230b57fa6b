/* The ways to remove a registration that has a queue. */

#ifndef REMOVALS_H
#define REMOVALS_H

#include "harness.h"
#include "queues.h"

/* One registration with a queue, and the ways to remove it. */
typedef struct removal removal;
struct removal {
  int64_t (*remove)(removal *);
  multicast_queue queue;
  multicast target;
  multicast_delegate delegate;
  multicast_token token;
  multicast_lifetime lifetime;
  blocker *b;    /* where its call is inside one */
  gate returned;
  int64_t result;
  bool had_left; /* the call had ended when the removal returned */
  pthread_t thread;
};

/* All give MULTICAST_OK, or what is wrong; the counting ones one less than the count. */
int64_t by_remove(removal *r);
int64_t by_token(removal *r);
int64_t by_nowait(removal *r);
int64_t by_within(removal *r);
int64_t by_within_for_ever(removal *r);
int64_t by_context(removal *r);
int64_t by_place(removal *r);
int64_t by_all(removal *r);
int64_t by_many(removal *r);
int64_t by_destroy(removal *r);
int64_t by_lifetime(removal *r);
int64_t by_queue(removal *r);
int64_t by_unique(removal *r);

/* Adds it in such a way that each of them can remove it. */
void add_removable(removal *r, multicast_delegate d, multicast_queue q, void (*release)(void *));

/* A call that a thread runs, and others of the same delegate that wait. */
void begin_call(removal *r, blocker *b, runner *run, int64_t (*remove)(removal *));

/* The body of a thread, which removes in the way that was chosen. */
void *remove_in_thread(void *argument);

#endif
