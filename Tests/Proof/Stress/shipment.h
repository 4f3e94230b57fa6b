/* One invocation with options: what it passes, and what became of it. */

#ifndef SHIPMENT_H
#define SHIPMENT_H

#include "multicast.h"
#include "parcel.h"

typedef enum shipping { PLAIN, HANDED_OVER, COPIED } shipping;

typedef struct shipment {
  multicast target; /* for `send`; perhaps not used */
  multicast_invocation how;
  receipts *receipts;
  void *own; /* the payload, if the queued calls get copies of it */
} shipment;

void shipment_make(shipment *s, shipping how);

/* Sends and checks it, and ends it. Returns what `send` returned. */
int64_t shipment_send(shipment *s, multicast_outcome *o, int64_t (*send)(const shipment *s,
                                                                       multicast_outcome *o));

/* Used by it: compares the outcome with the payloads, and gives up the references. */
void shipment_check(const shipment *s, int64_t count, const multicast_outcome *o);
void shipment_end(void *ended);

#endif
