/* Tests multicasts that replay past invocations to delegates added later. These tests use one
 * thread. */

#include "allocators.h"
#include "payloads.h"
#include "policies.h"
#include "queues.h"

#include <sys/wait.h>
#include <unistd.h>

static multicast target;
static echo first, second;

static multicast create_replaying(uint32_t replay, multicast_reentry reentry) {
  target = multicast_create_with(&CREATE_OPTIONS(.replay = replay, .reentry = reentry));
  CHECK(target.id != 0);
  return target;
}

static void invoke_numbers(int from, int to) {
  for (; from <= to; ++from) CHECK(invoke_number(target, from) >= 0);
}

static multicast_add_options flagged(uint32_t flags) {
  return ADD_OPTIONS(.flags = flags);
}

/* TEST_OF_REPLAY(name, N) { ... }: defines a test with a multicast `target` that replays the last N
 * invocations. */
#define TEST_OF_REPLAY(NAME, COUNT) \
  TEST_OF(NAME, (multicast m), (create_replaying(COUNT, MULTICAST_REENTRY_RECURSE)))

/* ---- The replayed invocations ---------------------------------------------------------------- */

TEST_OF_REPLAY(replay_gives_a_new_delegate_the_last_invocations_in_order, 3) {
  add(target, noting('a'));
  CHECK_TEXT(noted, "");
  invoke_numbers(1, 2);
  add(target, noting('b'));
  CHECK_TEXT(noted, "a1 a2 b1 b2");
  invoke_numbers(3, 5);
  CHECK_TEXT(noted, "a1 a2 b1 b2 a3 b3 a4 b4 a5 b5");
  noted_length = 0;
  add(target, noting('c'));
  CHECK_TEXT(noted, "c3 c4 c5");
  CHECK_NOTED(invoke_number(target, 6), 3, "c3 c4 c5 a6 b6 c6");
}

TEST(replay_keeps_the_event_and_the_bytes) {
  static parcel p;
  unsigned char bytes[4000];
  size_t sizes[] = {1, 32, 33, sizeof bytes};
  for (size_t i = 0; i < 4; ++i) {
    create_replaying(1, MULTICAST_REENTRY_RECURSE);
    memset(bytes, (int)i + 1, sizeof bytes);
    CHECK_EQ(multicast_invoke(target, 7, bytes, sizes[i]), 0);
    memset(bytes, 0, sizeof bytes);
    memset(&p, 0, sizeof p);
    add(target, keeping(&p));
    CHECK_EQ(p.calls, 1);
    CHECK_EQ(p.size, sizes[i]);
    CHECK_EQ((uintptr_t)p.payload % 16, 0);
    CHECK_EQ(p.bytes[0], i + 1);
    CHECK_EQ(p.bytes[sizes[i] - 1], i + 1);
  }
}

TEST_OF_REPLAY(replay_without_size_gives_the_pointer_itself, 1) {
  static seen s;
  CHECK_EQ(multicast_invoke(target, 3, &target, 0), 0);
  add(target, seeing(&s));
  CHECK_EQ(s.calls, 1);
  CHECK_EQ(s.event, 3);
  CHECK(s.payload == &target);
}

TEST_OF_REPLAY(replay_leaves_out_events_that_are_not_wanted, 3) {
  multicast_registration known = MULTICAST_REGISTRATION_INIT;
  int number = 5;
  CHECK_EQ(multicast_invoke(target, 1, &number, sizeof number), 0);
  CHECK_EQ(multicast_invoke(target, 2, &number, sizeof number), 0);
  CHECK_EQ(multicast_invoke(target, 64, &number, sizeof number), 0);
  multicast_token token = add_with(target, noting('a'), &ADD_OPTIONS(.events = 1u << 2));
  CHECK_TEXT(noted, "a5@2 a5@64");
  CHECK_OK(multicast_token_get_registration(token, &known));
  CHECK_EQ(known.events, 1u << 2);
  CHECK_EQ(multicast_invoke(target, 1, &number, sizeof number), 0);
  CHECK_EQ(multicast_invoke(target, 2, &number, sizeof number), 1);
  CHECK_OK(multicast_token_get_registration(add(target, noting('b')), &known));
  CHECK_EQ(known.events, 0);
}

