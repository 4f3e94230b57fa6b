/* Tests programs that do not use this library, retained messages, and invalid messages. */

#include "../Transports/Harness/asking.h"
#include "../Transports/Harness/servers.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- mosquitto_pub and mosquitto_sub --------------------------------------------------------- */

TEST_OF_BROKER(mosquitto_pub_notifies, NULL) {
  SCOPED peer p;
  record *r = record_create();
  peer_connect_reliably(&p, b->port);
  peer_observe(&p, "weather", recorder(r));
  broker_run(b, "mosquitto_pub -h 127.0.0.1 -p $PORT -q 1 -t multicast/weather/7 -m rain");
  record_wait(r, 1);
  CHECK(record_is(r, 7, "rain", 4));
  broker_run(b, "mosquitto_pub -h 127.0.0.1 -p $PORT -q 1 -t multicast/weather -m sun");
  record_wait(r, 2);
  CHECK(record_is(r, 0, "sun", 3));
  broker_run(b, "mosquitto_pub -h 127.0.0.1 -p $PORT -V 311 -t multicast/weather/0 -n");
  record_wait(r, 3);
  CHECK(record_is(r, 0, NULL, 0));
}

/* The broker keeps this client's session, and stores what is published between two runs. With -E,
 * the client ends when the broker has confirmed the subscription. */
#define SUB "mosquitto_sub -h 127.0.0.1 -p $PORT -V 5 -i sub -c -x 60 -q 1 -W 10 "

TEST_OF_BROKER(mosquitto_sub_gets_plain_messages, NULL) {
  SCOPED peer p;
  peer_connect_with(&p, b->port, &OPTIONS(.flags = MULTICAST_MQTT_PLAIN,
                                          .topic_prefix = "house/attic", .qos = 1));
  broker_run(b, SUB "-t 'house/attic/#' -E");
  CHECK_OK(peer_publish(&p, "the weather", 7, "rain", 4));
  CHECK_OK(peer_publish(&p, "50%/day", 4294967295u, "", 0));
  peer_flush(&p);
  broker_run(b, SUB "-t 'house/attic/#' -C 2 -v >out; printf 'house/attic/the weather/7 rain\n"
                "house/attic/50%%25%%2Fday/4294967295 (null)\n' | diff - out");
}

TEST_OF_BROKER(prefix_of_slashes_is_a_topic, NULL) {
  static char prefix[199];
  SCOPED peer here, there;
  record *r = record_create();
  memset(prefix, '/', sizeof prefix - 1);
  peer_connect_with(&here, b->port, &OPTIONS(.topic_prefix = prefix));
  peer_connect_with(&there, b->port, &OPTIONS(.topic_prefix = prefix));
  peer_observe(&there, "n", recorder(r));
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  record_wait(r, 1);
  CHECK_EQ(LOAD(here.lost) + LOAD(there.lost), 0);
}

TEST_OF_BROKER(messages_have_the_header_that_is_documented, NULL) {
  SCOPED peer p;
  peer_connect_reliably(&p, b->port);
  broker_run(b, SUB "-t multicast/n/3 -E");
  CHECK_OK(peer_publish(&p, "n", 3, "rain", 4));
  peer_flush(&p);
  broker_run(b, SUB "-t multicast/n/3 -C 1 -F %x | "
                "grep -qE '^934d430100000000[0-9a-f]{16}7261696e$'");
}

/* ---- Retained messages ----------------------------------------------------------------------- */

static bool retains_states(void *context, const char *name, uint32_t event) {
  return strncmp(name, "state", 5) == 0;
}

static void expect_retained(uint32_t protocol) {
  broker b;
  peer here, there;
  record *r = record_create(), *other = record_create(), *third = record_create();
  broker_start(&b, NULL);
  peer_connect_with(&here, b.port, &OPTIONS(.qos = 1, .retains = retains_states,
                                            .protocol = protocol));
  CHECK_OK(peer_publish(&here, "state", 1, "old", 3));
  CHECK_OK(peer_publish(&here, "state", 1, "new", 3));
  CHECK_OK(peer_publish(&here, "state2", 2, "two", 3));
  CHECK_OK(peer_publish(&here, "event", 1, "gone", 4));
  peer_flush(&here);

  peer_connect_with(&there, b.port, &OPTIONS(.protocol = protocol));
  peer_observe(&there, "event", recorder(other));
  peer_observe(&there, "state", recorder(r));
  record_wait(r, 1);
  CHECK(record_is(r, 1, "new", 3));
  peer_observe(&there, "state2", recorder(third));
  record_wait(third, 1);
  CHECK(record_is(third, 2, "two", 3));
  record_wait(other, 0);
  peer_release(&there);

  peer_connect_with(&there, b.port, &OPTIONS(.protocol = protocol,
                                             .flags = MULTICAST_MQTT_NO_RETAINED));
  peer_observe(&there, "state", recorder(r));
  CHECK_OK(peer_publish(&here, "state", 1, "newer", 5));
  record_wait(r, 2);
  CHECK(record_is(r, 1, "newer", 5));
  peer_release(&there);
  peer_release(&here);
  broker_delete(&b);
}

