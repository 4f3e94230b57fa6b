/* SPDX-License-Identifier: MIT
 *
 * libmulticast: one-to-many delegation for C and everything that speaks C.
 *
 * A multicast holds any number of delegates, each a C function with a context, and invokes them
 * all: by priority, then by order of addition. Any thread may add, remove, invoke and destroy at
 * any time, callbacks included.
 *
 *     static void on_event(void *context, uint32_t event, const void *payload, size_t size);
 *
 *     multicast m = multicast_create();
 *     multicast_delegate d = {on_event, my_context};
 *     multicast_add(m, d, NULL, NULL);
 *     multicast_invoke(m, 1, "hello", 5);
 *     if (multicast_remove(m, d) == MULTICAST_OK) free(my_context);
 *     multicast_destroy(m);
 *
 * Handles      Structs of one 64-bit integer, passed by value; zero is "none". Any 64-bit value is
 *              safe in any call at any time: a handle that is null, stale, forged or of another
 *              kind gives MULTICAST_ERROR_INVALID_HANDLE.
 * Delegates    Run on the thread that invokes or, where they were added with a queue, on the one
 *              that runs the queue; with no lock of the library held; and may call anything in
 *              this header.
 * Removal      When a removal returns MULTICAST_OK, that delegate runs on no thread and never
 *              will again: its context may be freed. See multicast_remove().
 * Contexts     Borrowed until the removal has finished, or owned: with `release` in the options
 *              the library says, exactly once, when it has let go of the context.
 * Results      A function that creates returns a handle (zero: out of memory); one that counts
 *              returns a count or a negative status; one that asks yes or no returns bool; every
 *              other returns a status. A call that fails has changed nothing, save where its text
 *              says otherwise.
 * fork         The child may use the library whatever the parent's other threads were doing.
 *              Delegates that were running on those threads are not running in the child; where
 *              their removal waited for that, or had left it to them, their `release` runs in the
 *              child, inside fork(). A removal of many, or the end of something, that another
 *              thread was in the middle of may be done in part, without what was still to be
 *              released. Queues are empty in the child and keep all their calls in the parent.
 * exit         The library has no destructors: calls from atexit handlers and from threads that
 *              outlive `main` are as good as any. It stays mapped after dlclose().
 *
 * Threads      One that ends inside a delegate or visitor, by pthread_exit() or because it was
 *              cancelled, ends the call: in the library's destructor for the thread, which comes
 *              after those of older keys. A stack of 16 KB is enough for every function; each
 *              level of nesting takes up to 500 bytes, beside what delegates take.
 *
 * Not supported, because C offers no way to do it safely: leaving a delegate, visitor, lock, unlock
 * or release function by longjmp or by an exception; calling from a signal handler; calling in the
 * child of vfork(), or from a handler of pthread_atfork() that was registered before the library
 * was first used; calling the library from inside an allocator function given to it; ending a
 * thread inside a release function, or inside what that calls, or once more inside what one of its
 * destructors calls; asynchronous cancellation of a thread that is inside the library. A library
 * that is built with MULTICAST_INTERNAL_CHECKS finds most of these, and ends the program with a
 * line that says so.
 */

#ifndef MULTICAST_H
#define MULTICAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The version of this header; multicast_version() gives that of the library.
#define MULTICAST_VERSION_MAJOR 1
#define MULTICAST_VERSION_MINOR 0
#define MULTICAST_VERSION_PATCH 0

/// The three numbers in one, comparable with <: 0x00MMmmpp.
#define MULTICAST_VERSION                                                  \
  (((uint32_t)MULTICAST_VERSION_MAJOR << 16) |                             \
   ((uint32_t)MULTICAST_VERSION_MINOR << 8) | (uint32_t)MULTICAST_VERSION_PATCH)

#if defined(__GNUC__) || defined(__clang__)
#define MULTICAST_API __attribute__((visibility("default")))
#define MULTICAST_NODISCARD __attribute__((warn_unused_result))
#else
#define MULTICAST_API
#define MULTICAST_NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types ---------------------------------------------------------------------------------- */

/// What a call came to. Zero and above: it did what it says; below: an error.
///
/// Numbers are part of the ABI and leave gaps for later ones; treat a negative number that this
/// header does not know as a failure.
///
/// @since 1.0
typedef enum multicast_status {
  /// Done. Of a removal: the delegate runs on no other thread, and never will again.
  MULTICAST_OK = 0,
  /// Removed, but a call of it still runs that could not be waited for: this thread is inside it,
  /// or waiting would close a cycle of waits. The context is in use until `release` runs.
  MULTICAST_PENDING = 1,
  /// The handle is null, stale, forged or of another kind.
  MULTICAST_ERROR_INVALID_HANDLE = -10,
  /// A NULL where none may be, an unknown flag, a reserved field that is not zero, a wrong size.
  MULTICAST_ERROR_INVALID_ARGUMENT = -20,
  /// No such delegate, or no such index.
  MULTICAST_ERROR_NOT_FOUND = -30,
  /// An allocation failed; nothing has changed.
  MULTICAST_ERROR_OUT_OF_MEMORY = -40,
  /// Nested too deep on this thread (256), or more than the library can number (2^26 of a kind).
  MULTICAST_ERROR_LIMIT = -50,
  /// A queue took no more. Returned by no function of this version: what is refused is missing from
  /// the result of multicast_invoke(), and counted by the queue.
  MULTICAST_ERROR_QUEUE_FULL = -60,
  /// The time was up. Of a removal: removed, but a call of it still runs on another thread. Of
  /// multicast_queue_wait(): nothing waits in the queue.
  MULTICAST_ERROR_TIMEOUT = -70,
  /// Not possible at this point: another thread runs the queue, or memory has been taken already.
  MULTICAST_ERROR_STATE = -80,
  /// The system refused what the library needs. Of multicast_queue_start(): a thread. Of a removal:
  /// the memory barrier that the kernel had granted when the library started; removed, but it
  /// cannot be known whether calls of it still run: `release` never runs, free nothing.
  MULTICAST_ERROR_SYSTEM = -90
} multicast_status;

