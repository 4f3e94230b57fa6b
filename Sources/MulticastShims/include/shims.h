// What Embedded Swift cannot say by itself: thread-locals, fences, system calls, POSIX threads.
//
// Small typed functions over one raw call each. Nothing here knows what a multicast is, nothing
// here is installed, and every symbol with storage is hidden.

#ifndef MULTICAST_SHIMS_H
#define MULTICAST_SHIMS_H

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SHIMS_HIDDEN __attribute__((visibility("hidden")))

// ---- Thread-local storage ------------------------------------------------------------------

// The calling thread's record, or NULL. `initial-exec` makes a read one `mov %fs:`; the few
// bytes fit the space that the loader keeps free for libraries that are opened later.
extern SHIMS_HIDDEN __thread void *shims_thread_record
    __attribute__((tls_model("initial-exec")));

static inline void *shims_get_thread_record(void) { return shims_thread_record; }
static inline void shims_set_thread_record(void *record) { shims_thread_record = record; }

// How many releases the calling thread is inside of.
extern SHIMS_HIDDEN __thread uint32_t shims_release_depth
    __attribute__((tls_model("initial-exec")));

static inline uint32_t shims_get_release_depth(void) { return shims_release_depth; }
static inline void shims_set_release_depth(uint32_t depth) { shims_release_depth = depth; }

// ---- Fences --------------------------------------------------------------------------------

// Orders for the compiler alone; the processor is brought in line by shims_membarrier().
static inline void shims_compiler_fence(void) { __asm__ __volatile__("" ::: "memory"); }

static inline void shims_full_fence(void) {
#if defined(__x86_64__) || defined(__i386__)
  // A locked operation on the stack is a full fence and several times cheaper than `mfence`.
  __asm__ __volatile__("lock; orl $0, -8(%%rsp)" ::: "memory", "cc");
#else
  __sync_synchronize();
#endif
}

