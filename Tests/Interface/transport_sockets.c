/* A transport of one's own, over a pair of sockets: an example of one, between the marks. */

#include <sys/socket.h>
#include <unistd.h>

#include "notes.h"
#include "transports.h"

/* [transport] */
typedef struct message {
  char name[256];
  uint32_t event;
  uint32_t size;
  unsigned char bytes[1024];
} message;

static multicast_status send_message(void *context, const char *protocol, uint32_t event,
                                     const void *payload, size_t size) {
  message m = {{0}, event, (uint32_t)size, {0}};
  if (size > sizeof m.bytes) return MULTICAST_ERROR_LIMIT;
  strcpy(m.name, protocol);
  if (size > 0) memcpy(m.bytes, payload, size);
  return send(*(int *)context, &m, sizeof m, MSG_NOSIGNAL) == sizeof m ? MULTICAST_OK
                                                                        : MULTICAST_ERROR_SYSTEM;
}

/* The body of a thread, until the other side closes its socket. */
typedef struct receiver {
  multicast_broadcaster broadcaster;
  int socket;
} receiver;
THREAD(receive_messages, receiver *r) {
  message m;
  while (recv(r->socket, &m, sizeof m, 0) == sizeof m) {
    multicast_broadcaster_deliver(r->broadcaster, m.name, m.event, m.bytes, m.size);
  }
}

static void close_socket(void *context) { shutdown(*(int *)context, SHUT_RDWR); }

static void connect_by(int *socket, multicast_broadcaster b) {
  multicast_transport transport = TRANSPORT_WITH(.context = socket, .publish = send_message,
                                                 .release = close_socket);
  CHECK_OK(multicast_broadcaster_attach(b, &transport));
}
/* [transport] */

static parcel arrived;
static gate has_arrived = GATE_INIT;
static void keep_and_notify(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_delegate d = keeping(&arrived);
  d.function(d.context, event, payload, size);
  gate_open(&has_arrived);
}

/* Two broadcasters, as if each was in a process of its own. */
TEST(transport_of_sockets_notifies_another_broadcaster) {
  multicast_broadcaster here = create(), there = create();
  int sockets[2];
  CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
  connect_by(&sockets[0], here);
  receiver r = {.broadcaster = there, .socket = sockets[1]};
  pthread_t thread = start_thread(receive_messages, &r);
  observe(there, NAME, DELEGATE(keep_and_notify, NULL));
  observe(here, NAME, counter(&calls));
  CHECK_EQ(multicast_broadcaster_notify(here, NAME, 7, "a door", 6), 1);
  gate_wait(&has_arrived);
  CHECK(arrived.size == 6 && memcmp(arrived.bytes, "a door", 6) == 0);
  CHECK_EQ(calls, 1);
  CHECK_ERROR(multicast_broadcaster_notify(here, NAME, 7, &arrived, sizeof arrived), LIMIT);
  CHECK_OK(multicast_broadcaster_destroy(here)); /* that ends the other side */
  join_thread(thread);
  CHECK_OK(multicast_broadcaster_destroy(there));
  close(sockets[0]);
  close(sockets[1]);
}
