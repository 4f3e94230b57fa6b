// What the internal checks need of C. Behind it is something in builds with
// MULTICAST_INTERNAL_CHECKS alone; no other build uses any of it.

#ifndef MULTICAST_CHECKS_H
#define MULTICAST_CHECKS_H

#include "shims.h"

// A value of a report that says nothing.
#define SHIMS_NO_VALUE UINT64_MAX

// Prints a line and a backtrace, and aborts. `file` and `line`: the check, and the change before
// it.
SHIMS_HIDDEN _Noreturn void shims_checks_fail(const uint8_t *file, size_t line, const uint8_t *what,
                                              uint64_t value, uint64_t other,
                                              const uint8_t *changed_file, size_t changed_line);

// Where the caller's part of the stack is: lower, the deeper the calls are nested.
static inline uintptr_t shims_stack_address(void) {
  return (uintptr_t)__builtin_frame_address(0);
}

// ---- What the calling thread is in the middle of ------------------------------------------------

// The locks of the library in the order in which they are taken; 0 for no lock of the library.
SHIMS_HIDDEN uint32_t shims_checks_rank(const pthread_mutex_t *mutex);

// A bit for each rank that it holds a lock of.
SHIMS_HIDDEN uint32_t shims_checks_get_held(void);
SHIMS_HIDDEN void shims_checks_set_held(uint32_t held);

// How many functions of the caller's allocator it is inside of.
SHIMS_HIDDEN uint32_t shims_checks_get_allocations(void);
SHIMS_HIDDEN void shims_checks_set_allocations(uint32_t allocations);

// Where the stack was when the innermost release that runs was called, or UINTPTR_MAX.
SHIMS_HIDDEN uintptr_t shims_checks_get_release(void);
SHIMS_HIDDEN void shims_checks_set_release(uintptr_t address);

// ---- The process --------------------------------------------------------------------------------

static inline uint32_t shims_get_process(void) { return (uint32_t)getpid(); }

#endif
