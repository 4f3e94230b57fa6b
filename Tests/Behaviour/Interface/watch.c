/* Tests which calls a watch reports, and what multicast_token_get_stats() counts. */

#include "broadcasters.h"
#include "notes.h"
#include "policies.h"
#include "watches.h"

static witness w, own;

static void pause_call(void *context, uint32_t event, const void *payload, size_t size) {
  pause_ms(*(int *)context);
}

static multicast_delegate pausing(int *milliseconds) {
  return DELEGATE(pause_call, milliseconds);
}

/* ---- The watched calls ----------------------------------------------------------------------- */

TEST(watch_is_notified_of_each_call_of_its_multicast) {
  multicast m = multicast_create(), other = multicast_create();
  multicast_token a = add(m, counter(&calls)), b = add(m, counter(&calls));
  add(other, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 5, NULL, 0), 2);
  CHECK_EQ(w.calls, 0);
  watch(m, counting_calls(&w));
  CHECK_EQ(multicast_invoke(m, 5, NULL, 0), 2);
  CHECK_EQ(multicast_invoke(other, 5, NULL, 0), 1);
  CHECK_EQ(w.calls, 2);
  CHECK_EQ(w.event, 5);
  CHECK_EQ(w.token.id, b.id);
  CHECK(pthread_equal(w.thread, pthread_self()));
  CHECK_EQ(multicast_token_invoke(a, 6, NULL, 0), 1);
  CHECK_EQ(w.calls, 3);
  CHECK_EQ(w.event, 6);
  CHECK_EQ(w.token.id, a.id);
  unwatch(m);
  CHECK_EQ(multicast_invoke(m, 5, NULL, 0), 2);
  CHECK_EQ(w.calls, 3);
  CHECK_EQ(calls, 8);
}

TEST_OF_MULTICAST(watch_is_notified_with_options_as_without) {
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
  multicast_token a = add(m, noting('a')), b = add_queued(m, noting('b'), q);
  int number = 3;
  multicast_invocation how = INVOCATION(.event = 9, .payload = &number, .size = sizeof number);
  watch(m, counting_calls(&w));
  CHECK_EQ(multicast_invoke_with(m, &how, &out), 2);
  CHECK_EQ(multicast_invoke_with(m, &how, &out), 1);
  CHECK_EQ(out.refused, 1);
  CHECK_EQ(w.calls, 2);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(w.calls, 3);
  CHECK_EQ(w.event, 9);
  CHECK_EQ(w.token.id, b.id);
  CHECK_TEXT(noted, "a3@9 a3@9 b3@9");
  expect_counted(a, 2, 0, 0);
  expect_counted(b, 1, 1, 1);
}

static bool stop_at_second(void *context, const multicast_delegate *delegate) {
  return ++*(int *)context < 2;
}

TEST(watch_is_notified_of_visits_with_event_0) {
  multicast m = multicast_create(), guarded = create_with_reentry(MULTICAST_REENTRY_REFUSE);
  multicast_token a = add(m, counter(&calls));
  int visits = 0, i;
  for (i = 0; i < 2; ++i) add(m, counter(&calls));
  for (i = 0; i < 3; ++i) add(guarded, counter(&calls));
  watch_all(counting_calls(&w));
  w.event = 77;
  CHECK_EQ(multicast_visit(m, stop_at_second, &visits), 2);
  CHECK_EQ(w.calls, 2);
  CHECK_EQ(w.event, 0);
  visits = -8;
  CHECK_EQ(multicast_visit(guarded, stop_at_second, &visits), 3);
  CHECK_EQ(w.calls, 5);
  CHECK_EQ(multicast_token_visit(a, stop_at_second, &visits), 1);
  CHECK_EQ(w.calls, 6);
  visits = 0;
  CHECK_EQ(multicast_visit_undo(guarded, stop_at_second, visit_all, &visits), 0);
  CHECK_EQ(w.calls, 6 + 2 + 1); /* the last three are two visits, one of which was undone */
}

