/* Functions for forks, signals, threads and time. */

#ifndef MULTICAST_TRANSPORTS_PROCESS_H
#define MULTICAST_TRANSPORTS_PROCESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static const uint64_t ns_of_second = 1000000000u;
static const uint64_t ns_of_millisecond = 1000000u;

/* The first call in a process registers fork handlers and calls `engine` to initialize the engine.
 * The handlers count forks, and call `in_child` in each child, inside fork() and under the lock.
 * All calls must pass the same functions. Returns whether the first call has succeeded. */
bool process_start(bool (*engine)(void), void (*in_child)(void));
/* Returns the number of forks since process_start(): 0 in the process that called it, 1 in its
 * child processes, and so on. */
unsigned process_forks(void);

/* A lock that is held during fork(), so that its data is consistent in the child. */
void process_lock(void);
void process_unlock(void);

/* Blocks all signals in this thread, and in threads that it starts, so that the program's threads
 * handle them. Does not block signals that the thread's own faults cause, such as SIGSEGV. */
void process_block_signals(sigset_t *before);
/* Starts a detached thread with all signals blocked. Returns an errno. */
int process_start_thread(pthread_t *thread, void *(*body)(void *), void *argument);

/* Initializes a condition variable that uses CLOCK_MONOTONIC. Requires process_start(). */
void process_make_condition(pthread_cond_t *condition);

/* Returns the time of CLOCK_MONOTONIC in nanoseconds. */
uint64_t now_ns(void);
struct timespec time_of_ns(uint64_t ns);

#endif
