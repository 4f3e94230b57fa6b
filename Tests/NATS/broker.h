/* NATS servers on ports of the loopback device, and clients of them. */

#ifndef BROKER_H
#define BROKER_H

#include "../Interface/harness.h"
#include "../Transports/observers.h"
#include "../Transports/peers.h"
#include "../Transports/ports.h"

#include <sys/types.h>

/* ---- nats-server ----------------------------------------------------------------------------- */

typedef struct broker {
  char folder[32]; /* a new one, for its configuration */
  int port;
  pid_t process;
} broker;

/* Starts nats-server with lines of its configuration, or with NULL: everybody may connect. It
 * runs in the folder. */
void broker_start(broker *b, const char *configuration);
void broker_prepare(broker *b, const char *configuration); /* the same, but does not run it yet */
void broker_end(broker *b, int signal);
void broker_start_again(broker *b);
void broker_delete(broker *b); /* ends it, and removes the folder */

/* Runs a shell command in the folder, and expects it to succeed. */
void broker_run(const broker *b, const char *command);

/* ---- Clients --------------------------------------------------------------------------------- */

void peer_connect_to(peer *p, const broker *b);

#endif
