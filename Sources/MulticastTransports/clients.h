/* All clients, by the contexts of their transports. */

#ifndef MULTICAST_TRANSPORTS_CLIENTS_H
#define MULTICAST_TRANSPORTS_CLIENTS_H

#include "client.h"

bool clients_add(client *c); /* false: there are too many */
void clients_remove(client *c);
/* Finds one and removes it; NULL: there is none. So several threads may try that at once. */
client *clients_take(const void *context);
/* Without a lock in the functions of a transport that is not released: the client was added before,
 * and is removed after. NULL: there is none. */
client *clients_at(const void *context);

/* Finds the client of a transport and calls the function under its lock; `wait` may give that up
 * meanwhile. */
multicast_status client_flush(const multicast_transport *transport, uint64_t timeout_ns,
                              multicast_status (*wait)(client *c, uint64_t deadline));
/* `stats` has so many bytes, and is written to `out`. */
multicast_status client_get_stats(const multicast_transport *transport, void *out, void *stats,
                                  size_t size, void (*fill)(const client *c, void *stats));

#endif
