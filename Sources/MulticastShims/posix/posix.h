// What the sources of this folder share.

#ifndef MULTICAST_POSIX_H
#define MULTICAST_POSIX_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "../include/shims.h"

// Code between the two leaves errno as it is, and is no point of cancellation.
typedef struct shims_quiet {
  int error, cancel_state;
} shims_quiet;

static inline shims_quiet shims_begin_quiet(void) {
  shims_quiet quiet = {.error = errno};
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet.cancel_state);
  return quiet;
}
static inline void shims_end_quiet(shims_quiet quiet) {
  int ignored;
  pthread_setcancelstate(quiet.cancel_state, &ignored);
  errno = quiet.error;
}

// For what a fork holds. The thread sanitizer does not notice what the child unlocks; but a mutex
// that is tried has no place in its order of mutexes.
static inline void shims_lock_mutex(pthread_mutex_t *mutex) {
#ifdef __SANITIZE_THREAD__
  while (pthread_mutex_trylock(mutex) != 0) sched_yield();
#else
  pthread_mutex_lock(mutex);
#endif
}

SHIMS_HIDDEN void shims_lock_beds(void);
SHIMS_HIDDEN void shims_unlock_beds(bool is_child);
SHIMS_HIDDEN void shims_lock_pipes(void);
SHIMS_HIDDEN void shims_unlock_pipes(void);

#endif
