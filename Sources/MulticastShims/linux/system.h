// The functions for Linux. Most of them are small typed wrappers around one system call. They use
// syscall() where libc's function is a cancellation point. shims.h includes this file, so the
// functions are inlined everywhere.

#ifndef MULTICAST_LINUX_H
#define MULTICAST_LINUX_H

// Do not define _GNU_SOURCE, because it would change types in libc's headers. Ordinary Swift
// imports these headers as a module that was compiled without the macro, and the types have to
// agree.

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// Inlining this function saves one call per add.
__attribute__((always_inline)) static inline void *shims_allocate(size_t size, size_t alignment);

#include "../common/threads.h"

static inline bool shims_membarrier(void) {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

// ---- Memory --------------------------------------------------------------------------------

static inline size_t shims_discard(void *block, size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  uintptr_t begin = ((uintptr_t)block + page - 1) & ~(page - 1);
  uintptr_t end = ((uintptr_t)block + size) & ~(page - 1);
  int error = errno;
  size_t given = 0;
  if (begin < end && madvise((void *)begin, end - begin, MADV_DONTNEED) == 0) given = end - begin;
  errno = error;
  return given;
}

static inline void *shims_map(size_t size) {
  int error = errno;
  void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = error;
  return block == MAP_FAILED ? NULL : block;
}

// A function of glibc. With other libcs, this symbol is NULL.
extern int malloc_trim(size_t) __attribute__((weak));
static inline void shims_trim_malloc(void) {
  int error = errno;
  if (malloc_trim != NULL) malloc_trim(0);
  errno = error;
}

// ---- Waiting -------------------------------------------------------------------------------

// For this system call, the kernel's timespec consists of two longs, regardless of the size of
// libc's time_t. On a 32-bit processor, the latest deadline is therefore LONG_MAX seconds (68
// years) after the start of the system.
static inline void shims_futex_wait(uint32_t *word, uint32_t value, uint64_t deadline_ns) {
  const uint64_t seconds = deadline_ns / 1000000000u;
  struct {
    long s, ns;
  } deadline = {.s = seconds < LONG_MAX ? (long)seconds : LONG_MAX,
                .ns = (long)(deadline_ns % 1000000000u)};
  int error = errno;
  syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value,
          deadline_ns == UINT64_MAX ? NULL : &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
  errno = error;
}

static inline void shims_futex_wake(uint32_t *word, int count) {
  int error = errno;
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
  errno = error;
}

// ---- Event descriptors ---------------------------------------------------------------------

static inline int shims_event_open(void) {
  int error = errno, descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  errno = error;
  return descriptor;
}

static inline void shims_event_set(int descriptor) {
  const uint64_t one = 1;
  int error = errno;
  if (syscall(SYS_write, descriptor, &one, sizeof one) < 0) errno = error;
}

static inline void shims_event_clear(int descriptor) {
  uint64_t value;
  int error = errno;
  if (syscall(SYS_read, descriptor, &value, sizeof value) < 0) errno = error;
}

static inline void shims_event_close(int descriptor) {
  int error = errno, previous;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous);
  close(descriptor);  // libc's function, so that the thread sanitizer sees that the number is free
  pthread_setcancelstate(previous, NULL);
  errno = error;
}

static inline int shims_event_replace(int descriptor) {
  shims_event_close(descriptor);
  int fresh = shims_event_open();
  if (fresh < 0 || fresh == descriptor) return fresh;
  int moved = (int)syscall(SYS_dup3, fresh, descriptor, O_CLOEXEC);
  shims_event_close(fresh);
  return moved;
}

// ---- Threads -------------------------------------------------------------------------------

static inline uint32_t shims_get_thread_id(void) { return (uint32_t)syscall(SYS_gettid); }
static inline uint64_t shims_get_process_id(void) { return (uint64_t)syscall(SYS_getpid); }
static inline bool shims_is_main_thread(void) {
  return shims_get_thread_id() == shims_get_process_id();
}

static inline void shims_set_thread_name(const shims_thread_name *name) {
  if (name->text[0] != '\0') prctl(PR_SET_NAME, name->text);
}

static inline long shims_write_once(int descriptor, const void *text, size_t size) {
  return syscall(SYS_write, descriptor, text, size);
}

static inline void shims_lock_system(void) {}
static inline void shims_unlock_system(bool is_child) { (void)is_child; }

#endif