// True when the kernel offers the expedited barrier and has registered this process for it.
static inline bool shims_membarrier_register(void) {
  long offered = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return offered >= 0 && (offered & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
         syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

// Every running thread of the process executes a full fence before this returns true.
static inline bool shims_membarrier(void) {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

// ---- Memory --------------------------------------------------------------------------------

// Zero-initialised words of static storage for the slab directories.
#define SHIMS_DIRECTORY_LENGTH 65536
extern SHIMS_HIDDEN void *shims_multicast_directory[SHIMS_DIRECTORY_LENGTH];
extern SHIMS_HIDDEN void *shims_registration_directory[SHIMS_DIRECTORY_LENGTH];
extern SHIMS_HIDDEN void *shims_lifetime_directory[SHIMS_DIRECTORY_LENGTH];

static inline void *shims_get_multicast_directory(void) { return shims_multicast_directory; }
static inline void *shims_get_registration_directory(void) {
  return shims_registration_directory;
}

static inline void *shims_get_lifetime_directory(void) { return shims_lifetime_directory; }

static inline void *shims_allocate(size_t size, size_t alignment) {
  void *block = NULL;
  if (alignment <= 2 * sizeof(void *)) return malloc(size);
  return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}
static inline void shims_deallocate(void *block) { free(block); }
static inline void shims_zero(void *block, size_t size) { memset(block, 0, size); }
static inline void shims_copy(void *to, const void *from, size_t size) { memcpy(to, from, size); }

// ---- Locks ---------------------------------------------------------------------------------

// A pool of registrations and the mutex that guards it.
typedef struct shims_stripe {
  uint32_t first_vacant;  // index + 1 of a vacant registration, or 0
  uint32_t next_unused;   // the part of the newest slab that was never handed out
  uint32_t end_unused;
  uint32_t slab_shift;    // log2 of the size of the next slab, less the smallest one
  pthread_mutex_t mutex;
} shims_stripe;

#define SHIMS_STRIPE_COUNT 32

// Two cache lines for each, so that neighbours do not slow each other.
typedef union shims_padded_stripe {
  shims_stripe stripe;
  char padding[128];
} shims_padded_stripe;
extern SHIMS_HIDDEN shims_padded_stripe shims_stripes[SHIMS_STRIPE_COUNT]
    __attribute__((aligned(128)));

// Fewer: together with the stripes not more than the thread sanitizer follows in one thread.
#define SHIMS_LIFETIME_MUTEX_COUNT 16
extern SHIMS_HIDDEN pthread_mutex_t shims_lifetime_mutexes[SHIMS_LIFETIME_MUTEX_COUNT];
extern SHIMS_HIDDEN pthread_mutex_t shims_slab_mutex;
extern SHIMS_HIDDEN pthread_mutex_t shims_call_mutex;
extern SHIMS_HIDDEN pthread_cond_t shims_call_condition;

static inline shims_stripe *shims_get_stripe(uint32_t index) {
  return &shims_stripes[index % SHIMS_STRIPE_COUNT].stripe;
}
static inline pthread_mutex_t *shims_get_stripe_mutex(shims_stripe *stripe) {
  return &stripe->mutex;
}
static inline pthread_mutex_t *shims_get_lifetime_mutex(uint32_t index) {
  return &shims_lifetime_mutexes[index % SHIMS_LIFETIME_MUTEX_COUNT];
}
static inline pthread_mutex_t *shims_get_slab_mutex(void) { return &shims_slab_mutex; }
static inline pthread_mutex_t *shims_get_call_mutex(void) { return &shims_call_mutex; }

static inline void shims_lock(pthread_mutex_t *mutex) { pthread_mutex_lock(mutex); }
static inline void shims_unlock(pthread_mutex_t *mutex) { pthread_mutex_unlock(mutex); }
static inline void shims_lock_init(pthread_mutex_t *mutex) { pthread_mutex_init(mutex, NULL); }

// ---- Waiting -------------------------------------------------------------------------------

static inline uint64_t shims_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline bool shims_condition_init(void) {
  pthread_condattr_t attributes;
  if (pthread_condattr_init(&attributes) != 0) return false;
  bool ok = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
            pthread_cond_init(&shims_call_condition, &attributes) == 0;
  pthread_condattr_destroy(&attributes);
  return ok;
}

static inline void shims_wake_all(void) { pthread_cond_broadcast(&shims_call_condition); }

// Sleeps until woken or until `deadline_ns` on the monotonic clock; UINT64_MAX: until woken. The
// call mutex is held at entry and at return. Never a point of cancellation: a thread cancelled
// here would leave its wait published and the mutex locked.
static inline void shims_sleep(uint64_t deadline_ns) {
  int previous;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous);
  if (deadline_ns == UINT64_MAX) {
    pthread_cond_wait(&shims_call_condition, &shims_call_mutex);
  } else {
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                                .tv_nsec = (long)(deadline_ns % 1000000000u)};
    pthread_cond_timedwait(&shims_call_condition, &shims_call_mutex, &deadline);
  }
  pthread_setcancelstate(previous, NULL);
}

// ---- Thread exit and fork ------------------------------------------------------------------

extern SHIMS_HIDDEN pthread_key_t shims_exit_key;

// `at_exit` receives what shims_watch_exit() was given, on the thread that ends.
static inline bool shims_exit_key_init(void (*at_exit)(void *)) {
  return pthread_key_create(&shims_exit_key, at_exit) == 0;
}
static inline bool shims_watch_exit(void *record) {
  return pthread_setspecific(shims_exit_key, record) == 0;
}

static inline bool shims_watch_fork(void (*before)(void), void (*in_parent)(void),
                                    void (*in_child)(void)) {
  return pthread_atfork(before, in_parent, in_child) == 0;
}

// ---- Texts ---------------------------------------------------------------------------------

// Expanded from MULTICAST_STATUS_MAP, so that the header alone says what they are.
SHIMS_HIDDEN const char *shims_status_name(int32_t status);
SHIMS_HIDDEN const char *shims_status_message(int32_t status);

#endif
