/* Any argument: an error, and no harm. */

#include "broker.h"

static const uint64_t ns_of_second = 1000000000u;

/* ---- Options --------------------------------------------------------------------------------- */

/* The options cannot be read: nothing is released. */
static void expect_unreadable(const multicast_mqtt_options *options, peer *p) {
  memset(&p->transport, 0xff, sizeof p->transport);
  CHECK_STATUS(multicast_mqtt_connect(options, &p->transport), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(p->releases, 0);
  CHECK(p->transport.publish == NULL && p->transport.context == NULL);
}

TEST(flags_that_are_unknown_are_refused) {
  peer p;
  multicast_mqtt_options good = peer_options(&p, 1), bad;
  int bit;
  for (bit = 5; bit < 32; ++bit) {
    bad = good;
    bad.flags = UINT32_C(1) << bit;
    expect_unreadable(&bad, &p);
  }
}

TEST(sizes_of_options_that_are_none_are_refused) {
  static const uint32_t sizes[] = {0, 1, 4, 8, 16, 191, 1025, 65536, UINT32_MAX};
  peer p;
  multicast_mqtt_options bad = peer_options(&p, 1);
  size_t i;
  for (i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    bad.struct_size = sizes[i];
    expect_unreadable(&bad, &p);
  }
}

static void ignore(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)event, (void)payload, (void)size;
}

TEST(handles_of_another_kind_are_refused) {
  peer p;
  multicast_mqtt_options good = peer_options(&p, 1), bad;
  multicast m = multicast_create();
  multicast_queue queue = multicast_queue_create(NULL), stale = multicast_queue_create(NULL);
  multicast_broadcaster ended = multicast_broadcaster_create(NULL);
  multicast_delegate d = {ignore, NULL};
  multicast_token token;
  uint64_t broadcasters[8], queues[8];
  int i;
  CHECK_OK(multicast_add(m, d, NULL, &token));
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
  for (i = 0; i < 16; ++i) {
    bad = good;
    if (i < 8) bad.broadcaster.id = broadcasters[i];
    else bad.queue.id = queues[i - 8];
    p.releases = 0;
    memset(&p.transport, 0xff, sizeof p.transport);
    CHECK_STATUS(multicast_mqtt_connect(&bad, &p.transport), MULTICAST_ERROR_INVALID_HANDLE);
    CHECK_EQ(p.releases, 1);
    CHECK(p.transport.publish == NULL && p.transport.context == NULL);
  }
}

/* ---- Any options ----------------------------------------------------------------------------- */

static uint64_t random_state = 1;

static uint32_t draw(uint32_t below) {
  random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(random_state >> 33) % below;
}

static char long_text[70000];

/* A text of any kind; most are good. */
static const char *draw_text(const char *good) {
  static const char *const texts[] = {NULL, "", "a", "\xff", "a/+", "#", "$share", "\x01",
                                      "/dev/null"};
  uint32_t which = draw(30);
  if (which == 29) return long_text;
  return which < sizeof texts / sizeof *texts ? texts[which] : good;
}

/* A number of any kind; most are 0, which is the default. */
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
    multicast_status status;
    /* No name that somebody has to be asked about. */
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
    status = multicast_mqtt_connect(&o, &p.transport);
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

/* ---- Transports ------------------------------------------------------------------------------ */

TEST(transports_that_are_forged_are_refused) {
  static const uintptr_t contexts[] = {0, 1, 8, 4096, UINTPTR_MAX, UINTPTR_MAX / 2 + 1};
  peer p;
  multicast_mqtt_options options = peer_options(&p, free_port());
  multicast_mqtt_stats stats = multicast_mqtt_stats_default();
  multicast_transport forged;
  size_t i;
  CHECK_OK(multicast_mqtt_connect(&options, &p.transport));
  for (i = 0; i <= sizeof contexts / sizeof *contexts; ++i) {
    forged = p.transport;
    forged.context = i == 0 ? (char *)p.transport.context + 8 : (void *)contexts[i - 1];
    CHECK_STATUS(multicast_mqtt_flush(&forged, 0), MULTICAST_ERROR_INVALID_HANDLE);
    CHECK_STATUS(multicast_mqtt_get_stats(&forged, &stats), MULTICAST_ERROR_INVALID_HANDLE);
  }
  CHECK_STATUS(multicast_mqtt_get_stats(NULL, &stats), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_mqtt_get_stats(NULL, NULL), MULTICAST_ERROR_INVALID_HANDLE);
  forged = p.transport;
  peer_release(&p);
  CHECK_STATUS(multicast_mqtt_flush(&forged, 0), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_mqtt_get_stats(&forged, &stats), MULTICAST_ERROR_INVALID_HANDLE);
}

