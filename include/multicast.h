/* SPDX-License-Identifier: MIT */

#ifndef MULTICAST_H
#define MULTICAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
/// Marks every function that the library exports.
#define MULTICAST_API __attribute__((visibility("default")))
/// Marks every function whose result must be used.
#define MULTICAST_NODISCARD __attribute__((warn_unused_result))
#else
#define MULTICAST_API
#define MULTICAST_NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* libmulticast: one-to-many delegation for C and every language that can call C.
 *
 * A multicast holds any number of delegates. A delegate is a C function with a context pointer.
 * Invoking the multicast calls all of its delegates, by priority and then by order of addition.
 *
 *     static void on_event(void *context, uint32_t event, const void *payload, size_t size);
 *
 *     multicast m = multicast_create();
 *     multicast_delegate d = {on_event, my_context};
 *     multicast_add(m, d, NULL, NULL);
 *     multicast_invoke(m, 1, "hello", 5);
 *     if (multicast_remove_every(m, d) == MULTICAST_OK) free(my_context);
 *     multicast_destroy(m);
 *
 * The sections follow the order in which programs usually need them:
 *
 *      1. First steps                 create, add, invoke, remove, destroy
 *      2. Adding and removing many    several at once, by context, by position, with a time limit
 *      3. Queries                     finding, counting and listing delegates
 *      4. Visiting                    typed functions, return values, stopping early
 *      5. Tokens                      one registration: remove it, pause it
 *      6. Options                     priority, events, once, unique, release, weak contexts
 *      7. Lifetimes                   registrations that end together
 *      8. Queues                      calls that run later, on another thread
 *      9. Invocations with options    handing payloads over, waiting for queued calls
 *     10. Policies                    re-entry, sources on demand, replays, defaults for contexts
 *     11. Broadcasters                multicasts by name
 *     12. Transports                  names that processes and machines share
 *     13. Diagnostics                 what is registered, which thread waits, how long calls take
 *     14. The library                 version, status texts, allocator
 *
 * The following rules apply to every function. A function's comment adds details or states
 * exceptions. A comment that begins with "Like" and the name of a function inherits everything from
 * that function's comment, except where it says otherwise.
 *
 * Parameters   Comments omit parameters that have their usual meaning:
 *              - `target`: the multicast;
 *              - `token`: the registration;
 *              - `queue`, `lifetime`, `broadcaster`: the object that the function works on;
 *              - `delegate`: the function and context, as they were added;
 *              - `name`: as in multicast_broadcaster_register();
 *              - `options`: the options, or NULL for the defaults;
 *              - `timeout_ns`: the limit in nanoseconds on the monotonic clock; 0 means no waiting;
 *              - `out`: receives the result; the caller sets its `struct_size`.
 * Threads      Any thread may call any function at any time, concurrently with all other calls.
 * Callbacks    A callback is any function of the program that the library calls: a delegate, a
 *              visitor, an enumerator, a writer, or a function in a struct. The library holds none
 *              of its locks during a callback, so a callback may call any function of the library.
 *              A callback runs on the thread that called the library, unless its comment says
 *              otherwise. It must return normally, not by longjmp() or an exception. The rules for
 *              allocators are stricter: see multicast_allocator.
 * Ownership    The library borrows pointer arguments for the duration of the call, and copies
 *              structs, names and labels. An object belongs to the caller that created it until it
 *              is destroyed or ended. The rules for contexts and payloads follow below.
 * Handles      A handle is a struct that contains one 64-bit integer and is passed by value. On a
 *              64-bit processor, a language that cannot pass structs by value can pass the integer.
 *              Zero means "none". Any 64-bit value is safe in any call at any time. A null, stale
 *              or forged handle, or one of another kind, results in MULTICAST_ERROR_INVALID_HANDLE.
 * Results      A function that creates an object returns its handle. Zero means failure: the
 *              options are invalid, memory or the system's thread keys have run out, or 2^26
 *              objects of that kind exist. multicast_create_error() returns the reason. A function
 *              that counts returns the count or a negative status. A function that answers a yes/no
 *              question returns bool; for an invalid handle, it is false. Every other function
 *              returns a status. Counts, lists and answers are snapshots: another thread may change
 *              the state immediately afterwards.
 * Failure      A call that fails changes nothing, with two exceptions in which the operation has
 *              taken effect: MULTICAST_ERROR_TIMEOUT, and MULTICAST_ERROR_SYSTEM from a removal.
 *              If an add or an invocation fails, the library calls its `release`.
 * Structs      A struct that the caller fills starts with `struct_size`, which the caller must set
 *              to the struct's sizeof; 0 is invalid. All other fields default to zero, and reserved
 *              fields must be 0. The macro NAME_INIT initializes a struct with the defaults, and
 *              the function NAME_default() returns one. A caller that can use neither must set
 *              `struct_size` and clear the rest. Where a function takes a pointer to options, NULL
 *              means the defaults. A struct may be larger than the library's own version, up to
 *              1024 bytes, if the additional fields are 0. When the library fills in such a struct,
 *              it clears these fields. Nothing is written to `out` if its `struct_size` is wrong.
 * Cost         A function takes constant time unless its comment has a "Cost" line. In addition, a
 *              removal issues a memory barrier if another thread has invoked the multicast.
 *
 * The life of a delegate:
 *
 * Calls        A delegate runs on the thread that invokes the multicast, and on several threads at
 *              the same time if several threads invoke it. A delegate that was added with a queue
 *              runs on the thread that runs the queue, one call at a time.
 * Removal      A removal is a call to a function with remove, unregister, destroy or end in its
 *              name. Afterwards, no invocation calls the removed delegate, not even one that is
 *              already running. Queued calls to the delegate are not made. A call that has begun
 *              continues, so the removal waits until no other thread is in a call to a delegate
 *              that it has removed. Unless it removes by token or by position, it also waits for
 *              calls to matching delegates that were removed earlier. Calls to other delegates do
 *              not delay it. If the removing thread is itself in such a call, or if a thread in
 *              such a call is waiting in the library for the removing thread, the removal does not
 *              wait and returns MULTICAST_PENDING. The library cannot detect other waits: if the
 *              removing thread holds a lock that the delegate acquires, both threads wait forever.
 * Contexts     The library borrows a context until the removal has completed. When a removal
 *              returns MULTICAST_OK, the registration has ended: no thread is in a call to it, and
 *              no thread ever will be. The same delegate may be registered more than once, so the
 *              context then belongs to the caller again only if no other registration uses it. Free
 *              the context after multicast_remove_every(), or when its last registration has ended.
 * Release      If the options contain a `release` function, the registration owns its context.
 *              `release` runs exactly once for each registration, when that registration no longer
 *              uses the context. After MULTICAST_PENDING or MULTICAST_ERROR_TIMEOUT, it runs when
 *              the last call has returned. Other registrations may still use the same context. If
 *              several registrations share an object, let `release` drop one reference to the
 *              object. Or use no `release`, and free it after multicast_lifetime_end() has returned
 *              MULTICAST_OK (see the example 16_shared_context).
 * Counts       A removal that returns a count does not report MULTICAST_PENDING. If called outside
 *              all delegates, it returns when no call to the removed delegates is running. If
 *              called inside a delegate, it may return earlier. The variant with a time limit
 *              reports in `*out` whether calls are still running.
 * Timeouts     A removal waits for running calls, however long they take. A removal whose name ends
 *              in _within waits at most `timeout_ns`: 0 means no waiting, and MULTICAST_FOREVER
 *              means no limit. A removal whose name ends in _nowait does not wait. In every case,
 *              the registration is removed. If a call to it is still running, the status is
 *              MULTICAST_ERROR_TIMEOUT when the time is up, and MULTICAST_PENDING when waiting is
 *              not possible or the name ends in _nowait. Only MULTICAST_OK returns the context to
 *              the caller. In the struct multicast_invocation, however, a `timeout_ns` of 0 means
 *              no limit, because every field of a struct defaults to 0.
 * Payloads     The library borrows a payload during the invocation, and copies it for queued calls.
 *              An invocation with options can instead hand the payload over to the library, or
 *              specify a function that copies it: see section 9.
 *
 * The process:
 *
 * fork         The child may use the library, no matter what other threads of the parent were
 *              doing. In the child, all queues are empty; in the parent, they keep their calls.
 *              - Running calls: calls that other threads were making do not continue in the child.
 *              - Removals: if another thread had removed a delegate but not yet called its
 *                `release`, fork() calls it in the child, so `release` runs once in each process. A
 *                `release` that had begun, or was about to begin, does not run in the child.
 *              - Payloads: a payload that was handed over, or copied by `copy`, before the fork
 *                belongs to the parent. Its `release` runs only in the parent.
 *              - Listeners: if another thread was about to call `listeners_changed`, fork() calls
 *                it in the child. A call that had already begun is not repeated.
 *              - Replays: a replay that another thread had begun does not continue in the child.
 *              - Transports: the child inherits them. Detach those that only one process can use.
 *              - Broadcasters: if another thread was destroying a broadcaster, or unregistering
 *                from all of its names, only some of the names may be affected in the child.
 * exit         atexit handlers, destructors of static objects, and threads that outlive `main` may
 *              call the library. The library stays mapped after dlclose(). While the main thread is
 *              in exit(), including after `main` has returned, a removal on that thread does not
 *              wait for calls on other threads, because these calls may never return. If there are
 *              such calls, it returns MULTICAST_ERROR_TIMEOUT, and the program must not free
 *              anything. With musl, inside quick_exit(), or if another thread calls exit(),
 *              removals wait as usual, so use the variants with a time limit in these cases.
 * Thread end   A thread may end inside a delegate or visitor, by pthread_exit() or by cancellation.
 *              The library's destructor for thread-specific data then ends the call. It runs after
 *              the destructors of keys that were created earlier. A replay that the thread was
 *              making does not continue. If libc unwinds the stack, as glibc does, the cleanup
 *              handlers of the calling functions run first, while the thread is still in the call.
 * Copies       A handle is meaningless to another copy of the library, which rejects the handle or
 *              mistakes it for one of its own. A host and its plug-ins must therefore link the same
 *              shared library. Each copy that is loaded by dlopen() uses 24 bytes of the space that
 *              the loader reserves for thread-local variables. With glibc, about 100 copies fit.
 * Stack        A stack of 16 KB is enough for every function. Each level of nesting uses up to 750
 *              bytes, or 1,300 for an invocation with options, plus what the delegates need.
 *
 * Real time    Functions that threads with deadlines may call have a "Real time" line in their
 *              comment. "yes" means that the function acquires no lock, allocates no memory, makes
 *              no system call, and does not wait. "prepared" means the same for a thread that,
 *              before its deadlines begin, has called multicast_thread_prepare() and has invoked
 *              the multicast or run the queue once. The delegates must follow the same rules. A
 *              queue's lock is an exception: it is held only briefly, and a thread that finds it
 *              locked spins, and then sleeps. "yes" also applies to every inline function. All
 *              other functions acquire a lock and may allocate memory, make system calls, or wait.
 *
 * Not supported, because C offers no way to do it safely:
 *
 * - leaving a callback by longjmp() or by an exception;
 * - calls on one thread that do not return in last-in, first-out order. This can happen when a
 *   thread switches stacks, as with fibers and greenlets. After such a switch, a delegate may
 *   return only when all calls that its thread has begun since then have returned. C++20 coroutines
 *   are not affected, because a suspended coroutine returns to the library;
 * - calling the library from a signal handler, the child of vfork(), or an allocator's function;
 * - calling the library from a pthread_atfork() handler that was registered before it was loaded;
 * - ending a thread inside a `copy`, `listeners_changed`, watch or `release` function, or inside a
 *   function that one of these calls; ending a thread again while the destructors of its
 *   thread-specific data run;
 * - asynchronous cancellation of a thread that is inside the library.
 *
 * A library that was built with MULTICAST_INTERNAL_CHECKS detects most of these mistakes. It prints
 * a line that names the mistake, and ends the program.
 */

/* ---- 1. First steps -------------------------------------------------------------------------- */

/// A multicast: an ordered set of delegates that are invoked together.
/// @since 1.0
typedef struct multicast {
  uint64_t id;  ///< Opaque; 0 is none.
} multicast;

/// A registration: one delegate in one multicast, from its addition to the end of its removal.
/// @since 1.0
typedef struct multicast_token {
  uint64_t id;  ///< Opaque; 0 is none. Never reused for another registration.
} multicast_token;

/// The function of a delegate. The invocation waits until it returns.
///
/// @param context  The delegate's context, as it was added.
/// @param event    The event that the invoker passed, for example to select a method of a protocol.
/// @param payload  The invoker's payload, or the queue's copy of it, aligned to 16 bytes. Valid
///                 until the function returns.
/// @param size     The number of bytes at `payload`, as passed by the invoker.
/// Real time: yes, if the function itself follows the rules for threads with deadlines.
/// @since 1.0
typedef void (*multicast_function)(void *context, uint32_t event, const void *payload,
                                   size_t size);

/// A delegate: a function and its context. Two delegates are equal if both fields are equal.
/// @since 1.0
typedef struct multicast_delegate {
  multicast_function function;  ///< The function to call. Not NULL.
  void *context;                ///< Passed to `function`; may be NULL.
} multicast_delegate;

/// A result code. Zero and positive numbers mean success, and negative numbers mean an error. The
/// numbers are part of the ABI. Treat a negative number that is not listed here as a failure.
/// @since 1.0
typedef int32_t multicast_status;

