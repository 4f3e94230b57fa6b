// Annotations for race detectors (see Start/RaceDetector.swift). The detectors recognize neither
// the core's fences nor its locks.

#include "shims.h"

// The functions of the thread sanitizer, which exist only in programs that contain it. If the
// library itself is built with that sanitizer, it needs no annotations.
#ifdef __APPLE__
#include <dlfcn.h>
// The macOS linker requires definitions even of weak functions, so look up these functions at run
// time.
static void (*__tsan_acquire)(void *address), (*__tsan_release)(void *address);
static void find_thread_sanitizer(void) {
  *(void **)&__tsan_acquire = dlsym(RTLD_DEFAULT, "__tsan_acquire");
  *(void **)&__tsan_release = dlsym(RTLD_DEFAULT, "__tsan_release");
}
#else
void __tsan_acquire(void *address) __attribute__((weak));
void __tsan_release(void *address) __attribute__((weak));
static void find_thread_sanitizer(void) {}
#endif

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
  find_thread_sanitizer();
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

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

// The caller has already acquired the lock, because the sanitizer ignores atomic operations between
// these two calls.
void shims_tsan_did_lock(uint32_t *lock, bool by_trying) {
  const unsigned flags = __tsan_mutex_linker_init | (by_trying ? __tsan_mutex_try_lock : 0);
  __tsan_mutex_pre_lock(lock, flags);
  __tsan_mutex_post_lock(lock, flags, 0);
}
void shims_tsan_will_unlock(uint32_t *lock) {
  __tsan_mutex_pre_unlock(lock, 0);
  __tsan_mutex_post_unlock(lock, 0);
}

// swiftc's instrumentation calls these functions, but gcc's runtime defines only the ordinary ones,
// such as memcpy().
SHIMS_HIDDEN void *__tsan_memcpy(void *to, const void *from, size_t size);
SHIMS_HIDDEN void *__tsan_memmove(void *to, const void *from, size_t size);
SHIMS_HIDDEN void *__tsan_memset(void *block, int byte, size_t size);
void *__tsan_memcpy(void *to, const void *from, size_t size) { return memcpy(to, from, size); }
void *__tsan_memmove(void *to, const void *from, size_t size) { return memmove(to, from, size); }
void *__tsan_memset(void *block, int byte, size_t size) { return memset(block, byte, size); }
#endif
