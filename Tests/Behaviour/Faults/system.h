/* Interposed functions of libc: the program's functions come before those of libc, and can fail,
 * delay, or return wrong times. */

#ifndef SYSTEM_H
#define SYSTEM_H

#include "../Interface/harness.h"

/* The function of libc with that name. */
void *next_one(const char *name);

typedef struct ask {
  bool is_refused;
  int count; /* calls by the library */
} ask;

/* With this variable, pthread_atfork fails while the library is loaded. */
#define REFUSE_FORK_HANDLERS_AT_LOAD "REFUSE_FORK_HANDLERS_AT_LOAD"

/* pthread_create, pthread_setspecific, pthread_key_create, pthread_atfork,
 * pthread_condattr_setclock, eventfd, mmap and posix_memalign. */
extern ask ask_thread, ask_specific, ask_key, ask_fork_handlers, ask_eventfd, ask_map, ask_aligned;

/* Threads of the library begin when this is open; NULL: at once. */
extern gate *thread_may_begin;

/* How often the library has read the monotonic clock, and any other clock. */
extern int asked_monotonic, asked_other_clock;

#endif
