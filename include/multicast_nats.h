/* SPDX-License-Identifier: MIT */

#ifndef MULTICAST_NATS_H
#define MULTICAST_NATS_H

#include <multicast.h>

#ifdef __cplusplus
extern "C" {
#endif

/* libmulticast-nats: a broadcaster whose observers may be in other processes and on other machines.
 * A NATS server carries the notifications, and libnats connects to it.
 *
 *     multicast_nats_options options = multicast_nats_options_default();
 *     multicast_transport transport;
 *     options.broadcaster = broadcaster;
 *     options.servers = "nats://server.example";
 *     if (multicast_nats_connect(&options, &transport) == MULTICAST_OK)
 *       multicast_broadcaster_attach(broadcaster, &transport);
 *
 * From then on, multicast_broadcaster_notify() notifies the observers of this process and publishes
 * the notification. Observers in other processes are notified if their broadcasters are attached to
 * the same server or cluster with the same prefix.
 *
 * The rules of multicast.h apply. In addition:
 *
 * Subjects     A notification with name N and event E is published as PREFIX.N.E; E is a decimal
 *              number. Bytes of the name outside the range 0x21 to 0x7E, and `. * > %`, are written
 *              as `%XX`. Each name and event therefore corresponds to exactly one subject.
 * Messages     A message is the payload itself, so any NATS client can publish and subscribe.
 *              Messages with other subjects are dropped and count as `ignored`.
 * Order        The publications of one transport arrive in order at every other transport, even
 *              across interruptions of the connection. If the program has called libnats's
 *              nats_SetMessageDeliveryPoolSize() with a value above 1, only publications of the
 *              same name arrive in order.
 * Losses       A notification arrives at most once. A notification is lost if it is in transit when
 *              a connection ends, or if it is published while the receiver is not connected. The
 *              server ends the connection of a receiver that is too slow for too long. While this
 *              process has no connection, its publications wait for one (see `capacity`).
 * Late observers
 *              The server keeps no values, so an observer that registers later is not notified of
 *              earlier publications, neither in the publishing process nor elsewhere.
 * Questions    A question about name N with event E is published as PREFIX.%?N.E, with the reply
 *              subject _INBOX.ID.NUMBER, where ID and NUMBER are 16 hexadecimal digits each.
 *              Answers are published to that subject. Other programs can therefore answer
 *              questions, and can ask questions if they use such a reply subject.
 * Security     Any client that the server allows to publish can notify observers, and any client
 *              that it allows to subscribe can read notifications. Only the server's permissions
 *              and TLS protect the messages. Observers must check payloads.
 * Threads      A transport has one thread, which calls `changed` and, if there is no `queue`, the
 *              observers. While such a call is running, nothing is sent or received. All transports
 *              of a process share up to four threads of libnats, which run no observers.
 * fork         A child cannot use the connection: `publish` returns MULTICAST_ERROR_STATE, and the
 *              child receives nothing. The connection's descriptor is closed on exec. If an
 *              observer or `changed` calls fork() on the transport's thread and returns in the
 *              child, that thread ends in the child. The child then exits with status 0, unless it
 *              has started other threads. The child also inherits the socket, so if the parent
 *              detaches, the server keeps the connection and its subscriptions until the child ends
 *              or calls exec. libnats's threads do not exist in the child of a program that has
 *              used libnats, so such a child must not create transports before it calls exec.
 */

/* ---- 1. Options ------------------------------------------------------------------------------ */

/// `flags` of multicast_nats_options: connect to servers with TLS only. The flag is implied by
/// `ca_file` and `cert_file`, and by an address that begins with `tls://`. Even without this flag,
/// connections to a server that requires TLS use TLS.
/// @since 1.1
#define MULTICAST_NATS_TLS 0x1u

/// `flags` of multicast_nats_options: while there is no connection, publishing fails with
/// MULTICAST_ERROR_STATE. Without this flag, publications wait for a connection: see `capacity`.
/// @since 1.1
#define MULTICAST_NATS_REFUSE_OFFLINE 0x2u

/// A change in the state of the connection, or of a message that was sent on it.
/// @since 1.1
typedef uint32_t multicast_nats_state;

/// The values of multicast_nats_state.
/// @since 1.1
enum multicast_nats_state_code {
  MULTICAST_NATS_CONNECTED = 1,             ///< A server has accepted the connection.
  MULTICAST_NATS_LOST = 2,                  ///< The connection has ended. The transport reconnects.
  MULTICAST_NATS_REFUSED = 3,               ///< Connecting has failed. The transport retries.
  /// The server refused a subscription. The transport retries it at the next connection. Reported
  /// for each refused subscription.
  MULTICAST_NATS_SUBSCRIPTION_REFUSED = 4,
  /// The server refused a publication, which is not sent again. Reported for each publication.
  MULTICAST_NATS_PUBLICATION_REFUSED = 5
};

/// The options for connecting. `broadcaster` must be set. The library copies all strings.
/// @since 1.1
typedef struct multicast_nats_options {
  uint32_t struct_size;  ///< sizeof(multicast_nats_options).
  uint32_t flags;        ///< The flags above, combined.
  /// The broadcaster to which notifications are delivered; must be set.
  multicast_broadcaster broadcaster;
  /// The servers to try, in this order (default NULL: "nats://localhost:4222"). These are addresses
  /// like `nats://host:4222` or `tls://host`, separated by commas, in printable ASCII without
  /// quotation marks and backslashes.
  const char *servers;
  /// The name of this client in the server's reports, in UTF-8 (default NULL: none).
  const char *client_name;
  /// The beginning of all subjects (default NULL: "multicast"). It has up to 200 bytes of printable
  /// ASCII without spaces or wildcards, and consists of one or more non-empty tokens that are
  /// separated by dots.
  const char *subject_prefix;
  /// The user name for the server, in UTF-8; needs `password` (default NULL: the user name in the
  /// address, if there is one).
  const char *user;
  /// The password for the server, in UTF-8; needs `user`.
  const char *password;
  /// The token for a server that requires one; cannot be combined with `user` (default NULL: none).
  const char *token;
  /// A PEM file with the certificates of additional authorities to trust (default NULL: only the
  /// authorities that the system trusts).
  const char *ca_file;
  /// A PEM file with the certificate of this client; needs `key_file`.
  const char *cert_file;
  /// A PEM file with the key of `cert_file`, which must not be encrypted.
  const char *key_file;
  /// The name that the server's certificate must have (default NULL: the host of the address).
  const char *tls_name;
  /// The number of seconds of silence after which the connection is checked, 1 to 65535 (default:
  /// 0, which means 60). If the server then remains silent for the same time again, the connection
  /// counts as lost.
  uint32_t ping_interval_s;
  /// The number of publications that may wait to be sent, 1 to 2^24 (default: 0, which means 8192).
  uint32_t capacity;
  /// What happens to a publication if `capacity` publications are already waiting. With
  /// MULTICAST_OVERFLOW_REFUSE, the default, it is refused with MULTICAST_ERROR_QUEUE_FULL. With
  /// MULTICAST_OVERFLOW_DROP_OLDEST, the oldest waiting publication is dropped.
  multicast_overflow overflow;
  /// The largest payload, in bytes, up to 2^28 (default: 0, which means the limit of the server, or
  /// 2^28 before the first connection). Larger payloads are refused when published, and dropped
  /// when received. The server's own limit is usually 1 MiB.
  uint32_t max_payload;
  /// The number of received bytes that may wait for observers, including about 100 bytes for each
  /// message (default: 0, which means 64 MiB). While more bytes are waiting, nothing is received.
  uint64_t receive_bytes;
  /// The time to wait before the second attempt to connect (default: 0, which means 100 ms). Each
  /// further wait is twice as long, but every wait is shortened at random by up to a quarter.
  /// Values above `reconnect_max_ns` or, if that is not set, above its default are invalid. So is
  /// MULTICAST_FOREVER.
  uint64_t reconnect_min_ns;
  /// The maximum wait between two attempts, up to 2^62 (default: 0, which means 30 s).
  uint64_t reconnect_max_ns;
  /// The maximum time that one server may take to accept the connection, up to 2^62 (default: 0,
  /// which means 10 s). Larger times, including MULTICAST_FOREVER, are invalid. libnats before 3.8
  /// ignores the limit if the server sends its greeting and then nothing more. libnats then uses
  /// processor time and memory until the server ends the connection.
  uint64_t connect_timeout_ns;
  /// The queue for arriving notifications (default: none, observers run on the transport's thread).
  /// Observers without their own queue run on the thread that runs this queue. The caller still
  /// owns the queue. If it has MULTICAST_OVERFLOW_BLOCK, a full queue blocks the transport.
  multicast_queue queue;
  /// Called for each change, on the transport's thread. `code` is libnats's natsStatus, or 0 if
  /// there is none. `reason` is a text in English, which is valid until the function returns.
  void (*changed)(void *context, multicast_nats_state state, int32_t code, const char *reason);
  /// Passed to `changed` and to `release`.
  void *context;
  /// Runs once, on any thread except libnats's, when `context` is no longer used. It also runs if
  /// multicast_nats_connect() fails, unless the options cannot be read.
  void (*release)(void *context);
} multicast_nats_options;

/// Initializes a static or local struct with all defaults. `broadcaster` still has to be set.
/// @since 1.1
#define MULTICAST_NATS_OPTIONS_INIT \
  {sizeof(multicast_nats_options), 0, {0}, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
   NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, {0}, NULL, NULL, NULL}

/// Returns a struct with all defaults, and with `struct_size` set. `broadcaster` still has to be
/// set.
///
/// @return The options, by value.
/// @since 1.1
static inline multicast_nats_options multicast_nats_options_default(void) {
  multicast_nats_options options = MULTICAST_NATS_OPTIONS_INIT;
  return options;
}

/* ---- 2. The transport ------------------------------------------------------------------------ */

/// Creates a transport for multicast_broadcaster_attach(). The transport connects on its own
/// thread, and reconnects whenever the connection is lost.
///
/// At the server, the transport subscribes to the names that have observers. It does not receive
/// its own publications.
///
/// The transport's `publish` returns MULTICAST_ERROR_QUEUE_FULL if `capacity` publications are
/// waiting; MULTICAST_ERROR_LIMIT if the payload is larger than `max_payload` or than the limit of
/// the last connection's server; MULTICAST_ERROR_STATE in the child of a fork, or because of
/// MULTICAST_NATS_REFUSE_OFFLINE; MULTICAST_ERROR_OUT_OF_MEMORY.
///
/// @param options  The options; not NULL.
/// @param out      Receives the transport before `changed` can be called; all zero if the call
///                 fails. Not NULL.
/// @return MULTICAST_OK: the transport has begun to connect, and `changed` will report the result;
///         MULTICAST_ERROR_INVALID_ARGUMENT: NULL or invalid options;
///         MULTICAST_ERROR_INVALID_HANDLE: the broadcaster or the queue does not exist;
///         MULTICAST_ERROR_LIMIT: 65,535 transports of this library exist;
///         MULTICAST_ERROR_OUT_OF_MEMORY; MULTICAST_ERROR_SYSTEM: there is no thread or descriptor
///         left, or a file of the TLS options cannot be used.
/// Ownership: multicast_broadcaster_attach() takes over the transport, and calls `release` once.
///            Attach it only once, to one broadcaster, and do not use it after `release`. If you do
///            not attach it, call its `release` with its `context` yourself. `release` disconnects,
///            and drops the publications that are still waiting to be sent: see
///            multicast_nats_flush().
/// Threads:   `release` waits for the transport's thread, unless that thread is in `changed`, is
///            delivering notifications, or is connecting.
/// Cost:      a thread and two descriptors; the first transport also starts up to four threads of
///            libnats.
/// @since 1.1
MULTICAST_API multicast_status multicast_nats_connect(const multicast_nats_options *options,
                                                      multicast_transport *out);

/// Waits until a server has confirmed all publications and subscriptions made before this call.
///
/// Call this function before a process ends, and after registering an observer that must not miss
/// later notifications. Even then, messages are lost if the connection ends before the server has
/// handled them.
///
/// @param transport   A transport from multicast_nats_connect().
/// @param timeout_ns  The time limit in nanoseconds on the monotonic clock; 0 means no waiting, and
///                    MULTICAST_FOREVER means no limit.
/// @return MULTICAST_OK, even if the server has refused some of these publications or
///         subscriptions; MULTICAST_ERROR_TIMEOUT; MULTICAST_ERROR_INVALID_HANDLE: not a transport
///         of this library, or it has been released, perhaps during the call;
///         MULTICAST_ERROR_STATE: some publications were dropped during the wait, to make room for
///         newer ones, or the connection ended before the server had confirmed them, so they may be
///         lost; the others are done; or the function was called on the transport's thread or in
///         the child of a fork.
/// Threads:   several threads may wait. If the waiting thread is the one that runs `queue`, the
///            queue is not run during the wait.
/// Cost:      a round trip to the server, if anything has been published or subscribed since the
///            last round trip, and a thread that waits for the reply.
/// @since 1.1
MULTICAST_API multicast_status multicast_nats_flush(const multicast_transport *transport,
                                                    uint64_t timeout_ns);

/* ---- 3. Questions ---------------------------------------------------------------------------- */

/// Identifies a question, so that it can be answered.
///
/// The struct may be copied and kept as long as needed, and need not be released. The fields are
/// private.
/// @since 1.1
typedef struct multicast_nats_question {
  uint64_t transport;  ///< The transport that answers. Zero: no question.
  uint64_t peer;       ///< The peer that asks.
  uint64_t number;     ///< The number of the question among the peer's questions.
} multicast_nats_question;

/// Sets the answer function of a name. It answers the questions that others ask about the name.
///
/// The transport subscribes to the name at the server. multicast_nats_flush() waits until this is
/// done. If several transports answer questions about a name, each of them receives each question.
/// A transport does not receive its own questions. A question with an unknown kind of reply address
/// is dropped and counts as `ignored`.
///
/// @param transport  A transport from multicast_nats_connect().
/// @param name       1 to 255 bytes. Notifications may use the same name.
/// @param function   Called for each question, on the same thread as observers. It may answer with
///                   multicast_nats_reply(), or keep a copy of the question and answer later.
///                   `question` and `payload` are valid until the function returns. Replaces the
///                   name's previous function. If NULL, the transport stops answering questions
///                   about the name.
/// @param context    Passed to `function` and `release`.
/// @param release    Runs once, on any thread but libnats's, when `context` is no longer used:
///                   after the function has been replaced and its calls have returned, or after the
///                   transport's release. It also runs if multicast_nats_answer() fails, but not in
///                   the child of a fork. May be NULL; not used if `function` is NULL.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE: not a transport of this library, or it has
///         been released; MULTICAST_ERROR_INVALID_ARGUMENT: not a name; MULTICAST_ERROR_NOT_FOUND:
///         `function` is NULL, and there is no function to remove; MULTICAST_ERROR_STATE: in the
///         child of a fork; MULTICAST_ERROR_OUT_OF_MEMORY.
/// Threads:   does not wait, so a call to the previous function may still be running.
/// Reentry:   `function` may call multicast_nats_answer() and multicast_nats_reply(). It may call
///            multicast_nats_ask() with this transport only if the transport has a `queue`.
/// Cost:      O(1), and a subscription.
/// @since 1.1
MULTICAST_API multicast_status multicast_nats_answer(
    const multicast_transport *transport, const char *name,
    void (*function)(void *context, const multicast_nats_question *question, uint32_t event,
                     const void *payload, size_t size),
    void *context, void (*release)(void *context));

/// Answers a question: the asker receives MULTICAST_OK and the payload.
///
/// A question that nobody answers ends when the asker's time is up. An asker that waits for more
/// than one answer receives all replies, even if one program sends several replies to the question.
///
/// @param question  The question that the function received, or a copy of it.
/// @param payload   The answer; may be NULL if there are no bytes.
/// @param size      Bytes at `payload`, up to `max_payload`.
/// @return MULTICAST_OK: the answer is published like a notification; the server does not say
///         whether the asker is still there and waiting for it; MULTICAST_ERROR_QUEUE_FULL:
///         `capacity` publications are waiting, so try again later; MULTICAST_ERROR_LIMIT: larger
///         than `max_payload`, or than the server accepts; MULTICAST_ERROR_INVALID_HANDLE: not a
///         question, or its transport has been released; MULTICAST_ERROR_INVALID_ARGUMENT: NULL;
///         MULTICAST_ERROR_STATE: in the child of a fork, or because of
///         MULTICAST_NATS_REFUSE_OFFLINE; MULTICAST_ERROR_OUT_OF_MEMORY.
/// Cost:      like publishing.
/// @since 1.1
MULTICAST_API multicast_status multicast_nats_reply(const multicast_nats_question *question,
                                                    const void *payload, size_t size);

/// Asks all transports and programs that answer questions about a name, and waits for their
/// answers.
///
/// `visit` is called once for each answer, in order of arrival, with MULTICAST_OK and the payload.
/// The payload is valid until `visit` returns, and is NULL if it is empty. The server does not
/// report who answers, how many programs answer, or that a program has ended without answering, so
/// `pid` is 0 and `peer` is empty. `visit` has the same type as in multicast_local_ask(), where
/// these values are known. If `visit` returns false, it is not called again, and this function
/// returns. Let `visit` return `status != MULTICAST_OK` to wait only for the first answer, or true
/// to wait for all answers that arrive in time. Later answers are dropped and count as `ignored`.
///
/// Without a connection, the function waits for one if there is room for the question. Like
/// notifications, answers may be lost.
///
/// @param transport   A transport from multicast_nats_connect().
/// @param name        The name to ask about.
/// @param event       Passed to the answer functions, like the payload.
/// @param payload     Copied; may be NULL if there are no bytes.
/// @param size        Bytes at `payload`, up to `max_payload`.
/// @param timeout_ns  The time limit in nanoseconds on the monotonic clock, which includes the wait
///                    for a connection; MULTICAST_FOREVER means no limit. After this time, a
///                    question that has not been sent yet is discarded.
/// @param visit       Called as described above; not NULL. It must not end the thread.
/// @param context     Passed to `visit`.
/// @return MULTICAST_OK: `visit` has returned false, or the time is up and at least one answer has
///         arrived; MULTICAST_ERROR_TIMEOUT: the time is up, and no answer has arrived;
///         MULTICAST_ERROR_NOT_FOUND, immediately: nobody answers questions about this name.
///         Servers before 2.2 do not report this, so the call times out; MULTICAST_ERROR_STATE: the
///         connection was lost during the call, and somebody may have received the question; there
///         is no connection, and MULTICAST_NATS_REFUSE_OFFLINE is set; on the transport's thread;
///         in the child of a fork; MULTICAST_ERROR_QUEUE_FULL: `capacity` publications are waiting,
///         or the question was dropped to make room for newer ones, or one answer was lost because
///         `capacity` others were waiting for `visit`; MULTICAST_ERROR_LIMIT: larger than
///         `max_payload`, or than the server accepts; MULTICAST_ERROR_INVALID_ARGUMENT: not a name,
///         or NULL; MULTICAST_ERROR_INVALID_HANDLE: not a transport of this library, or it has been
///         released, perhaps during the call; MULTICAST_ERROR_OUT_OF_MEMORY: for the question, or
///         for an answer, which is lost.
/// Threads:   any thread except the transport's may call it, and several may do so at the same
///            time. `visit` runs on the calling thread. If this thread is the one that runs
///            `queue`, the queue is not run during the call.
/// Reentry:   observers and answer functions may call this function with any other transport, and
///            with this one only if it has a `queue`. `visit` may call every function of the
///            library.
/// Cost:      like publishing, and a copy of each answer. The first question of a transport also
///            subscribes to the answers.
/// @since 1.1
MULTICAST_API multicast_status multicast_nats_ask(
    const multicast_transport *transport, const char *name, uint32_t event, const void *payload,
    size_t size, uint64_t timeout_ns,
    bool (*visit)(void *context, multicast_status status, int32_t pid, const char *peer,
                  const void *payload, size_t size),
    void *context);

/* ---- 4. Statistics --------------------------------------------------------------------------- */

/// The counters of a transport since it was created.
///
/// `published` is always the sum of `waiting`, `sending`, `sent` and `dropped`. Questions and
/// answers count both as publications and as messages. A question that arrives counts as a
/// notification; an answer that arrives in time counts only as `received`, as does the server's
/// report that nobody answers.
/// @since 1.1
typedef struct multicast_nats_stats {
  uint32_t struct_size;  ///< sizeof(multicast_nats_stats).
  uint32_t flags;        ///< 0.
  uint32_t connected;    ///< 1 if there is a connection, otherwise 0.
  uint32_t names;        ///< Names that are subscribed, or will be at the next connection.
  /// The largest payload, in bytes, that the last connection's server accepts, or 0 before the
  /// first connection.
  uint64_t max_payload;
  uint64_t connections;  ///< How often a server has accepted a connection.
  uint64_t published;    ///< Publications that were accepted.
  uint64_t waiting;      ///< Publications that are now waiting to be sent.
  uint64_t sending;      ///< Publications that are being written now.
  uint64_t sent;         ///< Publications that were written to a connection.
  /// Publications that were dropped: to make room for newer ones; because they were too large for
  /// the server; because the connection ended while they were being written, so that the server may
  /// have received some; because nobody is waiting for the answer any more; because there was no
  /// memory; or at `release`.
  uint64_t dropped;
  /// How often the server has reported that this client may not publish. The publications in these
  /// reports also count as `sent`.
  uint64_t rejected;
  uint64_t refused;   ///< Publications that were not accepted.
  uint64_t received;  ///< Messages that were received.
  /// Messages that were delivered to the broadcaster; with `queue`, counted when the queue is run.
  uint64_t delivered;
  /// Messages that were not delivered, because they have a subject that this library does not use,
  /// they are too large, or nobody is waiting for the answer.
  uint64_t ignored;
  /// Messages that were not delivered, because there was no memory, the broadcaster was destroyed,
  /// or `queue` refused or dropped them. The queue drops messages to make room for newer ones, or
  /// when it is destroyed.
  uint64_t lost;
} multicast_nats_stats;

/// Initializes a struct for multicast_nats_get_stats(): all zero, with `struct_size` set.
/// @since 1.1
#define MULTICAST_NATS_STATS_INIT \
  {sizeof(multicast_nats_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/// Returns a struct for multicast_nats_get_stats(): all zero, with `struct_size` set.
///
/// @return The statistics, by value.
/// @since 1.1
static inline multicast_nats_stats multicast_nats_stats_default(void) {
  multicast_nats_stats stats = MULTICAST_NATS_STATS_INIT;
  return stats;
}

/// Reads a consistent snapshot of all statistics of a transport.
///
/// @param transport  A transport from multicast_nats_connect().
/// @param out        Receives the statistics. The caller sets `struct_size`.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE: not a transport of this library, or it has
///         been released; MULTICAST_ERROR_INVALID_ARGUMENT: NULL or a wrong `struct_size`, in which
///         case nothing is written; MULTICAST_ERROR_STATE: in the child of a fork.
/// @since 1.1
MULTICAST_API multicast_status multicast_nats_get_stats(const multicast_transport *transport,
                                                        multicast_nats_stats *out);

#ifdef __cplusplus
}
#endif

#endif
