/* What the library calls in this target. */

#ifndef DISTURB_H
#define DISTURB_H

#include <pthread.h>
#include <stddef.h>
#include <time.h>

/* Between two steps of the library: the hostile peer writes. */
void disturb(void);

/* The same before and in a memcpy, which has to stay in the memory that it reads. */
void *copy_disturbed(void *to, const void *from, size_t size);

/* In place of pthread_create: the target does what the thread would do. */
int keep_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                void *argument);

/* In place of pthread_cond_timedwait: a question waits for answers. The target does what the thread
 * does meanwhile. */
int work_instead(pthread_cond_t *changed, pthread_mutex_t *lock, const struct timespec *until);

/* In place of clock_gettime: so many nanoseconds as there were waits. */
int tell_time(clockid_t clock, struct timespec *now);

#endif
