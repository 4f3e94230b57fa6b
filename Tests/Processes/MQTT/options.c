/* Tests options that libmulticast-mqtt uses or refuses. */

#include "../Transports/Harness/broker.h"

TEST(options_that_are_wrong_are_refused) {
  static char long_text[70000];
  peer p;
  multicast_mqtt_options good = peer_options(&p, 1), bad;
  memset(long_text, 'a', sizeof long_text - 1);
#define BAD(field, value) \
  bad = good; \
  bad.field = value; \
  expect_invalid(&bad, &p, MULTICAST_ERROR_INVALID_ARGUMENT)
  BAD(host, "");
  BAD(port, 65536);
  BAD(protocol, 3);
  BAD(protocol, 6);
  BAD(client_id, "");
  BAD(client_id, "\xff");
  BAD(client_id, long_text);
  BAD(topic_prefix, "");
  BAD(topic_prefix, "$share");
  BAD(topic_prefix, "a/+");
  BAD(topic_prefix, "#");
  BAD(topic_prefix, "\xff");
  BAD(topic_prefix, long_text + sizeof long_text - 1 - 201);
  memset(long_text, '/', 199);
  long_text[199] = '\0';
  BAD(topic_prefix, long_text);
  BAD(password, "secret");
  BAD(user, "\xff");
  BAD(cert_file, "client.crt");
  BAD(key_file, "client.key");
  BAD(qos, 3);
  BAD(keep_alive_s, 4);
  BAD(keep_alive_s, 65536);
  BAD(max_payload, (1u << 28) - 1023);
  bad = good;
  bad.cert_file = bad.key_file = "client";
  expect_invalid(&bad, &p, MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_OK(multicast_broadcaster_destroy(p.broadcaster));
}

TEST(host_is_this_machine_if_none_is_given) {
  SCOPED peer p;
  multicast_mqtt_options options = peer_options(&p, free_port());
  options.host = NULL;
  CHECK_OK(multicast_mqtt_connect(&options, &p.transport));
  EVENTUALLY(LOAD(p.refused) >= 1); /* nobody listens on the port */
}

TEST(host_that_is_none_is_refused) {
  static char host[71]; /* a part of a host name has at most 63 bytes */
  peer p;
  multicast_mqtt_options options = peer_options(&p, 1);
  memset(host, 'a', sizeof host - 1);
  options.host = host;
  expect_refusal(&options, &p, "");
  CHECK(p.reason[0] != '\0');
}

/* ---- Random options -------------------------------------------------------------------------- */

static char long_text[70000];

/* Usually returns `good`, but sometimes a random text. */
static const char *draw_text(const char *good) {
  static const char *const texts[] = {NULL, "", "a", "\xff", "a/+", "#", "$share", "\x01",
                                      "/dev/null"};
  uint32_t which = draw(30);
  if (which == 29) return long_text;
  return which < sizeof texts / sizeof *texts ? texts[which] : good;
}

/* Usually returns 0, which stands for the default, but sometimes a random number. */
static uint32_t draw_number(void) {
  static const uint32_t numbers[] = {1, 2, 4, 5, 255, 65535, 65536, 1u << 24, 1u << 28, UINT32_MAX};
  uint32_t which = draw(60);
  return which < sizeof numbers / sizeof *numbers ? numbers[which] : 0;
}

static uint64_t draw_time(void) {
  static const uint64_t times[] = {1, 1000, UINT64_C(1) << 62, (UINT64_C(1) << 62) + 1, UINT64_MAX};
  uint32_t which = draw(40);
  return which < sizeof times / sizeof *times ? times[which] : 0;
}

TEST(any_options_are_used_or_refused) {
  enum { ROUNDS = 1000 };
  int port = free_port(), round, connections = 0, refusals = 0;
  multicast_queue queue = multicast_queue_create(NULL);
  memset(long_text, 'a', sizeof long_text - 1);
  for (round = 0; round < ROUNDS; ++round) {
    peer p;
    multicast_mqtt_options o = peer_options(&p, port);
    /* Do not use host names that the system would have to resolve. */
    if (draw(30) == 0) o.host = "";
    if (draw(30) == 0) o.port = draw_number();
    if (draw(30) == 0) o.broadcaster.id = draw(2);
    if (draw(30) == 0) o.queue.id = draw(2) == 0 ? 1 : queue.id;
    o.flags = draw(32);
    o.protocol = draw_number();
    o.client_id = draw_text(NULL);
    o.topic_prefix = draw_text("prefix");
    o.user = draw_text("user");
    o.password = draw_text(NULL);
    o.ca_file = draw_text(NULL);
    o.ca_path = draw_text(NULL);
    o.cert_file = draw_text(NULL);
    o.key_file = draw_text(NULL);
    o.key_password = draw_text(NULL);
    o.qos = draw_number();
    o.keep_alive_s = draw_number();
    o.session_expiry_s = draw_number();
    o.capacity = draw_number();
    o.overflow = draw_number();
    o.max_payload = draw_number();
    o.reconnect_min_ns = draw_time();
    o.reconnect_max_ns = draw_time();
    o.connect_timeout_ns = draw_time();
    memset(&p.transport, 0xff, sizeof p.transport);
    multicast_status status = multicast_mqtt_connect(&o, &p.transport);
    if (status == MULTICAST_OK) {
      ++connections;
      peer_publish(&p, "n", 1, "x", 1);
      p.transport.release(p.transport.context);
    } else {
      ++refusals;
      CHECK(status == MULTICAST_ERROR_INVALID_ARGUMENT ||
            status == MULTICAST_ERROR_INVALID_HANDLE || status == MULTICAST_ERROR_SYSTEM);
      CHECK_EQ(p.releases, 1);
      CHECK(p.transport.publish == NULL && p.transport.context == NULL);
    }
    EVENTUALLY(LOAD(p.releases) == 1);
    CHECK_OK(multicast_broadcaster_destroy(p.broadcaster));
  }
  CHECK(connections > ROUNDS / 50);
  CHECK(refusals > ROUNDS / 10);
}
