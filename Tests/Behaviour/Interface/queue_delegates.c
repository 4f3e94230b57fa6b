/* Tests which delegates have their calls queued, and in which order these calls run. */

#include "notes.h"
#include "queues.h"

/* ---- Queueing -------------------------------------------------------------------------------- */

TEST_OF_QUEUE(queue_makes_no_call_before_it_is_run) {
  add_queued(m, noting('a'), q);
  CHECK_NOTED(invoke_number(m, 1), 1, "");
  CHECK_TEXT(figures(q), "pending 1, queued 1");
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "a1");
  CHECK_TEXT(figures(q), "queued 1, delivered 1");
  CHECK_NOTED(multicast_queue_run(q, 0), 0, "a1");
}

TEST(queue_calls_run_in_the_order_in_which_they_were_queued) {
  multicast_queue q = default_queue();
  multicast m = multicast_create(), other = multicast_create();
  add_queued(m, noting('a'), q);
  add_queued(m, noting('b'), q);
  add_with(m, noting('u'), &ADD_OPTIONS(.queue = q, .priority = 5));
  add_queued(other, noting('x'), q);
  CHECK_EQ(invoke_number(m, 1), 3);
  CHECK_EQ(invoke_number(other, 2), 1);
  CHECK_EQ(invoke_number(m, 3), 3);
  CHECK_NOTED(multicast_queue_run(q, 0), 7, "u1 a1 b1 x2 u3 a3 b3");
}

TEST_OF_MULTICAST(queue_delegates_and_direct_ones_take_turns) {
  multicast_queue q = default_queue(), other = default_queue();
  add(m, noting('a'));
  add_queued(m, noting('q'), q);
  add(m, noting('b'));
  add_queued(m, noting('o'), other);
  add(m, noting('c'));
  CHECK_NOTED(invoke_number(m, 1), 5, "a1 b1 c1");
  CHECK_EQ(multicast_queue_run(other, 0), 1);
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "a1 b1 c1 o1 q1");
}

TEST_OF_QUEUE(queue_passes_the_event_on) {
  static const uint32_t events[] = {0, 1, 63, 64, 4711, UINT32_MAX};
  int number = 1;
  add_queued(m, noting('a'), q);
  for (size_t i = 0; i < 6; ++i) multicast_invoke(m, events[i], &number, sizeof number);
  CHECK_NOTED(multicast_queue_run(q, 0), 6, "a1 a1@1 a1@63 a1@64 a1@4711 a1@4294967295");
}

TEST_OF_QUEUE(queue_does_not_take_events_that_are_not_wanted) {
  add_with(m, noting('a'), &ADD_OPTIONS(.queue = q,
                                        .events = UINT64_C(1) << 3 | UINT64_C(1) << 63));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK_EQ(multicast_invoke(m, 3, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 62, NULL, 0), 0);
  CHECK_EQ(multicast_invoke(m, 63, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 64, NULL, 0), 1);
  CHECK_TEXT(figures(q), "pending 3, queued 3");
  CHECK_NOTED(multicast_queue_run(q, 0), 3, "a@3 a@63 a@64");
}

/* ---- Delegates ------------------------------------------------------------------------------- */

TEST_OF_QUEUE(queue_delegates_are_passed_to_visitors_here_and_now) {
  int number = 5;
  add_queued(m, noting('q'), q);
  add(m, noting('a'));
  CHECK_NOTED(multicast_visit(m, visit_all, &number), 2, "q5 a5");
  CHECK_TEXT(figures(q), "");
}

TEST_OF_QUEUE(queue_delegates_may_be_added_many_at_once) {
  multicast_delegate d[3];
  multicast_token tokens[3];
  d[0] = noting('a');
  d[1] = noting('b');
  d[2] = noting('c');
  CHECK_OK(multicast_add_many(m, d, 3, &ADD_OPTIONS(.queue = q), tokens));
  CHECK_EQ(invoke_number(m, 1), 3);
  CHECK_OK(multicast_token_remove(tokens[1]));
  CHECK_NOTED(multicast_queue_run(q, 0), 2, "a1 c1");
}

TEST(queue_serves_many_multicasts_and_delegates) {
  enum { MANY = 300 };
  multicast m[MANY];
  multicast_queue q = queue_with(MANY, MULTICAST_OVERFLOW_REFUSE);
  int calls[MANY] = {0};
  for (int i = 0; i < MANY; ++i) {
    m[i] = multicast_create();
    add_queued(m[i], counter(&calls[i]), q);
  }
  for (int i = 0; i < MANY; ++i) CHECK_EQ(invoke_number(m[i], i), 1);
  CHECK_EQ(multicast_queue_run(q, 0), MANY);
  for (int i = 0; i < MANY; ++i) CHECK_EQ(calls[i], 1);
  CHECK_OK(multicast_queue_destroy(q));
  for (int i = 0; i < MANY; ++i) CHECK_EQ(multicast_count(m[i]), 0);
}

static multicast_token seen_outer, seen_inner, seen_after;
static multicast direct_target;

static void see_inner(void *context, uint32_t event, const void *payload, size_t size) {
  seen_inner = multicast_token_current();
}

static void see_current(void *context, uint32_t event, const void *payload, size_t size) {
  seen_outer = multicast_token_current();
  multicast_invoke(direct_target, 0, NULL, 0);
  seen_after = multicast_token_current();
}

TEST_OF_QUEUE(queue_call_has_its_token_as_the_current_one) {
  multicast_delegate outer = {see_current, NULL}, inner = {see_inner, NULL};
  multicast_token token = add_queued(m, outer, q), other;
  direct_target = multicast_create();
  other = add(direct_target, inner);
  multicast_invoke(m, 0, NULL, 0);
  CHECK_EQ(multicast_token_current().id, 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(seen_outer.id, token.id);
  CHECK_EQ(seen_inner.id, other.id);
  CHECK_EQ(seen_after.id, token.id);
  CHECK_EQ(multicast_token_current().id, 0);
}

/* ---- Pauses ---------------------------------------------------------------------------------- */

TEST_OF_QUEUE(queue_takes_no_call_of_a_paused_delegate) {
  multicast_token token = add_queued(m, noting('a'), q);
  CHECK_OK(multicast_token_pause(token));
  CHECK_EQ(invoke_number(m, 1), 0);
  CHECK_OK(multicast_token_resume(token));
  CHECK_EQ(invoke_number(m, 2), 1);
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "a2");
  CHECK_TEXT(figures(q), "queued 1, delivered 1");
}

TEST_OF_QUEUE(queue_makes_calls_that_waited_before_a_pause) {
  multicast_token token = add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  invoke_number(m, 2);
  CHECK_OK(multicast_token_pause(token));
  CHECK_NOTED(multicast_queue_run(q, 0), 2, "a1 a2");
}
