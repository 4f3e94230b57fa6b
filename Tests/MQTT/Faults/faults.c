/* Each request of libmulticast-mqtt to libc, libmosquitto and libmulticast is refused once: memory,
 * threads, descriptors. The call says so and keeps nothing, or the transport goes on. */

#include "../broker.h"
#include "requests.h"

#include <dirent.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint64_t ns_of_second = 1000000000u;

/* ---- What is kept ---------------------------------------------------------------------------- */

typedef struct belongings {
  int blocks, clients, descriptors;
} belongings;

static int count_descriptors(void) {
  DIR *all = opendir("/proc/self/fd");
  int count = 0;
  CHECK(all != NULL);
  while (readdir(all) != NULL) ++count;
  closedir(all);
  return count;
}

static belongings look(void) {
  belongings now = {held_blocks(), held_clients(), count_descriptors()};
  return now;
}

static void expect_same(belongings before) {
  CHECK_EQ(held_blocks(), before.blocks);
  CHECK_EQ(held_clients(), before.clients);
  CHECK_EQ(count_descriptors(), before.descriptors);
}

/* Releases it, and waits for the end of its thread. */
static void end_transport(peer *p, belongings before) {
  p->transport.release(p->transport.context);
  EVENTUALLY(LOAD(p->releases) == 1);
  EVENTUALLY(held_blocks() == before.blocks);
  expect_same(before);
}

/* ---- Connecting ------------------------------------------------------------------------------ */

static multicast_mqtt_options all_options(peer *p, multicast_queue queue) {
  multicast_mqtt_options options = peer_options(p, free_port());
  options.client_id = "client";
  options.topic_prefix = "prefix";
  options.user = "user";
  options.password = "password";
  options.ca_file = "/dev/null";
  options.ca_path = "/etc/ssl/certs";
  options.cert_file = "/dev/null";
  options.key_file = "/dev/null";
  options.key_password = "key";
  options.queue = queue;
  return options;
}

static void expect_nothing(const peer *p, multicast_status status, multicast_status expected) {
  static const multicast_transport none = {0};
  CHECK_STATUS(status, expected);
  CHECK_EQ(p->releases, 1);
  CHECK_EQ(memcmp(&p->transport, &none, sizeof none), 0);
}

TEST(connect_that_is_refused_something_says_so_and_keeps_nothing) {
  peer p;
  multicast_queue queue = multicast_queue_create(NULL);
  multicast_mqtt_options options = all_options(&p, queue);
  belongings before;
  int which;
  requests_are_of_the_test();
  /* What is made once, is made now. */
  CHECK_OK(multicast_mqtt_connect(&options, &p.transport));
  p.transport.release(p.transport.context);
  EVENTUALLY(LOAD(p.releases) == 1 && held_blocks() == 0);
  before = look();
  for (which = 0;; ++which) {
    multicast_status status;
    p.releases = 0;
    memset(&p.transport, 0xff, sizeof p.transport);
    refuse_request(ANY_REQUEST, which, OF_THE_TEST);
    status = multicast_mqtt_connect(&options, &p.transport);
    if (!refusal_was_made()) break;
    expect_nothing(&p, status, refusal_was_of_memory() ? MULTICAST_ERROR_OUT_OF_MEMORY
                                                       : MULTICAST_ERROR_SYSTEM);
    expect_same(before);
  }
  CHECK(which >= 18);
  end_transport(&p, before);
}

/* How many of the children had an allocation of libmulticast refused. */
static int *refusals;

static void connect_in_child(void *context) {
  peer p;
  multicast_mqtt_options options;
  multicast_status status;
  use_test_allocator();
  options = all_options(&p, multicast_queue_create(NULL));
  fail_only_once = true;
  fail_after = *(int *)context;
  status = multicast_mqtt_connect(&options, &p.transport);
  fail_after = -1;
  if (has_failed) ++*refusals;
  if (status == MULTICAST_OK) {
    p.transport.release(p.transport.context);
    EVENTUALLY(LOAD(p.releases) == 1);
  } else {
    CHECK(has_failed);
    expect_nothing(&p, status, MULTICAST_ERROR_OUT_OF_MEMORY);
  }
  EVENTUALLY(held_blocks() == 0);
  CHECK_EQ(held_clients(), 0);
}

TEST(connect_without_memory_of_libmulticast_says_so_and_keeps_nothing) {
  int which;
  refusals = mmap(NULL, sizeof *refusals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                  0);
  CHECK(refusals != MAP_FAILED);
  for (which = 0; which == 0 || *refusals == which; ++which) in_child(connect_in_child, &which);
  CHECK(*refusals >= 1);
}