/* A publisher receives its own retained value only if its messages contain no header that
 * identifies their sender. */
static void expect_retained_of_own(uint32_t protocol, uint32_t flags, int calls) {
  broker b;
  peer here, there;
  int own = 0, other = 0;
  broker_start(&b, NULL);
  peer_connect_with(&here, b.port, &OPTIONS(.retains = retains_states, .protocol = protocol,
                                            .flags = flags));
  CHECK_OK(peer_publish(&here, "state", 1, "x", 1));
  peer_flush(&here);
  peer_observe(&here, "state", counter(&own));
  EVENTUALLY(peer_stats(&here).received == 1);
  peer_connect_to(&there, &b);
  peer_observe(&there, "state", counter(&other));
  EVENTUALLY(LOAD(other) == 1);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(own), calls);
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}

TEST(retained_value_is_not_given_to_its_publisher) {
  expect_retained_of_own(5, 0, 0);
  expect_retained_of_own(4, 0, 0);
  expect_retained_of_own(5, MULTICAST_MQTT_PLAIN, 1);
  expect_retained_of_own(4, MULTICAST_MQTT_PLAIN, 1);
}

/* Only the first observer of a name causes a subscription. After the subscription, the broker sends
 * the retained value. */
TEST_OF_BROKER(retained_value_is_given_to_the_first_observer_of_a_name, NULL) {
  SCOPED peer here, there;
  int first = 0, second = 0, again = 0;
  peer_connect_with(&here, b->port, &OPTIONS(.retains = retains_states));
  CHECK_OK(peer_publish(&here, "state", 1, "x", 1));
  peer_flush(&here);
  peer_connect_to(&there, b);
  CHECK_OK(multicast_broadcaster_attach(there.broadcaster, &there.transport));
  const multicast_delegate observers[] = {counter(&first), counter(&second), counter(&again)};
  for (int i = 0; i < 2; ++i) {
    CHECK_OK(multicast_broadcaster_register(there.broadcaster, "state", observers[i], NULL, NULL));
    peer_flush(&there);
    EVENTUALLY(LOAD(first) == 1);
  }
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(second), 0);
  /* After all observers have been removed, the next observer counts as the first observer. */
  CHECK_EQ(multicast_broadcaster_unregister_all(there.broadcaster, "state"), 2);
  peer_flush(&there);
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "state", observers[2], NULL, NULL));
  EVENTUALLY(LOAD(again) == 1);
  CHECK_EQ(LOAD(first) + LOAD(second), 1);
  peer_detach(&there);
}

static bool fork_in_retains(void *context, const char *name, uint32_t event) {
  peer *p = context;
  fflush(NULL);
  p->code = fork();
  return false;
}

TEST(child_that_returns_from_retains_publishes_nothing) {
  SCOPED peer p;
  multicast_mqtt_options options = peer_options(&p, free_port());
  int ended = -1;
  options.retains = fork_in_retains;
  options.changed = NULL;
  CHECK_OK(multicast_mqtt_connect(&options, &p.transport));
  pause_ms(A_WHILE_MS); /* until the other threads are idle */
  multicast_status status = peer_publish(&p, "n", 1, "x", 1);
  if (p.code == 0) _exit(status == MULTICAST_ERROR_STATE ? 0 : 1);
  CHECK_OK(status);
  CHECK_EQ(waitpid(p.code, &ended, 0), p.code);
  CHECK_EQ(ended, 0);
  CHECK_EQ(peer_stats(&p).waiting, 1);
}

TEST(retained_value_is_given_to_late_observers) { expect_retained(5); }
TEST(retained_value_is_given_to_late_observers_by_mqtt_3_1_1) { expect_retained(4); }

/* ---- Ignored messages ------------------------------------------------------------------------ */