TEST_OF_REPLAY(no_replay_gives_a_delegate_none, 3) {
  multicast_add_options options = flagged(MULTICAST_NO_REPLAY);
  invoke_numbers(1, 2);
  add_with(target, noting('a'), &options);
  CHECK_TEXT(noted, "");
  invoke_numbers(3, 3);
  CHECK_TEXT(noted, "a3");
}

TEST_OF_REPLAY(no_replay_of_a_delegate_that_wants_some_events, 3) {
  multicast_add_options options = flagged(MULTICAST_NO_REPLAY);
  invoke_numbers(1, 1);
  options.events = 1;
  add_with(target, noting('a'), &options);
  invoke_numbers(2, 2);
  CHECK_TEXT(noted, "a2");
}

TEST_OF_MULTICAST(no_replay_has_no_effect_without_replay) {
  multicast_add_options options = flagged(MULTICAST_NO_REPLAY);
  add_with(m, noting('a'), &options);
  CHECK_NOTED(invoke_number(m, 1), 1, "a1");
}

TEST_OF_REPLAY(replay_does_not_count_visits_and_calls_of_one_token, 3) {
  int number = 1;
  multicast_token token = add(target, counter(&calls));
  CHECK_EQ(multicast_token_invoke(token, 0, &number, sizeof number), 1);
  CHECK_EQ(multicast_visit(target, visit_all, NULL), 1);
  CHECK_EQ(calls, 2);
  add(target, noting('a'));
  CHECK_TEXT(noted, "");
}

TEST_OF_REPLAY(replay_does_not_count_invocations_that_fail, 3) {
  CHECK_ERROR(multicast_invoke(target, 0, NULL, 1), INVALID_ARGUMENT);
  add(target, noting('a'));
  CHECK_TEXT(noted, "");
}

TEST(replay_of_many_gives_each_invocation_to_all_of_them) {
  multicast_delegate delegates[3];
  multicast_token tokens[3];
  for (int i = 0; i < 3; ++i) delegates[i] = noting((char)('a' + i));
  create_replaying(2, MULTICAST_REENTRY_RECURSE);
  invoke_numbers(1, 3);
  CHECK_OK(multicast_add_many(target, delegates, 3, NULL, tokens));
  CHECK_TEXT(noted, "a2 b2 c2 a3 b3 c3");
  CHECK_OK(multicast_token_remove(tokens[1]));
  CHECK_OK(multicast_add_many(target, delegates, 1, NULL, NULL));
  CHECK_TEXT(noted, "a2 b2 c2 a3 b3 c3 a2 a3");
  noted_length = 0;
  CHECK_NOTED(invoke_number(target, 4), 3, "a4 c4 a4");
  CHECK_OK(multicast_add_many(target, delegates, 0, NULL, tokens));
}

TEST(replay_of_unique_delegates_is_for_those_that_stay) {
  multicast_delegate delegates[2] = {noting('a'), noting('a')};
  multicast_add_options options = flagged(MULTICAST_UNIQUE);
  create_replaying(2, MULTICAST_REENTRY_RECURSE);
  invoke_numbers(1, 1);
  CHECK_OK(multicast_add_many(target, delegates, 2, &options, NULL));
  CHECK_TEXT(noted, "a1");
  add_with(target, noting('a'), &options);
  CHECK_TEXT(noted, "a1 a1");
  CHECK_EQ(multicast_count(target), 1);
}

TEST_OF_REPLAY(replay_of_a_delegate_of_high_priority_is_that_of_any_other, 2) {
  add(target, noting('a'));
  invoke_numbers(1, 1);
  add_with(target, noting('b'), &ADD_OPTIONS(.priority = 5));
  invoke_numbers(2, 2);
  CHECK_TEXT(noted, "a1 b1 b2 a2");
}

/* ---- Delegates of all kinds ------------------------------------------------------------------ */

