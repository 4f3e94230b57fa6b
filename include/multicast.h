/* SPDX-License-Identifier: MIT */

#ifndef MULTICAST_H
#define MULTICAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
/// Stands before every function that the library exports.
#define MULTICAST_API __attribute__((visibility("default")))
/// Stands before every function whose result must be used.
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
 * A multicast holds any number of delegates. A delegate is a C function with a context. Invoking
 * the multicast calls all of them, by priority, then by order of addition.
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
 * The sections follow the order in which they are needed:
 *
 *      1. First steps                 create, add, invoke, remove, destroy
 *      2. Adding and removing many    several at once, by context, by position, with a time limit
 *      3. Asking                      is there one, how many, which
 *      4. Visiting                    typed functions, return values, stopping early
 *      5. Tokens                      one registration: remove it, pause it
 *      6. Options                     priority, events, once, unique, release, weak contexts
 *      7. Lifetimes                   registrations that end together
 *      8. Queues                      calls that run later, on another thread
 *      9. Invocations with options    payloads that are handed over, waiting for queued calls
 *     10. Policies                    re-entry, sources on demand, replays, contexts of one kind
 *     11. Broadcasters                multicasts by name
 *     12. Transports                  names that processes and machines share
 *     13. Seeing what goes on         what is registered, which thread waits, how long calls take
 *     14. The library                 version, status texts, allocator
 *
 * The following rules hold for every function. The comment of a function adds to them, or states an
 * exception. A comment that begins with "Like" and the name of a function takes over everything
 * that the comment of that function says, except what it states itself.
 *
 * Parameters   A comment leaves out a parameter that has its usual meaning:
 *              - `target`: the multicast;
 *              - `token`: the registration;
 *              - `queue`, `lifetime`, `broadcaster`: this object;
 *              - `delegate`: its function and context, as they were added;
 *              - `name`: as in multicast_broadcaster_register();
 *              - `options`: how, or NULL for the defaults;
 *              - `timeout_ns`: nanoseconds on the monotonic clock; 0: no waiting;
 *              - `out`: receives the result; the caller sets its `struct_size`.
 * Threads      Any thread may call any function at any time, concurrently with all other calls.
 * Callbacks    A callback is any function of the program that the library calls: a delegate,
 *              visitor, enumerator or writer, or a function in a struct. It may call every function
 *              of the library, which holds no lock of its own during the callback. A callback runs
 *              on the thread that calls the library, unless its comment says otherwise, and must
 *              return: it must not leave by longjmp() or by an exception. An allocator has stricter
 *              rules: see multicast_allocator.
 * Ownership    A pointer argument is borrowed for the duration of the call; structs, names and
 *              labels are copied. An object belongs to the caller that created it, until it is
 *              destroyed or ended. Contexts and payloads: see below.
 * Handles      A handle is a struct of one 64-bit integer, passed by value. On 64-bit processors a
 *              language without structs by value passes the integer. Zero means "none". Any 64-bit
 *              value is safe in any call at any time: a handle that is null, stale, forged or of
 *              another kind gives MULTICAST_ERROR_INVALID_HANDLE.
 * Results      A function that creates returns a handle. Zero means failure: invalid options, out
 *              of memory, no thread key left in the system, or 2^26 objects of the kind.
 *              multicast_create_error() returns the reason. A function that counts returns the
 *              count, or a negative status. A yes/no question returns bool; a bad handle gives
 *              false. Every other function returns a status. Counts, lists and answers describe one
 *              moment: another thread may change the state right after.
 * Failure      A call that fails changes nothing, except where its status says so:
 *              MULTICAST_ERROR_TIMEOUT, and MULTICAST_ERROR_SYSTEM of a removal. A failed add or
 *              invocation runs `release`.
 * Structs      A struct that the caller fills begins with `struct_size`, the caller's sizeof, which
 *              must not be 0. The default of every other field is zero; reserved fields must be 0.
 *              NAME_INIT initializes a struct with the defaults, and NAME_default() returns one. A
 *              caller that can use neither sets `struct_size` and clears the rest. Where a function
 *              takes a pointer to options, NULL means the defaults. A larger struct than the
 *              library knows is accepted if the unknown fields are 0, up to 1024 bytes. A struct
 *              that the library fills may be as large without that condition: the library sets the
 *              unknown fields to 0. A function writes nothing to `out` if its `struct_size` is
 *              wrong.
 * Cost         A function takes constant time, unless it has a line "Cost". A removal also makes a
 *              memory barrier if another thread has invoked the multicast.
 *
 * The life of a delegate:
 *
 * Calls        A delegate runs on the thread that invokes; on several threads at once if several
 *              invoke. If it was added with a queue, it runs on the thread that runs the queue, one
 *              call at a time.
 * Removal      A removal is a function whose name says remove, unregister, destroy or end. Running
 *              invocations, on any thread, do not call a removed delegate unless the call had
 *              begun, and its queued calls are not made. The removal then waits until no other
 *              thread is in a call of a delegate that it has removed. Except by token or by
 *              position, it also waits for calls of delegates that it would have removed, had they
 *              not been removed before. Other delegates do not delay it. If this thread is in such
 *              a call, or if a thread in such a call waits in the library for this thread, the
 *              removal does not wait and returns MULTICAST_PENDING. The library cannot see other
 *              waits: a thread that removes a delegate while it holds a lock that the delegate
 *              takes waits for ever.
 * Contexts     The library borrows a context until the removal has completed. When a removal
 *              returns MULTICAST_OK, the registration has ended: no thread is in a call of it, and
 *              none ever will be. The context is then the caller's again, if no other registration
 *              uses it: the same delegate may be registered more than once. Free its context after
 *              multicast_remove_every(), or when the last of its registrations has ended.
 * Release      With `release` in the options the registration owns its context: `release` runs
 *              exactly once for each registration, when that registration no longer uses the
 *              context; after MULTICAST_PENDING or MULTICAST_ERROR_TIMEOUT, when the last call has
 *              returned. Other registrations with the same context may still use it: where several
 *              share an object, let `release` drop one of the references that the object counts, or
 *              use no `release` and free the object after multicast_lifetime_end() has returned
 *              MULTICAST_OK (example 16_shared_context).
 * Counts       A removal that returns a count does not report MULTICAST_PENDING. Called outside all
 *              delegates, it returns when no call of the removed delegates runs. Called inside one,
 *              it may return earlier. The form with a time limit reports which, in `*out`.
 * Time limits  A removal waits for running calls as long as they take. If its name ends in _within,
 *              it waits at most `timeout_ns`, by the monotonic clock: not at all with 0,
 *              and without limit with MULTICAST_FOREVER. If its name ends in _nowait, it does not
 *              wait. In each case the registration is removed. If a call of it still runs, the
 *              status is MULTICAST_PENDING where waiting is not possible, and after _nowait; it is
 *              MULTICAST_ERROR_TIMEOUT where the time is up. The context is the caller's again
 *              after MULTICAST_OK alone. Only in multicast_invocation, a struct, a `timeout_ns` of
 *              0 means no limit, because 0 is the default of every field.
 * Payloads     The library borrows a payload during the invocation, and copies it for queued calls.
 *              An invocation with options can hand it over instead, or name a function that copies
 *              it: section 9.
 *
 * The process:
 *
 * fork         The child may use the library, whatever other threads of the parent were doing.
 *              Queues are empty in the child; in the parent they keep all their calls.
 *              - Running calls: the delegates that those threads were calling do not run in the
 *                child.
 *              - Removals: delegates that another thread had removed and not released yet are
 *                released in the child, inside fork(): each `release` runs once in each of the two
 *                processes. A `release` that had begun, or was just beginning, does not run in the
 *                child.
 *              - Payloads: a payload that was handed over, or copied by `copy`, before the fork is
 *                the parent's. Its `release` runs in the parent, not in the child.
 *              - Listeners: a call of `listeners_changed` that another thread was about to make is
 *                made in the child, inside fork(). A call that had begun there is not made again.
 *              - Replays: the rest of another thread's replay is not made in the child.
 *              - Transports: the child also has them. Detach one that only one process can use.
 *              - Broadcasters: if another thread was destroying one, or unregistering from all of
 *                its names, that may be done for some of the names only in the child.
 * exit         atexit handlers, destructors of static objects, and threads that outlive `main` may
 *              call the library. It stays mapped after dlclose(). While exit() runs on the main
 *              thread, also because `main` has returned, a removal on that thread does not wait for
 *              calls on other threads, which may never return: it returns MULTICAST_ERROR_TIMEOUT.
 *              Then free nothing. With musl, or if another thread calls exit(), or inside
 *              quick_exit(), removals wait as usual: call the forms with a time limit there.
 * Thread end   A thread may end inside a delegate or visitor, by pthread_exit() or by cancellation.
 *              The library's thread-specific-data destructor then ends the call. It runs after the
 *              destructors of keys created earlier. The rest of a replay is not made. Where libc
 *              unwinds the stack, as glibc does, the cleanup handlers of the functions that have
 *              invoked run first, while the thread is still inside the call.
 * Copies       A handle means nothing to another copy of the library, which refuses it or takes it
 *              for one of its own: a host and its plug-ins must link the same shared library. Each
 *              copy that is opened takes 24 bytes of the space that the loader keeps for
 *              thread-local variables. With glibc some 100 copies fit.
 * Stack        16 KB are enough for every function. Each level of nesting uses up to 750 bytes, of
 *              an invocation with options up to 1,300, plus what the delegates use.
 *
 * Real time    A function that a thread with deadlines may call says so. "yes": it takes no lock
 *              and no memory, makes no system call, and does not wait. "prepared": the same once
 *              the thread has called multicast_thread_prepare() and, before its deadlines begin,
 *              invoked the multicast or run the queue once; the delegates have to do the same. A
 *              queue has a lock of its own for a moment: a thread that finds it taken spins, and
 *              sleeps if that takes long. "yes" holds for every inline function. Every other
 *              function takes a lock, and may take memory or make a system call; a removal also
 *              waits for running calls.
 *
 * Not supported, because C offers no way to do it safely:
 *
 * - leaving a callback by longjmp() or by an exception;
 * - calls of one thread that do not end in the reverse order of their beginnings. Stacks that are
 *   switched make such calls possible, as those of fibers and greenlets are: a delegate that has
 *   switched away may return only after all calls that this thread has begun since. C++20
 *   coroutines are not affected: a delegate that is one returns to the library when it is
 *   suspended;
 * - calling the library in a signal handler, in the child of vfork(), or in an allocator function
 *   that was given to it;
 * - calling the library in a pthread_atfork() handler that was registered before it was loaded;
 * - ending a thread inside a copy, listeners_changed, watch or release function, or inside a
 *   function that one of these calls; ending a thread a second time while the destructors of its
 *   thread-specific data run;
 * - asynchronous cancellation of a thread that is inside the library.
 *
 * A library built with MULTICAST_INTERNAL_CHECKS detects most of these. It ends the program with a
 * line that names the mistake.
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

/// The function of a delegate. The invocation waits for it.
///
/// @param context  The delegate's context, as it was added.
/// @param event    The invoker's event; selects the method of a protocol.
/// @param payload  The invoker's payload, or the queue's copy, aligned to 16. Valid until return.
/// @param size     Bytes at `payload`, as the invoker gave it.
/// Real time: yes, if the function itself keeps to the rules.
/// @since 1.0
typedef void (*multicast_function)(void *context, uint32_t event, const void *payload,
                                   size_t size);

/// A delegate: what is called, and with what. Two delegates are equal if both fields are equal.
/// @since 1.0
typedef struct multicast_delegate {
  multicast_function function;  ///< What is called. Not NULL.
  void *context;                ///< Passed to `function`; may be NULL.
} multicast_delegate;

/// Result code. Zero and above: success. Below zero: an error. The numbers are part of the ABI.
/// Treat a negative number that is not listed here as a failure.
/// @since 1.0
typedef int32_t multicast_status;

/// The values of multicast_status.
/// @since 1.0
enum multicast_status_code {
  MULTICAST_OK = 0,  ///< Done. Of a removal: the registration has ended; equal ones may remain.
  /// The operation took effect, but a call that it should have waited for is still running: on this
  /// thread or on a thread that waits for this one; on any thread, if the function never waits.
  /// After a removal, keep the context until `release`, or until multicast_ended_within() returns
  /// MULTICAST_OK. For threads and watches, see multicast_queue_stop() and multicast_set_watch().
  MULTICAST_PENDING = 1,
  MULTICAST_ERROR_INVALID_HANDLE = -10,    ///< The handle is null, stale, forged, of another kind.
  MULTICAST_ERROR_INVALID_ARGUMENT = -20,  ///< A wrong NULL, flag, size, reserved field or name.
  MULTICAST_ERROR_NOT_FOUND = -30,         ///< No such delegate or index.
  MULTICAST_ERROR_OUT_OF_MEMORY = -40,     ///< An allocation failed.
  MULTICAST_ERROR_LIMIT = -50,             ///< 256 levels of nesting, or 2^26 of a kind, less 1 %.
  MULTICAST_ERROR_QUEUE_FULL = -60,        ///< Of a transport: its buffer of notifications is full.
  MULTICAST_ERROR_TIMEOUT = -70,           ///< Timeout. Of a removal: removed, a call still runs.
  MULTICAST_ERROR_STATE = -80,             ///< Not possible at this point; see the function.
  /// The system refused a thread, a descriptor or a memory barrier; a transport may have been
  /// refused something else. Of a removal, a memory barrier: removed, but it is unknown whether
  /// calls still run. `release` never runs; free nothing.
  MULTICAST_ERROR_SYSTEM = -90
};

