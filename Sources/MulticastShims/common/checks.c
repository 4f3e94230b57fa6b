// This file is empty, except in builds with MULTICAST_INTERNAL_CHECKS.

#ifdef MULTICAST_INTERNAL_CHECKS

#include "checks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__has_include)
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HAS_BACKTRACE
#endif
#endif

static __thread uint32_t held;
static __thread uint32_t allocations;
static __thread uintptr_t release_address = UINTPTR_MAX;

uint32_t shims_checks_get_held(void) { return held; }
void shims_checks_set_held(uint32_t now) { held = now; }
uint32_t shims_checks_get_allocations(void) { return allocations; }
void shims_checks_set_allocations(uint32_t now) { allocations = now; }
uintptr_t shims_checks_get_release(void) { return release_address; }
void shims_checks_set_release(uintptr_t address) { release_address = address; }

static bool is_within(const void *address, const void *first, size_t size) {
  return (uintptr_t)address - (uintptr_t)first < size;
}

uint32_t shims_checks_rank(const void *lock) {
  if (is_within(lock, shims_stripes, sizeof shims_stripes)) return 1;
  if (lock == &shims_queue_locks[SHIMS_WATCH_LOCK]) return 7;
  if (is_within(lock, shims_queue_locks, sizeof shims_queue_locks)) return 6;
  if (!is_within(lock, shims_locks, sizeof shims_locks)) return 0;
  const ptrdiff_t index = (const shims_padded_lock *)lock - shims_locks;
  return index < SHIMS_NAME_LOCK ? 2 : (uint32_t)(3 + index - SHIMS_NAME_LOCK);
}

// Uses dprintf(), because a check may fail in a signal handler, and the interrupted code may hold
// stderr's lock.
void shims_checks_fail(const uint8_t *file, size_t line, const uint8_t *what, uint64_t value,
                       uint64_t other, const uint8_t *changed_file, size_t changed_line) {
  char values[64] = "";
  char change[256] = "";
  if (other != SHIMS_NO_VALUE) {
    snprintf(values, sizeof values, " (%" PRIu64 ", %" PRIu64 ")", value, other);
  } else if (value != SHIMS_NO_VALUE) {
    snprintf(values, sizeof values, " (%" PRIu64 ")", value);
  }
  if (changed_file != NULL) {
    snprintf(change, sizeof change, "; found at %s:%zu", (const char *)changed_file, changed_line);
  }
  dprintf(STDERR_FILENO, "libmulticast: %s:%zu: does not hold: %s%s%s\n", (const char *)file, line,
          (const char *)what, values, change);
#ifdef HAS_BACKTRACE
  void *frames[32];
  backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
#endif
  abort();
}

#endif
