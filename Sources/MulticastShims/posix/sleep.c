// Implements the counterpart of futexes with mutexes and condition variables.

#include "shims.h"

#ifdef SHIMS_POSIX

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "posix.h"

// A sleeping thread, on its own stack. Each sleeper has its own condition variable, so that waking
// one thread wakes no other thread, not even one that is sleeping on the same word.
typedef struct sleeper {
  const uint32_t *word;
  struct sleeper *next;
  bool is_woken;
  pthread_mutex_t mutex;
  pthread_cond_t condition;
} sleeper;

// The sleepers whose words have the same hash, in order of arrival. There are only a few of these
// lists, because a fork acquires the mutexes of all of them, and the thread sanitizer can track
// only 64 locks held by one thread, including the library's locks.
typedef struct bed {
  pthread_mutex_t mutex;
  sleeper *first;
} bed;

#define BED_COUNT 8
#define BED {.mutex = PTHREAD_MUTEX_INITIALIZER}
static bed beds[BED_COUNT] = {BED, BED, BED, BED, BED, BED, BED, BED};

// Hashes only the number of the word's cache line, because each of the library's words has its own
// line.
static bed *bed_of(const uint32_t *word) {
  const uint64_t line = (uint64_t)(uintptr_t)word / 64;
  return &beds[(line * UINT64_C(0x9E3779B97F4A7C15)) >> 61];
}

static bool make_condition(pthread_cond_t *condition) {
#ifdef __APPLE__
  return pthread_cond_init(condition, NULL) == 0;
#else
  pthread_condattr_t attributes;
  if (pthread_condattr_init(&attributes) != 0) return false;
  const bool ok = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                  pthread_cond_init(condition, &attributes) == 0;
  pthread_condattr_destroy(&attributes);
  return ok;
#endif
}

// Limiting the seconds to 32 bits is harmless, because the clock counts from the start of the
// system.
static struct timespec time_of(uint64_t ns) {
  const uint64_t s = ns / 1000000000u;
  return (struct timespec){.tv_sec = sizeof(time_t) < 8 && s > INT32_MAX ? INT32_MAX : (time_t)s,
                           .tv_nsec = (long)(ns % 1000000000u)};
}

// Returns false if the deadline has passed.
static bool wait_for_wake(sleeper *own, uint64_t deadline_ns) {
  if (deadline_ns == UINT64_MAX) return pthread_cond_wait(&own->condition, &own->mutex) == 0;
#ifdef __APPLE__  // no condition has the monotonic clock
  const uint64_t now_ns = shims_now_ns();
  if (now_ns >= deadline_ns) return false;
  const struct timespec rest = time_of(deadline_ns - now_ns);
  return pthread_cond_timedwait_relative_np(&own->condition, &own->mutex, &rest) == 0;
#else
  const struct timespec deadline = time_of(deadline_ns);
  return pthread_cond_timedwait(&own->condition, &own->mutex, &deadline) == 0;
#endif
}

// Adds the sleeper to the list, unless the word has changed. A thread that wakes others changes the
// word before it acquires the mutex, so no wake-up is lost.
static bool enter(bed *to, sleeper *own, uint32_t value) {
  shims_lock_mutex(&to->mutex);
  const bool ok = __atomic_load_n(own->word, __ATOMIC_RELAXED) == value;
  if (ok) {
    sleeper **place = &to->first;
    while (*place != NULL) place = &(*place)->next;
    *place = own;
  }
  pthread_mutex_unlock(&to->mutex);
  return ok;
}

// Removes the sleeper from the list. After this call, no thread that wakes others accesses the
// sleeper.
static void leave(bed *from, const sleeper *own) {
  shims_lock_mutex(&from->mutex);
  if (!own->is_woken) {
    sleeper **place = &from->first;
    while (*place != own) place = &(*place)->next;
    *place = own->next;
  }
  pthread_mutex_unlock(&from->mutex);
}

void shims_futex_wait(uint32_t *word, uint32_t value, uint64_t deadline_ns) {
  sleeper own = {.word = word, .mutex = PTHREAD_MUTEX_INITIALIZER};
  bed *its = bed_of(word);
  const shims_quiet quiet = shims_begin_quiet();
  if (!make_condition(&own.condition)) {
    shims_backoff();
    shims_end_quiet(quiet);
    return;
  }
  if (enter(its, &own, value)) {
    pthread_mutex_lock(&own.mutex);
    while (!own.is_woken && wait_for_wake(&own, deadline_ns)) {
    }
    pthread_mutex_unlock(&own.mutex);
    leave(its, &own);
  }
  pthread_cond_destroy(&own.condition);
  pthread_mutex_destroy(&own.mutex);
  shims_end_quiet(quiet);
}

void shims_futex_wake(uint32_t *word, int count) {
  bed *its = bed_of(word);
  const int error = errno;
  shims_lock_mutex(&its->mutex);
  for (sleeper **place = &its->first; *place != NULL && count > 0;) {
    sleeper *woken = *place;
    if (woken->word != word) {
      place = &woken->next;
      continue;
    }
    *place = woken->next;
    pthread_mutex_lock(&woken->mutex);
    woken->is_woken = true;
    pthread_cond_signal(&woken->condition);
    pthread_mutex_unlock(&woken->mutex);
    --count;
  }
  pthread_mutex_unlock(&its->mutex);
  errno = error;
}

// ---- Fork ----------------------------------------------------------------------------------

void shims_lock_beds(void) {
  for (int i = 0; i < BED_COUNT; ++i) shims_lock_mutex(&beds[i].mutex);
}

void shims_unlock_beds(bool is_child) {
  for (int i = BED_COUNT; i-- > 0;) {
    if (is_child) beds[i].first = NULL;  // the threads are the parent's
    pthread_mutex_unlock(&beds[i].mutex);
  }
}

#endif