typedef struct multicast_add_options multicast_add_options;  // how a delegate is added: section 6

/// Creates an empty multicast.
///
/// @return Its handle. Zero: the call failed, out of memory for instance.
/// Cost:      O(1); memory is taken for many at a time.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast multicast_create(void);

/// Adds a delegate, last among those of its priority. The same delegate may be added again.
/// Invocations that have begun do not call it.
///
/// @param delegate  What to call; `function` must not be NULL.
/// @param options   How, or NULL for the defaults.
/// @param out       NULL, or receives the token before the delegate can be called, by one relaxed
///                  atomic store; zero on failure.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE: of the multicast, or of a lifetime or
///         queue in the options; MULTICAST_ERROR_INVALID_ARGUMENT: no function, or invalid options;
///         MULTICAST_ERROR_OUT_OF_MEMORY; MULTICAST_ERROR_LIMIT, with replays also: 256 invocations
///         are nested on this thread.
/// Ownership: the library borrows `context` until the removal has completed; with `release` it owns
///            it from this call on. If options cannot be read (bad `struct_size`, non-zero tail,
///            unknown flag, `reserved` not 0), `release` does not run and the context stays yours.
///            After every other failure it has run.
/// Threads:   calls the delegate if the multicast replays; see multicast_create_options.
/// Cost:      O(1) amortised; options take an allocation, the delegates one now and then.
///            O(delegates) if some have a lower priority, or if MULTICAST_UNIQUE searches them.
/// @since 1.0
MULTICAST_API multicast_status multicast_add(multicast target, multicast_delegate delegate,
                                             const multicast_add_options *options,
                                             multicast_token *out);

/// Calls every delegate once, by priority, then by order of addition.
///
/// A delegate that is added during the invocation is not called by it. A delegate that is removed
/// meanwhile is not called either, unless its call had begun. Paused delegates, and delegates that
/// do not want `event`, are skipped. If a delegate has a queue, its call is queued; see section 8.
///
/// @param event    Passed on unchanged; selects the method of the protocol.
/// @param payload  Passed on unchanged; may be NULL if `size` is 0.
/// @param size     Bytes at `payload`, copied for queued calls. If 0, they get the pointer itself.
/// @return How many delegates were called or queued (>= 0), even if the multicast was destroyed
///         meanwhile; without those that a queue refused. MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_INVALID_ARGUMENT: `size` without `payload`; MULTICAST_ERROR_LIMIT: 256
///         invocations are nested on this thread; MULTICAST_ERROR_OUT_OF_MEMORY: only at the first
///         invocation of a thread. Of a multicast with policies also MULTICAST_ERROR_STATE: see
///         multicast_reentry and MULTICAST_VISIT_ONLY.
/// Threads:   threads that invoke the same multicast do not slow each other. May wait for room in a
///            queue with MULTICAST_OVERFLOW_BLOCK.
/// Cost:      O(delegates); no allocation, no lock, no atomic read-modify-write. The first
///            invocation of a thread takes a record of 11 KB, which is reused when the thread ends.
///            An invocation that is not nested touches one page of it.
/// Real time: prepared, unless a queued payload has more than 32 bytes and exceeds `payload_size`.
/// @since 1.0
MULTICAST_API int64_t multicast_invoke(multicast target, uint32_t event, const void *payload,
                                       size_t size);

/// Removes the first registration of this delegate, in order of invocation.
///
/// There is no form with a time limit: remove the token, by multicast_token_remove_within().
///
/// @return MULTICAST_OK: this registration has ended; equal ones may remain and run.
///         MULTICAST_PENDING; MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_SYSTEM;
///         MULTICAST_ERROR_NOT_FOUND: there is no such registration. If an equal one was removed
///         before and is still being called, the function waits for that call first.
/// Cost:      O(delegates) to find it; O(1) among 1,000 and more that are searched often, with an
///            index of up to 48 bytes for each delegate. O(1) to remove it. Removals that follow
///            each other closely make no memory barrier; meanwhile, each delegate that this
///            multicast calls takes a few nanoseconds more.
/// @since 1.0
MULTICAST_API multicast_status multicast_remove(multicast target, multicast_delegate delegate);

/// Destroys a multicast and removes all its delegates. The handle is stale at once.
///
/// @return MULTICAST_OK: no delegate of it runs on another thread; MULTICAST_PENDING;
///         MULTICAST_ERROR_INVALID_HANDLE, after waiting if another thread is destroying it;
///         MULTICAST_ERROR_SYSTEM.
/// Cost:      O(delegates).
/// @since 1.0
MULTICAST_API multicast_status multicast_destroy(multicast target);

/// Removes every registration of this delegate.
///
/// @return MULTICAST_OK: no equal delegate is registered or runs; the context is yours.
///         MULTICAST_PENDING; MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_NOT_FOUND, after
///         waiting for an equal one, as multicast_remove(); MULTICAST_ERROR_SYSTEM.
/// Cost:      O(delegates).
/// @since 1.0
MULTICAST_API multicast_status multicast_remove_every(multicast target,
                                                      multicast_delegate delegate);

/// No handle: `multicast_token token = MULTICAST_NONE;`
/// @since 1.0
#define MULTICAST_NONE {0}

/* ---- 2. Adding and removing many ------------------------------------------------------------- */

/// Adds several delegates in order with the same options: all of them, or none.
///
/// The delegates appear at once: an invocation calls all of them or none.
///
/// @param delegates  `count` delegates; may be NULL if `count` is 0.
/// @param count      How many; at most 2^26.
/// @param options    As in multicast_add().
/// @param out        Receives `count` tokens, all zero if the add fails. May be NULL. With
///                   MULTICAST_UNIQUE and equal delegates among these, only the last of them stays:
///                   the tokens of the others are stale. Not written if `count` is above 2^26.
/// @return As multicast_add(). MULTICAST_ERROR_LIMIT if `count` is above 2^26: then the function
///         uses none of its arguments.
/// Ownership: as multicast_add(). A failure releases each of the contexts once; if `count` is above
///            2^26 it releases none.
/// Cost:      that of `count` adds under one lock.
/// @since 1.0
MULTICAST_API multicast_status multicast_add_many(multicast target,
                                                  const multicast_delegate *delegates,
                                                  size_t count,
                                                  const multicast_add_options *options,
                                                  multicast_token *out);

/// For each of the given delegates, removes the first live registration equal to it.
///
/// @param delegates  `count` delegates; may be NULL if `count` is 0.
/// @param count      How many.
/// @return How many were removed (>= 0); MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_INVALID_ARGUMENT; MULTICAST_ERROR_SYSTEM.
/// Cost:      O(count * delegates).
/// @since 1.0
MULTICAST_API int64_t multicast_remove_many(multicast target, const multicast_delegate *delegates,
                                            size_t count);

/// Removes every delegate that has this context, whatever its function.
///
/// @param context  The context; may be NULL.
/// @return How many were removed (>= 0); MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_SYSTEM.
/// Cost:      O(delegates).
/// @since 1.0
MULTICAST_API int64_t multicast_remove_context(multicast target, void *context);

/// Removes the registration at a position in the order of invocation.
///
/// There is no form with a time limit, because a position identifies a registration only until the
/// multicast changes, as it does here. Remove the token, by multicast_token_remove_within().
///
/// @param index  0 is the first. The order is that of multicast_list().
/// @return As multicast_remove(); MULTICAST_ERROR_NOT_FOUND if `index` is not below the count.
/// Cost:      O(delegates).
/// @since 1.0
MULTICAST_API multicast_status multicast_remove_at(multicast target, size_t index);

/// Removes every delegate. The multicast stays.
///
/// @return How many were removed (>= 0); MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_SYSTEM.
/// Cost:      O(delegates).
/// @since 1.0
MULTICAST_API int64_t multicast_remove_all(multicast target);

/// No limit, for every `timeout_ns`.
/// @since 1.0
#define MULTICAST_FOREVER UINT64_MAX

/// Like multicast_remove_every(), but waits at most for a given time.
///
/// @return As multicast_remove_every(). MULTICAST_ERROR_TIMEOUT: none is registered any more, but a
///         call still runs on another thread.
/// @since 1.0
MULTICAST_API multicast_status multicast_remove_every_within(multicast target,
                                                       multicast_delegate delegate,
                                                       uint64_t timeout_ns);

/// Like multicast_remove_many(), but with a time limit, and reports whether calls still run.
///
/// @param out  MULTICAST_OK: no call of them runs; MULTICAST_PENDING or
///             MULTICAST_ERROR_TIMEOUT: one still runs, and `release` runs when the last
///             has returned. If the function fails, its status. May be NULL.
/// @since 1.0
MULTICAST_API int64_t multicast_remove_many_within(multicast target,
                                                   const multicast_delegate *delegates,
                                                   size_t count, uint64_t timeout_ns,
                                                   multicast_status *out);

/// Like multicast_remove_context(), but with a time limit, and reports whether calls still run.
///
/// @param out  As in multicast_remove_many_within().
/// @since 1.0
MULTICAST_API int64_t multicast_remove_context_within(multicast target, void *context,
                                                      uint64_t timeout_ns, multicast_status *out);

/// Like multicast_remove_all(), but with a time limit, and reports whether calls still run.
///
/// @param out  As in multicast_remove_many_within().
/// @since 1.0
MULTICAST_API int64_t multicast_remove_all_within(multicast target, uint64_t timeout_ns,
                                                  multicast_status *out);

/// Like multicast_destroy(), but waits at most for a given time.
///
/// @return As multicast_destroy(). MULTICAST_ERROR_TIMEOUT: destroyed, by this call or by another
///         thread, but a call still runs on another thread.
/// @since 1.0
MULTICAST_API multicast_status multicast_destroy_within(multicast target, uint64_t timeout_ns);

/* ---- 3. Asking ------------------------------------------------------------------------------- */

/// Whether a handle belongs to an existing multicast.
///
/// @param target  Any value: it need not be a valid handle.
/// @return true while it exists.
/// Real time: yes.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD bool multicast_is_valid(multicast target);

/// The number of delegates. Paused delegates count. A delegate with a dead context counts until a
/// call or multicast_prune() finds that the context is dead.
///
/// @return The count (>= 0); MULTICAST_ERROR_INVALID_HANDLE.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD int64_t multicast_count(multicast target);

/// Whether the multicast has an equal delegate, paused or not, its context dead or not.
///
/// @param delegate  Function and context.
/// @return true if there is one; false if there is none or the handle is not valid.
/// Cost:      that of multicast_remove() to find it.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD bool multicast_contains(multicast target,
                                                          multicast_delegate delegate);

/// Returns the flag that multicast_has_listeners() reads in about 1 ns, without a call.
///
///     const uint32_t *flag = multicast_listener_flag(m);  // once
///     if (multicast_has_listeners(flag)) {                // each time
///       prepare(&payload);
///       multicast_invoke(m, 1, &payload, sizeof payload);
///     }
///
/// The flag is not 0 while the multicast has delegates as multicast_count() counts them, or keeps
/// invocations for later delegates (`replay`, MULTICAST_REENTRY_DEFER, MULTICAST_REENTRY_LATEST);
/// otherwise it is 0. Its memory is never unmapped. Once the multicast has been destroyed, the
/// value means nothing.
///
/// @return The address of the flag, always the same for one multicast. Never NULL: an invalid
///         handle gives a flag that is always 0.
/// Ownership: the library's; do not write to it.
/// Real time: yes.
/// @since 1.1
MULTICAST_API MULTICAST_NODISCARD const uint32_t *multicast_listener_flag(multicast target);

/// Whether a multicast has listeners: reads the flag, without calling the library.
///
/// @param flag  From multicast_listener_flag(); not NULL.
/// @return false if an invocation would call no delegate and would not be kept for later delegates.
/// @since 1.1
static inline bool multicast_has_listeners(const uint32_t *flag) {
#if defined(__GNUC__) || defined(__clang__)
  return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
#else
  return *(const volatile uint32_t *)flag != 0;
#endif
}