/// Every status with its number and its text: `X(name, number, message)`.
///
/// @since 1.0
#define MULTICAST_STATUS_MAP(X)                                                                  \
  X(MULTICAST_OK, 0, "done")                                                                     \
  X(MULTICAST_PENDING, 1, "removed, a call of it still runs; release tells when it has finished") \
  X(MULTICAST_ERROR_INVALID_HANDLE, -10, "the handle is null, stale, forged or of another kind") \
  X(MULTICAST_ERROR_INVALID_ARGUMENT, -20, "an argument or an option is not valid")              \
  X(MULTICAST_ERROR_NOT_FOUND, -30, "no such delegate or index")                                 \
  X(MULTICAST_ERROR_OUT_OF_MEMORY, -40, "out of memory")                                         \
  X(MULTICAST_ERROR_LIMIT, -50, "nested too deep, or too many")                                  \
  X(MULTICAST_ERROR_QUEUE_FULL, -60, "the queue is full")                                        \
  X(MULTICAST_ERROR_TIMEOUT, -70, "the time was up")                                             \
  X(MULTICAST_ERROR_STATE, -80, "not possible at this point")                                    \
  X(MULTICAST_ERROR_SYSTEM, -90, "the system refused a thread or a memory barrier")

/// A multicast: an ordered set of delegates that are invoked together.
///
/// @since 1.0
typedef struct multicast {
  /// Opaque; 0 is none. Where a language has no structs by value, pass it as a 64-bit integer.
  uint64_t id;
} multicast;

/// One registration: one delegate in one multicast, from its add to its removal.
///
/// Outlives it as a stale handle: tokens are never reused for another registration.
///
/// @since 1.0
typedef struct multicast_token {
  /// Opaque; 0 is none. Where a language has no structs by value, pass it as a 64-bit integer.
  uint64_t id;
} multicast_token;

/// A lifetime: what weak registrations refer to. Ending it removes them all, wherever they are.
///
/// @since 1.0
typedef struct multicast_lifetime {
  /// Opaque; 0 is none. Where a language has no structs by value, pass it as a 64-bit integer.
  uint64_t id;
} multicast_lifetime;

/// A queue: where calls wait until the program's own loop, or a thread of the queue's, makes them.
///
/// @since 1.0
typedef struct multicast_queue {
  /// Opaque; 0 is none. Where a language has no structs by value, pass it as a 64-bit integer.
  uint64_t id;
} multicast_queue;

/// A broadcaster: multicasts by name, for observers and notifiers that do not know each other.
///
/// @since 1.0
typedef struct multicast_broadcaster {
  /// Opaque; 0 is none. Where a language has no structs by value, pass it as a 64-bit integer.
  uint64_t id;
} multicast_broadcaster;

/// The function of a delegate.
///
/// @param context  The delegate's context, as it was added.
/// @param event    The invoker's event, unchanged: selects the method of a protocol.
/// @param payload  The invoker's payload, unchanged, or the queue's copy of it, aligned to 16
///                 bytes; valid until this call returns.
/// @param size     Bytes at `payload`, as the invoker said.
///
/// Ownership: borrows `context` and `payload` for the call.
/// Threads:   called on the thread that invokes; on several at once where several invoke. With a
///            queue: on the thread that runs the queue, one call at a time.
/// Reentry:   may call anything in this header, removing itself and destroying its multicast
///            included. Must return: no longjmp, no exception.
/// Cost:      the invocation waits for it.
/// @since 1.0
typedef void (*multicast_function)(void *context, uint32_t event, const void *payload,
                                   size_t size);

/// A delegate: what is called, and with what. Two are equal when both fields are.
///
/// @since 1.0
typedef struct multicast_delegate {
  /// What is called. Not NULL.
  multicast_function function;
  /// Passed to `function`; may be NULL.
  void *context;
} multicast_delegate;

/// What multicast_visit() calls for each delegate, to call the delegate's own typed function.
///
/// @param context   As it was given to multicast_visit().
/// @param delegate  A copy of the delegate, valid until this call returns.
/// @return true to go on, false to stop.
///
/// Ownership: borrows both for the call.
/// Threads:   called on the thread that visits, no lock held.
/// Reentry:   may call anything in this header. Must return: no longjmp, no exception.
/// Cost:      the visit waits for it.
/// @since 1.0
typedef bool (*multicast_visitor)(void *context, const multicast_delegate *delegate);

/// `flags`: called once at most; removed as its call begins.
///
/// @since 1.0
#define MULTICAST_ONCE 0x1u

/// `flags`: delegates equal to this one are removed first, without waiting for calls of them that
/// run; this one goes last in its priority.
///
/// @since 1.0
#define MULTICAST_UNIQUE 0x2u

/// `flags`: of the calls of this delegate that wait in its queue only the newest is kept: one call
/// waits at most, in the place of the first, with the event and payload of the last. Without a
/// queue it changes nothing.
///
/// @since 1.0
#define MULTICAST_LATEST 0x4u

/// How a delegate is added. Zero is the default of every field but the first; NULL instead of a
/// struct means all defaults.
///
/// Fill with multicast_options_default() or multicast_options_init(), then change what is wanted.
///
/// @since 1.0
typedef struct multicast_options {
  /// sizeof(multicast_options) as the caller knows it. Not 0.
  uint32_t struct_size;
  /// MULTICAST_ONCE, MULTICAST_UNIQUE, MULTICAST_LATEST, joined by | (default: 0).
  uint32_t flags;
  /// Higher is invoked first; equal ones in order of addition (default: 0).
  int32_t priority;
  /// Must be 0.
  uint32_t reserved;
  /// Bit i: wants event i, for a protocol whose methods are optional. Events 64 and up are always
  /// delivered (default: 0, all events; who wants none sets the bit of one that is never invoked).
  uint64_t events;
  /// The registration is gone when this ends (default: none, it stays until removed).
  multicast_lifetime lifetime;
  /// Calls wait here instead of being made at once. The registration is gone when the queue is
  /// destroyed (default: none, the delegate is called on the thread that invokes).
  multicast_queue queue;
  /// Told exactly once that the library has let go of the context: after the last call of the
  /// delegate has returned and for failed adds too; on the thread that removes, or on the one whose
  /// call was the last to return. No lock is held. (default: NULL, nobody is told).
  void (*release)(void *context);
  /// For a context that counts references itself (a weak_ptr, GWeakRef, a Swift or Python object):
  /// called before each call, returns the strong pointer that the delegate gets as its context, or
  /// NULL for dead: it is removed there and then, and `release` runs. On the thread that calls, no
  /// lock held. With `unlock` or not at all. (default: NULL, the delegate gets `context`).
  void *(*lock)(void *context);
  /// Called after each call with what `lock` returned, also when the delegate removed itself or
  /// destroyed the multicast; not where the thread ended inside the call. As `lock`.
  /// (default: NULL).
  void (*unlock)(void *strong);
} multicast_options;