TEST_OF_REPLAY(replay_uses_up_a_delegate_that_is_called_once, 3) {
  multicast_add_options options = flagged(MULTICAST_ONCE);
  invoke_numbers(1, 3);
  options.release = count_release_of;
  multicast_token token = add_with(target, noting('a'), &options);
  CHECK_TEXT(noted, "a1");
  CHECK_EQ(releases['a'], 1);
  CHECK(!multicast_token_is_valid(token));
  CHECK_EQ(invoke_number(target, 4), 0);
}

TEST_OF_REPLAY(replay_waits_in_the_queue_of_the_delegate, 3) {
  multicast_queue q = default_queue();
  invoke_numbers(1, 2);
  CHECK_EQ(invoke_padded_number(target, 3, 100), 0);
  add_queued(target, noting('a'), q);
  CHECK_NOTED(invoke_number(target, 4), 1, "");
  CHECK_NOTED(multicast_queue_run(q, 0), 4, "a1 a2 a3 a4");
}

TEST_OF_REPLAY(replay_of_a_latest_delegate_leaves_the_newest_in_its_queue, 3) {
  multicast_queue q = default_queue();
  invoke_numbers(1, 3);
  add_flagged(target, noting('a'), q, MULTICAST_LATEST);
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "a3");
}

static int strong_count, locks, unlocks;
static void *lock_if_alive(void *context) {
  ++locks;
  return strong_count-- > 0 ? context : NULL;
}
static void count_unlock(void *strong) {
  ++unlocks;
}

TEST_OF_REPLAY(replay_locks_weak_contexts_and_removes_dead_ones, 3) {
  invoke_numbers(1, 3);
  strong_count = 2;
  add_with(target, noting('a'), &ADD_OPTIONS(.release = count_release_of, .lock = lock_if_alive,
                                             .unlock = count_unlock));
  CHECK_TEXT(noted, "a1 a2");
  CHECK_EQ(locks, 3);
  CHECK_EQ(unlocks, 2);
  CHECK_EQ(releases['a'], 1);
  CHECK_EQ(multicast_count(target), 0);
}

static void *lock_shared(void *context) { return lock_if_alive(context); }

TEST(replay_locks_contexts_of_one_kind) {
  multicast_create_options options = CREATE_OPTIONS(.replay = 2, .lock_context = lock_shared,
                                                    .unlock_context = count_unlock,
                                                    .release_context = count_release_of);
  target = multicast_create_with(&options);
  invoke_numbers(1, 2);
  strong_count = 3;
  add(target, noting('a'));
  CHECK_NOTED(invoke_number(target, 3), 1, "a1 a2 a3");
  CHECK_EQ(unlocks, 3);
  CHECK_EQ(invoke_number(target, 4), 0);
  CHECK_EQ(releases['a'], 1);
}

static multicast_token own;
static void pause_it(echo *e) {
  e->in_call = NULL;
  own = multicast_token_current();
  CHECK_OK(multicast_token_pause(own));
}

TEST_OF_REPLAY(replay_leaves_out_a_delegate_while_it_is_paused, 3) {
  invoke_numbers(1, 3);
  multicast_delegate d = echoing(&first, target, 'a', 0, 0);
  first.in_call = pause_it;
  add(target, d);
  CHECK_TEXT(noted, "a1");
  CHECK_OK(multicast_token_resume(own));
  CHECK_NOTED(invoke_number(target, 4), 1, "a1 a4");
}

TEST(replay_under_a_lifetime_that_has_a_queue_and_a_label) {
  multicast_lifetime lifetime = multicast_lifetime_create();
  multicast_add_options options = ADD_OPTIONS(.lifetime = lifetime, .label = "replayed",
                                              .queue = default_queue());
  create_replaying(2, MULTICAST_REENTRY_RECURSE);
  invoke_numbers(1, 2);
  add_with(target, noting('a'), &options);
  CHECK_EQ(multicast_queue_run(options.queue, 1), 1);
  CHECK_OK(multicast_lifetime_end(lifetime));
  CHECK_NOTED(multicast_queue_run(options.queue, 0), 0, "a1");
}

/* ---- Changes inside a replay ----------------------------------------------------------------- */