/// Copies the delegates in order of invocation: the delegates that multicast_count() counts.
///
/// @param out       Receives up to `capacity` delegates; may be NULL if `capacity` is 0.
/// @param capacity  Room at `out`, in delegates.
/// @return How many delegates there are (>= 0), even if that is more than `capacity`;
///         MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT.
/// Ownership: the copies belong to the caller; the owners of the contexts do not change.
/// Cost:      O(delegates).
/// @since 1.0
MULTICAST_API int64_t multicast_list(multicast target, multicast_delegate *out, size_t capacity);

/// Removes the delegates whose context is dead: calls `lock` of each delegate that has one, paused
/// and queued ones included, and then `unlock`, or removes the delegate if `lock` returned NULL.
///
/// `lock`, `unlock` and `release` run on the calling thread.
///
/// @return How many were removed (>= 0); MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_LIMIT and
///         MULTICAST_ERROR_OUT_OF_MEMORY as multicast_invoke().
/// Cost:      as multicast_invoke().
/// @since 1.0
MULTICAST_API int64_t multicast_prune(multicast target);

/// Why the last creation on this thread returned zero.
///
/// @return MULTICAST_OK if it succeeded, or if there was none; otherwise the reason:
///         MULTICAST_ERROR_INVALID_ARGUMENT, MULTICAST_ERROR_INVALID_HANDLE,
///         MULTICAST_ERROR_OUT_OF_MEMORY (also if the system had no thread key left), or
///         MULTICAST_ERROR_LIMIT.
/// Real time: yes.
/// @since 1.0
MULTICAST_API multicast_status multicast_create_error(void);

/* ---- 4. Visiting ----------------------------------------------------------------------------- */

/// The function that multicast_visit() calls for each delegate. The visitor calls the delegate's
/// own typed function. The visit waits for it.
///
/// @param context   As it was given to multicast_visit().
/// @param delegate  A copy of the delegate, valid until this call returns. If the delegate was
///                  added with `lock`, its `context` is the strong pointer that `lock` returned.
/// @return true to continue, false to stop.
/// Real time: yes, if the function itself keeps to the rules.
/// @since 1.0
typedef bool (*multicast_visitor)(void *context, const multicast_delegate *delegate);

/// Passes every delegate to a visitor, which calls the delegate's own typed function.
///
/// Visits are for protocols of several methods, for return values, and for stopping early. The
/// rules of multicast_invoke() apply: the same order, the same treatment of delegates that are
/// added or removed meanwhile. A removal waits until the visitor has returned. Paused delegates are
/// skipped. `events` does not apply. A delegate with a queue is passed at once, like any other. A
/// delegate with MULTICAST_ONCE is removed as it is passed.
///
/// @param visitor  Called for each delegate; not NULL. Returning false stops.
/// @param context  Passed to `visitor`; may be NULL.
/// @return How many delegates were passed (>= 0); MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_INVALID_ARGUMENT; MULTICAST_ERROR_LIMIT and
///         MULTICAST_ERROR_OUT_OF_MEMORY as multicast_invoke().
/// Cost:      as multicast_invoke().
/// Real time: prepared.
/// @since 1.0
MULTICAST_API int64_t multicast_visit(multicast target, multicast_visitor visitor, void *context);

/// Visits all delegates, or none: if the visitor refuses one, the visits before it are undone.
///
/// This is for two phases, such as prepare and roll back. When `visitor` returns false for a
/// delegate, `undo` is called for the delegates that were visited before, the last first. Delegates
/// that have been removed meanwhile are skipped; so a delegate with MULTICAST_ONCE, which is
/// removed as it is passed, is never undone. Delegates that have been paused meanwhile are undone.
/// If the thread ends inside `visitor` or `undo`, nothing is undone.
///
/// @param visitor  As in multicast_visit(); not NULL.
/// @param undo     Called as `visitor` is; not NULL. Its result is ignored.
/// @param context  Passed to `visitor` and to `undo`; may be NULL.
/// @return How many delegates are visited in the end: all (>= 0), or 0 if one was refused.
///         MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT; MULTICAST_ERROR_LIMIT
///         as multicast_invoke(); MULTICAST_ERROR_OUT_OF_MEMORY: none was visited.
/// Cost:      as multicast_visit(), and one allocation.
/// @since 1.1
MULTICAST_API int64_t multicast_visit_undo(multicast target, multicast_visitor visitor,
                                           multicast_visitor undo, void *context);

/* ---- 5. Tokens ------------------------------------------------------------------------------- */

/// Whether a registration is live.
///
/// @param token  Any value: it need not be a valid handle.
/// @return true from its addition to its removal; with MULTICAST_ONCE, until its only call begins.
/// Real time: yes.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD bool multicast_token_is_valid(multicast_token token);

/// Removes a registration.
///
/// @return MULTICAST_OK: this registration has ended; equal ones may remain. MULTICAST_PENDING: a
///         call still runs and waiting for it is not possible, whether this call or an earlier one
///         removed the registration. MULTICAST_ERROR_INVALID_HANDLE: it had already been removed;
///         the function first waited for its calls on other threads. MULTICAST_ERROR_SYSTEM.
/// Cost:      O(1) amortised.
/// @since 1.0
MULTICAST_API multicast_status multicast_token_remove(multicast_token token);

/// Removes a registration without waiting.
///
/// A second call removes nothing, and reports whether a call still runs. Only tokens have this
/// function: for multicasts, queues and lifetimes, use multicast_ended_within().
///
/// @return MULTICAST_OK: no call of it runs; MULTICAST_PENDING: removed, by this call or an
///         earlier one, but a call still runs, on this thread or another;
///         MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_SYSTEM.
/// Cost:      O(1) amortised.
/// @since 1.0
MULTICAST_API multicast_status multicast_token_remove_nowait(multicast_token token);

/// Like multicast_token_remove(), but waits at most for a given time.
///
/// @return As multicast_token_remove(). MULTICAST_ERROR_TIMEOUT: removed, by this call or an
///         earlier one, but a call still runs on another thread.
/// @since 1.0
MULTICAST_API multicast_status multicast_token_remove_within(multicast_token token,
                                                             uint64_t timeout_ns);

/// Leaves a delegate out of invocations until it is resumed. No effect if it is already paused.
///
/// Running calls of it continue, and this does not wait for them. Its queued calls are made.
///
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE.
/// Threads:   an invocation that happens after the pause does not call the delegate: on this
///            thread, or on another thread that has synchronized with it. Other invocations may
///            still call it for a short time.
/// @since 1.0
MULTICAST_API multicast_status multicast_token_pause(multicast_token token);

/// Ends a pause, if there is one: the delegate is called again, in its old position.
///
/// An invocation that is running calls the delegate if it has not passed its position yet.
///
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE.
/// @since 1.0
MULTICAST_API multicast_status multicast_token_resume(multicast_token token);

/// The registration that this thread is calling now; the innermost one if calls are nested.
///
/// With it a delegate can remove or pause itself without knowing its token.
///
/// @return Its token, which may be removed already; zero outside all delegates and visitors.
/// Reentry:   inside a `release`: the registration from whose call `release` was run. A `release`
///            that runs at the end of its own delegate's last call runs outside that call: there
///            the result is the registration of the enclosing call, or zero.
/// Real time: yes.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast_token multicast_token_current(void);

/// Calls the delegate of one registration, as multicast_invoke() does with each of its own.
///
/// A removal waits for this call, as for any other. The call is queued if the delegate has a queue.
///
/// @param event    Passed on unchanged. If the delegate does not want it, it is not called.
/// @param payload  Passed on unchanged; may be NULL if `size` is 0.
/// @param size     Bytes at `payload`, copied for a queued call. If 0, it gets the pointer itself.
/// @return 1: it was called or queued. 0: it is paused, does not want the event, its context is
///         dead, its queue refused the call, there was no memory for the payload of a queued call,
///         or it was removed at this moment.
///         MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT: `size` without
///         `payload`; MULTICAST_ERROR_LIMIT and MULTICAST_ERROR_OUT_OF_MEMORY as
///         multicast_invoke(); MULTICAST_ERROR_STATE: see MULTICAST_VISIT_ONLY.
/// Threads:   may wait for room in the queue of the delegate, as multicast_invoke().
/// @since 1.1
MULTICAST_API int64_t multicast_token_invoke(multicast_token token, uint32_t event,
                                             const void *payload, size_t size);

/// Passes the delegate of one registration to a visitor, as multicast_visit() does with each. The
/// visitor runs on the calling thread, even if the delegate has a queue.
///
/// @param visitor  Called for the delegate; not NULL. Its result is ignored.
/// @param context  Passed to `visitor`; may be NULL.
/// @return 1: it was passed. 0: it is paused, its context is dead, or it was removed at this
///         moment. MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT;
///         MULTICAST_ERROR_LIMIT and MULTICAST_ERROR_OUT_OF_MEMORY as multicast_invoke().
/// @since 1.1
MULTICAST_API int64_t multicast_token_visit(multicast_token token, multicast_visitor visitor,
                                            void *context);

/// The registrations that this thread is calling now, the outermost first.
///
/// The list shows how a call came about, for example when an invocation comes back to the multicast
/// that started it.
///
/// @param out       Receives up to `capacity` tokens, which may be removed already; may be NULL if
///                  `capacity` is 0.
/// @param capacity  Room at `out`, in tokens. 256 are always enough.
/// @return How many there are (>= 0), even if that is more than `capacity`: the last one is that of
///         multicast_token_current(). MULTICAST_ERROR_INVALID_ARGUMENT.
/// Cost:      O(calls).
/// Real time: yes.
/// @since 1.1
MULTICAST_API int64_t multicast_call_stack(multicast_token *out, size_t capacity);

/* ---- 6. Options ------------------------------------------------------------------------------ */

/// A lifetime: ending it removes every registration under it, in every multicast. See section 7.
/// @since 1.0
typedef struct multicast_lifetime {
  uint64_t id;  ///< Opaque; 0 is none.
} multicast_lifetime;

/// A queue: calls wait in it until the program's own loop, or a thread of the queue, makes them.
/// See section 8.
/// @since 1.0
typedef struct multicast_queue {
  uint64_t id;  ///< Opaque; 0 is none.
} multicast_queue;

/// `flags`: the delegate is called at most once, and is removed as this call begins. With a queue,
/// no further call of it is queued while one is waiting.
/// @since 1.0
#define MULTICAST_ONCE 0x1u

/// `flags`: equal delegates are removed first, without waiting for their running calls. The new one
/// goes last in its priority.
/// @since 1.0
#define MULTICAST_UNIQUE 0x2u

/// `flags`: at most one call of this delegate is queued. If a newer call comes, the queued
/// call keeps its place and gets the event and payload of the newer one. No effect without a queue.
/// With MULTICAST_ONCE, the single call gets the newest event that has arrived when it is made.
/// @since 1.0
#define MULTICAST_LATEST 0x4u

/// `flags`: this delegate gets no replay. No effect in a multicast without `replay`: see
/// multicast_create_options.
/// @since 1.1
#define MULTICAST_NO_REPLAY 0x8u

/// How a delegate is added.
/// @since 1.0
struct multicast_add_options {
  uint32_t struct_size;  ///< sizeof(multicast_add_options).
  /// MULTICAST_ONCE, MULTICAST_UNIQUE, MULTICAST_LATEST, MULTICAST_NO_REPLAY, joined by |.
  uint32_t flags;
  /// Higher is invoked first; equal priorities in order of addition.
  int32_t priority;
  uint32_t reserved;  ///< Must be 0.
  /// If bit i is set, the delegate wants event i; for protocols with optional methods. Events 64
  /// and above are always delivered. To receive no events, set only the bit of an unused event.
  /// (default: 0, all events)
  uint64_t events;
  /// The end of this lifetime removes the registration (default: none, it stays until removed).
  multicast_lifetime lifetime;
  /// Calls wait in this queue. The destruction of the queue removes the registration (default:
  /// none, the delegate is called on the thread that invokes). The queue of a broadcaster is used
  /// by multicast_broadcaster_register() only, not by an add to one of its multicasts.
  multicast_queue queue;
  /// Called exactly once for each registration, when that registration no longer uses the context:
  /// after the last call of it has returned, and after a failed add, see multicast_add(). Calls of
  /// other registrations with the same context may still run: if several share an object, this must
  /// drop a reference to the object, not free it. Runs on the thread that removes, or on the thread
  /// whose call was the last to return (default: NULL, no call).
  void (*release)(void *context);
  /// For a context that counts its own references: a weak_ptr, GWeakRef, a Swift or Python object.
  /// Called before each call, on the same thread. Returns the strong pointer that the delegate gets
  /// as its context. NULL means that the context is dead: the registration is removed at once, and
  /// `release` runs. Set `lock` and `unlock`, or neither. (default: NULL, the delegate gets
  /// `context`)
  void *(*lock)(void *context);
  /// Called after each call with the result of `lock`, even if the delegate removed itself or
  /// destroyed the multicast; not if the thread ended inside the call.
  void (*unlock)(void *strong);
  /// The name of what registered the delegate, for people: multicast_dump() and
  /// multicast_describe() write it. MULTICAST_HERE is a place in the source. Up to 63 bytes.
  const char *label;
};