TEST_OF_BROKER(messages_that_are_none_are_ignored, NULL) {
  static const char *const commands[] = {
      "mosquitto_pub -h 127.0.0.1 -p $PORT -q 1 -t multicast/n/01 -m x",
      "mosquitto_pub -h 127.0.0.1 -p $PORT -q 1 -t multicast/n/x -m x",
      "mosquitto_pub -h 127.0.0.1 -p $PORT -q 1 -t multicast/n/4294967296 -m x",
      "mosquitto_pub -h 127.0.0.1 -p $PORT -q 1 -t multicast/n/1/2 -m x",
      "mosquitto_pub -h 127.0.0.1 -p $PORT -q 1 -t multicast/n/ -m x",
      /* The header is from a later version, or incomplete, or has a reserved byte that is not 0. */
      "printf '\\223MC\\002\\0\\0\\0\\0\\1\\2\\3\\4\\5\\6\\7\\10xx' | "
      "mosquitto_pub -h 127.0.0.1 -p $PORT -q 1 -t multicast/n/1 -s",
      "printf '\\223MC\\001\\0\\0' | mosquitto_pub -h 127.0.0.1 -p $PORT -q 1 -t multicast/n/1 -s",
      "printf '\\223MC\\001\\0\\0\\0\\1\\1\\2\\3\\4\\5\\6\\7\\10xx' | "
      "mosquitto_pub -h 127.0.0.1 -p $PORT -q 1 -t multicast/n/1 -s",
      /* This payload is larger than `max_payload`. */
      "head -c 1001 /dev/zero | mosquitto_pub -h 127.0.0.1 -p $PORT -q 1 -t multicast/n/1 -s",
  };
  enum { COUNT = sizeof commands / sizeof *commands };
  SCOPED peer p;
  record *r = record_create();
  peer_connect_with(&p, b->port, &OPTIONS(.qos = 1, .max_payload = 1000));
  peer_observe(&p, "n", recorder(r));
  for (int i = 0; i < COUNT; ++i) broker_run(b, commands[i]);
  broker_run(b, "printf '\\223MC\\001\\0\\0\\0\\0\\1\\2\\3\\4\\5\\6\\7\\10' | "
                "mosquitto_pub -h 127.0.0.1 -p $PORT -q 1 -t multicast/n/1 -s");
  record_wait(r, 1);
  CHECK(record_is(r, 1, NULL, 0));
  CHECK_EQ(peer_stats(&p).ignored, COUNT);
  CHECK_EQ(peer_stats(&p).received, COUNT + 1);
  CHECK_EQ(LOAD(p.lost), 0);
}

/* ---- Fake brokers ---------------------------------------------------------------------------- */

/* A fake broker that sends some bytes on each connection, and then ignores all received data. */
THREAD(serve, server *s) {
  while (!LOAD(s->has_to_end)) {
    char request[512];
    int c = accept(s->listener, NULL, NULL);
    if (c < 0) break;
    ADD(s->connections, 1);
    if (recv(c, request, sizeof request, 0) > 0) server_send(c, s->bytes, s->size);
    if (s->closes) close(c);
    else server_drain(c);
  }
}

static void expect_no_harm(const char *bytes, size_t size, bool closes) {
  server s = {.bytes = bytes, .size = size, .closes = closes};
  expect_no_harm_of(&s, serve);
}

#define BYTES(text) text, sizeof text - 1

TEST(broker_that_does_not_answer_is_left) { expect_no_harm(BYTES(""), false); }
TEST(broker_that_closes_is_tried_again) { expect_no_harm(BYTES(""), true); }
TEST(broker_that_sends_noise_is_left) {
  expect_no_harm(BYTES("HTTP/1.1 400 Bad Request\r\n\r\nThis is not MQTT"), false);
  expect_no_harm(BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), false);
  expect_no_harm(BYTES("\0\0\0\0\0\0\0\0"), false);
  expect_no_harm(BYTES("\x20\x03\0\0\0\x30\xff\xff\xff\xff\xff\x7f"), false);
}

/* The broker accepts the connection and then sends a wrong packet. The wrong packets are a message
 * whose topic is longer than the message, a response without a request, a topic that is not UTF-8,
 * and an incomplete topic. */
TEST(broker_that_sends_wrong_packets_is_left) {
  expect_no_harm(BYTES("\x20\x03\0\0\0\x30\x05\x7f\xffmul\x30"), true);
  expect_no_harm(BYTES("\x20\x03\0\0\0\x90\x04\0\x63\0\x80\x40\x02\x12\x34"), true);
  expect_no_harm(BYTES("\x20\x03\0\0\0\x30\x0a\0\x06\xff\xfe/n/1\0x"), true);
  expect_no_harm(BYTES("\x20\x03\0\0\0\x30\x20\0\x0dmulticast/n/1\0"), true);
}

/* A broker that refuses version 5, and accepts version 3.1.1. */
THREAD(serve_older, server *s) {
  while (!LOAD(s->has_to_end)) {
    char request[512];
    int c = accept(s->listener, NULL, NULL);
    if (c < 0) break;
    ssize_t size = recv(c, request, sizeof request, 0);
    if (size > 8 && request[8] == 5) {
      if (!s->closes) CHECK_EQ(send(c, "\x20\x02\0\x01", 4, MSG_NOSIGNAL), 4);
    } else if (size > 8) {
      ADD(s->connections, 1);
      CHECK_EQ(send(c, "\x20\x02\0\0", 4, MSG_NOSIGNAL), 4);
      while (recv(c, request, sizeof request, 0) > 0) {
      }
    }
    close(c);
  }
}

static void expect_older(bool closes) {
  server s;
  peer p;
  s.closes = closes;
  server_start(&s, serve_older);
  peer_connect_with(&p, s.port, NULL);
  CHECK_EQ(peer_stats(&p).protocol, 4);
  CHECK_EQ(LOAD(p.refused), 1);
  CHECK_TEXT(p.reason, "MQTT 3.1.1");
  peer_release(&p);
  peer_begin(&p, s.port, &OPTIONS(.protocol = 5));
  EVENTUALLY(LOAD(p.refused) >= 3);
  CHECK_EQ(LOAD(p.connected), 0);
  peer_release(&p);
  server_end(&s);
}

