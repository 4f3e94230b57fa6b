/* Tests options that libmulticast-nats refuses. */

#include "../Transports/Harness/broker.h"

TEST(options_that_are_wrong_are_refused) {
  static const char *const servers[] = {
      "",           ",",           "nats://",     "nats://a,",   "http://a",  "a b",
      "a:",         "a:0",         "a:65536",     "a:x",         "a:1x",      ":4222",
      "nats://u@",  "nats://:1",   "a,,b",        "\xc3\xa4",    "a\n",       "nats://a:123456",
      "nats://u:\"@a", "nats://u:\\@a"};
  static const char *const prefixes[] = {"",   ".",   "a.",  ".a",  "a..b",    "a.*",
                                         ">",  "a b", "a\t", "a.>", "\xc3\xa4"};
  static char long_text[1000];
  peer p;
  transport_options good = peer_options(&p, 1), bad;
#define BAD(field, value) \
  bad = good; \
  bad.field = value; \
  expect_invalid(&bad, &p, MULTICAST_ERROR_INVALID_ARGUMENT)
  for (size_t i = 0; i < sizeof servers / sizeof *servers; ++i) {
    BAD(servers, servers[i]);
  }
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; ++i) {
    BAD(subject_prefix, prefixes[i]);
  }
  memset(long_text, 'a', 201);
  BAD(subject_prefix, long_text);
  for (int i = 0; i < 129; i += 2) memcpy(long_text + i, "a,", 3);
  long_text[129] = '\0'; /* 65 addresses */
  BAD(servers, long_text);
  BAD(user, "anna");
  BAD(password, "secret");
  BAD(cert_file, "client.crt");
  BAD(key_file, "client.key");
  BAD(ping_interval_s, 65536);
  BAD(max_payload, (1u << 28) + 1);
  bad = good;
  bad.user = bad.password = bad.token = "a";
  expect_invalid(&bad, &p, MULTICAST_ERROR_INVALID_ARGUMENT);
  bad = good;
  bad.cert_file = bad.key_file = "/missing";
  expect_invalid(&bad, &p, MULTICAST_ERROR_SYSTEM);
  CHECK_OK(multicast_broadcaster_destroy(p.broadcaster));
}

TEST(addresses_that_are_right_are_tried) {
  static const char *const servers[] = {
      "localhost",  "localhost:1",           "nats://localhost", "nats://u:p@127.0.0.1:1",
      "[::1]:1",    "nats://[::1]",          "127.0.0.1:1,nats://localhost:1",
      "127.0.0.1:65535"};
  for (size_t i = 0; i < sizeof servers / sizeof *servers; ++i) {
    peer p;
    peer_begin(&p, 1, &OPTIONS(.servers = servers[i]));
    EVENTUALLY(LOAD(p.refused) + LOAD(p.connected) >= 1);
    peer_release(&p);
  }
}

TEST(server_is_on_this_machine_if_none_is_given) {
  SCOPED peer p;
  transport_options options = peer_options(&p, 1);
  options.servers = NULL;
  CHECK_OK(multicast_nats_connect(&options, &p.transport));
  EVENTUALLY(LOAD(p.refused) + LOAD(p.connected) >= 1);
}

TEST_OF_BROKER(time_to_connect_may_be_as_long_as_it_can, NULL) {
  SCOPED peer p;
  peer_connect_with(&p, b->port, &OPTIONS(.connect_timeout_ns = (uint64_t)1 << 62));
}
