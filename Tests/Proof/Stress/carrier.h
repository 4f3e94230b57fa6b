/* Transports for broadcasters. A carrier is the context of one attached transport. It checks that
 * the library follows the rules when it calls the transport's functions, and exists until it is
 * released. */

#ifndef CARRIER_H
#define CARRIER_H

#include "multicast.h"

/* Makes a transport for a broadcaster. */
multicast_transport carrier_make(multicast_broadcaster b);

/* Called at the end of a round. Expects each attached transport to know which names have
 * observers. */
void carriers_check(void);

/* Called at the end of a round, when no broadcaster is left. Expects all transports to have been
 * released. */
void carriers_end(void);

/* Sets a function that every transport function calls in addition to its own work. */
void set_carrier_body(void (*body)(void));

#endif
