/* Makes a transport for a server that is not there. */

#include <multicast_nats.h>

#include <stdio.h>

int main(void) {
  multicast_nats_options options = multicast_nats_options_default();
  multicast_nats_stats stats = multicast_nats_stats_default();
  multicast_transport transport;
  multicast_broadcaster broadcaster = multicast_broadcaster_create(NULL);
  options.broadcaster = broadcaster;
  options.servers = "nats://127.0.0.1:1";
  if (multicast_nats_connect(&options, &transport) != MULTICAST_OK ||
      multicast_broadcaster_attach(broadcaster, &transport) != MULTICAST_OK ||
      multicast_nats_get_stats(&transport, &stats) != MULTICAST_OK)
    return 1;
  puts(stats.connections == 0 ? "not connected" : "connected");
  return multicast_broadcaster_destroy(broadcaster) == MULTICAST_OK ? 0 : 1;
}