static void expect_no_start(request kind) {
  peer p;
  multicast_mqtt_options options = peer_options(&p, free_port());
  belongings before = look();
  requests_are_of_the_test();
  refuse_request(kind, 0, OF_THE_TEST);
  expect_nothing(&p, multicast_mqtt_connect(&options, &p.transport), MULTICAST_ERROR_SYSTEM);
  CHECK(refusal_was_made());
  expect_same(before);
}

TEST(library_that_cannot_watch_forks_does_not_connect) { expect_no_start(ATFORK); }
TEST(library_without_libmosquitto_does_not_connect) { expect_no_start(LIBRARY_INIT); }

/* ---- Publishing and subscribing -------------------------------------------------------------- */

TEST(publication_without_memory_is_refused_and_counted) {
  peer p;
  multicast_mqtt_options options = peer_options(&p, free_port());
  belongings before = look();
  requests_are_of_the_test();
  CHECK_OK(multicast_mqtt_connect(&options, &p.transport));
  refuse_request(MALLOC, 1, OF_THE_TEST);
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  CHECK_STATUS(peer_publish(&p, "n", 1, "x", 1), MULTICAST_ERROR_OUT_OF_MEMORY);
  CHECK(refusal_was_made());
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  CHECK_EQ(peer_stats(&p).refused, 1);
  CHECK_EQ(peer_stats(&p).waiting, 2);
  end_transport(&p, before);
}

TEST(name_without_memory_is_refused_and_can_be_subscribed_again) {
  enum { NAMES = 40 };
  peer p;
  belongings before = look();
  char name[16];
  int which, i, refused = 0;
  requests_are_of_the_test();
  for (which = 0; which <= refused; ++which) {
    multicast_mqtt_options options = peer_options(&p, free_port());
    belongings again = look();
    CHECK_OK(multicast_mqtt_connect(&options, &p.transport));
    refuse_request(CALLOC, which, OF_THE_TEST);
    for (i = 0; i < NAMES; ++i) {
      multicast_status status;
      snprintf(name, sizeof name, "n%d", i);
      status = p.transport.subscribe(p.transport.context, name);
      if (status == MULTICAST_OK) continue;
      CHECK_STATUS(status, MULTICAST_ERROR_OUT_OF_MEMORY);
      CHECK_EQ(peer_stats(&p).names, i);
      CHECK_OK(p.transport.subscribe(p.transport.context, name));
    }
    CHECK_EQ(peer_stats(&p).names, NAMES);
    if (refusal_was_made()) refused = which + 1;
    for (i = 0; i < NAMES; ++i) {
      snprintf(name, sizeof name, "n%d", i);
      p.transport.unsubscribe(p.transport.context, name);
    }
    CHECK_EQ(peer_stats(&p).names, 0);
    end_transport(&p, again);
    CHECK_OK(multicast_broadcaster_destroy(p.broadcaster));
  }
  /* The table grows twice. */
  CHECK_EQ(refused, NAMES + 3);
  EVENTUALLY(held_blocks() == before.blocks);
}

/* ---- On the thread of the transport ---------------------------------------------------------- */

/* Two peers publish to each other until both have got something, while one request is refused. */
static void expect_to_go_on(request kind, int granted) {
  broker b;
  peer here, there;
  multicast_mqtt_options options;
  belongings before;
  int to_here = 0, to_there = 0, i;
  requests_are_of_the_test();
  broker_start(&b, NULL);
  before = look();
  peer_connect_to(&there, &b, 1);
  peer_observe(&there, "to there", counter(&to_there));
  refuse_request(kind, granted, OF_A_TRANSPORT);
  options = peer_options(&here, b.port);
  options.qos = 1;
  options.session_expiry_s = 60;
  CHECK_OK(multicast_mqtt_connect(&options, &here.transport));
  EVENTUALLY(LOAD(here.connected) >= 1);
  CHECK_OK(here.transport.subscribe(here.transport.context, "away"));
  peer_observe(&here, "to here", counter(&to_here));
  here.transport.unsubscribe(here.transport.context, "away");
  for (i = 0; i < 20000 && (LOAD(to_here) < 3 || LOAD(to_there) < 3); ++i) {
    CHECK(peer_publish(&here, "to there", 1, &i, sizeof i) != MULTICAST_ERROR_OUT_OF_MEMORY);
    CHECK(peer_publish(&there, "to here", 1, &i, sizeof i) != MULTICAST_ERROR_OUT_OF_MEMORY);
    pause_ms(1);
  }
  CHECK(LOAD(to_here) >= 3);
  CHECK(LOAD(to_there) >= 3);
  peer_flush(&here);
  peer_flush(&there);
  CHECK(refusal_was_made());
  if (kind == ALIGNED_ALLOC) CHECK_EQ(peer_stats(&here).lost + peer_stats(&there).lost, 1);
  if (kind == PUBLICATION) CHECK_EQ(peer_stats(&here).dropped + peer_stats(&there).dropped, 1);
  here.transport.release(here.transport.context);
  there.transport.release(there.transport.context);
  EVENTUALLY(LOAD(here.releases) == 1 && LOAD(there.releases) == 1);
  EVENTUALLY(held_blocks() == before.blocks);
  expect_same(before);
  broker_delete(&b);
}

