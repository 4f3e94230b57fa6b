/* libmulticast-local, with the names that the tests of all transports use. */

#ifndef LIBRARY_H
#define LIBRARY_H

#include <multicast_local.h>

#define TRANSPORT(name) multicast_local_##name
#define TRANSPORT_CODE(NAME) MULTICAST_LOCAL_##NAME
#include "../Transports/Harness/names.h"

/* Statuses that only a server could return. */
#define MULTICAST_LOCAL_SUBSCRIPTION_REFUSED 1000u
#define MULTICAST_LOCAL_PUBLICATION_REFUSED 1001u

#define TRANSPORT_HAS_PEERS
#define TRANSPORT_FLAGS 0u /* there are none */
#define TRANSPORT_FLUSH_CONNECTS true
/* Answers that nothing waited for. Transports with brokers count them together with others. */
#define TRANSPORT_LATE(stats) ((stats).late)
#define TRANSPORT_DROPPED(stats) 0u
#define TRANSPORT_HAS_SENT(stats, count) ((stats).published == (count))
#define TRANSPORT_IS_CONNECTED(stats) ((stats).connected != 0)

/* The sum that `published` must equal. */
#define TRANSPORT_STATS_SUM(stats) ((stats).sent + (stats).unwanted)

#endif
