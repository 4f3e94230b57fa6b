/* Removing a delegate also waits for calls to an earlier, equal registration, since the two
 * registrations share the context. */

#include "removals.h"

/* Adds a delegate, adds it again during its call, and removes it on another thread. */
static void remove_after_adding_again(uint32_t flags) {
  blocker b = BLOCKER_INIT;
  removal r;
  multicast_add_options options = ADD_OPTIONS(.flags = flags);
  prepare_removal(&r, multicast_create(), &b, by_remove);
  add_with(r.target, r.delegate, &options);
  begin_blocked(&b, r.target);
  add_with(r.target, r.delegate, &options);
  expect_to_wait(&r, MULTICAST_OK);
  CHECK_EQ(invoke_finished(&b.invoking), 1);
  CHECK_EQ(multicast_count(r.target), 0);
}

TEST(remove_waits_for_call_of_one_that_unique_add_has_replaced) {
  remove_after_adding_again(MULTICAST_UNIQUE);
}

TEST(remove_waits_for_the_call_of_an_equal_one_called_once) {
  remove_after_adding_again(MULTICAST_ONCE);
}

static multicast own;

static void add_again_and_remove(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_delegate d = {add_again_and_remove, context};
  ++*(int *)context;
  add(own, d);
  CHECK_STATUS(multicast_remove(own, d), MULTICAST_PENDING);
  CHECK_EQ(multicast_count(own), 0);
}

TEST(remove_of_one_added_again_inside_its_own_call_is_pending) {
  multicast_delegate d = {add_again_and_remove, &calls};
  own = multicast_create();
  add_with(own, d, &ADD_OPTIONS(.flags = MULTICAST_ONCE));
  CHECK_EQ(multicast_invoke(own, 0, NULL, 0), 1);
  CHECK_EQ(calls, 1);
  CHECK_ERROR(multicast_remove(own, d), NOT_FOUND);
}

/* The removed delegate is no longer in the current list, but only in an old list that the
 * invocation is still reading. */
TEST(remove_waits_for_a_call_in_a_list_that_was_replaced) {
  blocker b = BLOCKER_INIT;
  removal r;
  multicast_add_options options = multicast_add_options_default();
  multicast_token others[40];
  int other_calls = 0;
  prepare_removal(&r, multicast_create(), &b, by_remove);
  add_with(r.target, r.delegate, &options);
  begin_blocked(&b, r.target);
  for (int n = 0; n < 40; ++n) others[n] = add(r.target, counter(&other_calls));
  CHECK_ERROR(multicast_remove_every_within(r.target, r.delegate, 0), TIMEOUT);
  for (int n = 0; n < 30; ++n) CHECK_OK(multicast_token_remove(others[n]));
  expect_to_wait(&r, MULTICAST_ERROR_NOT_FOUND);
  CHECK_EQ(invoke_finished(&b.invoking), 1);
}
