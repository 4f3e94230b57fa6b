/* The rings of peers. */

#ifndef MULTICAST_LOCAL_READER_H
#define MULTICAST_LOCAL_READER_H

#include "local.h"

/* Delivers what is in the ring of a peer, so many entries at most. How many were for this process;
 * negative: the peer has broken the rules. */
int reader_read(local_client *c, peer *p, int most);

#endif
