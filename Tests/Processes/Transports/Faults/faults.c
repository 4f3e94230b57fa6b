/* Tests libraries with a broker while the system refuses requests. refusals.c has the tests for all
 * libraries. */

#include "faults.h"

#include <signal.h>

static const uint64_t ns_of_second = 1000000000u;

/* ---- Connecting ------------------------------------------------------------------------------ */

TEST(library_without_its_client_library_does_not_connect) { expect_no_start(LIBRARY_INIT); }

/* ---- Publishing -------------------------------------------------------------- */

TEST(publication_without_memory_is_refused_and_counted) {
  peer p;
  transport_options options = peer_options(&p, free_port());
  belongings before = look();
  requests_are_of_the_test();
  CHECK_OK(transport_connect(&options, &p.transport));
  refuse_request(MALLOC, 1, OF_THE_TEST);
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  CHECK_ERROR(peer_publish(&p, "n", 1, "x", 1), OUT_OF_MEMORY);
  CHECK(refusal_was_made());
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  CHECK_EQ(peer_stats(&p).refused, 1);
  CHECK_EQ(peer_stats(&p).waiting, 2);
  end_transport(&p, before);
}

/* If a transport is released while publications are waiting, the publications are freed, too. */
TEST(release_keeps_nothing) {
  peer p;
  belongings before = look();
  char name[16];
  requests_are_of_the_test();
  peer_begin(&p, free_port(), NULL);
  for (int i = 0; i < 100; ++i) {
    snprintf(name, sizeof name, "n%d", i);
    CHECK_OK(peer_publish(&p, name, 1, name, sizeof name));
    CHECK_OK(p.transport.subscribe(p.transport.context, name));
  }
  CHECK_ERROR(transport_flush(&p.transport, ns_of_second / 100), TIMEOUT);
  CHECK(held_blocks() > before.blocks + 200);
  end_transport(&p, before);
}

/* ---- On the transports' threads -------------------------------------------------------------- */

/* The first two allocations are granted, because some libraries need them for subscriptions. */
TEST(transport_without_memory_for_messages_goes_on) {
  CHECK_EQ(expect_to_go_on(MALLOC, 2).lost, 1);
}

/* Connects two peers. The peer `here` has an observer. */
static void connect_two(broker *b, peer *here, peer *there, int *arrived) {
  broker_start(b, NULL);
  peer_connect_with(here, b->port, NULL);
  peer_connect_with(there, b->port, NULL);
  peer_observe(here, "to here", counter(arrived));
}

/* Makes one message arrive while the transports cannot allocate memory. Returns true if the
 * transports did not try to allocate memory. */
static bool needs_no_memory(peer *from, const int *arrived) {
  const int count = LOAD(*arrived);
  refuse_requests(MALLOC, 0, 1, OF_A_TRANSPORT);
  CHECK_OK(peer_publish(from, "to here", 1, NULL, 0));
  peer_flush(from);
  EVENTUALLY(LOAD(*arrived) > count || refusal_was_of_memory());
  return !refusal_was_made();
}

TEST(memory_of_messages_is_kept_for_others_and_freed_in_a_pause) {
  broker b;
  SCOPED peer here, there;
  int arrived = 0, held;
  bool is_kept = false;
  requests_are_of_the_test();
  connect_two(&b, &here, &there, &arrived);
  held = held_blocks();
  for (int tries = 0; tries < 20 && !is_kept; ++tries) {
    int count = arrived;
    CHECK_OK(peer_publish(&there, "to here", 1, &tries, sizeof tries));
    EVENTUALLY(LOAD(arrived) > count);
    is_kept = needs_no_memory(&there, &arrived);
  }
  CHECK(is_kept);
  CHECK(held_blocks() > held);
  EVENTUALLY(held_blocks() == held);
  broker_delete(&b);
}

/* Publishes one more message. Returns whether the library holds at most `blocks` blocks
 * afterwards. */
static bool falls_to(int blocks, peer *p) {
  CHECK_OK(peer_publish(p, "n", 1, NULL, 0));
  return held_blocks() <= blocks;
}

TEST_OF_BROKER(memory_of_many_messages_is_freed_though_some_go_on, NULL) {
  enum { COUNT = 10000, KEPT = 8192 };
  SCOPED peer p;
  peer_connect_with(&p, b->port, &OPTIONS(.capacity = COUNT));
  int held = held_blocks();
  broker_end(b, SIGKILL);
  EVENTUALLY(LOAD(p.lost) == 1);
  for (int i = 0; i < COUNT; ++i) CHECK_OK(peer_publish(&p, "n", 1, NULL, 0));
  CHECK(held_blocks() > held + KEPT);
  broker_start_again(b);
  peer_flush(&p);
  EVENTUALLY(falls_to(held + KEPT / 2, &p));
}

TEST(memory_of_messages_is_freed_while_there_is_no_broker) {
  enum { COUNT = 50 };
  broker b;
  SCOPED peer here, there;
  int arrived = 0, held;
  connect_two(&b, &here, &there, &arrived);
  held = held_blocks();
  for (int i = 0; i < COUNT; ++i) CHECK_OK(peer_publish(&there, "to here", 1, NULL, 0));
  EVENTUALLY(LOAD(arrived) == COUNT);
  CHECK(held_blocks() > held);
  broker_end(&b, SIGKILL);
  EVENTUALLY(held_blocks() <= held);
  broker_delete(&b);
}

TEST(transport_that_cannot_wait_for_its_socket_goes_on) {
  CHECK_EQ(expect_to_go_on(POLL, 1).connections_lost, 0);
}
