/* Replacements for libc functions. The library calls the replacements, which can fail, delay their
 * callers, or return wrong times. */

#ifndef SYSTEM_H
#define SYSTEM_H

#include "../Interface/harness.h"

/* Returns the libc function with the given name. */
void *next_one(const char *name);

typedef struct ask {
  bool is_refused;
  int count; /* the number of calls by the library */
} ask;

/* If this environment variable is set, pthread_atfork() fails while the library is being loaded. */
#define REFUSE_FORK_HANDLERS_AT_LOAD "REFUSE_FORK_HANDLERS_AT_LOAD"

/* These variables control the replacements of pthread_create, pthread_setspecific,
 * pthread_key_create, pthread_atfork, pthread_condattr_setclock, eventfd, mmap and
 * posix_memalign. */
extern ask ask_thread, ask_specific, ask_key, ask_fork_handlers, ask_eventfd, ask_map, ask_aligned;

/* If not NULL, threads that the library starts wait until this gate opens. */
extern gate *thread_may_begin;

/* How many times the library has read the monotonic clock, and how many times any other clock. */
extern int asked_monotonic, asked_other_clock;

#endif