/// Where the library gets its memory from.
///
/// Fill with multicast_allocator_default() or multicast_allocator_init(), then set the functions.
///
/// @since 1.0
typedef struct multicast_allocator {
  /// sizeof(multicast_allocator) as the caller knows it. Not 0.
  uint32_t struct_size;
  /// Passed to both functions (default: NULL).
  void *context;
  /// Returns `size` bytes (> 0) aligned to `alignment` (a power of two, at most 128), or NULL.
  /// Called from any thread, also with locks of the library held: it must not call the library.
  void *(*allocate)(void *context, size_t size, size_t alignment);
  /// Takes back a block with the size and alignment it was asked for. As above.
  void (*deallocate)(void *context, void *block, size_t size, size_t alignment);
} multicast_allocator;

/// What a queue does with a call that it has no room for.
///
/// @since 1.0
typedef enum multicast_overflow {
  /// The new call is refused, and counted (default).
  MULTICAST_OVERFLOW_REFUSE = 0,
  /// The call that has waited longest is dropped, and counted.
  MULTICAST_OVERFLOW_DROP_OLDEST = 1,
  /// The invocation waits for room. Refused instead where waiting would close a cycle of waits: on
  /// the thread that ran the queue last, or where that thread waits for the invoking one.
  /// A delegate in whose call an invocation waits so is not waited for by threads that might have
  /// to run the queue themselves, as where it has no thread of its own: removing it then returns
  /// MULTICAST_PENDING, or the count or error that it would return anyway, and `release` tells when
  /// the call has returned.
  MULTICAST_OVERFLOW_BLOCK = 2
} multicast_overflow;

/// How a queue is made. Zero is the default of every field but the first.
///
/// Fill with multicast_queue_options_default() or multicast_queue_options_init().
///
/// @since 1.0
typedef struct multicast_queue_options {
  /// sizeof(multicast_queue_options) as the caller knows it. Not 0.
  uint32_t struct_size;
  /// How many calls can wait, 1 to 2^24; 64 to 192 bytes are taken for each, at once (default: 0,
  /// which is 1024).
  uint32_t capacity;
  /// What becomes of a call when so many wait (default: MULTICAST_OVERFLOW_REFUSE).
  multicast_overflow overflow;
} multicast_queue_options;

/// What a queue has done since it was created, in calls.
///
/// `queued` is the sum of `pending`, `delivered`, `dropped`, `retracted` and `coalesced`, at every
/// moment.
///
/// @since 1.0
typedef struct multicast_queue_stats {
  /// sizeof(multicast_queue_stats) as the caller knows it. Not 0.
  uint32_t struct_size;
  /// How many wait now.
  uint64_t pending;
  /// How many were taken in.
  uint64_t queued;
  /// How many were made, the one that runs included.
  uint64_t delivered;
  /// How many were not taken in: no room, no memory for the payload, or waiting for room would have
  /// closed a cycle.
  uint64_t refused;
  /// How many made room for newer ones or, in the child of a fork, were the parent's to make.
  uint64_t dropped;
  /// How many were taken back, their delegate having been removed or, having lost its context,
  /// found dead.
  uint64_t retracted;
  /// How many were replaced by a newer one of the same delegate: MULTICAST_LATEST.
  uint64_t coalesced;
  /// The most that ever waited.
  uint64_t highest;
} multicast_queue_stats;

/// How a broadcaster is made. Zero is the default of every field but the first.
///
/// Fill with multicast_broadcaster_options_default() or multicast_broadcaster_options_init().
///
/// @since 1.0
typedef struct multicast_broadcaster_options {
  /// sizeof(multicast_broadcaster_options) as the caller knows it. Not 0.
  uint32_t struct_size;
  /// Must be 0.
  uint32_t flags;
  /// For observers whose options name no queue: the program's main loop, usually. Stays the
  /// caller's; once it is destroyed such observers cannot register (default: none, they are called
  /// on the thread that notifies).
  multicast_queue queue;
} multicast_broadcaster_options;

/// All defaults, with `struct_size` set.
///
/// @return The options, by value.
///
/// Ownership: the caller's.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1); inline.
/// @since 1.0
static inline multicast_options multicast_options_default(void) {
  multicast_options options = {(uint32_t)sizeof(multicast_options), 0, 0, 0, 0, {0}, {0}, NULL,
                               NULL, NULL};
  return options;
}

/// No functions yet, with `struct_size` set.
///
/// @return The allocator, by value.
///
/// Ownership: the caller's.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1); inline.
/// @since 1.0
static inline multicast_allocator multicast_allocator_default(void) {
  multicast_allocator allocator = {(uint32_t)sizeof(multicast_allocator), NULL, NULL, NULL};
  return allocator;
}

/// All defaults, with `struct_size` set.
///
/// @return The options, by value.
///
/// Ownership: the caller's.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1); inline.
/// @since 1.0
static inline multicast_queue_options multicast_queue_options_default(void) {
  multicast_queue_options options = {(uint32_t)sizeof(multicast_queue_options), 0,
                                     MULTICAST_OVERFLOW_REFUSE};
  return options;
}

/// All zero, with `struct_size` set: ready for multicast_queue_statistics().
///
/// @return The statistics, by value.
///
/// Ownership: the caller's.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1); inline.
/// @since 1.0
static inline multicast_queue_stats multicast_queue_stats_default(void) {
  multicast_queue_stats stats = {(uint32_t)sizeof(multicast_queue_stats), 0, 0, 0, 0, 0, 0, 0, 0};
  return stats;
}

/// All defaults, with `struct_size` set.
///
/// @return The options, by value.
///
/// Ownership: the caller's.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1); inline.
/// @since 1.0
static inline multicast_broadcaster_options multicast_broadcaster_options_default(void) {
  multicast_broadcaster_options options = {(uint32_t)sizeof(multicast_broadcaster_options), 0,
                                           {0}};
  return options;
}

/* ---- Library -------------------------------------------------------------------------------- */

/// The version of the library that is loaded, in the form of MULTICAST_VERSION.
///
/// @return 0x00MMmmpp: major, minor, patch.
///
/// Ownership: nothing is passed.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1).
/// @since 1.0
MULTICAST_API uint32_t multicast_version(void);

/// The identifier of a status, such as "MULTICAST_ERROR_TIMEOUT".
///
/// @param status  Any number.
/// @return A text, never NULL; "MULTICAST_UNKNOWN_STATUS" for what is none.
///
/// Ownership: the text is static.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1).
/// @since 1.0
MULTICAST_API const char *multicast_status_name(multicast_status status);

/// A status in words for people, in English, without a full stop.
///
/// @param status  Any number.
/// @return A text, never NULL; "not a status of this library" for what is none.
///
/// Ownership: the text is static.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1).
/// @since 1.0
MULTICAST_API const char *multicast_status_message(multicast_status status);

