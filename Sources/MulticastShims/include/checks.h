// The C functions of the internal checks. Only builds with MULTICAST_INTERNAL_CHECKS use them.

#ifndef MULTICAST_CHECKS_H
#define MULTICAST_CHECKS_H

#include "shims.h"

// Stands for "no value" in a report.
#define SHIMS_NO_VALUE UINT64_MAX

// Prints a line and a backtrace, and aborts. `file` and `line` are the check's; `changed_file` and
// `changed_line` the last change's.
SHIMS_HIDDEN _Noreturn void shims_checks_fail(const uint8_t *file, size_t line, const uint8_t *what,
                                              uint64_t value, uint64_t other,
                                              const uint8_t *changed_file, size_t changed_line);

// The address of the caller's stack frame. The deeper calls are nested, the lower it is.
static inline uintptr_t shims_stack_address(void) {
  return (uintptr_t)__builtin_frame_address(0);
}

// ---- What the calling thread is doing
// ------------------------------------------------------------

// The rank of a lock of the library: locks are taken by rising rank. 0: not a lock of the library.
SHIMS_HIDDEN uint32_t shims_checks_rank(const void *lock);

// A set of bits: one for each rank of which this thread holds a lock.
SHIMS_HIDDEN uint32_t shims_checks_get_held(void);
SHIMS_HIDDEN void shims_checks_set_held(uint32_t held);

// How many functions of the caller's allocator are on this thread's stack.
SHIMS_HIDDEN uint32_t shims_checks_get_allocations(void);
SHIMS_HIDDEN void shims_checks_set_allocations(uint32_t allocations);

// The stack address at which the innermost running release was called, or UINTPTR_MAX.
SHIMS_HIDDEN uintptr_t shims_checks_get_release(void);
SHIMS_HIDDEN void shims_checks_set_release(uintptr_t address);

// ---- The process --------------------------------------------------------------------------------

static inline uint32_t shims_get_process(void) { return (uint32_t)getpid(); }

#endif