/// The values of multicast_status.
/// @since 1.0
enum multicast_status_code {
  MULTICAST_OK = 0,  ///< Success. A removed registration has ended; equal ones may remain.
  /// The operation has taken effect, but a call that it should have waited for is still running, on
  /// this thread or on a thread that is waiting for this one. A function that never waits also
  /// returns this status for calls on other threads. After a removal, keep the context until
  /// `release` runs, or until multicast_ended_within() returns MULTICAST_OK. For a queue's thread
  /// and for watches, see multicast_queue_stop() and multicast_set_watch().
  MULTICAST_PENDING = 1,
  MULTICAST_ERROR_INVALID_HANDLE = -10,    ///< Null, stale, forged, or a handle of another kind.
  MULTICAST_ERROR_INVALID_ARGUMENT = -20,  ///< An invalid NULL, flag, size, name or reserved field.
  MULTICAST_ERROR_NOT_FOUND = -30,         ///< No such delegate or index.
  MULTICAST_ERROR_OUT_OF_MEMORY = -40,     ///< An allocation failed.
  MULTICAST_ERROR_LIMIT = -50,             ///< 256 nested levels, or 99 % of 2^26 objects exist.
  MULTICAST_ERROR_QUEUE_FULL = -60,        ///< A transport's buffer of notifications is full.
  MULTICAST_ERROR_TIMEOUT = -70,           ///< The time is up. A removal has taken effect anyway.
  MULTICAST_ERROR_STATE = -80,             ///< Not possible in the current state; see the function.
  /// The system refused a thread, a descriptor or a memory barrier, or something else that a
  /// transport needs. As the result of a removal, it means that the registration has been removed
  /// but the memory barrier failed, so it is unknown whether calls are still running. `release`
  /// then never runs, and the program must free nothing.
  MULTICAST_ERROR_SYSTEM = -90
};

typedef struct multicast_add_options multicast_add_options;  // how a delegate is added: section 6

/// Creates an empty multicast.
///
/// @return Its handle, or zero if the call failed, for example because it ran out of memory.
/// Cost:      O(1); memory is allocated for many objects at a time.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast multicast_create(void);

/// Adds a delegate after all others of the same priority. The same delegate may be added again.
/// Invocations that have already begun do not call the added delegate.
///
/// @param delegate  The function and context; `function` must not be NULL.
/// @param options   The options, or NULL for the defaults.
/// @param out       Receives the token, or zero on failure; may be NULL. One relaxed atomic store
///                  writes the token before the delegate can be called.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE: the multicast, or a lifetime or queue in
///         the options, does not exist; MULTICAST_ERROR_INVALID_ARGUMENT: no function, or invalid
///         options; MULTICAST_ERROR_OUT_OF_MEMORY; MULTICAST_ERROR_LIMIT, also if past invocations
///         would be replayed but 256 invocations are nested on this thread.
/// Ownership: the library borrows `context` until the removal has completed; with `release` the
///            library owns it from this call on. If the options cannot be read (bad `struct_size`,
///            non-zero additional field, unknown flag, `reserved` not 0), `release` does not run
///            and the context stays yours. After every other failure, `release` has run.
/// Threads:   calls the delegate if the multicast replays past invocations (see `replay`).
/// Cost:      O(1) amortised, with an occasional allocation, plus another for options. O(delegates)
///            if some delegates have a lower priority, or if MULTICAST_UNIQUE searches them.
/// @since 1.0
MULTICAST_API multicast_status multicast_add(multicast target, multicast_delegate delegate,
                                             const multicast_add_options *options,
                                             multicast_token *out);

/// Calls every delegate once, by priority and then by order of addition.
///
/// The invocation does not call delegates that are added while it runs, nor delegates that are
/// removed before their turn. Paused delegates, and delegates that do not want `event`, are
/// skipped. If a delegate has a queue, its call is queued; see section 8.
///
/// @param event    Passed to every delegate unchanged; selects the method of a protocol.
/// @param payload  Passed to every delegate unchanged; may be NULL if `size` is 0.
/// @param size     Bytes at `payload`. Queued calls receive a copy, or the pointer if `size` is 0.
/// @return The number of delegates that were called or whose call was queued (>= 0), even if the
///         multicast has been destroyed during the invocation. MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_INVALID_ARGUMENT: `size` without `payload`; MULTICAST_ERROR_LIMIT: 256
///         invocations are nested on this thread; MULTICAST_ERROR_OUT_OF_MEMORY: only at a thread's
///         first invocation. If the multicast has policies, also MULTICAST_ERROR_STATE: see
///         multicast_reentry and MULTICAST_VISIT_ONLY.
/// Threads:   threads that invoke the same multicast do not slow each other down. The invocation
///            may wait for room in a queue with MULTICAST_OVERFLOW_BLOCK.
/// Cost:      O(delegates); no allocation, no lock, no atomic read-modify-write. A thread's first
///            invocation allocates a record of 9 KB, which another thread can reuse after this
///            thread has ended. Invocations that are not nested touch only one page of the record.
/// Real time: prepared, unless a queued payload exceeds both 32 bytes and `payload_size`.
/// @since 1.0
MULTICAST_API int64_t multicast_invoke(multicast target, uint32_t event, const void *payload,
                                       size_t size);

/// Removes the first registration of this delegate, in order of invocation.
///
/// There is no variant with a time limit. Use multicast_token_remove_within() instead.
///
/// @return MULTICAST_OK: this registration has ended; equal registrations may remain and run.
///         MULTICAST_PENDING; MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_SYSTEM;
///         MULTICAST_ERROR_NOT_FOUND: there is no such registration. If an equal registration has
///         been removed earlier and a call to it is still running, the function waits for it.
/// Cost:      O(delegates) to find it. If 1,000 delegates or more are searched often, the multicast
///            builds an index of up to 48 bytes per delegate, with which a search takes O(1). The
///            removal itself takes O(1). Removals in quick succession issue no memory barriers, but
///            while they continue, each call to a delegate takes a few nanoseconds longer.
/// @since 1.0
MULTICAST_API multicast_status multicast_remove(multicast target, multicast_delegate delegate);

/// Destroys a multicast and removes all its delegates. The handle becomes stale immediately.
///
/// @return MULTICAST_OK: none of its delegates is running on another thread; MULTICAST_PENDING;
///         MULTICAST_ERROR_INVALID_HANDLE: it does not exist. If another thread is destroying it,
///         waits as that thread does before returning this status. MULTICAST_ERROR_SYSTEM.
/// Cost:      O(delegates).
/// @since 1.0
MULTICAST_API multicast_status multicast_destroy(multicast target);

/// Removes every registration of this delegate.
///
/// @return MULTICAST_OK: no equal delegate is registered or running; the context is yours.
///         MULTICAST_PENDING; MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_NOT_FOUND, after the
///         same wait as in multicast_remove(); MULTICAST_ERROR_SYSTEM.
/// Cost:      O(delegates).
/// @since 1.0
MULTICAST_API multicast_status multicast_remove_every(multicast target,
                                                      multicast_delegate delegate);

/// Initializes a handle to zero, which means none: `multicast_token token = MULTICAST_NONE;`
/// @since 1.0
#define MULTICAST_NONE {0}

/* ---- 2. Adding and removing many ------------------------------------------------------------- */

/// Adds several delegates in order with the same options: either all of them or none.
///
/// The delegates appear together: an invocation calls either all of them or none.
///
/// @param delegates  `count` delegates; may be NULL if `count` is 0.
/// @param count      The number of delegates; at most 2^26.
/// @param options    As in multicast_add().
/// @param out        Receives `count` tokens, all zero if the add fails. May be NULL. With
///                   MULTICAST_UNIQUE, only the last of several equal delegates stays registered,
///                   and the tokens of the others are stale. Not written if `count` is above 2^26.
/// @return Same as multicast_add(). MULTICAST_ERROR_LIMIT if `count` is above 2^26, in which case
///         the function uses none of its arguments.
/// Ownership: like multicast_add(). A failed call releases each context once, or none if `count` is
///            above 2^26.
/// Cost:      like `count` calls to multicast_add(), under one lock.
/// @since 1.0
MULTICAST_API multicast_status multicast_add_many(multicast target,
                                                  const multicast_delegate *delegates,
                                                  size_t count,
                                                  const multicast_add_options *options,
                                                  multicast_token *out);

/// For each given delegate in turn, removes the first live registration of an equal delegate.
///
/// @param delegates  `count` delegates; may be NULL if `count` is 0.
/// @param count      The number of delegates.
/// @return The number of removed delegates (>= 0); MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_INVALID_ARGUMENT; MULTICAST_ERROR_SYSTEM.
/// Cost:      O(count * delegates).
/// @since 1.0
MULTICAST_API int64_t multicast_remove_many(multicast target, const multicast_delegate *delegates,
                                            size_t count);

/// Removes every delegate that has this context, whatever its function.
///
/// @param context  The context; may be NULL.
/// @return The number of removed delegates (>= 0); MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_SYSTEM.
/// Cost:      O(delegates).
/// @since 1.0
MULTICAST_API int64_t multicast_remove_context(multicast target, void *context);

/// Removes the registration at a position in the order of invocation.
///
/// There is no variant with a time limit, because a position identifies a registration only until
/// the multicast changes. Use multicast_token_remove_within() instead.
///
/// @param index  The position in the order of multicast_list(), where 0 is the first.
/// @return Same as multicast_remove(); MULTICAST_ERROR_NOT_FOUND if `index` is too large.
/// Cost:      O(delegates).
/// @since 1.0
MULTICAST_API multicast_status multicast_remove_at(multicast target, size_t index);

/// Removes every delegate, but does not destroy the multicast.
///
/// @return The number of removed delegates (>= 0); MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_SYSTEM.
/// Cost:      O(delegates).
/// @since 1.0
MULTICAST_API int64_t multicast_remove_all(multicast target);

/// The value of a `timeout_ns` that means no limit.
/// @since 1.0
#define MULTICAST_FOREVER UINT64_MAX

/// Like multicast_remove_every(), but waits at most for a given time.
///
/// @return Same as multicast_remove_every(). MULTICAST_ERROR_TIMEOUT: all registrations have been
///         removed, but another thread is still calling one of them.
/// @since 1.0
MULTICAST_API multicast_status multicast_remove_every_within(multicast target,
                                                       multicast_delegate delegate,
                                                       uint64_t timeout_ns);

/// Like multicast_remove_many(), but with a time limit. Reports whether calls are still running.
///
/// @param out  Receives MULTICAST_OK: no call to a removed delegate is running; MULTICAST_PENDING
///             or MULTICAST_ERROR_TIMEOUT: a call is still running, and `release` runs when the
///             last one has returned; or the status of the function if it fails. May be NULL.
/// @since 1.0
MULTICAST_API int64_t multicast_remove_many_within(multicast target,
                                                   const multicast_delegate *delegates,
                                                   size_t count, uint64_t timeout_ns,
                                                   multicast_status *out);

/// Like multicast_remove_context(), but with a time limit. Reports whether calls are still running.
///
/// @param out  As in multicast_remove_many_within().
/// @since 1.0
MULTICAST_API int64_t multicast_remove_context_within(multicast target, void *context,
                                                      uint64_t timeout_ns, multicast_status *out);

/// Like multicast_remove_all(), but with a time limit. Reports whether calls are still running.
///
/// @param out  As in multicast_remove_many_within().
/// @since 1.0
MULTICAST_API int64_t multicast_remove_all_within(multicast target, uint64_t timeout_ns,
                                                  multicast_status *out);

/// Like multicast_destroy(), but waits at most for a given time.
///
/// @return Same as multicast_destroy(). MULTICAST_ERROR_TIMEOUT: this or another thread has
///         destroyed the multicast, but a call is still running on another thread.
/// @since 1.0
MULTICAST_API multicast_status multicast_destroy_within(multicast target, uint64_t timeout_ns);

/* ---- 3. Queries ------------------------------------------------------------------------------ */

/// Returns whether a handle belongs to an existing multicast.
///
/// @param target  Any value; it need not be a valid handle.
/// @return true while it exists.
/// Real time: yes.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD bool multicast_is_valid(multicast target);

/// Returns the number of delegates, including paused ones. A delegate with a dead context is
/// counted until a call or multicast_prune() detects that the context is dead.
///
/// @return The count (>= 0); MULTICAST_ERROR_INVALID_HANDLE.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD int64_t multicast_count(multicast target);

/// Returns whether an equal delegate is registered, even if it is paused or its context is dead.
///
/// @param delegate  The function and context to search for.
/// @return true if one is registered; false if none is, or if the handle is not valid.
/// Cost:      like the search in multicast_remove().
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD bool multicast_contains(multicast target,
                                                          multicast_delegate delegate);

/// Returns the address of the flag that multicast_has_listeners() reads inline, in about 1 ns.
///
///     const uint32_t *flag = multicast_listener_flag(m);  // once
///     if (multicast_has_listeners(flag)) {                // each time
///       prepare(&payload);
///       multicast_invoke(m, 1, &payload, sizeof payload);
///     }
///
/// The flag is not 0 while the multicast has delegates, as counted by multicast_count(), or keeps
/// invocations for later delegates (`replay`, MULTICAST_REENTRY_DEFER, MULTICAST_REENTRY_LATEST).
/// Otherwise it is 0. The flag stays mapped after multicast_destroy(), but is then meaningless.
///
/// @return The address of the flag, which is always the same for a multicast. Never NULL: for an
///         invalid handle, it is the address of a flag that is always 0.
/// Ownership: the library owns the flag; do not write to it.
/// Real time: yes.
/// @since 1.1
MULTICAST_API MULTICAST_NODISCARD const uint32_t *multicast_listener_flag(multicast target);

