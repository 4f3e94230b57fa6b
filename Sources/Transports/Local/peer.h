/* Peers, and the messages exchanged with them. */

#ifndef MULTICAST_LOCAL_PEER_H
#define MULTICAST_LOCAL_PEER_H

#include "local.h"

/* These functions are called on the thread. */

/* Adds a peer, and takes ownership of the socket. Returns NULL if there is no memory or place left,
 * or if the other process belongs to another user. */
peer *peer_add(local_client *c, int socket, const char *file);
/* Updates the epoll events of the peer's socket. Returns false if the system refuses it now. */
bool peer_watch(const local_client *c, peer *p);
void peer_remove(local_client *c, peer *p);
/* Reconnects to a peer that has not sent its hello. It keeps its place and its entries in the ring.
 * Returns false and sets errno if it fails. */
bool peer_reconnect(local_client *c, peer *p);
/* Sends pending messages to a peer until its socket is full. */
void peer_tell(local_client *c, peer *p);
/* Receives and processes messages of a peer. Returns false if the connection has ended or the peer
 * broke the protocol (`is_false`). */
bool peer_hear(local_client *c, peer *p);
/* Moves changes of names into the list of topics that peers are told. */
void peers_note_names(local_client *c);
/* Removes topics from the list that no peer has to be told any more. */
void peers_forget_names(local_client *c);

#endif
