/* libmulticast-local, by the names that the tests of all transports use. */

#ifndef LIBRARY_H
#define LIBRARY_H

#include <multicast_local.h>

#define TRANSPORT(name) multicast_local_##name
#define TRANSPORT_CODE(NAME) MULTICAST_LOCAL_##NAME
#include "../Transports/Harness/names.h"

/* There is no server, which could refuse these. */
#define MULTICAST_LOCAL_SUBSCRIPTION_REFUSED 1000u
#define MULTICAST_LOCAL_PUBLICATION_REFUSED 1001u

#define TRANSPORT_HAS_PEERS
#define TRANSPORT_FLAGS 0u /* all that there are */
#define TRANSPORT_FLUSH_CONNECTS true
/* Answers that nobody waited for; brokers count them with others. */
#define TRANSPORT_LATE(stats) ((stats).late)
#define TRANSPORT_DROPPED(stats) 0u
#define TRANSPORT_HAS_SENT(stats, count) ((stats).published == (count))
#define TRANSPORT_IS_CONNECTED(stats) ((stats).connected != 0)

/* What `published` is. */
#define TRANSPORT_STATS_SUM(stats) ((stats).sent + (stats).unwanted)

#endif