/// Returns whether a multicast has listeners, by reading the flag without calling the library.
///
/// @param flag  From multicast_listener_flag(); not NULL.
/// @return false: an invocation would call no delegate and would not be kept for later delegates.
/// @since 1.1
static inline bool multicast_has_listeners(const uint32_t *flag) {
#if defined(__GNUC__) || defined(__clang__)
  return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
#else
  return *(const volatile uint32_t *)flag != 0;
#endif
}

/// Copies the delegates that multicast_count() counts, in order of invocation.
///
/// @param out       Receives up to `capacity` delegates; may be NULL if `capacity` is 0.
/// @param capacity  The number of delegates that fit at `out`.
/// @return The number of delegates (>= 0), even if it is more than `capacity`;
///         MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT.
/// Ownership: the copies belong to the caller; the ownership of the contexts does not change.
/// Cost:      O(delegates).
/// @since 1.0
MULTICAST_API int64_t multicast_list(multicast target, multicast_delegate *out, size_t capacity);

/// Removes the delegates whose contexts are dead. Calls each delegate's `lock`, even if the
/// delegate is paused or has a queue. If the result is not NULL, calls `unlock`, too.
///
/// `lock`, `unlock` and `release` run on the calling thread.
///
/// @return The number of removed delegates (>= 0); MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_LIMIT and MULTICAST_ERROR_OUT_OF_MEMORY as in multicast_invoke().
/// Cost:      like multicast_invoke().
/// @since 1.0
MULTICAST_API int64_t multicast_prune(multicast target);

/// Returns the reason why the last creation on this thread returned zero.
///
/// @return MULTICAST_OK if the last creation succeeded or nothing has been created; otherwise the
///         reason: MULTICAST_ERROR_INVALID_ARGUMENT, MULTICAST_ERROR_INVALID_HANDLE,
///         MULTICAST_ERROR_OUT_OF_MEMORY (also if the system had no thread key left), or
///         MULTICAST_ERROR_LIMIT.
/// Real time: yes.
/// @since 1.0
MULTICAST_API multicast_status multicast_create_error(void);

/* ---- 4. Visiting ----------------------------------------------------------------------------- */

/// The function that multicast_visit() calls for each delegate. The visitor usually calls the
/// delegate's own typed function. The visit waits until the visitor returns.
///
/// @param context   The `context` that was passed to multicast_visit().
/// @param delegate  A copy of the delegate, valid until this call returns. If the delegate was
///                  added with `lock`, its `context` is the strong pointer that `lock` returned.
/// @return true to continue, false to stop.
/// Real time: yes, if the function itself follows the rules for threads with deadlines.
/// @since 1.0
typedef bool (*multicast_visitor)(void *context, const multicast_delegate *delegate);

/// Passes every delegate to a visitor, which calls the delegate's own typed function.
///
/// Visits are for protocols with several methods, for return values, and for stopping early. The
/// order of the delegates, and the treatment of delegates that are added or removed during the
/// visit, are the same as in multicast_invoke(). A removal waits until the visitor has returned.
/// Paused delegates are skipped, and `events` is ignored. A delegate with a queue is passed
/// immediately, like any other. A delegate with MULTICAST_ONCE is removed when it is passed.
///
/// @param visitor  Called for each delegate; not NULL. Returning false stops the visit.
/// @param context  Passed to `visitor`; may be NULL.
/// @return The number of delegates that were passed (>= 0); MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_INVALID_ARGUMENT; MULTICAST_ERROR_LIMIT and
///         MULTICAST_ERROR_OUT_OF_MEMORY as in multicast_invoke().
/// Cost:      like multicast_invoke().
/// Real time: prepared.
/// @since 1.0
MULTICAST_API int64_t multicast_visit(multicast target, multicast_visitor visitor, void *context);

/// Visits all delegates or none: if the visitor refuses one, the earlier visits are undone.
///
/// This is for operations that are prepared first and may be rolled back. When `visitor` returns
/// false for a delegate, `undo` is called for the delegates visited before it, in reverse order.
/// Delegates that have since been removed are skipped, so a delegate with MULTICAST_ONCE, which is
/// removed when it is passed, is never undone. `undo` is also called for delegates that have since
/// been paused. If the thread ends inside `visitor` or `undo`, no further visit is undone.
///
/// @param visitor  As in multicast_visit(); not NULL.
/// @param undo     Called like `visitor`; not NULL. Its result is ignored.
/// @param context  Passed to `visitor` and to `undo`; may be NULL.
/// @return The number of delegates (>= 0) if all were visited, or 0 if one was refused.
///         MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT; MULTICAST_ERROR_LIMIT
///         as in multicast_invoke(); MULTICAST_ERROR_OUT_OF_MEMORY: no delegate was visited.
/// Cost:      like multicast_visit(), plus one allocation.
/// @since 1.1
MULTICAST_API int64_t multicast_visit_undo(multicast target, multicast_visitor visitor,
                                           multicast_visitor undo, void *context);

/* ---- 5. Tokens ------------------------------------------------------------------------------- */

/// Returns whether a registration is live.
///
/// @param token  Any value; it need not be a valid handle.
/// @return true from the addition to the removal; with MULTICAST_ONCE, until the only call begins.
/// Real time: yes.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD bool multicast_token_is_valid(multicast_token token);

/// Removes a registration.
///
/// @return MULTICAST_OK: this registration has ended; equal ones may remain. MULTICAST_PENDING:
///         removed, by this call or earlier, but a call to it is still running and waiting is not
///         possible. MULTICAST_ERROR_INVALID_HANDLE: it had already been removed; the function has
///         waited for calls to it on other threads. MULTICAST_ERROR_SYSTEM.
/// Cost:      O(1) amortised.
/// @since 1.0
MULTICAST_API multicast_status multicast_token_remove(multicast_token token);

/// Removes a registration without waiting.
///
/// If the registration has already been removed, the function only reports whether a call to it is
/// still running. For multicasts, queues and lifetimes, use multicast_ended_within().
///
/// @return MULTICAST_OK: no call to it is running; MULTICAST_PENDING: removed, by this call or
///         earlier, but a call to it is still running on this or another thread;
///         MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_SYSTEM.
/// Cost:      O(1) amortised.
/// @since 1.0
MULTICAST_API multicast_status multicast_token_remove_nowait(multicast_token token);

/// Like multicast_token_remove(), but waits at most for a given time.
///
/// @return Same as multicast_token_remove(). MULTICAST_ERROR_TIMEOUT: removed, by this call or
///         earlier, but a call to it is still running on another thread.
/// @since 1.0
MULTICAST_API multicast_status multicast_token_remove_within(multicast_token token,
                                                             uint64_t timeout_ns);

/// Pauses a delegate: invocations skip it until it is resumed. No effect if it is already paused.
///
/// Queued calls to the delegate are still made. The function does not wait for running calls.
///
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE.
/// Threads:   invocations that begin after the pause, on this thread or on a thread that has
///            synchronized with it, do not call the delegate. Other invocations may still call it
///            for a short time.
/// @since 1.0
MULTICAST_API multicast_status multicast_token_pause(multicast_token token);

/// Resumes a paused delegate, in its old position. No effect if the delegate is not paused.
///
/// A running invocation calls the delegate unless it has already passed the delegate's position.
///
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE.
/// @since 1.0
MULTICAST_API multicast_status multicast_token_resume(multicast_token token);

/// Returns the registration whose delegate this thread is calling; in nested calls, the innermost.
///
/// A delegate can use this function to remove or pause itself without knowing its token.
///
/// @return The token, which may already have been removed; zero outside all delegates and visitors.
/// Reentry:   if a `release` runs inside a call to a delegate, the result is that delegate's
///            registration. If it runs because the last call to its own delegate has ended, the
///            result is the registration of the enclosing call, or zero.
/// Real time: yes.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast_token multicast_token_current(void);

/// Calls the delegate of one registration, as multicast_invoke() does for each delegate.
///
/// A removal waits for this call as usual. If the delegate has a queue, the call is queued.
///
/// @param event    Passed to the delegate, which is not called if it does not want this event.
/// @param payload  Passed to the delegate unchanged; may be NULL if `size` is 0.
/// @param size     Bytes at `payload`. Queued calls receive a copy, or the pointer if `size` is 0.
/// @return 1: the delegate was called or its call was queued. 0: it is being removed, is paused,
///         does not want the event, or has a dead context; its queue refused the call; or there was
///         no memory to queue the payload. MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_INVALID_ARGUMENT: `size` without `payload`; MULTICAST_ERROR_LIMIT and
///         MULTICAST_ERROR_OUT_OF_MEMORY as in multicast_invoke(); MULTICAST_ERROR_STATE: see
///         MULTICAST_VISIT_ONLY.
/// Threads:   may wait for room in the delegate's queue, like multicast_invoke().
/// @since 1.1
MULTICAST_API int64_t multicast_token_invoke(multicast_token token, uint32_t event,
                                             const void *payload, size_t size);

/// Passes the delegate of one registration to a visitor, as multicast_visit() does for each. The
/// visitor runs on the calling thread, even if the delegate has a queue.
///
/// @param visitor  Called for the delegate; not NULL. Its result is ignored.
/// @param context  Passed to `visitor`; may be NULL.
/// @return 1: the delegate was passed. 0: it is being removed, is paused, or has a dead context.
///         MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT; MULTICAST_ERROR_LIMIT
///         and MULTICAST_ERROR_OUT_OF_MEMORY as in multicast_invoke().
/// @since 1.1
MULTICAST_API int64_t multicast_token_visit(multicast_token token, multicast_visitor visitor,
                                            void *context);

/// Lists the registrations whose delegates this thread is calling, the outermost first.
///
/// The list shows how a call came about, for example when a delegate has invoked its own multicast.
///
/// @param out       Receives up to `capacity` tokens, which may already have been removed; may be
///                  NULL if `capacity` is 0.
/// @param capacity  The number of tokens that fit at `out`. 256 are always enough.
/// @return The number of registrations (>= 0), even if it is more than `capacity`. The last token
///         is multicast_token_current(). MULTICAST_ERROR_INVALID_ARGUMENT.
/// Cost:      O(calls).
/// Real time: yes.
/// @since 1.1
MULTICAST_API int64_t multicast_call_stack(multicast_token *out, size_t capacity);

/* ---- 6. Options ------------------------------------------------------------------------------ */

/// A lifetime. When it ends, all registrations under it are removed. See section 7.
/// @since 1.0
typedef struct multicast_lifetime {
  uint64_t id;  ///< Opaque; 0 is none.
} multicast_lifetime;

/// A queue. Calls wait in it until the program's loop or its own thread makes them. See section 8.
/// @since 1.0
typedef struct multicast_queue {
  uint64_t id;  ///< Opaque; 0 is none.
} multicast_queue;

/// `flags`: the delegate is called at most once, and is removed when this call begins. While a call
/// to it is waiting in a queue, no further call to it is queued.
/// @since 1.0
#define MULTICAST_ONCE 0x1u

/// `flags`: equal delegates are removed first, without waiting for running calls to them. The new
/// delegate is added after all others of the same priority.
/// @since 1.0
#define MULTICAST_UNIQUE 0x2u

/// `flags`: at most one call to this delegate is queued. A newer call replaces the event and
/// payload of the queued call, which keeps its place. The flag has no effect without a queue. With
/// MULTICAST_ONCE, the single call receives the event that is newest when the call is made.
/// @since 1.0
#define MULTICAST_LATEST 0x4u

/// `flags`: nothing is replayed to this delegate (see `replay` of multicast_create_options).
/// @since 1.1
#define MULTICAST_NO_REPLAY 0x8u

/// The options for adding a delegate.
/// @since 1.0
struct multicast_add_options {
  uint32_t struct_size;  ///< sizeof(multicast_add_options).
  /// MULTICAST_ONCE, MULTICAST_UNIQUE, MULTICAST_LATEST, MULTICAST_NO_REPLAY, combined by |.
  uint32_t flags;
  /// Delegates are called by descending priority, and with equal priorities in order of addition.
  int32_t priority;
  uint32_t reserved;  ///< Must be 0.
  /// If bit i is set, the delegate wants event i (default: 0, all events). This is for protocols
  /// with optional methods. Events 64 and above are always delivered. To receive no events, set
  /// only the bit of an unused event.
  uint64_t events;
  /// When this lifetime ends, the registration is removed (default: none, no lifetime removes it).
  multicast_lifetime lifetime;
  /// The queue for calls to the delegate (default: none, they run on the invoking thread).
  /// Destroying this queue removes the registration. Only multicast_broadcaster_register() uses the
  /// queue of a broadcaster; an add to one of the broadcaster's multicasts does not.
  multicast_queue queue;
  /// Releases the context (default NULL). Runs exactly once for each registration, when the
  /// registration no longer uses the context: after its last call has returned, or after a failed
  /// add (see multicast_add()). Other registrations may still be using the same context. If several
  /// registrations share an object, this function must drop a reference instead of freeing the
  /// object. Runs on the removing thread, or on the thread whose call was the last to return.
  void (*release)(void *context);
  /// Locks a context that is a weak reference to a reference-counted object: a weak_ptr, a
  /// GWeakRef, or a weak reference in Swift or Python (default NULL: the delegate receives
  /// `context`). Called before each call, on the same thread. Returns the strong pointer that the
  /// delegate receives as its context. NULL means that the context is dead: the registration is
  /// removed immediately, and `release` runs. Set both `lock` and `unlock`, or neither.
  void *(*lock)(void *context);
  /// Called with the result of `lock` after each call to the delegate, even if the delegate has
  /// removed itself or destroyed the multicast. Not called if the thread ends inside the call.
  void (*unlock)(void *strong);
  /// A name of up to 63 bytes, such as MULTICAST_HERE, that tells people which code registered the
  /// delegate. multicast_dump() and multicast_describe() show it.
  const char *label;
};