static void remove_itself(echo *e) {
  CHECK_STATUS(multicast_token_remove(multicast_token_current()), MULTICAST_PENDING);
  CHECK_EQ(releases['a'], 0);
}
static void remove_all_of_it(echo *e) { CHECK_EQ(multicast_remove_all(e->target), 1); }
static void destroy_it(echo *e) {
  CHECK_STATUS(multicast_destroy(e->target), MULTICAST_PENDING);
  CHECK_ERROR(invoke_number(e->target, 9), INVALID_HANDLE);
}

static void release_echo(void *context) { ++releases[(int)((echo *)context)->name]; }

static void add_that_goes(void (*go)(echo *), int64_t left) {
  create_replaying(3, MULTICAST_REENTRY_RECURSE);
  invoke_numbers(1, 3);
  multicast_delegate d = echoing(&first, target, 'a', 0, 0);
  first.in_call = go;
  multicast_token token = add_with(target, d, &ADD_OPTIONS(.release = release_echo));
  CHECK_TEXT(noted, "a1");
  CHECK_EQ(releases['a'], 1);
  CHECK(!multicast_token_is_valid(token));
  CHECK_EQ(multicast_count(target), left);
}

TEST(replay_ends_when_the_delegate_removes_itself_in_it) { add_that_goes(remove_itself, 0); }
TEST(replay_ends_when_all_are_removed_in_it) { add_that_goes(remove_all_of_it, 0); }
TEST(replay_ends_when_the_multicast_is_destroyed_in_it) {
  add_that_goes(destroy_it, MULTICAST_ERROR_INVALID_HANDLE);
}

static void remove_neighbour(echo *e) {
  e->in_call = NULL;
  CHECK_OK(multicast_remove(e->target, noting('b')));
}

TEST_OF_REPLAY(replay_goes_on_for_the_others_when_one_is_removed, 2) {
  multicast_delegate delegates[3];
  invoke_numbers(1, 2);
  delegates[0] = echoing(&first, target, 'a', 0, 0);
  delegates[1] = noting('b');
  delegates[2] = noting('c');
  first.in_call = remove_neighbour;
  CHECK_OK(multicast_add_many(target, delegates, 3, NULL, NULL));
  CHECK_TEXT(noted, "a1 c1 a2 c2");
}

static void add_second(echo *e) {
  e->in_call = NULL;
  add(e->target, noting('b'));
}

TEST_OF_REPLAY(replay_inside_a_replay_comes_first, 2) {
  invoke_numbers(1, 2);
  multicast_delegate d = echoing(&first, target, 'a', 0, 0);
  first.in_call = add_second;
  add(target, d);
  CHECK_TEXT(noted, "a1 b1 b2 a2");
  CHECK_NOTED(invoke_number(target, 3), 2, "a1 b1 b2 a2 a3 b3");
}

TEST_OF_REPLAY(replay_inside_an_invocation_has_that_invocation, 2) {
  multicast_delegate d = echoing(&first, target, 'a', 0, 0);
  first.in_call = add_second;
  add(target, d);
  CHECK_EQ(invoke_number(target, 1), 1); /* the new delegate is not called twice */
  CHECK_TEXT(noted, "a1 b1");
  CHECK_NOTED(invoke_number(target, 2), 2, "a1 b1 a2 b2");
}

static void add_third(echo *e) {
  e->in_call = NULL;
  add(e->target, noting('c'));
}

TEST_OF_REPLAY(replay_keeps_what_another_one_needs_that_it_is_inside_of, 2) {
  invoke_numbers(1, 2);
  /* when this delegate is called with 1, it invokes the multicast with 11, 12 and 13 */
  multicast_delegate d = echoing(&first, target, 'a', 3, 2);
  first.in_call = add_third;
  add(target, d);
  CHECK_TEXT(noted, "a1 c12 c13 a2 a11 a12 a13");
  CHECK_EQ(invoke_number(target, 4), 2);
}

/* ---- Invocations inside a replay ------------------------------------------------------------- */

