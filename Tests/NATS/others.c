/* Programs that use libnats without this library, and servers that send what they should not. */

#include "../Transports/Harness/broker.h"
#include "../Transports/Harness/servers.h"

#include <nats/nats.h>
#include <sys/socket.h>

/* ---- Plain libnats --------------------------------------------------------------------------- */

static natsConnection *connect_plainly(const broker *b) {
  natsConnection *connection = NULL;
  char url[64];
  snprintf(url, sizeof url, "nats://127.0.0.1:%d", b->port);
  CHECK_EQ(natsConnection_ConnectTo(&connection, url), NATS_OK);
  return connection;
}

TEST_OF_BROKER(plain_client_notifies, NULL) {
  SCOPED peer p;
  record *r = record_create();
  natsMsg *message = NULL;
  peer_connect_to(&p, b);
  peer_observe(&p, "weather", recorder(r));
  natsConnection *plain = connect_plainly(b);
  CHECK_EQ(natsConnection_PublishString(plain, "multicast.weather.7", "rain"), NATS_OK);
  record_wait(r, 1);
  CHECK(record_is(r, 7, "rain", 4));
  CHECK_EQ(natsConnection_Publish(plain, "multicast.weather.0", NULL, 0), NATS_OK);
  record_wait(r, 2);
  CHECK(record_is(r, 0, NULL, 0));
  /* Headers and a subject for replies are left out. */
  CHECK_EQ(natsMsg_Create(&message, "multicast.weather.8", "reply", "sun", 3), NATS_OK);
  CHECK_EQ(natsMsgHeader_Set(message, "Key", "Value"), NATS_OK);
  CHECK_EQ(natsConnection_PublishMsg(plain, message), NATS_OK);
  record_wait(r, 3);
  CHECK(record_is(r, 8, "sun", 3));
  natsMsg_Destroy(message);
  natsConnection_Destroy(plain);
}

static void expect_message(natsSubscription *subscription, const char *subject,
                           const void *payload, int size) {
  natsMsg *message = NULL;
  CHECK_EQ(natsSubscription_NextMsg(&message, subscription, 20000), NATS_OK);
  CHECK_TEXT(natsMsg_GetSubject(message), subject);
  CHECK_EQ(natsMsg_GetDataLength(message), size);
  CHECK_EQ(memcmp(natsMsg_GetData(message), payload, (size_t)size), 0);
  natsMsg_Destroy(message);
}

TEST_OF_BROKER(plain_client_is_notified, NULL) {
  SCOPED peer p;
  natsSubscription *subscription = NULL;
  peer_connect_with(&p, b->port, &OPTIONS(.subject_prefix = "house.attic",
                                          .client_name = "the attic"));
  natsConnection *plain = connect_plainly(b);
  CHECK_EQ(natsConnection_SubscribeSync(&subscription, plain, "house.attic.>"), NATS_OK);
  CHECK_EQ(natsConnection_Flush(plain), NATS_OK);
  CHECK_OK(peer_publish(&p, "weather", 7, "rain", 4));
  CHECK_OK(peer_publish(&p, "the weather", 4294967295u, "\0\xff\r\n", 4));
  CHECK_OK(peer_publish(&p, "50%.day", 0, NULL, 0));
  expect_message(subscription, "house.attic.weather.7", "rain", 4);
  expect_message(subscription, "house.attic.the%20weather.4294967295", "\0\xff\r\n", 4);
  expect_message(subscription, "house.attic.50%25%2Eday.0", "", 0);
  natsSubscription_Destroy(subscription);
  natsConnection_Destroy(plain);
}

TEST_OF_BROKER(prefixes_that_differ_do_not_meet, NULL) {
  SCOPED peer here, there;
  record *r = record_create();
  peer_connect_with(&here, b->port, &OPTIONS(.subject_prefix = "one"));
  peer_connect_with(&there, b->port, &OPTIONS(.subject_prefix = "one.two"));
  peer_observe(&there, "n", recorder(r));
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  CHECK_OK(peer_publish(&here, "two.n", 1, "x", 1));
  peer_flush(&here);
  peer_flush(&there);
  CHECK_EQ(peer_stats(&there).received, 0);
}

TEST(client_has_the_name_of_the_options) {
  broker b;
  SCOPED peer p;
  char command[256];
  int port = free_port();
  char configuration[64];
  snprintf(configuration, sizeof configuration, "http: 127.0.0.1:%d", port);
  broker_start(&b, configuration);
  peer_connect_with(&p, b.port, &OPTIONS(.client_name = "the attic"));
  /* The server's report, read by bash. */
  snprintf(command, sizeof command,
           "bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d; "
           "printf \"GET /connz HTTP/1.0\\r\\n\\r\\n\" >&3; grep -q \"the attic\" <&3'", port);
  broker_run(&b, command);
  broker_delete(&b);
}

/* ---- What changes nothing -------------------------------------------------------------------- */