/// The current source location, as a label: `options.label = MULTICAST_HERE;` gives "file.c:41".
/// If the compiler lacks __FILE_NAME__, the label contains the path that the compiler was given.
/// @since 1.1
#ifdef __FILE_NAME__
#define MULTICAST_HERE __FILE_NAME__ ":" MULTICAST_TEXT_OF(__LINE__)
#else
#define MULTICAST_HERE __FILE__ ":" MULTICAST_TEXT_OF(__LINE__)
#endif
/// Turns its argument into a string after expanding macros in it. Used by MULTICAST_HERE.
/// @since 1.1
#define MULTICAST_TEXT_OF(number) MULTICAST_TEXT_OF_IT(number)
/// Turns its argument into a string without expanding macros. Used by MULTICAST_TEXT_OF.
/// @since 1.1
#define MULTICAST_TEXT_OF_IT(number) #number

/// Initializes a static or local struct with all defaults.
/// @since 1.0
#define MULTICAST_ADD_OPTIONS_INIT \
  {sizeof(multicast_add_options), 0, 0, 0, 0, {0}, {0}, NULL, NULL, NULL, NULL}

/// Returns a struct with all defaults, and with `struct_size` set.
/// @return The options, by value.
/// @since 1.0
static inline multicast_add_options multicast_add_options_default(void) {
  multicast_add_options options = MULTICAST_ADD_OPTIONS_INIT;
  return options;
}

/// The properties of a registration, for multicast_token_get_registration() and enumerators.
/// @since 1.0
typedef struct multicast_registration {
  uint32_t struct_size;   ///< sizeof(multicast_registration).
  uint32_t flags;         ///< MULTICAST_ONCE and MULTICAST_LATEST, as in the options of the add.
  multicast_token token;  ///< Its token.
  multicast target;       ///< Its multicast.
  /// Its delegate. `context` is the context as it was added, even if there is a `lock`.
  multicast_delegate delegate;
  /// In multicast_enumerate(): the strong pointer that `lock` returned. Otherwise NULL.
  void *strong;
  int32_t priority;             ///< Its priority.
  bool is_paused;               ///< Whether it is paused.
  uint8_t reserved[3];          ///< 0.
  uint64_t events;              ///< Its events; 0: all.
  multicast_lifetime lifetime;  ///< Its lifetime, or none.
  multicast_queue queue;        ///< Its queue, or none.
  /// The label with which the delegate was added, or NULL. Valid until the registration has ended.
  const char *label;
} multicast_registration;

/// Initializes a struct for multicast_token_get_registration(): all zero, with `struct_size` set.
/// @since 1.0
#define MULTICAST_REGISTRATION_INIT                                                             \
  {sizeof(multicast_registration), 0, {0}, {0}, {NULL, NULL}, NULL, 0, false, {0, 0, 0}, \
   0, {0}, {0}, NULL}

/// Returns a struct for multicast_token_get_registration(): all zero, with `struct_size` set.
/// @return The struct, by value.
/// @since 1.0
static inline multicast_registration multicast_registration_default(void) {
  multicast_registration registration = MULTICAST_REGISTRATION_INIT;
  return registration;
}

/// Reads a consistent snapshot of all properties of a registration.
///
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT: `out` is
///         NULL or has a wrong `struct_size`.
/// @since 1.0
MULTICAST_API multicast_status multicast_token_get_registration(multicast_token token,
                                                   multicast_registration *out);

/// Called by multicast_enumerate() for each registration. The enumeration waits until it returns.
///
/// @param context       The `context` that was passed to multicast_enumerate().
/// @param registration  The registration, valid until this call returns.
/// @return true to continue, false to stop.
/// @since 1.1
typedef bool (*multicast_enumerator)(void *context, const multicast_registration *registration);

/// Passes every registration to an enumerator, in the order of invocation. No delegate is called.
///
/// Paused delegates and delegates with a queue are included. A delegate with MULTICAST_ONCE is not
/// removed. If a delegate has a `lock`, its context stays locked while the enumerator runs, and
/// `strong` is the result of `lock`. If the context is dead, the registration is removed instead of
/// being passed. Registrations that are added during the enumeration, or removed before their turn,
/// are not passed. A removal waits until the enumerator has returned. Inside the enumerator,
/// multicast_token_current() returns the registration being passed.
///
/// @param enumerator  Called for each registration; not NULL. Returning false ends the enumeration.
/// @param context     Passed to `enumerator`; may be NULL.
/// @return The number of registrations that were passed (>= 0); MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_INVALID_ARGUMENT; MULTICAST_ERROR_LIMIT and
///         MULTICAST_ERROR_OUT_OF_MEMORY as in multicast_invoke().
/// Cost:      O(delegates), with a short lock for each.
/// @since 1.1
MULTICAST_API int64_t multicast_enumerate(multicast target, multicast_enumerator enumerator,
                                          void *context);

/* ---- 7. Lifetimes ---------------------------------------------------------------------------- */

/// Creates a lifetime, for the `lifetime` of multicast_add_options.
///
/// Use one lifetime for each plug-in, window or session whose registrations should end together.
///
/// @return Its handle, or zero if the call failed, for example because it ran out of memory.
/// Cost:      O(1); memory is allocated for many objects at a time.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast_lifetime multicast_lifetime_create(void);

/// Ends a lifetime: removes every registration under it, from every multicast.
///
/// After MULTICAST_OK, no call to a delegate that was ever added under the lifetime is running or
/// queued, and every `release` of these delegates has returned. This includes delegates that were
/// removed earlier. The code of all of them may then be unloaded. The handle becomes stale
/// immediately, so an add with this lifetime fails with MULTICAST_ERROR_INVALID_HANDLE.
///
/// @return MULTICAST_OK; MULTICAST_PENDING: a call to such a delegate or its `release` is running,
///         and waiting was not possible; nothing is left to wait for once the last `release` has
///         returned; MULTICAST_ERROR_INVALID_HANDLE, after the same wait if another thread has just
///         ended the lifetime; MULTICAST_ERROR_SYSTEM.
/// Reentry:   inside a `release`, returns MULTICAST_PENDING if the operation that runs this
///            `release` has also removed a registration of the lifetime.
/// Cost:      O(registrations under it), with one memory barrier for all multicasts.
/// @since 1.0
MULTICAST_API multicast_status multicast_lifetime_end(multicast_lifetime lifetime);

/// Like multicast_lifetime_end(), but waits at most for a given time.
///
/// @return Same as multicast_lifetime_end(). MULTICAST_ERROR_TIMEOUT: ended, but a call or a
///         `release` is still running on another thread; nothing is left to wait for once the last
///         `release` has returned.
/// @since 1.0
MULTICAST_API multicast_status multicast_lifetime_end_within(multicast_lifetime lifetime,
                                                             uint64_t timeout_ns);

/// Returns whether a handle belongs to a lifetime that has not ended.
///
/// @param lifetime  Any value; it need not be a valid handle.
/// @return true until it ends.
/// Real time: yes.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD bool multicast_lifetime_is_valid(multicast_lifetime lifetime);

/// Returns the number of registrations under a lifetime, counted as in multicast_count().
///
/// @return The count (>= 0); MULTICAST_ERROR_INVALID_HANDLE.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD int64_t multicast_lifetime_count(multicast_lifetime lifetime);

/// Waits, up to a time limit, until an object that has been ended is no longer in use:
///
/// - a lifetime is in use while one of its delegates or their `release` functions is running;
/// - a multicast or a token is in use while a delegate that belongs to it is running;
/// - a queue is in use while a call that was queued in it, or its `wake` function, is running.
///
/// This is for a thread that did not end the object, or could not wait when ending it. For example,
/// a delegate that ends its own lifetime receives MULTICAST_PENDING. The host then calls this
/// function, on another thread or after that call, to find out whether dlclose() is safe. If the
/// function that ended the object returned MULTICAST_OK, there is nothing left to wait for.
///
/// @param handle  The `id` of a multicast_lifetime, multicast, multicast_token or
///                multicast_queue. For any other value, the result is an error or MULTICAST_OK.
/// @return MULTICAST_OK: the object is no longer in use, and never will be. MULTICAST_PENDING: it
///         is in use on this thread or on a thread that is waiting for this one. If only a
///         lifetime's `release` functions are running, this is also the result inside any other
///         call or `release`. MULTICAST_ERROR_TIMEOUT: the time is up. MULTICAST_ERROR_STATE: the
///         object has not been ended. MULTICAST_ERROR_INVALID_HANDLE: `handle` was never a handle
///         of these kinds. MULTICAST_ERROR_SYSTEM: as in multicast_remove().
/// Threads:   waits like a removal, so hold no lock that the calls acquire.
/// Cost:      O(threads), and for a lifetime the work that multicast_lifetime_end() left undone.
/// @since 1.1
MULTICAST_API multicast_status multicast_ended_within(uint64_t handle, uint64_t timeout_ns);

/* ---- 8. Queues ------------------------------------------------------------------------------- */

/// What a queue does with a new call when it is full.
/// @since 1.0
typedef uint32_t multicast_overflow;

/// The values of multicast_overflow.
/// @since 1.0
enum multicast_overflow_code {
  /// The new call is refused, and counts as `refused` (default).
  MULTICAST_OVERFLOW_REFUSE = 0,
  /// The call that has waited the longest is dropped, and counts as `dropped`.
  MULTICAST_OVERFLOW_DROP_OLDEST = 1,
  /// The invocation waits for room. The call is refused if the wait could never end, because the
  /// invoking thread ran the queue last, or because the thread that ran it last is waiting for the
  /// invoking thread. If no thread has run the queue yet, the call is refused if a thread that
  /// might run it is waiting for the invoking thread.
  ///
  /// While an invocation inside a delegate waits for room, a removal of that delegate does not wait
  /// if the removing thread may be the one that runs the full queue. The removal then returns
  /// MULTICAST_PENDING (or its count), and `release` runs when the delegate has returned.
  MULTICAST_OVERFLOW_BLOCK = 2
};

/// The options for creating a queue.
/// @since 1.0
typedef struct multicast_queue_options {
  uint32_t struct_size;  ///< sizeof(multicast_queue_options).
  uint32_t flags;        ///< Must be 0.
  /// The number of calls that fit, 1 to 2^24 (default: 0, which means 1024). Each call uses 64 to
  /// 192 bytes, which are allocated when the queue is created.
  size_t capacity;
  /// What to do with a new call when the queue is full (default: MULTICAST_OVERFLOW_REFUSE).
  multicast_overflow overflow;
  uint32_t reserved;  ///< Must be 0.
  /// The name of the queue's own thread, for debuggers and `top` (default NULL: the name of the
  /// thread that starts it). The system keeps the first 15 bytes.
  const char *thread_name;
  /// The stack size of the queue's own thread, in bytes, at least 16384 (default: 0, the system's).
  size_t stack_size;
  /// Wakes a loop that does not poll a descriptor, for example by calling uv_async_send(),
  /// g_main_context_wakeup() or call_soon_threadsafe(). Called on the invoking thread when a call
  /// is queued, and on the thread that ran the queue when a run ends while calls are still waiting.
  /// Not called again until the loop's thread calls multicast_queue_run(), so a delegate that runs
  /// its own loop must call multicast_queue_run() first. multicast_queue_destroy() waits for a call
  /// to `wake` on another thread, and `wake` is never called afterwards.
  /// @since 1.1
  void (*wake)(void *context);
  /// Passed to `wake`.
  /// @since 1.1
  void *wake_context;
  /// For threads with deadlines: the size of the payloads, at most 2^24 bytes, for which the queue
  /// reserves memory when it is created (default: 0, none; payloads of up to 32 bytes need none).
  /// The queue reserves memory for `capacity` payloads, and for 8 more that calls use while they
  /// are running or being queued. Each payload needs 64 additional bytes, and all pages are written
  /// to in advance. Queueing a payload of at most this size and making its call then allocates no
  /// memory. A larger payload, or one for which no reserved memory is left, needs an allocation. An
  /// invocation's calls in several queues share one copy, in the memory of the first queue.
  /// @since 1.1
  size_t payload_size;
  /// A name of up to 63 bytes that multicast_dump() shows to people.
  /// @since 1.1
  const char *label;
} multicast_queue_options;

/// Initializes a static or local struct with all defaults.
/// @since 1.0
#define MULTICAST_QUEUE_OPTIONS_INIT \
  {sizeof(multicast_queue_options), 0, 0, MULTICAST_OVERFLOW_REFUSE, 0, NULL, 0, NULL, \
   NULL, 0, NULL}

/// Returns a struct with all defaults, and with `struct_size` set.
/// @return The options, by value.
/// @since 1.0
static inline multicast_queue_options multicast_queue_options_default(void) {
  multicast_queue_options options = MULTICAST_QUEUE_OPTIONS_INIT;
  return options;
}

/// Creates a queue, for the `queue` of multicast_add_options.
///
/// An invocation does not call a delegate that has a queue. Instead, it puts the call into the
/// queue, with a copy of the payload. The call waits there until the queue is run, either by the
/// program's own loop with multicast_queue_run(), or by the queue's own thread (see
/// multicast_queue_start()). Calls run one at a time, in the order in which they were queued.
///
/// @return Its handle, or zero if the call failed, for example because it ran out of memory.
/// Threads:   an invocation that finds the queue full may wait: see MULTICAST_OVERFLOW_BLOCK.
/// Cost:      O(1); allocates memory for `capacity` calls, but does not touch it until it is used.
///            O(capacity) with `payload_size`. Queueing a call acquires the queue's lock. A payload
///            of more than 32 bytes that is not covered by `payload_size` needs one allocation,
///            which all queued calls of the invocation share.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast_queue
multicast_queue_create(const multicast_queue_options *options);

