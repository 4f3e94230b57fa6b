/* Peers, and what is said over the connection with one. */

#ifndef MULTICAST_LOCAL_PEER_H
#define MULTICAST_LOCAL_PEER_H

#include "local.h"

/* All on the thread. Takes the socket over. NULL: no memory, no place, or not of this user. */
peer *peer_add(local_client *c, int socket, const char *file);
/* Has its socket watched for what is awaited now. False: the system does not do it now. */
bool peer_watch(const local_client *c, peer *p);
void peer_remove(local_client *c, peer *p);
/* Connects anew to one that has not said hello: its place, and what is in the ring for it, stay.
 * False: an errno says why. */
bool peer_reconnect(local_client *c, peer *p);
/* Sends what it is to be told, as far as its socket takes it. */
void peer_tell(local_client *c, peer *p);
/* Receives what it says, and heeds it. False: its connection has ended, or `is_false`. */
bool peer_hear(local_client *c, peer *p);
/* Has changes of names in the list of what peers are told. */
void peers_note_names(local_client *c);
/* Removes those of which nobody has to be told any more. */
void peers_forget_names(local_client *c);

#endif
