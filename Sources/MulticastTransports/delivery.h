/* What arrives, on its way to the observers: it waits in a list, and the thread delivers it. */

#ifndef MULTICAST_TRANSPORTS_DELIVERY_H
#define MULTICAST_TRANSPORTS_DELIVERY_H

#include "client.h"

/* On any thread. Counts a message, and has its payload delivered; without a name it is ignored. */
void client_receive(client *c, const char *name, uint32_t event, span payload);
/* On the client's thread. Delivers so many at most, or queues them for the inbox's delegate. */
void client_deliver(client *c, size_t most);
/* If the options have a queue. */
multicast_status client_create_inbox(client *c);
uint64_t client_lost(const client *c); /* under the lock: how many were not delivered */

#endif