/// Destroys a queue and removes every registration that uses it.
///
/// Queued calls are not made, and their payloads are freed. A thread that is running the queue
/// makes no further calls, and the queue's own thread ends. Threads that are waiting for a call or
/// for room stop waiting. The handle becomes stale immediately, and the descriptor is closed.
///
/// @return MULTICAST_OK: no delegate that used the queue, and no `wake` of the queue, is running on
///         another thread; MULTICAST_PENDING: such a call, a `release` or the `wake` is running,
///         and waiting for it was not possible; MULTICAST_ERROR_INVALID_HANDLE, after the same wait
///         if another thread is destroying it; MULTICAST_ERROR_SYSTEM.
/// Threads:   also waits for a `wake` on another thread.
/// Reentry:   inside the queue's `wake`, returns MULTICAST_PENDING.
/// Cost:      O(registrations and queued calls).
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_destroy(multicast_queue queue);

/// Like multicast_queue_destroy(), but waits at most for a given time.
///
/// @return Same as multicast_queue_destroy(). MULTICAST_ERROR_TIMEOUT: the queue has been
///         destroyed, but a call, a `release` or the `wake` is still running on another thread. If
///         the queue has no `wake`, nothing is left to wait for once the last `release` has
///         returned. A second call, after this one has returned, returns
///         MULTICAST_ERROR_INVALID_HANDLE without waiting.
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_destroy_within(multicast_queue queue,
                                                              uint64_t timeout_ns);

/// Returns whether a handle belongs to an existing queue.
///
/// @param queue  Any value; it need not be a valid handle.
/// @return true while it exists.
/// Real time: yes.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD bool multicast_queue_is_valid(multicast_queue queue);

/// Makes queued calls on this thread, the oldest first.
///
/// Stops early if the queue becomes empty, is destroyed, or is given its own thread. A delegate
/// that the queue calls may call this function, as a modal loop does, to make the next calls.
///
/// A thread that runs the queue counts from then on as the one that ran it last: see
/// MULTICAST_OVERFLOW_BLOCK and MULTICAST_WAIT. A run that finds the queue empty does not count.
///
/// @param max  The maximum number of calls. 0 means the number of calls that are waiting when the
///             function starts. Calls queued during the run also count towards it.
/// @return The number of calls made (>= 0); MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_STATE:
///         another thread is running the queue, or the queue has its own thread, and this is not
///         that thread; MULTICAST_ERROR_LIMIT: 256 invocations and runs are nested on this thread;
///         MULTICAST_ERROR_OUT_OF_MEMORY: only at a thread's first invocation or run.
/// Ownership: frees the queue's copy of the payload after each call.
/// Threads:   only one thread at a time runs a queue.
/// Cost:      O(calls made), with at most a short lock for each; no allocation.
/// Real time: prepared, unless the payload of a call exceeds both 32 bytes and `payload_size`.
/// @since 1.0
MULTICAST_API int64_t multicast_queue_run(multicast_queue queue, size_t max);

/// Drops the calls that are waiting in the queue, and frees their payloads. The calls count as
/// `dropped`. Invocations that are waiting for room stop waiting.
///
/// @return The number of dropped calls (>= 0); MULTICAST_ERROR_INVALID_HANDLE.
/// Cost:      O(calls dropped).
/// @since 1.0
MULTICAST_API int64_t multicast_queue_clear(multicast_queue queue);

/// Waits until a call is queued. Does not poll.
///
/// @return The number of queued calls (> 0); MULTICAST_ERROR_TIMEOUT: none was queued;
///         MULTICAST_ERROR_INVALID_HANDLE: not a queue, or destroyed during the wait.
/// Threads:   several threads may wait, and all are woken. Another thread may run the calls first.
/// Reentry:   a delegate that calls this function delays the other calls in its own queue.
/// @since 1.0
MULTICAST_API int64_t multicast_queue_wait(multicast_queue queue, uint64_t timeout_ns);

/// Returns a descriptor that is readable while calls are queued, for poll, GLib, libuv or asyncio.
///
/// When it is readable, call multicast_queue_run(). If the loop uses edge-triggered polling, run
/// the queue until it is empty; other loops need only one run. The first call to this function
/// creates the descriptor. From then on, the queue makes a system call whenever it becomes empty or
/// stops being empty. The child of a fork has its own descriptor with the same number, but the
/// epoll sets that were created before the fork are still shared with the parent.
///
/// @return The descriptor, which is always the same; -1: not a queue, or no descriptor is left.
/// Ownership: the queue owns it. Only poll it; do not read, write or close it. Stop polling it
///            before multicast_queue_destroy(), which closes it.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD int multicast_queue_fd(multicast_queue queue);

/// Starts a thread for the queue. The thread makes the calls as they are queued.
///
/// The thread has the name and stack size from the queue's options. It blocks signals that concern
/// the whole program, such as SIGINT and SIGTERM, but neither fault signals nor real-time signals.
/// If another thread is running the queue, the new thread starts to make calls when that run ends.
/// The thread does not exist in the child of a fork.
///
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_STATE: the queue already
///         has a thread, which may be stopping; MULTICAST_ERROR_SYSTEM: the system has no threads
///         left; MULTICAST_ERROR_OUT_OF_MEMORY.
/// Ownership: the queue owns the thread until multicast_queue_stop() or multicast_queue_destroy().
/// Cost:      the cost of creating a thread.
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_start(multicast_queue queue);

/// Ends the queue's thread after the call that it is currently making. Queued calls stay queued.
///
/// The function neither stops nor waits for another thread that is inside multicast_queue_run().
///
/// @return MULTICAST_OK: the thread makes no more calls; MULTICAST_PENDING: the thread ends when
///         its call has returned, and waiting for that was not possible;
///         MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_STATE: the queue has no thread.
/// Threads:   waits for the call that the queue's thread is making.
/// Reentry:   inside a call that the queue's thread makes, returns MULTICAST_PENDING.
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_stop(multicast_queue queue);

/// The statistics of a queue since its creation, as numbers of calls.
///
/// `queued` is always the sum of `pending`, `delivered`, `dropped`, `cancelled` and `coalesced`.
/// Every call that an invocation tries to queue counts as `queued` or as `refused`, unless the
/// delegate has MULTICAST_ONCE and already has a call in the queue.
/// @since 1.0
typedef struct multicast_queue_stats {
  uint32_t struct_size;  ///< sizeof(multicast_queue_stats).
  uint32_t flags;        ///< 0.
  uint64_t pending;      ///< Calls that are in the queue now.
  uint64_t queued;       ///< Calls that were accepted.
  uint64_t delivered;    ///< Calls that were executed, including the call that is running.
  /// Calls that were not accepted, because there was no room or no memory for the payload, because
  /// waiting for room could never have ended, or because the delegate was removed during the wait.
  uint64_t refused;
  /// Calls that were dropped to make room for newer calls, by multicast_queue_clear(), or, in the
  /// child of a fork, because they belong to the parent.
  uint64_t dropped;
  uint64_t cancelled;  ///< Calls whose delegate was removed, or whose context was dead.
  uint64_t coalesced;  ///< Calls replaced by a newer call to the same delegate: MULTICAST_LATEST.
  uint64_t highest;    ///< The highest number of calls that have ever been in the queue at once.
} multicast_queue_stats;

