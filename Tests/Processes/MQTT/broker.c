/* Configures mosquitto and its clients. */

#include "../Transports/Harness/broker.h"

const char broker_program[] = "mosquitto";

bool broker_configure(const broker *b, const char *lines, FILE *file) {
  return fprintf(file,
                 "listener %d 127.0.0.1\n"
                 "user root\n" /* only if the test runs as root; otherwise as the test's user */
                 "persistence true\n"
                 "persistence_location %s/\n"
                 "max_queued_messages 0\n"
                 "%s\n",
                 b->port, b->folder, lines == NULL ? "allow_anonymous true" : lines) > 0;
}

void peer_set_address(peer *p, int port, transport_options *options) {
  if (options->host == NULL) options->host = "127.0.0.1";
  options->port = (uint32_t)port;
}

transport_options peer_reliable_options(peer *p, int port) {
  transport_options options = peer_options(p, port);
  options.qos = 1;
  return options;
}
