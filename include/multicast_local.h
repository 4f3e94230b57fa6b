/* SPDX-License-Identifier: MIT */

#ifndef MULTICAST_LOCAL_H
#define MULTICAST_LOCAL_H

#include <multicast.h>

#ifdef __cplusplus
extern "C" {
#endif

/* libmulticast-local: a broadcaster whose observers may be in other processes of this machine.
 * There is no server, and nothing to start: the processes of a user that name the same group find
 * each other.
 *
 *     multicast_local_options options = multicast_local_options_default();
 *     multicast_transport transport;
 *     options.broadcaster = broadcaster;
 *     options.group = "weather";
 *     if (multicast_local_connect(&options, &transport) == MULTICAST_OK)
 *       multicast_broadcaster_attach(broadcaster, &transport);
 *
 * From then on multicast_broadcaster_notify() notifies the observers of this process and publishes.
 * The observers in other processes, whose broadcasters are attached to the same group, are notified
 * there. A transport is a peer of the group; a process may have several.
 *
 * The rules of multicast.h hold. In addition:
 *
 * Groups       A group is a folder with a socket for each peer. The first peer creates it, and the
 *              last one removes it. Each pair of peers shares one connection.
 * Rings        Each peer has a ring buffer in shared memory, which only this peer writes. It
 *              publishes there, and the others read. The only system calls are those that wake a
 *              sleeping peer.
 * Order        The publications of one transport arrive at each other transport in the order in
 *              which they were published, over all names. There is no order between the
 *              publications of two transports.
 * Losses       A notification arrives once at each peer that has observers of its name. When
 *              `publish` returns, the notification is in memory that the others have mapped: it
 *              arrives even if the process ends at once, in whatever way. If a ring is full,
 *              `overflow` says what happens. Both sides can find out that something was lost: see
 *              multicast_local_stats.
 * Unknown peers
 *              A peer whose thread is in an observer, or stopped, cannot tell its names to a
 *              transport that joins. Until it does, all publications of that transport stay in its
 *              ring for that peer, which then takes the notifications of its names. So nothing is
 *              lost, unless the ring fills up: then `overflow` says what happens. In the other
 *              direction, notifications of such a peer begin to arrive when it has learned of the
 *              transport that joins: multicast_local_flush() waits for that.
 * Last values  The publishing transport keeps the publications that `retains` selects, and gives
 *              each of them once to each peer whose first observer of the name comes later. In the
 *              publishing process the first observer of the name also gets the kept publication,
 *              before its registration returns. A publication that another thread makes during the
 *              registration may be missed there, or arrive twice. A value that was kept ends with
 *              its publisher.
 * Questions    A question goes to all peers that answer its name. multicast_local_ask() reports for
 *              each of them the answer, its end or its silence. Questions and answers are also
 *              in the rings: Order, Losses and `overflow` are as above. With
 *              MULTICAST_OVERFLOW_DROP_OLDEST, a question or an answer that is overwritten looks to
 *              the asker like a peer that does not answer: the question ends at its time limit, or,
 *              without one, only when that peer goes. A transport does not get its own questions.
 * Ends         When a process ends, in whatever way, the system notifies all others, without a
 *              timeout: within 10 ms, unless the machine is busy or the last publications of the
 *              process take longer. The others deliver these publications, and then report
 *              MULTICAST_LOCAL_GONE.
 * Security     Only processes of the same user take part: the permissions of the folder ensure it,
 *              and the credentials that the system reports for each connection. The library checks
 *              the data of a peer before it uses them: a peer that breaks the rules is cut off.
 *              Observers check payloads. Losses that a peer reports are counted up to the room that
 *              its ring had.
 * Threads      A transport has one thread. It calls `changed` and, if there is no `queue`, the
 *              observers and the functions that answer. While such a call runs, nothing is
 *              received. After a notification the thread looks for the next one for 50 us before it
 *              sleeps, and yields to others.
 * fork         The child does not use the group: `publish` returns MULTICAST_ERROR_STATE, and
 *              nothing arrives. Inside fork() the child closes the connections of the parent, so
 *              the others do not depend on how long the child lives. A child that was created
 *              without the handlers of pthread_atfork(), as by _Fork(), keeps the connections until
 *              it ends or calls exec: until then the others do not notice that the parent was
 *              killed, and wait for it when they join.
 *              If an observer or `changed` forks on the transport's thread and returns in the
 *              child, that thread ends there; the child exits with status 0 if it has started no
 *              other thread.
 *
 * The library needs Linux 5.1, and /proc. A group has at most 129 peers. A transport has observers
 * of, and answers, at most 65,536 names: subscribing to another one, or answering it, returns
 * MULTICAST_ERROR_LIMIT. A process that connects to a group and sends nothing for a second is cut
 * off.
 */

/* ---- 1. Options ------------------------------------------------------------------------------ */

/// A change of the group, or of one of its peers.
/// @since 1.1
typedef uint32_t multicast_local_state;

/// The values of multicast_local_state.
/// @since 1.1
enum multicast_local_state_code {
  /// This transport is in the group, and knows the names of the peers that were already there; it
  /// does not wait for a peer that has not told its names within a second. See "Unknown peers".
  MULTICAST_LOCAL_CONNECTED = 1,
  MULTICAST_LOCAL_REFUSED = 2,    ///< This transport could not join. It tries again.
  MULTICAST_LOCAL_JOINED = 3,     ///< A peer has come, or was already there.
  MULTICAST_LOCAL_GONE = 4,       ///< A peer has gone: it has detached, or its process has ended.
  MULTICAST_LOCAL_EXPELLED = 5,   ///< A peer has broken the rules and was cut off.
  /// Notifications of a peer were lost, because this transport was too slow. At least one call
  /// follows each loss, as soon as the loss is known; `overwritten` of multicast_local_stats has
  /// the number.
  MULTICAST_LOCAL_LOST = 6
};

/// How to join a group. `broadcaster` must be set. Texts are copied.
/// @since 1.1
typedef struct multicast_local_options {
  uint32_t struct_size;  ///< sizeof(multicast_local_options).
  uint32_t flags;        ///< Must be 0.
  /// The broadcaster that notifications are delivered to. Not none.
  multicast_broadcaster broadcaster;
  /// The group: 1 to 100 letters, digits, dots, underscores and hyphens, no dot at the beginning
  /// (default: NULL, "default").
  const char *group;
  /// The folder that has the folders of groups, an absolute path. It is made if it is not there,
  /// and has to belong to this user, be closed to all others, and be no symbolic link, as do the
  /// folders of groups; the umask of the process does not matter (default: NULL, `multicast` in
  /// $XDG_RUNTIME_DIR, if that is a folder of this user, or else in /run/user/UID; if there is
  /// neither, /tmp/multicast-UID).
  const char *directory;
  /// The name of this peer for the others, in `changed`: UTF-8, of which the characters in the
  /// first 63 bytes are used (default: NULL, the name of the program).
  const char *name;
  /// The size of the ring, 2^16 to 2^30 bytes, rounded up to a power of two. Unused parts take no
  /// memory. A notification takes its name, its payload and some 40 bytes (default: 0, which means
  /// 2^23).
  uint64_t ring_bytes;
  /// The largest payload that this transport publishes, in bytes, up to half of the ring less 1024;
  /// larger ones are refused (default: 0, which means this limit).
  uint32_t max_payload;
  /// The treatment of a publication if the ring has no room, because a peer that has observers of
  /// its name has not read enough of it: with MULTICAST_OVERFLOW_REFUSE, `publish` returns
  /// MULTICAST_ERROR_QUEUE_FULL; with MULTICAST_OVERFLOW_DROP_OLDEST, that peer loses the oldest
  /// sixteenth of the ring; with MULTICAST_OVERFLOW_BLOCK, `publish` waits for room (default:
  /// refuse). So, unless the oldest are dropped, a peer that is stopped, or whose observers do not
  /// return, holds up the others. Detaching the transport waits for such a `publish`.
  multicast_overflow overflow;
  /// How long `publish` may wait for room, with MULTICAST_OVERFLOW_BLOCK; then it refuses. It waits
  /// for no peer that has ended (default: 0, which means 1 s). MULTICAST_FOREVER: no limit; two
  /// peers that publish to each other from observers may then wait for each other without end, and
  /// detaching the transport waits without end for a peer that is stopped.
  uint64_t block_ns;
  /// How long to wait before the second try to join; doubled with each further one, and up to a
  /// quarter less at random. Must not exceed `reconnect_max_ns`, whether that is set or left at its
  /// default; larger values, including MULTICAST_FOREVER, are invalid (default: 0, which means
  /// 100 ms).
  uint64_t reconnect_min_ns;
  /// The most to wait between two tries, up to 2^62 (default: 0, which means 30 s).
  uint64_t reconnect_max_ns;
  /// The queue for notifications that arrive; observers that have no queue of their own run on the
  /// thread that runs it. It stays the caller's. If it has MULTICAST_OVERFLOW_BLOCK, a full queue
  /// holds up the transport (default: none, observers run on the transport's thread).
  multicast_queue queue;
  /// Whether to keep this publication: the last one of each name and event is given to each peer
  /// whose first observer of the name comes later, this process included. All that are kept of one
  /// name have to fit into half of the ring; otherwise `publish` returns MULTICAST_ERROR_LIMIT.
  /// Called on the publishing thread. (default: NULL, nothing is kept)
  bool (*retains)(void *context, const char *name, uint32_t event);
  /// Called for each change, on the transport's thread. Of a peer, `pid` is its process, and `text`
  /// its name. Of this transport, `pid` is an errno or 0, and `text` says why, in English. `text`
  /// is valid until return.
  void (*changed)(void *context, multicast_local_state state, int32_t pid, const char *text);
  /// Passed to the two functions above and to `release`.
  void *context;
  /// Runs once, on any thread, when `context` is not used any more, even if
  /// multicast_local_connect() fails, unless the options cannot be read.
  void (*release)(void *context);
} multicast_local_options;

/// All defaults, to initialize a static or local struct. `broadcaster` is still none.
/// @since 1.1
#define MULTICAST_LOCAL_OPTIONS_INIT \
  {sizeof(multicast_local_options), 0, {0}, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, {0}, \
   NULL, NULL, NULL, NULL}

/// All defaults, with `struct_size` set. `broadcaster` is still none.
///
/// @return The options, by value.
/// @since 1.1
static inline multicast_local_options multicast_local_options_default(void) {
  multicast_local_options options = MULTICAST_LOCAL_OPTIONS_INIT;
  return options;
}

/* ---- 2. The transport ------------------------------------------------------------------------ */

/// Creates a transport for multicast_broadcaster_attach(). It joins the group on a thread of its
/// own, and tries again if that fails.
///
/// A transport does not receive its own publications.
///
/// `publish` of the transport copies into the ring, on the calling thread. It returns
/// MULTICAST_ERROR_QUEUE_FULL if there is no room, see `overflow`; MULTICAST_ERROR_LIMIT for a
/// payload above `max_payload`, or for too much that is kept of a name; MULTICAST_ERROR_STATE in
/// the child of a fork, or if the transport is being released; MULTICAST_ERROR_OUT_OF_MEMORY. If no
/// peer has observers of the name, and none is unknown, it does nothing, and succeeds.
///
/// @param options  How; not NULL.
/// @param out      Receives the transport, before `changed` can be called; all zero if the call
///                 fails. Not NULL.
/// @return MULTICAST_OK: it has begun to join, and `changed` reports the result;
///         MULTICAST_ERROR_INVALID_ARGUMENT: NULL or invalid options;
///         MULTICAST_ERROR_INVALID_HANDLE: not a broadcaster, or not a queue;
///         MULTICAST_ERROR_LIMIT: 65,535 transports of this library are not released;
///         MULTICAST_ERROR_OUT_OF_MEMORY; MULTICAST_ERROR_SYSTEM: no thread, no descriptor, or no
///         memory that others can be given.
/// Ownership: multicast_broadcaster_attach() takes the transport over, and calls `release` once. So
///            attach it once, to one broadcaster, and do not use it after `release`. If you do not
///            attach it, call `release` with `context` yourself. `release` leaves the group.
/// Threads:   `release` waits for the transport's thread, unless that thread is in `changed`, or
///            delivers what has arrived: then it leaves the group later, before `release` of the
///            options runs. A process that ends earlier is like one that was killed: if it is the
///            last one, the folder of the group stays until the next peer comes and leaves.
/// Cost:      a thread, and four descriptors; one more for each peer. Address space: twice the
///            ring, and twice that of each peer.
/// @since 1.1
MULTICAST_API multicast_status multicast_local_connect(const multicast_local_options *options,
                                                       multicast_transport *out);

/// Waits until this transport is in its group, knows the names of all peers that are there, each of
/// them knows its names, and all have read the publications of this transport before this call.
///
/// Call it after attaching, if the first publications matter and the program does not wait for
/// MULTICAST_LOCAL_CONNECTED, and after registering, if it matters when an observer begins to be
/// notified. It is not needed before a process ends. The function also waits for peers that are
/// stopped, whose observers do not return, or that cannot be reached yet.
///
/// @param transport   As multicast_local_connect() made it.
/// @param timeout_ns  Nanoseconds on the monotonic clock; 0: no waiting; MULTICAST_FOREVER: no
///                    limit.
/// @return MULTICAST_OK; MULTICAST_ERROR_TIMEOUT; MULTICAST_ERROR_INVALID_HANDLE: not a transport
///         of this library, or it has been released, perhaps during the call;
///         MULTICAST_ERROR_STATE: on the transport's thread, or in the child of a fork.
/// Threads:   several may wait. A `queue` that the waiting thread runs is not run during the wait.
/// Cost:      O(peers) for each millisecond of the wait.
/// @since 1.1
MULTICAST_API multicast_status multicast_local_flush(const multicast_transport *transport,
                                                     uint64_t timeout_ns);

/* ---- 3. Questions ---------------------------------------------------------------------------- */

/// Where an answer goes.
///
/// Copy it, and keep it as long as you like: there is nothing to release. The fields are private.
/// @since 1.1
typedef struct multicast_local_question {
  uint64_t transport;  ///< The transport that answers. Zero: no question.
  uint64_t peer;       ///< The peer that asks.
  uint64_t number;     ///< The number of the question among those of the peer.
} multicast_local_question;

/// Sets the function that answers the questions of peers about a name.
///
/// The transport tells its peers which names it answers, as it tells them which names have
/// observers; multicast_local_flush() waits until they know.
///
/// @param transport  As multicast_local_connect() made it.
/// @param name       1 to 255 bytes. The names of questions are not those of notifications.
/// @param function   Called for each question, where observers are called; it may answer with
///                   multicast_local_reply(), or keep a copy of the question and answer later.
///                   `question` and `payload` are valid until it returns. It replaces an earlier
///                   function of the name. NULL: questions are not answered any more.
/// @param context    Passed to `function` and `release`.
/// @param release    Runs once, on any thread, when `context` is not used any more: after the
///                   function was replaced and its calls have returned, or after the transport's
///                   release; even if this fails. Not in the child of a fork. May be NULL; not used
///                   if `function` is NULL.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE: not a transport of this library, or it has
///         been released; MULTICAST_ERROR_INVALID_ARGUMENT: not a name; MULTICAST_ERROR_NOT_FOUND:
///         no function, and none to replace; MULTICAST_ERROR_STATE: in the child of a fork;
///         MULTICAST_ERROR_OUT_OF_MEMORY.
/// Threads:   does not wait: a call of an earlier function may go on.
/// Reentry:   the function may call this, and reply, but not ask with this transport, unless the
///            transport has a `queue`.
/// Cost:      O(1), and a message to each peer.
/// @since 1.1
MULTICAST_API multicast_status multicast_local_answer(
    const multicast_transport *transport, const char *name,
    void (*function)(void *context, const multicast_local_question *question, uint32_t event,
                     const void *payload, size_t size),
    void *context, void (*release)(void *context));

/// Answers a question: the asker gets MULTICAST_OK and the payload.
///
/// A question without a reply ends when the asker's time is up. If there are several replies to a
/// question, the asker gets the first one.
///
/// @param question  The question that the function received, or a copy of it.
/// @param payload   The answer; may be NULL if there are no bytes.
/// @param size      Bytes at `payload`, up to `max_payload`.
/// @return MULTICAST_OK: the answer is in memory that the asker reads, although the asker may no
///         longer wait for it; MULTICAST_ERROR_NOT_FOUND: the asker has gone;
///         MULTICAST_ERROR_QUEUE_FULL: there is no room, see `overflow`, try again;
///         MULTICAST_ERROR_LIMIT: larger than `max_payload`; MULTICAST_ERROR_INVALID_HANDLE: not a
///         question, or its transport has been released; MULTICAST_ERROR_INVALID_ARGUMENT: NULL;
///         MULTICAST_ERROR_STATE: in the child of a fork.
/// Cost:      O(peers), and a copy.
/// @since 1.1
MULTICAST_API multicast_status multicast_local_reply(const multicast_local_question *question,
                                                     const void *payload, size_t size);

/// Asks all peers that answer a name, and waits for their answers.
///
/// `visit` is called once for each peer that was asked, as soon as its result is known, with the
/// process and the name of the peer, and
///   - MULTICAST_OK: it has answered, with the payload;
///   - MULTICAST_ERROR_NOT_FOUND: it has ended, or detached, without an answer;
///   - MULTICAST_ERROR_STATE: it does not answer the name any more;
///   - MULTICAST_ERROR_OUT_OF_MEMORY: it had no memory for the question, or this process has none
///     for its answer;
///   - MULTICAST_ERROR_TIMEOUT: it has not answered in time. An answer that comes later is dropped
///     (`late` of multicast_local_stats).
/// An unknown peer is also asked. If it turns out that it does not answer the name, or if it ends
/// or the time is up, `visit` is not called for it. `peer` and `payload` are valid until `visit`
/// returns; `payload` is NULL if there are no bytes. If `visit` returns false, it is not called
/// again, and this function returns. For the first answer, return `status != MULTICAST_OK`; for
/// all, return true.
///
/// @param transport   As multicast_local_connect() made it.
/// @param name        As it is answered.
/// @param event       Passed on to those that answer, as the payload.
/// @param payload     Copied; may be NULL if there are no bytes.
/// @param size        Bytes at `payload`, up to `max_payload`.
/// @param timeout_ns  Nanoseconds on the monotonic clock, the wait for room included.
///                    MULTICAST_FOREVER: no limit.
/// @param visit       Not NULL. It must not end the thread.
/// @param context     Passed to `visit`.
/// @return MULTICAST_OK: `visit` was called for all peers, or has returned false;
///         MULTICAST_ERROR_TIMEOUT: as MULTICAST_OK, but some peers have not answered in time;
///         MULTICAST_ERROR_NOT_FOUND: nobody answers the name; at once, unless there are unknown
///         peers; see multicast_local_flush(); MULTICAST_ERROR_QUEUE_FULL: there is no room, see
///         `overflow`; MULTICAST_ERROR_LIMIT: larger than `max_payload`;
///         MULTICAST_ERROR_INVALID_ARGUMENT: not a name, or NULL; MULTICAST_ERROR_INVALID_HANDLE:
///         not a transport of this library, or it has been released, perhaps during the call:
///         `visit` is not called for the rest; MULTICAST_ERROR_STATE: on the transport's thread, or
///         in the child of a fork; MULTICAST_ERROR_OUT_OF_MEMORY.
/// Threads:   any but the transport's, several at once. `visit` runs on the calling thread. A
///            `queue` that this thread runs is not run during the call.
/// Reentry:   observers and functions that answer may ask with this transport if it has a `queue`,
///            and with any other transport. `visit` may call anything.
/// Cost:      O(peers), a copy, and some 100 bytes for each peer.
/// @since 1.1
MULTICAST_API multicast_status multicast_local_ask(
    const multicast_transport *transport, const char *name, uint32_t event, const void *payload,
    size_t size, uint64_t timeout_ns,
    bool (*visit)(void *context, multicast_status status, int32_t pid, const char *peer,
                  const void *payload, size_t size),
    void *context);

/* ---- 4. Statistics --------------------------------------------------------------------------- */

/// Counts of a transport since it was made.
///
/// A question counts as a publication, and at the peer that gets it as a notification. An answer
/// counts only in `overwritten`.
///
/// At every moment `published` is the sum of `sent` and `unwanted`. `received` is the sum of
/// `delivered`, the notifications that are being delivered or wait in `queue`, and those that were
/// lost for another reason than the overflow of a ring.
/// @since 1.1
typedef struct multicast_local_stats {
  uint32_t struct_size;  ///< sizeof(multicast_local_stats).
  uint32_t flags;        ///< 0.
  uint32_t connected;    ///< 1: it is in its group; 0: it is not.
  uint32_t names;        ///< How many names have observers here.
  uint32_t peers;        ///< How many other peers there are.
  uint32_t reserved;     ///< 0.
  uint64_t max_payload;  ///< The largest payload that is published, in bytes.
  uint64_t joined;       ///< How many peers have come.
  uint64_t gone;         ///< How many peers have gone, those that were cut off included.
  uint64_t expelled;     ///< How many peers were cut off.
  uint64_t published;    ///< Publications that were accepted.
  uint64_t sent;         ///< Publications that were written to the ring.
  /// Publications for which no peer had observers, as far as was known.
  uint64_t unwanted;
  uint64_t refused;  ///< Publications that were not accepted.
  /// Notifications of peers that were read, for observers of this process.
  uint64_t received;
  /// Notifications that were delivered to the broadcaster. With `queue`: when that is run.
  uint64_t delivered;
  /// Notifications that were not delivered: overwritten before this process had read them
  /// (`overwritten`), no memory, the broadcaster was destroyed, or `queue` did not take them or has
  /// dropped them since, for newer ones or when it was destroyed.
  uint64_t lost;
  /// Notifications that peers with MULTICAST_OVERFLOW_DROP_OLDEST have overwritten before this
  /// process had read them.
  uint64_t overwritten;
  /// Answers that were dropped: nobody waited for them any more, or they were not asked for.
  uint64_t late;
} multicast_local_stats;

/// All zero, with `struct_size` set: ready for multicast_local_get_stats().
/// @since 1.1
#define MULTICAST_LOCAL_STATS_INIT \
  {sizeof(multicast_local_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
   0}

/// All zero, with `struct_size` set: ready for multicast_local_get_stats().
///
/// @return The statistics, by value.
/// @since 1.1
static inline multicast_local_stats multicast_local_stats_default(void) {
  multicast_local_stats stats = MULTICAST_LOCAL_STATS_INIT;
  return stats;
}

/// Reads all statistics of a transport, at one moment.
///
/// @param transport  As multicast_local_connect() made it.
/// @param out        Receives the numbers. The caller sets `struct_size`.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE: not a transport of this library, or it has
///         been released; MULTICAST_ERROR_INVALID_ARGUMENT: NULL or a wrong `struct_size`, nothing
///         written; MULTICAST_ERROR_STATE: in the child of a fork.
/// @since 1.1
MULTICAST_API multicast_status multicast_local_get_stats(const multicast_transport *transport,
                                                         multicast_local_stats *out);

#ifdef __cplusplus
}
#endif

#endif
