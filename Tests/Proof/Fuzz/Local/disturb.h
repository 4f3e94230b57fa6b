/* Functions that the library calls in this target instead of functions of the system. */

#ifndef DISTURB_H
#define DISTURB_H

#include <pthread.h>
#include <stddef.h>
#include <time.h>

/* Called between two steps of the library, so that the hostile peer can write. */
void disturb(void);

/* Replaces memcpy(). Lets the hostile peer write before and during the copy, and expects that a
 * copy from the peer's memory stays inside it. */
void *copy_disturbed(void *to, const void *from, size_t size);

/* Replaces pthread_create(). Creates no thread, because the target performs the steps of the thread
 * itself. */
int keep_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                void *argument);

/* Replaces pthread_cond_timedwait(), with which a request waits for answers. Instead of waiting,
 * performs steps of the thread. */
int work_instead(pthread_cond_t *changed, pthread_mutex_t *lock, const struct timespec *until);

/* Replaces clock_gettime(). The time advances by one nanosecond with each wait. */
int tell_time(clockid_t clock, struct timespec *now);

#endif
