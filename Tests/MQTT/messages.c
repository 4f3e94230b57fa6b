/* What is published arrives elsewhere as it was sent. */

#include "broker.h"

#include "../../Sources/MulticastMQTT/mqtt.h"

static void expect_arrival(uint32_t qos, uint32_t protocol) {
  broker b;
  peer here, there;
  record *r = record_create();
  multicast_mqtt_options options;
  broker_start(&b, NULL);
  options = peer_options(&here, b.port);
  options.qos = qos;
  options.protocol = protocol;
  peer_connect(&here, &options);
  options = peer_options(&there, b.port);
  options.qos = qos;
  peer_connect(&there, &options);
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
  free(r);
}

TEST(notification_arrives_with_qos_0) { expect_arrival(0, 5); }
TEST(notification_arrives_with_qos_1) { expect_arrival(1, 5); }
TEST(notification_arrives_with_qos_2) { expect_arrival(2, 5); }
TEST(notification_arrives_by_mqtt_3_1_1) { expect_arrival(1, 4); }

static void expect_no_echo(uint32_t protocol) {
  broker b;
  peer here, there;
  record *own = record_create(), *other = record_create();
  multicast_mqtt_options options;
  broker_start(&b, NULL);
  options = peer_options(&here, b.port);
  options.protocol = protocol;
  peer_connect(&here, &options);
  peer_connect_to(&there, &b, 0);
  peer_observe(&here, "n", recorder(own));
  peer_observe(&there, "n", recorder(other));
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  record_wait(other, 1);
  /* What comes after it has passed it. */
  CHECK_OK(peer_publish(&there, "n", 2, "y", 1));
  record_wait(own, 1);
  CHECK(record_is(own, 2, "y", 1));
  CHECK_EQ(peer_stats(&here).echoes, protocol == 5 ? 0 : 1);
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
  free(own);
  free(other);
}

TEST(own_publications_do_not_come_back) { expect_no_echo(5); }
TEST(own_publications_do_not_come_back_by_mqtt_3_1_1) { expect_no_echo(4); }

TEST(payloads_of_0_to_1_mib_arrive) {
  static const size_t sizes[] = {0, 1, 2, 15, 16, 17, 127, 128, 16383, 65536, 65537, 1 << 20};
  static unsigned char payload[1 << 20];
  broker b;
  peer here, there;
  record *r = record_create();
  size_t i, at;
  broker_start(&b, NULL);
  peer_connect_to(&here, &b, 1);
  peer_connect_to(&there, &b, 1);
  peer_observe(&there, "n", recorder(r));
  for (i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    for (at = 0; at < sizes[i]; ++at) payload[at] = (unsigned char)(at * 7 + i);
    CHECK_OK(peer_publish(&here, "n", (uint32_t)i, payload, sizes[i]));
    record_wait(r, (int)i + 1);
    CHECK(record_is(r, (uint32_t)i, payload, sizes[i]));
  }
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
  free(r);
}

/* The header, of this library and of later versions, as a payload. */
static const unsigned char looks_like_ours[] = {0x93, 0x4d, 0x43, 1, 0, 0, 0, 0, 1,
                                                2,    3,    4,    5, 6, 7, 8, 9};
static const unsigned char looks_later[] = {0x93, 0x4d, 0x43, 2, 0};

static void expect_any_payload(uint32_t flags) {
  broker b;
  peer here, there;
  record *r = record_create();
  multicast_mqtt_options options;
  broker_start(&b, NULL);
  options = peer_options(&here, b.port);
  options.flags = flags;
  peer_connect(&here, &options);
  peer_connect_to(&there, &b, 0);
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
  free(r);
}

TEST(payload_that_looks_like_a_message_arrives) { expect_any_payload(0); }
TEST(plain_payload_that_looks_like_a_message_arrives) { expect_any_payload(MULTICAST_MQTT_PLAIN); }

/* A name of so many bytes, which begins with any of the 255. */
static void write_name(char *name, int size, int first) {
  int i;
  for (i = 0; i < size; ++i) name[i] = (char)(1 + (first + i) % 255);
  name[size] = '\0';
}

TEST(names_of_all_lengths_and_bytes_arrive) {
  broker b;
  peer here, there;
  record *r = record_create();
  char name[256];
  int size;
  broker_start(&b, NULL);
  peer_connect_to(&here, &b, 0);
  peer_connect_to(&there, &b, 0);
  for (size = 1; size <= 255; ++size) {
    write_name(name, size, size * 3);
    CHECK_OK(multicast_broadcaster_register(there.broadcaster, name, recorder(r), NULL, NULL));
    CHECK_OK(there.transport.subscribe(there.transport.context, name));
  }
  peer_flush(&there);
  CHECK_EQ(peer_stats(&there).names, 255);
  for (size = 1; size <= 255; ++size) {
    write_name(name, size, size * 3);
    CHECK_OK(peer_publish(&here, name, (uint32_t)size, name, (size_t)size));
    record_wait(r, size);
    CHECK(record_is(r, (uint32_t)size, name, (size_t)size));
  }
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
  free(r);
}

