// The constructor that runs when the library is loaded, and the fork handlers.

#include <pthread.h>
#ifdef __APPLE__
#include <dlfcn.h>
#endif

#include "shims.h"

SHIMS_HIDDEN pthread_key_t shims_exit_key;

// The thread that is forking, and the number of handlers below that have begun on that thread. Both
// variables are also valid in the child, where pthread_self() returns the same value.
static uintptr_t forking_thread;
static unsigned fork_depth;

static uintptr_t this_thread(void) { return (uintptr_t)pthread_self(); }
static bool is_forking_here(void) {
  return __atomic_load_n(&forking_thread, __ATOMIC_RELAXED) == this_thread();
}

static void before_fork(void) {
  if (!is_forking_here()) {
    shims_before_fork();
    shims_lock_system();
    __atomic_store_n(&forking_thread, this_thread(), __ATOMIC_RELAXED);
  }
  ++fork_depth;
}

// Returns whether this is the last handler of the current fork.
static bool is_last_handler(void) {
  if (!is_forking_here() || --fork_depth > 0) return false;
  __atomic_store_n(&forking_thread, 0, __ATOMIC_RELAXED);
  return true;
}

static void after_fork_in_parent(void) {
  if (!is_last_handler()) return;
  shims_unlock_system(false);
  shims_after_fork_in_parent();
}

static void after_fork_in_child(void) {
  if (!is_last_handler()) return;
  shims_unlock_system(true);
  shims_after_fork_in_child();
}

// These flags are ints, because exchanging a bool on riscv64 would need libatomic, which is not
// linked.
static int is_watching_forks, is_watching_again;

static bool watch_fork(int *is_done) {
  if (!__atomic_exchange_n(is_done, true, __ATOMIC_ACQ_REL)) {
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
      __atomic_store_n(is_done, false, __ATOMIC_RELEASE);
  }
  return __atomic_load_n(is_done, __ATOMIC_ACQUIRE);
}

bool shims_watch_fork(void) {
  const bool is_watching = watch_fork(&is_watching_again);
  return is_watching || __atomic_load_n(&is_watching_forks, __ATOMIC_ACQUIRE);
}

#ifdef __APPLE__
// macOS runs constructors in the order in which the objects were linked. Priorities have no effect.
#define FIRST constructor
// The linker has no option that keeps a library mapped after dlclose(), so the library opens itself
// once more. If the library was linked statically, it opens the program or the library that
// contains it.
static void stay_mapped(void) {
  Dl_info own;
  if (dladdr(&shims_exit_key, &own) == 0) return;
  dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}
#else
// Because of this priority, the constructor runs before the constructors of a program that links
// the static library.
#define FIRST constructor(101)
static void stay_mapped(void) {}
#endif
__attribute__((FIRST)) static void library_was_loaded(void) {
  // Some linkers would remove shims_personality() as unused, because they do not see that the
  // unwinding tables refer to it.
  __asm__ volatile("" : : "r"(shims_personality));
  stay_mapped();
  watch_fork(&is_watching_forks);
  shims_watch_process_exit();
}
