/* Tests repeated removals of the same registration, removals on several threads, and removals of
 * several registrations. */

#include "removals.h"

static void second_removal(int64_t (*first)(removal *), int64_t (*second)(removal *),
                           int64_t expected) {
  running_call c;
  begin_running_call(&c, second);
  CHECK_STATUS(first(&c.r), MULTICAST_PENDING);
  expect_to_wait(&c.r, expected);
  invoke_finished(&c.i);
  CHECK_EQ(LOAD(c.b.releases), 1);
}

static int64_t context_count(removal *r) {
  return multicast_remove_context(r->target, r->delegate.context);
}
static int64_t all_count(removal *r) { return multicast_remove_all(r->target); }

TEST(remove_of_what_was_just_removed_is_not_found_after_waiting) {
  second_removal(by_nowait, by_remove, MULTICAST_ERROR_NOT_FOUND);
}
TEST(token_remove_of_what_was_just_removed_waits_too) {
  second_removal(by_nowait, by_token, MULTICAST_ERROR_INVALID_HANDLE);
}
TEST(remove_context_of_what_was_just_removed_waits) {
  second_removal(by_nowait, context_count, 0);
}
TEST(remove_all_after_a_removal_without_waiting_waits) {
  second_removal(by_nowait, all_count, 0);
}
TEST(destroy_after_a_removal_without_waiting_waits) {
  second_removal(by_nowait, by_destroy, MULTICAST_OK);
}

TEST(token_remove_within_of_what_was_just_removed_gives_timeout) {
  running_call c;
  begin_running_call(&c, by_token);
  CHECK_STATUS(multicast_token_remove_nowait(c.r.token), MULTICAST_PENDING);
  CHECK_ERROR(multicast_token_remove_within(c.r.token, 1000000), TIMEOUT);
  gate_open(&c.b.let_go);
  invoke_finished(&c.i);
  CHECK_ERROR(multicast_token_remove_within(c.r.token, 1000000), INVALID_HANDLE);
}

static void removal_beside_destroy(int64_t (*second)(removal *)) {
  running_call c;
  begin_running_call(&c, by_destroy);
  removal other = c.r;
  other.returned = shut;
  other.remove = second;
  c.r.thread = start_thread(remove_in_thread, &c.r);
  EVENTUALLY(!multicast_is_valid(c.r.target));
  other.thread = start_thread(remove_in_thread, &other);
  CHECK(!gate_opens_within(&other.returned, A_WHILE_MS));
  gate_open(&c.b.let_go);
  join_thread(c.r.thread);
  join_thread(other.thread);
  CHECK_OK(c.r.result);
  CHECK_ERROR(other.result, INVALID_HANDLE);
  CHECK(c.r.had_left && other.had_left);
  invoke_finished(&c.i);
}

TEST(destroy_beside_a_waiting_destroy_waits_too) {
  removal_beside_destroy(by_destroy);
}
TEST(remove_beside_a_waiting_destroy_waits_too) {
  removal_beside_destroy(by_remove);
}
TEST(remove_all_beside_a_waiting_destroy_waits_too) {
  removal_beside_destroy(all_count);
}
TEST(remove_context_beside_a_waiting_destroy_waits_too) {
  removal_beside_destroy(context_count);
}

TEST(remove_by_two_threads_at_once_succeeds_for_one) {
  running_call c;
  begin_running_call(&c, by_token);
  removal other = c.r;
  other.returned = shut;
  c.r.thread = start_thread(remove_in_thread, &c.r);
  other.thread = start_thread(remove_in_thread, &other);
  CHECK(!gate_opens_within(&c.r.returned, A_WHILE_MS));
  CHECK(!gate_opens_within(&other.returned, 1));
  gate_open(&c.b.let_go);
  join_thread(c.r.thread);
  join_thread(other.thread);
  CHECK(c.r.had_left && other.had_left);
  CHECK_EQ((c.r.result == MULTICAST_OK) + (other.result == MULTICAST_OK), 1);
  CHECK_EQ((c.r.result == MULTICAST_ERROR_INVALID_HANDLE) +
               (other.result == MULTICAST_ERROR_INVALID_HANDLE),
           1);
  invoke_finished(&c.i);
  CHECK_EQ(LOAD(c.b.releases), 1);
}

/* The library removes a MULTICAST_ONCE delegate when its call begins. A second removal of that
 * delegate waits for the call, but not for the release. */
static multicast_token once_token, crossing_token;
static gate once_entered = GATE_INIT, crossing_entered = GATE_INIT, crossing_waits = GATE_INIT;
static int64_t in_release = INT64_MIN, in_crossing = INT64_MIN;

static void stay_a_while(void *context, uint32_t event, const void *payload, size_t size) {
  gate_open(&once_entered);
  gate_wait(&crossing_waits);
  pause_ms(A_WHILE_MS);
}

static void remove_crossing(void *context) {
  in_release = multicast_token_remove(crossing_token);
}

static void wait_for_once(void *context, uint32_t event, const void *payload, size_t size) {
  gate_open(&crossing_entered);
  gate_wait(&once_entered);
  gate_open(&crossing_waits);
  in_crossing = multicast_token_remove(once_token);
}

