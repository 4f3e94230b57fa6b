/* Brokers on ports of the loopback device. broker.c in the transport's folder selects mosquitto or
 * nats-server. */

#ifndef BROKER_H
#define BROKER_H

#include "observers.h"
#include "peers.h"
#include "ports.h"

#include <stdio.h>
#include <sys/types.h>

typedef struct broker {
  char folder[32]; /* a new folder in which it runs, with its configuration and data */
  int port;
  pid_t process; /* 0 if it is not running */
} broker;

/* ---- Defined in the transport's folder ------------------------------------------------------- */

extern const char broker_program[];

/* Writes a configuration that contains `lines`. If `lines` is NULL, the configuration lets everyone
 * connect. Returns whether writing succeeded. */
bool broker_configure(const broker *b, const char *lines, FILE *file);

/* ---- Start and end --------------------------------------------------------------------------- */

/* Starts a broker with the configuration that broker_configure() writes for `lines`. */
void broker_start(broker *b, const char *lines);
void broker_prepare(broker *b, const char *lines); /* like broker_start, without running it */
void broker_start_again(broker *b);
void broker_end(broker *b, int signal); /* SIGTERM lets the broker store its data */
void broker_delete(broker *b); /* ends it, and removes the folder */

/* TEST_OF_BROKER(name, LINES) { ... } is a test with a broker `b`, which is started with these
 * lines. */
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

/* Returns the path of a file in the broker's folder. The string stays valid until broker_path() has
 * been called four more times. The name of the configuration file is `conf`. */
char *broker_path(const broker *b, const char *file);

/* Runs a shell command in the broker's folder, and expects the command to succeed. The command can
 * use $PORT and $FOLDER. */
void broker_run(const broker *b, const char *command);

/* Creates the authorities `ours` and `theirs`, and certificates for `localhost` and `client`, as
 * NAME.crt and NAME.key. The certificates also contain the address 127.0.0.1, because some machines
 * do not resolve localhost. The certificates do not contain 127.1, another spelling of 127.0.0.1.
 * `locked.key` is the client's key, encrypted with the password `secret`. */
void broker_make_certificates(const broker *b);

/* ---- Clients --------------------------------------------------------------------------------- */

void peer_connect_to(peer *p, const broker *b);

#endif