/// Initializes a struct for multicast_queue_get_stats(): all zero, with `struct_size` set.
/// @since 1.0
#define MULTICAST_QUEUE_STATS_INIT \
  {sizeof(multicast_queue_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0}

/// Returns a struct for multicast_queue_get_stats(): all zero, with `struct_size` set.
/// @return The statistics, by value.
/// @since 1.0
static inline multicast_queue_stats multicast_queue_stats_default(void) {
  multicast_queue_stats stats = MULTICAST_QUEUE_STATS_INIT;
  return stats;
}

/// Reads a consistent snapshot of all statistics of a queue.
///
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT: `out` is
///         NULL or has a wrong `struct_size`.
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_get_stats(multicast_queue queue,
                                                         multicast_queue_stats *out);

/* ---- 9. Invocations with options ------------------------------------------------------------- */

/// `flags`: the invocation waits until its queued calls have been made, dropped or cancelled.
///
/// The invocation cannot deadlock with itself. The library assumes that a queue is run by its own
/// thread or, if it has none, by the thread that ran it last. If that thread is the invoking
/// thread, or is waiting for the invoking thread, the invocation does not wait for the call, which
/// stays queued and counts as `unfinished`. If no thread has run the queue yet, or the thread that
/// ran it last has ended, the invocation waits until another thread runs the queue. It does not
/// wait if a thread that might run the queue is waiting for the invoking thread.
/// @since 1.1
#define MULTICAST_WAIT 0x1u

/// The options of multicast_invoke_with(). The defaults are those of multicast_invoke().
///
/// To hand the payload over, set only `release`. Nothing is copied, and direct and queued calls
/// receive `payload` itself. If the payload is not plain bytes, or has other owners, set `copy` and
/// `release`. Direct calls then receive `payload`, and queued calls share the result of `copy`.
/// @since 1.1
typedef struct multicast_invocation {
  uint32_t struct_size;  ///< sizeof(multicast_invocation).
  uint32_t flags;        ///< MULTICAST_WAIT, or 0.
  uint32_t event;        ///< As in multicast_invoke().
  uint32_t reserved;     ///< Must be 0.
  /// As in multicast_invoke(). With `copy` or `release`, any value is valid, including NULL with
  /// any `size`. A broadcaster's transport reads `size` bytes from `payload`.
  const void *payload;
  size_t size;  ///< Bytes at `payload`. With `copy` or `release`, it is only passed to delegates.
  /// Creates the payload that queued calls and replays receive, together with the unchanged `size`.
  /// Called at most once, on the invoking thread: before the first call is queued, or immediately
  /// if the multicast replays invocations. A NULL result means that there is no memory. Calls that
  /// would be queued are then refused; if the multicast replays invocations, the invocation fails.
  const void *(*copy)(const void *payload, size_t size);
  /// With `copy`, called exactly once with the result of `copy`. Without `copy`, called exactly
  /// once with `payload`, which the library owns from this call on. It runs when all calls that
  /// share the payload have returned or been abandoned, and no replay can still need the payload.
  /// It runs on the thread that ends the last of these uses. If no call was queued, it runs before
  /// the invocation returns. It also runs if the invocation fails.
  void (*release)(const void *payload, size_t size);
  /// With MULTICAST_WAIT: the time limit in nanoseconds on the monotonic clock, from the beginning
  /// of the invocation (default: 0, no limit, unlike the `timeout_ns` of functions). It limits
  /// neither calls on the invoking thread nor waits for room in a queue (MULTICAST_OVERFLOW_BLOCK).
  uint64_t timeout_ns;
} multicast_invocation;

/// Initializes a static or local struct with all defaults.
/// @since 1.1
#define MULTICAST_INVOCATION_INIT \
  {sizeof(multicast_invocation), 0, 0, 0, NULL, 0, NULL, NULL, 0}

/// Returns a struct with all defaults, and with `struct_size` set.
/// @return The struct, by value.
/// @since 1.1
static inline multicast_invocation multicast_invocation_default(void) {
  multicast_invocation invocation = MULTICAST_INVOCATION_INIT;
  return invocation;
}

/// The outcome of an invocation's calls.
/// @since 1.1
typedef struct multicast_outcome {
  uint32_t struct_size;  ///< sizeof(multicast_outcome).
  uint32_t flags;        ///< 0.
  uint64_t called;       ///< Delegates that were called on the invoking thread.
  uint64_t queued;       ///< Calls that were queued.
  /// Calls that were not queued, because the queue refused them or there was no memory for the
  /// payload. Delegates that were removed before their call was queued do not count, nor do
  /// delegates with MULTICAST_ONCE that already had a call in the queue.
  uint64_t refused;
  /// With MULTICAST_WAIT: queued calls that were made, even if their thread ended; otherwise 0.
  uint64_t finished;
  /// With MULTICAST_WAIT: queued calls that are still waiting or running. Otherwise 0. All other
  /// queued calls were dropped, cancelled, or replaced by a newer call.
  uint64_t unfinished;
} multicast_outcome;

/// Initializes a struct for multicast_invoke_with(): all zero, with `struct_size` set.
/// @since 1.1
#define MULTICAST_OUTCOME_INIT {sizeof(multicast_outcome), 0, 0, 0, 0, 0, 0}

/// Returns a struct for multicast_invoke_with(): all zero, with `struct_size` set.
/// @return The struct, by value.
/// @since 1.1
static inline multicast_outcome multicast_outcome_default(void) {
  multicast_outcome outcome = MULTICAST_OUTCOME_INIT;
  return outcome;
}

/// Invokes a multicast as multicast_invoke() does. Can also hand the payload over, wait for the
/// queued calls, and report the outcome of all calls.
///
/// @param how  The options; not NULL.
/// @param out  Receives the outcome, all zero if the invocation fails. May be NULL. Not written
///             after MULTICAST_ERROR_INVALID_ARGUMENT.
/// @return Same as multicast_invoke(). MULTICAST_ERROR_INVALID_ARGUMENT: `how` or `out` cannot be
///         read, or there is a `size` without `payload`, `copy` or `release`.
///         MULTICAST_ERROR_OUT_OF_MEMORY, also if there is no memory to take over the payload: no
///         delegate was called. MULTICAST_ERROR_TIMEOUT: the time limit of MULTICAST_WAIT has
///         passed; all calls were made or queued, and `unfinished` calls stay queued.
/// Ownership: see `release`. If `how` cannot be read (NULL, bad `struct_size`, non-zero additional
///            field, unknown flag, `reserved` not 0), `release` does not run and the payload stays
///            yours. After every other failure, `release` has run.
/// Threads:   with MULTICAST_WAIT, waits for the threads that run the queues, so do not hold a lock
///            that a delegate acquires. If this thread ends in a delegate, the payload is released.
/// Reentry:   inside a call from a queue, calls that are put into that queue count as `unfinished`.
/// Cost:      like multicast_invoke(). One small allocation for a payload that is handed over or
///            copied by `copy`; with MULTICAST_WAIT, also one for each series of consecutive calls
///            to the same queue.
/// @since 1.1
MULTICAST_API int64_t multicast_invoke_with(multicast target, const multicast_invocation *how,
                                            multicast_outcome *out);

/* ---- 10. Policies ---------------------------------------------------------------------------- */

/// What happens to a nested invocation: one that begins, directly or through other multicasts,
/// inside a call that the same multicast is making on the same thread.
///
/// This policy applies to nested calls to multicast_invoke() and multicast_invoke_with(). Visits,
/// enumerations and calls by token are always made immediately, but an invocation inside one of
/// them, or inside a `lock`, `unlock`, `copy` or `wake` that they call, is nested. A call that a
/// queue executes is not an outer call, because the invocation that queued it has ended. The policy
/// takes precedence over the limit of 256 levels: a refused or deferred invocation needs no level.
/// @since 1.1
typedef uint32_t multicast_reentry;

/// The values of multicast_reentry.
/// @since 1.1
enum multicast_reentry_code {
  /// The nested invocation is made immediately, inside the outer one (default).
  MULTICAST_REENTRY_RECURSE = 0,
  /// The nested invocation fails with MULTICAST_ERROR_STATE and calls nothing.
  /// multicast_call_stack() shows the outer calls.
  MULTICAST_REENTRY_REFUSE = 1,
  /// The nested invocation is made when the thread has left the outermost invocation or visit of
  /// the multicast. Several deferred invocations are made in order. They are not made if the thread
  /// ends inside the outermost invocation, or if the multicast has been destroyed.
  ///
  /// A deferred invocation returns 0. multicast_invoke_with() counts it as `queued`. MULTICAST_WAIT
  /// does not wait for it, so it then also counts as `unfinished`. Its payload is copied unless it
  /// is handed over; if `size` is 0, delegates receive the pointer itself. While 65536 invocations
  /// are deferred, another invocation fails with MULTICAST_ERROR_LIMIT. If there is no memory to
  /// defer an invocation, it fails with MULTICAST_ERROR_OUT_OF_MEMORY.
  MULTICAST_REENTRY_DEFER = 2,
  MULTICAST_REENTRY_LATEST = 3  ///< Like MULTICAST_REENTRY_DEFER, but only the newest is made.
};

/// `flags`: the delegates are only for visitors, and cannot be called as a multicast_function.
/// multicast_invoke(), multicast_invoke_with() and multicast_token_invoke() fail with
/// MULTICAST_ERROR_STATE.
/// @since 1.1
#define MULTICAST_VISIT_ONLY 0x1u

/// The options for creating a multicast. The defaults are those of multicast_create().
/// @since 1.1
typedef struct multicast_create_options {
  uint32_t struct_size;  ///< sizeof(multicast_create_options).
  /// What happens to nested invocations (default: MULTICAST_REENTRY_RECURSE).
  multicast_reentry reentry;
  const char *label;  ///< A name for diagnostics. The first 63 bytes are kept.
  /// The number of past invocations, by multicast_invoke() and multicast_invoke_with(), that are
  /// replayed to a delegate when it is added (default: 0, none). A delegate receives each
  /// invocation once, either replayed or live, whatever other threads add and invoke at the same
  /// time. It receives the replays first, in the order in which the invocations began.
  ///
  /// Replays are ordinary calls. They are made on the adding thread, before the add returns, or are
  /// queued if the delegate has a queue. Removing the delegate stops its replays. Invocations that
  /// begin during the replays, even inside a replay, are replayed last, whereas other delegates
  /// receive them immediately. With MULTICAST_REENTRY_DEFER, an invocation inside a replay is made
  /// after the replays, for all delegates. If several delegates are added together, all of them
  /// receive each replay before the next one is made.
  ///
  /// For each invocation, the multicast keeps `size` bytes, or the payload that `copy` returned or
  /// that was handed over, until newer invocations replace it or the multicast is destroyed. During
  /// an add, invocations that the delegate has not yet received are also kept. If their number
  /// exceeds `replay` by 64, a further invocation waits until the delegate has received them or is
  /// removed. Invocations inside a replay, or on a thread for which the add waits, do not wait.
  /// Therefore, a replay must not wait, for example on a semaphore, for a thread that invokes. An
  /// invocation that cannot be kept fails with MULTICAST_ERROR_OUT_OF_MEMORY.
  uint32_t replay;
  uint32_t flags;  ///< MULTICAST_VISIT_ONLY, or 0.
  void *context;   ///< Passed to `listeners_changed` and `release`.
  /// Called when the first delegate has been added (`has_listeners` is true), and when the last one
  /// has been removed, for whatever reason. This is for a source that runs only while it has
  /// listeners. Called on the thread that made the change; a removal calls it before waiting. Never
  /// runs on two threads at the same time. `has_listeners` alternates, starting with true, and the
  /// last call reports the current state. If two threads make changes at the same time, one of them
  /// may report both changes, or neither if they cancel each other out. Replacing the only delegate
  /// with MULTICAST_UNIQUE is not a change. The function may add and remove delegates; the library
  /// then calls it again after it has returned.
  void (*listeners_changed)(void *context, multicast target, bool has_listeners);
  /// Called exactly once, after multicast_destroy(), when no call to `listeners_changed` is
  /// running. Not called if the creation fails.
  void (*release)(void *context);
  /// The default `lock` and `unlock` for delegates whose options set none. Use them if all contexts
  /// are of one kind, as in a language binding. They need no extra memory. Set both or neither.
  void *(*lock_context)(void *context);
  void (*unlock_context)(void *strong);  ///< See `lock_context`.
  /// The default `release` for delegates whose options set none. Unlike a `release` in the options,
  /// it does not run after a failed add, because the context then still belongs to the caller.
  void (*release_context)(void *context);
} multicast_create_options;

/// Initializes a static or local struct with all defaults.
/// @since 1.1
#define MULTICAST_CREATE_OPTIONS_INIT                                                            \
  {sizeof(multicast_create_options), MULTICAST_REENTRY_RECURSE, NULL, 0, 0, NULL, NULL, \
   NULL, NULL, NULL, NULL}

/// Returns a struct with all defaults, and with `struct_size` set.
/// @return The options, by value.
/// @since 1.1
static inline multicast_create_options multicast_create_options_default(void) {
  multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  return options;
}

/// Creates an empty multicast with policies. It can be used like any other multicast.
///
/// @return Its handle, or zero for invalid options or for the same reasons as multicast_create().
/// Cost:      O(1); memory is allocated for many objects at a time. An invocation takes a few
///            nanoseconds longer than without policies. With `replay`, it also needs a lock and one
///            or two allocations, and an add needs one allocation and takes O(replay). Multicasts
///            without policies do not become slower.
/// @since 1.1
MULTICAST_API MULTICAST_NODISCARD multicast
multicast_create_with(const multicast_create_options *options);

/* ---- 11. Broadcasters ------------------------------------------------------------------------ */

/// A set of multicasts that are found by name: observers and notifiers need to share only the name.
/// @since 1.0
typedef struct multicast_broadcaster {
  uint64_t id;  ///< Opaque; 0 is none.
} multicast_broadcaster;

/// The options for creating a broadcaster.
/// @since 1.0
typedef struct multicast_broadcaster_options {
  uint32_t struct_size;  ///< sizeof(multicast_broadcaster_options).
  uint32_t flags;        ///< Must be 0.
  /// The queue for observers whose options set none, usually the queue of the program's main loop
  /// (default: none, these observers are called on the notifying thread). The caller still owns the
  /// queue. Once it has been destroyed, such observers can no longer register.
  multicast_queue queue;
} multicast_broadcaster_options;

/// Initializes a static or local struct with all defaults.
/// @since 1.0
#define MULTICAST_BROADCASTER_OPTIONS_INIT \
  {sizeof(multicast_broadcaster_options), 0, {0}}

/// Returns a struct with all defaults, and with `struct_size` set.
/// @return The options, by value.
/// @since 1.0
static inline multicast_broadcaster_options multicast_broadcaster_options_default(void) {
  multicast_broadcaster_options options = MULTICAST_BROADCASTER_OPTIONS_INIT;
  return options;
}

/// Creates a broadcaster, which creates a multicast for each name when the name is first used.
///
/// Observers register under a name, from any thread, and are notified by that name. Observers of
/// different names are independent. Names are compared byte by byte. A name exists until the
/// broadcaster is destroyed.
///
/// @return Its handle, or zero if the call failed, for example because it ran out of memory.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast_broadcaster
multicast_broadcaster_create(const multicast_broadcaster_options *options);

/// Destroys a broadcaster and all its multicasts, each as multicast_destroy() does.
///
/// @return MULTICAST_OK: none of its observers is running on another thread; MULTICAST_PENDING;
///         MULTICAST_ERROR_INVALID_HANDLE, after the same wait if another thread is destroying it;
///         MULTICAST_ERROR_STATE: it is multicast_broadcaster_default(), which cannot be destroyed;
///         MULTICAST_ERROR_SYSTEM.
/// Cost:      O(names and observers).
/// @since 1.0
MULTICAST_API multicast_status multicast_broadcaster_destroy(multicast_broadcaster broadcaster);

/// Like multicast_broadcaster_destroy(), but waits at most for a given time.
///
/// @return Same as multicast_broadcaster_destroy(). MULTICAST_ERROR_TIMEOUT: destroyed, but a call
///         to an observer is still running on another thread. A second call, after this one has
///         returned, returns MULTICAST_ERROR_INVALID_HANDLE without waiting.
/// Threads:   also waits briefly, even beyond the limit, for threads that are looking up names.
/// @since 1.0
MULTICAST_API multicast_status multicast_broadcaster_destroy_within(
    multicast_broadcaster broadcaster, uint64_t timeout_ns);

/// Returns whether a handle belongs to an existing broadcaster.
///
/// @param broadcaster  Any value; it need not be a valid handle.
/// @return true while it exists.
/// Real time: yes.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD bool multicast_broadcaster_is_valid(
    multicast_broadcaster broadcaster);

/// Returns the broadcaster of the process, for code that shares no other broadcaster. It has no
/// queue and is never destroyed.
///
/// @return Its handle, which is always the same, or zero if the first use ran out of memory.
/// Ownership: the library owns it.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast_broadcaster multicast_broadcaster_default(void);

/// Registers an observer of a name: adds it to the name's multicast, as multicast_add() does.
///
/// An observer that registers twice is notified twice, unless it uses MULTICAST_UNIQUE.
///
/// @param name      1 to 255 bytes and a NUL, in any encoding.
/// @param observer  The function and context; `function` must not be NULL.
/// @param options   The options, or NULL for the defaults, as in multicast_add(). If `queue` is
///                  none, the broadcaster's queue is used.
/// @param out       Receives the token; zero if the call fails. May be NULL.
/// @return Same as multicast_add(). MULTICAST_ERROR_INVALID_ARGUMENT also for a name that is NULL,
///         empty or too long; MULTICAST_ERROR_INVALID_HANDLE also if the broadcaster's queue no
///         longer exists; MULTICAST_ERROR_LIMIT also if the broadcaster has 14,680,064 names.
/// Ownership: like multicast_add(): with `release`, the library owns the context from this call on,
///            even if the call fails.
/// Cost:      like multicast_add(), plus a look-up of the name; a new name needs a lock.
/// @since 1.0
MULTICAST_API multicast_status multicast_broadcaster_register(multicast_broadcaster broadcaster,
                                                              const char *name,
                                                              multicast_delegate observer,
                                                              const multicast_add_options *options,
                                                              multicast_token *out);

/// Like multicast_broadcaster_register(), but for all names that begin with a prefix.
///
/// One registration covers all of these names, including names that are created later. A
/// notification or multicast_broadcaster_deliver() calls the observers of the name first, and then
/// the observers of its prefixes, from the longest prefix to the shortest. Each group is invoked
/// after the calls of the previous group have ended; with MULTICAST_WAIT, this includes queued
/// calls. A group therefore includes observers that were added by calls to an earlier group.
/// Observers of prefixes obtain the name from multicast_current_name(). Invoking the multicast of a
/// name does not call observers of prefixes.
///
/// @param prefix  0 to 254 bytes and a NUL, copied; "" is a prefix of every name. No byte has a
///                special meaning. Each prefix counts as one of the broadcaster's names.
/// Cost:      like multicast_broadcaster_register(). Once there are prefixes, each notification
///            looks up one more name for each distinct prefix length, and queueing a call to a
///            prefix's observer allocates memory.
/// @since 1.1
MULTICAST_API multicast_status multicast_broadcaster_register_prefix(
    multicast_broadcaster broadcaster, const char *prefix, multicast_delegate observer,
    const multicast_add_options *options, multicast_token *out);

/// Returns the notified name inside a call to an observer of a prefix, even if the call was queued.
/// If calls are nested, the innermost call counts.
///
/// @return The name, valid until the observer returns; NULL in other calls and outside all calls.
/// Real time: yes.
/// @since 1.1
MULTICAST_API MULTICAST_NODISCARD const char *multicast_current_name(void);

