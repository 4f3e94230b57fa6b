/* The process: forks, signals, threads, time. */

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

/* Once in a process: has forks counted, and the second function called in each child, under the
 * lock below; and calls the first one. They are always the same. Whether all have succeeded. */
bool process_start(bool (*engine)(void), void (*in_child)(void));
/* How often this process was forked from another one since then. */
unsigned process_forks(void);

/* A lock that a fork takes: what it protects is whole in the child. */
void process_lock(void);
void process_unlock(void);

/* Signals are for the threads of the program, but for those that a thread causes itself. What this
 * thread blocks, the threads that it starts block, too. */
void process_block_signals(sigset_t *before);
/* Starts a detached thread that takes no signals of the program. Returns an errno. */
int process_start_thread(pthread_t *thread, void *(*body)(void *), void *argument);

/* Of CLOCK_MONOTONIC. After process_start(). */
void process_make_condition(pthread_cond_t *condition);

/* CLOCK_MONOTONIC. */
uint64_t now_ns(void);
struct timespec time_of_ns(uint64_t ns);

#endif
