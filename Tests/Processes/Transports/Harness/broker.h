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

/* Writes the configuration with these lines, or one that lets everyone connect if `lines` is NULL.
 * Returns whether it succeeded. */
bool broker_configure(const broker *b, const char *lines, FILE *file);

/* ---- Start and end --------------------------------------------------------------------------- */

/* Starts a broker with lines of its configuration, or NULL. */
void broker_start(broker *b, const char *lines);
void broker_prepare(broker *b, const char *lines); /* like broker_start, without running it */
void broker_start_again(broker *b);
void broker_end(broker *b, int signal); /* with SIGTERM it stores its data, with SIGKILL not */
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

/* Returns the path of a file in the folder, valid until the fourth next call. The configuration is
 * `conf`. */
char *broker_path(const broker *b, const char *file);

/* Runs a shell command in the folder, with $PORT and $FOLDER, and expects it to succeed. */
void broker_run(const broker *b, const char *command);

/* Makes authorities `ours` and `theirs`, and certificates for `localhost` and `client`, as NAME.crt
 * and NAME.key. `locked.key` is the key of the client with the password `secret`. Some machines do
 * not resolve localhost. 127.1 is another name of 127.0.0.1, which the certificates do not
 * contain. */
void broker_make_certificates(const broker *b);

/* ---- Clients --------------------------------------------------------------------------------- */

void peer_connect_to(peer *p, const broker *b);

#endif
