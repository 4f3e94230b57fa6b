/* The beginning of a client, and its thread. */

#ifndef MULTICAST_TRANSPORTS_CONNECT_H
#define MULTICAST_TRANSPORTS_CONNECT_H

#include "client.h"

/* Makes a client and starts its thread. That may call functions of the caller before this returns.
 * If that fails, `release` of the settings has not been called. */
multicast_status client_connect(const engine *e, settings *s, const void *options,
                                multicast_transport *out);

#endif
