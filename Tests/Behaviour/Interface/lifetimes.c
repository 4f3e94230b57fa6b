/* Ending a lifetime removes its registrations from every multicast. */

#include "harness.h"

TEST(lifetime_end_removes_its_registrations_from_every_multicast) {
  enum { COUNT = 5 };
  multicast targets[COUNT];
  multicast_lifetime l = multicast_lifetime_create();
  int releases = 0;
  multicast_add_options options = ADD_OPTIONS(.lifetime = l, .release = count_release);
  CHECK(l.id != 0);
  for (int i = 0; i < COUNT; ++i) {
    targets[i] = multicast_create();
    add_with(targets[i], counter(&releases), &options);
    add_with(targets[i], counter(&releases), &options);
    add(targets[i], counter(&calls));
  }
  CHECK_EQ(multicast_lifetime_count(l), 2 * COUNT);
  CHECK_OK(multicast_lifetime_end(l));
  CHECK_EQ(releases, 2 * COUNT);
  for (int i = 0; i < COUNT; ++i) {
    CHECK_EQ(multicast_count(targets[i]), 1);
    CHECK(!multicast_contains(targets[i], counter(&releases)));
    CHECK_EQ(multicast_invoke(targets[i], 0, NULL, 0), 1);
  }
  CHECK_EQ(releases, 2 * COUNT);
}

TEST(lifetime_count_follows_every_way_of_removal) {
  multicast m = multicast_create(), gone = multicast_create();
  multicast_lifetime l = multicast_lifetime_create();
  multicast_add_options options = ADD_OPTIONS(.lifetime = l);
  multicast_token t[4];
  for (int i = 0; i < 4; ++i) t[i] = add_with(m, counter(&calls), &options);
  add_with(gone, counter(&calls), &options);
  CHECK_EQ(multicast_lifetime_count(l), 5);
  CHECK_OK(multicast_token_remove(t[1]));
  CHECK_EQ(multicast_lifetime_count(l), 4);
  CHECK_OK(multicast_token_pause(t[0]));
  CHECK_EQ(multicast_lifetime_count(l), 4);
  CHECK_OK(multicast_destroy(gone));
  CHECK_EQ(multicast_lifetime_count(l), 3);
  options.flags = MULTICAST_ONCE;
  add_with(m, counter(&calls), &options);
  multicast_invoke(m, 0, NULL, 0);
  CHECK_EQ(multicast_lifetime_count(l), 3);
  options.flags = MULTICAST_UNIQUE; /* the new delegate replaces the remaining three */
  add_with(m, counter(&calls), &options);
  CHECK_EQ(multicast_lifetime_count(l), 1);
  CHECK_EQ(multicast_remove_all(m), 1);
  CHECK_EQ(multicast_lifetime_count(l), 0);
  CHECK_OK(multicast_lifetime_end(l));
}

TEST_OF_MULTICAST(lifetime_end_leaves_those_of_other_lifetimes) {
  multicast_lifetime a = multicast_lifetime_create(), b = multicast_lifetime_create();
  multicast_add_options options = ADD_OPTIONS(.lifetime = a);
  for (int i = 0; i < 20; ++i) {
    options.lifetime = i % 2 ? a : b;
    options.priority = i % 3;
    add_with(m, counter(&calls), &options);
  }
  CHECK_OK(multicast_lifetime_end(a));
  CHECK_EQ(multicast_count(m), 10);
  CHECK_EQ(multicast_lifetime_count(b), 10);
  CHECK_OK(multicast_lifetime_end(b));
  CHECK_EQ(multicast_count(m), 0);
}

TEST_OF_MULTICAST(lifetime_end_during_invoke_keeps_the_rest_from_being_called) {
  blocker b = BLOCKER_INIT;
  multicast_lifetime l = multicast_lifetime_create();
  add(m, blocking(&b));
  add_with(m, counter(&calls), &ADD_OPTIONS(.lifetime = l));
  begin_blocked(&b, m);
  CHECK_OK(multicast_lifetime_end(l)); /* returns without waiting for the other delegate */
  CHECK(!LOAD(b.has_left));
  CHECK_EQ(end_blocked(&b), 1);
  CHECK_EQ(LOAD(calls), 0);
}

THREAD(invoke_all_three, multicast *targets) {
  for (int i = 0; i < 3; ++i) multicast_invoke(targets[i], 0, NULL, 0);
}

/* Two threads have invoked the multicasts, so the library retires the replaced lists instead of
 * freeing them immediately. */
TEST(lifetime_end_keeps_no_lists_of_multicasts_that_it_empties) {
  enum { MANY = 2000, FEW_BYTES = 3 * 2048 };
  static int many_calls;
  multicast targets[3];
  use_test_allocator();
  for (int i = 0; i < 3; ++i) targets[i] = multicast_create();
  invoke_all_three(targets);
  on_another_thread(invoke_all_three, targets);
  multicast_add_options options = ADD_OPTIONS(.lifetime = multicast_lifetime_create());
  for (int k = 0; k < 3 * MANY; ++k) add_with(targets[k % 3], counter(&many_calls), &options);
  for (int i = 0; i < 3; ++i) CHECK_EQ(multicast_remove_all(targets[i]), MANY);
  int64_t before = allocated_bytes;
  for (int k = 0; k < 3 * MANY; ++k) add_with(targets[k % 3], counter(&many_calls), &options);
  CHECK(allocated_bytes >= before + (int64_t)3 * MANY * 32);
  CHECK_OK(multicast_lifetime_end(options.lifetime));
  if (allocated_bytes > before + FEW_BYTES) CHECK_EQ(allocated_bytes, before);
  CHECK_EQ(many_calls, 0);
}

THREAD(end_the_lifetime, multicast_lifetime *lifetime) {
  CHECK_OK(multicast_lifetime_end(*lifetime));
}

/* Two threads are each in a call to a delegate of the lifetime. When one call returns, its delegate
 * is released, although the other call is still running. */
static void expect_released_one_by_one(int first) {
  static blocker blockers[2] = {BLOCKER_INIT, BLOCKER_INIT};
  multicast_lifetime lifetime = multicast_lifetime_create();
  invoker invokers[2];
  multicast targets[2];
  multicast_add_options options = ADD_OPTIONS(.lifetime = lifetime, .release = release_blocker);
  for (int i = 0; i < 2; ++i) {
    targets[i] = multicast_create();
    add_with(targets[i], blocking(&blockers[i]), &options);
    invoke_in_background(&invokers[i], targets[i]);
    gate_wait(&blockers[i].entered);
  }
  pthread_t thread = start_thread(end_the_lifetime, &lifetime);
  EVENTUALLY(multicast_count(targets[0]) == 0 && multicast_count(targets[1]) == 0);
  /* let the thread fall asleep, so that the returning calls have to wake it */
  pause_ms(A_WHILE_MS);
  gate_open(&blockers[first].let_go);
  EVENTUALLY(LOAD(blockers[first].releases) == 1);
  CHECK_EQ(LOAD(blockers[1 - first].releases), 0);
  gate_open(&blockers[1 - first].let_go);
  join_thread(thread);
  for (int i = 0; i < 2; ++i) {
    CHECK_EQ(blockers[i].releases, 1);
    CHECK_EQ(invoke_finished(&invokers[i]), 1);
    CHECK_OK(multicast_destroy(targets[i]));
  }
}

TEST(lifetime_end_releases_the_first_as_its_call_returns) { expect_released_one_by_one(0); }
TEST(lifetime_end_releases_the_last_as_its_call_returns) { expect_released_one_by_one(1); }
