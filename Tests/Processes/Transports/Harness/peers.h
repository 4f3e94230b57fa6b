/* Clients of a broker, with the library that library.h of the including folder names. */

#ifndef PEERS_H
#define PEERS_H

#include "../../../Behaviour/Interface/harness.h"

#include "library.h"

/* One process, so to speak: a broadcaster and its transport. */
typedef struct peer {
  multicast_broadcaster broadcaster;
  multicast_transport transport;
  char address[64]; /* where the options need a text */
  int connected, lost, refused, subscriptions_refused, publications_refused;
  int code; /* the last one */
  int releases;
  const char *expected; /* a text; NULL: none */
  int refused_as_expected; /* how many of `refused` had it in their reason */
  char reason[512];
  char end[512]; /* why the last connection ended */
  int refusal_code; /* of a subscription or a publication */
  char refusal[512];
#ifdef TRANSPORT_HAS_PEERS
  int joined, gone, expelled; /* of others that it was told of */
  char joined_name[64], gone_name[64];
  uint64_t gone_at;
#endif
} peer;

/* SCOPED peer p; is released where its scope ends, if it was not before. */
#define SCOPED __attribute__((cleanup(peer_end)))
void peer_end(peer *p);

#ifdef TRANSPORT_HAS_PEERS
/* Whether a change is one of another peer. */
bool note_peer(peer *p, transport_state state, int32_t pid, const char *name);
#endif

/* The default options, but for the fields that are given. */
#define OPTIONS(...) WITH_FIELDS(transport_options, __VA_ARGS__)

/* Options for a peer that connects to the port, tries again soon and counts what it is notified. */
transport_options peer_options(peer *p, int port);

/* Where to connect to: it is in the transport's folder, as is what follows. */
void peer_set_address(peer *p, int port, transport_options *options);

/* The same, so that nothing is lost while the connections last. */
transport_options peer_reliable_options(peer *p, int port);

/* The same without a place to connect to. */
transport_options peer_create(peer *p);

/* Connects, and waits for the broker to accept. */
void peer_connect(peer *p, const transport_options *options);

/* The same with the options for a peer, and those that are given, which may be NULL; and without
 * waiting. */
void peer_connect_with(peer *p, int port, const transport_options *more);
void peer_begin(peer *p, int port, const transport_options *more);
void peer_release(peer *p);

/* The same, so that nothing is lost while the connections last. */
void peer_connect_reliably(peer *p, int port);

/* Connects again and again, and expects to be refused with this text in a reason. A machine that is
 * too busy has others, too: a server that waits two seconds for TLS closes the connection. */
void expect_refusal(const transport_options *options, peer *p, const char *reason);
void expect_refusal_of(peer *p, int port, const transport_options *more, const char *reason);

/* Connects, and expects this status, and that nothing of the transport is left. */
void expect_invalid(const transport_options *options, peer *p, multicast_status expected);

/* Registers an observer and subscribes the name, as a broadcaster with the transport does. */
void peer_observe(peer *p, const char *name, multicast_delegate observer);

multicast_status peer_publish(peer *p, const char *name, uint32_t event, const void *payload,
                              size_t size);
uint64_t time_now(void); /* in nanoseconds */
void peer_flush(peer *p);
transport_stats peer_stats(const peer *p); /* fails the test if they do not add up */

#endif
