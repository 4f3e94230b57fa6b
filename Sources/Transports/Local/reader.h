/* Reads the rings of peers. */

#ifndef MULTICAST_LOCAL_READER_H
#define MULTICAST_LOCAL_READER_H

#include "local.h"

/* Delivers up to `most` entries from the ring of a peer. Returns the number of entries for this
 * process, or a negative number if the peer has violated the protocol. */
int reader_read(local_client *c, peer *p, int most);

#endif
