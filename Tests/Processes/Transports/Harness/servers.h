/* Fake servers, which send wrong data to a transport. */

#ifndef SERVERS_H
#define SERVERS_H

#include "peers.h"

typedef struct server {
  /* The data that the server's thread sends. The function `serve` decides how to use the following
   * fields. */
  const char *bytes, *more;
  size_t size;
  bool closes;
  /* server_start() sets these. */
  int listener, port;
  int connections; /* the thread counts them */
  bool has_to_end;
  pthread_t thread;
} server;

/* Listens on a port, and starts a thread that runs `serve`. `serve` must accept connections until
 * server_end() is called. */
void server_start(server *s, void *(*serve)(void *));
void server_end(server *s);

/* Sends data to a client. The client may have closed the connection. */
void server_send(int connection, const char *bytes, size_t size);

/* Receives and discards data until the client closes the connection, and then closes the server's
 * end. */
void server_drain(int connection);

/* Connects a client to the server, and expects that the server's data does no harm and that the
 * client reconnects. */
void expect_no_harm_of(server *s, void *(*serve)(void *));

#endif
