/* Tests all libraries while libc, the client library or libmulticast refuses their requests for
 * memory, threads or descriptors. After a refusal, either the call must return an error and hold no
 * resources, or the transport must continue to work. */

#include "faults.h"

#include <dirent.h>
#include <limits.h>
#include <sys/mman.h>

/* ---- Held resources -------------------------------------------------------------------------- */

static int count_descriptors(void) {
  DIR *all = opendir("/proc/self/fd");
  int count = 0;
  CHECK(all != NULL);
  while (readdir(all) != NULL) ++count;
  closedir(all);
  return count;
}

belongings look(void) {
  belongings now = {held_blocks(), held_objects(), count_descriptors()};
  return now;
}

void expect_same(belongings before) {
  CHECK_EQ(held_blocks(), before.blocks);
  CHECK_EQ(held_objects(), before.objects);
  CHECK_EQ(count_descriptors(), before.descriptors);
}

void end_transport(peer *p, belongings before) {
  p->transport.release(p->transport.context);
  EVENTUALLY(LOAD(p->releases) == 1);
  EVENTUALLY(held_blocks() == before.blocks);
  expect_same(before);
}

/* ---- Connecting ------------------------------------------------------------------------------ */

static void expect_nothing(const peer *p, multicast_status status, multicast_status expected) {
  static const multicast_transport none = {0};
  CHECK_STATUS(status, expected);
  CHECK_EQ(p->releases, 1);
  CHECK_EQ(memcmp(&p->transport, &none, sizeof none), 0);
}

void expect_no_connection(int refused) {
  broker b;
  peer p;
  int which;
  requests_are_of_the_test();
  broker_start(&b, NULL); /* only its folder is needed */
  transport_options options = all_options(&p, &b);
  options.queue = multicast_queue_create(NULL);
  /* The first connect creates objects that exist once per process, so connect before counting. */
  CHECK_OK(transport_connect(&options, &p.transport));
  p.transport.release(p.transport.context);
  EVENTUALLY(LOAD(p.releases) == 1 && held_blocks() == 0);
  belongings before = look();
  for (which = 0;; ++which) {
    p.releases = 0;
    memset(&p.transport, 0xff, sizeof p.transport);
    refuse_requests(ANY_REQUEST, which, refused, OF_THE_TEST);
    multicast_status status = transport_connect(&options, &p.transport);
    if (!refusal_was_made()) break;
    expect_nothing(&p, status, refusal_was_of_memory() ? MULTICAST_ERROR_OUT_OF_MEMORY
                                                       : MULTICAST_ERROR_SYSTEM);
    expect_same(before);
  }
  CHECK(which >= least_requests);
  end_transport(&p, before);
  broker_delete(&b);
}

TEST(connect_that_is_refused_something_says_so_and_keeps_nothing) { expect_no_connection(1); }
TEST(connect_that_is_refused_all_says_so_and_keeps_nothing) { expect_no_connection(INT_MAX); }

TEST(one_transport_too_many_is_refused) {
  peer all[TRANSPORTS_MAX + 1], *last = &all[TRANSPORTS_MAX];
  transport_options options;
  for (int i = 0; i < TRANSPORTS_MAX; ++i) {
    options = peer_options(&all[i], free_port());
    CHECK_OK(transport_connect(&options, &all[i].transport));
  }
  options = peer_options(last, free_port());
  CHECK_ERROR(transport_connect(&options, &last->transport), LIMIT);
  CHECK_EQ(last->releases, 1);
  last->releases = 0;
  peer_release(&all[3]);
  CHECK_OK(transport_connect(&options, &last->transport));
  for (int i = 0; i <= TRANSPORTS_MAX; ++i) {
    if (i != 3) peer_release(&all[i]);
  }
}

/* Counts the child processes in which an allocation of libmulticast was refused. */
static int *refusals;

static void connect_in_child(void *context) {
  peer p;
  use_test_allocator();
  transport_options options = peer_options(&p, free_port());
  options.queue = multicast_queue_create(NULL);
  fail_only_once = true;
  fail_after = *(int *)context;
  multicast_status status = transport_connect(&options, &p.transport);
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
  CHECK_EQ(held_objects(), 0);
}

TEST(connect_without_memory_says_so_and_keeps_nothing) {
  refusals = mmap(NULL, sizeof *refusals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                  0);
  CHECK(refusals != MAP_FAILED);
  for (int which = 0; which == 0 || *refusals == which; ++which) in_child(connect_in_child, &which);
  CHECK(*refusals >= 1);
}

void expect_no_start(int kind) {
  peer p;
  transport_options options = peer_options(&p, free_port());
  belongings before = look();
  requests_are_of_the_test();
  refuse_request(kind, 0, OF_THE_TEST);
  expect_nothing(&p, transport_connect(&options, &p.transport), MULTICAST_ERROR_SYSTEM);
  CHECK(refusal_was_made());
  expect_same(before);
}

TEST(library_that_cannot_watch_forks_does_not_connect) { expect_no_start(ATFORK); }

/* ---- Subscribing ----------------------------------------------------------------------------- */

