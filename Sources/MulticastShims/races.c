// What race detectors are told: that an add happens before the calls of the delegate, and these
// before the end of its removal. They see neither the fences of the core nor its locks.
//
// Nothing is told from the plain path of an invocation, which has no instruction for it. Where a
// detector runs, no invocation takes that path: each multicast is treated as if it was watched.

#include "shims.h"

// The thread sanitizer's, in the program. A library that is built with that sanitizer needs none.
void __tsan_acquire(void *address) __attribute__((weak));
void __tsan_release(void *address) __attribute__((weak));

// Valgrind's Helgrind and DRD.
#if defined __has_include
#if __has_include(<valgrind/helgrind.h>)
#include <valgrind/helgrind.h>
#define HAS_HELGRIND 1
#endif
#if __has_include(<valgrind/drd.h>)
#include <valgrind/drd.h>
#define HAS_DRD 1
#endif
#endif

static bool is_in_helgrind(void) {
#ifdef HAS_HELGRIND
  char byte = 0;
  return RUNNING_ON_VALGRIND && VALGRIND_HG_GET_ABITS(&byte, NULL, 1) == 1;
#else
  return false;
#endif
}

static bool is_in_drd(void) {
#ifdef HAS_DRD
  return RUNNING_ON_VALGRIND && DRD_GET_VALGRIND_THREADID != 0;
#else
  return false;
#endif
}

bool shims_races_are_detected(void) {
#ifdef __SANITIZE_THREAD__
  return false;
#else
  return __tsan_acquire != NULL || is_in_helgrind() || is_in_drd();
#endif
}

void shims_happens_before(void *address) {
  if (__tsan_release != NULL) __tsan_release(address);
#ifdef HAS_HELGRIND
  ANNOTATE_HAPPENS_BEFORE(address);
#endif
}

void shims_happens_after(void *address) {
  if (__tsan_acquire != NULL) __tsan_acquire(address);
#ifdef HAS_HELGRIND
  ANNOTATE_HAPPENS_AFTER(address);
#endif
}
