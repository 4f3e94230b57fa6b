/* Each source of libmulticast-local includes this file first. It replaces functions so that the
 * memory of other peers can change at every step. See disturb.h. */

#ifndef REPLACE_H
#define REPLACE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "disturb.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#define memcpy(to, from, size) copy_disturbed(to, from, size)
#define __atomic_load_n(object, order) (disturb(), __atomic_load_n(object, order))
#define pthread_create keep_thread
#define pthread_cond_timedwait work_instead
#define clock_gettime tell_time

#endif
