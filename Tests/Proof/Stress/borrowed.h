/* Contexts without `release`. The thread that has added such a context also removes it, and frees
 * it as soon as the removal's result permits. */

#ifndef BORROWED_H
#define BORROWED_H

#include "context.h"

typedef struct borrowed {
  context *context;
  multicast target;
  struct borrowed *next;
} borrowed;

/* Adds a borrowed context. Does nothing if the add fails. */
void borrowed_add(multicast target, multicast_queue queue, multicast_lifetime lifetime);

/* Removes a context that this thread has added, and frees it if the result permits. */
void borrowed_remove(void);

/* The first function is called when a thread ends, and leaves the thread's contexts to other
 * threads. The second function takes over one of these contexts. If there are no such contexts and
 * `in_doubt_too` is set, the second function takes over a context that has been removed but may
 * still be in use. */
void borrowed_leave_behind(borrowed **own);
void borrowed_take_over(bool in_doubt_too);

/* Returns the number of contexts that have been removed but may still be in use. They are taken
 * over at the end of a round. */
int64_t borrowed_in_doubt(void);

#endif
