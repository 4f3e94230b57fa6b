/* Transports that note what they are notified. */

#ifndef TRANSPORTS_H
#define TRANSPORTS_H

#include "broadcasters.h"
#include "threads.h"

/* Notes "+Name" and "-Name" when it is notified of observers, and "!Name" when it publishes. */
typedef struct wire {
  char told[4096];
  size_t length;
  int releases;
  /* Of the last publication. */
  uint32_t event;
  const void *payload;
  size_t size;
  unsigned char bytes[64];
  pthread_t thread;
  /* What its functions return. */
  multicast_status status;
  /* Called by each of them, after the note, if it is set. */
  void (*inside)(struct wire *);
} wire;

multicast_transport transport_of(wire *w);

/* Attaches a wire that is all zero, and expects that to succeed. */
void attach(multicast_broadcaster b, wire *w);
void detach(multicast_broadcaster b);

/* Expects what was noted since this was called last. */
void expect_notified(wire *w, const char *told);

#endif
