/* Functions that the library calls in this target instead of the system's functions. */

#ifndef DISTURB_H
#define DISTURB_H

#include <pthread.h>
#include <stddef.h>
#include <time.h>

/* Called between two steps of the library, so that the hostile peer can write. */
void disturb(void);

/* Replaces memcpy(). Lets the hostile peer write before and during the copy, and expects a copy
 * from the peer's memory to stay inside that memory. */
void *copy_disturbed(void *to, const void *from, size_t size);

/* Replaces pthread_create(). Does not create a thread, because the target itself performs the
 * thread's steps. */
int keep_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                void *argument);

/* Replaces pthread_cond_timedwait(), with which a request waits for answers. Performs steps of the
 * thread instead of waiting. */
int work_instead(pthread_cond_t *changed, pthread_mutex_t *lock, const struct timespec *until);

/* Replaces clock_gettime(). The time advances by one nanosecond with each wait. */
int tell_time(clockid_t clock, struct timespec *now);

#endif
