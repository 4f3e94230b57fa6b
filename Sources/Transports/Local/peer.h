/* The list of peers, and the messages that are exchanged with them. */

#ifndef MULTICAST_LOCAL_PEER_H
#define MULTICAST_LOCAL_PEER_H

#include "local.h"

/* These functions are called on the client's thread. */

/* Adds a peer, and takes ownership of the socket. Returns NULL if no memory or place is left, or if
 * the other process belongs to another user. */
peer *peer_add(local_client *c, int socket, const char *file);
/* Updates the epoll events of the peer's socket. Returns false if the system currently refuses the
 * update. */
bool peer_watch(const local_client *c, peer *p);
void peer_remove(local_client *c, peer *p);
/* Reconnects to a peer that has not sent its hello. The peer keeps its place and its entries in the
 * ring. Returns false and sets errno if the peer cannot be reached. */
bool peer_reconnect(local_client *c, peer *p);
/* Sends pending messages to a peer until its socket is full. */
void peer_tell(local_client *c, peer *p);
/* Receives and processes a peer's messages. Returns false if the connection has ended or the peer
 * has violated the protocol. Sets `is_false` if the peer has violated the protocol. */
bool peer_hear(local_client *c, peer *p);
/* Moves the topic of each changed name to the end of the list of topics, because the topics are
 * announced in the order of this list. */
void peers_note_names(local_client *c);
/* Removes topics from the list if they need not be announced to any peer. */
void peers_forget_names(local_client *c);

#endif
