#include "shims.h"

__thread void *shims_thread_record;
__thread bool shims_thread_is_ending;
__thread uint32_t shims_release_depth;
__thread int32_t shims_create_error;

shims_directory shims_directories[SHIMS_DIRECTORY_COUNT];
const uint32_t shims_no_listener_flag = 0;
shims_slot_pool shims_slot_pools[SHIMS_DIRECTORY_COUNT];
_Alignas(64) unsigned char
    shims_process_memory[SHIMS_PROCESS_MEMORY_COUNT][SHIMS_PROCESS_MEMORY_SIZE];

shims_padded_stripe shims_stripes[SHIMS_STRIPE_COUNT];
shims_padded_lock shims_locks[SHIMS_LOCK_COUNT];
shims_padded_lock shims_queue_locks[SHIMS_QUEUE_LOCK_COUNT + 1];
struct shims_sleepers shims_sleepers[SHIMS_SLEEPER_LISTS];
pthread_key_t shims_exit_key;
void *shims_watches[SHIMS_WATCH_LISTS + 1];
char shims_watch_of_all[SHIMS_WATCH_SIZE];
void *shims_tallies[SHIMS_DIRECTORY_LENGTH];

// The core may have been compiled with another libc, glibc. Then shims_start_thread() has room for
// glibc's types on its stack.
#ifdef __aarch64__
#define GLIBC_ATTR_SIZE 64
#else
#define GLIBC_ATTR_SIZE 56
#endif
_Static_assert(sizeof(pthread_attr_t) <= GLIBC_ATTR_SIZE && sizeof(sigset_t) <= 128,
               "the types of this libc do not fit into the core's");

bool shims_membarrier_register(void) {
#ifdef MULTICAST_WITHOUT_MEMBARRIER
  return false;
#else
  const long offered = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return offered >= 0 && (offered & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
         syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
#endif
}

// ---- Fork ----

// The thread that is forking, and how many of the handlers below have begun on it. The same in the
// child, where pthread_self() has not changed.
static uintptr_t forking_thread;
static unsigned fork_depth;

static uintptr_t this_thread(void) { return (uintptr_t)pthread_self(); }
static bool is_forking_here(void) {
  return __atomic_load_n(&forking_thread, __ATOMIC_RELAXED) == this_thread();
}

static void before_fork(void) {
  if (!is_forking_here()) {
    shims_before_fork();
    __atomic_store_n(&forking_thread, this_thread(), __ATOMIC_RELAXED);
  }
  ++fork_depth;
}

// Whether this is the last handler of this fork.
static bool is_last_handler(void) {
  if (!is_forking_here() || --fork_depth > 0) return false;
  __atomic_store_n(&forking_thread, 0, __ATOMIC_RELAXED);
  return true;
}

static void after_fork_in_parent(void) {
  if (is_last_handler()) shims_after_fork_in_parent();
}

static void after_fork_in_child(void) {
  if (is_last_handler()) shims_after_fork_in_child();
}

// Not bool: riscv64 has no instruction that exchanges a byte, and libatomic is not linked.
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

// exit() first destroys the objects of its thread (`thread_local` in C++), and then calls its
// handlers, the last one that was registered first; destructors of static objects are such
// handlers. So the end of an object of the main thread registers a handler, which is called before
// all others. The end of the thread itself comes here, too, if main() calls pthread_exit(): the
// handler is then called as late as any other.
static int has_exit_begun;

// Of libc. Not called by its name where it may be missing: glibc has the function for objects of a
// thread since 2.18, musl has none; and before glibc 2.34 libdl has dlsym().
typedef int at_thread_exit(void (*destructor)(void *), void *object, void *dso);
void *dlsym(void *library, const char *name) __attribute__((weak));
#if defined(__GLIBC__) && defined(__x86_64__) && defined(__LP64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
#elif defined(__GLIBC__) && defined(__aarch64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.17");
#elif defined(__GLIBC__) && defined(__riscv)
__asm__(".symver dlsym, dlsym@GLIBC_2.27");
#endif
int __cxa_atexit(void (*destructor)(void *), void *object, void *dso);

static void exit_has_begun(void *unused) {
  (void)unused;
  __atomic_store_n(&has_exit_begun, true, __ATOMIC_RELAXED);
}

static void objects_were_destroyed(void *unused) {
  (void)unused;
  __cxa_atexit(exit_has_begun, NULL, NULL);
}

static bool is_main_thread(void) { return shims_get_thread_id() == shims_get_process_id(); }

static void call_if_there(const char *name) {
  void (*function)(void) = NULL;
  *(void **)&function = dlsym(NULL, name);
  if (function != NULL) function();
}

static void watch_process_exit(void) {
  at_thread_exit *at_exit = NULL;
  if (!is_main_thread() || dlsym == NULL) return;
  *(void **)&at_exit = dlsym(NULL, "__cxa_thread_atexit_impl");
  if (at_exit == NULL) return;
  // The list of objects is the thread's. In the child of a fork that another thread makes it is out
  // of reach, and the leak sanitizer would take it for a leak.
  call_if_there("__lsan_disable");
  // Any address of this library tells it apart from others.
  at_exit(objects_were_destroyed, NULL, &has_exit_begun);
  call_if_there("__lsan_enable");
}

bool shims_is_inside_exit(void) {
  return __atomic_load_n(&has_exit_begun, __ATOMIC_RELAXED) && is_main_thread();
}

// With a priority: constructors of the program, which may use a static library, run later.
__attribute__((constructor(101))) static void library_was_loaded(void) {
  // Linkers that leave out unused sections do not all find it in the tables.
  __asm__ volatile("" : : "r"(shims_personality));
  watch_fork(&is_watching_forks);
  watch_process_exit();
}

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

// The lock itself is taken outside of the two calls: in them its atomic operations would not count.
void shims_tsan_did_lock(uint32_t *lock, bool by_trying) {
  const unsigned flags = __tsan_mutex_linker_init | (by_trying ? __tsan_mutex_try_lock : 0);
  __tsan_mutex_pre_lock(lock, flags);
  __tsan_mutex_post_lock(lock, flags, 0);
}
void shims_tsan_will_unlock(uint32_t *lock) {
  __tsan_mutex_pre_unlock(lock, 0);
  __tsan_mutex_post_unlock(lock, 0);
}

// swiftc's instrumentation calls these names. gcc's runtime has the functions under their ordinary
// names only.
SHIMS_HIDDEN void *__tsan_memcpy(void *to, const void *from, size_t size);
SHIMS_HIDDEN void *__tsan_memmove(void *to, const void *from, size_t size);
SHIMS_HIDDEN void *__tsan_memset(void *block, int byte, size_t size);
void *__tsan_memcpy(void *to, const void *from, size_t size) { return memcpy(to, from, size); }
void *__tsan_memmove(void *to, const void *from, size_t size) { return memmove(to, from, size); }
void *__tsan_memset(void *block, int byte, size_t size) { return memset(block, byte, size); }
#endif