TEST(transport_without_memory_for_messages_goes_on) { expect_to_go_on(ALIGNED_ALLOC, 1); }
TEST(transport_without_memory_for_publications_goes_on) { expect_to_go_on(PUBLICATION, 1); }
TEST(transport_without_memory_for_properties_tries_again) {
  expect_to_go_on(PROPERTY, 0);
  expect_to_go_on(PROPERTY, 1);
}
TEST(transport_without_memory_for_connections_tries_again) { expect_to_go_on(CONNECTION, 0); }
TEST(transport_without_memory_for_subscriptions_tries_again) {
  expect_to_go_on(SUBSCRIPTION, 0);
  expect_to_go_on(SUBSCRIPTION, 1);
}
TEST(transport_without_memory_for_cancellations_tries_again) { expect_to_go_on(CANCELLATION, 0); }
TEST(transport_without_memory_for_packets_tries_again) {
  int granted;
  for (granted = 0; granted < 8; ++granted) expect_to_go_on(READING, granted);
}

/* A name that the broker's session has, and the program has not. */
TEST(transport_without_memory_for_a_name_of_the_session_ignores_a_message) {
  broker b;
  peer here, there;
  multicast_mqtt_options options;
  belongings before;
  record *r = record_create();
  int i;
  requests_are_of_the_test();
  broker_start(&b, NULL);
  before = look();
  peer_connect_to(&here, &b, 1);
  for (i = 0; i < 2; ++i) {
    options = peer_options(&there, b.port);
    options.qos = 1;
    options.client_id = "collector";
    options.session_expiry_s = 60;
    if (i == 1) refuse_request(CALLOC, 0, OF_A_TRANSPORT);
    CHECK_OK(multicast_mqtt_connect(&options, &there.transport));
    if (i == 1) break;
    EVENTUALLY(LOAD(there.connected) == 1);
    peer_observe(&there, "gone", recorder(r));
    there.transport.release(there.transport.context);
    EVENTUALLY(LOAD(there.releases) == 1);
    CHECK_OK(peer_publish(&here, "gone", 1, "x", 1));
    CHECK_OK(peer_publish(&here, "gone", 1, "x", 1));
    peer_flush(&here);
  }
  EVENTUALLY(peer_stats(&there).ignored == 2);
  CHECK(refusal_was_made());
  CHECK_EQ(there.lost, 0);
  CHECK_EQ(r->count, 0);
  here.transport.release(here.transport.context);
  there.transport.release(there.transport.context);
  EVENTUALLY(held_blocks() == before.blocks);
  expect_same(before);
  broker_delete(&b);
  free(r);
}

/* What waits when a transport is released is freed with it. */
TEST(release_keeps_nothing) {
  peer p;
  multicast_mqtt_options options;
  belongings before = look();
  char name[16];
  int i;
  requests_are_of_the_test();
  options = peer_options(&p, free_port());
  CHECK_OK(multicast_mqtt_connect(&options, &p.transport));
  for (i = 0; i < 100; ++i) {
    snprintf(name, sizeof name, "n%d", i);
    CHECK_OK(peer_publish(&p, name, 1, name, sizeof name));
    CHECK_OK(p.transport.subscribe(p.transport.context, name));
  }
  CHECK_STATUS(multicast_mqtt_flush(&p.transport, ns_of_second / 100), MULTICAST_ERROR_TIMEOUT);
  CHECK(held_blocks() > before.blocks + 200);
  end_transport(&p, before);
}
