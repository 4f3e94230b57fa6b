/* Makes a transport for a broker that is not there. */

#include <multicast_mqtt.h>

#include <stdio.h>

int main(void) {
  multicast_mqtt_options options = multicast_mqtt_options_default();
  multicast_mqtt_stats stats = multicast_mqtt_stats_default();
  multicast_transport transport;
  multicast_broadcaster broadcaster = multicast_broadcaster_create(NULL);
  options.broadcaster = broadcaster;
  options.host = "127.0.0.1";
  options.port = 1;
  if (multicast_mqtt_connect(&options, &transport) != MULTICAST_OK ||
      multicast_broadcaster_attach(broadcaster, &transport) != MULTICAST_OK ||
      multicast_mqtt_get_stats(&transport, &stats) != MULTICAST_OK)
    return 1;
  puts(stats.connections == 0 ? "not connected" : "connected");
  return multicast_broadcaster_destroy(broadcaster) == MULTICAST_OK ? 0 : 1;
}
