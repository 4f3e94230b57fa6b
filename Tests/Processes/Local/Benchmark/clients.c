/* The benchmark's clients that need no server. They send messages between processes over
 * libmulticast-local, socket pairs or ZeroMQ. */

#include "entrants.h"

#include <multicast_local.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <zmq.h>

static bool is_publisher(const client *c) { return c->name[0] == 'b'; } /* subscribes to "back" */

static void start(void *(*body)(void *), client *c) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, body, c) != 0) fail("pthread_create");
}

/* ---- libmulticast-local ---------------------------------------------------------------------- */

static void create_local(client *c) {
  multicast_local_options options = multicast_local_options_default();
  multicast_transport transport;
  char group[32];
  snprintf(group, sizeof group, "benchmark-%d", c->port);
  options.broadcaster = begin_ours(c);
  options.group = group;
  options.overflow = MULTICAST_OVERFLOW_BLOCK;
  options.block_ns = MULTICAST_FOREVER;
  if (multicast_local_connect(&options, &transport) != MULTICAST_OK) fail("connect");
  attach_ours(c, &transport);
  if (multicast_local_flush(&transport, 10000000000u) != MULTICAST_OK) fail("flush");
}

static const contender local = {"libmulticast-local", create_local};
const entrant by_local = {.who = &local, .messages = 4000000, .large_messages = 4000};

/* ---- Sockets --------------------------------------------------------------------------------- */

enum { PIECE = 1 << 16 }; /* a socket does not accept 1 MB at once */

static int pairs[SUBSCRIBERS_MAX][2];

static void prepare_sockets(const client *publisher) {
  for (int i = 0; i < publisher->subscribers; ++i)
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pairs[i]) != 0) fail("socketpair");
}

static void send_whole(int socket, const char *payload, size_t size) {
  for (size_t piece; size > 0; payload += piece, size -= piece) {
    piece = size < PIECE ? size : PIECE;
    if (send(socket, payload, piece, MSG_NOSIGNAL) != (ssize_t)piece) fail("send");
  }
}

static void publish_sockets(client *c, const char *name, const void *payload) {
  (void)name;
  if (!is_publisher(c)) send_whole(pairs[c->number][1], payload, c->size);
  for (int i = 0; is_publisher(c) && i < c->subscribers; ++i)
    send_whole(pairs[i][0], payload, c->size);
}

static void *receive_sockets(void *context) {
  static char payload[LARGE_SIZE];
  client *c = context;
  const int socket = pairs[c->number][is_publisher(c) ? 0 : 1];
  const size_t whole = is_publisher(c) ? SIZE : c->size;
  for (;;) {
    size_t size = 0;
    while (size < whole) {
      const ssize_t piece = recv(socket, payload + size, whole - size, 0);
      if (piece <= 0) return NULL;
      size += (size_t)piece;
    }
    c->arrived(c, payload, size);
  }
}

static void create_sockets(client *c) {
  c->publish = publish_sockets;
  start(receive_sockets, c);
}

static const contender sockets = {"SEQPACKET sockets", create_sockets};
const entrant by_sockets = {
    .who = &sockets, .prepare = prepare_sockets, .messages = 400000, .large_messages = 1000};

/* ---- ZeroMQ ---------------------------------------------------------------------------------- */

/* Each socket is used by only one thread, because a process publishes on a single thread. */
static void *publishing, *subscribing;
static int subscribed; /* the number of subscribers */

static void *open_zeromq(void *context, int type, const char *name, const client *c, int number) {
  const int messages = 100000;
  void *socket = zmq_socket(context, type);
  char address[64];
  snprintf(address, sizeof address, "ipc://@benchmark-%d-%s-%d", c->port, name, number);
  if (socket == NULL || zmq_setsockopt(socket, ZMQ_SNDHWM, &messages, sizeof messages) != 0 ||
      zmq_setsockopt(socket, ZMQ_RCVHWM, &messages, sizeof messages) != 0 ||
      (type == ZMQ_XPUB ? zmq_bind : zmq_connect)(socket, address) != 0)
    fail("a socket of ZeroMQ");
  return socket;
}

static void wait_for_subscribers(const client *c) {
  char subscription[8];
  for (; subscribed < c->subscribers; ++subscribed)
    if (zmq_recv(publishing, subscription, sizeof subscription, 0) < 0) fail("zmq_recv");
}

static void publish_zeromq(client *c, const char *name, const void *payload) {
  (void)name;
  wait_for_subscribers(c);
  if (zmq_send(publishing, payload, c->size, 0) < 0) fail("zmq_send");
}

static void *receive_zeromq(void *context) {
  client *c = context;
  zmq_msg_t message;
  zmq_msg_init(&message);
  while (zmq_msg_recv(&message, subscribing, 0) >= 0)
    c->arrived(c, zmq_msg_data(&message), zmq_msg_size(&message));
  return NULL;
}

static void create_zeromq(client *c) {
  void *context = zmq_ctx_new();
  const bool is_first = is_publisher(c);
  const int yes = 1;
  publishing = open_zeromq(context, ZMQ_XPUB, is_first ? "there" : "back", c,
                           is_first ? 0 : c->number);
  subscribing = open_zeromq(context, ZMQ_SUB, c->name, c, 0);
  /* Make `publishing` wait for room instead of dropping messages, and report each subscriber. */
  if (zmq_setsockopt(publishing, ZMQ_XPUB_NODROP, &yes, sizeof yes) != 0 ||
      zmq_setsockopt(publishing, ZMQ_XPUB_VERBOSE, &yes, sizeof yes) != 0 ||
      zmq_setsockopt(subscribing, ZMQ_SUBSCRIBE, "", 0) != 0)
    fail("zmq_setsockopt");
  c->publish = publish_zeromq;
  start(receive_zeromq, c);
  if (is_first) wait_for_subscribers(c);
}

static const contender zeromq = {"ZeroMQ", create_zeromq};
const entrant by_zeromq = {
    .who = &zeromq, .messages = 1000000, .large_messages = 500, .large_window = 16};
