/* SPDX-License-Identifier: MIT */

#ifndef MULTICAST_LOCAL_H
#define MULTICAST_LOCAL_H

#include <multicast.h>

#ifdef __cplusplus
extern "C" {
#endif

/* libmulticast-local: a broadcaster whose observers may be in other processes on this machine.
 * There is no server, and nothing has to be started: the processes of a user find each other if
 * they use the same group name.
 *
 *     multicast_local_options options = multicast_local_options_default();
 *     multicast_transport transport;
 *     options.broadcaster = broadcaster;
 *     options.group = "weather";
 *     if (multicast_local_connect(&options, &transport) == MULTICAST_OK)
 *       multicast_broadcaster_attach(broadcaster, &transport);
 *
 * From then on, multicast_broadcaster_notify() notifies the observers of this process and publishes
 * the notification. Observers in other processes are notified if their broadcasters are attached to
 * the same group. Each transport is a peer of its group. A process may have several transports.
 *
 * The rules of multicast.h apply. In addition:
 *
 * Groups       A group is a folder with a socket for each peer. The first peer creates the folder,
 *              and the last one removes it. Each pair of peers shares one connection.
 * Rings        Each peer has a ring buffer in shared memory, to which it writes its publications.
 *              The other peers read this buffer, but never write to it. System calls are needed
 *              only to wake a sleeping peer.
 * Order        All publications of one transport, whatever their names, arrive at every other
 *              transport in the order in which they were published. The publications of different
 *              transports may arrive in any order.
 * Losses       A notification arrives once at each peer that has observers of its name. When
 *              `publish` returns, the notification is in memory that the other peers have mapped,
 *              so it arrives even if the process ends immediately, no matter how. If a ring is
 *              full, `overflow` decides what happens. Both the publisher and the receiver count
 *              losses: see multicast_local_stats.
 * Unknown peers
 *              A peer whose thread is in an observer, or is stopped, cannot announce its names to a
 *              transport that joins. Until the peer does so, the new transport keeps all its
 *              publications in its ring. Once the peer has announced its names, it reads the
 *              notifications for these names from that ring. Nothing is lost unless the ring fills
 *              up, in which case `overflow` decides what happens. In the other direction,
 *              notifications from the peer arrive as soon as the peer knows the new transport.
 *              multicast_local_flush() waits for this.
 * Last values  The publishing transport keeps the publications that `retains` selects, and sends
 *              each of them once to each peer that later registers its first observer of the name.
 *              In the publishing process, the first observer of the name also receives the kept
 *              publication, before its registration returns. This observer may miss a publication
 *              that another thread makes during the registration, or receive it twice. A kept
 *              publication is lost when its publisher ends.
 * Questions    A question is sent to all peers that answer questions about its name. For each of
 *              these peers, multicast_local_ask() reports the answer, or that the peer has ended,
 *              or that it has not answered. Questions and answers use the same rings as
 *              notifications, with the same rules for order, losses and `overflow`. If
 *              MULTICAST_OVERFLOW_DROP_OLDEST overwrites a question or an answer, the asker cannot
 *              distinguish this from a peer that does not answer. The question then ends at its
 *              time limit or, if it has none, when the peer leaves. A transport does not receive
 *              its own questions.
 * Ends         When a process ends, no matter how, the system notifies all other peers, so they
 *              need no timeout to notice. The other peers deliver the last publications of the
 *              process, and then report MULTICAST_LOCAL_GONE. This takes at most 10 ms, unless the
 *              machine is busy or delivering these publications takes longer.
 * Security     Only processes of the same user can join. The permissions of the folder ensure this,
 *              as do the credentials that the system reports for each connection. The library
 *              checks the data of a peer before using it, and disconnects a peer that violates the
 *              protocol. Observers must check payloads themselves. Losses that a peer reports are
 *              counted only up to the capacity of its ring.
 * Threads      A transport has one thread, which calls `changed` and, if there is no `queue`, the
 *              observers and the answer functions. While such a call is running, the transport
 *              receives nothing. After a notification, the thread polls for the next one for 50 us,
 *              yielding to other threads, before it sleeps.
 * fork         A child cannot use the group: `publish` returns MULTICAST_ERROR_STATE, and nothing
 *              arrives. Inside fork(), the child closes the connections of the parent, so other
 *              peers are not affected by the lifetime of the child. A child that was created
 *              without the handlers of pthread_atfork(), as with _Fork(), keeps the connections
 *              until it ends or calls exec. Until then, other peers do not notice if the parent is
 *              killed, and peers that join wait for it. If an observer or `changed` calls fork() on
 *              the transport's thread and returns in the child, that thread ends in the child. The
 *              child then exits with status 0, unless it has started other threads.
 *
 * The library needs Linux 5.1 or newer, and /proc. A group has at most 129 peers. The names that a
 * transport observes, or about which it answers questions, are limited to 65,536. Beyond that,
 * subscribing and answering fail with MULTICAST_ERROR_LIMIT. Peers disconnect a process that
 * connects to a group and sends nothing for a second.
 */

/* ---- 1. Options ------------------------------------------------------------------------------ */

/// A change in the group, or in one of its peers.
/// @since 1.1
typedef uint32_t multicast_local_state;

/// The values of multicast_local_state.
/// @since 1.1
enum multicast_local_state_code {
  /// This transport is in the group, and knows the names of the peers that were already there,
  /// except for peers that have not announced their names within a second. See "Unknown peers".
  MULTICAST_LOCAL_CONNECTED = 1,
  MULTICAST_LOCAL_REFUSED = 2,    ///< This transport could not join. It will retry.
  MULTICAST_LOCAL_JOINED = 3,     ///< A peer has joined, or was already in the group.
  MULTICAST_LOCAL_GONE = 4,       ///< A peer has left: it has detached, or its process has ended.
  MULTICAST_LOCAL_EXPELLED = 5,   ///< A peer has violated the protocol and was disconnected.
  /// Notifications from a peer were lost because this transport was too slow. `changed` is called
  /// at least once after each loss, as soon as the loss is known. `overwritten` of
  /// multicast_local_stats counts the lost notifications. Before the peer knew the names that this
  /// process observes, its notifications of other names also count.
  MULTICAST_LOCAL_LOST = 6
};

/// The options for joining a group. `broadcaster` must be set. The library copies all strings.
/// @since 1.1
typedef struct multicast_local_options {
  uint32_t struct_size;  ///< sizeof(multicast_local_options).
  uint32_t flags;        ///< Must be 0.
  /// The broadcaster to which notifications are delivered; must be set.
  multicast_broadcaster broadcaster;
  /// The group: 1 to 100 letters, digits, dots, underscores and hyphens, without a leading dot
  /// (default NULL: "default").
  const char *group;
  /// The folder that contains the groups' folders, as an absolute path. It is created if it does
  /// not exist, whatever the umask. This folder and the groups' folders must belong to this user,
  /// be inaccessible to others, and not be symbolic links. The default, NULL, means `multicast` in
  /// $XDG_RUNTIME_DIR if that is a folder of this user, otherwise `multicast` in /run/user/UID, or
  /// /tmp/multicast-UID if neither folder exists.
  const char *directory;
  /// The name that other peers receive in `changed`, in UTF-8 (default NULL: the name of the
  /// program). Only the complete characters within the first 63 bytes are used.
  const char *name;
  /// The size of the ring, 2^16 to 2^30 bytes, rounded up to a power of two (default: 0, which
  /// means 2^23). Unused parts use no memory. A notification uses about 40 bytes in addition to its
  /// name and its payload.
  uint64_t ring_bytes;
  /// The largest payload that this transport publishes, in bytes. Larger payloads are refused. The
  /// maximum is 1024 less than half the size of the ring (default: 0, which means this maximum).
  uint32_t max_payload;
  /// What happens to a publication if the ring has no room because a peer with observers of its
  /// name has not yet read enough of the ring. With MULTICAST_OVERFLOW_REFUSE, the default,
  /// `publish` returns MULTICAST_ERROR_QUEUE_FULL. With MULTICAST_OVERFLOW_DROP_OLDEST, the peer
  /// loses the oldest sixteenth of the ring. With MULTICAST_OVERFLOW_BLOCK, `publish` waits for
  /// room. Except with MULTICAST_OVERFLOW_DROP_OLDEST, a peer that is stopped or whose observers do
  /// not return therefore blocks the other peers. Detaching the transport waits for a `publish`
  /// that is waiting for room.
  multicast_overflow overflow;
  /// The maximum time that `publish` waits for room with MULTICAST_OVERFLOW_BLOCK before it refuses
  /// the publication (default: 0, which means 1 s). It does not wait for a peer that has ended.
  /// MULTICAST_FOREVER means no limit: two peers that publish to each other from observers may then
  /// deadlock, and detaching the transport may wait forever for a stopped peer.
  uint64_t block_ns;
  /// The time to wait before the second attempt to join (default: 0, which means 100 ms). Each
  /// further wait is twice as long, but every wait is shortened at random by up to a quarter.
  /// Values above `reconnect_max_ns` or, if that is not set, above its default are invalid. So is
  /// MULTICAST_FOREVER.
  uint64_t reconnect_min_ns;
  /// The maximum wait between two attempts, up to 2^62 (default: 0, which means 30 s).
  uint64_t reconnect_max_ns;
  /// The queue for arriving notifications (default: none, observers run on the transport's thread).
  /// Observers without their own queue run on the thread that runs this queue. The caller still
  /// owns the queue. If it has MULTICAST_OVERFLOW_BLOCK, a full queue blocks the transport.
  multicast_queue queue;
  /// Returns whether to keep this publication (default NULL: nothing is kept). The last kept
  /// publication of each name and event is sent to each peer, including this process, that later
  /// registers its first observer of the name. All kept publications of a name must fit into half
  /// of the ring; otherwise `publish` returns MULTICAST_ERROR_LIMIT. Called on the publishing
  /// thread.
  bool (*retains)(void *context, const char *name, uint32_t event);
  /// Called for each change, on the transport's thread. If the change concerns a peer, `pid` is the
  /// peer's process ID, and `text` is its name. If it concerns this transport, `pid` is an errno or
  /// 0, and `text` gives the reason in English. `text` is valid until the function returns.
  void (*changed)(void *context, multicast_local_state state, int32_t pid, const char *text);
  /// Passed to the two functions above and to `release`.
  void *context;
  /// Runs once, on any thread, when `context` is no longer used. It also runs if
  /// multicast_local_connect() fails, unless the options cannot be read.
  void (*release)(void *context);
} multicast_local_options;

/// Initializes a static or local struct with all defaults. `broadcaster` still has to be set.
/// @since 1.1
#define MULTICAST_LOCAL_OPTIONS_INIT \
  {sizeof(multicast_local_options), 0, {0}, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, {0}, \
   NULL, NULL, NULL, NULL}

/// Returns a struct with all defaults, and with `struct_size` set. `broadcaster` still has to be
/// set.
///
/// @return The options, by value.
/// @since 1.1
static inline multicast_local_options multicast_local_options_default(void) {
  multicast_local_options options = MULTICAST_LOCAL_OPTIONS_INIT;
  return options;
}

/* ---- 2. The transport ------------------------------------------------------------------------ */

/// Creates a transport for multicast_broadcaster_attach(). The transport joins the group on its own
/// thread, and retries if that fails.
///
/// A transport does not receive its own publications.
///
/// The transport's `publish` copies the notification into the ring, on the calling thread. It
/// returns MULTICAST_ERROR_QUEUE_FULL if there is no room (see `overflow`); MULTICAST_ERROR_LIMIT
/// if the payload is larger than `max_payload`, or the kept publications of a name are too large;
/// MULTICAST_ERROR_STATE in the child of a fork, or if the transport is being released;
/// MULTICAST_ERROR_OUT_OF_MEMORY. If no peer has observers of the name, and there are no unknown
/// peers, `publish` does nothing and succeeds.
///
/// @param options  The options; not NULL.
/// @param out      Receives the transport before `changed` can be called; all zero if the call
///                 fails. Not NULL.
/// @return MULTICAST_OK: the transport has begun to join, and `changed` will report the result;
///         MULTICAST_ERROR_INVALID_ARGUMENT: NULL or invalid options;
///         MULTICAST_ERROR_INVALID_HANDLE: the broadcaster or the queue does not exist;
///         MULTICAST_ERROR_LIMIT: 65,535 transports of this library exist;
///         MULTICAST_ERROR_OUT_OF_MEMORY; MULTICAST_ERROR_SYSTEM: there is no thread, descriptor or
///         shared memory left.
/// Ownership: multicast_broadcaster_attach() takes over the transport, and calls `release` once.
///            Attach it only once, to one broadcaster, and do not use it after `release`. If you do
///            not attach it, call its `release` with its `context` yourself. `release` leaves the
///            group.
/// Threads:   `release` waits for the transport's thread, unless that thread is in `changed` or is
///            delivering notifications. If it is, the transport leaves the group later, but before
///            the `release` of the options runs. If the process ends before that, the other peers
///            treat it like a process that was killed. If the transport was the last peer, the
///            group's folder stays until another peer has joined and left.
/// Cost:      a thread, four descriptors, and one more descriptor for each peer. Address space:
///            twice the size of the ring, and twice the size of each peer's ring.
/// @since 1.1
MULTICAST_API multicast_status multicast_local_connect(const multicast_local_options *options,
                                                       multicast_transport *out);

/// Waits until this transport is in its group, until it and all peers know each other's names, and
/// until all peers have read everything that this transport published before this call.
///
/// Call it after attaching if the first publications matter and the program does not wait for
/// MULTICAST_LOCAL_CONNECTED. Also call it after registering an observer that must not miss later
/// notifications. There is no need to call it before a process ends (see "Losses"). The function
/// also waits for peers that are stopped, whose observers do not return, or that cannot be reached
/// yet.
///
/// @param transport   A transport from multicast_local_connect().
/// @param timeout_ns  The time limit in nanoseconds on the monotonic clock; 0 means no waiting, and
///                    MULTICAST_FOREVER means no limit.
/// @return MULTICAST_OK; MULTICAST_ERROR_TIMEOUT; MULTICAST_ERROR_INVALID_HANDLE: not a transport
///         of this library, or it has been released, perhaps during the call;
///         MULTICAST_ERROR_STATE: on the transport's thread, or in the child of a fork.
/// Threads:   several threads may wait. If the waiting thread is the one that runs `queue`, the
///            queue is not run during the wait.
/// Cost:      O(peers) for each millisecond of the wait.
/// @since 1.1
MULTICAST_API multicast_status multicast_local_flush(const multicast_transport *transport,
                                                     uint64_t timeout_ns);

/* ---- 3. Questions ---------------------------------------------------------------------------- */

/// Identifies a question, so that it can be answered.
///
/// The struct may be copied and kept as long as needed, and need not be released. The fields are
/// private.
/// @since 1.1
typedef struct multicast_local_question {
  uint64_t transport;  ///< The transport that answers. Zero: no question.
  uint64_t peer;       ///< The peer that asks.
  uint64_t number;     ///< The number of the question among the peer's questions.
} multicast_local_question;

/// Sets the answer function of a name. It answers the questions that peers ask about the name.
///
/// The transport announces this name to its peers, just as it announces the names that have
/// observers. multicast_local_flush() waits until the peers know the name.
///
/// @param transport  A transport from multicast_local_connect().
/// @param name       1 to 255 bytes. Notifications may use the same name.
/// @param function   Called for each question, on the same thread as observers. It may answer with
///                   multicast_local_reply(), or keep a copy of the question and answer later.
///                   `question` and `payload` are valid until the function returns. Replaces the
///                   name's previous function. If NULL, the transport stops answering questions
///                   about the name.
/// @param context    Passed to `function` and `release`.
/// @param release    Runs once, on any thread, when `context` is no longer used: after the function
///                   has been replaced and its calls have returned, or after the transport's
///                   release. It also runs if multicast_local_answer() fails, but not in the child
///                   of a fork. May be NULL; not used if `function` is NULL.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE: not a transport of this library, or it has
///         been released; MULTICAST_ERROR_INVALID_ARGUMENT: not a name; MULTICAST_ERROR_NOT_FOUND:
///         `function` is NULL, and there is no function to remove; MULTICAST_ERROR_STATE: in the
///         child of a fork; MULTICAST_ERROR_OUT_OF_MEMORY.
/// Threads:   does not wait, so a call to the previous function may still be running.
/// Reentry:   `function` may call multicast_local_answer() and multicast_local_reply(). It may call
///            multicast_local_ask() with this transport only if the transport has a `queue`.
/// Cost:      O(1), and a message to each peer.
/// @since 1.1
MULTICAST_API multicast_status multicast_local_answer(
    const multicast_transport *transport, const char *name,
    void (*function)(void *context, const multicast_local_question *question, uint32_t event,
                     const void *payload, size_t size),
    void *context, void (*release)(void *context));

/// Answers a question: the asker receives MULTICAST_OK and the payload.
///
/// A question that nobody answers ends when the asker's time is up. If there are several replies to
/// a question, the asker receives the first one.
///
/// @param question  The question that the function received, or a copy of it.
/// @param payload   The answer; may be NULL if there are no bytes.
/// @param size      Bytes at `payload`, up to `max_payload`.
/// @return MULTICAST_OK: the answer is in memory that the asker reads, although the asker may no
///         longer be waiting for it; MULTICAST_ERROR_NOT_FOUND: the asker has left;
///         MULTICAST_ERROR_QUEUE_FULL: there is no room (see `overflow`), so try again later;
///         MULTICAST_ERROR_LIMIT: larger than `max_payload`; MULTICAST_ERROR_INVALID_HANDLE: not a
///         question, or its transport has been released; MULTICAST_ERROR_INVALID_ARGUMENT: NULL;
///         MULTICAST_ERROR_STATE: in the child of a fork.
/// Cost:      O(peers), and a copy.
/// @since 1.1
MULTICAST_API multicast_status multicast_local_reply(const multicast_local_question *question,
                                                     const void *payload, size_t size);

/// Asks all peers that answer questions about a name, and waits for their answers.
///
/// `visit` is called once for each peer that was asked, as soon as its result is known, with the
/// peer's process ID and name, and one of these results:
///   - MULTICAST_OK: the peer has answered, and `payload` is the answer;
///   - MULTICAST_ERROR_NOT_FOUND: it has ended or detached without answering;
///   - MULTICAST_ERROR_STATE: it no longer answers questions about the name;
///   - MULTICAST_ERROR_OUT_OF_MEMORY: it had no memory for the question, or this process has no
///     memory for its answer;
///   - MULTICAST_ERROR_TIMEOUT: it has not answered in time. An answer that comes later is dropped
///     (`late` of multicast_local_stats). With MULTICAST_OVERFLOW_DROP_OLDEST, later publications
///     may have overwritten the question before the peer could read it.
/// Unknown peers are also asked. `visit` is not called for such a peer if it turns out not to
/// answer questions about the name, or if the peer ends or the time is up before this is known.
/// `peer` and `payload` are valid until `visit` returns; `payload` is NULL if it is empty. If
/// `visit` returns false, it is not called again, and this function returns. Let `visit` return
/// `status != MULTICAST_OK` to wait only for the first answer, or true to wait for all answers.
///
/// @param transport   A transport from multicast_local_connect().
/// @param name        The name to ask about.
/// @param event       Passed to the answer functions, like the payload.
/// @param payload     Copied; may be NULL if there are no bytes.
/// @param size        Bytes at `payload`, up to `max_payload`.
/// @param timeout_ns  The time limit in nanoseconds on the monotonic clock, which includes the wait
///                    for room; MULTICAST_FOREVER means no limit. Without a limit, a question that
///                    was overwritten waits until the peer ends.
/// @param visit       Called as described above; not NULL. It must not end the thread.
/// @param context     Passed to `visit`.
/// @return MULTICAST_OK: `visit` was called for all peers, or has returned false;
///         MULTICAST_ERROR_TIMEOUT: like MULTICAST_OK, but some peers have not answered in time;
///         MULTICAST_ERROR_NOT_FOUND: no peer answers questions about the name; returned
///         immediately, unless there are unknown peers (see multicast_local_flush());
///         MULTICAST_ERROR_QUEUE_FULL: there is no room (see `overflow`); MULTICAST_ERROR_LIMIT:
///         larger than `max_payload`; MULTICAST_ERROR_INVALID_ARGUMENT: not a name, or NULL;
///         MULTICAST_ERROR_INVALID_HANDLE: not a transport of this library, or it has been
///         released, perhaps during the call: `visit` is not called for the remaining peers;
///         MULTICAST_ERROR_STATE: on the transport's thread, or in the child of a fork;
///         MULTICAST_ERROR_OUT_OF_MEMORY.
/// Threads:   any thread except the transport's may call it, and several may do so at the same
///            time. `visit` runs on the calling thread. If this thread is the one that runs
///            `queue`, the queue is not run during the call.
/// Reentry:   observers and answer functions may call this function with any other transport, and
///            with this one only if it has a `queue`. `visit` may call every function of the
///            library.
/// Cost:      O(peers), a copy, and about 100 bytes for each peer.
/// @since 1.1
MULTICAST_API multicast_status multicast_local_ask(
    const multicast_transport *transport, const char *name, uint32_t event, const void *payload,
    size_t size, uint64_t timeout_ns,
    bool (*visit)(void *context, multicast_status status, int32_t pid, const char *peer,
                  const void *payload, size_t size),
    void *context);

/* ---- 4. Statistics --------------------------------------------------------------------------- */

/// The counters of a transport since it was created.
///
/// A question counts as a publication, and as a notification at the peer that receives it. An
/// answer counts only in `overwritten`.
///
/// `published` is always the sum of `sent` and `unwanted`. `received` is the sum of `delivered`,
/// the notifications that are being delivered or waiting in `queue`, and the notifications that
/// were lost for reasons other than a full ring.
/// @since 1.1
typedef struct multicast_local_stats {
  uint32_t struct_size;  ///< sizeof(multicast_local_stats).
  uint32_t flags;        ///< 0.
  uint32_t connected;    ///< 1 if it is in its group, otherwise 0.
  uint32_t names;        ///< The number of names that have observers in this process.
  uint32_t peers;        ///< The number of other peers.
  uint32_t reserved;     ///< 0.
  uint64_t max_payload;  ///< The largest payload that is published, in bytes.
  uint64_t joined;       ///< The number of peers that have joined.
  uint64_t gone;         ///< The number of peers that have left or were disconnected.
  uint64_t expelled;     ///< The number of peers that were disconnected.
  uint64_t published;    ///< Publications that were accepted.
  uint64_t sent;         ///< Publications that were written to the ring.
  /// Publications for which no peer was known to have observers.
  uint64_t unwanted;
  uint64_t refused;  ///< Publications that were not accepted.
  /// Notifications that this process has read from peers for its observers.
  uint64_t received;
  /// Notifications that were delivered to the broadcaster; with `queue`, counted when the queue is
  /// run.
  uint64_t delivered;
  /// Notifications that were not delivered, because they were overwritten before this process had
  /// read them (`overwritten`), there was no memory, the broadcaster was destroyed, or `queue`
  /// refused or dropped them. The queue drops notifications to make room for newer ones, or when it
  /// is destroyed.
  uint64_t lost;
  /// Notifications that peers with MULTICAST_OVERFLOW_DROP_OLDEST have overwritten before this
  /// process had read them.
  uint64_t overwritten;
  /// Answers that were dropped because nobody was waiting for them any more or had ever asked.
  uint64_t late;
} multicast_local_stats;

/// Initializes a struct for multicast_local_get_stats(): all zero, with `struct_size` set.
/// @since 1.1
#define MULTICAST_LOCAL_STATS_INIT \
  {sizeof(multicast_local_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
   0}

/// Returns a struct for multicast_local_get_stats(): all zero, with `struct_size` set.
///
/// @return The statistics, by value.
/// @since 1.1
static inline multicast_local_stats multicast_local_stats_default(void) {
  multicast_local_stats stats = MULTICAST_LOCAL_STATS_INIT;
  return stats;
}

/// Reads a consistent snapshot of all statistics of a transport.
///
/// @param transport  A transport from multicast_local_connect().
/// @param out        Receives the statistics. The caller sets `struct_size`.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE: not a transport of this library, or it has
///         been released; MULTICAST_ERROR_INVALID_ARGUMENT: NULL or a wrong `struct_size`, in which
///         case nothing is written; MULTICAST_ERROR_STATE: in the child of a fork.
/// @since 1.1
MULTICAST_API multicast_status multicast_local_get_stats(const multicast_transport *transport,
                                                         multicast_local_stats *out);

#ifdef __cplusplus
}
#endif

#endif
