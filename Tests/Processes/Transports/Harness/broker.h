/* Brokers on ports of the loopback device: mosquitto or nats-server, as broker.c of the transport's
 * folder says. */

#ifndef BROKER_H
#define BROKER_H

#include "observers.h"
#include "peers.h"
#include "ports.h"

#include <stdio.h>
#include <sys/types.h>

typedef struct broker {
  char folder[32]; /* a new one, for its configuration and what it stores; it runs there */
  int port;
  pid_t process; /* 0: it does not run */
} broker;

/* ---- What the transport's folder has --------------------------------------------------------- */

extern const char broker_program[];

/* Writes the configuration, with these lines; NULL: everybody may connect. Whether it could. */
bool broker_configure(const broker *b, const char *lines, FILE *file);

/* ---- Their life ------------------------------------------------------------------------------ */

/* Starts one with lines of its configuration, or NULL. */
void broker_start(broker *b, const char *lines);
void broker_prepare(broker *b, const char *lines); /* the same, but does not run it yet */
void broker_start_again(broker *b);
void broker_end(broker *b, int signal); /* SIGTERM: it stores what it has; SIGKILL: it does not */
void broker_delete(broker *b); /* ends it, and removes the folder */

/* TEST_OF_BROKER(name, LINES) { ... }: a test with a broker `b`, started with these lines. */
#define TEST_OF_BROKER(NAME, LINES)                                            \
  static void NAME##_with(broker *b);                                          \
  TEST(NAME) {                                                                 \
    broker b;                                                                  \
    broker_start(&b, LINES);                                                   \
    NAME##_with(&b);                                                           \
    broker_delete(&b);                                                         \
  }                                                                            \
  static void NAME##_with(broker *b)

/* ---- The folder ------------------------------------------------------------------------------ */

/* The path of a file in the folder, until three more are asked for. The configuration is `conf`. */
char *broker_path(const broker *b, const char *file);

/* Runs a shell command in the folder, with $PORT and $FOLDER, and expects it to succeed. */
void broker_run(const broker *b, const char *command);

/* Makes authorities `ours` and `theirs`, and certificates for `localhost` and `client`: NAME.crt
 * and NAME.key. `locked.key` is that of the client, with the password `secret`. Not every machine
 * knows localhost. 127.1 is another name of 127.0.0.1: the certificates do not have it. */
void broker_make_certificates(const broker *b);

/* ---- Clients --------------------------------------------------------------------------------- */

void peer_connect_to(peer *p, const broker *b);

#endif