TEST_OF_QUEUE(watch_is_notified_of_calls_of_each_kind_of_delegate) {
  int releases = 0;
  watch(m, counting_calls(&w));
  multicast_add_options options = ADD_OPTIONS(.events = 1u << 4);
  add_with(m, counter(&calls), &options);
  options = ADD_OPTIONS(.release = count_release);
  options.flags = MULTICAST_ONCE;
  add_with(m, counter(&releases), &options);
  multicast_token paused = add(m, counter(&calls));
  CHECK_OK(multicast_token_pause(paused));
  options = ADD_OPTIONS(.queue = q);
  options.flags = MULTICAST_ONCE;
  add_with(m, counter(&calls), &options);
  options.flags = MULTICAST_LATEST;
  add_with(m, counter(&calls), &options);
  CHECK_EQ(multicast_invoke(m, 3, NULL, 0), 3);
  CHECK_EQ(w.calls, 1); /* the direct call of the MULTICAST_ONCE delegate */
  CHECK_EQ(releases, 2); /* one call and one release */
  CHECK_EQ(multicast_invoke(m, 4, NULL, 0), 2);
  CHECK_EQ(w.calls, 2);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_EQ(w.calls, 4);
  CHECK_EQ(calls, 3);
}

static void *lock_it(void *context) { return context; }
static void unlock_it(void *strong) { (void)strong; }

TEST_OF_MULTICAST(watch_is_notified_of_calls_with_contexts_that_are_locked) {
  multicast_add_options options = ADD_OPTIONS(.lock = lock_it, .unlock = unlock_it);
  add_with(m, counter(&calls), &options);
  options.queue = default_queue();
  add_with(m, counter(&calls), &options);
  watch(m, counting_calls(&w));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 2);
  CHECK_EQ(w.calls, 1);
  CHECK_EQ(multicast_queue_run(options.queue, 0), 1);
  CHECK_EQ(w.calls, 2);
  CHECK_EQ(calls, 2);
}

TEST(watch_is_notified_of_calls_that_are_replayed) {
  multicast m = multicast_create_with(&CREATE_OPTIONS(.replay = 2));
  CHECK_EQ(multicast_invoke(m, 5, NULL, 0), 0);
  CHECK_EQ(multicast_invoke(m, 6, NULL, 0), 0);
  watch(m, counting_calls(&w));
  multicast_token token = add(m, counter(&calls));
  CHECK_EQ(calls, 2);
  CHECK_EQ(w.calls, 2);
  CHECK_EQ(w.event, 6);
  CHECK_EQ(multicast_invoke(m, 7, NULL, 0), 1);
  CHECK_EQ(w.calls, 3);
  expect_counted(token, 3, 0, 0);
}

TEST(watch_of_all_is_notified_of_multicasts_created_later) {
  multicast m = multicast_create(), later;
  add(m, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  watch_all(counting_calls(&w));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  later = multicast_create();
  add(later, counter(&calls));
  CHECK_EQ(multicast_invoke(later, 1, NULL, 0), 1);
  CHECK_EQ(w.calls, 2);
  unwatch_all();
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(later, 1, NULL, 0), 1);
  CHECK_EQ(w.calls, 2);
}

