/* Transports for broadcasters. A carrier is the context of one attachment. It checks that the
 * library calls its functions according to the rules, and exists until it is released. */

#ifndef CARRIER_H
#define CARRIER_H

#include "multicast.h"

/* Makes a transport for a broadcaster. */
multicast_transport carrier_make(multicast_broadcaster b);

/* Called at the end of a round. Expects that each attached transport knows which names have
 * observers. */
void carriers_check(void);

/* Called at the end of a round, when no broadcaster is left. Expects that all transports have been
 * released. */
void carriers_end(void);

/* Sets a function that every function of a transport calls in addition to its own work. */
void set_carrier_body(void (*body)(void));

#endif