TEST(remove_waits_for_call_of_once_delegate_not_for_its_release) {
  multicast m = multicast_create(), other = multicast_create();
  multicast_delegate once = {stay_a_while, NULL}, crossing = {wait_for_once, NULL};
  invoker first, second;
  once_token = add_with(m, once, &ADD_OPTIONS(.release = remove_crossing, .flags = MULTICAST_ONCE));
  crossing_token = add(other, crossing);
  invoke_in_background(&second, other);
  gate_wait(&crossing_entered);
  invoke_in_background(&first, m);
  CHECK_EQ(invoke_finished(&first), 1);
  CHECK_EQ(invoke_finished(&second), 1);
  CHECK_STATUS(in_release, MULTICAST_OK);
  CHECK_ERROR(in_crossing, INVALID_HANDLE);
}

THREAD(end_lifetime, multicast_lifetime *lifetime) {
  CHECK_OK(multicast_lifetime_end(*lifetime));
}

TEST(lifetime_end_releases_what_returned_while_it_waits) {
  blocker slow = BLOCKER_INIT, quick = BLOCKER_INIT;
  multicast m = multicast_create(), other = multicast_create();
  multicast_lifetime l = multicast_lifetime_create();
  invoker first;
  multicast_add_options options = ADD_OPTIONS(.release = release_blocker, .lifetime = l);
  add_with(m, blocking(&slow), &options);
  add_with(other, blocking(&quick), &options);
  invoke_in_background(&first, m);
  begin_blocked(&slow, other);
  gate_wait(&quick.entered);
  pthread_t thread = start_thread(end_lifetime, &l);
  pause_ms(A_WHILE_MS);
  gate_open(&quick.let_go);
  invoke_finished(&slow.invoking);
  while (LOAD(quick.releases) == 0) pause_ms(1); /* the slow call is still running */
  CHECK(!LOAD(slow.has_left));
  gate_open(&slow.let_go);
  join_thread(thread);
  invoke_finished(&first);
  CHECK_EQ(LOAD(slow.releases), 1);
}

typedef struct sweeper {
  multicast target;
  gate may_sweep;
  int64_t result;
  int releases;
} sweeper;

FUNCTION(remove_everything, sweeper *s) {
  if (event != 1) return;
  gate_wait(&s->may_sweep);
  s->result = multicast_remove_all(s->target);
}

static void release_sweeper(void *context) { ++((sweeper *)context)->releases; }

typedef struct event_invoker {
  multicast target;
  uint32_t event;
  pthread_t thread;
} event_invoker;

THREAD(invoke_event, event_invoker *i) {
  multicast_invoke(i->target, i->event, NULL, 0);
}

static void start_event_invoker(event_invoker *i, multicast m, uint32_t event) {
  i->target = m;
  i->event = event;
  i->thread = start_thread(invoke_event, i);
}

TEST(remove_all_in_a_call_waits_for_others_and_leaves_its_own) {
  /* Three delegates are being called on other threads, one is being called on this thread, and
   * three are idle. Each of these delegates is released once. */
  enum { RUNNING = 3, IDLE = 3 };
  blocker running[RUNNING];
  event_invoker invokers[RUNNING], sweeping;
  static const blocker fresh = BLOCKER_INIT;
  int idle[IDLE] = {0};
  for (int round = 0; round < 2; ++round) {
    multicast m = multicast_create();
    multicast_add_options options = ADD_OPTIONS(.release = release_sweeper);
    sweeper s = {{0}, GATE_INIT, 0, 0};
    s.target = m;
    s.may_sweep = shut;
    multicast_delegate d = {remove_everything, &s};
    options.events = 2; /* the invocations on other threads do not call this delegate */
    if (round == 0) add_with(m, d, &options);
    options.release = release_blocker;
    for (int i = 0; i < RUNNING; ++i) {
      running[i] = fresh;
      options.events = UINT64_C(1) << (i + 2);
      add_with(m, blocking(&running[i]), &options);
    }
    options.release = count_release;
    options.events = UINT64_C(1) << 60;
    for (int i = 0; i < IDLE; ++i) {
      idle[i] = 0;
      add_with(m, counter(&idle[i]), &options);
    }
    options.release = release_sweeper;
    options.events = 2;
    if (round == 1) add_with(m, d, &options);
    for (int i = 0; i < RUNNING; ++i) {
      start_event_invoker(&invokers[i], m, (uint32_t)(i + 2));
      gate_wait(&running[i].entered);
    }
    start_event_invoker(&sweeping, m, 1);
    gate_open(&s.may_sweep);
    pause_ms(A_WHILE_MS);
    /* the running calls have not delayed these releases */
    for (int i = 0; i < IDLE; ++i) CHECK_EQ(LOAD(idle[i]), 1);
    for (int i = 0; i < RUNNING; ++i) {
      CHECK_EQ(LOAD(running[i].releases), 0);
      gate_open(&running[i].let_go);
      EVENTUALLY(LOAD(running[i].releases) == 1);
    }
    join_thread(sweeping.thread);
    for (int i = 0; i < RUNNING; ++i) join_thread(invokers[i].thread);
    CHECK_EQ(s.result, RUNNING + IDLE + 1);
    CHECK_EQ(s.releases, 1);
    for (int i = 0; i < RUNNING; ++i) CHECK_EQ(LOAD(running[i].releases), 1);
    for (int i = 0; i < IDLE; ++i) CHECK_EQ(LOAD(idle[i]), 1);
    CHECK_OK(multicast_destroy(m));
  }
}