/// Gives the library its memory; before anything is created.
///
/// @param allocator  Copied. Both functions must be set.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_ARGUMENT: NULL, a function missing, or a wrong
///         `struct_size`; MULTICAST_ERROR_STATE: memory has been taken already.
///
/// Ownership: `context` must stay valid for the rest of the process.
/// Threads:   any.
/// Reentry:   not from the allocator's own functions.
/// Cost:      O(1).
/// @since 1.0
MULTICAST_API multicast_status multicast_set_allocator(const multicast_allocator *allocator);

/// Fills options with their defaults, for callers that cannot use inline functions.
///
/// @param options  Where to; not NULL.
/// @param size     Bytes at `options`: the caller's sizeof(multicast_options), 64 to 1024.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_ARGUMENT: NULL or another size; nothing written.
///
/// Ownership: the caller's.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(size).
/// @since 1.0
MULTICAST_API multicast_status multicast_options_init(multicast_options *options, size_t size);

/// Fills an allocator with zeros and its size, for callers that cannot use inline functions.
///
/// @param allocator  Where to; not NULL.
/// @param size       Bytes at `allocator`: the caller's sizeof(multicast_allocator), 32 to 1024.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_ARGUMENT: NULL or another size; nothing written.
///
/// Ownership: the caller's.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(size).
/// @since 1.0
MULTICAST_API multicast_status multicast_allocator_init(multicast_allocator *allocator,
                                                        size_t size);

/// Fills options with their defaults, for callers that cannot use inline functions.
///
/// @param options  Where to; not NULL.
/// @param size     Bytes at `options`: the caller's sizeof(multicast_queue_options), 12 to 1024.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_ARGUMENT: NULL or another size; nothing written.
///
/// Ownership: the caller's.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(size).
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_options_init(multicast_queue_options *options,
                                                            size_t size);

/// Fills statistics with zeros and their size, for callers that cannot use inline functions.
///
/// @param stats  Where to; not NULL.
/// @param size   Bytes at `stats`: the caller's sizeof(multicast_queue_stats), 72 to 1024.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_ARGUMENT: NULL or another size; nothing written.
///
/// Ownership: the caller's.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(size).
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_stats_init(multicast_queue_stats *stats,
                                                          size_t size);

/// Fills options with their defaults, for callers that cannot use inline functions.
///
/// @param options  Where to; not NULL.
/// @param size     Bytes at `options`: the caller's sizeof(multicast_broadcaster_options), 16 to
///                 1024.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_ARGUMENT: NULL or another size; nothing written.
///
/// Ownership: the caller's.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(size).
/// @since 1.0
MULTICAST_API multicast_status multicast_broadcaster_options_init(
    multicast_broadcaster_options *options, size_t size);

/* ---- Multicast ------------------------------------------------------------------------------ */

/// Creates an empty multicast.
///
/// @return Its handle; zero: out of memory, or the system had no thread key left, or 2^26 exist.
///
/// Ownership: the caller's, until multicast_destroy().
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1); memory is taken for many at a time.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast multicast_create(void);

/// Destroys a multicast and removes all its delegates, as multicast_remove() does.
///
/// Invocations of it that run, on this or any other thread, call no further delegate. The handle is
/// stale at once.
///
/// @param target  The multicast.
/// @return MULTICAST_OK: no delegate of it runs on another thread; MULTICAST_PENDING: a call of one
///         runs that could not be waited for; MULTICAST_ERROR_INVALID_HANDLE, after waiting as well
///         where another thread is just destroying it; MULTICAST_ERROR_SYSTEM.
///
/// Ownership: `release` runs for each delegate that has one; contexts without may be freed after
///            MULTICAST_OK.
/// Threads:   any; waits for running calls of its delegates on other threads.
/// Reentry:   from anywhere, its own delegates included; those get MULTICAST_PENDING.
/// Cost:      O(delegates), and one memory barrier when several threads have invoked it.
/// @since 1.0
MULTICAST_API multicast_status multicast_destroy(multicast target);

/// Whether a handle is that of a multicast that exists.
///
/// @param target  The multicast, or any other value.
/// @return true while it exists.
///
/// Ownership: nothing is passed.
/// Threads:   any; another thread may destroy it right after.
/// Reentry:   any.
/// Cost:      O(1), no lock.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD bool multicast_is_valid(multicast target);

/// Adds a delegate, last among those of its priority. The same one may be added again.
///
/// Invocations that have begun do not call it.
///
/// @param target    The multicast.
/// @param delegate  What to call; `function` not NULL.
/// @param options   How, or NULL for the defaults; read during the call only.
/// @param out       Receives the token, before the delegate can be called; may be NULL. Set to zero
///                  when the add fails.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE: of the multicast, or of a lifetime or
///         queue that is none any more; MULTICAST_ERROR_INVALID_ARGUMENT: no function, or options
///         that are not valid; MULTICAST_ERROR_OUT_OF_MEMORY; MULTICAST_ERROR_LIMIT.
///
/// Ownership: borrows `context` until the removal has finished. With `release` it is owned from
///            here on, failure included. Only options that cannot be read (`struct_size`, unknown
///            flags, reserved fields) are not used at all, and then `release` does not run.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1) amortised; options take an allocation, the delegates themselves one now and
///            then. O(delegates) where some have a lower priority or MULTICAST_UNIQUE searches
///            them.
/// @since 1.0
MULTICAST_API multicast_status multicast_add(multicast target, multicast_delegate delegate,
                                             const multicast_options *options,
                                             multicast_token *out);

/// Adds several delegates in order with the same options: all of them, or none.
///
/// An invocation calls all of them or none: they appear at once.
///
/// @param target     The multicast.
/// @param delegates  `count` of them; may be NULL when `count` is 0.
/// @param count      How many; at most 2^26.
/// @param options    As in multicast_add().
/// @param out        Receives `count` tokens; may be NULL. Set to zero when the add fails.
/// @return As multicast_add(); above 2^26 MULTICAST_ERROR_LIMIT, and nothing given is looked at.
///
/// Ownership: as multicast_add(); a failure releases each of the contexts once.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      that of `count` adds under one lock.
/// @since 1.0
MULTICAST_API multicast_status multicast_add_many(multicast target,
                                                  const multicast_delegate *delegates,
                                                  size_t count, const multicast_options *options,
                                                  multicast_token *out);

