/* Tests how the library works with programs that use only libnats, and with servers that send
 * malformed or unexpected messages. */

#include "../Transports/Harness/asking.h"
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
  /* The library ignores the message's headers and its reply subject. */
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
  /* Use bash to read the server's report of its connections. */
  snprintf(command, sizeof command,
           "bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d; "
           "printf \"GET /connz HTTP/1.0\\r\\n\\r\\n\" >&3; grep -q \"the attic\" <&3'", port);
  broker_run(&b, command);
  broker_delete(&b);
}

/* ---- Ignored messages ------------------------------------------------------------------------ */

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

/* ---- Fake servers ---------------------------------------------------------------------------- */

/* A fake server that sends some bytes on each connection, and more bytes when it receives a
 * PING. */
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

/* The server sends a message whose subject does not match its subscription, and then a correct
 * message. The client may connect more than once, and receives both messages each time. */
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

/* ---- Questions ------------------------------------------------------------------------------- */

static const uint64_t a_while = 200000000u, ten_seconds = 10000000000u;

/* The server announces a lower payload limit than it did when the client connected. */
TEST(question_that_the_server_does_not_take_any_more_ends) {
  static char large[1000];
  server s = {.bytes = INFO, .more = "INFO {\"max_payload\":100}\r\n"};
  peer p;
  told t = {0};
  int calls = 0;
  server_start(&s, serve);
  peer_connect_with(&p, s.port, NULL);
  peer_observe(&p, "n", counter(&calls)); /* the server sends the limit after its PONG */
  pause_ms(A_WHILE_MS);
  CHECK_ERROR(multicast_nats_ask(&p.transport, "q", 1, large, sizeof large, ten_seconds, note_told,
                                 &t), LIMIT);
  EVENTUALLY(LOAD(p.publications_refused) == 1);
  CHECK_EQ(peer_stats(&p).dropped, 1);
  peer_release(&p);
  server_end(&s);
}

static void answer_plainly(natsConnection *connection, natsSubscription *subscription,
                           natsMsg *message, void *closure) {
  CHECK_TEXT(natsMsg_GetSubject(message), "multicast.%?the%20forecast.7");
  CHECK_EQ(natsConnection_PublishString(connection, natsMsg_GetReply(message), "rain"), NATS_OK);
  natsMsg_Destroy(message);
}

TEST_OF_BROKER(plain_client_answers, NULL) {
  SCOPED peer p;
  natsSubscription *subscription = NULL;
  told t = {.enough = 1};
  peer_connect_to(&p, b);
  natsConnection *plain = connect_plainly(b);
  CHECK_EQ(natsConnection_Subscribe(&subscription, plain, "multicast.%?the%20forecast.*",
                                    answer_plainly, NULL), NATS_OK);
  CHECK_EQ(natsConnection_Flush(plain), NATS_OK);
  CHECK_OK(ask(&p, &t, "the forecast", "", ten_seconds));
  CHECK_TEXT(t.each[0].payload, "rain");
  natsSubscription_Destroy(subscription);
  natsConnection_Destroy(plain);
}

TEST_OF_BROKER(plain_client_asks_if_its_inbox_is_of_this_form, NULL) {
  static const char inbox[] = "_INBOX.00000000000000FF.000000000000ABCD", q[] = "multicast.%?q.7";
  static const char *const others[] = {
      "_INBOX.x.1", "_INBOX.0000000000000000.0000000000000001", "_INBOX.00000000000000FF.1",
      "_INBOX.00000000000000ff.0000000000000001", "_INBOX.00000000000000FF.0000000000000001.x",
      "_INBOX.00000000000000FF", "multicast.n.1", "_INBOY.00000000000000FF.0000000000000001"};
  enum { COUNT = sizeof others / sizeof *others };
  SCOPED peer p;
  natsSubscription *subscription = NULL;
  responder r = {"r", 0, 0};
  peer_connect_to(&p, b);
  peer_answer(&p, "q", &r);
  natsConnection *plain = connect_plainly(b);
  CHECK_EQ(natsConnection_SubscribeSync(&subscription, plain, ">"), NATS_OK);
  for (int i = 0; i < COUNT; ++i)
    CHECK_EQ(natsConnection_PublishRequestString(plain, q, others[i], "x"), NATS_OK);
  CHECK_EQ(natsConnection_PublishString(plain, q, "x"), NATS_OK);
  CHECK_EQ(natsConnection_PublishRequestString(plain, "multicast.%?q.07", inbox, "x"), NATS_OK);
  CHECK_EQ(natsConnection_PublishRequestString(plain, q, inbox, "what"), NATS_OK);
  for (int i = 0; i < COUNT + 1; ++i) expect_message(subscription, q, "x", 1);
  expect_message(subscription, "multicast.%?q.07", "x", 1);
  expect_message(subscription, q, "what", 4);
  expect_message(subscription, inbox, "r:7:what", 8);
  CHECK_EQ(LOAD(r.calls), 1);
  CHECK_EQ(peer_stats(&p).ignored, COUNT + 2);
  natsSubscription_Destroy(subscription);
  natsConnection_Destroy(plain);
}