/// The place in the source, as a label: `options.label = MULTICAST_HERE;` gives "file.c:41".
/// Compilers that know no __FILE_NAME__ give the path of the file, as it was compiled.
/// @since 1.1
#ifdef __FILE_NAME__
#define MULTICAST_HERE __FILE_NAME__ ":" MULTICAST_TEXT_OF(__LINE__)
#else
#define MULTICAST_HERE __FILE__ ":" MULTICAST_TEXT_OF(__LINE__)
#endif
/// The text of its argument, after macros in it were replaced: for MULTICAST_HERE.
/// @since 1.1
#define MULTICAST_TEXT_OF(number) MULTICAST_TEXT_OF_IT(number)
/// The text of its argument, as it is written: for MULTICAST_TEXT_OF.
/// @since 1.1
#define MULTICAST_TEXT_OF_IT(number) #number

/// All defaults, to initialize a static or local struct.
/// @since 1.0
#define MULTICAST_ADD_OPTIONS_INIT \
  {sizeof(multicast_add_options), 0, 0, 0, 0, {0}, {0}, NULL, NULL, NULL, NULL}

/// All defaults, with `struct_size` set.
/// @return The options, by value.
/// @since 1.0
static inline multicast_add_options multicast_add_options_default(void) {
  multicast_add_options options = MULTICAST_ADD_OPTIONS_INIT;
  return options;
}

/// The properties of a registration: multicast_token_get_registration(), multicast_enumerate().
/// @since 1.0
typedef struct multicast_registration {
  uint32_t struct_size;   ///< sizeof(multicast_registration).
  uint32_t flags;         ///< MULTICAST_ONCE and MULTICAST_LATEST, as in the options of the add.
  multicast_token token;  ///< Its token.
  multicast target;       ///< Its multicast.
  /// Its delegate. With a `lock`, `context` is still the context as it was added.
  multicast_delegate delegate;
  /// In multicast_enumerate(): the strong pointer that `lock` returned. Otherwise NULL.
  void *strong;
  int32_t priority;             ///< Its priority.
  bool is_paused;               ///< Whether it is paused.
  uint8_t reserved[3];          ///< 0.
  uint64_t events;              ///< Its events; 0: all.
  multicast_lifetime lifetime;  ///< Its lifetime, or none.
  multicast_queue queue;        ///< Its queue, or none.
  /// The label that it was added with, or NULL. Valid until the registration has ended.
  const char *label;
} multicast_registration;

/// All zero, with `struct_size` set: ready for multicast_token_get_registration().
/// @since 1.0
#define MULTICAST_REGISTRATION_INIT                                                             \
  {sizeof(multicast_registration), 0, {0}, {0}, {NULL, NULL}, NULL, 0, false, {0, 0, 0}, \
   0, {0}, {0}, NULL}

/// All zero, with `struct_size` set: ready for multicast_token_get_registration().
/// @return The struct, by value.
/// @since 1.0
static inline multicast_registration multicast_registration_default(void) {
  multicast_registration registration = MULTICAST_REGISTRATION_INIT;
  return registration;
}

/// Reads all properties of a registration, at one moment.
///
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT: `out` is
///         NULL or has a wrong `struct_size`.
/// @since 1.0
MULTICAST_API multicast_status multicast_token_get_registration(multicast_token token,
                                                   multicast_registration *out);

/// The function that multicast_enumerate() calls for each registration, and waits for.
///
/// @param context       As it was given to multicast_enumerate().
/// @param registration  The registration, valid until this call returns.
/// @return true to continue, false to stop.
/// @since 1.1
typedef bool (*multicast_enumerator)(void *context, const multicast_registration *registration);

/// Passes every registration to an enumerator, in the order of invocation. No delegate is called.
///
/// Paused delegates and delegates with a queue are included. A delegate with MULTICAST_ONCE stays.
/// A context with `lock` stays locked while it is passed, and `strong` is what `lock` returned. If
/// the context is dead, the registration is removed instead. A registration that is added during
/// the enumeration, or removed before its turn, is not passed. A removal waits until the enumerator
/// has returned. Inside the enumerator multicast_token_current() returns the registration that is
/// passed.
///
/// @param enumerator  Called for each registration; not NULL. Returning false stops.
/// @param context     Passed to `enumerator`; may be NULL.
/// @return How many were passed (>= 0); MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_INVALID_ARGUMENT; MULTICAST_ERROR_LIMIT and
///         MULTICAST_ERROR_OUT_OF_MEMORY as multicast_invoke().
/// Cost:      O(delegates), a short lock for each.
/// @since 1.1
MULTICAST_API int64_t multicast_enumerate(multicast target, multicast_enumerator enumerator,
                                          void *context);

/* ---- 7. Lifetimes ---------------------------------------------------------------------------- */

/// Creates a lifetime, for the `lifetime` of multicast_add_options.
///
/// Use one for each plugin, window or session whose registrations are to end together.
///
/// @return Its handle. Zero: the call failed, out of memory for instance.
/// Cost:      O(1); memory is taken for many at a time.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast_lifetime multicast_lifetime_create(void);

/// Ends a lifetime: removes every registration under it, from every multicast.
///
/// After MULTICAST_OK no delegate that was ever added under the lifetime runs on any thread or
/// waits in any queue, and every `release` of these delegates has returned; delegates that were
/// removed before are included. Their code may be unloaded. The handle is stale at once: an add
/// under it fails with MULTICAST_ERROR_INVALID_HANDLE.
///
/// @return MULTICAST_OK; MULTICAST_PENDING: a call or a `release` of such a delegate runs, and
///         waiting for it was not possible; nothing is left to wait for once the last `release` has
///         returned; MULTICAST_ERROR_INVALID_HANDLE, after waiting in the same way if another
///         thread has just ended the lifetime; MULTICAST_ERROR_SYSTEM.
/// Reentry:   inside a `release`: MULTICAST_PENDING if a registration of this lifetime was removed
///            by the same operation.
/// Cost:      O(registrations under it), with one memory barrier for all multicasts.
/// @since 1.0
MULTICAST_API multicast_status multicast_lifetime_end(multicast_lifetime lifetime);

/// Like multicast_lifetime_end(), but waits at most for a given time.
///
/// @return As multicast_lifetime_end(). MULTICAST_ERROR_TIMEOUT: ended, but a call or a `release`
///         still runs on another thread; nothing is left to wait for once the last `release` has
///         returned.
/// @since 1.0
MULTICAST_API multicast_status multicast_lifetime_end_within(multicast_lifetime lifetime,
                                                             uint64_t timeout_ns);

/// Whether a handle belongs to a lifetime that has not ended.
///
/// @param lifetime  Any value: it need not be a valid handle.
/// @return true until it ends.
/// Real time: yes.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD bool multicast_lifetime_is_valid(multicast_lifetime lifetime);

/// The number of registrations under a lifetime, counted as multicast_count() counts delegates.
///
/// @return The count (>= 0); MULTICAST_ERROR_INVALID_HANDLE.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD int64_t multicast_lifetime_count(multicast_lifetime lifetime);

/// Waits, up to a time limit, until an object that was ended is over: see the list below.
///
/// This is for a thread that did not end the object, or could not wait when it did: a delegate that
/// ends its own lifetime gets MULTICAST_PENDING, and its host asks here, on another thread or after
/// the call, whether dlclose() is safe. If the function that ended the object has returned
/// MULTICAST_OK, there is nothing left to wait for.
///
/// - a lifetime: no call of its delegates runs, and no `release` function;
/// - a multicast or a token: no call of its delegates, or of this one, runs;
/// - a queue: no call that it had queued runs, nor its `wake` function.
///
/// @param handle  The `id` of a multicast_lifetime, multicast, multicast_token or
///                multicast_queue. Any other value gives an error or MULTICAST_OK.
/// @return MULTICAST_OK: the object is over, for good. MULTICAST_PENDING: it is not over, but a
///         call of it is on this thread, or on one that waits for this thread. For a lifetime of
///         which only `release` functions are left, also inside any other call or `release`
///         function. MULTICAST_ERROR_TIMEOUT: it is not over after the time. MULTICAST_ERROR_STATE:
///         nothing has ended it yet. MULTICAST_ERROR_INVALID_HANDLE: it never was a handle of these
///         kinds. MULTICAST_ERROR_SYSTEM: as multicast_remove().
/// Threads:   waits like a removal: hold no lock that the calls take.
/// Cost:      O(threads). Of a lifetime, also what multicast_lifetime_end() has left to do.
/// @since 1.1
MULTICAST_API multicast_status multicast_ended_within(uint64_t handle, uint64_t timeout_ns);

/* ---- 8. Queues ------------------------------------------------------------------------------- */

/// A full queue's treatment of a new call.
/// @since 1.0
typedef uint32_t multicast_overflow;

/// The values of multicast_overflow.
/// @since 1.0
enum multicast_overflow_code {
  /// The new call is refused and counted (default).
  MULTICAST_OVERFLOW_REFUSE = 0,
  /// The call that has waited longest is dropped and counted.
  MULTICAST_OVERFLOW_DROP_OLDEST = 1,
  /// The invocation waits for room. The call is refused if the wait could never end: the invoking
  /// thread ran the queue last, or the thread that ran it last waits for the invoking thread; or,
  /// if no thread has run it yet, one that might do so waits for the invoking thread.
  ///
  /// A delegate may itself be blocked on a full queue. A thread that removes this delegate does not
  /// wait if it may be the thread that runs the queue. The removal then returns MULTICAST_PENDING
  /// (a removal that counts returns its count), and `release` runs when the call has returned.
  MULTICAST_OVERFLOW_BLOCK = 2
};

/// How a queue is created.
/// @since 1.0
typedef struct multicast_queue_options {
  uint32_t struct_size;  ///< sizeof(multicast_queue_options).
  uint32_t flags;        ///< Must be 0.
  /// How many calls fit, 1 to 2^24. Each takes 64 to 192 bytes, at creation (default: 0, which
  /// means 1024).
  size_t capacity;
  /// The treatment of a call if the queue is full (default: MULTICAST_OVERFLOW_REFUSE).
  multicast_overflow overflow;
  uint32_t reserved;  ///< Must be 0.
  /// The name of the queue's own thread, for debuggers and `top`. The system keeps the first 15
  /// bytes (default: NULL, the name of the thread that starts it).
  const char *thread_name;
  /// The stack of the queue's own thread, in bytes, at least 16384 (default: 0, the default of the
  /// system).
  size_t stack_size;
  /// For a loop that is woken by a call and not by a descriptor: uv_async_send(),
  /// g_main_context_wakeup(), call_soon_threadsafe(). Called when a call is queued, on the thread
  /// that invokes; and when a run ends and calls still wait, on the thread that ran the queue. It
  /// is called once, and not again before multicast_queue_run(), which the loop's thread has to
  /// call. A delegate that runs a loop of its own calls multicast_queue_run() first.
  /// multicast_queue_destroy() waits for a `wake` on another thread; none is called afterwards.
  /// @since 1.1
  void (*wake)(void *context);
  /// Passed to `wake`.
  /// @since 1.1
  void *wake_context;
  /// For threads with deadlines: at its creation the queue takes memory for payloads of up to this
  /// many bytes, at most 2^24; for `capacity` of them, and for 8 that belong to calls that run or
  /// are just being queued. Each takes 64 bytes more, and all pages are written to. Queueing such a
  /// payload and making its call takes no other memory. A payload that is larger, or that comes
  /// when none of this memory is left, takes an allocation. The queues of an invocation share one
  /// copy, in the memory of the first of them. (default: 0, none; up to 32 bytes need none)
  /// @since 1.1
  size_t payload_size;
  /// A name for people, which multicast_dump() writes. Up to 63 bytes.
  /// @since 1.1
  const char *label;
} multicast_queue_options;

/// All defaults, to initialize a static or local struct.
/// @since 1.0
#define MULTICAST_QUEUE_OPTIONS_INIT \
  {sizeof(multicast_queue_options), 0, 0, MULTICAST_OVERFLOW_REFUSE, 0, NULL, 0, NULL, \
   NULL, 0, NULL}

/// All defaults, with `struct_size` set.
/// @return The options, by value.
/// @since 1.0
static inline multicast_queue_options multicast_queue_options_default(void) {
  multicast_queue_options options = MULTICAST_QUEUE_OPTIONS_INIT;
  return options;
}

