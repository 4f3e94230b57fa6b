/* What the library asks of libc, on its way there: this program's functions come before libc's, and
 * can refuse, put off, or lie. */

#ifndef SYSTEM_H
#define SYSTEM_H

#include "../Interface/harness.h"

/* The function of that name that would have been found without this program's. */
void *next_one(const char *name);

typedef struct ask {
  bool is_refused;
  int count; /* how often the library has asked */
} ask;

/* pthread_create, pthread_setspecific, pthread_key_create, pthread_atfork,
 * pthread_condattr_setclock and eventfd. */
extern ask ask_thread, ask_specific, ask_key, ask_fork_handlers, ask_condition_clock, ask_eventfd;

/* Threads of the library begin once this is open; NULL: at once. */
extern gate *thread_may_begin;

/* How often the library has asked what time it is: the monotonic clock; any other. */
extern int asked_monotonic, asked_other_clock;

#endif