TEST_OF_BROKER(answers_that_are_none_are_ignored, NULL) {
  static const char *const numbers[] = {"x", "1", "00000000000000FF", "000000000000000g",
                                        "00000000000000001"};
  enum { COUNT = sizeof numbers / sizeof *numbers };
  SCOPED peer here, there;
  transport_question kept = {0, 0, 0};
  asking a = {&here, 1, {.enough = 1}, 0};
  peer_connect_to(&here, b);
  peer_connect_to(&there, b);
  CHECK_OK(multicast_nats_answer(&there.transport, "q", keep_question, &kept, NULL));
  peer_flush(&there);
  pthread_t thread = start_asking(&a);
  EVENTUALLY(LOAD(kept.transport) != 0);
  natsConnection *plain = connect_plainly(b);
  for (int i = 0; i < COUNT; ++i) {
    char subject[80];
    snprintf(subject, sizeof subject, "_INBOX.%016llX.%s", (unsigned long long)kept.peer,
             numbers[i]);
    CHECK_EQ(natsConnection_PublishString(plain, subject, "x"), NATS_OK);
  }
  EVENTUALLY(peer_stats(&here).ignored == COUNT);
  CHECK_OK(multicast_nats_reply(&kept, "right", 5));
  join_thread(thread);
  CHECK_OK(a.result);
  CHECK_EQ(a.t.count, 1);
  CHECK_TEXT(a.t.each[0].payload, "right");
  natsConnection_Destroy(plain);
}

TEST_OF_BROKER(questions_and_answers_are_no_larger_than_the_server_takes, "max_payload: 1000") {
  static const char large[1001];
  SCOPED peer p;
  told t = {0};
  peer_connect_to(&p, b);
  const multicast_nats_question question = {(uint64_t)(uintptr_t)p.transport.context, 1, 1};
  CHECK_ERROR(multicast_nats_ask(&p.transport, "q", 1, large, 1001, a_while, note_told, &t), LIMIT);
  CHECK_ERROR(multicast_nats_ask(&p.transport, "q", 1, large, 1000, ten_seconds, note_told, &t),
              NOT_FOUND);
  CHECK_ERROR(multicast_nats_reply(&question, large, 1001), LIMIT);
  CHECK_OK(multicast_nats_reply(&question, large, 1000));
}

THREAD(flush_soon, peer *p) {
  pause_ms(A_WHILE_MS);
  peer_flush(p); /* the server answers, and sends `more` */
}

/* Like servers before version 2.2, the server does not announce that it supports headers.
 * Such a server cannot report that nobody answers, because the report is a message with a header.
 * Later the server sends answers to questions that have not been asked. */
TEST(server_that_sends_wrong_answers_does_no_harm) {
  server s = {.bytes = INFO, .more = "MSG x 1 1\r\nx\r\n"
                                     "HMSG _INBOX.0 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"
                                     "HMSG _INBOX.0000000000000001.0000000000000001 1 16 16\r\n"
                                     "NATS/1.0 503\r\n\r\n\r\n"
                                     "MSG _INBOX.0000000000000001.0000000000000001 1 1\r\nx\r\n"};
  peer p;
  told t = {0};
  server_start(&s, serve);
  peer_connect_with(&p, s.port, NULL);
  CHECK_ERROR(ask(&p, &t, "q", "", a_while), TIMEOUT);
  pthread_t thread = start_thread(flush_soon, &p);
  CHECK_ERROR(ask(&p, &t, "q", "", 3 * a_while), TIMEOUT);
  join_thread(thread);
  EVENTUALLY(peer_stats(&p).ignored >= 2);
  CHECK(peer_stats(&p).received >= 4);
  CHECK_EQ(t.count, 0);
  CHECK_EQ(LOAD(p.lost), 0);
  peer_release(&p);
  server_end(&s);
}
