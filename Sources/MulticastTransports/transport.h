/* The functions of a transport. They check arguments and pass work on to the client's thread. */

#ifndef MULTICAST_TRANSPORTS_TRANSPORT_H
#define MULTICAST_TRANSPORTS_TRANSPORT_H

#include "client.h"

multicast_transport client_transport(client *c);

#endif