/// Registers several observers of a name, as multicast_add_many() does: either all of them or none.
///
/// @param observers  `count` delegates; may be NULL if `count` is 0.
/// @param count      The number of delegates; at most 2^26.
/// @param options    As in multicast_broadcaster_register().
/// @param out        As in multicast_add_many().
/// @return Same as multicast_add_many() and multicast_broadcaster_register().
/// Ownership: like multicast_add_many().
/// Cost:      like multicast_add_many(), plus a look-up of the name; a new name needs a lock.
/// @since 1.0
MULTICAST_API multicast_status multicast_broadcaster_register_many(
    multicast_broadcaster broadcaster, const char *name, const multicast_delegate *observers,
    size_t count, const multicast_add_options *options, multicast_token *out);

/// Unregisters an observer of a name, as multicast_remove() does.
///
/// @param observer  The function and context, as they were registered.
/// @return Same as multicast_remove(). MULTICAST_ERROR_NOT_FOUND also if the name has never been
///         registered; MULTICAST_ERROR_INVALID_ARGUMENT: not a name.
/// Cost:      like multicast_remove(), plus a look-up of the name.
/// @since 1.0
MULTICAST_API multicast_status multicast_broadcaster_unregister(multicast_broadcaster broadcaster,
                                                                const char *name,
                                                                multicast_delegate observer);

/// Unregisters all observers of a name, as multicast_remove_all() does.
///
/// @return The number of removed observers (>= 0), 0 if the name has never been registered;
///         MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT: not a name;
///         MULTICAST_ERROR_SYSTEM.
/// Cost:      like multicast_remove_all(), plus a look-up of the name.
/// @since 1.0
MULTICAST_API int64_t multicast_broadcaster_unregister_all(multicast_broadcaster broadcaster,
                                                           const char *name);

/// Unregisters all observers of a name with this context, as multicast_remove_context() does.
///
/// @param context  The context; may be NULL.
/// @return Same as multicast_broadcaster_unregister_all().
/// Cost:      like multicast_remove_context(), plus a look-up of the name.
/// @since 1.0
MULTICAST_API int64_t multicast_broadcaster_unregister_context(multicast_broadcaster broadcaster,
                                                               const char *name,
                                                               void *context);

/// Notifies the observers of a name: invokes the name's multicast, as multicast_invoke() does. If
/// the broadcaster has a transport, the transport then publishes the notification.
///
/// @param event    As in multicast_invoke().
/// @param payload  As in multicast_invoke().
/// @param size     As in multicast_invoke().
/// @return Same as multicast_invoke(); 0 if the name has never been registered.
///         MULTICAST_ERROR_INVALID_ARGUMENT also if `name` is not a name. If `publish` fails, the
///         result is its negative status, but the observers of this process have been notified.
///         After any other error, nothing is published.
/// Threads:   like multicast_invoke().
/// Cost:      like multicast_invoke(), plus a look-up of the name, which acquires no lock. A
///            transport adds one call to `publish`, which is the only cost without observers.
/// Real time: prepared, like multicast_invoke(), but not with a transport.
/// @since 1.0
MULTICAST_API int64_t multicast_broadcaster_notify(multicast_broadcaster broadcaster,
                                                   const char *name, uint32_t event,
                                                   const void *payload, size_t size);

/// Notifies as multicast_broadcaster_notify() does. Can also hand the payload over, wait for the
/// queued calls, and report the outcome of all calls: see multicast_invoke_with().
///
/// @param how  The options; not NULL.
/// @param out  As in multicast_invoke_with().
/// @return Same as multicast_broadcaster_notify() and multicast_invoke_with(). After
///         MULTICAST_ERROR_TIMEOUT, the notification has been published. A failure of `publish`
///         does not change the outcome.
/// Ownership: like multicast_invoke_with(). If the name has no observers, the payload is released
///            after the transport, if there is one, has published it.
/// Threads:   like multicast_invoke_with().
/// Cost:      like multicast_broadcaster_notify() and multicast_invoke_with().
/// @since 1.1
MULTICAST_API int64_t multicast_broadcaster_notify_with(multicast_broadcaster broadcaster,
                                                        const char *name,
                                                        const multicast_invocation *how,
                                                        multicast_outcome *out);

/// Returns the multicast of a name, and creates it if necessary. On hot paths, look the multicast
/// up once, and then invoke it. An add to this multicast does not use the broadcaster's queue.
/// Invoking it calls only observers of this process, and no transport publishes the invocation.
///
/// @return Its handle, which is always the same. Zero: not a broadcaster, not a name, out of
///         memory, or there are already 14,680,064 names in this broadcaster or 2^26 multicasts.
/// Ownership: the broadcaster owns it. If a caller destroys it nevertheless, this function returns
///            the stale handle until the next registration under the name. That registration
///            creates a new multicast, even if the registration itself fails for lack of memory.
/// Cost:      O(length of the name), however many names there are; only a new name needs a lock.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast multicast_broadcaster_multicast(
    multicast_broadcaster broadcaster, const char *name);

/* ---- 12. Transports -------------------------------------------------------------------------- */

/// The functions that connect the names of a broadcaster with other processes and machines. The
/// program or a library for a message broker provides them. libmulticast itself has no network
/// code. examples-c/14_transport.c contains a complete transport.
///
/// multicast_broadcaster_notify() calls the observers of this process, and then `publish`. The
/// transport passes notifications that it receives to multicast_broadcaster_deliver(), except those
/// that it published itself. Do not trust received data: check its size and where the name ends.
///
/// Each function may be called on any thread, and on several threads at the same time, but
/// `subscribe` and `unsubscribe` are called one at a time for each name. multicast_token_current()
/// and multicast_call_stack() ignore these calls: inside them, they return the same as outside.
/// @since 1.1
typedef struct multicast_transport {
  uint32_t struct_size;  ///< sizeof(multicast_transport).
  uint32_t flags;        ///< 0 or MULTICAST_TRANSPORT_PREFIXES.
  void *context;         ///< Passed to all functions.
  /// Sends one notification. Called on the notifying thread. `name` and `payload` are valid only
  /// during the call; `payload` is the notifier's pointer, and NULL only if `size` is 0.
  /// multicast_broadcaster_notify() returns the result if it is negative. Not NULL.
  multicast_status (*publish)(void *context, const char *name, uint32_t event,
                              const void *payload, size_t size);
  /// Called when the first observer of a name is registered. Called on the registering thread
  /// before the registration returns or, if another thread is already calling `subscribe` or
  /// `unsubscribe` for the same name, on that thread. If two changes happen at the same time, one
  /// thread may report both, or neither if they cancel each other out. The last call reports the
  /// current state. A negative status means that the subscription failed. If the name still has
  /// observers, `subscribe` is called again, at the latest when another observer of the name is
  /// registered or unregistered. The same applies if `subscribe` could not be called, because 256
  /// calls are nested or the thread has no memory for its first call.
  multicast_status (*subscribe)(void *context, const char *name);
  /// Called when the last observer of a subscribed name is gone, for whatever reason: it has been
  /// unregistered, its lifetime or queue has ended, or its context is dead. Called on the same
  /// threads as `subscribe`; a removal calls `unsubscribe` before it waits. Not called when the
  /// transport is detached, because `release` ends all subscriptions.
  void (*unsubscribe)(void *context, const char *name);
  /// Called exactly once, when the transport has been detached and none of its functions is running
  /// any more. Called on the detaching thread, or on the thread whose call was the last to return.
  /// No function of the transport is called afterwards.
  void (*release)(void *context);
} multicast_transport;

/// A flag of a transport: `subscribe` and `unsubscribe` are also called for prefixes. In these
/// calls `name` is empty, and the prefix starts at `name + 1`. The transport must deliver each
/// notification whose name begins with the prefix only once, even if several subscriptions match.
/// Without the flag, an observer of a prefix receives a notification from another process only if
/// the name itself also has an observer.
/// @since 1.1
#define MULTICAST_TRANSPORT_PREFIXES 0x1u

/// Initializes a static or local struct without functions.
/// @since 1.1
#define MULTICAST_TRANSPORT_INIT \
  {sizeof(multicast_transport), 0, NULL, NULL, NULL, NULL, NULL}

/// Returns a struct without functions, but with `struct_size` set.
/// @return The transport, by value.
/// @since 1.1
static inline multicast_transport multicast_transport_default(void) {
  multicast_transport transport = MULTICAST_TRANSPORT_INIT;
  return transport;
}

/// Attaches a transport to a broadcaster, and detaches the previous transport if there is one.
///
/// Before this function returns, it calls `subscribe` for each name that has observers. The
/// transport publishes all later notifications. When it returns MULTICAST_OK, the previous
/// transport's `release` has returned, and no thread is in a call to that transport or ever will
/// be. multicast_broadcaster_destroy() detaches the transport and waits for it in the same way. If
/// several threads attach at the same time, one transport stays, and the others are detached.
///
/// @param broadcaster  The broadcaster, which may be multicast_broadcaster_default().
/// @param transport    The transport to attach; NULL only detaches the previous one.
/// @return MULTICAST_OK; MULTICAST_PENDING: done, but a call to the previous transport is running,
///         and waiting for it was not possible; MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_INVALID_ARGUMENT: the transport cannot be read, or has no `publish`;
///         MULTICAST_ERROR_OUT_OF_MEMORY; MULTICAST_ERROR_LIMIT: 2^26 multicasts exist;
///         MULTICAST_ERROR_SYSTEM: done, but it is unknown whether calls to the previous transport
///         are still running, and its `release` never runs.
/// Ownership: with `release`, the library owns `context` from this call on; if the call fails,
///            `release` has run. If the transport cannot be read (bad `struct_size`, non-zero
///            additional field, unknown flag), `release` does not run and the context stays yours.
/// Threads:   waits for running calls to the previous transport on other threads. Do not hold a
///            lock that its functions acquire.
/// Reentry:   inside a function of the previous transport, returns MULTICAST_PENDING, and `release`
///            runs when that function has returned.
/// Cost:      O(names). Once a broadcaster has had a transport, each name needs about 250 bytes
///            more, and removing an observer issues one memory barrier. Notifications without a
///            transport cost as much as before. Detaching issues one memory barrier.
/// @since 1.1
MULTICAST_API multicast_status multicast_broadcaster_attach(multicast_broadcaster broadcaster,
                                                            const multicast_transport *transport);

/// Calls the observers of this process after a transport has received a notification, as
/// multicast_broadcaster_notify() does without a transport.
///
/// @param event    As in multicast_invoke().
/// @param payload  As in multicast_invoke().
/// @param size     As in multicast_invoke().
/// @return Same as multicast_invoke(); 0 if the name has never been registered.
///         MULTICAST_ERROR_INVALID_ARGUMENT also if `name` is not a name.
/// Threads:   like multicast_invoke().
/// Cost:      like multicast_broadcaster_notify() without a transport.
/// Real time: prepared, like multicast_invoke().
/// @since 1.1
MULTICAST_API int64_t multicast_broadcaster_deliver(multicast_broadcaster broadcaster,
                                                    const char *name, uint32_t event,
                                                    const void *payload, size_t size);

/* ---- 13. Diagnostics ------------------------------------------------------------------------- */

/// The function that receives the text of multicast_dump() and multicast_describe(), one line per
/// call, including the line feed.
///
/// @param context  The `context` that was passed to multicast_dump() or multicast_describe().
/// @param text     The line, without a NUL at its end. Valid until this call returns.
/// @param size     Bytes at `text`.
/// @return true to continue, false to stop.
/// @since 1.1
typedef bool (*multicast_writer)(void *context, const char *text, size_t size);

/// Writes the state of the library in this process as text, to show why a program hangs, or what is
/// still registered when it ends.
///
/// Each `multicast`, `queue` and `lifetime` has a line, as does each `thread` that is in a call or
/// waiting. Below a multicast, there is a line for each delegate. Below a thread, there is a line
/// for each of its calls, the outermost first, and a line for its wait. Each value is preceded by
/// its name, and values that do not apply are left out. Later versions may add lines and values.
///
/// The function never hangs: it does not wait for other threads, not even for one that is stopped
/// inside the library. Objects that such a thread is changing are reported as unreadable after at
/// most two seconds. The function can therefore be called from a debugger that has stopped the
/// process, with `call (int)multicast_dump(0, 0)`, and by a watchdog thread.
///
/// A multicast is shown with its label, or with the first 63 bytes of its name in a broadcaster; a
/// queue with its label; and a thread with the name that the system reports.
///
/// A function is shown as library(symbol+offset), where the library `program` is the executable. A
/// function that is not exported, such as a static one, is shown as library(+offset), for which
/// addr2line finds the name, file and line (see examples-c/DUMP.md). A function that is in no
/// library is shown as an address. In the child of a fork, all functions are shown as addresses,
/// because a thread of the parent may have locked the list of libraries. A removed delegate that is
/// still being called is shown with its label or function.
///
/// @param writer   Receives the text. If NULL, the text is written to a descriptor.
/// @param context  Passed to `writer`. Without a writer, the address of an int that holds the
///                 descriptor, or NULL for standard error.
/// @return MULTICAST_OK, even if the writer has returned false.
/// Threads:   while other threads change objects, each line is correct for the moment when it was
///            read. Delegates that are added or removed during the call may be missing.
/// Cost:      O(objects), with a short lock for each, but none while the writer runs. O(names) for
///            each multicast without a label. No allocation, and about 2 KB of stack.
/// @since 1.1
MULTICAST_API multicast_status multicast_dump(multicast_writer writer, void *context);

