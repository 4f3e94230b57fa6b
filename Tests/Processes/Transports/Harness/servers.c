#include "servers.h"

#include "observers.h"
#include "ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

void server_start(server *s, void *(*serve)(void *)) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  s->port = free_port();
  s->connections = 0;
  s->has_to_end = false;
  address.sin_family = AF_INET;
  address.sin_port = htons((uint16_t)s->port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK_EQ(bind(s->listener, (struct sockaddr *)&address, sizeof address), 0);
  CHECK_EQ(listen(s->listener, 8), 0);
  s->thread = start_thread(serve, s);
}

void server_end(server *s) {
  STORE(s->has_to_end, true);
  shutdown(s->listener, SHUT_RDWR);
  join_thread(s->thread);
  close(s->listener);
}

void server_send(int connection, const char *bytes, size_t size) {
  if (send(connection, bytes, size, MSG_NOSIGNAL) < 0) return;
}

void server_drain(int connection) {
  char request[512];
  while (recv(connection, request, sizeof request, 0) > 0) {
  }
  close(connection);
}

void expect_no_harm_of(server *s, void *(*serve)(void *)) {
  peer p;
  record *r = record_create();
  server_start(s, serve);
  transport_options options = peer_options(&p, s->port);
  options.connect_timeout_ns = 100000000;
  options.reconnect_min_ns = 1000000;
  options.reconnect_max_ns = 2000000;
  CHECK_OK(transport_connect(&options, &p.transport));
  CHECK_OK(p.transport.subscribe(p.transport.context, "n"));
  CHECK_OK(multicast_broadcaster_register(p.broadcaster, "n", recorder(r), NULL, NULL));
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  EVENTUALLY(LOAD(s->connections) >= 4);
  EVENTUALLY(LOAD(p.refused) + LOAD(p.lost) >= 3);
  CHECK_EQ(r->count, 0);
  peer_release(&p);
  server_end(s);
  free(r);
}
