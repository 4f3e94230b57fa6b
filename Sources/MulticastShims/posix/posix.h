// Functions that the sources in this folder share.

#ifndef MULTICAST_POSIX_H
#define MULTICAST_POSIX_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "../include/shims.h"

// Code between shims_begin_quiet() and shims_end_quiet() preserves errno and is not a cancellation
// point.
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

// Locks a mutex that may be held during a fork. The thread sanitizer does not notice that the child
// unlocks the mutex, and would report a wrong locking order. It does not check the order of mutexes
// that are locked by trylock, so builds with that sanitizer use trylock.
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
