/* libmulticast-nats, with the names that the tests of all transports use. */

#ifndef LIBRARY_H
#define LIBRARY_H

#include <multicast_nats.h>

#define TRANSPORT(name) multicast_nats_##name
#define TRANSPORT_CODE(NAME) MULTICAST_NATS_##NAME
#include "../Transports/Harness/names.h"

/* The coding of names, from the library's sources. */
#define transport_coding subject_coding

#define TRANSPORT_FLAGS 0x3u /* all existing flags */
#define TRANSPORT_PREFIX subject_prefix
/* Whether a flush with nothing to wait for waits for the first connection. */
#define TRANSPORT_FLUSH_CONNECTS false
/* Answers that nothing waited for. Transports with brokers count them together with others. */
#define TRANSPORT_LATE(stats) ((stats).ignored)
#define TRANSPORT_DROPPED(stats) ((stats).dropped)
#define TRANSPORT_HAS_SENT(stats, count) ((stats).sent == (count))
#define TRANSPORT_IS_CONNECTED(stats) ((stats).connected != 0)

/* The sum that `published` must equal. */
#define TRANSPORT_STATS_SUM(stats) \
  ((stats).waiting + (stats).sending + (stats).sent + (stats).dropped)

#endif