/// Writes a report of one multicast, as multicast_dump() does. It shows the delegates, and the
/// threads that are calling them or waiting for such calls.
///
/// @param writer   As in multicast_dump().
/// @param context  As in multicast_dump().
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE: nothing was written.
/// Threads:   like multicast_dump().
/// Cost:      like multicast_dump(): O(delegates + threads).
/// @since 1.1
MULTICAST_API multicast_status multicast_describe(multicast target, multicast_writer writer,
                                                  void *context);

/// Functions that watch a multicast, or all multicasts. A watch without functions only counts
/// calls: see multicast_token_get_stats().
///
/// A watch observes the calls that invocations, visits and queues make to delegates and visitors.
/// `slow` and `called` run on the same thread as the call, after it has returned and before a
/// removal that waits for it can complete. Calls that the watch's functions make, and calls at the
/// 256th level of nesting, are counted but not watched. A thread that could not allocate its record
/// does not call the functions of watches. A watch of all multicasts also watches calls to
/// transports. The library owns the tokens of these calls, so do not pause or remove them.
/// @since 1.1
typedef struct multicast_watch {
  uint32_t struct_size;  ///< sizeof(multicast_watch).
  uint32_t reserved;     ///< Must be 0.
  /// Passed to the functions. Keep it valid until multicast_set_watch() has removed the watch.
  void *context;
  /// The duration from which a call counts as slow, and a wait as stuck (default: 0, never).
  uint64_t slow_ns;
  /// Called after a call that took at least `slow_ns`. `label` is the label of the registration, or
  /// NULL, and is valid until this function returns.
  void (*slow)(void *context, multicast_token token, const char *label, uint64_t elapsed_ns);
  /// Called when a removal, or an invocation with MULTICAST_WAIT, has waited for `slow_ns` and is
  /// still waiting. Called once for each wait, on the waiting thread. `token` is the registration
  /// whose call the thread is waiting for, or none if the call is still in the queue.
  void (*stuck)(void *context, multicast_token token, const char *label, uint64_t elapsed_ns);
  /// Called after each call with its duration. `event` is the invocation's event; 0 for a visit.
  void (*called)(void *context, multicast_token token, uint32_t event, uint64_t elapsed_ns);
  /// The number of delegates at which `listener_warning` is called for a multicast (default: 0,
  /// never; 1 counts as 2).
  uint64_t listener_warning_count;
  /// Called when a multicast has grown to `listener_warning_count` delegates, or to 2, 4, 8, ...
  /// times that number. Called once for each of these numbers until the watch is set again, even if
  /// delegates are removed and added again. If a single add passes several of the numbers, called
  /// only once. Called on the adding thread, after the add. An add inside a function of a watch, or
  /// at the 256th level of nesting, does not call this function, but the next add does.
  /// multicast_describe() writes the name of `target` and all its delegates.
  ///
  /// `count` is the number of delegates of `target`. Either `label` is the most frequent label and
  /// `function` is NULL, or `function` is the most frequent function of delegates without a label
  /// and `label` is NULL. `most` is the number of delegates with that label or function. If no
  /// label or function belongs to more than one delegate in nine, both are NULL, and `most` is 0.
  /// `label` is valid until this function returns.
  void (*listener_warning)(void *context, multicast target, uint64_t count, const char *label,
                           multicast_function function, uint64_t most);
} multicast_watch;

/// Initializes a static or local struct with all defaults.
/// @since 1.1
#define MULTICAST_WATCH_INIT \
  {sizeof(multicast_watch), 0, NULL, 0, NULL, NULL, NULL, 0, NULL}

/// Returns a struct with all defaults, and with `struct_size` set.
/// @return The watch, by value.
/// @since 1.1
static inline multicast_watch multicast_watch_default(void) {
  multicast_watch watch = MULTICAST_WATCH_INIT;
  return watch;
}

/// Sets, replaces or removes the watch of a multicast, or of all multicasts.
///
/// A multicast with its own watch is watched only by that watch. A watch of all multicasts also
/// watches multicasts that are created later, including those of broadcasters. Invocations that
/// begin after this function has returned are watched, including the calls that they queue. Calls
/// that had been queued before may also be watched. Destroying a multicast ends its own watch. If
/// the library was built with USDT probes, tools such as bpftrace also see watched calls.
///
/// @param target  The multicast, or zero for all multicasts.
/// @param watch   The watch, or NULL to remove it.
/// @return MULTICAST_OK: no function of the previous watch is running, and none ever will be.
///         MULTICAST_PENDING: replaced, but one of these functions is still running on this thread,
///         or on a thread that is waiting for this one. MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_INVALID_ARGUMENT: a wrong `struct_size`, or `reserved` is not 0;
///         MULTICAST_ERROR_OUT_OF_MEMORY, for the watch of one multicast only.
/// Threads:   waits for functions of the previous watch that are running on other threads.
/// Cost:      O(1) for one multicast, O(multicasts) for all. While a watch is set, each call
///            acquires one process-wide lock and reads the clock twice. Up to 1,024 multicasts with
///            their own watches are as fast as one; beyond that, watches are searched in lists. A
///            call to `listener_warning` costs O(delegates), and adds to other multicasts may wait
///            for it. With rare exceptions, other adds cost as much as without a watch.
/// @since 1.1
MULTICAST_API multicast_status multicast_set_watch(multicast target, const multicast_watch *watch);

/// The statistics of a registration, counted while a watch is set.
/// @since 1.1
typedef struct multicast_token_stats {
  uint32_t struct_size;  ///< sizeof(multicast_token_stats).
  uint32_t reserved;     ///< 0.
  uint64_t calls;        ///< Calls that have returned.
  uint64_t total_ns;     ///< The total time of these calls.
  uint64_t longest_ns;   ///< The time of the longest call.
  uint64_t queued;       ///< Calls that were put into its queue.
  /// Calls that its queue refused, or dropped to make room for newer calls to any delegate.
  uint64_t dropped;
} multicast_token_stats;

/// Initializes a struct for multicast_token_get_stats(): all zero, with `struct_size` set.
/// @since 1.1
#define MULTICAST_TOKEN_STATS_INIT {sizeof(multicast_token_stats), 0, 0, 0, 0, 0, 0}

/// Returns a struct for multicast_token_get_stats(): all zero, with `struct_size` set.
/// @return The statistics, by value.
/// @since 1.1
static inline multicast_token_stats multicast_token_stats_default(void) {
  multicast_token_stats stats = MULTICAST_TOKEN_STATS_INIT;
  return stats;
}

/// Reads the statistics of a registration, which are counted while a watch is set. They are all
/// zero if no watch has been set. If there is no memory to start counting, the call is not counted.
///
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT: `out` is
///         NULL or has a wrong `struct_size`.
/// @since 1.1
MULTICAST_API multicast_status multicast_token_get_stats(multicast_token token,
                                                          multicast_token_stats *out);

/* ---- 14. The library ------------------------------------------------------------------------- */

/// The major version of this header.
#define MULTICAST_VERSION_MAJOR 1
/// The minor version of this header.
#define MULTICAST_VERSION_MINOR 1
/// The patch level of this header.
#define MULTICAST_VERSION_PATCH 0

/// The version of this header as one number, 0x00MMmmpp, to compare in `#if`, or with the version
/// of the library, which multicast_version() returns.
#define MULTICAST_VERSION                                             \
  ((MULTICAST_VERSION_MAJOR * 0x10000u) + (MULTICAST_VERSION_MINOR * 0x100u) + \
   MULTICAST_VERSION_PATCH)

/// Returns the version of the loaded library, in the format of MULTICAST_VERSION.
///
/// @return 0x00MMmmpp: major, minor, patch.
/// Real time: yes.
/// @since 1.0
MULTICAST_API uint32_t multicast_version(void);

/// Every status with its number and its text: `X(name, number, message)`.
/// @since 1.0
#define MULTICAST_STATUS_MAP(X)                                                                  \
  X(MULTICAST_OK, 0, "done")                                                                     \
  X(MULTICAST_PENDING, 1, "done, but a call that this ends still runs")                          \
  X(MULTICAST_ERROR_INVALID_HANDLE, -10, "the handle is null, stale, forged or of another kind") \
  X(MULTICAST_ERROR_INVALID_ARGUMENT, -20, "an argument or an option is not valid")              \
  X(MULTICAST_ERROR_NOT_FOUND, -30, "no such delegate or index")                                 \
  X(MULTICAST_ERROR_OUT_OF_MEMORY, -40, "out of memory")                                         \
  X(MULTICAST_ERROR_LIMIT, -50, "nested too deep, or too many")                                  \
  X(MULTICAST_ERROR_QUEUE_FULL, -60, "the queue is full")                                        \
  X(MULTICAST_ERROR_TIMEOUT, -70, "the time was up")                                             \
  X(MULTICAST_ERROR_STATE, -80, "not possible at this point")                                    \
  X(MULTICAST_ERROR_SYSTEM, -90, "the system refused a thread, a descriptor or a memory barrier")

/// Returns the identifier of a status, such as "MULTICAST_ERROR_TIMEOUT".
///
/// @param status  Any number: a status, or the negative result of a function that counts.
/// @return A static text, never NULL; "MULTICAST_UNKNOWN_STATUS" for an unknown number.
/// Real time: yes.
/// @since 1.0
MULTICAST_API const char *multicast_status_name(int64_t status);

/// Returns the message of a status, in English, without a full stop.
///
/// @param status  Any number: a status, or the negative result of a function that counts.
/// @return A static text, never NULL; "not a status of this library" for an unknown number.
/// Real time: yes.
/// @since 1.0
MULTICAST_API const char *multicast_status_message(int64_t status);

/// The functions with which the library allocates its memory. They may be called on any thread,
/// even while the library holds locks, and must not call the library.
/// @since 1.0
typedef struct multicast_allocator {
  uint32_t struct_size;  ///< sizeof(multicast_allocator).
  uint32_t flags;        ///< Must be 0.
  void *context;         ///< Passed to both functions.
  /// Returns `size` bytes (> 0) aligned to `alignment` (a power of two, at most 128), or NULL.
  void *(*allocate)(void *context, size_t size, size_t alignment);
  /// Frees a block. `size` and `alignment` are the values with which it was allocated.
  void (*deallocate)(void *context, void *block, size_t size, size_t alignment);
} multicast_allocator;

/// Initializes a static or local struct without functions.
/// @since 1.0
#define MULTICAST_ALLOCATOR_INIT {sizeof(multicast_allocator), 0, NULL, NULL, NULL}

/// Returns a struct without functions, but with `struct_size` set.
/// @return The allocator, by value.
/// @since 1.0
static inline multicast_allocator multicast_allocator_default(void) {
  multicast_allocator allocator = MULTICAST_ALLOCATOR_INIT;
  return allocator;
}

/// Sets the allocator of the library. Call it before anything is created.
///
/// @param allocator  The allocator, with both functions set; not NULL.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_ARGUMENT: NULL, a function missing, or a wrong
///         `struct_size`; MULTICAST_ERROR_STATE: the library has already allocated memory.
/// Ownership: `context` must stay valid for the rest of the process.
/// @since 1.0
MULTICAST_API multicast_status multicast_set_allocator(const multicast_allocator *allocator);

/// Does the work of this thread's first invocation in advance, for a thread with deadlines.
///
/// This work includes a lock, an allocation and a system call. This thread's first invocation of
/// each multicast also acquires a lock. Make that invocation in advance, too, for example with an
/// event that no delegate wants. The thread stays prepared until it ends. A thread inside a
/// delegate is already prepared.
///
/// @return MULTICAST_OK; MULTICAST_ERROR_OUT_OF_MEMORY.
/// Cost:      O(1); a lock, a system call, and an allocation that serves several threads.
/// @since 1.1
MULTICAST_API multicast_status multicast_thread_prepare(void);

/// Returns unused memory to the system, after a burst of many objects. Nothing else changes.
///
/// The library returns memory to libc, so this function also calls malloc_trim(0) if libc has it.
/// The slots of multicasts (64 bytes), registrations (32) and lifetimes (40) stay mapped, so that
/// stale handles are safe. The pages of up to 1024 neighbouring slots are returned when all of
/// these slots are vacant. Until its pages are returned, a registration's vacant slot can be reused
/// by only one in 32 multicasts. The pages of 64 neighbouring threads are returned when all of
/// these threads have ended. About 2 MB, 1 % of the slots, and the slots of queues and broadcasters
/// are not returned. Neither is the memory that libc keeps for ended threads, such as some of their
/// stacks in glibc. With a custom allocator, nothing is returned.
///
/// @return The number of bytes that were returned (>= 0).
/// Cost:      O(vacant slots + the highest number of threads), and the cost of malloc_trim(). Adds,
///            removals and creations wait until it has finished; invocations do not.
/// @since 1.1
MULTICAST_API int64_t multicast_trim(void);

/// Returns the address of memory that all modules of a process share. Headers of other languages,
/// which are compiled into the program and into each of its plug-ins, use this memory for data that
/// must exist only once, and must survive when a plug-in is unloaded. Programs do not need it.
///
/// @param index  0 to 3: the C++ headers, with and without exceptions, for libstdc++ and libc++. 4
///               to 7: free for future headers.
/// @param size   The number of bytes needed, at most 8192.
/// @return An address that is always the same for an index, aligned to 64 bytes. The memory is zero
///         at first, and exists until the process ends. NULL: `index` or `size` is too large.
/// Ownership: the memory belongs to the headers that use this index.
/// Real time: yes.
/// @since 1.1
MULTICAST_API void *multicast_process_memory(uint32_t index, size_t size);

#ifdef __cplusplus
}
#endif

#endif
