/* SPDX-License-Identifier: MIT */

#ifndef MULTICAST_MQTT_H
#define MULTICAST_MQTT_H

#include <multicast.h>

#ifdef __cplusplus
extern "C" {
#endif

/* libmulticast-mqtt: a broadcaster whose observers may be in other processes and on other machines.
 * An MQTT broker carries the notifications; libmosquitto talks to it.
 *
 *     multicast_mqtt_options options = multicast_mqtt_options_default();
 *     multicast_transport transport;
 *     options.broadcaster = broadcaster;
 *     options.host = "broker.example";
 *     if (multicast_mqtt_connect(&options, &transport) == MULTICAST_OK)
 *       multicast_broadcaster_attach(broadcaster, &transport);
 *
 * From then on multicast_broadcaster_notify() notifies the observers of this process and publishes.
 * The observers in other processes, whose broadcasters are attached to the same broker with the
 * same prefix, are notified there.
 *
 * The rules of multicast.h hold. In addition:
 *
 * Topics       The event E of the name N is published as PREFIX/N/E, where E is a decimal number.
 *              Bytes of the name outside of 0x20 to 0x7E, and `+ # / $ %`, are written as `%XX`.
 *              So each name and event has one topic, and each such topic one name and event.
 * Messages     A message is 16 bytes, then the payload: 93 4D 43, the version 01, four bytes 0, and
 *              eight bytes that tell the sender. A message that does not begin with 93 4D 43 is the
 *              payload itself: so other programs can publish, too. PREFIX/N without an event is
 *              event 0. What is neither is dropped and counted.
 * Order        What one process publishes arrives in this order at each other process.
 * Losses       With `qos` 0 a notification arrives at most once. With 1 it arrives at least once if
 *              the broker keeps what it has acknowledged, if `session_expiry_s` is longer than an
 *              interruption of the connection, and if neither process ends: after an interruption
 *              the last ones come again, in order. With 2 it arrives exactly once while the
 *              connections last; of what was on its way when one ended, libmosquitto 2.0 may lose,
 *              repeat or delay some. It has arrived when this library has received it.
 *              Publications and queues have limits: what they lose is counted.
 * Late observers
 *              The broker keeps the last publication of each name and event that `retains` selects.
 *              It gives it to each transport that subscribes later, for the first observer of a
 *              name. A further observer at the same broadcaster is not notified of it, nor are
 *              those of the publishing transport, but with MULTICAST_MQTT_PLAIN they are.
 * Security     A client that the broker lets publish notifies; one that it lets subscribe reads.
 *              The broker's access control and TLS are the boundary. Observers check payloads.
 * Threads      A transport has one thread. It calls `changed`, and the observers if there is no
 *              `queue`. While such a call runs, nothing is sent or received.
 * fork         The child does not use the connection: publishing says MULTICAST_ERROR_STATE, and
 *              nothing arrives. The connection's descriptor is closed on exec.
 *              If an observer or `changed` forks on the transport's thread and returns in the
 *              child, that thread ends there; the child ends with status 0 if it has started no
 *              other one.
 */

/* ---- 1. Options ------------------------------------------------------------------------------ */

/// `flags` of multicast_mqtt_options: use TLS, and trust the certificates that the system trusts.
/// It is implied by `ca_file` and `ca_path`, which say what to trust instead.
///
/// @since 1.1
#define MULTICAST_MQTT_TLS 0x1u

/// `flags` of multicast_mqtt_options: with TLS, do not compare the name in the broker's certificate
/// with `host`. Any certificate of the same authority will do then.
///
/// @since 1.1
#define MULTICAST_MQTT_TLS_ANY_HOST 0x2u

/// `flags` of multicast_mqtt_options: while there is no connection, publishing is refused with
/// MULTICAST_ERROR_STATE. Without it publications wait for the connection: see `capacity`.
///
/// @since 1.1
#define MULTICAST_MQTT_REFUSE_OFFLINE 0x4u

/// `flags` of multicast_mqtt_options: messages are the payloads alone, for subscribers that do not
/// use this library. A payload that looks like a message of this library is published as one.
/// With MQTT 3.1.1 own publications come back then.
///
/// @since 1.1
#define MULTICAST_MQTT_PLAIN 0x8u

/// `flags` of multicast_mqtt_options: what the broker has retained is not delivered.
///
/// @since 1.1
#define MULTICAST_MQTT_NO_RETAINED 0x10u

/// What has become of the connection, or of what was sent on it.
///
/// @since 1.1
typedef uint32_t multicast_mqtt_state;

/// The values of multicast_mqtt_state.
///
/// @since 1.1
enum multicast_mqtt_state_code {
  MULTICAST_MQTT_CONNECTED = 1,             ///< The broker has accepted the connection.
  MULTICAST_MQTT_LOST = 2,                  ///< The connection has ended. Another try follows.
  MULTICAST_MQTT_REFUSED = 3,               ///< No connection. Another try follows.
  MULTICAST_MQTT_SUBSCRIPTION_REFUSED = 4,  ///< By the broker. Tried again at the next connection.
  MULTICAST_MQTT_PUBLICATION_REFUSED = 5    ///< By the broker. It is not sent again.
};

/// How to connect. Zero is the default of every field but the first two.
///
/// Fill it with multicast_mqtt_options_default() or
/// MULTICAST_MQTT_OPTIONS_INIT. Texts are copied.
///
/// @since 1.1
typedef struct multicast_mqtt_options {
  /// sizeof(multicast_mqtt_options) in the caller's header. Not 0.
  uint32_t struct_size;
  /// The flags above, combined (default: 0).
  uint32_t flags;
  /// What is delivered to. Not none.
  multicast_broadcaster broadcaster;
  /// The broker's name or address (default: NULL, localhost).
  const char *host;
  /// The broker's port (default: 0, 1883, or 8883 with TLS).
  uint32_t port;
  /// The version of MQTT: 5, or 4 for 3.1.1 (default: 0, 5 if the broker has it, else 3.1.1).
  uint32_t protocol;
  /// What the broker knows this client by; no two connections may share it (default: NULL, random).
  const char *client_id;
  /// What all topics begin with: UTF-8, up to 200 bytes, 198 of them `/` at most, without `+`,
  /// `#` and a leading `$` (default: NULL, "multicast").
  const char *topic_prefix;
  /// For the broker (default: NULL, none).
  const char *user;
  /// For the broker; needs `user` (default: NULL, none).
  const char *password;
  /// The certificates of the authorities to trust, a PEM file (default: NULL).
  const char *ca_file;
  /// The same, as a directory that `openssl rehash` has been run for (default: NULL).
  const char *ca_path;
  /// The certificate of this client, a PEM file; needs TLS and `key_file` (default: NULL).
  const char *cert_file;
  /// The key of `cert_file`, a PEM file (default: NULL).
  const char *key_file;
  /// For an encrypted `key_file` (default: NULL).
  const char *key_password;
  /// The quality of service of publications and subscriptions: 0, 1 or 2. See "Losses".
  uint32_t qos;
  /// Seconds after which a silent connection is checked, 5 to 65535 (default: 0, which means 60).
  uint32_t keep_alive_s;
  /// For how many seconds the broker collects messages for this client while there is no
  /// connection (default: 0, it collects none). With `client_id`, also for the next process with
  /// that identifier. MQTT 3.1.1 has no number: the broker decides.
  uint32_t session_expiry_s;
  /// How many publications may wait to be sent, 1 to 2^24 (default: 0, which means 8192).
  uint32_t capacity;
  /// What happens to a publication if so many wait: MULTICAST_OVERFLOW_REFUSE, with
  /// MULTICAST_ERROR_QUEUE_FULL, or MULTICAST_OVERFLOW_DROP_OLDEST (default: refuse).
  multicast_overflow overflow;
  /// The largest payload, in bytes, up to 2^28 - 1024: larger ones are refused or dropped
  /// (default: 0, which means 16 MiB).
  uint32_t max_payload;
  /// How long to wait before the second try to connect; doubled with each further one, and up to a
  /// quarter less at random. At most `reconnect_max_ns`, also if that is the default (default: 0,
  /// which means 100 ms).
  uint64_t reconnect_min_ns;
  /// The most to wait between two tries, up to 2^62 (default: 0, which means 30 s).
  uint64_t reconnect_max_ns;
  /// How long the broker may take to answer when the system has connected, up to 2^62 (default: 0,
  /// which means 10 s). Larger times are invalid, MULTICAST_FOREVER as well.
  uint64_t connect_timeout_ns;
  /// Where what arrives is queued; observers that have no queue of their own run on the thread that
  /// runs it. It stays the caller's. If it has MULTICAST_OVERFLOW_BLOCK, a full queue holds up the
  /// connection (default: none, observers run on the transport's thread).
  multicast_queue queue;
  /// Whether the broker is to retain this publication. See "Late observers". Called on the
  /// publishing thread, under no lock. (default: NULL, nothing is retained)
  bool (*retains)(void *context, const char *protocol, uint32_t event);
  /// Told of each change, on the transport's thread and under no lock. `code` is MQTT's reason
  /// code, or -1 if it is not from the broker. `reason` says why, in English; it is valid until
  /// return. (default: NULL)
  void (*changed)(void *context, multicast_mqtt_state state, int32_t code, const char *reason);
  /// Passed to the two functions above and to `release` (default: NULL).
  void *context;
  /// Runs once, when `context` is not used any more; also if multicast_mqtt_connect() fails, unless
  /// the options cannot be read (default: NULL).
  void (*release)(void *context);
} multicast_mqtt_options;

/// All defaults, to initialize a static or local struct. `broadcaster` is still none.
///
/// @since 1.1
#define MULTICAST_MQTT_OPTIONS_INIT \
  {(uint32_t)sizeof(multicast_mqtt_options), 0, {0}, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, \
   NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, NULL, NULL, NULL, NULL}

/// All defaults, with `struct_size` set. `broadcaster` is still none.
///
/// @return The options, by value.
///
/// Cost:      O(1); inline.
/// @since 1.1
static inline multicast_mqtt_options multicast_mqtt_options_default(void) {
  multicast_mqtt_options options = MULTICAST_MQTT_OPTIONS_INIT;
  return options;
}

/* ---- 2. The transport ------------------------------------------------------------------------ */

/// Makes a transport for multicast_broadcaster_attach(). It connects on a thread of its own, now
/// and again whenever the connection is lost.
///
/// Names that have observers are subscribed at the broker. What is published by this transport
/// itself is not delivered to it.
///
/// `publish` of the transport says MULTICAST_ERROR_QUEUE_FULL if `capacity` publications wait;
/// MULTICAST_ERROR_LIMIT for a payload above `max_payload`; MULTICAST_ERROR_STATE in the child of a
/// fork, and as MULTICAST_MQTT_REFUSE_OFFLINE says; MULTICAST_ERROR_OUT_OF_MEMORY.
///
/// @param options  How; not NULL.
/// @param out      Receives the transport, before `changed` can be called; all zero if the call
///                 fails. Not NULL.
/// @return MULTICAST_OK: it has begun to connect, `changed` says with what result;
///         MULTICAST_ERROR_INVALID_ARGUMENT: NULL or invalid options;
///         MULTICAST_ERROR_INVALID_HANDLE: not a broadcaster, or not a queue;
///         MULTICAST_ERROR_LIMIT: 65,535 transports of this library are not released;
///         MULTICAST_ERROR_OUT_OF_MEMORY; MULTICAST_ERROR_SYSTEM: no thread or descriptor, or a
///         file of the TLS options cannot be used.
///
/// Ownership: multicast_broadcaster_attach() takes the transport over: `release` is called once. So
///            it is attached once, to one broadcaster: after `release` it must not be used. If
///            it is never attached, call `release` with `context` yourself. It disconnects; what
///            waits to be sent then is dropped: see multicast_mqtt_flush().
/// Threads:   any. `release` waits for the transport's thread, unless that is in `changed`,
///            delivers what has arrived, or looks up the broker's address.
/// Cost:      a thread and three descriptors.
/// @since 1.1
MULTICAST_API multicast_status multicast_mqtt_connect(const multicast_mqtt_options *options,
                                                      multicast_transport *out);

/// Waits until the broker has all that was published and subscribed before this call: with `qos` 0
/// until it was sent, else until it was acknowledged.
///
/// Call it before a process ends, and after registering, if it matters when an observer begins to
/// be notified.
///
/// @param transport   As multicast_mqtt_connect() made it.
/// @param timeout_ns  Nanoseconds on the monotonic clock; 0: no waiting;
///                    MULTICAST_FOREVER: no limit.
/// @return MULTICAST_OK, also if the broker has refused some of it; MULTICAST_ERROR_TIMEOUT;
///         MULTICAST_ERROR_INVALID_HANDLE: not a transport of this library, or it has been
///         released, also meanwhile; MULTICAST_ERROR_STATE: on the transport's thread, or in the
///         child of a fork.
///
/// Threads:   several may wait. A `queue` that the waiting thread runs is not run meanwhile.
/// Cost:      O(names); no polling.
/// @since 1.1
MULTICAST_API multicast_status multicast_mqtt_flush(const multicast_transport *transport,
                                                    uint64_t timeout_ns);

/* ---- 3. Statistics --------------------------------------------------------------------------- */

/// What a transport has done since it was made.
///
/// At every moment `published` is `waiting`, `sending`, `sent`, `dropped` and `rejected` together.
///
/// @since 1.1
typedef struct multicast_mqtt_stats {
  /// sizeof(multicast_mqtt_stats) in the caller's header. Not 0.
  uint32_t struct_size;
  /// 0.
  uint32_t flags;
  /// The version of MQTT of the connection, 5 or 4; 0: there is no connection.
  uint32_t protocol;
  /// How many names are subscribed, or will be at the next connection.
  uint32_t names;
  /// How often the broker has accepted a connection.
  uint64_t connections;
  /// Publications that were accepted.
  uint64_t published;
  /// Publications that wait to be sent now.
  uint64_t waiting;
  /// Publications that are on their way now: not yet written, or not yet acknowledged.
  uint64_t sending;
  /// Publications that were written, with `qos` 0, or acknowledged.
  uint64_t sent;
  /// Publications that were dropped: for newer ones, because the connection was lost, for lack of
  /// memory, or at `release`.
  uint64_t dropped;
  /// Publications that the broker has refused.
  uint64_t rejected;
  /// Publications that were not accepted.
  uint64_t refused;
  /// Messages that came, of all kinds.
  uint64_t received;
  /// Messages that were delivered to the broadcaster. With `queue`: when that is run.
  uint64_t delivered;
  /// Messages that came back from the broker and were not delivered.
  uint64_t echoes;
  /// Messages that were not delivered: not a topic or a version of this library, a name without
  /// observers, or too large.
  uint64_t ignored;
  /// Messages that were not delivered: no memory, the broadcaster was destroyed, or `queue` did not
  /// take them or has dropped them since, for newer ones or when it was destroyed.
  uint64_t lost;
} multicast_mqtt_stats;

/// All zero, with `struct_size` set: ready for multicast_mqtt_get_stats().
///
/// @since 1.1
#define MULTICAST_MQTT_STATS_INIT \
  {(uint32_t)sizeof(multicast_mqtt_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/// All zero, with `struct_size` set: ready for multicast_mqtt_get_stats().
///
/// @return The statistics, by value.
///
/// Cost:      O(1); inline.
/// @since 1.1
static inline multicast_mqtt_stats multicast_mqtt_stats_default(void) {
  multicast_mqtt_stats stats = MULTICAST_MQTT_STATS_INIT;
  return stats;
}

/// Reads all statistics of a transport, at one moment.
///
/// @param transport  As multicast_mqtt_connect() made it.
/// @param out        Receives the numbers. The caller sets `struct_size`.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE: not a transport of this library, or it has
///         been released; MULTICAST_ERROR_INVALID_ARGUMENT: NULL or a wrong `struct_size`, nothing
///         written; MULTICAST_ERROR_STATE: in the child of a fork.
///
/// Cost:      O(1).
/// @since 1.1
MULTICAST_API multicast_status multicast_mqtt_get_stats(const multicast_transport *transport,
                                                        multicast_mqtt_stats *out);

#ifdef __cplusplus
}
#endif

#endif
