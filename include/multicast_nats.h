/* SPDX-License-Identifier: MIT */

#ifndef MULTICAST_NATS_H
#define MULTICAST_NATS_H

#include <multicast.h>

#ifdef __cplusplus
extern "C" {
#endif

/* libmulticast-nats: a broadcaster whose observers may be in other processes and on other machines.
 * A NATS server carries the notifications; libnats talks to it.
 *
 *     multicast_nats_options options = multicast_nats_options_default();
 *     multicast_transport transport;
 *     options.broadcaster = broadcaster;
 *     options.servers = "nats://server.example";
 *     if (multicast_nats_connect(&options, &transport) == MULTICAST_OK)
 *       multicast_broadcaster_attach(broadcaster, &transport);
 *
 * From then on multicast_broadcaster_notify() notifies the observers of this process and publishes.
 * The observers in other processes, whose broadcasters are attached to the same server or cluster
 * with the same prefix, are notified there.
 *
 * The rules of multicast.h hold. In addition:
 *
 * Subjects     The event E of the name N is published as PREFIX.N.E, where E is a decimal number.
 *              Bytes of the name outside of 0x21 to 0x7E, and `. * > %`, are written as `%XX`. So
 *              each name and event has one subject, and each such subject one name and event.
 * Messages     A message is the payload itself. Any NATS client can publish and subscribe. What
 *              comes with another subject is dropped and counted.
 * Order        What one transport publishes arrives in this order at each other transport, while
 *              its connection lasts and afterwards. If the program has called libnats's
 *              nats_SetMessageDeliveryPoolSize() with more than 1, this holds for each name.
 * Losses       A notification arrives at most once. It is lost if it is on its way when a
 *              connection ends, and if the receiver has no connection at that time. The server ends
 *              the connection of a receiver that is too slow for too long. Publications of this
 *              process wait while it has no connection, see `capacity`.
 * Late observers
 *              The server keeps no value. An observer that registers later is not notified of what
 *              was before, in the publishing process and elsewhere.
 * Security     A client that the server lets publish notifies; one that it lets subscribe reads.
 *              The server's permissions and TLS are the boundary. Observers check payloads.
 * Threads      A transport has one thread. It calls `changed`, and the observers if there is no
 *              `queue`. While such a call runs, nothing is sent or received. libnats has up to
 *              four threads more for all transports of a process; they run no observers.
 * fork         The child does not use the connection: publishing says MULTICAST_ERROR_STATE, and
 *              nothing arrives. The connection's descriptor is closed on exec.
 *              If an observer or `changed` forks on the transport's thread and returns in the
 *              child, that thread ends there; the child ends with status 0 if it has started no
 *              other one.
 *              The child has the socket, too: if the parent detaches, the server keeps the
 *              connection and its subscriptions until the child ends or calls exec.
 *              libnats's threads do not exist in the child of a program that has used libnats: such
 *              a child must not make transports of its own before it calls exec.
 */

/* ---- 1. Options ------------------------------------------------------------------------------ */

/// `flags` of multicast_nats_options: connect to servers with TLS only. It is implied by `ca_file`
/// and `cert_file`, and by an address that begins with `tls://`. A server that wants TLS gets it
/// in any case.
///
/// @since 1.1
#define MULTICAST_NATS_TLS 0x1u

/// `flags` of multicast_nats_options: while there is no connection, publishing is refused with
/// MULTICAST_ERROR_STATE. Without it publications wait for the connection: see `capacity`.
///
/// @since 1.1
#define MULTICAST_NATS_REFUSE_OFFLINE 0x2u

/// What has become of the connection, or of what was sent on it.
///
/// @since 1.1
typedef uint32_t multicast_nats_state;

/// The values of multicast_nats_state.
///
/// @since 1.1
enum multicast_nats_state_code {
  MULTICAST_NATS_CONNECTED = 1,             ///< A server has accepted the connection.
  MULTICAST_NATS_LOST = 2,                  ///< The connection has ended. Another try follows.
  MULTICAST_NATS_REFUSED = 3,               ///< No connection. Another try follows.
  MULTICAST_NATS_SUBSCRIPTION_REFUSED = 4,  ///< By the server. Tried again at the next connection.
  MULTICAST_NATS_PUBLICATION_REFUSED = 5    ///< By the server. It is not sent again.
};

/// How to connect. Zero is the default of every field but the first and `broadcaster`.
///
/// Fill it with multicast_nats_options_default() or
/// MULTICAST_NATS_OPTIONS_INIT. Texts are copied.
///
/// @since 1.1
typedef struct multicast_nats_options {
  /// sizeof(multicast_nats_options) in the caller's header. Not 0.
  uint32_t struct_size;
  /// The flags above, combined (default: 0).
  uint32_t flags;
  /// What is delivered to. Not none.
  multicast_broadcaster broadcaster;
  /// The servers to try, in this order: addresses like `nats://host:4222` or `tls://host`, with a
  /// comma between them, printable ASCII without quotation marks and backslashes (default: NULL,
  /// "nats://localhost:4222").
  const char *servers;
  /// What the server's reports call this client; UTF-8 (default: NULL, none).
  const char *client_name;
  /// What all subjects begin with: up to 200 bytes, printable ASCII without spaces; one token or
  /// more with dots between them, none empty, no wildcard (default: NULL, "multicast").
  const char *subject_prefix;
  /// For the server, UTF-8; needs `password` (default: NULL, none, or that of the address).
  const char *user;
  /// For the server, UTF-8; needs `user` (default: NULL).
  const char *password;
  /// For a server that wants a token; not together with `user` (default: NULL, none).
  const char *token;
  /// Certificates of authorities to trust, a PEM file; the system's are trusted, too (default:
  /// NULL, these alone).
  const char *ca_file;
  /// The certificate of this client, a PEM file; needs `key_file` (default: NULL).
  const char *cert_file;
  /// The key of `cert_file`, a PEM file that is not encrypted (default: NULL).
  const char *key_file;
  /// The name that the server's certificate must have (default: NULL, the host of the address).
  const char *tls_name;
  /// Seconds after which a silent connection is checked, 1 to 65535 (default: 0, which means 60).
  /// It is lost if the server is silent for as long again.
  uint32_t ping_interval_s;
  /// How many publications may wait to be sent, 1 to 2^24 (default: 0, which means 8192).
  uint32_t capacity;
  /// What happens to a publication if so many wait: MULTICAST_OVERFLOW_REFUSE, with
  /// MULTICAST_ERROR_QUEUE_FULL, or MULTICAST_OVERFLOW_DROP_OLDEST (default: refuse).
  multicast_overflow overflow;
  /// The largest payload, in bytes, up to 2^28: larger ones are refused or dropped. A server has a
  /// limit of its own, usually 1 MiB (default: 0, which means that of the server; 2^28 while there
  /// was none).
  uint32_t max_payload;
  /// How many bytes may have arrived and wait for observers, about 100 for each message included.
  /// While more wait, nothing is received (default: 0, which means 64 MiB).
  uint64_t receive_bytes;
  /// How long to wait before the second try to connect; doubled with each further one, and up to a
  /// quarter less at random. At most `reconnect_max_ns`, also if that is the default (default: 0,
  /// which means 100 ms).
  uint64_t reconnect_min_ns;
  /// The most to wait between two tries, up to 2^62 (default: 0, which means 30 s).
  uint64_t reconnect_max_ns;
  /// How long one server may take to accept the connection, up to 2^62 (default: 0, which means
  /// 10 s). Larger times are invalid, MULTICAST_FOREVER as well. libnats before 3.8 does not keep
  /// to it when the server has greeted and says nothing more: it takes processor time and memory
  /// until the server ends the connection.
  uint64_t connect_timeout_ns;
  /// Where what arrives is queued; observers that have no queue of their own run on the thread that
  /// runs it. It stays the caller's. If it has MULTICAST_OVERFLOW_BLOCK, a full queue holds up the
  /// transport (default: none, observers run on the transport's thread).
  multicast_queue queue;
  /// Told of each change, on the transport's thread and under no lock. `code` is libnats's
  /// natsStatus, or 0 if it has none. `reason` says why, in English; it is valid until return.
  /// (default: NULL)
  void (*changed)(void *context, multicast_nats_state state, int32_t code, const char *reason);
  /// Passed to `changed` and to `release` (default: NULL).
  void *context;
  /// Runs once, on any thread but libnats's, when `context` is not used any more; also if
  /// multicast_nats_connect() fails, unless the options cannot be read (default: NULL).
  void (*release)(void *context);
} multicast_nats_options;

/// All defaults, to initialize a static or local struct. `broadcaster` is still none.
///
/// @since 1.1
#define MULTICAST_NATS_OPTIONS_INIT \
  {(uint32_t)sizeof(multicast_nats_options), 0, {0}, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
   NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, {0}, NULL, NULL, NULL}

/// All defaults, with `struct_size` set. `broadcaster` is still none.
///
/// @return The options, by value.
///
/// Cost:      O(1); inline.
/// @since 1.1
static inline multicast_nats_options multicast_nats_options_default(void) {
  multicast_nats_options options = MULTICAST_NATS_OPTIONS_INIT;
  return options;
}

/* ---- 2. The transport ------------------------------------------------------------------------ */

/// Makes a transport for multicast_broadcaster_attach(). It connects on a thread of its own, now
/// and again whenever the connection is lost.
///
/// Names that have observers are subscribed at the server. What is published by this transport
/// itself is not delivered to it.
///
/// `publish` of the transport says MULTICAST_ERROR_QUEUE_FULL if `capacity` publications wait;
/// MULTICAST_ERROR_LIMIT for a payload above `max_payload`, or above the limit of the server of the
/// last connection; MULTICAST_ERROR_STATE in the child of a fork, and as
/// MULTICAST_NATS_REFUSE_OFFLINE says; MULTICAST_ERROR_OUT_OF_MEMORY.
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
///            waits to be sent then is dropped: see multicast_nats_flush().
/// Threads:   any. `release` waits for the transport's thread, unless that is in `changed`,
///            delivers what has arrived, or connects.
/// Cost:      a thread and two descriptors; with the first one, up to four threads of libnats.
/// @since 1.1
MULTICAST_API multicast_status multicast_nats_connect(const multicast_nats_options *options,
                                                      multicast_transport *out);

/// Waits until a server has answered after all that was published and subscribed before this call.
///
/// Call it before a process ends, and after registering, if it matters when an observer begins to
/// be notified. If a connection ends meanwhile, what was on its way is lost nevertheless.
///
/// @param transport   As multicast_nats_connect() made it.
/// @param timeout_ns  Nanoseconds on the monotonic clock; 0: no waiting;
///                    MULTICAST_FOREVER: no limit.
/// @return MULTICAST_OK, also if the server has refused some of it; MULTICAST_ERROR_TIMEOUT;
///         MULTICAST_ERROR_INVALID_HANDLE: not a transport of this library, or it has been
///         released, also meanwhile; MULTICAST_ERROR_STATE: on the transport's thread, or in the
///         child of a fork.
///
/// Threads:   several may wait. A `queue` that the waiting thread runs is not run meanwhile.
/// Cost:      a round trip to the server, if anything was published or subscribed since the last,
///            and a thread that waits for it.
/// @since 1.1
MULTICAST_API multicast_status multicast_nats_flush(const multicast_transport *transport,
                                                    uint64_t timeout_ns);

/* ---- 3. Statistics --------------------------------------------------------------------------- */

/// What a transport has done since it was made.
///
/// At every moment `published` is `waiting`, `sending`, `sent` and `dropped` together.
///
/// @since 1.1
typedef struct multicast_nats_stats {
  /// sizeof(multicast_nats_stats) in the caller's header. Not 0.
  uint32_t struct_size;
  /// 0.
  uint32_t flags;
  /// 1: there is a connection; 0: none.
  uint32_t connected;
  /// How many names are subscribed, or will be at the next connection.
  uint32_t names;
  /// The largest payload of the server of the last connection, in bytes; 0: there was none.
  uint64_t max_payload;
  /// How often a server has accepted a connection.
  uint64_t connections;
  /// Publications that were accepted.
  uint64_t published;
  /// Publications that wait to be sent now.
  uint64_t waiting;
  /// Publications that are being written now.
  uint64_t sending;
  /// Publications that were written to a connection.
  uint64_t sent;
  /// Publications that were dropped: for newer ones; too large for the server; because the
  /// connection ended while they were being written, so that the server may have some; for lack of
  /// memory; or at `release`.
  uint64_t dropped;
  /// How often the server has said that this client may not publish. These count as `sent`, too.
  uint64_t rejected;
  /// Publications that were not accepted.
  uint64_t refused;
  /// Messages that came.
  uint64_t received;
  /// Messages that were delivered to the broadcaster. With `queue`: when that is run.
  uint64_t delivered;
  /// Messages that were not delivered: not a subject of this library, or too large.
  uint64_t ignored;
  /// Messages that were not delivered: no memory, the broadcaster was destroyed, or `queue` did not
  /// take them or has dropped them since, for newer ones or when it was destroyed.
  uint64_t lost;
} multicast_nats_stats;

/// All zero, with `struct_size` set: ready for multicast_nats_get_stats().
///
/// @since 1.1
#define MULTICAST_NATS_STATS_INIT \
  {(uint32_t)sizeof(multicast_nats_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/// All zero, with `struct_size` set: ready for multicast_nats_get_stats().
///
/// @return The statistics, by value.
///
/// Cost:      O(1); inline.
/// @since 1.1
static inline multicast_nats_stats multicast_nats_stats_default(void) {
  multicast_nats_stats stats = MULTICAST_NATS_STATS_INIT;
  return stats;
}

/// Reads all statistics of a transport, at one moment.
///
/// @param transport  As multicast_nats_connect() made it.
/// @param out        Receives the numbers. The caller sets `struct_size`.
/// @return MULTICAST_OK; MULTICAST_ERROR_INVALID_HANDLE: not a transport of this library, or it has
///         been released; MULTICAST_ERROR_INVALID_ARGUMENT: NULL or a wrong `struct_size`, nothing
///         written; MULTICAST_ERROR_STATE: in the child of a fork.
///
/// Cost:      O(1).
/// @since 1.1
MULTICAST_API multicast_status multicast_nats_get_stats(const multicast_transport *transport,
                                                        multicast_nats_stats *out);

#ifdef __cplusplus
}
#endif

#endif
