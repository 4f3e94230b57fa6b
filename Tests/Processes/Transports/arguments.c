/* Tests that calls with wrong arguments return errors and do no harm. */

#include "Harness/broker.h"

static const uint64_t ns_of_second = 1000000000u;

/* ---- Options --------------------------------------------------------------------------------- */

/* If the options cannot be read, connect does not call `release`. */
static void expect_unreadable(const transport_options *options, peer *p) {
  memset(&p->transport, 0xff, sizeof p->transport);
  CHECK_ERROR(transport_connect(options, &p->transport), INVALID_ARGUMENT);
  CHECK_EQ(p->releases, 0);
  CHECK(p->transport.publish == NULL && p->transport.context == NULL);
}

TEST(flags_that_are_unknown_are_refused) {
  peer p;
  transport_options good = peer_options(&p, 1), bad;
  for (int bit = 0; bit < 32; ++bit) {
    bad = good;
    bad.flags = UINT32_C(1) << bit;
    if ((bad.flags & TRANSPORT_FLAGS) == 0) expect_unreadable(&bad, &p);
  }
}

TEST(sizes_of_options_that_are_none_are_refused) {
  static const uint32_t sizes[] = {0, 1, 4, 8, 16, sizeof(transport_options) - 1, 1025, 65536,
                                   UINT32_MAX};
  peer p;
  transport_options bad = peer_options(&p, 1);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    bad.struct_size = sizes[i];
    expect_unreadable(&bad, &p);
  }
  expect_unreadable(NULL, &p);
}

TEST(options_of_a_later_version_are_read_if_the_rest_is_zero) {
  SCOPED peer p;
  struct {
    transport_options options;
    uint64_t unknown;
  } larger = {peer_options(&p, 1), 1};
  larger.options.struct_size = sizeof larger;
  expect_unreadable(&larger.options, &p);
  larger.unknown = 0;
  CHECK_OK(transport_connect(&larger.options, &p.transport));
}

TEST(common_options_that_are_wrong_are_refused) {
  peer p;
  transport_options good = peer_options(&p, 1), bad;
#define BAD(field, value) \
  bad = good; \
  bad.field = value; \
  expect_invalid(&bad, &p, MULTICAST_ERROR_INVALID_ARGUMENT)
  BAD(overflow, 3);
  BAD(reconnect_min_ns, 300000000);
  BAD(reconnect_max_ns, UINT64_MAX);
#ifndef TRANSPORT_HAS_PEERS
  BAD(capacity, (1u << 24) + 1);
  BAD(overflow, MULTICAST_OVERFLOW_BLOCK);
  BAD(connect_timeout_ns, UINT64_MAX);
#endif
#undef BAD
  bad = good;
  bad.broadcaster.id = 0;
  expect_invalid(&bad, &p, MULTICAST_ERROR_INVALID_HANDLE);
  bad = good;
  bad.queue.id = 12345;
  expect_invalid(&bad, &p, MULTICAST_ERROR_INVALID_HANDLE);
  p.releases = 0;
  CHECK_ERROR(transport_connect(&good, NULL), INVALID_ARGUMENT);
  CHECK_EQ(p.releases, 1);
  CHECK_OK(multicast_broadcaster_destroy(p.broadcaster));
}

TEST(handles_of_another_kind_are_refused) {
  peer p;
  transport_options good = peer_options(&p, 1), bad;
  multicast m = multicast_create();
  multicast_queue queue = multicast_queue_create(NULL), stale = multicast_queue_create(NULL);
  multicast_broadcaster ended = multicast_broadcaster_create(NULL);
  int calls = 0;
  multicast_token token;
  uint64_t broadcasters[8], queues[8];
  CHECK_OK(multicast_add(m, counter(&calls), NULL, &token));
  CHECK_OK(multicast_queue_destroy(stale));
  CHECK_OK(multicast_broadcaster_destroy(ended));
  broadcasters[0] = m.id;
  broadcasters[1] = queues[1] = token.id;
  broadcasters[2] = queue.id;
  broadcasters[3] = ended.id;
  broadcasters[4] = queues[4] = UINT64_MAX;
  broadcasters[5] = queues[5] = 1;
  broadcasters[6] = good.broadcaster.id ^ UINT64_C(1) << 63;
  broadcasters[7] = good.broadcaster.id + 1;
  queues[0] = m.id;
  queues[2] = good.broadcaster.id;
  queues[3] = stale.id;
  queues[6] = queue.id ^ UINT64_C(1) << 63;
  queues[7] = queue.id + 1;
  for (int i = 0; i < 16; ++i) {
    bad = good;
    if (i < 8) bad.broadcaster.id = broadcasters[i];
    else bad.queue.id = queues[i - 8];
    p.releases = 0;
    memset(&p.transport, 0xff, sizeof p.transport);
    CHECK_ERROR(transport_connect(&bad, &p.transport), INVALID_HANDLE);
    CHECK_EQ(p.releases, 1);
    CHECK(p.transport.publish == NULL && p.transport.context == NULL);
  }
}