static void add_inside_echo(multicast_reentry reentry, const char *wanted, int64_t result) {
  create_replaying(2, reentry);
  add(target, noting('b'));
  invoke_numbers(1, 2);
  noted_length = 0;
  multicast_delegate d = echoing(&first, target, 'a', 2, 2);
  add(target, d);
  CHECK_TEXT(noted, wanted);
  CHECK_STATUS(first.result, result);
}

TEST(replay_has_what_is_invoked_inside_it_at_its_end) {
  add_inside_echo(MULTICAST_REENTRY_RECURSE, "a1 b11 b12 a2 a11 a12", 1);
}
TEST(replay_refuses_invocations_inside_it) {
  add_inside_echo(MULTICAST_REENTRY_REFUSE, "a1 a2", MULTICAST_ERROR_STATE);
}
TEST(replay_defers_invocations_inside_it) {
  add_inside_echo(MULTICAST_REENTRY_DEFER, "a1 a2 b11 a11 b12 a12", 0);
}
TEST(replay_defers_the_latest_invocation_inside_it) {
  add_inside_echo(MULTICAST_REENTRY_LATEST, "a1 a2 b12 a12", 0);
}

TEST(replay_has_deferred_invocations_when_they_are_made) {
  create_replaying(4, MULTICAST_REENTRY_DEFER);
  multicast_delegate d = echoing(&first, target, 'a', 2, 2);
  add(target, d);
  CHECK_NOTED(invoke_number(target, 1), 1, "a1 a11 a12");
  add(target, noting('b'));
  CHECK_TEXT(noted, "a1 a11 a12 b1 b11 b12");
}

TEST_OF_REPLAY(replay_does_not_wait_for_itself, 1) {
  invoke_numbers(1, 1);
  /* more invocations than another thread could make before having to wait for the replay */
  multicast_delegate d = echoing(&first, target, 'a', 200, 2);
  add(target, d);
  CHECK_EQ(first.calls, 201);
  CHECK_EQ(first.result, 0);
  add(target, noting('b'));
  CHECK_EQ(invoke_number(target, 500), 2);
  CHECK_EQ(first.calls, 202);
}

static void invoke_in_listeners_changed(void *context, multicast m, bool wanted) {
  for (int i = 1; wanted && i <= 100; ++i) CHECK_EQ(invoke_number(m, i), 0);
}

TEST(replay_has_what_listeners_changed_invokes) {
  target = multicast_create_with(
      &CREATE_OPTIONS(.replay = 1, .listeners_changed = invoke_in_listeners_changed));
  add(target, counter(&calls));
  CHECK_EQ(calls, 100);
}

/* ---- Payloads -------------------------------------------------------------------------------- */

static cargo packed[8];

static void expect_releases(const cargo *of, int count, const char *wanted) {
  char text[16] = "";
  for (int i = 0; i < count; ++i) text[i] = (char)('0' + of[i].releases);
  CHECK_TEXT(text, wanted);
}

TEST_OF_REPLAY(replay_keeps_no_more_payloads_than_it_has_to, 2) {
  static seen s;
  for (int i = 0; i < 5; ++i) CHECK_EQ(hand_over(target, &packed[i]), 0);
  expect_releases(packed, 5, "11100");
  add(target, seeing(&s));
  CHECK_EQ(s.calls, 2);
  CHECK(s.payload == &packed[4]);
  expect_releases(packed, 5, "11100");
  CHECK_EQ(hand_over(target, &packed[5]), 1);
  expect_releases(packed, 6, "111100");
  CHECK_OK(multicast_destroy(target));
  expect_releases(packed, 6, "111111");
}

TEST_OF_REPLAY(replay_keeps_what_copy_has_made, 1) {
  static seen s;
  add(target, seeing(&s));
  multicast_invocation how = copying(&packed[0]);
  CHECK_EQ(multicast_invoke_with(target, &how, NULL), 1);
  CHECK_EQ(copy_count, 1);
  CHECK(s.payload == &packed[0]); /* a direct call receives the original payload */
  add(target, seeing(&s));
  CHECK(s.payload == &copies[0]);
  CHECK_EQ(copies[0].releases, 0);
  CHECK_EQ(multicast_invoke_with(target, &how, NULL), 2);
  CHECK_EQ(copy_count, 2);
  CHECK_EQ(copies[0].releases, 1);
  CHECK_OK(multicast_destroy(target));
  CHECK_EQ(copies[1].releases, 1);
  CHECK_EQ(packed[0].releases, 0);
}

