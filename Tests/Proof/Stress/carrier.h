/* The transports of broadcasters. Each attachment has a separate context, which checks that its
 * functions are called according to the rules. The context ends with its release. */

#ifndef CARRIER_H
#define CARRIER_H

#include "multicast.h"

/* Makes a transport for a broadcaster. */
multicast_transport carrier_make(multicast_broadcaster b);

/* At the end of a round: expects that each attached transport knows which names have observers. */
void carriers_check(void);

/* At the end of a round, when no broadcaster is left: expects that all transports have been
 * released. */
void carriers_end(void);

/* Sets a function that each function of a transport also calls. */
void set_carrier_body(void (*body)(void));

#endif
