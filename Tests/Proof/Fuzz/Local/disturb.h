/* Functions that the library calls in this target instead of the system's. */

#ifndef DISTURB_H
#define DISTURB_H

#include <pthread.h>
#include <stddef.h>
#include <time.h>

/* Called between two steps of the library: lets the hostile peer write. */
void disturb(void);

/* Replaces memcpy: lets the hostile peer write before and during the copy, and expects that the
 * copy stays inside the memory of the peer. */
void *copy_disturbed(void *to, const void *from, size_t size);

/* Replaces pthread_create: creates no thread. The target performs the steps of the thread
 * itself. */
int keep_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                void *argument);

/* Replaces pthread_cond_timedwait, with which a request waits for answers: meanwhile the target
 * performs the steps of the thread. */
int work_instead(pthread_cond_t *changed, pthread_mutex_t *lock, const struct timespec *until);

/* Replaces clock_gettime: the time is one nanosecond per wait so far. */
int tell_time(clockid_t clock, struct timespec *now);

#endif