TEST_OF_REPLAY(replay_shares_its_payload_with_queued_calls, 1) {
  multicast_queue q = default_queue();
  static seen s;
  CHECK_EQ(hand_over(target, &packed[0]), 0);
  add_queued(target, seeing(&s), q);
  add_queued(target, seeing(&s), q);
  CHECK_EQ(hand_over(target, &packed[1]), 2);
  CHECK_EQ(packed[0].releases, 0);
  CHECK_EQ(multicast_queue_run(q, 2), 2);
  CHECK(s.payload == &packed[0]);
  CHECK_EQ(packed[0].releases, 1);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_EQ(packed[1].releases, 0);
  CHECK_OK(multicast_destroy(target));
  CHECK_EQ(packed[1].releases, 1);
}

TEST_OF_REPLAY(replay_of_waiting_invocations_does_not_make_them_wait, 1) {
  multicast_queue q = default_queue();
  multicast_invocation how = handing_over(&packed[0]);
  static seen s;
  add_queued(target, seeing(&s), q);
  CHECK_OK(multicast_queue_start(q));
  how.flags = MULTICAST_WAIT;
  CHECK_INVOKED(target, &how, 1, 0, 1, 0, 1, 0);
  CHECK_EQ(packed[0].releases, 0);
  CHECK_OK(multicast_destroy(target));
  CHECK_EQ(packed[0].releases, 1);
}

TEST_OF_REPLAY(replay_without_a_copy_is_out_of_memory_and_calls_nothing, 1) {
  multicast_invocation how = copying(&packed[0]);
  add(target, noting('a'));
  how.copy = copy_nothing;
  CHECK_ERROR(multicast_invoke_with(target, &how, NULL), OUT_OF_MEMORY);
  CHECK_TEXT(noted, "");
  CHECK_EQ(packed[0].releases, 0);
}

static int replayed_when_released = -1;
static void release_and_add(const void *payload, size_t size) {
  replayed_when_released = 0;
  add(target, counter(&replayed_when_released));
}

TEST_OF_REPLAY(replay_releases_under_no_lock, 1) {
  multicast_invocation how = INVOCATION(.release = release_and_add);
  CHECK_EQ(multicast_invoke_with(target, &how, NULL), 0);
  how.release = NULL;
  /* this payload replaces the previous one, which is released */
  CHECK_EQ(multicast_invoke_with(target, &how, NULL), 0);
  CHECK_EQ(replayed_when_released, 1);
}

/* ---- Memory, limits -------------------------------------------------------------------------- */

TEST(replay_memory_is_bounded_and_given_back) {
  use_test_allocator();
  multicast m = create_replaying(0, MULTICAST_REENTRY_DEFER);
  CHECK_EQ(invoke_padded_number(m, 1, 100), 0); /* the thread has its record after this */
  int64_t before = allocated_blocks;
  m = create_replaying(8, MULTICAST_REENTRY_RECURSE);
  for (int i = 0; i < 8; ++i) CHECK_EQ(invoke_padded_number(m, i, 100), 0);
  int64_t blocks = allocated_blocks;
  CHECK_EQ(blocks, before + 16);
  for (int i = 0; i < 1000; ++i) CHECK_EQ(invoke_padded_number(m, i, 100), 0);
  CHECK_EQ(allocated_blocks, blocks);
  for (int i = 0; i < 100; ++i) {
    add(m, counter(&calls));
    CHECK_OK(multicast_remove(m, counter(&calls)));
    if (i == 0) blocks = allocated_blocks; /* the list and a slab have been allocated */
  }
  CHECK_EQ(calls, 800);
  CHECK_EQ(allocated_blocks, blocks);
  CHECK_OK(multicast_destroy(m));
  CHECK(allocated_blocks <= before + 1 /* the slab remains */);
}

