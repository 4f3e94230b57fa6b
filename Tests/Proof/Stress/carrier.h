/* The transports of broadcasters. Each attachment has a context of its own, which checks that its
 * functions are called by the rules, and ends with its release. */

#ifndef CARRIER_H
#define CARRIER_H

#include "multicast.h"

/* For a broadcaster. */
multicast_transport carrier_make(multicast_broadcaster b);

/* At the end of a round: those that are attached know which names have observers. */
void carriers_check(void);

/* At the end of a round, when no broadcaster is left: all have been released. */
void carriers_end(void);

/* What each of its functions does besides. */
void set_carrier_body(void (*body)(void));

#endif
