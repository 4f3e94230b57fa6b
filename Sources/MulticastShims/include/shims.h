// Features that Embedded Swift lacks: thread-locals, fences, aligned static storage, and functions
// of the operating system. The folder `common` contains the code that all systems share. The
// functions that this header declares with SHIMS_SYSTEM are in one folder for each kind of system.
//
// This header is not installed, and every variable that it declares is hidden.

#ifndef MULTICAST_SHIMS_H
#define MULTICAST_SHIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_MSC_VER) && !defined(__clang__)
#include "../windows/cl.h"
#endif

#define SHIMS_HIDDEN __attribute__((visibility("hidden")))

// ---- The system ----------------------------------------------------------------------------

// If neither the compiler nor a MULTICAST_SYSTEM_ macro names another system, the system is Linux,
// because the targets with which Swift cross-compiles name no system.
#if defined(MULTICAST_SYSTEM_WINDOWS)
#define SHIMS_WINDOWS 1
#define SHIMS_SYSTEM SHIMS_HIDDEN
#elif defined(_WIN32)
#error "libmulticast needs POSIX. CONTRIBUTING.md, 'Other systems', says what a port needs."
#elif defined(MULTICAST_SYSTEM_POSIX) || defined(__APPLE__) || \
    (defined(__unix__) && !defined(__linux__))
#define SHIMS_POSIX 1
#define SHIMS_SYSTEM SHIMS_HIDDEN
#else
#define SHIMS_LINUX 1
#define SHIMS_SYSTEM static inline
#endif

// ---- Thread-local storage ------------------------------------------------------------------

// With `initial-exec`, a read is a single `mov %fs:`. The library's few bytes fit into the space
// that the loader reserves for libraries opened later.
#ifdef __APPLE__
#define SHIMS_TLS
#else
#define SHIMS_TLS __attribute__((tls_model("initial-exec")))
#endif

// The calling thread's record, or NULL.
extern SHIMS_HIDDEN __thread void *shims_thread_record SHIMS_TLS;

static inline void *shims_get_thread_record(void) { return shims_thread_record; }

// Like shims_get_thread_record(), but computes the variable's address again, so that the compiler
// need not keep the address in a register throughout a loop.
static inline void *shims_get_thread_record_again(void) {
#if defined __x86_64__ && defined __ELF__
  void *record;
  __asm__ volatile("movq shims_thread_record@GOTTPOFF(%%rip), %0\n\tmovq %%fs:(%0), %0"
                   : "=r"(record));
  return record;
#else
  return shims_thread_record;
#endif
}

static inline void shims_set_thread_record(void *record) { shims_thread_record = record; }

// Whether the library's thread destructor has run on the calling thread. Once it has run, only
// other destructors can still call the library on this thread.
extern SHIMS_HIDDEN __thread bool shims_thread_is_ending SHIMS_TLS;

static inline bool shims_is_thread_ending(void) { return shims_thread_is_ending; }
static inline void shims_set_thread_ending(void) { shims_thread_is_ending = true; }

// The number of `release` functions that are on the calling thread's stack.
extern SHIMS_HIDDEN __thread uint32_t shims_release_depth SHIMS_TLS;

static inline uint32_t shims_get_release_depth(void) { return shims_release_depth; }
static inline void shims_set_release_depth(uint32_t depth) { shims_release_depth = depth; }

// The status with which the last creation on the calling thread failed, or 0.
extern SHIMS_HIDDEN __thread int32_t shims_create_error SHIMS_TLS;

static inline int32_t shims_get_create_error(void) { return shims_create_error; }
static inline void shims_set_create_error(int32_t status) { shims_create_error = status; }

// ---- Fences --------------------------------------------------------------------------------

#ifndef SHIMS_CL

// Returns the same address, but hides the address's origin from the compiler, so that a loop keeps
// addresses in registers instead of counting down a length.
static inline void *shims_keep(void *address) {
  __asm__("" : "+r"(address));
  return address;
}

// Orders memory accesses only for the compiler. shims_membarrier() orders them for the processors.
static inline void shims_compiler_fence(void) { __asm__ __volatile__("" ::: "memory"); }

