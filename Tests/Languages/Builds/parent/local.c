/* Joins a group in which there is no other process. */
#include <multicast_local.h>
#include <stdio.h>

int main(void) {
  const multicast_broadcaster all = multicast_broadcaster_create(NULL);
  multicast_local_options how = multicast_local_options_default();
  how.group = "builds";
  how.broadcaster = all;
  multicast_transport transport = multicast_transport_default();
  multicast_status status = multicast_local_connect(&how, &transport);
  if (status == MULTICAST_OK) status = multicast_broadcaster_attach(all, &transport);
  const multicast_status destroyed = multicast_broadcaster_destroy(all);
  if (status == MULTICAST_OK && destroyed == MULTICAST_OK) return 0;
  printf("attach: %s, destroy: %s\n", multicast_status_name(status),
         multicast_status_name(destroyed));
  return 1;
}
