/* Brokers on ports of the loopback device, and clients of them. */

#ifndef BROKER_H
#define BROKER_H

#include "../Interface/harness.h"
#include "../Transports/observers.h"
#include "../Transports/peers.h"
#include "../Transports/ports.h"

#include <sys/types.h>

/* ---- mosquitto ------------------------------------------------------------------------------- */

typedef struct broker {
  char folder[32]; /* a new one, for its configuration and what it stores */
  int port;
  pid_t process;
} broker;

/* Starts mosquitto with lines of its configuration, or with NULL: everybody may connect. */
void broker_start(broker *b, const char *configuration);
void broker_end(broker *b, int signal); /* SIGTERM: it stores what it has; SIGKILL: it does not */
void broker_start_again(broker *b);
void broker_delete(broker *b); /* ends it, and removes the folder */

/* Writes a file in its folder and returns the path, until the next call. */
const char *broker_file(const broker *b, const char *file, const char *text);

/* Runs a shell command with $PORT and $FOLDER, and expects it to succeed. */
void broker_run(const broker *b, const char *command);

/* ---- Clients --------------------------------------------------------------------------------- */

void peer_connect_to(peer *p, const broker *b, uint32_t qos);

#endif