TEST(watch_of_all_can_be_set_before_anything_is_created) {
  watch_all(counting_calls(&w));
  multicast m = multicast_create();
  add(m, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(w.calls, 1);
}

TEST(watch_of_all_finds_each_of_many_multicasts) {
  enum { MANY = 3000 };
  static multicast many[MANY];
  for (int i = 0; i < MANY; ++i) {
    many[i] = multicast_create();
    add(many[i], counter(&calls));
    if (i % 2) CHECK_EQ(multicast_invoke(many[i], 1, NULL, 0), 1);
    if (i % 7 == 0) CHECK_OK(multicast_destroy(many[i]));
  }
  watch_all(counting_calls(&w));
  calls = 0;
  for (int i = 0; i < MANY; ++i) multicast_invoke(many[i], 1, NULL, 0);
  CHECK_EQ(w.calls, calls);
  CHECK_EQ(calls, MANY - (MANY + 6) / 7);
  unwatch_all();
  for (int i = 0; i < MANY; ++i) multicast_invoke(many[i], 1, NULL, 0);
  CHECK_EQ(w.calls * 2, calls);
}

TEST_OF_BROADCASTER(watch_of_all_is_notified_of_names) {
  observe(b, NAME, counter(&calls));
  watch_all(counting_calls(&w));
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 8, NULL, 0), 1);
  CHECK_EQ(w.calls, 1);
  CHECK_EQ(w.event, 8);
}

TEST(own_watch_of_a_multicast_comes_first) {
  multicast m = multicast_create(), other = multicast_create();
  multicast_watch all = counting_calls(&w), one = counting_calls(&own);
  add(m, counter(&calls));
  add(other, counter(&calls));
  watch(m, one);
  watch_all(all);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(other, 1, NULL, 0), 1);
  CHECK_EQ(w.calls, 1);
  CHECK_EQ(own.calls, 1);
  unwatch_all();
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(own.calls, 2);
  watch_all(all);
  unwatch(m);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(own.calls, 2);
  CHECK_EQ(w.calls, 2);
}

TEST(watches_of_many_multicasts_are_separate) {
  enum { MANY = 3000 };
  static multicast many[MANY];
  multicast_watch even = counting_calls(&w), odd = counting_calls(&own);
  for (int i = 0; i < MANY; ++i) {
    many[i] = multicast_create();
    add(many[i], counter(&calls));
    watch(many[i], i % 2 ? odd : even);
  }
  for (int i = 0; i < MANY; i += 2) CHECK_EQ(multicast_invoke(many[i], 1, NULL, 0), 1);
  CHECK_EQ(w.calls, MANY / 2);
  CHECK_EQ(own.calls, 0);
  for (int i = 0; i < MANY; i += 3) unwatch(many[i]);
  for (int i = 0; i < MANY; ++i) CHECK_EQ(multicast_invoke(many[i], 1, NULL, 0), 1);
  CHECK_EQ(w.calls, MANY / 2 + MANY / 3);
  CHECK_EQ(own.calls, MANY / 3);
}

TEST(own_watch_ends_with_its_multicast) {
  multicast_watch given = counting_calls(&own);
  multicast last = multicast_create(), m;
  watch(last, given);
  CHECK_OK(multicast_destroy(last));
  for (int i = 0; i < 3; ++i) { /* one of them reuses the slot */
    m = multicast_create();
    add(m, counter(&calls));
    CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  }
  CHECK_EQ(own.calls, 0);
  CHECK_ERROR(multicast_set_watch(last, &given), INVALID_HANDLE);
}

TEST(watches_of_destroyed_multicasts_do_not_add_up) {
  int64_t blocks = 0;
  use_test_allocator();
  for (int i = 0; i < 4000; ++i) {
    multicast m = multicast_create();
    watch(m, counting_calls(&own));
    if (i == 2000) blocks = allocated_blocks;
    CHECK_OK(multicast_destroy(m));
  }
  CHECK(allocated_blocks <= blocks + 10);
  blocks = allocated_blocks;
  unwatch_all(); /* frees the watches of destroyed multicasts */
  CHECK(allocated_blocks < blocks);
}

THREAD(invoke_here, multicast *argument) {
  CHECK_EQ(multicast_invoke(*argument, 1, NULL, 0), 1);
}

