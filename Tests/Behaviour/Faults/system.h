/* Interposed functions of libc. The program's functions take precedence over those of libc, and
 * can fail, delay, or return wrong times. */

#ifndef SYSTEM_H
#define SYSTEM_H

#include "../Interface/harness.h"

/* Returns libc's function of that name. */
void *next_one(const char *name);

typedef struct ask {
  bool is_refused;
  int count; /* number of calls by the library */
} ask;

/* If this environment variable is set, pthread_atfork() fails while the library is loaded. */
#define REFUSE_FORK_HANDLERS_AT_LOAD "REFUSE_FORK_HANDLERS_AT_LOAD"

/* They control pthread_create, pthread_setspecific, pthread_key_create, pthread_atfork,
 * pthread_condattr_setclock, eventfd, mmap and posix_memalign. */
extern ask ask_thread, ask_specific, ask_key, ask_fork_handlers, ask_eventfd, ask_map, ask_aligned;

/* Threads of the library start running when this gate opens; NULL: at once. */
extern gate *thread_may_begin;

/* How often the library has read the monotonic clock, and how often any other clock. */
extern int asked_monotonic, asked_other_clock;

#endif