TEST(names_that_differ_do_not_meet) {
  static const char *const names[] = {"a", "a/b", "a/+", "a/#", "+", "#", "$SYS", "%41", "A", "a ",
                                      "a%2Fb", "\xc3\xa4", "\xff", "\x01", "/", "//", "a/1"};
  enum { COUNT = sizeof names / sizeof *names };
  broker b;
  peer here, there;
  record *records[COUNT];
  int i, k;
  broker_start(&b, NULL);
  peer_connect_to(&here, &b, 1);
  peer_connect_to(&there, &b, 1);
  for (i = 0; i < COUNT; ++i) {
    records[i] = record_create();
    peer_observe(&there, names[i], recorder(records[i]));
  }
  for (i = 0; i < COUNT; ++i) {
    CHECK_OK(peer_publish(&here, names[i], 1, names[i], strlen(names[i])));
    record_wait(records[i], 1);
    CHECK(record_is(records[i], 1, names[i], strlen(names[i])));
    for (k = i + 1; k < COUNT; ++k) CHECK_EQ(records[k]->count, 0);
  }
  peer_release(&here);
  peer_release(&there);
  for (i = 0; i < COUNT; ++i) CHECK_EQ(records[i]->count, 1);
  for (i = 0; i < COUNT; ++i) free(records[i]);
  broker_delete(&b);
}

TEST(events_of_all_sizes_arrive) {
  static const uint32_t events[] = {0, 1, 9, 10, 99, 4294967294u, 4294967295u};
  broker b;
  peer here, there;
  record *r = record_create();
  size_t i;
  broker_start(&b, NULL);
  peer_connect_to(&here, &b, 0);
  peer_connect_to(&there, &b, 0);
  peer_observe(&there, "n", recorder(r));
  for (i = 0; i < sizeof events / sizeof *events; ++i) {
    CHECK_OK(peer_publish(&here, "n", events[i], NULL, 0));
    record_wait(r, (int)i + 1);
    CHECK(record_is(r, events[i], NULL, 0));
  }
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
  free(r);
}

/* ---- Topics, without a broker ---------------------------------------------------------------- */

TEST(topics_are_read_back) {
  char topic[ADDRESS_MAX_SIZE], name[NAME_MAX_SIZE + 1], again[NAME_MAX_SIZE + 1];
  uint32_t event;
  size_t written;
  int size, first;
  for (size = 1; size <= 255; size += 2) {
    for (first = 0; first < 255; first += 5) {
      write_name(name, size, first);
      written = coding_write(&topic_coding, topic, "a/b", name, (uint32_t)first);
      CHECK_EQ(written, strlen(topic));
      CHECK(coding_read(&topic_coding, topic, "a/b", again, &event));
      CHECK_EQ(event, first);
      CHECK_TEXT(again, name);
    }
  }
  write_name(name, 255, 0);
  CHECK_EQ(coding_write(&topic_coding, topic, "p", "", 1), 0);
}

TEST(topic_of_another_spelling_is_none) {
  static const char *const topics[] = {
      "",         "p",          "p/",       "p//1",      "q/a/1",      "pp/a/1",    "p/a/",
      "p/a/01",   "p/a/1/",     "p/a/1/2",  "p/a/x",     "p/a/-1",     "p/a/+",
      "p/a/4294967296",
      "p/a/ 1",   "p/%61/1",    "p/%/1",    "p/%2/1",    "p/%2f/1",    "p/%00/1",   "p/%GG/1",
      "p/\x01/1", "p/\xc3\xa4/1", "p/%2",   "p/a%",      "p/$a/1",     "p/a#/1",    "p/a+/1",
      "p/a/99999999999999999999", "P/a/1"};
  char name[NAME_MAX_SIZE + 1], topic[ADDRESS_MAX_SIZE];
  uint32_t event;
  size_t i;
  for (i = 0; i < sizeof topics / sizeof *topics; ++i) {
    if (coding_read(&topic_coding, topics[i], "p", name, &event))
      check_failed(__FILE__, __LINE__, topics[i], "was read");
  }
  CHECK(coding_read(&topic_coding, "p/%2F%25/0", "p", name, &event));
  CHECK_TEXT(name, "/%");
  CHECK(coding_read(&topic_coding, "p/a", "p", name, &event));
  CHECK_EQ(event, 0);
  /* A name of 256 bytes. */
  memset(topic, 'a', 258);
  memcpy(topic, "p/", 2);
  topic[258] = '\0';
  CHECK(!coding_read(&topic_coding, topic, "p", name, &event));
}

/* What can be read is written in the same way. */
TEST(each_topic_has_one_spelling) {
  static const char bytes[] = "p/%0123456789ABCDEFaf+#$ \x01\x7f\xc3/%p";
  char topic[32], again[ADDRESS_MAX_SIZE], name[NAME_MAX_SIZE + 1];
  unsigned seed = 1;
  int round, read = 0;
  for (round = 0; round < 2000000; ++round) {
    uint32_t event;
    size_t size, i;
    seed = seed * 1103515245u + 12345u;
    size = 3 + (seed >> 16) % 12;
    memcpy(topic, "p/", 2);
    for (i = 2; i < size; ++i) {
      seed = seed * 1103515245u + 12345u;
      topic[i] = bytes[(seed >> 16) % (sizeof bytes - 1)];
    }
    topic[size] = '\0';
    if (!coding_read(&topic_coding, topic, "p", name, &event)) continue;
    ++read;
    CHECK(coding_write(&topic_coding, again, "p", name, event) > 0);
    if (strchr(topic + 2, '/') == NULL) strcat(topic, "/0");
    CHECK_TEXT(again, topic);
  }
  CHECK(read > 1000);
}