TEST(broker_that_has_3_1_1_gets_it) { expect_older(false); }
TEST(broker_that_closes_at_5_gets_3_1_1) { expect_older(true); }

/* A broker that accepts the connection, and answers each subscription with `bytes`. */
THREAD(serve_refusals, server *s) {
  while (!LOAD(s->has_to_end)) {
    char request[512], answer[16];
    int c = accept(s->listener, NULL, NULL);
    if (c < 0) break;
    ADD(s->connections, 1);
    if (recv(c, request, sizeof request, 0) > 0)
      CHECK_EQ(send(c, "\x20\x03\0\0\0", 5, MSG_NOSIGNAL), 5);
    while (recv(c, request, sizeof request, 0) > 4) {
      if (request[0] != (char)0x82) continue;
      memcpy(answer, s->bytes, s->size);
      memcpy(answer + 2, request + 2, 2);
      CHECK_EQ(send(c, answer, s->size, MSG_NOSIGNAL), (ssize_t)s->size);
    }
    close(c);
  }
}

static void expect_refused_name(const char *answer, size_t size, const char *reason, int code) {
  server s;
  peer p;
  s.bytes = answer;
  s.size = size;
  server_start(&s, serve_refusals);
  peer_connect_with(&p, s.port, NULL);
  CHECK_OK(p.transport.subscribe(p.transport.context, "weather"));
  peer_flush(&p);
  EVENTUALLY(LOAD(p.subscriptions_refused) == 1);
  CHECK_TEXT(p.refusal, reason);
  CHECK_EQ(p.refusal_code, code);
  CHECK_EQ(LOAD(p.lost), 0);
  peer_release(&p);
  server_end(&s);
}

TEST(refused_names_are_told) {
  expect_refused_name(BYTES("\x90\x04\0\0\0\x87"), "weather: Not authorized", 0x87);
}
/* The broker acknowledges a subscription to a single name with two results. */
TEST(names_with_two_answers_are_refused) {
  expect_refused_name(BYTES("\x90\x05\0\0\0\0\0"), "weather: refused", -1);
}

/* A broker that acknowledges a subscription only when the client has made further changes. */
static gate may_answer = GATE_INIT;

THREAD(serve_late, void *context) {
  server *s = context;
  char request[512];
  int c = accept(s->listener, NULL, NULL);
  CHECK(c >= 0);
  CHECK(recv(c, request, sizeof request, 0) > 0);
  CHECK_EQ(send(c, "\x20\x03\0\0\0", 5, MSG_NOSIGNAL), 5);
  CHECK(recv(c, request, sizeof request, 0) > 0);
  CHECK_EQ((unsigned char)request[0], 0x82);
  ADD(s->connections, 1);
  gate_wait(&may_answer);
  server_send(c, s->bytes, s->size);
  server_drain(c);
}

/* Connects to a broker that sends `bytes` when `may_answer` is opened, and subscribes a name. */
static void subscribe_late(server *s, peer *p, const char *bytes, size_t size) {
  s->bytes = bytes;
  s->size = size;
  server_start(s, serve_late);
  peer_connect_with(p, s->port, NULL);
  CHECK_OK(p->transport.subscribe(p->transport.context, "first"));
  EVENTUALLY(LOAD(s->connections) == 1);
}

TEST(name_that_is_cancelled_before_the_answer_is_forgotten) {
  server s;
  peer p;
  subscribe_late(&s, &p, "\x90\x04\0\1\0\0\xb0\x04\0\2\0\0", 12);
  CHECK_ERROR(multicast_mqtt_flush(&p.transport, 1000000), TIMEOUT);
  p.transport.unsubscribe(p.transport.context, "first");
  CHECK_ERROR(multicast_mqtt_flush(&p.transport, 20000000), TIMEOUT);
  gate_open(&may_answer);
  peer_flush(&p);
  CHECK_EQ(LOAD(p.lost), 0);
  CHECK_EQ(peer_stats(&p).names, 0);
  peer_release(&p);
  server_end(&s);
}

THREAD(flush_first_name, peer *p) {
  CHECK_OK(multicast_mqtt_flush(&p->transport, 10000000000u));
}

/* The broker acknowledges only the subscription that was made before the flush. Of those that were
 * made later, some are sent and not acknowledged, and the others are not sent. */
TEST(flush_does_not_care_for_names_that_change_later) {
  server s;
  peer p;
  subscribe_late(&s, &p, "\x90\x04\0\1\0\0", 6);
  pthread_t thread = start_thread(flush_first_name, &p);
  pause_ms(500); /* so that the thread waits in the flush */
  for (int i = 0; i < 100; ++i) {
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    CHECK_OK(p.transport.subscribe(p.transport.context, name));
  }
  gate_open(&may_answer);
  join_thread(thread);
  CHECK_ERROR(multicast_mqtt_flush(&p.transport, 1000000), TIMEOUT);
  CHECK_EQ(LOAD(p.lost), 0);
  peer_release(&p);
  server_end(&s);
}