static inline void shims_full_fence(void) {
#if defined(__x86_64__)
  // A locked operation on the stack is a full fence and several times cheaper than `mfence`.
  __asm__ __volatile__("lock; orl $0, -8(%%rsp)" ::: "memory", "cc");
#elif defined(__i386__)
  __asm__ __volatile__("lock; orl $0, (%%esp)" ::: "memory", "cc");
#else
  __sync_synchronize();
#endif
}

#endif

// Registers this process for the expedited barrier. Returns false if the kernel does not offer the
// barrier, and in a build with MULTICAST_WITHOUT_MEMBARRIER. This function is not inline, so that
// the core is the same in builds with and without that macro.
SHIMS_HIDDEN bool shims_membarrier_register(void);

// Makes every running thread of the process execute a full fence before this function returns true.
// Returns false if the kernel refuses to do so.
SHIMS_SYSTEM bool shims_membarrier(void);

// ---- Memory --------------------------------------------------------------------------------

// The data of a slab, except for its word in the directory (see SlabDirectory).
typedef struct shims_slab {
  uint64_t floor;   // its slots receive this generation or a newer one
  uint32_t next;    // in a free slab: the next free slab's number + 1, or 0
  uint32_t vacant;  // the number of slots counted as vacant, or a free slab's state
} shims_slab;

// A directory of slabs. It contains a word for each slab, which other threads read without a lock.
// The words are not the first field, for the same reason as `id` in the core's SlotHeader.
#define SHIMS_DIRECTORY_LENGTH 65536
typedef struct shims_directory {
  uint32_t slab_count;
  uint32_t free_count;
  uint32_t first_free;  // number + 1, or 0
  uint32_t collects_at;  // slab count from which pools try free slabs first; 0: default
  shims_slab slabs[SHIMS_DIRECTORY_LENGTH];
  void *words[SHIMS_DIRECTORY_LENGTH];
} shims_directory;

// The vacant slots of a pool.
typedef struct shims_slot_pool {
  uint32_t first_vacant;  // index + 1 of a vacant slot, or 0
  uint32_t next_unused;   // the start of the newest slab's never used part
  uint32_t end_unused;
  uint32_t slab_shift;    // slabs added so far; the more, the larger the next
} shims_slot_pool;

// There is one directory for each kind of handle, and one for the policies of multicasts.
#define SHIMS_DIRECTORY_COUNT 6
extern SHIMS_HIDDEN shims_directory shims_directories[SHIMS_DIRECTORY_COUNT];
extern SHIMS_HIDDEN shims_slot_pool shims_slot_pools[SHIMS_DIRECTORY_COUNT];

static inline shims_directory *shims_get_directory(size_t index) {
  return &shims_directories[index];
}
/* The listener flag for invalid handles. It is always 0. */
extern SHIMS_HIDDEN const uint32_t shims_no_listener_flag;
static inline const uint32_t *shims_get_no_listener_flag(void) { return &shims_no_listener_flag; }

// The memory that multicast_process_memory() returns. Pages that are never used occupy no memory.
#define SHIMS_PROCESS_MEMORY_COUNT 8
#define SHIMS_PROCESS_MEMORY_SIZE 8192
extern SHIMS_HIDDEN _Alignas(64) unsigned char
    shims_process_memory[SHIMS_PROCESS_MEMORY_COUNT][SHIMS_PROCESS_MEMORY_SIZE];
static inline void *shims_get_process_memory(uint32_t index, size_t size) {
  if (index >= SHIMS_PROCESS_MEMORY_COUNT || size > SHIMS_PROCESS_MEMORY_SIZE) return NULL;
  return shims_process_memory[index];
}

static inline void *shims_get_words(shims_directory *directory) { return directory->words; }
static inline shims_slab *shims_get_slab(shims_directory *directory, uint32_t slab) {
  return &directory->slabs[slab];
}
static inline shims_slot_pool *shims_get_slot_pool(size_t index) {
  return &shims_slot_pools[index];
}

SHIMS_SYSTEM void *shims_allocate(size_t size, size_t alignment);
SHIMS_SYSTEM void shims_deallocate(void *block);

// Gives back to the system the pages that lie entirely within a block from libc's allocator. Each
// of these pages is then either zero or unchanged. Returns the total size of the pages in bytes.
// Preserves errno.
SHIMS_SYSTEM size_t shims_discard(void *block, size_t size);