/// Creates a queue, for the `queue` of multicast_add_options.
///
/// An invocation does not call a delegate with a queue. It puts the call into the queue, with a
/// copy of the payload, where it waits until the queue is run: by the program's own loop with
/// multicast_queue_run(), or by a thread of the queue, see multicast_queue_start(). Calls run in
/// the order in which they were queued, one at a time.
///
/// @return Its handle. Zero: the call failed, out of memory for instance.
/// Threads:   an invocation that finds the queue full may wait: see MULTICAST_OVERFLOW_BLOCK.
/// Cost:      O(1); takes memory for `capacity` calls, which is not touched before it is used.
///            O(capacity) with `payload_size`. To queue a call takes the queue's lock and, if the
///            payload has more than 32 bytes and `payload_size` does not hold it, one allocation,
///            which all queued calls of the invocation share.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast_queue
multicast_queue_create(const multicast_queue_options *options);

/// Destroys a queue and removes every registration that delivers there.
///
/// Queued calls are not made, and their payloads are freed. A thread that runs the queue makes no
/// further call; the queue's own thread ends. multicast_queue_wait() and blocked invocations
/// return. The handle is stale at once, and the descriptor is closed.
///
/// @return MULTICAST_OK: no delegate that delivered there, and no `wake` of the queue, runs on
///         another thread; MULTICAST_PENDING: such a call, a `release` or the `wake` runs, and
///         waiting for it was not possible; MULTICAST_ERROR_INVALID_HANDLE, after waiting in the
///         same way if another thread is destroying it; MULTICAST_ERROR_SYSTEM.
/// Threads:   also waits for a `wake` on another thread.
/// Reentry:   inside its `wake`: MULTICAST_PENDING.
/// Cost:      O(registrations and queued calls).
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_destroy(multicast_queue queue);

/// Like multicast_queue_destroy(), but waits at most for a given time.
///
/// @return As multicast_queue_destroy(). MULTICAST_ERROR_TIMEOUT: the queue has been destroyed, but
///         a call, a `release` or the `wake` is still running on another thread. If the queue has
///         no `wake`, nothing is left to wait for once the last `release` has returned. A second
///         call, after this one has returned, gets MULTICAST_ERROR_INVALID_HANDLE without waiting.
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_destroy_within(multicast_queue queue,
                                                              uint64_t timeout_ns);

/// Whether a handle belongs to an existing queue.
///
/// @param queue  Any value: it need not be a valid handle.
/// @return true while it exists.
/// Real time: yes.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD bool multicast_queue_is_valid(multicast_queue queue);

/// Makes queued calls on this thread, oldest first.
///
/// Stops early if the queue is empty, is destroyed, or gets a thread of its own. A delegate that
/// the queue calls may call this function, as a modal loop does: that run makes the next calls.
///
/// This thread is from then on the one that ran the queue last: see MULTICAST_OVERFLOW_BLOCK and
/// MULTICAST_WAIT. A run that finds no call in the queue does not count.
///
/// @param max  The most calls to make. 0: at most as many as wait when this starts; calls queued
///             meanwhile count towards that number.
/// @return How many calls were made (>= 0); MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_STATE:
///         another thread runs the queue, or it has a thread of its own, and this is not that
///         thread; MULTICAST_ERROR_LIMIT: 256 invocations and runs are nested on this thread;
///         MULTICAST_ERROR_OUT_OF_MEMORY: only at the first invocation or run of a thread.
/// Ownership: frees the queue's copy of the payload after each call.
/// Threads:   only one thread at a time runs a queue.
/// Cost:      O(calls made), a short lock for each at most; no allocation.
/// Real time: prepared, unless the payload of a call exceeds 32 bytes and `payload_size`.
/// @since 1.0
MULTICAST_API int64_t multicast_queue_run(multicast_queue queue, size_t max);

/// Drops the calls that wait in the queue, and frees their payloads. The calls count as `dropped`.
/// Invocations that wait for room continue.
///
/// @return How many were dropped (>= 0); MULTICAST_ERROR_INVALID_HANDLE.
/// Cost:      O(calls dropped).
/// @since 1.0
MULTICAST_API int64_t multicast_queue_clear(multicast_queue queue);

/// Waits until a call is queued. Does not poll.
///
/// @return How many calls are queued (> 0); MULTICAST_ERROR_TIMEOUT: none;
///         MULTICAST_ERROR_INVALID_HANDLE: not a queue, or destroyed during the wait.
/// Threads:   several may wait: all are woken. Another thread may run the calls first.
/// Reentry:   a delegate that waits here delays the other calls of the queue that runs it.
/// @since 1.0
MULTICAST_API int64_t multicast_queue_wait(multicast_queue queue, uint64_t timeout_ns);

/// A descriptor that is readable while calls are queued: for poll, epoll, GLib, libuv, asyncio.
///
/// When it is readable, call multicast_queue_run(). Level-triggered use needs nothing else. With
/// edge-triggered use, run until the queue is empty. The first call of this function makes the
/// descriptor. From then on the queue makes a system call each time it stops being empty and each
/// time it becomes empty. The child of a fork gets a descriptor of its own with the same number; an
/// epoll set made before is still shared with the parent.
///
/// @return The descriptor, the same each time; -1: not a queue, or the system has none left.
/// Ownership: the queue's. Only watch it: do not read, write or close it. Stop watching it before
///            multicast_queue_destroy(), which closes it.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD int multicast_queue_fd(multicast_queue queue);

/// Gives the queue a thread of its own, which makes its calls as they come.
///
/// The thread has the name and stack size of the queue's options. It blocks signals that are for
/// the program as a whole, such as SIGINT and SIGTERM, but not the signals of faults and not
/// real-time signals. If another thread is running the queue, the new one starts to make calls when
/// that run ends. The thread does not exist in the child of a fork.
///
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_STATE: the queue has a
///         thread, perhaps one that is stopping; MULTICAST_ERROR_SYSTEM: the system has no thread
///         left; MULTICAST_ERROR_OUT_OF_MEMORY.
/// Ownership: the thread is the queue's, until multicast_queue_stop() or multicast_queue_destroy().
/// Cost:      that of creating a thread.
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_start(multicast_queue queue);

/// Ends the queue's thread, after the call that is running. Queued calls stay queued.
///
/// It does not wait for another thread that is inside multicast_queue_run(), and does not stop it.
///
/// @return MULTICAST_OK: the thread makes no more calls; MULTICAST_PENDING: it ends when its call
///         has returned, and waiting for that was not possible; MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_STATE: the queue has no thread.
/// Threads:   waits for the call that the queue's thread runs.
/// Reentry:   inside a call that the queue's thread runs: MULTICAST_PENDING.
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_stop(multicast_queue queue);

/// The statistics of a queue since its creation, in calls.
///
/// At every moment `queued` is the sum of `pending`, `delivered`, `dropped`, `cancelled` and
/// `coalesced`. Every call that an invocation brings to the queue counts as `queued` or as
/// `refused`, except the call of a delegate with MULTICAST_ONCE that has one in the queue.
/// @since 1.0
typedef struct multicast_queue_stats {
  uint32_t struct_size;  ///< sizeof(multicast_queue_stats).
  uint32_t flags;        ///< 0.
  uint64_t pending;      ///< Calls that are in the queue now.
  uint64_t queued;       ///< Calls that were accepted.
  uint64_t delivered;    ///< Calls that were executed, including the call that is running.
  /// Calls that were not accepted: no room, no memory for the payload, waiting for room would have
  /// closed a cycle, or the delegate was removed while its call waited for room.
  uint64_t refused;
  /// Calls that were dropped: for newer calls; by multicast_queue_clear(); or, in the child of a
  /// fork, because they are the parent's.
  uint64_t dropped;
  uint64_t cancelled;  ///< Calls whose delegate was removed, or whose context was dead.
  uint64_t coalesced;  ///< Calls replaced by a newer call of the same delegate: MULTICAST_LATEST.
  uint64_t highest;    ///< The most calls that were ever in the queue.
} multicast_queue_stats;

/// All zero, with `struct_size` set: ready for multicast_queue_get_stats().
/// @since 1.0
#define MULTICAST_QUEUE_STATS_INIT \
  {sizeof(multicast_queue_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0}

/// All zero, with `struct_size` set: ready for multicast_queue_get_stats().
/// @return The statistics, by value.
/// @since 1.0
static inline multicast_queue_stats multicast_queue_stats_default(void) {
  multicast_queue_stats stats = MULTICAST_QUEUE_STATS_INIT;
  return stats;
}

/// Reads all statistics of the queue, at one moment.
///
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT: `out` is
///         NULL or has a wrong `struct_size`.
/// @since 1.0
MULTICAST_API multicast_status multicast_queue_get_stats(multicast_queue queue,
                                                         multicast_queue_stats *out);

/* ---- 9. Invocations with options ------------------------------------------------------------- */

/// `flags`: the invocation returns when each call that it queued was made, dropped or cancelled.
///
/// The invocation never hangs on itself. It does not wait for a call that only this thread could
/// execute, or only a thread that waits for this thread: the thread that ran a queue last, or the
/// queue's own thread, is expected to run the queue. Such a call stays queued and counts as
/// `unfinished`. If no thread has run the queue yet, or that thread has ended, the invocation waits
/// until another thread runs the queue; but not if a thread that might run the queue waits for this
/// thread.
/// @since 1.1
#define MULTICAST_WAIT 0x1u

/// How a multicast is invoked: multicast_invoke_with(). The defaults do the same as
/// multicast_invoke().
///
/// To hand the payload over, set `release` alone. Nothing is copied: direct and queued calls get
/// `payload` itself. For a payload that is not plain bytes, or that has owners of its own, set
/// `copy` and `release`: direct calls get `payload`, queued calls share what `copy` returned.
/// @since 1.1
typedef struct multicast_invocation {
  uint32_t struct_size;  ///< sizeof(multicast_invocation).
  uint32_t flags;        ///< MULTICAST_WAIT, or 0.
  uint32_t event;        ///< As in multicast_invoke().
  uint32_t reserved;     ///< Must be 0.
  /// As in multicast_invoke(). With `copy` or `release` any value is valid, including
  /// NULL, whatever `size` is. A transport of the broadcaster reads `size` bytes of it.
  const void *payload;
  size_t size;  ///< Bytes at `payload`. With `copy` or `release` it is only passed on.
  /// Makes the payload of queued calls and of replays. Called at most once, on the invoking thread:
  /// when the first call is to be queued, or at once if the multicast replays. These calls get what
  /// it returned, and `size`. NULL as its result means that there is no memory: the calls that
  /// would be queued are refused; if the multicast replays, the invocation fails.
  const void *(*copy)(const void *payload, size_t size);
  /// With `copy`: called exactly once with what `copy` has returned. Without: called exactly once
  /// with `payload`, which is the library's from here on. It runs when the last call that shares
  /// the payload has returned or is given up, and no replay can need it, on the thread on which
  /// that happens; if no call was queued, before the invocation returns. It runs even if the
  /// invocation fails.
  void (*release)(const void *payload, size_t size);
  /// With MULTICAST_WAIT: nanoseconds on the monotonic clock, from the beginning of the invocation
  /// (default: 0, no limit; functions with a `timeout_ns` do not wait at all if it is 0). It does
  /// not end calls on the invoking thread, nor waits for room in a queue: MULTICAST_OVERFLOW_BLOCK.
  uint64_t timeout_ns;
} multicast_invocation;

/// All defaults, to initialize a static or local struct.
/// @since 1.1
#define MULTICAST_INVOCATION_INIT \
  {sizeof(multicast_invocation), 0, 0, 0, NULL, 0, NULL, NULL, 0}

/// All defaults, with `struct_size` set.
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
  /// Calls that were not queued: the queue refused them, or there was no memory for the payload.
  /// Not counted: a delegate that is removed before its call is queued, and a delegate with
  /// MULTICAST_ONCE that has a call in the queue.
  uint64_t refused;
  /// With MULTICAST_WAIT: queued calls that were executed, even if their thread ended inside.
  /// Otherwise 0.
  uint64_t finished;
  /// With MULTICAST_WAIT: queued calls that still wait or run. The rest of `queued` was dropped,
  /// cancelled, or replaced by a newer call. Otherwise 0.
  uint64_t unfinished;
} multicast_outcome;

/// All zero, with `struct_size` set: ready for multicast_invoke_with().
/// @since 1.1
#define MULTICAST_OUTCOME_INIT {sizeof(multicast_outcome), 0, 0, 0, 0, 0, 0}

/// All zero, with `struct_size` set: ready for multicast_invoke_with().
/// @return The struct, by value.
/// @since 1.1
static inline multicast_outcome multicast_outcome_default(void) {
  multicast_outcome outcome = MULTICAST_OUTCOME_INIT;
  return outcome;
}

