#include "ports.h"

#include "../../../Behaviour/Interface/harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons((uint16_t)port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int free_port(void) {
  struct sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(s >= 0);
  CHECK_EQ(bind(s, (struct sockaddr *)&address, sizeof address), 0);
  CHECK_EQ(getsockname(s, (struct sockaddr *)&address, &size), 0);
  close(s);
  return ntohs(address.sin_port);
}

bool is_port_open(int port) {
  struct sockaddr_in address = loopback(port);
  int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool is_open = connect(s, (struct sockaddr *)&address, sizeof address) == 0;
  close(s);
  return is_open;
}