TEST_OF_MULTICAST(watch_of_a_multicast_that_is_fenced) {
  enum { ROUNDS = 64 };
  add(m, counter(&calls));
  on_another_thread(invoke_here, &m);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  for (int i = 0; i < ROUNDS; ++i) { /* add and remove in quick succession */
    CHECK_OK(multicast_token_remove(add(m, counter(&calls))));
    if (i == ROUNDS / 2) watch(m, counting_calls(&w));
  }
  int before = w.calls;
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(w.calls, before + 1);
  unwatch(m);
  for (int i = 0; i < ROUNDS; ++i) CHECK_OK(multicast_token_remove(add(m, counter(&calls))));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  watch(m, counting_calls(&w));
  for (int i = 0; i < 5000; ++i) CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(w.calls, before + 1 + 5000);
}

/* ---- Arguments of the functions -------------------------------------------------------------- */

TEST_OF_MULTICAST(watch_slow_has_the_label_and_the_time) {
  multicast_watch given = watching(&w);
  int milliseconds = 5;
  multicast_token token = add_with(m, pausing(&milliseconds), &ADD_OPTIONS(.label = "sensor 7"));
  given.called = NULL;
  given.slow_ns = 4000000;
  watch(m, given);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(w.slow, 1);
  CHECK_EQ(w.token.id, token.id);
  CHECK_TEXT(w.label, "sensor 7");
  CHECK(w.elapsed_ns >= 5000000);
  CHECK_EQ(counted(token).total_ns, w.elapsed_ns);
}

TEST_OF_MULTICAST(watch_slow_is_not_notified_of_fast_calls) {
  multicast_watch given = watching(&w);
  add(m, counter(&calls));
  given.slow_ns = 60ull * 1000 * 1000 * 1000;
  watch(m, given);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(w.slow, 0);
  CHECK_EQ(w.calls, 1);
  given.slow_ns = 0; /* if this is 0, no call is reported as slow */
  watch(m, given);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(w.slow, 0);
}

TEST_OF_MULTICAST(watch_slow_is_notified_without_a_label_and_of_queued_calls) {
  multicast_add_options options = ADD_OPTIONS(.queue = default_queue());
  add(m, counter(&calls));
  options.label = "later";
  options.flags = MULTICAST_ONCE;
  add_with(m, counter(&calls), &options);
  watch(m, watching(&w));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 2);
  CHECK_TEXT(w.label, "-");
  CHECK_EQ(multicast_queue_run(options.queue, 0), 1);
  CHECK_TEXT(w.label, "later");
  CHECK_EQ(w.slow, 2);
  CHECK_EQ(w.calls, 2);
}

TEST_OF_MULTICAST(watch_without_functions_counts) {
  multicast_watch given = MULTICAST_WATCH_INIT;
  multicast_token token = add(m, counter(&calls));
  watch(m, given);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  expect_counted(token, 1, 0, 0);
}

/* ---- Statistics ------------------------------------------------------------------------------ */

