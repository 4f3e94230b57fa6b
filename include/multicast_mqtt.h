/* SPDX-License-Identifier: MIT */

#ifndef MULTICAST_MQTT_H
#define MULTICAST_MQTT_H

#include <multicast.h>

#ifdef __cplusplus
extern "C" {
#endif

/* libmulticast-mqtt: a broadcaster whose observers may be in other processes and on other machines.
 * An MQTT broker carries the notifications, and libmosquitto connects to it.
 *
 *     multicast_mqtt_options options = multicast_mqtt_options_default();
 *     multicast_transport transport;
 *     options.broadcaster = broadcaster;
 *     options.host = "broker.example";
 *     if (multicast_mqtt_connect(&options, &transport) == MULTICAST_OK)
 *       multicast_broadcaster_attach(broadcaster, &transport);
 *
 * From then on, multicast_broadcaster_notify() notifies the observers of this process and publishes
 * the notification. Observers in other processes are notified if their broadcasters are attached to
 * the same broker with the same prefix.
 *
 * The rules of multicast.h apply. In addition:
 *
 * Topics       A notification with name N and event E is published as PREFIX/N/E; E is a decimal
 *              number. Bytes of the name outside the range 0x20 to 0x7E, and `+ # / $ %`, are
 *              written as `%XX`. Each name and event therefore corresponds to exactly one topic.
 * Messages     A message consists of 16 bytes and the payload. The 16 bytes are 93 4D 43, the
 *              version 01, four zero bytes, and eight bytes that identify the sender. A message
 *              that does not begin with 93 4D 43 consists of the payload alone, so that other
 *              programs can publish, too. PREFIX/N without an event means event 0. All other
 *              messages are dropped and count as `ignored`.
 * Order        The publications of one process arrive in order at every other process.
 * Losses       With `qos` 0, a notification arrives at most once. With `qos` 1, a notification
 *              arrives at least once if the broker keeps the messages that it has acknowledged,
 *              `session_expiry_s` is longer than any interruption of the connection, and neither
 *              process ends. After an interruption, the last notifications arrive again, in order.
 *              With `qos` 2, a notification arrives exactly once while the connections last. When a
 *              connection ends, libmosquitto 2.0 may lose, repeat or delay notifications in
 *              transit. A notification counts as arrived when this library has received it. The
 *              library limits the publications and calls that may wait, and counts the
 *              notifications that are lost because of these limits.
 * Late observers
 *              The broker keeps the last publication of each name and event that `retains` selects.
 *              The broker sends this publication to each transport that subscribes later, when the
 *              transport's first observer of the name registers. Further observers at the same
 *              broadcaster do not receive it. Observers of the publishing transport receive it only
 *              with MULTICAST_MQTT_PLAIN.
 * Questions    A question about name N with event E is published with QoS 1 as PREFIX/%?N/E, so
 *              that the broker can report that nobody receives it. Its response topic is
 *              PREFIX/%=ID, and its correlation data is NUMBER; ID and NUMBER are 16 hexadecimal
 *              digits each. Answers are published to that topic, with the quality of service `qos`
 *              and the same correlation data. Questions and answers are messages as described
 *              above, and are never retained. Other programs can therefore answer questions, and
 *              can ask questions if they use such a response topic. Questions need MQTT 5.
 * Security     Any client that the broker allows to publish can notify observers, and any client
 *              that it allows to subscribe can read notifications. Only the broker's access control
 *              and TLS protect the messages. Observers must check payloads. A hostile broker can
 *              end the process, because libmosquitto 2.0 calls abort() for an MQTT 5 property that
 *              it does not know. MQTT 3.1.1 (`protocol` 4) has no properties.
 * Threads      A transport has one thread, which calls `changed` and, if there is no `queue`, the
 *              observers. While such a call is running, nothing is sent or received.
 * fork         A child cannot use the connection: `publish` returns MULTICAST_ERROR_STATE, and the
 *              child receives nothing. The connection's descriptor is closed on exec. If an
 *              observer or `changed` calls fork() on the transport's thread and returns in the
 *              child, that thread ends in the child. The child then exits with status 0, unless it
 *              has started other threads.
 */

/* ---- 1. Options ------------------------------------------------------------------------------ */

/// `flags` of multicast_mqtt_options: use TLS, and trust the certificates that the system trusts.
/// The flag is implied by `ca_file` and `ca_path`, which specify other certificates to trust.
/// @since 1.1
#define MULTICAST_MQTT_TLS 0x1u

/// `flags` of multicast_mqtt_options: with TLS, do not compare the name in the broker's certificate
/// with `host`. Any certificate of a trusted authority is then accepted.
/// @since 1.1
#define MULTICAST_MQTT_TLS_ANY_HOST 0x2u

/// `flags` of multicast_mqtt_options: while there is no connection, publishing fails with
/// MULTICAST_ERROR_STATE. Without this flag, publications wait for a connection: see `capacity`.
/// @since 1.1
#define MULTICAST_MQTT_REFUSE_OFFLINE 0x4u

/// `flags` of multicast_mqtt_options: messages consist only of payloads, for subscribers that do
/// not use this library. A payload that could be mistaken for a message of this library is still
/// preceded by its 16 bytes. With MQTT 3.1.1, a transport receives its own publications.
/// @since 1.1
#define MULTICAST_MQTT_PLAIN 0x8u

/// `flags` of multicast_mqtt_options: messages that the broker has retained are not delivered.
/// @since 1.1
#define MULTICAST_MQTT_NO_RETAINED 0x10u

/// A change in the state of the connection, or of a message that was sent on it.
/// @since 1.1
typedef uint32_t multicast_mqtt_state;

/// The values of multicast_mqtt_state.
/// @since 1.1
enum multicast_mqtt_state_code {
  MULTICAST_MQTT_CONNECTED = 1,             ///< The broker has accepted the connection.
  MULTICAST_MQTT_LOST = 2,                  ///< The connection has ended. The transport reconnects.
  MULTICAST_MQTT_REFUSED = 3,               ///< Connecting has failed. The transport retries.
  /// The broker refused a subscription. The transport retries it at the next connection. Reported
  /// for each refused subscription.
  MULTICAST_MQTT_SUBSCRIPTION_REFUSED = 4,
  /// The broker refused a publication, which is not sent again. Reported for each publication.
  MULTICAST_MQTT_PUBLICATION_REFUSED = 5
};

/// The options for connecting. `broadcaster` must be set. The library copies all strings.
/// @since 1.1
typedef struct multicast_mqtt_options {
  uint32_t struct_size;  ///< sizeof(multicast_mqtt_options).
  uint32_t flags;        ///< The flags above, combined.
  /// The broadcaster to which notifications are delivered; must be set.
  multicast_broadcaster broadcaster;
  /// The broker's name or address (default NULL: localhost).
  const char *host;
  /// The broker's port (default: 0, which means 1883, or 8883 with TLS).
  uint32_t port;
  /// The version of MQTT: 5, or 4 for 3.1.1 (default: 0, which means 5 if the broker supports it,
  /// and otherwise 3.1.1).
  uint32_t protocol;
  /// The name by which the broker knows this client (default NULL: a random name). No two
  /// connections may share a name.
  const char *client_id;
  /// The beginning of all topics: UTF-8, up to 200 bytes with at most 198 `/`, without `+` or `#`,
  /// and without a leading `$` (default NULL: "multicast").
  const char *topic_prefix;
  /// The user name for the broker (default NULL: none).
  const char *user;
  /// The password for the broker; needs `user` (default NULL: none).
  const char *password;
  /// A PEM file with the certificates of the authorities to trust.
  const char *ca_file;
  /// A directory with these certificates, prepared by `openssl rehash`.
  const char *ca_path;
  /// A PEM file with the certificate of this client; needs TLS and `key_file`.
  const char *cert_file;
  /// A PEM file with the key of `cert_file`.
  const char *key_file;
  /// The password of an encrypted `key_file`.
  const char *key_password;
  /// The quality of service of publications and subscriptions: 0, 1 or 2. See "Losses".
  uint32_t qos;
  /// The number of seconds of silence after which the connection is checked, 5 to 65535 (default:
  /// 0, which means 60).
  uint32_t keep_alive_s;
  /// The number of seconds for which the broker collects messages for this client while there is no
  /// connection (default: 0, it collects none). With `client_id`, the broker also collects messages
  /// for the next process with the same identifier. The transport of that process holds these
  /// messages for observers that register within a second after its first use, for example after it
  /// was attached to a broadcaster with observers. After that, messages without observers are
  /// ignored. MQTT 3.1.1 has no such setting, so the broker decides.
  uint32_t session_expiry_s;
  /// The number of publications that may wait to be sent, 1 to 2^24 (default: 0, which means 8192).
  uint32_t capacity;
  /// What happens to a publication if `capacity` publications are already waiting. With
  /// MULTICAST_OVERFLOW_REFUSE, the default, it is refused with MULTICAST_ERROR_QUEUE_FULL. With
  /// MULTICAST_OVERFLOW_DROP_OLDEST, the oldest waiting publication is dropped.
  multicast_overflow overflow;
  /// The largest payload, in bytes, up to 2^28 - 1024 (default: 0, which means 16 MiB). Larger
  /// payloads are refused when published, and dropped when received.
  uint32_t max_payload;
  /// The time to wait before the second attempt to connect (default: 0, which means 100 ms). Each
  /// further wait is twice as long, but every wait is shortened at random by up to a quarter.
  /// Values above `reconnect_max_ns` or, if that is not set, above its default are invalid. So is
  /// MULTICAST_FOREVER.
  uint64_t reconnect_min_ns;
  /// The maximum wait between two attempts, up to 2^62 (default: 0, which means 30 s).
  uint64_t reconnect_max_ns;
  /// The maximum time that the broker may take to answer once there is a network connection, up to
  /// 2^62 (default: 0, which means 10 s). Larger times, including MULTICAST_FOREVER, are invalid.
  uint64_t connect_timeout_ns;
  /// The queue for arriving notifications (default: none, observers run on the transport's thread).
  /// Observers without their own queue run on the thread that runs this queue. The caller still
  /// owns the queue. If it has MULTICAST_OVERFLOW_BLOCK, a full queue blocks the connection.
  multicast_queue queue;
  /// Returns whether the broker should retain this publication (default NULL: nothing is retained).
  /// See "Late observers". Called on the publishing thread.
  bool (*retains)(void *context, const char *name, uint32_t event);
  /// Called for each change, on the transport's thread. `code` is MQTT's reason code, or -1 if the
  /// change does not come from the broker. `reason` is a text in English, which is valid until the
  /// function returns.
  void (*changed)(void *context, multicast_mqtt_state state, int32_t code, const char *reason);
  /// Passed to the two functions above and to `release`.
  void *context;
  /// Runs once, when `context` is no longer used. It also runs if multicast_mqtt_connect() fails,
  /// unless the options cannot be read.
  void (*release)(void *context);
} multicast_mqtt_options;

/// Initializes a static or local struct with all defaults. `broadcaster` still has to be set.
/// @since 1.1
#define MULTICAST_MQTT_OPTIONS_INIT \
  {sizeof(multicast_mqtt_options), 0, {0}, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, \
   NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, NULL, NULL, NULL, NULL}

/// Returns a struct with all defaults, and with `struct_size` set. `broadcaster` still has to be
/// set.
///
/// @return The options, by value.
/// @since 1.1
static inline multicast_mqtt_options multicast_mqtt_options_default(void) {
  multicast_mqtt_options options = MULTICAST_MQTT_OPTIONS_INIT;
  return options;
}

/* ---- 2. The transport ------------------------------------------------------------------------ */

/// Creates a transport for multicast_broadcaster_attach(). The transport connects on its own
/// thread, and reconnects whenever the connection is lost.
///
/// At the broker, the transport subscribes to the names that have observers. It does not receive
/// its own publications.
///
/// The transport's `publish` returns MULTICAST_ERROR_QUEUE_FULL if `capacity` publications are
/// waiting; MULTICAST_ERROR_LIMIT if the payload is larger than `max_payload`;
/// MULTICAST_ERROR_STATE in the child of a fork, or because of MULTICAST_MQTT_REFUSE_OFFLINE;
/// MULTICAST_ERROR_OUT_OF_MEMORY.
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
///            multicast_mqtt_flush().
/// Threads:   `release` waits for the transport's thread, unless that thread is in `changed`, is
///            delivering notifications, or is looking up the broker's address.
/// Cost:      a thread and three descriptors.
/// @since 1.1
MULTICAST_API multicast_status multicast_mqtt_connect(const multicast_mqtt_options *options,
                                                      multicast_transport *out);

/// Waits until the broker has received all publications, subscriptions and unsubscriptions that
/// were made before this call. With `qos` 0, it waits until the publications have been sent, and
/// otherwise until they have been acknowledged.
///
/// Call this function before a process ends, and after registering an observer that must not miss
/// later notifications.
///
/// @param transport   A transport from multicast_mqtt_connect().
/// @param timeout_ns  The time limit in nanoseconds on the monotonic clock; 0 means no waiting, and
///                    MULTICAST_FOREVER means no limit.
/// @return MULTICAST_OK, even if the broker has refused some of these publications or
///         subscriptions; MULTICAST_ERROR_TIMEOUT; MULTICAST_ERROR_INVALID_HANDLE: not a transport
///         of this library, or it has been released, perhaps during the call;
///         MULTICAST_ERROR_STATE: some publications were dropped during the wait, to make room for
///         newer ones or because the connection was lost, and the others are done; or the function
///         was called on the transport's thread or in the child of a fork.
/// Threads:   several threads may wait. If the waiting thread is the one that runs `queue`, the
///            queue is not run during the wait.
/// Cost:      O(names); no polling.
/// @since 1.1
MULTICAST_API multicast_status multicast_mqtt_flush(const multicast_transport *transport,
                                                    uint64_t timeout_ns);

/* ---- 3. Questions ---------------------------------------------------------------------------- */

/// Identifies a question, so that it can be answered.
///
/// The struct may be copied and kept as long as needed, and need not be released. The fields are
/// private.
/// @since 1.1
typedef struct multicast_mqtt_question {
  uint64_t transport;  ///< The transport that answers. Zero: no question.
  uint64_t peer;       ///< The peer that asks.
  uint64_t number;     ///< The number of the question among the peer's questions.
} multicast_mqtt_question;

/// Sets the answer function of a name. It answers the questions that others ask about the name.
///
/// The transport subscribes to the name at the broker. multicast_mqtt_flush() waits until this is
/// done. If several transports answer questions about a name, each of them receives each question.
/// A transport does not receive its own questions. A question with an unknown kind of reply address
/// is dropped and counts as `ignored`.
///
/// @param transport  A transport from multicast_mqtt_connect().
/// @param name       1 to 255 bytes. Notifications may use the same name.
/// @param function   Called for each question, on the same thread as observers. It may answer with
///                   multicast_mqtt_reply(), or keep a copy of the question and answer later.
///                   `question` and `payload` are valid until the function returns. Replaces the
///                   name's previous function. If NULL, the transport stops answering questions
///                   about the name.
/// @param context    Passed to `function` and `release`.
/// @param release    Runs once, on any thread, when `context` is no longer used: after the function
///                   has been replaced and its calls have returned, or after the transport's
///                   release. It also runs if multicast_mqtt_answer() fails, but not in the child
///                   of a fork. May be NULL; not used if `function` is NULL.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE: not a transport of this library, or it has
///         been released; MULTICAST_ERROR_INVALID_ARGUMENT: not a name; MULTICAST_ERROR_NOT_FOUND:
///         `function` is NULL, and there is no function to remove; MULTICAST_ERROR_STATE: in the
///         child of a fork; MULTICAST_ERROR_OUT_OF_MEMORY.
/// Threads:   does not wait, so a call to the previous function may still be running.
/// Reentry:   `function` may call multicast_mqtt_answer() and multicast_mqtt_reply(). It may call
///            multicast_mqtt_ask() with this transport only if the transport has a `queue`.
/// Cost:      O(1), and a subscription.
/// @since 1.1
MULTICAST_API multicast_status multicast_mqtt_answer(
    const multicast_transport *transport, const char *name,
    void (*function)(void *context, const multicast_mqtt_question *question, uint32_t event,
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
/// @return MULTICAST_OK: the answer is published like a notification; the broker does not say
///         whether the asker is still there and waiting for it; MULTICAST_ERROR_QUEUE_FULL:
///         `capacity` publications are waiting, so try again later; MULTICAST_ERROR_LIMIT: larger
///         than `max_payload`; MULTICAST_ERROR_INVALID_HANDLE: not a question, or its transport has
///         been released; MULTICAST_ERROR_INVALID_ARGUMENT: NULL; MULTICAST_ERROR_STATE: in the
///         child of a fork, or because of MULTICAST_MQTT_REFUSE_OFFLINE;
///         MULTICAST_ERROR_OUT_OF_MEMORY.
/// Cost:      like publishing.
/// @since 1.1
MULTICAST_API multicast_status multicast_mqtt_reply(const multicast_mqtt_question *question,
                                                    const void *payload, size_t size);

/// Asks all transports and programs that answer questions about a name, and waits for their
/// answers.
///
/// `visit` is called once for each answer, in order of arrival, with MULTICAST_OK and the payload.
/// The payload is valid until `visit` returns, and is NULL if it is empty. The broker does not
/// report who answers, how many programs answer, or that a program has ended without answering, so
/// `pid` is 0 and `peer` is empty. `visit` has the same type as in multicast_local_ask(), where
/// these values are known. If `visit` returns false, it is not called again, and this function
/// returns. Let `visit` return `status != MULTICAST_OK` to wait only for the first answer, or true
/// to wait for all answers that arrive in time. Later answers are dropped and count as `ignored`.
///
/// Without a connection, the function waits for one if there is room for the question. Like
/// notifications, answers may be lost.
///
/// @param transport   A transport from multicast_mqtt_connect().
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
///         MULTICAST_ERROR_NOT_FOUND, immediately: nobody answers questions about this name. With
///         brokers that do not report this, the call times out. mosquitto reports it, unless this
///         transport itself answers questions about the name; MULTICAST_ERROR_STATE: the connection
///         was lost during the call, and somebody may have received the question; the broker has
///         refused it; the connection uses MQTT 3.1.1, which has no questions; there is no
///         connection, and MULTICAST_MQTT_REFUSE_OFFLINE is set; on the transport's thread; in the
///         child of a fork; MULTICAST_ERROR_QUEUE_FULL: `capacity` publications are waiting, or the
///         question was dropped to make room for newer ones, or one answer was lost because
///         `capacity` others were waiting for `visit`; MULTICAST_ERROR_LIMIT: larger than
///         `max_payload`; MULTICAST_ERROR_INVALID_ARGUMENT: not a name, or NULL;
///         MULTICAST_ERROR_INVALID_HANDLE: not a transport of this library, or it has been
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
MULTICAST_API multicast_status multicast_mqtt_ask(
    const multicast_transport *transport, const char *name, uint32_t event, const void *payload,
    size_t size, uint64_t timeout_ns,
    bool (*visit)(void *context, multicast_status status, int32_t pid, const char *peer,
                  const void *payload, size_t size),
    void *context);

/* ---- 4. Statistics --------------------------------------------------------------------------- */

/// The counters of a transport since it was created.
///
/// `published` is always the sum of `waiting`, `sending`, `sent`, `dropped` and `rejected`.
/// Questions and answers count both as publications and as messages. A question that arrives counts
/// as a notification; an answer that arrives in time counts only as `received`.
/// @since 1.1
typedef struct multicast_mqtt_stats {
  uint32_t struct_size;  ///< sizeof(multicast_mqtt_stats).
  uint32_t flags;        ///< 0.
  /// The MQTT version of the connection, 5 or 4, or 0 if there is no connection.
  uint32_t protocol;
  uint32_t names;        ///< Names that are subscribed, or will be at the next connection.
  uint64_t connections;  ///< How often the broker has accepted a connection.
  uint64_t published;    ///< Publications that were accepted.
  uint64_t waiting;      ///< Publications that are now waiting to be sent.
  /// Publications that are being sent now: not yet written, or not yet acknowledged.
  uint64_t sending;
  uint64_t sent;  ///< Publications that were acknowledged or, with `qos` 0, written.
  /// Publications that were dropped: to make room for newer ones, because the connection was lost,
  /// because nobody is waiting for the answer any more, because there was no memory, or at
  /// `release`.
  uint64_t dropped;
  uint64_t rejected;  ///< Publications that the broker has refused.
  uint64_t refused;   ///< Publications that were not accepted.
  uint64_t received;  ///< Messages of all kinds that were received.
  /// Messages that were delivered to the broadcaster; with `queue`, counted when the queue is run.
  uint64_t delivered;
  uint64_t echoes;  ///< Own messages that came back from the broker; they are not delivered.
  /// Messages that were not delivered, because they have a topic or version that this library does
  /// not use, their name has no observers, they are too large, or nobody is waiting for the answer.
  uint64_t ignored;
  /// Messages that were not delivered, because there was no memory, the broadcaster was destroyed,
  /// or `queue` refused or dropped them. The queue drops messages to make room for newer ones, or
  /// when it is destroyed.
  uint64_t lost;
} multicast_mqtt_stats;

/// Initializes a struct for multicast_mqtt_get_stats(): all zero, with `struct_size` set.
/// @since 1.1
#define MULTICAST_MQTT_STATS_INIT \
  {sizeof(multicast_mqtt_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/// Returns a struct for multicast_mqtt_get_stats(): all zero, with `struct_size` set.
///
/// @return The statistics, by value.
/// @since 1.1
static inline multicast_mqtt_stats multicast_mqtt_stats_default(void) {
  multicast_mqtt_stats stats = MULTICAST_MQTT_STATS_INIT;
  return stats;
}

/// Reads a consistent snapshot of all statistics of a transport.
///
/// @param transport  A transport from multicast_mqtt_connect().
/// @param out        Receives the statistics. The caller sets `struct_size`.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE: not a transport of this library, or it has
///         been released; MULTICAST_ERROR_INVALID_ARGUMENT: NULL or a wrong `struct_size`, in which
///         case nothing is written; MULTICAST_ERROR_STATE: in the child of a fork.
/// @since 1.1
MULTICAST_API multicast_status multicast_mqtt_get_stats(const multicast_transport *transport,
                                                        multicast_mqtt_stats *out);

#ifdef __cplusplus
}
#endif

#endif