/// Invokes a multicast as multicast_invoke() does, and can also hand the payload over, wait for the
/// queued calls, and report what became of the calls.
///
/// @param how  How; not NULL.
/// @param out  Receives the outcome, all zero if the invocation fails. May be NULL. Not written
///             after MULTICAST_ERROR_INVALID_ARGUMENT.
/// @return As multicast_invoke(). MULTICAST_ERROR_INVALID_ARGUMENT: `how` or `out` cannot be read,
///         or `size` without any of `payload`, `copy` and `release`. MULTICAST_ERROR_OUT_OF_MEMORY:
///         no delegate was called; also if there is no memory to take over the payload.
///         MULTICAST_ERROR_TIMEOUT: the time of MULTICAST_WAIT is up; all delegates were called or
///         queued, and the calls that are left stay queued, as `unfinished`.
/// Ownership: see `release`. If `how` cannot be read (NULL, bad `struct_size`, non-zero tail,
///            unknown flag, `reserved` not 0), `release` does not run and the payload stays yours.
///            After every other failure it has run.
/// Threads:   with MULTICAST_WAIT it waits for the threads that run the queues: do not hold a lock
///            that a delegate takes. A thread that ends inside a delegate gives the payload back.
/// Reentry:   inside a call that a queue executes, a call of the same queue is `unfinished`.
/// Cost:      as multicast_invoke(). One small allocation for a payload that is handed over or
///            copied by `copy`; with MULTICAST_WAIT, one for each row of calls for the same queue.
/// @since 1.1
MULTICAST_API int64_t multicast_invoke_with(multicast target, const multicast_invocation *how,
                                            multicast_outcome *out);

/* ---- 10. Policies ---------------------------------------------------------------------------- */

/// The treatment of an invocation that begins inside a call of the same multicast, on the same
/// thread, directly or through other multicasts.
///
/// It applies to multicast_invoke() and multicast_invoke_with(). The outer call may also be a
/// visit, an enumeration or the call of one token, or a `lock`, `unlock`, `copy` or `wake` of one
/// of these. A call that a queue executes is not an outer call: the invocation that queued the call
/// is over. Visits, enumerations and calls of one token are always made at once. The policy comes
/// before the limit of 256 levels: a refused or deferred invocation needs no level.
/// @since 1.1
typedef uint32_t multicast_reentry;

/// The values of multicast_reentry.
/// @since 1.1
enum multicast_reentry_code {
  /// The invocation is made at once, inside the other (default).
  MULTICAST_REENTRY_RECURSE = 0,
  /// The invocation fails with MULTICAST_ERROR_STATE and calls nothing. multicast_call_stack()
  /// shows the outer calls.
  MULTICAST_REENTRY_REFUSE = 1,
  /// The invocation is made when the thread has left the outermost invocation or visit of the
  /// multicast; if several are deferred, in order. Deferred invocations are not made if the thread
  /// ends inside the outermost one, or if the multicast has been destroyed.
  ///
  /// A deferred invocation returns 0, and in the outcome of multicast_invoke_with() it counts as
  /// `queued`; MULTICAST_WAIT does not wait for it, but counts it as `unfinished`. Its payload is
  /// copied, unless it is handed over; if `size` is 0, the pointer itself is passed on. At most
  /// 65536 are deferred: the next invocation fails with MULTICAST_ERROR_LIMIT. An invocation that
  /// cannot be deferred for lack of memory fails with MULTICAST_ERROR_OUT_OF_MEMORY.
  MULTICAST_REENTRY_DEFER = 2,
  MULTICAST_REENTRY_LATEST = 3  ///< Like MULTICAST_REENTRY_DEFER, but only the newest is made.
};

/// `flags`: the contexts are not for multicast_function, but for visitors.
/// multicast_invoke(), multicast_invoke_with() and multicast_token_invoke() fail with
/// MULTICAST_ERROR_STATE.
/// @since 1.1
#define MULTICAST_VISIT_ONLY 0x1u

/// How a multicast is created. The defaults do the same as multicast_create().
/// @since 1.1
typedef struct multicast_create_options {
  uint32_t struct_size;  ///< sizeof(multicast_create_options).
  /// The treatment of an invocation inside a call of the same multicast (default:
  /// MULTICAST_REENTRY_RECURSE).
  multicast_reentry reentry;
  const char *label;  ///< A name for people. The first 63 bytes are kept.
  /// The number of past invocations that a delegate gets when it is added, from multicast_invoke()
  /// and multicast_invoke_with(). A delegate gets each invocation once, as a replay or as it
  /// happens, whatever other threads add and invoke meanwhile. It gets the replays first, in the
  /// order in which the invocations began. (default: 0, none)
  ///
  /// Replays are calls like any other, on the thread that adds, before the add returns; for a
  /// delegate with a queue they are queued. A removal of the delegate ends its replays. Invocations
  /// that begin during the replays, even inside one, are replayed last; the other delegates get
  /// them at once. With MULTICAST_REENTRY_DEFER an invocation inside a replay is made after the
  /// replays, for all delegates. Several delegates that are added at once get each replay one after
  /// the other.
  ///
  /// An invocation keeps `size` bytes, or the payload that `copy` returns or that is handed over,
  /// until newer invocations take its place or the multicast is destroyed. While a delegate is
  /// added, the invocations that it has not got yet are also kept. When these are 64 more than
  /// `replay`, an invocation waits until the delegate has got them or is removed; but not inside a
  /// replay, nor if the add waits for this thread. So a replay must not wait for a thread that
  /// invokes, on a semaphore for instance. An invocation fails with
  /// MULTICAST_ERROR_OUT_OF_MEMORY if it cannot be kept.
  uint32_t replay;
  uint32_t flags;  ///< MULTICAST_VISIT_ONLY, or 0.
  void *context;   ///< Passed to `listeners_changed` and `release`.
  /// Called when the first delegate has been added (`has_listeners` is true), and when the last one
  /// has been removed, in whatever way: for a source that runs only while it has listeners. Called
  /// on the thread that made the change; a removal calls it before it waits. Never runs on two
  /// threads at once. `has_listeners` alternates, beginning with true, and the last call has the
  /// current state. If two threads make changes at the same time, one of them may report both
  /// changes, or neither if they cancel each other out. Replacing the only delegate by
  /// MULTICAST_UNIQUE is not a change. The function may add and remove delegates; the library then
  /// calls it again after it has returned.
  void (*listeners_changed)(void *context, multicast target, bool has_listeners);
  /// Called exactly once, after multicast_destroy(), when no call of `listeners_changed` runs. Not
  /// called if the creation fails.
  void (*release)(void *context);
  /// The `lock` and `unlock` of every delegate whose options have none: where all contexts are of
  /// one kind, as in the binding of a language. Such a delegate takes no more memory than a plain
  /// one. Set both or neither.
  void *(*lock_context)(void *context);
  void (*unlock_context)(void *strong);  ///< See `lock_context`.
  /// The `release` of every delegate whose options have none. Unlike `release` of the options, it
  /// does not run for a delegate that was not added: after a failed add the context stays the
  /// caller's.
  void (*release_context)(void *context);
} multicast_create_options;

/// All defaults, to initialize a static or local struct.
/// @since 1.1
#define MULTICAST_CREATE_OPTIONS_INIT                                                            \
  {sizeof(multicast_create_options), MULTICAST_REENTRY_RECURSE, NULL, 0, 0, NULL, NULL, \
   NULL, NULL, NULL, NULL}

/// All defaults, with `struct_size` set.
/// @return The options, by value.
/// @since 1.1
static inline multicast_create_options multicast_create_options_default(void) {
  multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  return options;
}

/// Creates an empty multicast with policies. Every function takes it as any other multicast.
///
/// @return Its handle. Zero: invalid options, or as multicast_create().
/// Cost:      O(1); memory is taken for many at a time. Multicasts without policies do not become
///            slower. An invocation takes a few nanoseconds more; with `replay` a lock, and an
///            allocation or two. With `replay` an add takes an allocation and O(replay).
/// @since 1.1
MULTICAST_API MULTICAST_NODISCARD multicast
multicast_create_with(const multicast_create_options *options);

/* ---- 11. Broadcasters ------------------------------------------------------------------------ */

/// A set of multicasts that are found by name: observers and notifiers need to share only the name.
/// @since 1.0
typedef struct multicast_broadcaster {
  uint64_t id;  ///< Opaque; 0 is none.
} multicast_broadcaster;

/// How a broadcaster is created.
/// @since 1.0
typedef struct multicast_broadcaster_options {
  uint32_t struct_size;  ///< sizeof(multicast_broadcaster_options).
  uint32_t flags;        ///< Must be 0.
  /// The queue of observers whose options have none; usually that of the program's main loop. It
  /// stays the caller's. After it is destroyed such observers cannot register. (default: none, they
  /// are called on the thread that notifies)
  multicast_queue queue;
} multicast_broadcaster_options;

/// All defaults, to initialize a static or local struct.
/// @since 1.0
#define MULTICAST_BROADCASTER_OPTIONS_INIT \
  {sizeof(multicast_broadcaster_options), 0, {0}}

/// All defaults, with `struct_size` set.
/// @return The options, by value.
/// @since 1.0
static inline multicast_broadcaster_options multicast_broadcaster_options_default(void) {
  multicast_broadcaster_options options = MULTICAST_BROADCASTER_OPTIONS_INIT;
  return options;
}

/// Creates a broadcaster. It has a multicast for each name, made at the first use of the name.
///
/// Observers register under a name, from any thread, and are notified by that name. Observers of
/// different names are independent. Names are compared byte by byte. A name stays until
/// the broadcaster is destroyed.
///
/// @return Its handle. Zero: the call failed, out of memory for instance.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast_broadcaster
multicast_broadcaster_create(const multicast_broadcaster_options *options);

/// Destroys a broadcaster and all its multicasts, each as multicast_destroy() does.
///
/// @return MULTICAST_OK: no observer of it runs on another thread; MULTICAST_PENDING;
///         MULTICAST_ERROR_INVALID_HANDLE, after waiting if another thread is destroying it;
///         MULTICAST_ERROR_STATE: it is multicast_broadcaster_default(), which stays;
///         MULTICAST_ERROR_SYSTEM.
/// Cost:      O(names and observers).
/// @since 1.0
MULTICAST_API multicast_status multicast_broadcaster_destroy(multicast_broadcaster broadcaster);

/// Like multicast_broadcaster_destroy(), but waits at most for a given time.
///
/// @return As multicast_broadcaster_destroy(). MULTICAST_ERROR_TIMEOUT: destroyed, but a call of an
///         observer still runs on another thread. A second call, after this one has returned, gets
///         MULTICAST_ERROR_INVALID_HANDLE without waiting.
/// Threads:   waits without a limit for other threads that are looking up names, which is short.
/// @since 1.0
MULTICAST_API multicast_status multicast_broadcaster_destroy_within(
    multicast_broadcaster broadcaster, uint64_t timeout_ns);

/// Whether a handle belongs to an existing broadcaster.
///
/// @param broadcaster  Any value: it need not be a valid handle.
/// @return true while it exists.
/// Real time: yes.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD bool multicast_broadcaster_is_valid(
    multicast_broadcaster broadcaster);

/// The broadcaster of the process, for code that shares no other. It has no queue of its own and is
/// never destroyed.
///
/// @return Its handle, the same each time. Zero: out of memory at its first use.
/// Ownership: the library's.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast_broadcaster multicast_broadcaster_default(void);

/// Registers an observer of a name: multicast_add() to its multicast.
///
/// An observer that registers twice is notified twice, unless it uses MULTICAST_UNIQUE.
///
/// @param name      1 to 255 bytes and a NUL, in any encoding.
/// @param observer  What to call; `function` must not be NULL.
/// @param options   How, or NULL for the defaults, as in multicast_add(). If `queue` is none,
///                  the broadcaster's queue is used.
/// @param out       Receives the token; zero if the call fails. May be NULL.
/// @return As multicast_add(). MULTICAST_ERROR_INVALID_ARGUMENT also for a name that is NULL, empty
///         or too long; MULTICAST_ERROR_INVALID_HANDLE also if the broadcaster's queue was
///         destroyed; MULTICAST_ERROR_LIMIT also if 14,680,064 names exist in this broadcaster.
/// Ownership: as multicast_add(): with `release` the library owns the context from this call on,
///            even if the call fails.
/// Cost:      a look-up of the name, and multicast_add(); a new name takes a lock.
/// @since 1.0
MULTICAST_API multicast_status multicast_broadcaster_register(multicast_broadcaster broadcaster,
                                                              const char *name,
                                                              multicast_delegate observer,
                                                              const multicast_add_options *options,
                                                              multicast_token *out);

