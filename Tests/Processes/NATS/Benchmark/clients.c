/* The benchmark's clients of a NATS server. One client uses libmulticast-nats, and the other client
 * uses plain libnats with its own threads. */

#include "measure.h"

#include <multicast_nats.h>

#include <nats/nats.h>
#include <stdio.h>

static const char *address_of(const client *c) {
  static char address[64];
  snprintf(address, sizeof address, "nats://127.0.0.1:%d", c->port);
  return address;
}

static void create_ours(client *c) {
  multicast_nats_options options = multicast_nats_options_default();
  multicast_transport transport;
  options.broadcaster = begin_ours(c);
  options.servers = address_of(c);
  if (multicast_nats_connect(&options, &transport) != MULTICAST_OK) fail("connect");
  attach_ours(c, &transport);
  if (multicast_nats_flush(&transport, 10000000000u) != MULTICAST_OK) fail("flush");
}

/* ---- libnats --------------------------------------------------------------------------------- */

static void expect_ok(natsStatus status) {
  if (status != NATS_OK) fail(natsStatus_GetText(status));
}

/* Called on a thread that libnats creates for the subscription. */
static void on_message(natsConnection *connection, natsSubscription *subscription, natsMsg *message,
                       void *closure) {
  client *c = closure;
  (void)connection, (void)subscription;
  c->arrived(c, natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message));
  natsMsg_Destroy(message);
}

/* Uses the same subjects as libmulticast-nats, so that the server does the same work for both
 * clients. */
static void publish_bare(client *c, const char *name, const void *payload) {
  const char *subject = name[0] == 't' ? "multicast.there.1" : "multicast.back.1";
  expect_ok(natsConnection_Publish(c->connection, subject, payload, c->size));
}

static void flush_bare(client *c) { expect_ok(natsConnection_FlushTimeout(c->connection, 20000)); }

static void create_bare(client *c) {
  natsOptions *how = NULL;
  natsConnection *connection = NULL;
  natsSubscription *subscription = NULL;
  char subject[64];
  expect_ok(natsOptions_Create(&how));
  expect_ok(natsOptions_SetURL(how, address_of(c)));
  expect_ok(natsOptions_SetNoEcho(how, true));
  /* By default, libnats delays a message for up to a millisecond and sends it together with other
   * messages. If many messages are sent, the delay makes libnats three times as fast. */
  expect_ok(natsOptions_SetSendAsap(how, !c->publishes_many));
  expect_ok(natsConnection_Connect(&connection, how));
  natsOptions_Destroy(how);
  snprintf(subject, sizeof subject, "multicast.%s.*", c->name);
  expect_ok(natsConnection_Subscribe(&subscription, connection, subject, on_message, c));
  expect_ok(natsSubscription_SetPendingLimits(subscription, -1, -1));
  expect_ok(natsConnection_FlushTimeout(connection, 10000));
  c->connection = connection;
  c->publish = publish_bare;
  c->flush = flush_bare;
}

const benchmark the_benchmark = {
    .bare = {"libnats", create_bare},
    .ours = {"libmulticast-nats", create_ours},
    .kinds = {"", NULL},
    .messages = 500000,
    .window = 0,
};
