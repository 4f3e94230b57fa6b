#include "shims.h"

__thread void *shims_thread_record;
__thread bool shims_thread_is_ending;
__thread uint32_t shims_release_depth;
__thread int32_t shims_create_error;

shims_directory shims_directories[SHIMS_DIRECTORY_COUNT];
shims_slot_pool shims_slot_pools[SHIMS_DIRECTORY_COUNT];

shims_padded_stripe shims_stripes[SHIMS_STRIPE_COUNT];  // zero is PTHREAD_MUTEX_INITIALIZER
pthread_mutex_t shims_lifetime_mutexes[SHIMS_LIFETIME_MUTEX_COUNT];  // likewise
shims_padded_lock shims_queue_locks[SHIMS_QUEUE_LOCK_COUNT];
shims_padded_lock shims_watch_lock;
pthread_mutex_t shims_name_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t shims_slab_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t shims_wait_mutex = PTHREAD_MUTEX_INITIALIZER;
struct shims_sleepers shims_sleepers[SHIMS_SLEEPER_LISTS];
pthread_key_t shims_exit_key;
void *shims_watches[SHIMS_WATCH_LISTS + 1];
char shims_watch_of_all[SHIMS_WATCH_SIZE];
void *shims_tallies[SHIMS_DIRECTORY_LENGTH];

static bool is_watching_forks;

// Guarded by the loader, which runs constructors, or by the lock of the slabs.
bool shims_watch_fork(void) {
  if (!is_watching_forks) {
    is_watching_forks = pthread_atfork(shims_before_fork, shims_after_fork_in_parent,
                                       shims_after_fork_in_child) == 0;
  }
  return is_watching_forks;
}

// With a priority: constructors of the program, which may use a static library, run later.
__attribute__((constructor(101))) static void library_was_loaded(void) { shims_watch_fork(); }

#ifdef __SANITIZE_THREAD__
// swiftc's instrumentation calls these names. gcc's runtime has the functions under their ordinary
// names only.
SHIMS_HIDDEN void *__tsan_memcpy(void *to, const void *from, size_t size);
SHIMS_HIDDEN void *__tsan_memmove(void *to, const void *from, size_t size);
SHIMS_HIDDEN void *__tsan_memset(void *block, int byte, size_t size);
void *__tsan_memcpy(void *to, const void *from, size_t size) { return memcpy(to, from, size); }
void *__tsan_memmove(void *to, const void *from, size_t size) { return memmove(to, from, size); }
void *__tsan_memset(void *block, int byte, size_t size) { return memset(block, byte, size); }
#endif