/// Removes the first delegate equal to this one, in order of invocation.
///
/// Invocations that run do not call it unless its call had begun; calls of it that wait in a queue
/// are not made, and their payload is let go. Then waits until no other thread is inside a call of
/// it: of this delegate alone, not of the multicast's others. Never hangs: where this thread is
/// inside a call of it, or where those that it would wait for wait for it in turn, it does not wait
/// and returns MULTICAST_PENDING. Do not hold a lock that it takes.
///
/// @param target    The multicast.
/// @param delegate  Function and context, as they were added.
/// @return MULTICAST_OK: it runs on no other thread and never will, so the context may be freed;
///         MULTICAST_PENDING; MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_NOT_FOUND, after
///         waiting for calls that run of an equal one just removed; MULTICAST_ERROR_SYSTEM.
///
/// Ownership: gives the context back, by MULTICAST_OK or by `release`.
/// Threads:   any; waits for running calls of it on other threads.
/// Reentry:   any; inside a call of it MULTICAST_PENDING.
/// Cost:      O(delegates) to find it, O(1) to remove it, and one memory barrier when several
///            threads have invoked the multicast.
/// @since 1.0
MULTICAST_API multicast_status multicast_remove(multicast target, multicast_delegate delegate);

/// Removes, for each of the delegates given, the first one equal to it that is still there.
///
/// @param target     The multicast.
/// @param delegates  `count` of them; may be NULL when `count` is 0.
/// @param count      How many.
/// @return How many were removed (>= 0); MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_INVALID_ARGUMENT; MULTICAST_ERROR_SYSTEM.
///
/// Ownership: as multicast_remove(). Called outside all delegates, no call of them runs when it
///            returns; inside one, `release` tells.
/// Threads:   any; waits as multicast_remove().
/// Reentry:   any.
/// Cost:      O(count * delegates), and one memory barrier when several threads have invoked it.
/// @since 1.0
MULTICAST_API int64_t multicast_remove_many(multicast target, const multicast_delegate *delegates,
                                            size_t count);

/// Removes every delegate that has this context, whatever its function.
///
/// @param target   The multicast.
/// @param context  The context; may be NULL.
/// @return How many were removed (>= 0); MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_SYSTEM.
///
/// Ownership: as multicast_remove(). Called outside all delegates, no call with this context runs
///            when it returns; inside one, `release` tells.
/// Threads:   any; waits as multicast_remove().
/// Reentry:   any.
/// Cost:      O(delegates), and one memory barrier when several threads have invoked it.
/// @since 1.0
MULTICAST_API int64_t multicast_remove_context(multicast target, void *context);

/// Removes the delegate at a place in the order of invocation.
///
/// @param target  The multicast.
/// @param index   0 is the first; counts live delegates, paused ones too.
/// @return As multicast_remove(); MULTICAST_ERROR_NOT_FOUND: `index` is not below the count.
///
/// Ownership: as multicast_remove().
/// Threads:   any; waits as multicast_remove().
/// Reentry:   any; inside a call of it MULTICAST_PENDING.
/// Cost:      O(delegates), and one memory barrier when several threads have invoked it.
/// @since 1.0
MULTICAST_API multicast_status multicast_remove_at(multicast target, size_t index);

/// Removes every delegate; the multicast stays.
///
/// @param target  The multicast.
/// @return How many were removed (>= 0); MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_SYSTEM.
///
/// Ownership: as multicast_remove(). Called outside all delegates, no call of them runs when it
///            returns; inside one, `release` tells.
/// Threads:   any; waits as multicast_remove().
/// Reentry:   any.
/// Cost:      O(delegates), and one memory barrier when several threads have invoked it.
/// @since 1.0
MULTICAST_API int64_t multicast_remove_all(multicast target);

/// How many delegates there are, paused ones included.
///
/// @param target  The multicast.
/// @return The count (>= 0); MULTICAST_ERROR_INVALID_HANDLE.
///
/// Ownership: nothing is passed.
/// Threads:   any; another thread may change it right after.
/// Reentry:   any.
/// Cost:      O(1).
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD int64_t multicast_count(multicast target);

/// Whether a delegate equal to this one is there, paused or not.
///
/// @param target    The multicast.
/// @param delegate  Function and context.
/// @return true when there is; false when there is none or the handle is not valid.
///
/// Ownership: nothing is passed.
/// Threads:   any; another thread may change it right after.
/// Reentry:   any.
/// Cost:      O(delegates).
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD bool multicast_contains(multicast target,
                                                          multicast_delegate delegate);

/// Copies the delegates in order of invocation, paused ones included.
///
/// @param target    The multicast.
/// @param out       Receives up to `capacity` of them; may be NULL when `capacity` is 0.
/// @param capacity  Room at `out`, in delegates.
/// @return How many there are (>= 0), also when that is more than `capacity`;
///         MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT.
///
/// Ownership: the caller's copies; contexts stay with whoever they belong to.
/// Threads:   any; one moment's state.
/// Reentry:   any.
/// Cost:      O(delegates).
/// @since 1.0
MULTICAST_API int64_t multicast_list(multicast target, multicast_delegate *out, size_t capacity);

/// Calls every live delegate once, by priority, then by order of addition.
///
/// Delegates added meanwhile are not called by this invocation; delegates removed meanwhile are not
/// called unless their call had begun. Paused ones and ones that do not want `event` are left out.
/// Of those added with a queue a call is queued, in their turn; one added with MULTICAST_ONCE is
/// not queued again while its call waits, and is removed as that begins.
///
/// @param target   The multicast.
/// @param event    Passed on unchanged; selects the method of the protocol. Below 64 it is matched
///                 with `events` in the options.
/// @param payload  Passed on unchanged; may be NULL when `size` is 0.
/// @param size     Bytes at `payload`. So many are copied for queued calls, once for all of them;
///                 of 0 the pointer itself is passed on.
/// @return How many delegates were called or queued (>= 0), also when the multicast was destroyed
///         meanwhile; what a queue refused is not counted. MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_INVALID_ARGUMENT: `size` without a `payload`; MULTICAST_ERROR_LIMIT:
///         256 invocations are nested on this thread already; MULTICAST_ERROR_OUT_OF_MEMORY: only
///         at the first invocation of a thread.
///
/// Ownership: borrows `payload` for the call.
/// Threads:   any. Delegates run on the calling thread, no lock held; threads that invoke the same
///            multicast do not slow each other. May wait for room in a queue made with
///            MULTICAST_OVERFLOW_BLOCK.
/// Reentry:   delegates may call anything, multicast_destroy() included.
/// Cost:      O(delegates); no allocation, no lock, no atomic read-modify-write. A queued call
///            takes its queue's lock and, with more than 32 bytes of payload, an allocation. The
///            first invocation of a thread takes a record of 10 KB, given to another thread when it
///            ends.
/// @since 1.0
MULTICAST_API int64_t multicast_invoke(multicast target, uint32_t event, const void *payload,
                                       size_t size);