/* A broker that sends an unknown property. With MQTT 5, libmosquitto would end the process, as
 * README.md says. */
THREAD(send_unknown_property, server *s) {
  int c;
  while ((c = accept(s->listener, NULL, NULL)) >= 0) {
    ADD(s->connections, 1);
    server_send(c, "\x20\x05\0\0\x02\x7f\0", 7);
    server_drain(c);
  }
}

TEST(property_that_is_unknown_does_no_harm_with_mqtt_3) {
  server s;
  peer p;
  server_start(&s, send_unknown_property);
  peer_begin(&p, s.port, &OPTIONS(.protocol = 4));
  EVENTUALLY(LOAD(p.connected) + LOAD(p.refused) >= 1);
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  pause_ms(A_WHILE_MS);
  peer_release(&p);
  server_end(&s);
}

/* A broker that refuses all subscriptions in one packet. */
enum { REFUSED = 50 };

THREAD(refuse_at_one_go, server *s) {
  /* A packet consists of 0x82, the size, an identifier, an empty list of properties, the size of
   * the string "multicast/nNN/#", this string, and the options. */
  enum { SIZE = 2 + 2 + 1 + 2 + 15 + 1 };
  unsigned char answers[REFUSED * 6], *at = answers;
  char request[4096];
  ssize_t size = 0, more;
  int c = accept(s->listener, NULL, NULL);
  CHECK(c >= 0);
  CHECK(recv(c, request, sizeof request, 0) > 0);
  CHECK_EQ(send(c, "\x20\x03\0\0\0", 5, MSG_NOSIGNAL), 5);
  while (size < (ssize_t)REFUSED * SIZE) {
    more = recv(c, request, sizeof request, 0);
    CHECK(more > 0);
    size += more;
  }
  for (unsigned char id = 1; id <= REFUSED; ++id, at += 6)
    memcpy(at, (unsigned char[]){0x90, 4, 0, id, 0, 0x87}, 6);
  CHECK_EQ(send(c, answers, sizeof answers, MSG_NOSIGNAL), sizeof answers);
  server_drain(c);
}

TEST(each_refused_subscription_is_told) {
  server s;
  peer p;
  char name[16];
  server_start(&s, refuse_at_one_go);
  peer_connect_with(&p, s.port, NULL);
  for (int i = 0; i < REFUSED; ++i) {
    snprintf(name, sizeof name, "n%02d", i);
    CHECK_OK(p.transport.subscribe(p.transport.context, name));
  }
  EVENTUALLY(LOAD(p.subscriptions_refused) == REFUSED);
  peer_release(&p);
  server_end(&s);
}

/* A broker that acknowledges the second publication before the first one. */
THREAD(serve_backwards, server *s) {
  char request[512];
  ssize_t size = 0, more;
  int c = accept(s->listener, NULL, NULL);
  CHECK(c >= 0);
  CHECK(recv(c, request, sizeof request, 0) > 0);
  CHECK_EQ(send(c, "\x20\x03\0\0\0", 5, MSG_NOSIGNAL), 5);
  while (size < s->connections) {
    more = recv(c, request, sizeof request, 0);
    CHECK(more > 0);
    size += more;
  }
  CHECK_EQ(send(c, "\x40\x02\0\2\x40\x02\0\1", 8, MSG_NOSIGNAL), 8);
  server_drain(c);
}

TEST(acknowledgements_may_come_in_any_order) {
  /* Each of the two publications consists of 0x32, the size, the topic's size and the topic, an
   * identifier, an empty list of properties, and a payload of one byte. */
  enum { SIZE = 2 * (2 + 2 + 13 + 2 + 1 + 1) };
  server s;
  peer p;
  server_start(&s, serve_backwards);
  STORE(s.connections, SIZE);
  peer_begin(&p, s.port, &OPTIONS(.qos = 1, .flags = MULTICAST_MQTT_PLAIN));
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  CHECK_OK(peer_publish(&p, "n", 1, "y", 1));
  peer_flush(&p);
  CHECK_EQ(peer_stats(&p).sent, 2);
  CHECK_EQ(LOAD(p.lost), 0);
  peer_release(&p);
  server_end(&s);
}

/* When a broker ends a connection with a reason, libmosquitto 2.0 unlocks a mutex that is not
 * locked. The unlock is harmless, because only one thread uses the mutex. */
#ifdef __SANITIZE_THREAD__
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "mutex:libmosquitto.so\n"; }
#endif

TEST(reason_of_the_broker_is_told) {
  server s;
  peer p;
  s.bytes = "\x20\x03\0\0\0\xe0\x02\x8b\0";
  s.size = 9;
  s.closes = false;
  server_start(&s, serve);
  peer_begin(&p, s.port, NULL);
  EVENTUALLY(LOAD(p.lost) >= 1);
  CHECK_TEXT(p.end, "Server shutting down");
  peer_release(&p);
  server_end(&s);
}