/* ---- Transports ------------------------------------------------------------------------------ */

TEST(transports_that_are_forged_are_refused) {
  static const uintptr_t contexts[] = {0, 1, 8, 4096, UINTPTR_MAX, UINTPTR_MAX / 2 + 1};
  peer p;
  transport_options options = peer_options(&p, free_port());
  transport_stats stats = transport_stats_default();
  multicast_transport forged;
  CHECK_OK(transport_connect(&options, &p.transport));
  for (size_t i = 0; i <= sizeof contexts / sizeof *contexts; ++i) {
    forged = p.transport;
    forged.context = i == 0 ? (char *)p.transport.context + 8 : (void *)contexts[i - 1];
    CHECK_ERROR(transport_flush(&forged, 0), INVALID_HANDLE);
    CHECK_ERROR(transport_get_stats(&forged, &stats), INVALID_HANDLE);
  }
  CHECK_ERROR(transport_get_stats(NULL, &stats), INVALID_HANDLE);
  CHECK_ERROR(transport_get_stats(NULL, NULL), INVALID_HANDLE);
  forged = p.transport;
  peer_release(&p);
  CHECK_ERROR(transport_flush(&forged, 0), INVALID_HANDLE);
  CHECK_ERROR(transport_get_stats(&forged, &stats), INVALID_HANDLE);
}

TEST(names_and_payloads_that_are_none_are_refused) {
  SCOPED peer p;
  transport_options options = peer_options(&p, free_port());
  /* `long_prefix` begins with a NUL. Functions that support prefixes read `long_prefix` as a prefix
   * that is too long, and other functions read it as an empty name. */
  char long_text[257] = "", long_prefix[258] = "";
  const char *const names[] = {NULL, long_prefix, long_text};
  options.max_payload = 1000;
  memset(long_text, 'a', 256);
  memset(long_prefix + 1, 'a', 256);
  CHECK_OK(transport_connect(&options, &p.transport));
  for (int i = 0; i < 3; ++i) {
    CHECK_ERROR(peer_publish(&p, names[i], 1, "x", 1), INVALID_ARGUMENT);
    CHECK_ERROR(p.transport.subscribe(p.transport.context, names[i]), INVALID_ARGUMENT);
    p.transport.unsubscribe(p.transport.context, names[i]);
  }
  CHECK_ERROR(peer_publish(&p, "n", 1, NULL, 1), INVALID_ARGUMENT);
  CHECK_ERROR(peer_publish(&p, "n", 1, "x", SIZE_MAX), LIMIT);
  CHECK_ERROR(peer_publish(&p, "n", 1, "x", 1001), LIMIT);
  CHECK_EQ(peer_stats(&p).published, 0);
  CHECK_EQ(peer_stats(&p).names, 0);
  /* This name has no subscription, so unsubscribing must have no effect. */
  p.transport.unsubscribe(p.transport.context, "other");
  long_text[255] = '\0';
  CHECK_OK(peer_publish(&p, long_text, UINT32_MAX, NULL, 0));
  CHECK_OK(p.transport.subscribe(p.transport.context, long_text));
}

TEST(statistics_of_any_size_are_filled_or_refused) {
  SCOPED peer p;
  transport_options options = peer_options(&p, free_port());
  union {
    transport_stats stats;
    unsigned char bytes[2048];
  } out;
  CHECK_OK(transport_connect(&options, &p.transport));
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  for (uint32_t size = 0; size <= 1100; ++size) {
    bool is_good = size >= sizeof out.stats && size <= 1024;
    memset(&out, 0xff, sizeof out);
    out.stats.struct_size = size;
    CHECK_STATUS(transport_get_stats(&p.transport, &out.stats),
                 is_good ? MULTICAST_OK : MULTICAST_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(out.stats.struct_size, size);
    for (size_t i = is_good ? size : sizeof size; i < sizeof out; ++i) CHECK_EQ(out.bytes[i], 0xff);
    for (size_t i = sizeof out.stats; is_good && i < size; ++i) CHECK_EQ(out.bytes[i], 0);
    if (is_good) CHECK_EQ(out.stats.published, 1);
  }
  out.stats.struct_size = UINT32_MAX;
  CHECK_ERROR(transport_get_stats(&p.transport, &out.stats), INVALID_ARGUMENT);
}

TEST(flush_takes_any_time) {
  static const uint64_t times[] = {0, 1, 1000000, UINT64_C(1) << 63, UINT64_MAX - 1, UINT64_MAX};
  SCOPED peer p;
  peer_begin(&p, free_port(), NULL);
  for (size_t i = 0; i < sizeof times / sizeof *times && !TRANSPORT_FLUSH_CONNECTS; ++i)
    CHECK_OK(transport_flush(&p.transport, times[i]));
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  for (size_t i = 0; i < 3; ++i)
    CHECK_ERROR(transport_flush(&p.transport, times[i]), TIMEOUT);
  CHECK_ERROR(transport_flush(&p.transport, ns_of_second / 50), TIMEOUT);
}
