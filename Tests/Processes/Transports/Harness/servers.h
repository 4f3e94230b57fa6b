/* Servers of the tests' own, which send what a broker should not. */

#ifndef SERVERS_H
#define SERVERS_H

#include "peers.h"

typedef struct server {
  /* What the thread sends, as its function takes it. */
  const char *bytes, *more;
  size_t size;
  bool closes;
  /* server_start() sets these. */
  int listener, port;
  int connections; /* the thread counts them */
  bool has_to_end;
  pthread_t thread;
} server;

/* Listens, and starts a thread. It accepts connections until that fails. */
void server_start(server *s, void *(*serve)(void *));
void server_end(server *s);

/* Sends to a client, which may have gone. */
void server_send(int connection, const char *bytes, size_t size);

/* Receives and forgets, until the client goes, and closes. */
void server_drain(int connection);

/* Connects to the server, expects that it does no harm, and that the client comes again. */
void expect_no_harm_of(server *s, void *(*serve)(void *));

#endif
