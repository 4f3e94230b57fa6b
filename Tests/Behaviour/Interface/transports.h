/* Transports that record their notifications. */

#ifndef TRANSPORTS_H
#define TRANSPORTS_H

#include "broadcasters.h"
#include "threads.h"

/* Records "+Name" when a name gets its first observer, "-Name" when the name loses its last one,
 * and "!Name" when it publishes. */
typedef struct wire {
  char told[4096];
  size_t length;
  int releases;
  /* Data of the last publication. */
  uint32_t event;
  const void *payload;
  size_t size;
  unsigned char bytes[64];
  pthread_t thread;
  /* The result of each of its functions. */
  multicast_status status;
  /* If set, each function calls this after recording. */
  void (*inside)(struct wire *);
} wire;

multicast_transport transport_of(wire *w);

/* Attaches a zero-initialized wire, and expects success. */
void attach(multicast_broadcaster b, wire *w);
void detach(multicast_broadcaster b);

/* Expects the records since the previous call. */
void expect_notified(wire *w, const char *told);

#endif