/* ---- Combining packets ----------------------------------------------------------------------- */

enum { BURST = 20, PUBLISH = 3, PUBACK = 4 };

/* Counts the packets of a kind. Assumes that no packet is longer than 129 bytes. */
static int count_packets(const unsigned char *bytes, size_t size, int kind) {
  size_t at = 0;
  int count = 0;
  while (at + 2 <= size && at + 2 + bytes[at + 1] <= size) {
    if (bytes[at] >> 4 == kind) ++count;
    at += 2u + bytes[at + 1];
  }
  return count;
}

/* Receives a burst of packets. Returns the number of TCP segments with data that have arrived on
 * the connection so far. */
static int receive_burst(int c, int kind) {
  unsigned char bytes[8192];
  struct tcp_info info;
  socklen_t info_size = sizeof info;
  size_t size = 0;
  while (count_packets(bytes, size, kind) < BURST) {
    ssize_t more = recv(c, bytes + size, sizeof bytes - size, 0);
    CHECK(more > 0);
    size += (size_t)more;
  }
  CHECK_EQ(getsockopt(c, IPPROTO_TCP, TCP_INFO, &info, &info_size), 0);
  CHECK(info_size >= offsetof(struct tcp_info, tcpi_data_segs_in) + sizeof info.tcpi_data_segs_in);
  return (int)info.tcpi_data_segs_in;
}

static gate may_accept = GATE_INIT;
static int segments_of_publications, segments_of_answers;

/* A broker that accepts a connection, receives a burst of publications, and then sends the same
 * number of messages in one TCP segment. */
THREAD(serve_bursts, void *context) {
  static const char message[] = "\x32\x13\0\x0dmulticast/n/1\0\1\0x";
  server *s = context;
  char bytes[BURST * (sizeof message - 1)];
  int c = accept(s->listener, NULL, NULL), i;
  CHECK(c >= 0);
  CHECK(recv(c, bytes, sizeof bytes, 0) > 0);
  gate_wait(&may_accept);
  CHECK_EQ(send(c, "\x20\x03\0\0\0", 5, MSG_NOSIGNAL), 5);
  segments_of_publications = receive_burst(c, PUBLISH);
  for (i = 0; i < BURST; ++i) {
    char *packet = bytes + (size_t)i * (sizeof message - 1);
    memcpy(packet, message, sizeof message - 1);
    packet[18] = (char)(i + 1); /* the identifier */
  }
  CHECK_EQ(send(c, bytes, sizeof bytes, MSG_NOSIGNAL), (ssize_t)sizeof bytes);
  segments_of_answers = receive_burst(c, PUBACK) - segments_of_publications;
  server_drain(c);
}

/* Packets must share TCP segments, because sending one segment per packet would take most of the
 * processor time. */
TEST(packets_go_out_together) {
  server s;
  peer p;
  int calls = 0;
  server_start(&s, serve_bursts);
  peer_begin(&p, s.port, &OPTIONS(.qos = 1));
  CHECK_OK(multicast_broadcaster_register(p.broadcaster, "n", counter(&calls), NULL, NULL));
  CHECK_OK(p.transport.subscribe(p.transport.context, "n"));
  for (int i = 0; i < BURST; ++i) CHECK_OK(peer_publish(&p, "n", 1, &i, sizeof i));
  gate_open(&may_accept);
  EVENTUALLY(LOAD(calls) == BURST);
  peer_release(&p);
  server_end(&s);
  /* Usually the broker receives 3 segments before the acknowledgements. These segments contain the
   * CONNECT packet, the subscription, and all publications. The acknowledgements need 2 segments,
   * because the first of them is sent immediately, and the others are sent together. On a busy
   * machine there are some more segments, because the system sends delayed data after 200 ms. */
  if (segments_of_publications > BURST / 2) CHECK_EQ(segments_of_publications, 3);
  if (segments_of_answers > BURST / 2) CHECK_EQ(segments_of_answers, 2);
}

/* ---- Questions ------------------------------------------------------------------------------- */

static const uint64_t a_while = 200000000u, ten_seconds = 10000000000u;

#define PUB "mosquitto_pub -h 127.0.0.1 -p $PORT -V 5 -q 1 "
#define RESPONSE "-D publish response-topic "
#define NUMBER "-D publish correlation-data "

/* mosquitto_sub receives the question, and mosquitto_pub answers it. */
TEST_OF_BROKER(other_programs_answer, NULL) {
  SCOPED peer p;
  asking a = {&p, 1, {.enough = 1}, 0};
  peer_connect_reliably(&p, b->port);
  broker_run(b, SUB "-t 'multicast/%?q/#' -E");
  pthread_t thread = start_asking(&a);
  broker_run(b, SUB "-t 'multicast/%?q/#' -C 1 -F '%t %R %D' >asked && "
                "read -r topic reply number <asked && [ $topic = 'multicast/%?q/7' ] && "
                PUB NUMBER "$number -t $reply -m rain");
  join_thread(thread);
  CHECK_OK(a.result);
  CHECK_TEXT(a.t.each[0].payload, "rain");
}

