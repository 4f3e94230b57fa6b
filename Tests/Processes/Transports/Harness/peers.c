#include "peers.h"

#include <time.h>

static void note_change(void *context, uint32_t state, int32_t code, const char *reason) {
  peer *p = context;
#ifdef TRANSPORT_HAS_PEERS
  if (note_peer(p, state, code, reason)) return;
#endif
  snprintf(p->reason, sizeof p->reason, "%s", reason);
  STORE(p->code, code);
  if (state == TRANSPORT_LOST) snprintf(p->end, sizeof p->end, "%s", reason);
  if (state >= TRANSPORT_SUBSCRIPTION_REFUSED) {
    snprintf(p->refusal, sizeof p->refusal, "%s", reason);
    p->refusal_code = code;
  }
  switch (state) {
    case TRANSPORT_CONNECTED: ADD(p->connected, 1); break;
    case TRANSPORT_LOST: ADD(p->lost, 1); break;
    case TRANSPORT_REFUSED:
      if (p->expected != NULL && strstr(reason, p->expected) != NULL)
        ADD(p->refused_as_expected, 1);
      ADD(p->refused, 1);
      break;
    case TRANSPORT_SUBSCRIPTION_REFUSED: ADD(p->subscriptions_refused, 1); break;
    case TRANSPORT_PUBLICATION_REFUSED: ADD(p->publications_refused, 1); break;
    default: check_failed(__FILE__, __LINE__, "state", "is unknown");
  }
}

static void note_release(void *context) {
  peer *p = context;
  ADD(p->releases, 1);
}

static transport_options peer_create_with(peer *p, const transport_options *more) {
  transport_options options = more == NULL ? transport_options_default() : *more;
  memset(p, 0, sizeof *p);
  p->broadcaster = multicast_broadcaster_create(NULL);
  CHECK(p->broadcaster.id != 0);
  options.broadcaster = p->broadcaster;
  if (options.reconnect_min_ns == 0) options.reconnect_min_ns = 20000000;
  if (options.reconnect_max_ns == 0) options.reconnect_max_ns = 200000000;
  options.changed = note_change;
  options.context = p;
  options.release = note_release;
  return options;
}

transport_options peer_create(peer *p) { return peer_create_with(p, NULL); }

static transport_options peer_options_with(peer *p, int port, const transport_options *more) {
  transport_options options = peer_create_with(p, more);
  peer_set_address(p, port, &options);
  return options;
}

transport_options peer_options(peer *p, int port) { return peer_options_with(p, port, NULL); }

void peer_begin(peer *p, int port, const transport_options *more) {
  const transport_options options = peer_options_with(p, port, more);
  CHECK_OK(transport_connect(&options, &p->transport));
}

void peer_connect(peer *p, const transport_options *options) {
  CHECK_OK(transport_connect(options, &p->transport));
  EVENTUALLY(LOAD(p->connected) == 1);
}

void peer_connect_with(peer *p, int port, const transport_options *more) {
  peer_begin(p, port, more);
  EVENTUALLY(LOAD(p->connected) == 1);
}

void peer_connect_reliably(peer *p, int port) {
  transport_options options = peer_reliable_options(p, port);
  peer_connect(p, &options);
}

static void expect_release(peer *p) {
  EVENTUALLY(LOAD(p->releases) == 1);
  CHECK_OK(multicast_broadcaster_destroy(p->broadcaster));
  p->broadcaster.id = 0;
}

void peer_release(peer *p) {
  p->transport.release(p->transport.context);
  expect_release(p);
}

void peer_detach(peer *p) {
  CHECK_OK(multicast_broadcaster_attach(p->broadcaster, NULL));
  expect_release(p);
}

void peer_end(peer *p) {
  if (p->broadcaster.id != 0) peer_release(p);
}

void expect_refusal(const transport_options *options, peer *p, const char *reason) {
  p->expected = reason;
  CHECK_OK(transport_connect(options, &p->transport));
  EVENTUALLY(LOAD(p->refused) >= 2 && LOAD(p->refused_as_expected) >= 1);
  CHECK_EQ(p->connected, 0);
  peer_release(p);
}

void expect_refusal_of(peer *p, int port, const transport_options *more, const char *reason) {
  const transport_options options = peer_options_with(p, port, more);
  expect_refusal(&options, p, reason);
}

void expect_invalid(const transport_options *options, peer *p, multicast_status expected) {
  memset(&p->transport, 0xff, sizeof p->transport);
  p->releases = 0;
  CHECK_STATUS(transport_connect(options, &p->transport), expected);
  CHECK_EQ(p->releases, 1);
  CHECK(p->transport.publish == NULL && p->transport.context == NULL);
}

void peer_observe(peer *p, const char *name, multicast_delegate observer) {
  CHECK_OK(multicast_broadcaster_register(p->broadcaster, name, observer, NULL, NULL));
  CHECK_OK(p->transport.subscribe(p->transport.context, name));
  CHECK_OK(transport_flush(&p->transport, 10000000000u));
}

multicast_status peer_publish(peer *p, const char *name, uint32_t event, const void *payload,
                              size_t size) {
  return p->transport.publish(p->transport.context, name, event, payload, size);
}

uint64_t time_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void peer_flush(peer *p) { CHECK_OK(transport_flush(&p->transport, 20000000000u)); }

transport_stats peer_stats(const peer *p) {
  transport_stats stats = transport_stats_default();
  CHECK_OK(transport_get_stats(&p->transport, &stats));
  CHECK_EQ(stats.published, TRANSPORT_STATS_SUM(stats));
  return stats;
}
