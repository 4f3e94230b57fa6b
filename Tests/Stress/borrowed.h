/* Contexts of which the library does not say when it has let go of them: who added one removes it,
 * and frees it as soon as the removal says that it may. */

#ifndef BORROWED_H
#define BORROWED_H

#include "context.h"

typedef struct borrowed {
  context *context;
  multicast target;
  struct borrowed *next;
} borrowed;

/* Adds one; nothing where that fails. */
void borrowed_add(multicast target, multicast_queue queue, multicast_lifetime lifetime);

/* Removes one of the thread's own; frees it if the removal says so. */
void borrowed_give_back(void);

/* A thread that ends leaves its own to the others, who take some of them over. */
void borrowed_leave_behind(borrowed **own);
void borrowed_take_over(bool in_doubt_too);

/* How many have been removed, but could be in use all the same: taken over at the end. */
int64_t borrowed_in_doubt(void);

#endif
