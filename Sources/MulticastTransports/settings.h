/* The options that all transports have. */

#ifndef MULTICAST_TRANSPORTS_SETTINGS_H
#define MULTICAST_TRANSPORTS_SETTINGS_H

#include <multicast.h>

typedef struct settings {
  multicast_broadcaster broadcaster;
  multicast_queue queue;
  const char *prefix;
  bool refuses_offline;
  uint32_t capacity;
  multicast_overflow overflow;
  uint32_t max_payload;
  uint64_t reconnect_min_ns, reconnect_max_ns, connect_timeout_ns;
  void (*changed)(void *context, uint32_t state, int32_t code, const char *reason);
  void *context;
  void (*release)(void *context);
} settings;

/* Puts defaults in the place of zeros, and checks the rest. */
multicast_status settings_complete(settings *s, uint32_t default_payload, uint32_t largest_payload);

#endif
