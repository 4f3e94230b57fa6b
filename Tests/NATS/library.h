/* libmulticast-nats, by the names that the tests of all transports use. */

#ifndef LIBRARY_H
#define LIBRARY_H

#include <multicast_nats.h>

typedef multicast_nats_options transport_options;
typedef multicast_nats_stats transport_stats;
typedef multicast_nats_state transport_state;

#define transport_connect multicast_nats_connect
#define transport_flush multicast_nats_flush
#define transport_get_stats multicast_nats_get_stats
#define transport_options_default multicast_nats_options_default
#define transport_stats_default multicast_nats_stats_default
#define TRANSPORT_OPTIONS_INIT MULTICAST_NATS_OPTIONS_INIT
#define TRANSPORT_STATS_INIT MULTICAST_NATS_STATS_INIT
#define TRANSPORT_CONNECTED MULTICAST_NATS_CONNECTED
#define TRANSPORT_LOST MULTICAST_NATS_LOST
#define TRANSPORT_REFUSED MULTICAST_NATS_REFUSED
#define TRANSPORT_SUBSCRIPTION_REFUSED MULTICAST_NATS_SUBSCRIPTION_REFUSED
#define TRANSPORT_PUBLICATION_REFUSED MULTICAST_NATS_PUBLICATION_REFUSED

#define TRANSPORT_REFUSE_OFFLINE MULTICAST_NATS_REFUSE_OFFLINE

/* How names are written, in the library's sources. */
#define transport_coding subject_coding

#define TRANSPORT_IS_CONNECTED(stats) ((stats).connected != 0)

/* What `published` is. */
#define TRANSPORT_STATS_SUM(stats) \
  ((stats).waiting + (stats).sending + (stats).sent + (stats).dropped)

#endif
