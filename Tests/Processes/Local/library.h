/* Defines the names by which the tests of all transports use libmulticast-local. */

#ifndef LIBRARY_H
#define LIBRARY_H

#include <multicast_local.h>

#define TRANSPORT(name) multicast_local_##name
#define TRANSPORT_CODE(NAME) MULTICAST_LOCAL_##NAME
#include "../Transports/Harness/names.h"

/* The common tests use these states, which this library never reports. */
#define MULTICAST_LOCAL_SUBSCRIPTION_REFUSED 1000u
#define MULTICAST_LOCAL_PUBLICATION_REFUSED 1001u

#define TRANSPORT_HAS_PEERS
#define TRANSPORT_FLAGS 0u /* this library has no flags */
#define TRANSPORT_FLUSH_CONNECTS true
/* The number of answers that arrived after their questions had ended. Transports with brokers count
 * such answers together with other messages. */
#define TRANSPORT_LATE(stats) ((stats).late)
#define TRANSPORT_DROPPED(stats) 0u
#define TRANSPORT_HAS_SENT(stats, count) ((stats).published == (count))
#define TRANSPORT_IS_CONNECTED(stats) ((stats).connected != 0)

/* The number of publications must be equal to this sum. */
#define TRANSPORT_STATS_SUM(stats) ((stats).sent + (stats).unwanted)

#endif
