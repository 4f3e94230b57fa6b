/* Tests that published messages arrive unchanged at other peers. */

#include "../Transports/Harness/broker.h"

#include "../../../Sources/Transports/MQTT/mqtt.h"

static void expect_arrival(uint32_t qos, uint32_t protocol) {
  broker b;
  peer here, there;
  record *r = record_create();
  broker_start(&b, NULL);
  peer_connect_with(&here, b.port, &OPTIONS(.qos = qos, .protocol = protocol));
  peer_connect_with(&there, b.port, &OPTIONS(.qos = qos));
  CHECK_EQ(peer_stats(&here).protocol, protocol);
  CHECK_EQ(peer_stats(&there).protocol, 5);
  peer_observe(&there, "weather", recorder(r));
  CHECK_OK(peer_publish(&here, "weather", 7, "rain", 4));
  record_wait(r, 1);
  CHECK(record_is(r, 7, "rain", 4));
  peer_flush(&here);
  CHECK_EQ(peer_stats(&here).sent, 1);
  CHECK_EQ(peer_stats(&there).received, 1);
  CHECK_EQ(peer_stats(&there).delivered, 1);
  CHECK_EQ(peer_stats(&there).names, 1);
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}

TEST(notification_arrives_with_qos_0) { expect_arrival(0, 5); }
TEST(notification_arrives_with_qos_1) { expect_arrival(1, 5); }
TEST(notification_arrives_with_qos_2) { expect_arrival(2, 5); }
TEST(notification_arrives_by_mqtt_3_1_1) { expect_arrival(1, 4); }

TEST(own_publications_do_not_come_back_by_mqtt_3_1_1) {
  broker b;
  peer here, there;
  record *own = record_create(), *other = record_create();
  broker_start(&b, NULL);
  peer_connect_with(&here, b.port, &OPTIONS(.protocol = 4));
  peer_connect_to(&there, &b);
  peer_observe(&here, "n", recorder(own));
  peer_observe(&there, "n", recorder(other));
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  record_wait(other, 1);
  /* The arrival of a later message proves that the first message has been processed. */
  CHECK_OK(peer_publish(&there, "n", 2, "y", 1));
  record_wait(own, 1);
  CHECK(record_is(own, 2, "y", 1));
  CHECK_EQ(peer_stats(&here).echoes, 1);
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}

/* The following payloads look like a header of this version or a later version of the library. */
static const unsigned char looks_like_ours[] = {0x93, 0x4d, 0x43, 1, 0, 0, 0, 0, 1,
                                                2,    3,    4,    5, 6, 7, 8, 9};
static const unsigned char looks_later[] = {0x93, 0x4d, 0x43, 2, 0};

static void expect_any_payload(uint32_t flags) {
  broker b;
  peer here, there;
  record *r = record_create();
  broker_start(&b, NULL);
  peer_connect_with(&here, b.port, &OPTIONS(.flags = flags));
  peer_connect_to(&there, &b);
  peer_observe(&there, "n", recorder(r));
  CHECK_OK(peer_publish(&here, "n", 1, looks_like_ours, sizeof looks_like_ours));
  record_wait(r, 1);
  CHECK(record_is(r, 1, looks_like_ours, sizeof looks_like_ours));
  CHECK_OK(peer_publish(&here, "n", 2, looks_later, sizeof looks_later));
  record_wait(r, 2);
  CHECK(record_is(r, 2, looks_later, sizeof looks_later));
  CHECK_OK(peer_publish(&here, "n", 3, "\x93", 1));
  record_wait(r, 3);
  CHECK(record_is(r, 3, "\x93", 1));
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}

TEST(payload_that_looks_like_a_message_arrives) { expect_any_payload(0); }
TEST(plain_payload_that_looks_like_a_message_arrives) { expect_any_payload(MULTICAST_MQTT_PLAIN); }

/* ---- Topics, without a broker ---------------------------------------------------------------- */

TEST(topic_of_another_spelling_is_none) {
  static const char *const topics[] = {
      "",         "p",          "p/",       "p//1",      "q/a/1",      "pp/a/1",    "p/a/",
      "p/a/01",   "p/a/1/",     "p/a/1/2",  "p/a/x",     "p/a/-1",     "p/a/+",
      "p/a/4294967296",
      "p/a/ 1",   "p/%61/1",    "p/%/1",    "p/%2/1",    "p/%2f/1",    "p/%00/1",   "p/%GG/1",
      "p/\x01/1", "p/\xc3\xa4/1", "p/%2",   "p/a%",      "p/$a/1",     "p/a#/1",    "p/a+/1",
      "p/a/99999999999999999999", "P/a/1"};
  char name[NAME_MAX_SIZE + 1];
  uint32_t event;
  for (size_t i = 0; i < sizeof topics / sizeof *topics; ++i) {
    if (coding_read(&topic_coding, topics[i], "p", name, &event))
      check_failed(__FILE__, __LINE__, topics[i], "was read");
  }
  CHECK(coding_read(&topic_coding, "p/%2F%25/0", "p", name, &event));
  CHECK_TEXT(name, "/%");
  CHECK(coding_read(&topic_coding, "p/a", "p", name, &event));
  CHECK_EQ(event, 0);
}