/// Passes every live delegate to a visitor, which calls the delegate's own typed function.
///
/// For protocols of several methods, for return values and for stopping early. As an invocation:
/// same order, same rules for what is added and removed meanwhile, removal waits for the visitor to
/// return. Paused delegates are left out; `events` does not apply; those with a queue are passed
/// here and now like any other; one added with MULTICAST_ONCE is removed as it is passed.
///
/// @param target   The multicast.
/// @param visitor  Called for each; not NULL. Returning false stops.
/// @param context  Passed to `visitor`; may be NULL.
/// @return How many delegates were passed (>= 0); MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_INVALID_ARGUMENT; MULTICAST_ERROR_LIMIT;
///         MULTICAST_ERROR_OUT_OF_MEMORY, as multicast_invoke().
///
/// Ownership: borrows `context` for the call.
/// Threads:   any. The visitor runs on the calling thread, no lock held.
/// Reentry:   the visitor may call anything, multicast_destroy() included.
/// Cost:      as multicast_invoke().
/// @since 1.0
MULTICAST_API int64_t multicast_visit(multicast target, multicast_visitor visitor, void *context);

/* ---- Token ---------------------------------------------------------------------------------- */

/// Whether a registration still stands.
///
/// @param token  The token, or any other value.
/// @return true from its add until its removal, or until its call begins when added with
///         MULTICAST_ONCE.
///
/// Ownership: nothing is passed.
/// Threads:   any; another thread may remove it right after.
/// Reentry:   any.
/// Cost:      O(1), no lock.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD bool multicast_token_is_live(multicast_token token);

/// Removes a registration and waits, as multicast_remove() does.
///
/// @param token  The token.
/// @return MULTICAST_OK: it runs on no other thread and never will; MULTICAST_PENDING;
///         MULTICAST_ERROR_INVALID_HANDLE, after waiting for calls of it that still run on other
///         threads when it was removed before; MULTICAST_ERROR_SYSTEM.
///
/// Ownership: gives the context back, by MULTICAST_OK or by `release`.
/// Threads:   any; waits for running calls of it on other threads.
/// Reentry:   any; inside a call of it MULTICAST_PENDING.
/// Cost:      O(1) amortised, and one memory barrier when several threads have invoked the
///            multicast.
/// @since 1.0
MULTICAST_API multicast_status multicast_token_remove(multicast_token token);

/// Removes a registration without waiting.
///
/// @param token  The token.
/// @return MULTICAST_OK: no call of it runs; MULTICAST_PENDING: one runs still, on this thread or
///         another, and `release` tells when it has returned; MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_SYSTEM.
///
/// Ownership: gives the context back, by MULTICAST_OK or by `release`.
/// Threads:   any; never waits for a delegate.
/// Reentry:   any.
/// Cost:      as multicast_token_remove(), without the wait.
/// @since 1.0
MULTICAST_API multicast_status multicast_token_remove_nowait(multicast_token token);

/// Removes a registration and waits for so long at most.
///
/// @param token       The token.
/// @param timeout_ns  Nanoseconds on the monotonic clock; 0 looks once, UINT64_MAX waits for ever.
/// @return As multicast_token_remove(), and MULTICAST_ERROR_TIMEOUT: removed, by this call or
///         before, but a call of it still runs on another thread; `release` tells when it ends.
///
/// Ownership: gives the context back, by MULTICAST_OK or by `release`.
/// Threads:   any; waits for running calls of it on other threads.
/// Reentry:   any; inside a call of it MULTICAST_PENDING.
/// Cost:      as multicast_token_remove().
/// @since 1.0
MULTICAST_API multicast_status multicast_token_remove_within(multicast_token token,
                                                             uint64_t timeout_ns);

/// Leaves a delegate out of invocations until it is resumed. Pausing twice is the same as once.
///
/// Calls of it that have begun go on, and are not waited for; calls that wait in a queue are made.
///
/// @param token  The token.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE.
///
/// Ownership: nothing is passed.
/// Threads:   any; this thread's later invocations, and all that begin after they learn of it,
///            leave the delegate out.
/// Reentry:   any.
/// Cost:      O(1).
/// @since 1.0
MULTICAST_API multicast_status multicast_token_pause(multicast_token token);

/// Ends a pause: the delegate is called again, in its old place. Harmless when there is none.
///
/// @param token  The token.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE.
///
/// Ownership: nothing is passed.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1).
/// @since 1.0
MULTICAST_API multicast_status multicast_token_resume(multicast_token token);

/// The registration that this thread is calling now: the innermost one where calls nest.
///
/// Lets a delegate remove or pause itself without having been told its token.
///
/// @return Its token, possibly removed already; zero outside of all delegates and visitors.
///
/// Ownership: nothing is passed.
/// Threads:   any; about the calling thread.
/// Reentry:   any; inside a `release`, the delegate from whose call it was run, if any.
/// Cost:      O(1), no lock.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast_token multicast_token_current(void);

/* ---- Lifetime ------------------------------------------------------------------------------- */

/// Creates a lifetime, for the `lifetime` of multicast_options.
///
/// One for each plugin, window or session: whatever registers delegates and goes away as a whole.
///
/// @return Its handle; zero: out of memory, or the system had no thread key left, or 2^26 exist.
///
/// Ownership: the caller's, until multicast_lifetime_end().
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1); memory is taken for many at a time.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast_lifetime multicast_lifetime_create(void);

/// Ends a lifetime: removes every registration under it, from every multicast, as
/// multicast_remove() does.
///
/// After MULTICAST_OK no delegate that was ever added under it runs on any thread or waits in any
/// queue, those removed before included, and every `release` of theirs has returned: the code may
/// be unloaded. The handle is stale at once; adding under it is MULTICAST_ERROR_INVALID_HANDLE.
///
/// @param lifetime  The lifetime.
/// @return MULTICAST_OK; MULTICAST_PENDING: a call or a `release` of one runs that could not be
///         waited for, as when called from inside it; all is finished with the last `release`;
///         MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_SYSTEM.
///
/// Ownership: `release` runs for each registration that has one; contexts without may be freed
///            after MULTICAST_OK.
/// Threads:   any; waits for running calls of its delegates on other threads.
/// Reentry:   any; inside a call of one of its delegates MULTICAST_PENDING; inside a `release` that
///            also where one of its own was removed together with what that belongs to.
/// Cost:      O(registrations under it), and one memory barrier in all when several threads have
///            invoked one of the multicasts.
/// @since 1.0
MULTICAST_API multicast_status multicast_lifetime_end(multicast_lifetime lifetime);

