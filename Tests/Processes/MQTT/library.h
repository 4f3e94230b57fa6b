/* Defines the names by which the tests of all transports use libmulticast-mqtt. */

#ifndef LIBRARY_H
#define LIBRARY_H

#include <multicast_mqtt.h>

#define TRANSPORT(name) multicast_mqtt_##name
#define TRANSPORT_CODE(NAME) MULTICAST_MQTT_##NAME
#include "../Transports/Harness/names.h"

/* The library's internal encoding of names as topics. */
#define transport_coding topic_coding

#define TRANSPORT_FLAGS 0x1fu /* all existing flags */
#define TRANSPORT_PREFIX topic_prefix
/* Whether a flush waits for the first connection if there is nothing to flush. */
#define TRANSPORT_FLUSH_CONNECTS false
/* The number of answers that arrived after their questions had ended. Transports with brokers count
 * such answers together with other messages. */
#define TRANSPORT_LATE(stats) ((stats).ignored)
#define TRANSPORT_DROPPED(stats) ((stats).dropped)
#define TRANSPORT_HAS_SENT(stats, count) ((stats).sent == (count))
#define TRANSPORT_IS_CONNECTED(stats) ((stats).protocol != 0)

/* The number of publications must be equal to this sum. */
#define TRANSPORT_STATS_SUM(stats) \
  ((stats).waiting + (stats).sending + (stats).sent + (stats).dropped + (stats).rejected)

#endif
