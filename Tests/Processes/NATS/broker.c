/* Configures nats-server and its clients. */

#include "../Transports/Harness/broker.h"

const char broker_program[] = "nats-server";

bool broker_configure(const broker *b, const char *lines, FILE *file) {
  return fprintf(file, "listen: 127.0.0.1:%d\n%s\n", b->port, lines == NULL ? "" : lines) > 0;
}

void peer_set_address(peer *p, int port, transport_options *options) {
  snprintf(p->address, sizeof p->address, "nats://127.0.0.1:%d", port);
  if (options->servers == NULL) options->servers = p->address;
}

transport_options peer_reliable_options(peer *p, int port) { return peer_options(p, port); }
