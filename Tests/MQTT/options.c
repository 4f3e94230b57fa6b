/* Options that libmulticast-mqtt refuses. */

#include "broker.h"

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
  /* This cannot be read. */
  bad = good;
  bad.flags = 0x20;
  p.releases = 0;
  CHECK_STATUS(multicast_mqtt_connect(&bad, &p.transport), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(p.releases, 0);
  CHECK_OK(multicast_broadcaster_destroy(p.broadcaster));
}

TEST(host_is_this_machine_if_none_is_given) {
  peer p;
  multicast_mqtt_options options = peer_options(&p, free_port());
  options.host = NULL;
  CHECK_OK(multicast_mqtt_connect(&options, &p.transport));
  EVENTUALLY(LOAD(p.refused) >= 1); /* nothing listens at the port */
  peer_release(&p);
}

TEST(host_that_is_none_is_refused) {
  static char host[71]; /* a part of a name has 63 bytes at most */
  peer p;
  multicast_mqtt_options options = peer_options(&p, 1);
  memset(host, 'a', sizeof host - 1);
  options.host = host;
  expect_refusal(&options, &p, "");
  CHECK(p.reason[0] != '\0');
}
