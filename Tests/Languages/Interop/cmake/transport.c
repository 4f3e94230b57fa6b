/* Creates a transport for a broker, a server or a group that does not exist. The macro LOCAL, MQTT
 * or NATS selects the transport. */

#if defined LOCAL
#include <multicast_local.h>
#define OF(name) multicast_local_##name
#define ADDRESS options.directory = "/missing/folder"
#define connections connected
#elif defined MQTT
#include <multicast_mqtt.h>
#define OF(name) multicast_mqtt_##name
#define ADDRESS options.host = "127.0.0.1", options.port = 1
#else
#include <multicast_nats.h>
#define OF(name) multicast_nats_##name
#define ADDRESS options.servers = "nats://127.0.0.1:1"
#endif

#include <stdio.h>

int main(void) {
  OF(options) options = OF(options_default)();
  OF(stats) stats = OF(stats_default)();
  multicast_transport transport;
  multicast_broadcaster broadcaster = multicast_broadcaster_create(NULL);
  options.broadcaster = broadcaster;
  ADDRESS;
  if (OF(connect)(&options, &transport) != MULTICAST_OK ||
      multicast_broadcaster_attach(broadcaster, &transport) != MULTICAST_OK ||
      OF(get_stats)(&transport, &stats) != MULTICAST_OK)
    return 1;
  puts(stats.connections == 0 ? "not connected" : "connected");
  return multicast_broadcaster_destroy(broadcaster) == MULTICAST_OK ? 0 : 1;
}
