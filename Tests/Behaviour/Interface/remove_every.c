/* Tests removals of all registrations of a delegate, and removals that wait for calls to an equal
 * delegate removed earlier. */

#include "removals.h"

static int64_t by_every(removal *r) { return multicast_remove_every(r->target, r->delegate); }

static void add_with_priority(multicast m, multicast_delegate d, int32_t priority) {
  add_with(m, d, &ADD_OPTIONS(.release = count_release, .priority = priority));
}

TEST_OF_MULTICAST(remove_every_removes_all_equal_registrations_and_no_other) {
  int others = 0;
  multicast_delegate d = counter(&calls), same_context = d;
  same_context.function = count_call_too;
  add_with_priority(m, d, 0);
  add(m, same_context);
  add_with_priority(m, d, -3);
  add(m, counter(&others));
  add_with_priority(m, d, 7);
  CHECK_OK(multicast_remove_every(m, d));
  CHECK_EQ(calls, 3); /* all three registrations have been released */
  CHECK(!multicast_contains(m, d));
  CHECK(multicast_contains(m, same_context));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK_EQ(calls, 4);
  CHECK_EQ(others, 1);
  CHECK_ERROR(multicast_remove_every(m, d), NOT_FOUND);
  CHECK_OK(multicast_destroy(m));
  CHECK_ERROR(multicast_remove_every(m, d), INVALID_HANDLE);
  CHECK_EQ(calls, 4);
}

TEST_OF_MULTICAST(remove_every_removes_paused_queued_and_once_registrations) {
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  CHECK_OK(multicast_token_pause(add(m, counter(&calls))));
  add_queued(m, counter(&calls), q);
  add_with(m, counter(&calls), &ADD_OPTIONS(.flags = MULTICAST_ONCE));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_remove_every(m, counter(&calls)));
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK_EQ(stats_of(q).cancelled, 1);
  CHECK_EQ(calls, 1);
}

TEST(remove_every_waits_for_the_call_of_any_of_them) {
  running_call c;
  begin_running_call(&c, by_every);
  add(c.r.target, c.r.delegate);
  expect_to_wait(&c.r, MULTICAST_OK);
  CHECK_EQ(multicast_count(c.r.target), 0);
  CHECK_EQ(LOAD(c.b.releases), 1);
  invoke_finished(&c.i);
}

TEST(remove_every_is_ok_when_no_equal_one_removed_before_runs) {
  running_call c;
  begin_running_call(&c, by_every);
  CHECK_STATUS(multicast_token_remove_nowait(c.r.token), MULTICAST_PENDING);
  add(c.r.target, c.r.delegate);
  expect_to_wait(&c.r, MULTICAST_OK);
  invoke_finished(&c.i);
}

TEST(remove_every_of_none_waits_for_one_that_was_removed_before) {
  running_call c;
  begin_running_call(&c, by_every);
  CHECK_STATUS(multicast_token_remove_nowait(c.r.token), MULTICAST_PENDING);
  expect_to_wait(&c.r, MULTICAST_ERROR_NOT_FOUND);
  invoke_finished(&c.i);
}

TEST(remove_every_inside_a_call_of_one_is_pending) {
  multicast_add_options options = ADD_OPTIONS(.release = release_itself);
  own_removal o = {0};
  o.r.remove = by_every;
  o.r.target = multicast_create();
  o.r.delegate.function = remove_itself;
  o.r.delegate.context = &o;
  add_with(o.r.target, o.r.delegate, &options);
  add_with(o.r.target, o.r.delegate, &options);
  /* the call also removes the other registration */
  CHECK_EQ(multicast_invoke(o.r.target, 0, NULL, 0), 1);
  CHECK_STATUS(o.result, MULTICAST_PENDING);
  CHECK_EQ(o.releases_inside, 1); /* so far, only the idle registration has been released */
  CHECK_EQ(o.releases, 2);
  CHECK_EQ(multicast_count(o.r.target), 0);
}

/* ---- An equal delegate that was removed earlier ---------------------------------------------- */

/* Removes a registration during its call, adds an equal delegate, and returns while the call is
 * still running. */
static multicast_token begin_equal(running_call *c, int64_t (*remove)(removal *)) {
  begin_running_call(c, remove);
  CHECK_STATUS(multicast_token_remove_nowait(c->r.token), MULTICAST_PENDING);
  return add(c->r.target, c->r.delegate);
}

static void end_equal(running_call *c) {
  CHECK(!LOAD(c->b.has_left));
  CHECK_EQ(LOAD(c->b.releases), 0);
  gate_open(&c->b.let_go);
  invoke_finished(&c->i);
  CHECK_EQ(LOAD(c->b.releases), 1);
}

TEST(remove_at_does_not_wait_for_an_equal_one_removed_before) {
  running_call c;
  multicast_token token = begin_equal(&c, by_place);
  CHECK_OK(multicast_remove_at(c.r.target, 0));
  CHECK(!multicast_token_is_valid(token));
  end_equal(&c);
}

TEST(token_remove_does_not_wait_for_an_equal_one_removed_before) {
  running_call c;
  multicast_token token = begin_equal(&c, by_token);
  CHECK_OK(multicast_token_remove(token));
  token = add(c.r.target, c.r.delegate);
  CHECK_OK(multicast_token_remove_within(token, 0));
  token = add(c.r.target, c.r.delegate);
  CHECK_OK(multicast_token_remove_nowait(token));
  end_equal(&c);
}

TEST(remove_waits_for_an_equal_one_that_was_removed_before) {
  running_call c;
  multicast_token token = begin_equal(&c, by_remove);
  expect_to_wait(&c.r, MULTICAST_OK);
  CHECK(!multicast_token_is_valid(token));
  invoke_finished(&c.i);
}