// Maps zeroed pages, for which the system allocates no memory until they are used. Returns NULL if
// they cannot be mapped.
SHIMS_SYSTEM void *shims_map(size_t size);

// Makes libc's allocator return its free memory to the system, if it can. Preserves errno.
SHIMS_SYSTEM void shims_trim_malloc(void);

static inline void shims_zero(void *block, size_t size) { memset(block, 0, size); }
static inline void shims_copy(void *to, const void *from, size_t size) { memcpy(to, from, size); }
// Copies 1 to 32 bytes, which is faster than a call to memcpy().
__attribute__((always_inline)) static inline void shims_copy_small(void *to, const void *from,
                                                                   size_t size) {
  char *last = (char *)to + size;
  const char *end = (const char *)from + size;
  if (size >= 16) {
    memcpy(to, from, 16);
    memcpy(last - 16, end - 16, 16);
  } else if (size >= 8) {
    memcpy(to, from, 8);
    memcpy(last - 8, end - 8, 8);
  } else if (size >= 4) {
    memcpy(to, from, 4);
    memcpy(last - 4, end - 4, 4);
  } else {
    memcpy(to, from, 1);
    memcpy((char *)to + size / 2, (const char *)from + size / 2, 1);
    memcpy(last - 1, end - 1, 1);
  }
}
static inline bool shims_equal(const void *a, const void *b, size_t size) {
  return memcmp(a, b, size) == 0;
}

static inline size_t shims_length(const char *text, size_t limit) { return strnlen(text, limit); }

// ---- Locks ---------------------------------------------------------------------------------

// A lock, and the slot pool that it guards. The core uses the lock's word as a `Lock`.
typedef struct shims_stripe {
  uint32_t lock;
  shims_slot_pool pool;
} shims_stripe;

#define SHIMS_STRIPE_COUNT 32

// Each stripe has two cache lines to itself, so that neighbouring stripes do not slow each other
// down.
typedef union shims_padded_stripe {
  shims_stripe stripe;
  char padding[128];
} shims_padded_stripe;
extern SHIMS_HIDDEN shims_padded_stripe shims_stripes[SHIMS_STRIPE_COUNT]
    __attribute__((aligned(128)));

// The other locks, in lock order. They are acquired after the locks of the stripes. There are only
// a few, because a fork acquires all locks, including the locks of the C++ header and of
// transports, and the thread sanitizer can track only 64 locks held by one thread.
#define SHIMS_LIFETIME_LOCK_COUNT 4
#define SHIMS_NAME_LOCK 4
#define SHIMS_SLAB_LOCK 5
#define SHIMS_WAIT_LOCK 6
#define SHIMS_LOCK_COUNT 7
// The locks of queues and of watches, which are acquired after the locks above.
#define SHIMS_QUEUE_LOCK_COUNT 8
#define SHIMS_WATCH_LOCK 8

// Each lock has its own cache line, because a queue's lock is acquired for each call that is
// queued.
typedef union shims_padded_lock {
  uint32_t word;
  char padding[64];
} shims_padded_lock;
extern SHIMS_HIDDEN shims_padded_lock shims_locks[SHIMS_LOCK_COUNT] __attribute__((aligned(64)));
extern SHIMS_HIDDEN shims_padded_lock shims_queue_locks[SHIMS_QUEUE_LOCK_COUNT + 1]
    __attribute__((aligned(64)));

// The lists of the threads that are sleeping in the wait graph. The hash of a thread's key selects
// its list.
#define SHIMS_SLEEPER_LISTS 64
struct shims_sleepers {
  void *first, *last;
};
extern SHIMS_HIDDEN struct shims_sleepers shims_sleepers[SHIMS_SLEEPER_LISTS];

static inline shims_stripe *shims_get_stripe(uint32_t index) {
  return &shims_stripes[index % SHIMS_STRIPE_COUNT].stripe;
}
static inline uint32_t *shims_get_stripe_lock(shims_stripe *stripe) { return &stripe->lock; }
static inline shims_slot_pool *shims_get_stripe_pool(shims_stripe *stripe) {
  return &stripe->pool;
}
static inline uint32_t *shims_get_lock(uint32_t index) { return &shims_locks[index].word; }
static inline uint32_t *shims_get_queue_lock(uint32_t index) {
  return &shims_queue_locks[index].word;
}
static inline struct shims_sleepers *shims_get_sleepers(size_t index) {
  return &shims_sleepers[index];
}

