/* Threads that do one thing, and what tests ask about threads and time. */

#ifndef THREADS_H
#define THREADS_H

#include "harness.h"

/* A gate to copy where a test needs a closed one again. */
extern const gate shut;

/* The body of a thread: opens the gate that is its argument after A_WHILE_MS. */
void *open_after_a_while(void *to_open);

/* Invokes on this thread and on another one. Afterwards the multicast has multiple invokers, and a
 * removal from it needs the heavy fence. */
void let_two_threads_invoke(multicast m);

/* A stack of this size, or the system's smallest one: on arm64 with glibc that has 128 KB. */
size_t stack_of(size_t size);

/* Runs a body on a thread with a stack of 64 KB, and waits for it. */
void on_small_stack(void *(*body)(void *), void *argument);

int count_threads(void);

uint64_t now_ns(void);

/* When a wait of this thread begins. */
typedef struct moment {
  uint64_t time_ns;
  uint64_t processor_ns; /* what this thread has used */
} moment;

moment this_moment(void);

/* Fails the test if this thread has used half of the time since: it has polled, not slept. */
void expect_to_have_slept(moment since);

#endif