/// Like multicast_broadcaster_register(), for all names that begin with a prefix, now or later.
///
/// There is one registration for all names. A notification or multicast_broadcaster_deliver() calls
/// the observers of the name first, and then the observers of its prefixes, from the longest prefix
/// to the shortest. Each of these groups is invoked when the calls of the group before have ended,
/// with MULTICAST_WAIT also the queued calls. So an observer that an earlier group has added is
/// called. During the call, multicast_current_name() returns the name. Invoking the multicast of a
/// name does not call observers of prefixes.
///
/// @param prefix  0 to 254 bytes and a NUL, copied; "" is a prefix of every name. No byte has a
///                special meaning. A prefix counts as a name.
/// Cost:      as multicast_broadcaster_register(). Once there is a prefix, each notification looks
///            up one more name for each length that a prefix has, and a queued call of an observer
///            of a prefix allocates memory.
/// @since 1.1
MULTICAST_API multicast_status multicast_broadcaster_register_prefix(
    multicast_broadcaster broadcaster, const char *prefix, multicast_delegate observer,
    const multicast_add_options *options, multicast_token *out);

/// The name of the notification that is calling an observer of a prefix on this thread, even where
/// the thread runs a queue. If calls are nested, the innermost call counts.
///
/// @return The name, valid until the observer returns; NULL in any other call and outside of calls.
/// Real time: yes.
/// @since 1.1
MULTICAST_API MULTICAST_NODISCARD const char *multicast_current_name(void);

/// Registers several observers of a name, as multicast_add_many() does: all of them, or none.
///
/// @param observers  `count` delegates; may be NULL if `count` is 0.
/// @param count      How many; at most 2^26.
/// @param options    As in multicast_broadcaster_register().
/// @param out        As in multicast_add_many().
/// @return As multicast_add_many() and multicast_broadcaster_register().
/// Ownership: as multicast_add_many().
/// Cost:      a look-up of the name, and multicast_add_many(); a new name takes a lock.
/// @since 1.0
MULTICAST_API multicast_status multicast_broadcaster_register_many(
    multicast_broadcaster broadcaster, const char *name, const multicast_delegate *observers,
    size_t count, const multicast_add_options *options, multicast_token *out);

/// Unregisters an observer of a name, as multicast_remove() does.
///
/// @param observer  Function and context, as they were registered.
/// @return As multicast_remove(). MULTICAST_ERROR_NOT_FOUND also if the name was never registered;
///         MULTICAST_ERROR_INVALID_ARGUMENT: not a name.
/// Cost:      a look-up of the name, and multicast_remove().
/// @since 1.0
MULTICAST_API multicast_status multicast_broadcaster_unregister(multicast_broadcaster broadcaster,
                                                                const char *name,
                                                                multicast_delegate observer);

/// Unregisters all observers of a name, as multicast_remove_all() does.
///
/// @return How many were removed (>= 0), 0 if the name was never registered;
///         MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT: not a name;
///         MULTICAST_ERROR_SYSTEM.
/// Cost:      a look-up of the name, and multicast_remove_all().
/// @since 1.0
MULTICAST_API int64_t multicast_broadcaster_unregister_all(multicast_broadcaster broadcaster,
                                                           const char *name);

/// Unregisters all observers of a name with this context, as multicast_remove_context() does.
///
/// @param context  The context; may be NULL.
/// @return As multicast_broadcaster_unregister_all().
/// Cost:      a look-up of the name, and multicast_remove_context().
/// @since 1.0
MULTICAST_API int64_t multicast_broadcaster_unregister_context(multicast_broadcaster broadcaster,
                                                               const char *name,
                                                               void *context);

/// Notifies the observers of a name: multicast_invoke() of its multicast. If the broadcaster has a
/// transport, it then publishes the notification.
///
/// @param event    As in multicast_invoke().
/// @param payload  As in multicast_invoke().
/// @param size     As in multicast_invoke().
/// @return As multicast_invoke(), 0 if the name was never registered.
///         MULTICAST_ERROR_INVALID_ARGUMENT also if `name` is not a name. If `publish` returned a
///         negative status, that status: the observers of this process were notified. After another
///         error nothing is published.
/// Threads:   as multicast_invoke().
/// Cost:      a look-up of the name, which takes no lock, and multicast_invoke(). With a transport
///            also one call of `publish`; if there are no observers, only that.
/// Real time: prepared, as multicast_invoke(). Not with a transport.
/// @since 1.0
MULTICAST_API int64_t multicast_broadcaster_notify(multicast_broadcaster broadcaster,
                                                   const char *name, uint32_t event,
                                                   const void *payload, size_t size);

/// Notifies as multicast_broadcaster_notify() does, and can also hand the payload over, wait for
/// the queued calls, and report what became of the calls: see multicast_invoke_with().
///
/// @param how  How; not NULL.
/// @param out  As in multicast_invoke_with().
/// @return As multicast_broadcaster_notify() and multicast_invoke_with(). After
///         MULTICAST_ERROR_TIMEOUT the notification has been published. A failure of `publish` does
///         not change the outcome.
/// Ownership: as multicast_invoke_with(). If the name has no observers, the payload is released,
///            after a transport has published it.
/// Threads:   as multicast_invoke_with().
/// Cost:      as multicast_broadcaster_notify() and multicast_invoke_with().
/// @since 1.1
MULTICAST_API int64_t multicast_broadcaster_notify_with(multicast_broadcaster broadcaster,
                                                        const char *name,
                                                        const multicast_invocation *how,
                                                        multicast_outcome *out);

/// The multicast of a name, which is made if there is none. For hot paths: look it up once, then
/// invoke it. An add to it does not use the broadcaster's queue. An invocation of it calls the
/// observers of this process only: a transport does not publish it.
///
/// @return Its handle, the same each time. Zero: not a broadcaster, not a name, out of memory, or
///         14,680,064 names exist in this broadcaster, or 2^26 multicasts.
/// Ownership: the broadcaster's. If a caller destroys it nevertheless, this function returns the
///            stale handle until the next registration under the name. That registration makes a
///            new multicast, even if the registration itself fails for lack of memory.
/// Cost:      O(length of the name), however many names there are; only a new name takes a lock.
/// @since 1.0
MULTICAST_API MULTICAST_NODISCARD multicast multicast_broadcaster_multicast(
    multicast_broadcaster broadcaster, const char *name);

/* ---- 12. Transports -------------------------------------------------------------------------- */

/// The functions that connect the names of a broadcaster with other processes and machines:
/// functions of a program, or of a library for a message broker. The library itself has no network
/// code. examples-c/14_transport.c is a complete transport.
///
/// multicast_broadcaster_notify() calls the observers of this process, then `publish`. The
/// transport hands notifications from elsewhere to multicast_broadcaster_deliver(). A transport
/// that receives its own notifications must not deliver them. Data from elsewhere may be anything:
/// check that `size` bytes are there, and that the name ends.
///
/// Each function may be called on any thread, and several at once; but for one name only one of
/// `subscribe` and `unsubscribe` at a time. multicast_token_current() and multicast_call_stack()
/// leave these calls out: they return the same inside such a call as around it.
/// @since 1.1
typedef struct multicast_transport {
  uint32_t struct_size;  ///< sizeof(multicast_transport).
  uint32_t flags;        ///< 0 or MULTICAST_TRANSPORT_PREFIXES.
  void *context;         ///< Passed to all functions.
  /// Sends one notification. `name` and `payload` are borrowed for the call; `payload` is the
  /// notifier's, NULL only if `size` is 0. Called on the thread that notifies.
  /// multicast_broadcaster_notify() returns a negative status of this function. Not NULL.
  multicast_status (*publish)(void *context, const char *name, uint32_t event,
                              const void *payload, size_t size);
  /// Called when a name gets its first observer, on the thread that registers the observer, before
  /// the registration returns; or on a thread that calls `subscribe` or `unsubscribe` for the same
  /// name. If two changes happen at the same time, one thread may report both, or neither if they
  /// cancel each other out. The last call reports the current state. After a negative status the
  /// name is not subscribed: `subscribe` is called again, at the latest when another observer of
  /// the name comes or goes, and the name has an observer. The same happens if `subscribe` could
  /// not be called, because 256 calls are nested or the thread has no memory for its first call.
  multicast_status (*subscribe)(void *context, const char *name);
  /// Called when the last observer of a subscribed name is gone, for whatever reason: it was
  /// unregistered, its lifetime or queue has ended, or its context is dead. Called on the same
  /// threads as `subscribe`; a removal calls `unsubscribe` before it waits. Not called when the
  /// transport is detached: `release` ends all subscriptions.
  void (*unsubscribe)(void *context, const char *name);
  /// Called exactly once, when the transport is detached and none of its functions runs any more,
  /// on the thread that detached it or on the one whose call was the last to return. No function of
  /// the transport is called after it.
  void (*release)(void *context);
} multicast_transport;

/// A flag of a transport: `subscribe` and `unsubscribe` are also called for prefixes. Then `name`
/// is empty, and the prefix begins at `name + 1`. The transport must deliver each notification
/// whose name begins with the prefix only once, even if several subscriptions match. Without the
/// flag, observers of a prefix get from other processes only names with observers of their own.
/// @since 1.1
#define MULTICAST_TRANSPORT_PREFIXES 0x1u

/// No functions, to initialize a static or local struct.
/// @since 1.1
#define MULTICAST_TRANSPORT_INIT \
  {sizeof(multicast_transport), 0, NULL, NULL, NULL, NULL, NULL}

/// No functions, with `struct_size` set.
/// @return The transport, by value.
/// @since 1.1
static inline multicast_transport multicast_transport_default(void) {
  multicast_transport transport = MULTICAST_TRANSPORT_INIT;
  return transport;
}

/// Attaches a transport to a broadcaster, in place of the current transport; or detaches the
/// current transport.
///
/// For each name that has observers, `subscribe` is called before this returns. Later notifications
/// are published. The earlier transport is detached: when this returns MULTICAST_OK, no thread is
/// in a call of the earlier transport, none ever will be, and its `release` has returned.
/// multicast_broadcaster_destroy() detaches the transport in the same way, and waits for it in the
/// same way. If several threads attach at once, each detaches the transport of another thread, and
/// one transport stays.
///
/// @param broadcaster  The broadcaster; also multicast_broadcaster_default().
/// @param transport    NULL: detaches the transport, if there is one.
/// @return MULTICAST_OK; MULTICAST_PENDING: done, but a call of the earlier transport runs, and
///         waiting for it was not possible; MULTICAST_ERROR_INVALID_HANDLE;
///         MULTICAST_ERROR_INVALID_ARGUMENT: the transport cannot be read, or has no `publish`;
///         MULTICAST_ERROR_OUT_OF_MEMORY; MULTICAST_ERROR_LIMIT: 2^26 multicasts exist;
///         MULTICAST_ERROR_SYSTEM: done, but it is unknown whether calls of the earlier transport
///         still run, and its `release` never runs.
/// Ownership: with `release` the library owns `context` from this call on, also if the call fails:
///            then `release` has run. If the transport cannot be read (bad `struct_size`, non-zero
///            tail, unknown flag), it does not run and the context stays yours.
/// Threads:   waits for running calls of the earlier transport on other threads. Do not hold a lock
///            that its functions take.
/// Reentry:   inside a function of the earlier transport: MULTICAST_PENDING, and its `release` runs
///            when that function has returned.
/// Cost:      O(names). From the first transport on, each name takes some 250 bytes more, and the
///            removal of an observer makes one memory barrier; notifications without a transport
///            cost the same as before. Detaching makes one memory barrier.
/// @since 1.1
MULTICAST_API multicast_status multicast_broadcaster_attach(multicast_broadcaster broadcaster,
                                                            const multicast_transport *transport);

/// Notifies the observers of this process, as multicast_broadcaster_notify() does without a
/// transport: for notifications that a transport receives.
///
/// @param event    As in multicast_invoke().
/// @param payload  As in multicast_invoke().
/// @param size     As in multicast_invoke().
/// @return As multicast_invoke(), 0 if the name was never registered.
///         MULTICAST_ERROR_INVALID_ARGUMENT also if `name` is not a name.
/// Threads:   as multicast_invoke().
/// Cost:      as multicast_broadcaster_notify() without a transport.
/// Real time: prepared, as multicast_invoke().
/// @since 1.1
MULTICAST_API int64_t multicast_broadcaster_deliver(multicast_broadcaster broadcaster,
                                                    const char *name, uint32_t event,
                                                    const void *payload, size_t size);

/* ---- 13. Seeing what goes on ----------------------------------------------------------------- */

/// The function that receives the text of multicast_dump() and multicast_describe(): one line in
/// each call, with the line feed at its end.
///
/// @param context  As it was given to the function.
/// @param text     The line, not ended by a NUL. Valid until this call returns.
/// @param size     Bytes at `text`.
/// @return true to continue, false to stop.
/// @since 1.1
typedef bool (*multicast_writer)(void *context, const char *text, size_t size);

