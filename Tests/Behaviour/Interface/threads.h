/* Common thread bodies, and queries about threads and time. */

#ifndef THREADS_H
#define THREADS_H

#include "harness.h"

/* A closed gate. To close a gate again, a test overwrites it with a copy of this gate. */
extern const gate shut;

/* The body of a thread that pauses for A_WHILE_MS and then opens the gate `to_open`. */
void *open_after_a_while(void *to_open);

/* Invokes the multicast on this thread and on another thread, so that later removals need the
 * kernel's memory barrier. */
void let_two_threads_invoke(multicast m);

/* Returns `size`, or the minimum stack size if that is larger, as on arm64 with glibc, where the
 * minimum is 128 KB. */
size_t stack_of(size_t size);

/* Runs a body on a thread with a stack of 64 KB, and waits for that thread. */
void on_small_stack(void *(*body)(void *), void *argument);

int count_threads(void);

uint64_t now_ns(void);

/* The time at which this thread begins to wait. */
typedef struct moment {
  uint64_t time_ns;
  uint64_t processor_ns; /* processor time used by this thread */
} moment;

moment this_moment(void);

/* Fails the test if this thread has been busy for half of the time since the given moment. A thread
 * that sleeps instead of polling is hardly ever busy. */
void expect_to_have_slept(moment since);

#endif