TEST(names_and_payloads_that_are_none_are_refused) {
  peer p;
  multicast_mqtt_options options = peer_options(&p, free_port());
  const char *const names[] = {NULL, "", long_text};
  int i;
  memset(long_text, 'a', 256);
  CHECK_OK(multicast_mqtt_connect(&options, &p.transport));
  for (i = 0; i < 3; ++i) {
    CHECK_STATUS(peer_publish(&p, names[i], 1, "x", 1), MULTICAST_ERROR_INVALID_ARGUMENT);
    CHECK_STATUS(p.transport.subscribe(p.transport.context, names[i]),
                 MULTICAST_ERROR_INVALID_ARGUMENT);
    p.transport.unsubscribe(p.transport.context, names[i]);
  }
  CHECK_STATUS(peer_publish(&p, "n", 1, NULL, 1), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(peer_publish(&p, "n", 1, "x", SIZE_MAX), MULTICAST_ERROR_LIMIT);
  CHECK_STATUS(peer_publish(&p, "n", 1, "x", (16u << 20) + 1), MULTICAST_ERROR_LIMIT);
  CHECK_EQ(peer_stats(&p).published, 0);
  CHECK_EQ(peer_stats(&p).names, 0);
  /* One that is not subscribed. */
  p.transport.unsubscribe(p.transport.context, "other");
  long_text[255] = '\0';
  CHECK_OK(peer_publish(&p, long_text, UINT32_MAX, NULL, 0));
  CHECK_OK(p.transport.subscribe(p.transport.context, long_text));
  peer_release(&p);
}

TEST(statistics_of_any_size_are_filled_or_refused) {
  peer p;
  multicast_mqtt_options options = peer_options(&p, free_port());
  union {
    multicast_mqtt_stats stats;
    unsigned char bytes[2048];
  } out;
  uint32_t size;
  size_t i;
  CHECK_OK(multicast_mqtt_connect(&options, &p.transport));
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  for (size = 0; size <= 1100; ++size) {
    bool is_good = size >= sizeof out.stats && size <= 1024;
    memset(&out, 0xff, sizeof out);
    out.stats.struct_size = size;
    CHECK_STATUS(multicast_mqtt_get_stats(&p.transport, &out.stats),
                 is_good ? MULTICAST_OK : MULTICAST_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(out.stats.struct_size, size);
    for (i = is_good ? size : sizeof size; i < sizeof out; ++i) CHECK_EQ(out.bytes[i], 0xff);
    for (i = sizeof out.stats; is_good && i < size; ++i) CHECK_EQ(out.bytes[i], 0);
    if (is_good) CHECK_EQ(out.stats.published, 1);
  }
  out.stats.struct_size = UINT32_MAX;
  CHECK_STATUS(multicast_mqtt_get_stats(&p.transport, &out.stats),
               MULTICAST_ERROR_INVALID_ARGUMENT);
  peer_release(&p);
}

TEST(flush_takes_any_time) {
  static const uint64_t times[] = {0, 1, 1000000, UINT64_C(1) << 63, UINT64_MAX - 1, UINT64_MAX};
  peer p;
  multicast_mqtt_options options = peer_options(&p, free_port());
  size_t i;
  CHECK_OK(multicast_mqtt_connect(&options, &p.transport));
  for (i = 0; i < sizeof times / sizeof *times; ++i)
    CHECK_OK(multicast_mqtt_flush(&p.transport, times[i]));
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  for (i = 0; i < 3; ++i)
    CHECK_STATUS(multicast_mqtt_flush(&p.transport, times[i]), MULTICAST_ERROR_TIMEOUT);
  CHECK_STATUS(multicast_mqtt_flush(&p.transport, ns_of_second / 50), MULTICAST_ERROR_TIMEOUT);
  peer_release(&p);
}