/// How many registrations there are under a lifetime, paused ones included.
///
/// @param lifetime  The lifetime.
/// @return The count (>= 0); MULTICAST_ERROR_INVALID_HANDLE.
///
/// Ownership: nothing is passed.
/// Threads:   any; another thread may change it right after.
/// Reentry:   any.
/// Cost:      O(1).
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD int64_t multicast_lifetime_count(multicast_lifetime lifetime);

/* ---- Queue ---------------------------------------------------------------------------------- */

/// Creates a queue, for the `queue` of multicast_options.
///
/// A delegate added with a queue is not called by invocations: its calls wait in the queue, with a
/// copy of the payload, until someone runs it: the program's own loop, with multicast_queue_run(),
/// or a thread of the queue's, see multicast_queue_start(). Calls run in the order in which they
/// were queued, one at a time.
///
/// @param options  How, or NULL for the defaults; read during the call only.
/// @return Its handle; zero: options that are not valid, or out of memory, or the system had no
///         thread key left, or 2^26 exist.
///
/// Ownership: the caller's, until multicast_queue_destroy().
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1); takes the memory for all calls that can wait, which is not touched before.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast_queue
multicast_queue_create(const multicast_queue_options *options);

/// Destroys a queue, and removes every registration that delivers there, as multicast_remove()
/// does.
///
/// What waits is not called and its payload is let go. Whoever runs it makes no further call; its
/// own thread ends; multicast_queue_wait() and blocked invocations return. The handle is stale and
/// its descriptor closed at once.
///
/// @param queue  The queue.
/// @return MULTICAST_OK: no delegate that delivered there runs on another thread;
///         MULTICAST_PENDING: a call of one, or a `release`, runs that could not be waited for, as
///         when called from inside it; MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_SYSTEM.
///
/// Ownership: `release` runs for each registration that has one; contexts without may be freed
///            after MULTICAST_OK.
/// Threads:   any; waits for the call that another thread runs.
/// Reentry:   any; inside a call of one of its delegates MULTICAST_PENDING.
/// Cost:      O(registrations and calls that wait).
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_destroy(multicast_queue queue);

/// Makes calls that wait, on this thread, oldest first.
///
/// Stops early when the queue is empty, destroyed, or given a thread of its own. Inside a call that
/// the queue makes it may be called again, as by a modal loop: it goes on with the next one.
///
/// @param queue  The queue.
/// @param max    The most calls to make; 0: as many as wait now. Those queued meanwhile, by the
///               delegates too, are made as long as `max` is not reached.
/// @return How many were made (>= 0); MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_STATE:
///         another thread runs it, or it has a thread of its own, which this is not;
///         MULTICAST_ERROR_LIMIT: 256 invocations and runs are nested on this thread already;
///         MULTICAST_ERROR_OUT_OF_MEMORY: only at the first invocation or run of a thread.
///
/// Ownership: payload copies are let go after each call.
/// Threads:   any, one at a time. Delegates run on the calling thread, no lock held.
/// Reentry:   delegates may call anything, this and multicast_queue_destroy() included.
/// Cost:      O(calls made), one short lock for each; no allocation.
/// @since 1.0
MULTICAST_API int64_t multicast_queue_run(multicast_queue queue, size_t max);

/// Sleeps until a call waits in the queue.
///
/// @param queue       The queue.
/// @param timeout_ns  Nanoseconds on the monotonic clock; 0 looks once, UINT64_MAX waits for ever.
/// @return How many wait (> 0); MULTICAST_ERROR_TIMEOUT; MULTICAST_ERROR_INVALID_HANDLE, also when
///         it is destroyed meanwhile.
///
/// Ownership: nothing is passed.
/// Threads:   any, several too: all are woken. Another thread may run what waits first.
/// Reentry:   any; a delegate that waits here keeps the queue that it is run by waiting too.
/// Cost:      O(1); no polling.
/// @since 1.0
MULTICAST_API int64_t multicast_queue_wait(multicast_queue queue, uint64_t timeout_ns);

/// A descriptor that is readable exactly while calls wait: for poll, epoll, GLib, libuv, asyncio.
///
/// When it is readable, call multicast_queue_run(). Level-triggered use needs nothing else; with
/// edge-triggered, run until nothing waits. It is made at the first call of this, and costs two
/// system calls each time that the queue fills and empties. The child of a fork gets one of its
/// own with the same number; an epoll set made before is still shared with the parent.
///
/// @param queue  The queue.
/// @return The descriptor, the same each time; -1: not a queue, or the system has none left.
///
/// Ownership: the queue's: only watch it; do not read, write or close it, and stop watching it
///            before multicast_queue_destroy(), which closes it.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1); a system call the first time.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD int multicast_queue_fd(multicast_queue queue);

/// Gives the queue a thread of its own, which makes its calls as they come.
///
/// The thread has the default stack, and blocks signals like SIGINT and SIGTERM that are for the
/// program as a whole; not those of faults, nor real-time ones. Where another thread is just
/// running the queue, it begins when that one is done. It does not exist in the child of a fork.
///
/// @param queue  The queue.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_STATE: it has one, perhaps
///         one that is just stopping; MULTICAST_ERROR_SYSTEM: the system has no thread left;
///         MULTICAST_ERROR_OUT_OF_MEMORY.
///
/// Ownership: the thread is the queue's, until multicast_queue_stop() or multicast_queue_destroy().
/// Threads:   any.
/// Reentry:   any.
/// Cost:      that of creating a thread.
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_start(multicast_queue queue);

/// Ends the queue's thread: lets the call that it runs finish, makes no further one and keeps what
/// waits.
///
/// @param queue  The queue.
/// @return MULTICAST_OK: the thread makes no call any more; MULTICAST_PENDING: it will end when its
///         call has returned, which could not be waited for, as when called from inside it;
///         MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_STATE: it has none.
///
/// Ownership: nothing is passed.
/// Threads:   any; waits for the call that the queue's thread runs.
/// Reentry:   any; inside a call that the queue's thread runs MULTICAST_PENDING.
/// Cost:      O(1).
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_stop(multicast_queue queue);

