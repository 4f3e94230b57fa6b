/* The random operations, which use every function of the header. */

#ifndef OPERATIONS_H
#define OPERATIONS_H

#include "context.h"

/* OPERATION(name, weight) { ... } defines a random operation. The frequency of an operation is
 * proportional to its weight. */
#define OPERATION(...) OPERATION_AT(__LINE__, __VA_ARGS__)
#define OPERATION_AT(...) OPERATION_AS(__VA_ARGS__)
#define OPERATION_AS(LINE, NAME, WEIGHT)                                       \
  static void perform_##LINE(void);                                            \
  __attribute__((constructor)) static void register_##LINE(void) {             \
    operation_register((operation){NAME, WEIGHT, perform_##LINE});             \
  }                                                                            \
  static void perform_##LINE(void)

typedef struct operation {
  const char *name;
  uint32_t weight;
  void (*perform)(void);
} operation;
void operation_register(operation o);

/* Performs one random operation. */
void operate(void);

/* Called inside a delegate's call, or with NULL inside a release. May perform operations, wait for
 * a moment, or end the thread. */
void operate_inside(context *c);

/* Like operate_inside(), but called while a payload is being released or copied, or inside a wake
 * function. */
void operate_inside_function(void);

/* Begins an invocation of this thread. Returns the outer invocation, which the caller passes to
 * order_ends(). */
struct order *order_begins(struct order *o);
void order_ends(struct order *outer, int64_t count); /* `count` is 0 if it has been deferred */

/* Visits all delegates of a multicast, or only the first few. */
void visit_one(multicast m);

/* Stores a token that other threads may use. */
void remember(multicast_token token);

/* Runs all queues, so that invocations waiting for room can continue. */
void run_queues(void);

#endif