static void nest(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_token token = {7};
  multicast inner = *(multicast *)context;
  if (event < 254) {
    CHECK_EQ(multicast_invoke(target, event + 1, NULL, 0), 1);
    return;
  }
  CHECK_EQ(invoke_number(inner, 1), 1); /* one level of nesting is left */
  CHECK_TEXT(noted, "b1");
  add(inner, noting('c'));
  CHECK_TEXT(noted, "b1 c1");
  target = inner;
  add(inner, echoing(&second, inner, 'd', 1, 5));
  CHECK_ERROR(second.result, LIMIT);
  CHECK_TEXT(noted, "b1 c1 d1");
  CHECK(token.id == 7);
}

TEST(replay_when_nested_too_deep_is_a_limit) {
  static multicast inner;
  inner = create_replaying(3, MULTICAST_REENTRY_RECURSE);
  add(inner, noting('b'));
  target = multicast_create();
  add(target, DELEGATE(nest, &inner));
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  noted_length = 0;
  add(inner, noting('e'));
  CHECK_TEXT(noted, "e1"); /* the failed invocation is not replayed */
}

static multicast_status deepest;
static void nest_all(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_add_options options = ADD_OPTIONS(.release = count_release_of);
  multicast_token token = {7};
  if (multicast_invoke(target, event + 1, NULL, 0) != MULTICAST_ERROR_LIMIT) return;
  deepest = multicast_add(*(multicast *)context, noting('a'), &options, &token);
  CHECK_EQ(token.id, 0);
  CHECK_EQ(releases['a'], 1);
}

TEST(replay_without_a_frame_left_is_a_limit_of_the_add) {
  static multicast inner;
  inner = create_replaying(3, MULTICAST_REENTRY_RECURSE);
  target = multicast_create();
  add(target, DELEGATE(nest_all, &inner));
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  CHECK_ERROR(deepest, LIMIT);
  CHECK_EQ(multicast_count(inner), 0);
}

TEST(replay_of_a_slot_that_is_used_again_is_empty) {
  for (int i = 0; i < 40; ++i) {
    create_replaying(1 + (uint32_t)i, MULTICAST_REENTRY_RECURSE);
    invoke_numbers(1, 50);
    CHECK_OK(multicast_destroy(target));
    create_replaying(2, MULTICAST_REENTRY_RECURSE);
    add(target, noting('a'));
    CHECK_TEXT(noted, "");
    CHECK_OK(multicast_destroy(target));
  }
}

/* ---- fork ------------------------------------------------------------------------------------ */

static pid_t child;
static void fork_inside(echo *e) {
  e->in_call = NULL;
  fflush(NULL);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) alarm(20);
}

TEST_OF_REPLAY(replay_goes_on_in_the_child_of_a_fork_inside_it, 3) {
  int status = -1;
  invoke_numbers(1, 3);
  multicast_delegate d = echoing(&first, target, 'a', 0, 0);
  first.in_call = fork_inside;
  add(target, d);
  CHECK_TEXT(noted, "a1 a2 a3");
  CHECK_NOTED(invoke_number(target, 4), 1, "a1 a2 a3 a4");
  if (child == 0) _exit(0);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
}

static void use_kept_in_child(void *unused) {
  static seen s;
  add(target, seeing(&s));
  CHECK_EQ(s.calls, 1);
  CHECK(s.payload == &packed[0]);
  CHECK_EQ(hand_over(target, &packed[1]), 1);
  CHECK_OK(multicast_destroy(target));
  CHECK_EQ(packed[0].releases, 0); /* the payload belongs to the parent */
  CHECK_EQ(packed[1].releases, 1);
}

TEST_OF_REPLAY(replay_of_before_fork_is_released_in_parent_and_not_in_child, 2) {
  CHECK_EQ(hand_over(target, &packed[0]), 0);
  in_child(use_kept_in_child, NULL);
  CHECK_EQ(packed[0].releases, 0);
  CHECK_OK(multicast_destroy(target));
  CHECK_EQ(packed[0].releases, 1);
}
