/* The arguments of one invocation with options. */

#ifndef SHIPMENT_H
#define SHIPMENT_H

#include "multicast.h"
#include "parcel.h"

typedef enum shipping { PLAIN, HANDED_OVER, COPIED } shipping;

typedef struct shipment {
  multicast target; /* for `send`, which may ignore it */
  multicast_invocation how;
  receipts *receipts;
  void *own; /* the payload, if queued calls receive copies of it */
} shipment;

void shipment_make(shipment *s, shipping how);

/* Makes the invocation by calling `send`, checks and returns the result, and ends the shipment. */
int64_t shipment_send(shipment *s, multicast_outcome *o, int64_t (*send)(const shipment *s,
                                                                       multicast_outcome *o));

/* For shipment_send(). These functions compare the outcome with the payloads, and release the
 * references. */
void shipment_check(const shipment *s, int64_t count, const multicast_outcome *o);
void shipment_end(void *ended);

#endif
