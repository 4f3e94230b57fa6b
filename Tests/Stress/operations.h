/* The random operations: every function of the header. */

#ifndef OPERATIONS_H
#define OPERATIONS_H

#include "context.h"

/* Performs one random operation. */
void operate(void);

/* Inside a call, or inside a release (NULL): performs operations, delays, ends the thread. */
void operate_inside(context *c);

/* Runs all queues, so that invocations that wait for room can go on. */
void run_queues(void);

#endif