TEST_OF_BROKER(other_programs_ask, NULL) {
  SCOPED peer p;
  responder r = {"r", 0, 0};
  peer_connect_with(&p, b->port, &OPTIONS(.flags = MULTICAST_MQTT_PLAIN));
  peer_answer(&p, "q", &r);
  broker_run(b, "mosquitto_rr -h 127.0.0.1 -p $PORT -V 5 -t 'multicast/%?q/7' -m what -W 20 "
                "-e multicast/%=00000000000000FF >$FOLDER/out; "
                "printf 'r:7:what\n' | diff - $FOLDER/out");
}

TEST_OF_BROKER(questions_that_are_none_are_ignored, NULL) {
  static const char *const commands[] = {
      PUB "-t 'multicast/%?q/7' -m x",
      PUB RESPONSE "multicast/%=00000000000000ff -t 'multicast/%?q/7' -m x",
      PUB RESPONSE "multicast/%=0000000000000000 -t 'multicast/%?q/7' -m x",
      PUB RESPONSE "multicast/%=00000000000000FF/x -t 'multicast/%?q/7' -m x",
      PUB RESPONSE "multicast/%=FF -t 'multicast/%?q/7' -m x",
      PUB RESPONSE "multicasu/%=00000000000000FF -t 'multicast/%?q/7' -m x",
      PUB RESPONSE "multicast/%=00000000000000FF -t 'multicast/%?q/07' -m x",
      PUB RESPONSE "multicast/%=00000000000000FF -t 'multicast/%?q/7/8' -m x",
  };
  enum { COUNT = sizeof commands / sizeof *commands };
  SCOPED peer p;
  responder r = {"r", 0, 0};
  /* The library ignores questions that the broker has retained. */
  broker_run(b, PUB RESPONSE "multicast/%=00000000000000FF -t 'multicast/%?q/7' -m old -r");
  peer_connect_with(&p, b->port, &OPTIONS(.qos = 1));
  peer_answer(&p, "q", &r);
  for (int i = 0; i < COUNT; ++i) broker_run(b, commands[i]);
  broker_run(b, PUB RESPONSE "multicast/%=00000000000000FF -t 'multicast/%?q/7' -m x");
  EVENTUALLY(peer_stats(&p).received == COUNT + 1);
  EVENTUALLY(LOAD(r.calls) == 1);
  CHECK_EQ(peer_stats(&p).ignored, COUNT);
}

TEST_OF_BROKER(answers_that_are_none_are_ignored, NULL) {
  static const char *const commands[] = {
      PUB "-t multicast/%%=%016llX -m x",
      PUB NUMBER "1 -t multicast/%%=%016llX -m x",
      PUB NUMBER "00000000000000FF -t multicast/%%=%016llX -m x",
      PUB NUMBER "000000000000000x -t multicast/%%=%016llX -m x",
      PUB NUMBER "00000000000000001 -t multicast/%%=%016llX -m x",
      "printf '\\223MC\\002' | " PUB NUMBER "0000000000000001 -t multicast/%%=%016llX -s",
  };
  enum { COUNT = sizeof commands / sizeof *commands };
  SCOPED peer here, there;
  transport_question kept = {0, 0, 0};
  asking a = {&here, 1, {.enough = 1}, 0};
  peer_connect_to(&here, b);
  peer_connect_to(&there, b);
  CHECK_OK(multicast_mqtt_answer(&there.transport, "q", keep_question, &kept, NULL));
  peer_flush(&there);
  pthread_t thread = start_asking(&a);
  EVENTUALLY(LOAD(kept.transport) != 0);
  for (int i = 0; i < COUNT; ++i) {
    char command[300];
    snprintf(command, sizeof command, commands[i], (unsigned long long)kept.peer);
    broker_run(b, command);
  }
  EVENTUALLY(peer_stats(&here).ignored == COUNT);
  CHECK_OK(multicast_mqtt_reply(&kept, "right", 5));
  join_thread(thread);
  CHECK_OK(a.result);
  CHECK_EQ(a.t.count, 1);
  CHECK_TEXT(a.t.each[0].payload, "right");
}

TEST_OF_BROKER(mqtt_3_1_1_has_no_questions, NULL) {
  SCOPED peer here, there;
  responder r = {"r", 0, 0};
  told t = {0};
  peer_connect_with(&here, b->port, &OPTIONS(.protocol = 4));
  peer_connect_to(&there, b);
  peer_answer(&here, "q", &r);
  CHECK_ERROR(ask(&here, &t, "q", "", ten_seconds), STATE);
  CHECK_ERROR(ask(&there, &t, "q", "", a_while), TIMEOUT);
  CHECK_EQ(peer_stats(&here).ignored, 1);
  CHECK_EQ(LOAD(r.calls), 0);
}