TEST(name_without_memory_is_refused_and_can_be_subscribed_again) {
  enum { NAMES = 40 };
  peer p;
  belongings before = look();
  char name[16];
  int refused = 0;
  requests_are_of_the_test();
  for (int which = 0; which <= refused; ++which) {
    transport_options options = peer_options(&p, free_port());
    belongings again = look();
    CHECK_OK(transport_connect(&options, &p.transport));
    refuse_request(CALLOC, which, OF_THE_TEST);
    for (int i = 0; i < NAMES; ++i) {
      snprintf(name, sizeof name, "n%d", i);
      multicast_status status = p.transport.subscribe(p.transport.context, name);
      if (status == MULTICAST_OK) continue;
      CHECK_ERROR(status, OUT_OF_MEMORY);
      CHECK_EQ(peer_stats(&p).names, i);
      CHECK_OK(p.transport.subscribe(p.transport.context, name));
    }
    CHECK_EQ(peer_stats(&p).names, NAMES);
    if (refusal_was_made()) refused = which + 1;
    for (int i = 0; i < NAMES; ++i) {
      snprintf(name, sizeof name, "n%d", i);
      p.transport.unsubscribe(p.transport.context, name);
    }
    CHECK_EQ(peer_stats(&p).names, 0);
    end_transport(&p, again);
    CHECK_OK(multicast_broadcaster_destroy(p.broadcaster));
  }
  CHECK(refused > NAMES); /* one allocation per name, and some for the growing table */
  EVENTUALLY(held_blocks() == before.blocks);
}

/* ---- On the transports' threads -------------------------------------------------------------- */

outcome go_on(int kind, int granted, int refused, bool *was_made) {
  static const char payload[300];
  broker b;
  peer here, there;
  outcome result;
  int to_here = 0, to_there = 0;
  requests_are_of_the_test();
  broker_start(&b, NULL);
  belongings before = look();
  transport_options options = peer_reliable_options(&there, b.port);
  peer_connect(&there, &options);
  peer_observe(&there, "to there", counter(&to_there));
  refuse_requests(kind, granted, refused, OF_A_TRANSPORT);
  options = asking_options(&here, b.port);
  CHECK_OK(transport_connect(&options, &here.transport));
  EVENTUALLY(LOAD(here.connected) >= 1);
  CHECK_OK(here.transport.subscribe(here.transport.context, "away"));
  peer_observe(&here, "to here", counter(&to_here));
  here.transport.unsubscribe(here.transport.context, "away");
  for (int i = 0; i < 20000 && (LOAD(to_here) < 3 || LOAD(to_there) < 3); ++i) {
    /* Empty payloads use pooled memory, and larger payloads need an allocation. */
    const size_t size = i % 2 == 0 ? sizeof payload : 0;
    CHECK(peer_publish(&here, "to there", 1, payload, size) != MULTICAST_ERROR_OUT_OF_MEMORY);
    CHECK(peer_publish(&there, "to here", 1, payload, size) != MULTICAST_ERROR_OUT_OF_MEMORY);
    pause_ms(1);
  }
  CHECK(LOAD(to_here) >= 3);
  CHECK(LOAD(to_there) >= 3);
  peer_flush(&here);
  peer_flush(&there);
  *was_made = refusal_was_made();
  transport_stats of_here = peer_stats(&here);
  transport_stats of_there = peer_stats(&there);
  result.lost = of_here.lost + of_there.lost;
  result.dropped = TRANSPORT_DROPPED(of_here) + TRANSPORT_DROPPED(of_there);
  result.connections_lost = LOAD(here.lost) + LOAD(there.lost);
  here.transport.release(here.transport.context);
  there.transport.release(there.transport.context);
  EVENTUALLY(LOAD(here.releases) == 1 && LOAD(there.releases) == 1);
  EVENTUALLY(held_blocks() == before.blocks);
  expect_same(before);
  broker_delete(&b);
  CHECK_OK(multicast_broadcaster_destroy(here.broadcaster));
  CHECK_OK(multicast_broadcaster_destroy(there.broadcaster));
  return result;
}

outcome expect_to_go_on(int kind, int granted) {
  bool was_made;
  outcome result = go_on(kind, granted, 1, &was_made);
  CHECK(was_made);
  return result;
}

/* Calls go_on() repeatedly, and refuses requests of any kind. In each call, the refusals start one
 * request later than in the previous call. The number of requests depends on how the threads
 * interleave. */
static void expect_to_go_on_whatever_is_refused(int refused) {
  bool was_made = true;
  int granted;
  for (granted = 0; granted < 24 && was_made; ++granted)
    go_on(ANY_REQUEST, granted, refused, &was_made);
  CHECK(granted >= 6);
}

TEST(transport_goes_on_whatever_is_refused) { expect_to_go_on_whatever_is_refused(1); }
TEST(transport_goes_on_whatever_is_refused_twice) { expect_to_go_on_whatever_is_refused(2); }
TEST(transport_goes_on_whatever_is_refused_often) { expect_to_go_on_whatever_is_refused(5); }