// The thread sanitizer recognizes only libc's mutexes. These functions tell it about the library's
// locks, so that it can detect threads that acquire locks in different orders.
SHIMS_HIDDEN void shims_tsan_did_lock(uint32_t *lock, bool by_trying);
SHIMS_HIDDEN void shims_tsan_will_unlock(uint32_t *lock);

// Call this in a loop that waits for another processor.
static inline void shims_pause(void) {
#if defined(__x86_64__) || defined(__i386__) || defined(SHIMS_CL)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

// ---- Race detectors ------------------------------------------------------------------------

// Whether the program runs under a race detector that must be told which events happen before
// others (see races.c).
SHIMS_HIDDEN bool shims_races_are_detected(void);
SHIMS_HIDDEN void shims_happens_before(void *address);
SHIMS_HIDDEN void shims_happens_after(void *address);

// ---- Watches -------------------------------------------------------------------------------

// The lists of watches of single multicasts, selected by the multicast's index. The last list
// contains the watch of all multicasts.
#define SHIMS_WATCH_LISTS 1024
extern SHIMS_HIDDEN void *shims_watches[SHIMS_WATCH_LISTS + 1];
#define SHIMS_WATCH_SIZE 128
extern SHIMS_HIDDEN char shims_watch_of_all[SHIMS_WATCH_SIZE] __attribute__((aligned(16)));
// The call statistics of registrations: a block for each slab of registrations, or NULL.
extern SHIMS_HIDDEN void *shims_tallies[SHIMS_DIRECTORY_LENGTH];

static inline void **shims_get_watches(uint32_t list) { return &shims_watches[list]; }
static inline void *shims_get_watch_of_all(void) { return shims_watch_of_all; }
static inline void **shims_get_tallies(uint32_t slab) { return &shims_tallies[slab]; }

// ---- Waiting -------------------------------------------------------------------------------

SHIMS_SYSTEM uint64_t shims_now_ns(void);

// If the word has this value, sleeps until another thread wakes this thread, or until `deadline_ns`
// on the monotonic clock. UINT64_MAX means that there is no deadline. May return spuriously. Not a
// cancellation point. Preserves errno.
SHIMS_SYSTEM void shims_futex_wait(uint32_t *word, uint32_t value, uint64_t deadline_ns);

// Wakes up to `count` threads that are sleeping on this word.
SHIMS_SYSTEM void shims_futex_wake(uint32_t *word, int count);

// Sleeps briefly. Retry loops call this function instead of yielding, because it lets threads of
// lower priority run.
SHIMS_SYSTEM void shims_backoff(void);

// ---- Event descriptors ---------------------------------------------------------------------

// A descriptor is readable from each shims_event_set() to the next shims_event_clear(). The caller
// alternates between these two functions. All functions of this section preserve errno, because it
// belongs to the program's code. They are not cancellation points, because a cancelled caller would
// never release the lock that it holds.

SHIMS_SYSTEM int shims_event_open(void);

SHIMS_SYSTEM void shims_event_set(int descriptor);

SHIMS_SYSTEM void shims_event_clear(int descriptor);

SHIMS_SYSTEM void shims_event_close(int descriptor);

// In the child of a fork, replaces the parent's descriptor with a new one that has the same number.
// Returns -1 if the system has no descriptors left.
SHIMS_SYSTEM int shims_event_replace(int descriptor);

// ---- Threads -------------------------------------------------------------------------------

// Starts a detached thread. The thread blocks signals that are meant for the whole program, but not
// those that are meant for a single thread: faults, and the signals by which debuggers, profilers
// and garbage collectors interrupt a thread. If `stack_size` is 0, the system's default applies.
SHIMS_SYSTEM bool shims_start_thread(void *(*body)(void *), void *argument, size_t stack_size);

// A thread's name, shortened to the length that the system supports. The text is empty if there is
// no name.
typedef struct shims_thread_name {
  char text[16];
} shims_thread_name;

static inline shims_thread_name shims_make_thread_name(const char *text) {
  shims_thread_name name = {{0}};
  if (text != NULL) memcpy(name.text, text, strnlen(text, sizeof name.text - 1));
  return name;
}

// A human-readable label, shortened to fit. The text is empty if there is no label.
typedef struct shims_label {
  char text[64];
} shims_label;

static inline void shims_copy_label(shims_label *label, const char *text) {
  memset(label, 0, sizeof *label);
  if (text != NULL) memcpy(label->text, text, strnlen(text, sizeof label->text - 1));
}

static inline const char *shims_get_label(const shims_label *label) { return label->text; }

// The number by which the system and debuggers identify the calling thread. If the system has no
// such numbers, returns a number that no other thread of the process has ever had.
SHIMS_SYSTEM uint32_t shims_get_thread_id(void);

SHIMS_SYSTEM void shims_set_thread_name(const shims_thread_name *name);

// ---- Reports -------------------------------------------------------------------------------

// The location of a function: its module, and its offset from a symbol or, if there is no symbol,
// from the start of the module.
#define SHIMS_NAME_SIZE 100
typedef struct shims_place {
  uint64_t offset;
  char module[SHIMS_NAME_SIZE], symbol[SHIMS_NAME_SIZE];
} shims_place;

// Reads the system's name for a thread of this process. The name is empty if there is none.
SHIMS_HIDDEN void shims_read_thread_name(uint32_t thread, shims_label *name);

// Finds the location of an address. Returns false if the address is in no module. Allocates no
// memory, and acquires no lock that is held while a library's constructors or destructors run.
SHIMS_HIDDEN bool shims_locate(uint64_t address, shims_place *place);
// Makes shims_locate() return false from now on.
SHIMS_HIDDEN void shims_locate_none_in_child(void);

static inline const char *shims_get_module(const shims_place *place) { return place->module; }
static inline const char *shims_get_symbol(const shims_place *place) { return place->symbol; }

// Writes to a descriptor. Returns false if not all of the text could be written. Preserves errno.
SHIMS_HIDDEN bool shims_write(int descriptor, const void *text, size_t size);
// Makes one attempt to write. Returns the number of bytes written, or a negative number. This
// function is not a cancellation point.
SHIMS_SYSTEM long shims_write_once(int descriptor, const void *text, size_t size);

SHIMS_SYSTEM uint64_t shims_get_process_id(void);

// ---- Thread exit and fork ------------------------------------------------------------------

// Acquire and release the locks of the shims for this system. A fork acquires these locks after all
// other locks of the library.
SHIMS_SYSTEM void shims_lock_system(void);
SHIMS_SYSTEM void shims_unlock_system(bool is_child);

// Called on each ending thread with the record that the thread has passed to shims_watch_exit().
// Defined in Swift.
SHIMS_HIDDEN void shims_thread_did_end(void *record);

SHIMS_SYSTEM bool shims_exit_key_init(void);
SHIMS_SYSTEM bool shims_watch_exit(void *record);

// Called when the library is loaded.
SHIMS_HIDDEN void shims_watch_process_exit(void);
SHIMS_SYSTEM bool shims_is_main_thread(void);
// Returns whether the calling thread is the main thread and is inside exit(). Returning from main()
// also calls exit(). Makes system calls.
SHIMS_HIDDEN bool shims_is_inside_exit(void);

// The fork handlers. Defined in Swift.
SHIMS_HIDDEN void shims_before_fork(void);
SHIMS_HIDDEN void shims_after_fork_in_parent(void);
SHIMS_HIDDEN void shims_after_fork_in_child(void);

// Registers the fork handlers a second time, at the first use of the library. A constructor
// registered them when the library was loaded, before any thread could be inside the library.
// Before a fork, the most recently registered handler is called first. If an allocator was loaded
// after the library, its handlers, which acquire the allocator's lock, are between the two
// registrations. A thread that holds a lock of the library may be waiting for the allocator's lock.
// So the fork must acquire the library's locks before the allocator's lock. It does so in the
// handler that this function registers. The caller must hold no lock. Returns false if memory has
// run out.
SHIMS_HIDDEN bool shims_watch_fork(void);

/// The personality of the core's functions: see unwind.c.
#ifdef __ARM_EABI__
SHIMS_HIDDEN int shims_personality(int state, void *exception, void *context);
#else
SHIMS_HIDDEN int shims_personality(int version, int actions, uint64_t language, void *exception,
                                   void *context);
#endif

#ifdef SHIMS_LINUX
#include "../linux/system.h"
#endif

#endif