TEST_OF_BROKER(questions_have_each_quality_of_service, NULL) {
  for (uint32_t qos = 0; qos <= 2; ++qos) {
    SCOPED peer here, there;
    responder r = {"r", 0, 0};
    told t = {.enough = 1};
    peer_connect_with(&here, b->port, &OPTIONS(.qos = qos));
    peer_connect_with(&there, b->port, &OPTIONS(.qos = qos));
    CHECK_ERROR(ask(&here, &t, "q", "", MULTICAST_FOREVER), NOT_FOUND);
    peer_answer(&there, "q", &r);
    for (int i = 0; i < 50; ++i) CHECK_OK(ask(&here, &t, "q", "", ten_seconds));
    peer_flush(&here);
    CHECK_EQ(peer_stats(&here).sent, 51);
    peer_release(&there);
  }
}

TEST_OF_BROKER(refused_questions_are_told, "allow_anonymous true") {
  SCOPED peer p;
  told t = {0};
  broker_end(b, SIGTERM);
  broker_run(b, "printf 'topic readwrite other/#\n' >$FOLDER/acl && "
                "echo acl_file $FOLDER/acl >>$FOLDER/conf");
  broker_start_again(b);
  peer_connect_to(&p, b);
  CHECK_ERROR(ask(&p, &t, "q", "", MULTICAST_FOREVER), STATE);
  EVENTUALLY(LOAD(p.publications_refused) == 1);
  CHECK_EQ(peer_stats(&p).rejected, 1);
}

/* A broker that accepts connections, refuses subscriptions, and closes a connection when it
 * receives a question. */
THREAD(serve_no_question, server *s) {
  while (!LOAD(s->has_to_end)) {
    char request[512];
    ssize_t size;
    int c = accept(s->listener, NULL, NULL);
    if (c < 0) break;
    ADD(s->connections, 1);
    if (recv(c, request, sizeof request, 0) > 0) server_send(c, "\x20\x03\0\0\0", 5);
    while ((size = recv(c, request, sizeof request, 0)) > 0) {
      char answer[] = "\x90\x04\0\0\0\x87";
      memcpy(answer + 2, request + 2, 2);
      if (request[0] == (char)0x82) server_send(c, answer, 6);
      if (memmem(request, (size_t)size, "%?q/7", 5) != NULL) break;
    }
    close(c);
  }
}

/* The question ends when the connection ends. However, libmosquitto sends the question's message
 * again on the next connection, so the message is counted in `sending` until the broker accepts
 * it. */
TEST(question_that_was_not_taken_ends_with_the_connection) {
  server s;
  peer p;
  told t = {0};
  server_start(&s, serve_no_question);
  peer_connect_with(&p, s.port, NULL);
  CHECK_ERROR(ask(&p, &t, "q", "", MULTICAST_FOREVER), STATE);
  EVENTUALLY(LOAD(p.lost) >= 1);
  CHECK_EQ(peer_stats(&p).sending, 1);
  CHECK_EQ(peer_stats(&p).dropped, 0);
  EVENTUALLY(LOAD(p.subscriptions_refused) >= 1);
  CHECK_TEXT(p.refusal, "answers: Not authorized");
  peer_release(&p);
  server_end(&s);
}

/* An earlier process with the same client identifier has answered questions about the name. This
 * process does not answer such questions, so it must unsubscribe from them. */
TEST_OF_BROKER(question_of_an_earlier_session_is_taken_back, NULL) {
  SCOPED peer here;
  told t = {0};
  int arrived = 0;
  peer_connect_to(&here, b);
  for (int i = 0; i < 2; ++i) {
    SCOPED peer there;
    peer_connect_with(&there, b->port, &OPTIONS(.qos = 1, .client_id = "collector",
                                                .session_expiry_s = 60));
    if (i == 0) {
      CHECK_OK(multicast_mqtt_answer(&there.transport, "q", keep_question, &arrived, NULL));
      peer_flush(&there);
      peer_release(&there);
      CHECK_ERROR(ask(&here, &t, "q", "", a_while), TIMEOUT); /* the broker stores the question */
      continue;
    }
    CHECK_OK(there.transport.subscribe(there.transport.context, "another"));
    EVENTUALLY(peer_stats(&there).ignored == 1);
    EVENTUALLY(ask(&here, &t, "q", "", a_while) == MULTICAST_ERROR_NOT_FOUND);
  }
}

/* Each process receives its answers through a different topic. The broker's session must not
 * accumulate subscriptions to these topics. */
TEST_OF_BROKER(session_does_not_keep_where_answers_come, "allow_anonymous true\nsys_interval 1") {
  for (int i = 0; i < 3; ++i) {
    SCOPED peer p;
    told t = {0};
    peer_connect_with(&p, b->port, &OPTIONS(.client_id = "asker", .session_expiry_s = 60));
    CHECK_ERROR(ask(&p, &t, "q", "", ten_seconds), NOT_FOUND);
  }
  pause_ms(2500); /* until the broker has updated its counts */
  broker_run(b, "test \"$(mosquitto_sub -h 127.0.0.1 -p $PORT -C 1 "
                "-t '$SYS/broker/subscriptions/count')\" -le 1");
}
