/* libmulticast-mqtt, by the names that the tests of all transports use. */

#ifndef LIBRARY_H
#define LIBRARY_H

#include <multicast_mqtt.h>

typedef multicast_mqtt_options transport_options;
typedef multicast_mqtt_stats transport_stats;
typedef multicast_mqtt_state transport_state;

#define transport_connect multicast_mqtt_connect
#define transport_flush multicast_mqtt_flush
#define transport_get_stats multicast_mqtt_get_stats
#define transport_options_default multicast_mqtt_options_default
#define transport_stats_default multicast_mqtt_stats_default
#define TRANSPORT_OPTIONS_INIT MULTICAST_MQTT_OPTIONS_INIT
#define TRANSPORT_STATS_INIT MULTICAST_MQTT_STATS_INIT
#define TRANSPORT_CONNECTED MULTICAST_MQTT_CONNECTED
#define TRANSPORT_LOST MULTICAST_MQTT_LOST
#define TRANSPORT_REFUSED MULTICAST_MQTT_REFUSED
#define TRANSPORT_SUBSCRIPTION_REFUSED MULTICAST_MQTT_SUBSCRIPTION_REFUSED
#define TRANSPORT_PUBLICATION_REFUSED MULTICAST_MQTT_PUBLICATION_REFUSED

#define TRANSPORT_REFUSE_OFFLINE MULTICAST_MQTT_REFUSE_OFFLINE

/* How names are written, in the library's sources. */
#define transport_coding topic_coding

#define TRANSPORT_IS_CONNECTED(stats) ((stats).protocol != 0)

/* What `published` is. */
#define TRANSPORT_STATS_SUM(stats) \
  ((stats).waiting + (stats).sending + (stats).sent + (stats).dropped + (stats).rejected)

#endif
