/* Tests a custom transport over a pair of sockets, like examples-c/14_transport.c. */

#include <sys/socket.h>
#include <unistd.h>

#include "notes.h"
#include "transports.h"

typedef struct message {
  char name[256];
  uint32_t event;
  uint32_t size;
  unsigned char bytes[1024];
} message;

static multicast_status send_message(void *context, const char *name, uint32_t event,
                                     const void *payload, size_t size) {
  message m = {{0}, event, (uint32_t)size, {0}};
  if (size > sizeof m.bytes) return MULTICAST_ERROR_LIMIT;
  strcpy(m.name, name);
  if (size > 0) memcpy(m.bytes, payload, size);
  return send(*(int *)context, &m, sizeof m, MSG_NOSIGNAL) == sizeof m ? MULTICAST_OK
                                                                        : MULTICAST_ERROR_SYSTEM;
}

/* A thread that receives and delivers messages until the other side closes its socket. The messages
 * may be malformed. */
typedef struct receiver {
  multicast_broadcaster broadcaster;
  int socket;
  int refused;
} receiver;
THREAD(receive_messages, receiver *r) {
  message m;
  while (recv(r->socket, &m, sizeof m, 0) == sizeof m) {
    if (m.size > sizeof m.bytes || memchr(m.name, '\0', sizeof m.name) == NULL) {
      r->refused += 1;
    } else {
      multicast_broadcaster_deliver(r->broadcaster, m.name, m.event, m.bytes, m.size);
    }
  }
}

static void close_socket(void *context) { shutdown(*(int *)context, SHUT_RDWR); }

static void connect_by(int *socket, multicast_broadcaster b) {
  multicast_transport transport = TRANSPORT_WITH(.context = socket, .publish = send_message,
                                                 .release = close_socket);
  CHECK_OK(multicast_broadcaster_attach(b, &transport));
}

static parcel arrived;
static gate has_arrived = GATE_INIT;
static void keep_and_notify(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_delegate d = keeping(&arrived);
  d.function(d.context, event, payload, size);
  gate_open(&has_arrived);
}

/* The two broadcasters behave as if each were in its own process. */
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
  CHECK_OK(multicast_broadcaster_destroy(here)); /* closes the socket, so that the thread ends */
  join_thread(thread);
  CHECK_OK(multicast_broadcaster_destroy(there));
  close(sockets[0]);
  close(sockets[1]);
}

TEST(transport_of_sockets_trusts_no_size_and_no_name) {
  multicast_broadcaster b = create();
  int sockets[2];
  CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
  observe(b, NAME, counter(&calls));
  message large = {NAME, 7, 5000, {0}}, endless = {{0}, 7, 6, {0}}, good = {NAME, 7, 1024, {0}};
  memset(endless.name, 'n', sizeof endless.name);
  CHECK_EQ(send(sockets[0], &large, sizeof large, 0), sizeof large);
  CHECK_EQ(send(sockets[0], &endless, sizeof endless, 0), sizeof endless);
  CHECK_EQ(send(sockets[0], &good, sizeof good, 0), sizeof good);
  close(sockets[0]);
  receiver r = {.broadcaster = b, .socket = sockets[1]};
  join_thread(start_thread(receive_messages, &r));
  CHECK_EQ(r.refused, 2);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_broadcaster_destroy(b));
  close(sockets[1]);
}