/// Reads what the queue has counted, all at one moment.
///
/// @param queue  The queue.
/// @param out    Receives the figures; `struct_size` set by the caller, see
///               multicast_queue_stats_default().
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT: NULL or
///         a wrong `struct_size`; nothing written.
///
/// Ownership: the caller's.
/// Threads:   any; another thread may change it right after.
/// Reentry:   any.
/// Cost:      O(1).
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_statistics(multicast_queue queue,
                                                          multicast_queue_stats *out);

/* ---- Broadcaster ---------------------------------------------------------------------------- */

/// Creates a broadcaster: multicasts by the name of a protocol, made as names come up.
///
/// Observers register under a name from any thread, and are notified by it. Observers of different
/// names never meet. Names are compared byte by byte; they stay for the life of the broadcaster.
///
/// @param options  How, or NULL for the defaults; read during the call only.
/// @return Its handle; zero: options that are not valid, or out of memory, or the system had no
///         thread key left, or 2^26 exist.
///
/// Ownership: the caller's, until multicast_broadcaster_destroy().
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1).
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast_broadcaster
multicast_broadcaster_create(const multicast_broadcaster_options *options);

/// Destroys a broadcaster and all its multicasts, as multicast_destroy() does each.
///
/// @param broadcaster  The broadcaster.
/// @return MULTICAST_OK: no observer of it runs on another thread; MULTICAST_PENDING: a call of one
///         runs that could not be waited for; MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_STATE: it is multicast_broadcaster_default(), which stays;
///         MULTICAST_ERROR_SYSTEM.
///
/// Ownership: `release` runs for each observer that has one; contexts without may be freed after
///            MULTICAST_OK.
/// Threads:   any; waits for running calls of its observers on other threads.
/// Reentry:   any; inside a call of one of its observers MULTICAST_PENDING.
/// Cost:      O(names and observers).
/// @since 1.0
MULTICAST_API multicast_status multicast_broadcaster_destroy(multicast_broadcaster broadcaster);

/// The broadcaster of the process, for those who have no other way to meet. It has no queue of its
/// own and is never destroyed.
///
/// @return Its handle, the same each time; zero: out of memory at its first use.
///
/// Ownership: the library's.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(1).
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast_broadcaster multicast_broadcaster_default(void);

/// Registers an observer of a protocol: multicast_add() to the multicast of that name.
///
/// An observer that registers twice is notified twice, unless MULTICAST_UNIQUE says otherwise.
///
/// @param broadcaster  The broadcaster.
/// @param protocol     The name: 1 to 255 bytes and a NUL, of any encoding; copied.
/// @param observer     What to call; `function` not NULL.
/// @param options      How, or NULL for the defaults, as in multicast_add(). Where `queue` is none,
///                     the broadcaster's is used.
/// @param out          Receives the token; may be NULL. Set to zero when it fails.
/// @return As multicast_add(); MULTICAST_ERROR_INVALID_ARGUMENT also for a name that is NULL, empty
///         or too long; MULTICAST_ERROR_INVALID_HANDLE also when the broadcaster's queue is
///         destroyed.
///
/// Ownership: as multicast_add(): with `release` the context is owned from here on, failure
///            included.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      that of looking up the name and of multicast_add(); a new name takes a lock.
/// @since 1.0
MULTICAST_API multicast_status multicast_broadcaster_register(multicast_broadcaster broadcaster,
                                                              const char *protocol,
                                                              multicast_delegate observer,
                                                              const multicast_options *options,
                                                              multicast_token *out);

/// Unregisters an observer of a protocol, as multicast_remove() does.
///
/// @param broadcaster  The broadcaster.
/// @param protocol     The name, as in multicast_broadcaster_register().
/// @param observer     Function and context, as they were registered.
/// @return As multicast_remove(); MULTICAST_ERROR_NOT_FOUND also where nobody has registered under
///         the name; MULTICAST_ERROR_INVALID_ARGUMENT: not a name.
///
/// Ownership: gives the context back, by MULTICAST_OK or by `release`.
/// Threads:   any; waits for running calls of it on other threads.
/// Reentry:   any; inside a call of it MULTICAST_PENDING.
/// Cost:      that of looking up the name and of multicast_remove().
/// @since 1.0
MULTICAST_API multicast_status multicast_broadcaster_unregister(multicast_broadcaster broadcaster,
                                                                const char *protocol,
                                                                multicast_delegate observer);

/// Unregisters all observers of a protocol, as multicast_remove_all() does.
///
/// @param broadcaster  The broadcaster.
/// @param protocol     The name, as in multicast_broadcaster_register().
/// @return How many were removed (>= 0), 0 where nobody has registered under the name;
///         MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT: not a name;
///         MULTICAST_ERROR_SYSTEM.
///
/// Ownership: as multicast_remove_all().
/// Threads:   any; waits as multicast_remove().
/// Reentry:   any.
/// Cost:      that of looking up the name and of multicast_remove_all().
/// @since 1.0
MULTICAST_API int64_t multicast_broadcaster_unregister_all(multicast_broadcaster broadcaster,
                                                           const char *protocol);

/// Notifies the observers of a protocol: multicast_invoke() of the multicast of that name.
///
/// @param broadcaster  The broadcaster.
/// @param protocol     The name, as in multicast_broadcaster_register().
/// @param event        As in multicast_invoke().
/// @param payload      As in multicast_invoke().
/// @param size         As in multicast_invoke().
/// @return As multicast_invoke(), 0 where nobody has registered under the name;
///         MULTICAST_ERROR_INVALID_ARGUMENT also: not a name.
///
/// Ownership: borrows `payload` for the call.
/// Threads:   any; as multicast_invoke().
/// Reentry:   as multicast_invoke().
/// Cost:      that of looking up the name, which takes no lock, and of multicast_invoke().
/// @since 1.0
MULTICAST_API int64_t multicast_broadcaster_notify(multicast_broadcaster broadcaster,
                                                   const char *protocol, uint32_t event,
                                                   const void *payload, size_t size);

/// The multicast of a name, which is made where there is none yet: for hot paths, to look up once
/// and then invoke.
///
/// @param broadcaster  The broadcaster.
/// @param protocol     The name, as in multicast_broadcaster_register().
/// @return Its handle, the same each time; zero: not a broadcaster, not a name, or out of memory.
///
/// Ownership: the broadcaster's. Where a caller destroys it all the same, this returns the stale
///            handle until somebody registers under the name, which then gets a new one, also
///            where that fails for lack of memory.
/// Threads:   any.
/// Reentry:   any.
/// Cost:      O(length of the name), however many names there are; takes no lock but for a new one.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast multicast_broadcaster_multicast(
    multicast_broadcaster broadcaster, const char *protocol);


#ifdef __cplusplus
}
#endif

#endif
