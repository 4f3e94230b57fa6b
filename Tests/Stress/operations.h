/* What the threads do: everything that the header offers. */

#ifndef OPERATIONS_H
#define OPERATIONS_H

#include "context.h"

/* One operation, chosen at random. */
void operate(void);

/* What goes on inside of a call; or inside of a release: NULL. */
void operate_inside(context *c);

/* Runs the queues: somebody has to, where invocations wait for room. */
void run_queues(void);

#endif
