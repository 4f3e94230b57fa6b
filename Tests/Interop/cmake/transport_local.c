/* Makes a transport for a group that cannot be. */

#include <multicast_local.h>

#include <stdio.h>

int main(void) {
  multicast_local_options options = multicast_local_options_default();
  multicast_local_stats stats = multicast_local_stats_default();
  multicast_transport transport;
  multicast_broadcaster broadcaster = multicast_broadcaster_create(NULL);
  options.broadcaster = broadcaster;
  options.directory = "/missing/folder";
  if (multicast_local_connect(&options, &transport) != MULTICAST_OK ||
      multicast_broadcaster_attach(broadcaster, &transport) != MULTICAST_OK ||
      multicast_local_get_stats(&transport, &stats) != MULTICAST_OK)
    return 1;
  puts(stats.connected == 0 ? "not connected" : "connected");
  return multicast_broadcaster_destroy(broadcaster) == MULTICAST_OK ? 0 : 1;
}
