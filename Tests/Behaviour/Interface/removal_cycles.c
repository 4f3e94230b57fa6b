/* Removals that would wait for each other do not hang. */

#include "removals.h"

enum { RING = 4 };
static struct {
  multicast target;
  multicast_token token;
  gate entered;
  int64_t result;
  int releases;
} ring[RING];
static int ring_size;
static gate everyone_inside;
static int inside;

static void remove_next(void *context, uint32_t event, const void *payload, size_t size) {
  int i = (int)(intptr_t)context;
  if (ADD(inside, 1) == ring_size) gate_open(&everyone_inside);
  gate_wait(&everyone_inside);
  ring[i].result = multicast_token_remove(ring[(i + 1) % ring_size].token);
}

static void release_in_ring(void *context) { ADD(ring[(intptr_t)context].releases, 1); }

static void ring_of(int size) {
  invoker invokers[RING];
  int pending = 0;
  ring_size = size;
  everyone_inside = shut;
  for (int i = 0; i < size; ++i) {
    multicast_delegate d = {remove_next, (void *)(intptr_t)i};
    ring[i].target = multicast_create();
    ring[i].token = add_with(ring[i].target, d, &ADD_OPTIONS(.release = release_in_ring));
  }
  for (int i = 0; i < size; ++i) invoke_in_background(&invokers[i], ring[i].target);
  for (int i = 0; i < size; ++i) CHECK_EQ(invoke_finished(&invokers[i]), 1);
  for (int i = 0; i < size; ++i) {
    CHECK(ring[i].result == MULTICAST_OK || ring[i].result == MULTICAST_PENDING);
    pending += ring[i].result == MULTICAST_PENDING;
    CHECK_EQ(LOAD(ring[i].releases), 1);
  }
  CHECK(pending >= 1); /* at least one removal did not wait */
}

TEST(remove_of_each_other_by_two_calls_does_not_hang) { ring_of(2); }
TEST(remove_around_a_ring_of_three_calls_does_not_hang) { ring_of(3); }
TEST(remove_around_a_ring_of_four_calls_does_not_hang) { ring_of(4); }

FUNCTION(remove_then_report, removal *r) {
  r->result = r->remove(r);
  r->had_left = LOAD(r->b->has_left);
}

TEST(remove_inside_another_call_waits_where_no_cycle_closes) {
  running_call c;
  invoker second;
  multicast other = multicast_create();
  begin_running_call(&c, by_token);
  add(other, DELEGATE(remove_then_report, &c.r));
  invoke_in_background(&second, other);
  pause_ms(A_WHILE_MS);
  CHECK(!LOAD(c.b.has_left));
  gate_open(&c.b.let_go);
  CHECK_EQ(invoke_finished(&second), 1);
  CHECK_OK(c.r.result);
  CHECK(c.r.had_left);
  invoke_finished(&c.i);
}
