/* Provides transports that record their notifications. */

#ifndef TRANSPORTS_H
#define TRANSPORTS_H

#include "broadcasters.h"
#include "threads.h"

/* The context of a transport. It records "+Name" when a name receives its first observer, "-Name"
 * when the name loses its last observer, and "!Name" for each publication. */
typedef struct wire {
  char told[4096];
  size_t length;
  int releases;
  /* The arguments of the last publication. */
  uint32_t event;
  const void *payload;
  size_t size;
  unsigned char bytes[64];
  pthread_t thread;
  /* The status that all of the transport's functions return. */
  multicast_status status;
  /* If not NULL, each of the transport's functions calls this function after recording the
   * notification. */
  void (*inside)(struct wire *);
} wire;

multicast_transport transport_of(wire *w);

/* Attaches a transport whose context is the wire, which must be zero-initialized, and expects
 * success. */
void attach(multicast_broadcaster b, wire *w);
void detach(multicast_broadcaster b);

/* Expects exactly these records since the previous call to this function. */
void expect_notified(wire *w, const char *told);

#endif