/// Writes the state of the library in this process: a text for people, to find out why a program
/// hangs, or what is still registered when it ends.
///
/// Each object begins with a line of its own: `multicast`, with a line for each delegate; `queue`;
/// `lifetime`; and `thread`, for each thread that is in a call or waits, with a line for each of
/// its calls, from the outermost, and a line for its wait. A value follows its name; a value that
/// does not apply is left out. Later versions may add values at the end of a line, and lines.
///
/// The function never hangs: it waits for no other thread, not even for a thread that is stopped
/// inside the library. The objects that such a thread is changing are reported as not readable,
/// after two seconds at most. So the function can be called in a debugger that has stopped the
/// process, `call (int)multicast_dump(0, 0)`, and by a thread that watches others.
///
/// A multicast has its label, or the first 63 bytes of the name that a broadcaster has for it; a
/// queue has its label, and a thread the name that the system has for it.
///
/// A function is shown as library(symbol+offset); `program` is the executable. A function that is
/// not exported, such as a static one, is shown as library(+offset): addr2line finds its name, file
/// and line, see examples-c/DUMP.md. It is shown as an address if it is in no library, and in the
/// child of a fork: there the list of libraries may be locked by a thread that does not exist.
/// A delegate that was removed and is still called is shown by its label, or its function.
///
/// @param writer   Receives the text. NULL: the text goes to a descriptor.
/// @param context  Passed to `writer`. Without a writer: the address of an int with the descriptor;
///                 NULL: standard error.
/// @return MULTICAST_OK, even if the writer has stopped.
/// Threads:   while other threads change things, each line is right at its own moment. A delegate
///            that is added or removed meanwhile may be left out.
/// Cost:      O(objects); a short lock for each, none while the writer runs. No allocation, and
///            about 2 KB of stack. O(names) for each multicast without a label.
/// @since 1.1
MULTICAST_API multicast_status multicast_dump(multicast_writer writer, void *context);

/// Writes a report of one multicast, as multicast_dump() does: its delegates, and the threads that
/// are in calls of them, or wait for such calls.
///
/// @param writer   As in multicast_dump().
/// @param context  As in multicast_dump().
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE: nothing was written.
/// Threads:   as multicast_dump().
/// Cost:      as multicast_dump(): O(delegates + threads).
/// @since 1.1
MULTICAST_API multicast_status multicast_describe(multicast target, multicast_writer writer,
                                                  void *context);

/// Functions that watch a multicast, or all multicasts. A watch without functions only counts: see
/// multicast_token_get_stats().
///
/// A call is a call of a delegate or visitor, by an invocation, by a visit, or by the run of a
/// queue. `slow` and `called` run on the thread of the call, when it has returned and before a
/// removal can complete that waits for it. Calls that the functions themselves make, and calls
/// at the 256th level of nesting, are counted but not watched. A thread that gets no memory
/// for its record calls no function of a watch. A watch of all multicasts also watches the calls of
/// transports. Their tokens are the library's own: do not pause or remove them.
/// @since 1.1
typedef struct multicast_watch {
  uint32_t struct_size;  ///< sizeof(multicast_watch).
  uint32_t reserved;     ///< Must be 0.
  /// Passed to the functions. Keep it valid until multicast_set_watch() has taken the watch away.
  void *context;
  /// The time from which a call is slow, and a wait is stuck (default: 0, never).
  uint64_t slow_ns;
  /// A call took at least `slow_ns`. `label` is that of the registration, or NULL; it is valid
  /// until this returns.
  void (*slow)(void *context, multicast_token token, const char *label, uint64_t elapsed_ns);
  /// A removal, or an invocation with MULTICAST_WAIT, has waited for `slow_ns`, and waits on.
  /// Called once, on the thread that waits. `token` names a call for which the thread waits; none
  /// if the call is still in the queue.
  void (*stuck)(void *context, multicast_token token, const char *label, uint64_t elapsed_ns);
  /// A call has returned, after `elapsed_ns`. `event` is that of the invocation; 0 for a visit.
  void (*called)(void *context, multicast_token token, uint32_t event, uint64_t elapsed_ns);
  /// The number of delegates of one multicast at which `listener_warning` is called (default: 0,
  /// never; 1 is taken as 2).
  uint64_t listener_warning_count;
  /// A multicast has grown to `listener_warning_count` delegates, or to twice, four times, eight
  /// times as many. Called once for each of these numbers until the watch is set anew, even if
  /// delegates are removed and added again; called once if one add passes several of them. Called
  /// on the thread that adds, after the add. An add inside a function of a watch, or at the 256th
  /// level of nesting, does not call it; the next add does. multicast_describe() writes the name of
  /// `target` and all its delegates.
  ///
  /// `count` is the number of its delegates. Either `label` is the most frequent label, or
  /// `function` is the most frequent function of delegates without a label; the other is NULL.
  /// `most` is the number of delegates that have it. If no label or function belongs to more than
  /// one delegate in nine, both are NULL, and `most` is 0. `label` is valid until this returns.
  void (*listener_warning)(void *context, multicast target, uint64_t count, const char *label,
                           multicast_function function, uint64_t most);
} multicast_watch;

/// All defaults, to initialize a static or local struct.
/// @since 1.1
#define MULTICAST_WATCH_INIT \
  {sizeof(multicast_watch), 0, NULL, 0, NULL, NULL, NULL, 0, NULL}

/// All defaults, with `struct_size` set.
/// @return The watch, by value.
/// @since 1.1
static inline multicast_watch multicast_watch_default(void) {
  multicast_watch watch = MULTICAST_WATCH_INIT;
  return watch;
}

/// Sets, replaces or takes away the watch of a multicast, or of all multicasts.
///
/// A multicast with a watch of its own is watched by that watch only. The watch of all also watches
/// multicasts that are created later, and the names of broadcasters. Invocations that begin after
/// this has returned are watched, with the calls that they queue. A call that was queued before may
/// also be watched. The end of a multicast ends its own watch. If the library was built with USDT
/// probes, tools such as bpftrace also see watched calls.
///
/// @param target  The multicast; zero: all.
/// @param watch   NULL: no watch from now on.
/// @return MULTICAST_OK: no function of the last watch runs, and none ever will. MULTICAST_PENDING:
///         replaced, but an old function still runs on this thread, or on a thread that waits for
///         this thread. MULTICAST_ERROR_INVALID_HANDLE; MULTICAST_ERROR_INVALID_ARGUMENT: a wrong
///         `struct_size`, or `reserved` is not 0; MULTICAST_ERROR_OUT_OF_MEMORY, for the watch of
///         one multicast only.
/// Threads:   waits for functions of the last watch that run on other threads.
/// Cost:      O(1) for one multicast, O(multicasts) for all. While it is set, each call takes one
///            lock of the process and reads the clock twice. 1,024 multicasts with watches of their
///            own are as fast as one; more are searched in lists. A call of `listener_warning`
///            costs O(delegates), and adds to other multicasts may wait for it; other adds cost
///            the same as before, apart from a rare one.
/// @since 1.1
MULTICAST_API multicast_status multicast_set_watch(multicast target, const multicast_watch *watch);

/// The statistics of a registration, counted while a watch is set.
/// @since 1.1
typedef struct multicast_token_stats {
  uint32_t struct_size;  ///< sizeof(multicast_token_stats).
  uint32_t reserved;     ///< 0.
  uint64_t calls;        ///< Calls that have returned.
  uint64_t total_ns;     ///< The time of all these calls.
  uint64_t longest_ns;   ///< The time of the longest call.
  uint64_t queued;       ///< Calls that were put into its queue.
  /// Calls that its queue refused, or dropped for newer calls of any delegate.
  uint64_t dropped;
} multicast_token_stats;

/// All zero, with `struct_size` set: ready for multicast_token_get_stats().
/// @since 1.1
#define MULTICAST_TOKEN_STATS_INIT {sizeof(multicast_token_stats), 0, 0, 0, 0, 0, 0}

/// All zero, with `struct_size` set: ready for multicast_token_get_stats().
/// @return The statistics, by value.
/// @since 1.1
static inline multicast_token_stats multicast_token_stats_default(void) {
  multicast_token_stats stats = MULTICAST_TOKEN_STATS_INIT;
  return stats;
}

/// Reads the statistics of a registration, counted while a watch was set: all zero if there was
/// none. A call that finds no memory for its first count is not counted.
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

/// The version of this header in one number, 0x00MMmmpp, to compare in `#if`, or with
/// multicast_version(), which gives that of the library.
#define MULTICAST_VERSION                                             \
  ((MULTICAST_VERSION_MAJOR * 0x10000u) + (MULTICAST_VERSION_MINOR * 0x100u) + \
   MULTICAST_VERSION_PATCH)

/// The version of the library that is loaded, in the form of MULTICAST_VERSION.
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

/// The identifier of a status, such as "MULTICAST_ERROR_TIMEOUT".
///
/// @param status  Any number: a status, or the negative result of a function that counts.
/// @return A static text, never NULL; "MULTICAST_UNKNOWN_STATUS" for an unknown number.
/// Real time: yes.
/// @since 1.0
MULTICAST_API const char *multicast_status_name(int64_t status);

/// The message of a status, in English, without a full stop.
///
/// @param status  Any number: a status, or the negative result of a function that counts.
/// @return A static text, never NULL; "not a status of this library" for an unknown number.
/// Real time: yes.
/// @since 1.0
MULTICAST_API const char *multicast_status_message(int64_t status);

/// The functions that the library allocates its memory with. They may be called on any thread, even
/// while the library holds locks, and must not call the library.
/// @since 1.0
typedef struct multicast_allocator {
  uint32_t struct_size;  ///< sizeof(multicast_allocator).
  uint32_t flags;        ///< Must be 0.
  void *context;         ///< Passed to both functions.
  /// Returns `size` bytes (> 0) aligned to `alignment` (a power of two, at most 128), or NULL.
  void *(*allocate)(void *context, size_t size, size_t alignment);
  /// Takes back a block, with the size and alignment that were requested.
  void (*deallocate)(void *context, void *block, size_t size, size_t alignment);
} multicast_allocator;

/// No functions, to initialize a static or local struct.
/// @since 1.0
#define MULTICAST_ALLOCATOR_INIT {sizeof(multicast_allocator), 0, NULL, NULL, NULL}

/// No functions, with `struct_size` set.
/// @return The allocator, by value.
/// @since 1.0
static inline multicast_allocator multicast_allocator_default(void) {
  multicast_allocator allocator = MULTICAST_ALLOCATOR_INIT;
  return allocator;
}

/// Sets the allocator of the library. Call it before anything is created.
///
/// @param allocator  Both functions must be set.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_ARGUMENT: NULL, a function missing, or a wrong
///         `struct_size`; MULTICAST_ERROR_STATE: memory has been taken already.
/// Ownership: `context` must stay valid for the rest of the process.
/// @since 1.0
MULTICAST_API multicast_status multicast_set_allocator(const multicast_allocator *allocator);

/// Does the work of the first invocation of this thread in advance, for a thread with deadlines.
///
/// This work is a lock, memory and a system call. The first invocation of each multicast by this
/// thread also takes a lock: make it in advance, for instance with an event that no delegate wants.
/// The thread stays prepared until it ends. Inside a delegate there is nothing left to do.
///
/// @return MULTICAST_OK; MULTICAST_ERROR_OUT_OF_MEMORY.
/// Cost:      O(1); a lock and a system call; memory for several threads at once.
/// @since 1.1
MULTICAST_API multicast_status multicast_thread_prepare(void);

/// Returns memory that the library does not use to the system, after a burst of very many objects.
/// Nothing else changes.
///
/// Deallocated memory goes to libc, so this function also calls malloc_trim(0), where libc has it.
/// The slots of multicasts (64 bytes), registrations (32) and lifetimes (40) stay mapped, so that
/// stale handles are safe. The pages of up to 1024 neighbours are returned when all of these are
/// vacant; until then, only one in 32 multicasts can reuse a vacant slot of a registration. The
/// pages of 64 neighbouring threads are returned when all of these have ended. Some 2 MB, 1 % of
/// the slots, and the slots of queues and broadcasters stay. libc's memory for ended threads also
/// stays: glibc keeps some of their stacks. With a caller's allocator all of this stays.
///
/// @return How many bytes were returned (>= 0).
/// Cost:      O(slots that are vacant + the most threads at once), and that of malloc_trim().
///            Additions, removals and creations wait meanwhile; invocations do not.
/// @since 1.1
MULTICAST_API int64_t multicast_trim(void);

/// Memory that all modules of a process share. It is for the headers of other languages, which are
/// compiled into the program and into each of its plug-ins: data that must exist only once in the
/// process is here, so that no plug-in has to stay loaded. Programs need not call this function.
///
/// @param index  0 to 3: the C++ headers, with exceptions and without, for libstdc++ and libc++.
///               4 to 7: free, for headers to come.
/// @param size   How many bytes are needed, at most 8192.
/// @return The same address for the same index, aligned to 64 bytes; the memory is zero at first,
///         and stays for the rest of the process. NULL: `index` or `size` is too large.
/// Ownership: the memory belongs to those that use this index.
/// Real time: yes.
/// @since 1.1
MULTICAST_API void *multicast_process_memory(uint32_t index, size_t size);

#ifdef __cplusplus
}
#endif

#endif