TEST_OF_MULTICAST(statistics_are_counted_while_watched) {
  multicast_token token = add(m, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  expect_counted(token, 0, 0, 0);
  watch(m, counting_calls(&w));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  expect_counted(token, 2, 0, 0);
  CHECK_EQ(counted(token).longest_ns <= counted(token).total_ns, true);
  unwatch(m);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  expect_counted(token, 2, 0, 0);
  watch(m, counting_calls(&w));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  expect_counted(token, 3, 0, 0);
}

TEST_OF_MULTICAST(statistics_count_what_a_queue_drops_and_refuses) {
  multicast_queue drops = queue_with(2, MULTICAST_OVERFLOW_DROP_OLDEST);
  multicast_queue refuses = queue_with(2, MULTICAST_OVERFLOW_REFUSE);
  multicast_token a = add_queued(m, counter(&calls), drops);
  multicast_token b = add_queued(m, counter(&calls), refuses);
  char large[100] = {0};
  watch(m, counting_calls(&w));
  for (int i = 0; i < 5; ++i) multicast_invoke(m, 1, large, i % 2 ? sizeof large : 8);
  expect_counted(a, 0, 5, 3);
  expect_counted(b, 0, 2, 3);
  CHECK_EQ(multicast_queue_run(drops, 0), 2);
  CHECK_EQ(multicast_queue_run(refuses, 0), 2);
  expect_counted(a, 2, 5, 3);
  expect_counted(b, 2, 2, 3);
  CHECK_EQ(w.calls, 4);
}

TEST_OF_MULTICAST(statistics_of_the_next_registration_begin_at_0) {
  multicast_token next;
  watch(m, counting_calls(&w));
  multicast_token first = add(m, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_OK(multicast_token_remove(first));
  for (int i = 0; i < 40; ++i) { /* one of them reuses the slot */
    next = add(m, counter(&calls));
    expect_counted(next, 0, 0, 0);
    CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
    expect_counted(next, 1, 0, 0);
    CHECK_OK(multicast_token_remove(next));
  }
}

/* ---- Bad input ------------------------------------------------------------------------------- */

TEST(watch_of_bad_input_is_refused) {
  multicast m = multicast_create(), forged = {m.id ^ 1};
  multicast_watch given = counting_calls(&w), bad = given;
  CHECK_ERROR(multicast_set_watch(forged, &given), INVALID_HANDLE);
  CHECK_ERROR(multicast_set_watch(forged, NULL), INVALID_HANDLE);
  bad.reserved = 1;
  CHECK_ERROR(multicast_set_watch(m, &bad), INVALID_ARGUMENT);
  bad = given;
  bad.struct_size = 0;
  CHECK_ERROR(multicast_set_watch(m, &bad), INVALID_ARGUMENT);
  add(m, counter(&calls));
  watch(m, given);
  CHECK_ERROR(multicast_set_watch(m, &bad), INVALID_ARGUMENT);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(w.calls, 1); /* the previous watch is still set */
}

TEST(watch_without_memory_leaves_the_last_one) {
  multicast_watch given = counting_calls(&w), other = counting_calls(&own);
  use_test_allocator();
  multicast m = multicast_create();
  add(m, counter(&calls));
  watch(m, given);
  fail_after = 0;
  CHECK_ERROR(multicast_set_watch(m, &other), OUT_OF_MEMORY);
  fail_after = -1;
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(w.calls, 1);
  CHECK_EQ(own.calls, 0);
}

TEST(watch_of_all_needs_no_memory) {
  const multicast all = {0};
  multicast_watch given = counting_calls(&w), other = counting_calls(&own);
  use_test_allocator();
  multicast m = multicast_create();
  add(m, counter(&calls));
  watch(m, given);
  fail_after = 0;
  CHECK_OK(multicast_set_watch(all, &given));
  CHECK_OK(multicast_set_watch(all, &other)); /* replaces the previous watch */
  fail_after = -1;
  CHECK_OK(multicast_set_watch(m, NULL));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(own.calls, 1);
  CHECK_EQ(w.calls, 0);
  CHECK_OK(multicast_set_watch(all, NULL));
}

TEST_OF_MEMORY(statistics_without_memory_are_not_counted) {
  multicast_token token = add(m, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  watch(m, counting_calls(&w));
  fail_after = 0;
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(w.calls, 1);
  expect_counted(token, 0, 0, 0);
  fail_after = -1;
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  expect_counted(token, 1, 0, 0);
}

/* For a delegate with a queue, a new watch takes effect when the next call is queued. From then on,
 * the watch may also report calls that were queued earlier. */
TEST_OF_QUEUE(watch_may_be_notified_of_a_call_that_was_queued_before) {
  multicast_token t = add_queued(m, counter(&calls), q);
  multicast_token_stats stats = MULTICAST_TOKEN_STATS_INIT;
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  watch(m, counting_calls(&w));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_EQ(w.calls, 2);
  CHECK_OK(multicast_token_get_stats(t, &stats));
  CHECK_EQ(stats.calls, 2);
  CHECK_EQ(stats.queued, 1);
}
