/* For each library: options that all transports have, and what is not read. */

#include "broker.h"

TEST(common_options_that_are_wrong_are_refused) {
  peer p;
  transport_options good = peer_options(&p, 1), bad;
#define BAD(field, value) \
  bad = good; \
  bad.field = value; \
  expect_invalid(&bad, &p, MULTICAST_ERROR_INVALID_ARGUMENT)
  BAD(capacity, (1u << 24) + 1);
  BAD(overflow, MULTICAST_OVERFLOW_BLOCK);
  BAD(overflow, 3);
  BAD(reconnect_min_ns, 300000000);
  BAD(reconnect_max_ns, UINT64_MAX);
  BAD(connect_timeout_ns, UINT64_MAX);
#undef BAD
  bad = good;
  bad.broadcaster.id = 0;
  expect_invalid(&bad, &p, MULTICAST_ERROR_INVALID_HANDLE);
  bad = good;
  bad.queue.id = 12345;
  expect_invalid(&bad, &p, MULTICAST_ERROR_INVALID_HANDLE);
  p.releases = 0;
  CHECK_STATUS(transport_connect(&good, NULL), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(p.releases, 1);
  CHECK_OK(multicast_broadcaster_destroy(p.broadcaster));
}

static void expect_unread(const transport_options *options, peer *p) {
  p->releases = 0;
  CHECK_STATUS(transport_connect(options, &p->transport), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(p->releases, 0);
}

TEST(options_that_cannot_be_read_release_nothing) {
  peer p;
  transport_options good = peer_options(&p, 1), bad;
  struct {
    transport_options options;
    uint64_t unknown;
  } larger = {good, 1};
  expect_unread(NULL, &p);
  bad = good;
  bad.flags = 0x80000000u;
  expect_unread(&bad, &p);
  bad = good;
  bad.struct_size = sizeof bad - 1;
  expect_unread(&bad, &p);
  bad.struct_size = 1025;
  expect_unread(&bad, &p);
  larger.options.struct_size = sizeof larger;
  expect_unread(&larger.options, &p);
  larger.unknown = 0;
  CHECK_OK(transport_connect(&larger.options, &p.transport));
  peer_release(&p);
}
