/* Options that libmulticast-mqtt refuses. */

#include "broker.h"

static void expect_invalid(const multicast_mqtt_options *options, peer *p,
                           multicast_status expected) {
  memset(&p->transport, 0xff, sizeof p->transport);
  p->releases = 0;
  CHECK_STATUS(multicast_mqtt_connect(options, &p->transport), expected);
  CHECK_EQ(p->releases, 1);
  CHECK(p->transport.publish == NULL && p->transport.context == NULL);
}

TEST(options_that_are_wrong_are_refused) {
  static char long_text[70000];
  peer p;
  multicast_mqtt_options good = peer_options(&p, 1), bad;
  struct {
    multicast_mqtt_options options;
    uint64_t unknown;
  } larger;
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
  BAD(capacity, (1u << 24) + 1);
  BAD(overflow, MULTICAST_OVERFLOW_BLOCK);
  BAD(overflow, 3);
  BAD(max_payload, (1u << 28) - 1023);
  BAD(reconnect_min_ns, 300000000);
  BAD(reconnect_max_ns, UINT64_MAX);
  BAD(connect_timeout_ns, UINT64_MAX);
  bad = good;
  bad.cert_file = bad.key_file = "client";
  expect_invalid(&bad, &p, MULTICAST_ERROR_INVALID_ARGUMENT);
  bad = good;
  bad.broadcaster.id = 0;
  expect_invalid(&bad, &p, MULTICAST_ERROR_INVALID_HANDLE);
  bad = good;
  bad.queue.id = 12345;
  expect_invalid(&bad, &p, MULTICAST_ERROR_INVALID_HANDLE);
  p.releases = 0;
  CHECK_STATUS(multicast_mqtt_connect(&good, NULL), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(p.releases, 1);
  /* These cannot be read. */
  p.releases = 0;
  CHECK_STATUS(multicast_mqtt_connect(NULL, &p.transport), MULTICAST_ERROR_INVALID_ARGUMENT);
  bad = good;
  bad.flags = 0x20;
  CHECK_STATUS(multicast_mqtt_connect(&bad, &p.transport), MULTICAST_ERROR_INVALID_ARGUMENT);
  bad = good;
  bad.struct_size = sizeof bad - 1;
  CHECK_STATUS(multicast_mqtt_connect(&bad, &p.transport), MULTICAST_ERROR_INVALID_ARGUMENT);
  bad.struct_size = 1025;
  CHECK_STATUS(multicast_mqtt_connect(&bad, &p.transport), MULTICAST_ERROR_INVALID_ARGUMENT);
  larger.options = good;
  larger.options.struct_size = sizeof larger;
  larger.unknown = 1;
  CHECK_STATUS(multicast_mqtt_connect(&larger.options, &p.transport),
               MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(p.releases, 0);
  larger.unknown = 0;
  CHECK_OK(multicast_mqtt_connect(&larger.options, &p.transport));
  peer_release(&p);
}