TEST_OF_BROKER(messages_that_are_none_are_ignored, NULL) {
  static const char *const subjects[] = {"multicast.n.01", "multicast.n.x", "multicast.n.-1",
                                         "multicast.n.4294967296", "multicast.n.1x"};
  static const char *const elsewhere[] = {"multicast.n", "multicast.n.1.2", "multicast.m.1",
                                          "multicast.%6E.1", "n.1"};
  enum { COUNT = sizeof subjects / sizeof *subjects };
  static unsigned char large[1001];
  SCOPED peer p;
  record *r = record_create();
  peer_connect_with(&p, b->port, &OPTIONS(.max_payload = 1000));
  peer_observe(&p, "n", recorder(r));
  natsConnection *plain = connect_plainly(b);
  for (int i = 0; i < COUNT; ++i) {
    CHECK_EQ(natsConnection_PublishString(plain, subjects[i], "x"), NATS_OK);
    CHECK_EQ(natsConnection_PublishString(plain, elsewhere[i], "x"), NATS_OK);
  }
  CHECK_EQ(natsConnection_Publish(plain, "multicast.n.1", large, sizeof large), NATS_OK);
  CHECK_EQ(natsConnection_Publish(plain, "multicast.n.2", large, sizeof large - 1), NATS_OK);
  record_wait(r, 1);
  CHECK(record_is(r, 2, large, sizeof large - 1));
  CHECK_EQ(peer_stats(&p).ignored, COUNT + 1);
  CHECK_EQ(peer_stats(&p).received, COUNT + 2);
  CHECK_EQ(LOAD(p.lost), 0);
  natsConnection_Destroy(plain);
}

/* ---- Servers that are none ------------------------------------------------------------------- */

/* Sends some bytes to each connection, and some more when it has been sent a PING. */
THREAD(serve, server *s) {
  while (!LOAD(s->has_to_end)) {
    char request[4096];
    ssize_t size;
    int c = accept(s->listener, NULL, NULL);
    if (c < 0) break;
    ADD(s->connections, 1);
    server_send(c, s->bytes, strlen(s->bytes));
    while (s->more != NULL && (size = recv(c, request, sizeof request - 1, 0)) > 0) {
      request[size] = '\0';
      if (strstr(request, "PING") == NULL) continue;
      server_send(c, "PONG\r\n", 6);
      server_send(c, s->more, strlen(s->more));
    }
    server_drain(c);
  }
}

static void expect_no_harm(const char *greeting, const char *more) {
  server s = {.bytes = greeting, .more = more};
  expect_no_harm_of(&s, serve);
}

#define INFO \
  "INFO {\"server_id\":\"x\",\"version\":\"2.9.10\",\"proto\":1,\"host\":\"h\",\"port\":1," \
  "\"headers\":true,\"max_payload\":1048576}\r\n"

TEST(server_that_does_not_answer_is_left) { expect_no_harm("", NULL); }

TEST(server_that_sends_noise_is_left) {
  expect_no_harm("HTTP/1.1 400 Bad Request\r\n\r\nThis is not NATS", NULL);
  expect_no_harm("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\r\n", NULL);
  expect_no_harm("INFO {\"max_payload\":\r\n", NULL);
}

TEST(server_that_sends_wrong_messages_is_left) {
  expect_no_harm(INFO, "MSG multicast.n.1 1 -5\r\nhello\r\n");
  expect_no_harm(INFO, "MSG multicast.n.1\r\nhello\r\n");
  expect_no_harm(INFO, "HMSG multicast.n.1 1 9 5\r\nhello\r\n");
  expect_no_harm(INFO, "MSG multicast.n.x 1 1\r\nx\r\nMSG other 1 1\r\nx\r\nNOISE\r\n");
  expect_no_harm(INFO, "-ERR 'Slow Consumer'\r\n");
  expect_no_harm(INFO, "-ERR 'User Authentication Expired'\r\n-ERR 'Stale Connection'\r\n");
}

typedef struct tally {
  int right, wrong;
} tally;

FUNCTION(count_event, tally *t) {
  const bool is_right = event == 7 && size == 1 && memcmp(payload, "y", 1) == 0;
  ADD(*(is_right ? &t->right : &t->wrong), 1);
}

/* The server says which subscription a message is for, and which subject it has. The client may
 * come more than once, and gets the messages each time. */
TEST(messages_of_a_subject_without_subscription_are_ignored) {
  static const char *const subjects[] = {"multicast.m.1", "multicast.nn.1", "multicast.n",
                                         "multicast.n.", "multicast.n.01", "n"};
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; ++i) {
    char more[64];
    server s = {.bytes = INFO, .more = more};
    peer p;
    tally seen = {0, 0};
    const multicast_delegate observer = {count_event, &seen};
    snprintf(more, sizeof more, "MSG %s 1 1\r\nx\r\nMSG multicast.n.7 1 1\r\ny\r\n", subjects[i]);
    server_start(&s, serve);
    peer_connect_with(&p, s.port, NULL);
    CHECK_OK(multicast_broadcaster_register(p.broadcaster, "m", observer, NULL, NULL));
    peer_observe(&p, "n", observer);
    EVENTUALLY(peer_stats(&p).ignored >= 1);
    EVENTUALLY(LOAD(seen.right) >= 1);
    peer_release(&p);
    server_end(&s);
    CHECK_EQ(seen.wrong, 0);
  }
}
