/* Clients of a broker. library.h in the transport's folder selects their library. */

#ifndef PEERS_H
#define PEERS_H

#include "../../../Behaviour/Interface/harness.h"

#include "library.h"

/* A broadcaster and its transport. Most tests use several peers in one process, as if they were in
 * different processes. */
typedef struct peer {
  multicast_broadcaster broadcaster;
  multicast_transport transport;
  char address[64]; /* a text for the options, if they need one */
  int connected, lost, refused, subscriptions_refused, publications_refused;
  int code; /* of the last report */
  int releases;
  const char *expected; /* a text that reasons should contain, or NULL */
  int refused_as_expected; /* how many of `refused` had the text in their reason */
  char reason[512];
  char end[512]; /* why the last connection ended */
  int refusal_code; /* of a refused subscription or publication */
  char refusal[512];
#ifdef TRANSPORT_HAS_PEERS
  int joined, gone, expelled; /* reports about other peers */
  char joined_name[64], gone_name[64];
  uint64_t gone_at;
#endif
} peer;

/* A peer declared with `SCOPED peer p;` is released at the end of its scope, unless the test has
 * already released it. */
#define SCOPED __attribute__((cleanup(peer_end)))
void peer_end(peer *p);

#ifdef TRANSPORT_HAS_PEERS
/* If the change concerns another peer, records the change and returns true. */
bool note_peer(peer *p, transport_state state, int32_t pid, const char *name);
#endif

/* The default options with the given fields changed. */
#define OPTIONS(...) WITH_FIELDS(transport_options, __VA_ARGS__)

/* Returns options for a peer that connects to the port, retries soon and counts the reports. */
transport_options peer_options(peer *p, int port);

/* Sets the address in the options. The transport's folder defines peer_set_address() and
 * peer_reliable_options(). */
void peer_set_address(peer *p, int port, transport_options *options);

/* Like peer_options(), but for a peer that loses no message while its connections last. */
transport_options peer_reliable_options(peer *p, int port);

/* Like peer_options(), but without an address. */
transport_options peer_create(peer *p);

/* Connects, and waits until the broker has accepted the connection. */
void peer_connect(peer *p, const transport_options *options);

/* Connect with the options of peer_options(). If `more` is not NULL, the fields that it sets
 * override these options. peer_begin does not wait for the connection. */
void peer_connect_with(peer *p, int port, const transport_options *more);
void peer_begin(peer *p, int port, const transport_options *more);

/* Release the transport, wait for the end of its thread, and destroy the broadcaster. peer_detach()
 * is for a transport that is attached to the broadcaster. */
void peer_release(peer *p);
void peer_detach(peer *p);

/* Connects with peer_reliable_options. */
void peer_connect_reliably(peer *p, int port);

/* Connects repeatedly, and expects a refusal whose reason contains `reason`. On a busy machine,
 * there may also be refusals for other reasons. For example, a server closes the connection if TLS
 * takes more than two seconds. */
void expect_refusal(const transport_options *options, peer *p, const char *reason);
void expect_refusal_of(peer *p, int port, const transport_options *more, const char *reason);

/* Expects that connecting returns `expected`, and that no resources of a transport remain. */
void expect_invalid(const transport_options *options, peer *p, multicast_status expected);

/* Registers an observer and subscribes to its name, as the broadcaster would if the transport were
 * attached to it. */
void peer_observe(peer *p, const char *name, multicast_delegate observer);

multicast_status peer_publish(peer *p, const char *name, uint32_t event, const void *payload,
                              size_t size);
uint64_t time_now(void); /* in nanoseconds */
void peer_flush(peer *p);
transport_stats peer_stats(const peer *p); /* fails the test if the numbers are inconsistent */

#endif
