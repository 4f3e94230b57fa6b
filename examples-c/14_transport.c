/* SPDX-License-Identifier: MIT
 *
 * 14_transport: a custom transport between two processes, over a pair of sockets.
 *
 * A door is in one process, and a lamp is in the other. Both know the name "door", but not each
 * other. The door's broadcaster has a transport, whose `publish` function sends each notification
 * as one message. A loop in the lamp's process receives messages and delivers them to its
 * broadcaster, which calls the lamp.
 *
 * A message consists of four bytes for the event, the name with its terminating zero, and the
 * payload, which takes up the rest of the message. A message from another process may contain
 * anything, so the receiver checks that the name ends within the message. The door also sends two
 * broken messages.
 *
 *     gcc 14_transport.c -lmulticast -o 14_transport && ./14_transport
 *
 * Prints the text in expected/14_transport.txt.
 */

#define _POSIX_C_SOURCE 200809L

#include <multicast.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEAD = sizeof(uint32_t), MOST_NAME = 255, MOST_PAYLOAD = 1024 };
enum { MOST_MESSAGE = HEAD + MOST_NAME + 1 + MOST_PAYLOAD };

static void must(const char *what, int is_well) {
  if (is_well) return;
  fprintf(stderr, "14_transport: %s failed\n", what);
  exit(EXIT_FAILURE);
}

/* ---- Sending: the transport ------------------------------------------------------------------ */

static multicast_status publish(void *context, const char *name, uint32_t event,
                                const void *payload, size_t size) {
  const int *socket = context;
  char message[MOST_MESSAGE];
  size_t name_size = strlen(name) + 1; /* at most 256 */
  if (size > MOST_PAYLOAD) return MULTICAST_ERROR_LIMIT;
  memcpy(message, &event, HEAD);
  memcpy(message + HEAD, name, name_size);
  if (size > 0) memcpy(message + HEAD + name_size, payload, size);
  size += HEAD + name_size;
  return send(*socket, message, size, MSG_NOSIGNAL) == (ssize_t)size ? MULTICAST_OK
                                                                     : MULTICAST_ERROR_SYSTEM;
}

/* Called when the transport is detached. The other side then reaches the end of its input. */
static void release(void *context) { close(*(const int *)context); }

/* ---- Receiving ------------------------------------------------------------------------------- */

/* Delivers messages until the other side closes its socket. Returns the number of broken
 * messages. */
static int receive(multicast_broadcaster broadcaster, int socket) {
  char message[MOST_MESSAGE];
  ssize_t received;
  int broken = 0;
  /* With MSG_TRUNC, recv() returns the full size of a message, even if the buffer is too small for
   * it. */
  while ((received = recv(socket, message, sizeof message, MSG_TRUNC)) > 0) {
    const char *end = NULL;
    uint32_t event;
    if (received > HEAD && (size_t)received <= sizeof message) {
      end = memchr(message + HEAD, '\0', (size_t)received - HEAD);
    }
    if (end == NULL) {
      broken += 1;
      continue;
    }
    memcpy(&event, message, HEAD);
    /* If the name is empty or too long, multicast_broadcaster_deliver() returns an error. */
    const char *payload = end + 1;
    if (multicast_broadcaster_deliver(broadcaster, message + HEAD, event, payload,
                                      (size_t)(message + received - payload)) < 0) {
      broken += 1;
    }
  }
  return broken;
}

/* ---- The lamp, in its own process ------------------------------------------------------------ */

static void lamp_notified(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context;
  printf("lamp: event %u, %.*s\n", (unsigned)event, (int)size, (const char *)payload);
}

static int run_lamp(int socket) {
  multicast_broadcaster broadcaster = multicast_broadcaster_create(NULL);
  multicast_delegate lamp = {lamp_notified, NULL};
  must("create", broadcaster.id != 0);
  must("register", multicast_broadcaster_register(broadcaster, "door", lamp, NULL, NULL) == 0);
  printf("%d messages were broken\n", receive(broadcaster, socket));
  must("destroy", multicast_broadcaster_destroy(broadcaster) == MULTICAST_OK);
  return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- The door -------------------------------------------------------------------------------- */

static void run_door(int *socket) {
  multicast_broadcaster broadcaster = multicast_broadcaster_create(NULL);
  multicast_transport transport = multicast_transport_default();
  transport.context = socket;
  transport.publish = publish;
  transport.release = release;
  must("create", broadcaster.id != 0);
  must("attach", multicast_broadcaster_attach(broadcaster, &transport) == MULTICAST_OK);

  /* The counts are 0, because this process has no observers. */
  must("notify", multicast_broadcaster_notify(broadcaster, "door", 1, "Ada has come", 12) == 0);
  must("notify", multicast_broadcaster_notify(broadcaster, "door", 2, "Ada has gone", 12) == 0);
  must("send", send(*socket, "\1\0\0\0door", 8, 0) == 8); /* The name has no end. */
  must("send", send(*socket, "\1\0", 2, 0) == 2);
  /* This detaches the transport. */
  must("destroy", multicast_broadcaster_destroy(broadcaster) == MULTICAST_OK);
}

int main(void) {
  int sockets[2], status;
  must("socketpair", socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0);
  pid_t child = fork();
  must("fork", child >= 0);
  close(sockets[child == 0 ? 0 : 1]);
  if (child == 0) return run_lamp(sockets[1]);
  run_door(&sockets[0]);
  must("lamp", waitpid(child, &status, 0) == child && status == 0);
  return EXIT_SUCCESS;
}
