/* A watch's functions may use the library, and are not called after the watch has been removed. */

#include "queues.h"
#include "reports.h"
#include "watches.h"

static witness w;
static blocker in_watch = BLOCKER_INIT;
static multicast_status status;

static void block_function(witness *it) {
  gate_open(&in_watch.entered);
  gate_wait(&in_watch.let_go);
}

/* ---- Removing a watch ------------------------------------------------------------------------ */

typedef struct setting {
  multicast target;
  multicast_status result;
  gate returned;
  pthread_t thread;
} setting;

THREAD(take_away, setting *s) {
  s->result = multicast_set_watch(s->target, NULL);
  gate_open(&s->returned);
}

static void expect_to_wait_for_function(multicast watched) {
  static setting s = {{0}, 0, GATE_INIT, 0};
  static report r;
  multicast m = multicast_create();
  invoker i;
  if (watched.id != 0) watched = m;
  s.target = watched;
  w.in_function = block_function;
  add(m, counter(&calls));
  watch(watched, counting_calls(&w));
  invoke_in_background(&i, m);
  gate_wait(&in_watch.entered);
  s.thread = start_thread(take_away, &s);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  expect_line(dumped(&r), "  waits ... s for functions of a watch");
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1); /* this invocation does not notify the watch */
  gate_open(&in_watch.let_go);
  gate_wait(&s.returned);
  join_thread(s.thread);
  CHECK_OK(s.result);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(w.calls, 1);
}

TEST(watch_is_taken_away_when_its_functions_have_returned) {
  multicast one = {1};
  expect_to_wait_for_function(one);
}

TEST(watch_of_all_is_taken_away_when_its_functions_have_returned) {
  multicast all = {0};
  expect_to_wait_for_function(all);
}

static void take_away_inside(witness *it) {
  it->in_function = NULL;
  status = multicast_set_watch(it->target, NULL);
}

TEST_OF_MULTICAST(watch_that_is_taken_away_inside_its_function_is_pending) {
  add(m, counter(&calls));
  w.target = m;
  w.in_function = take_away_inside;
  watch(m, watching(&w));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_STATUS(status, MULTICAST_PENDING);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(w.calls, 1);
}

/* A function of the watch removes a delegate while another thread is removing the watch. */
static void remove_blocked(witness *it) {
  it->in_function = NULL;
  gate_open(&in_watch.entered);
  CHECK_OK(multicast_remove(it->target, blocking(&in_watch)));
}

static void take_away_in_call(void *context, uint32_t event, const void *payload, size_t size) {
  gate_wait(&((blocker *)context)->entered);
  pause_ms(A_WHILE_MS);
  status = multicast_set_watch(w.target, NULL);
}

TEST(watch_that_waits_for_thread_that_takes_it_away_is_pending) {
  multicast m = multicast_create(), other = multicast_create();
  invoker i, j;
  add(m, counter(&calls));
  add(other, DELEGATE(take_away_in_call, &in_watch));
  w.target = m;
  w.in_function = remove_blocked;
  watch(m, counting_calls(&w));
  add(m, blocking(&in_watch)); /* the watch function removes this delegate before its call */
  invoke_in_background(&j, other);
  invoke_in_background(&i, m);
  CHECK_EQ(invoke_finished(&j), 1);
  invoke_finished(&i);
  CHECK(status == MULTICAST_OK || status == MULTICAST_PENDING);
}

/* A function of the watch removes a delegate, while the delegate's call removes the watch. */
static multicast held;
static multicast_token held_token;

static void remove_held(witness *it) {
  it->in_function = NULL;
  gate_open(&in_watch.entered);
  CHECK_OK(multicast_token_remove(held_token));
}

TEST_OF_MULTICAST(watch_and_removal_that_wait_for_each_other_are_a_cycle) {
  invoker i, j;
  held = multicast_create();
  held_token = add(held, DELEGATE(take_away_in_call, &in_watch));
  add(m, counter(&calls));
  w.target = m;
  w.in_function = remove_held;
  watch(m, counting_calls(&w));
  invoke_in_background(&j, held);
  pause_ms(A_WHILE_MS); /* the other thread is inside the call by now */
  invoke_in_background(&i, m);
  CHECK_EQ(invoke_finished(&j), 1);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_STATUS(status, MULTICAST_PENDING);
}

TEST_OF_MULTICAST(watch_that_is_replaced_is_not_notified_any_more) {
  static witness next;
  multicast_watch given = counting_calls(&w), other = counting_calls(&next);
  add(m, counter(&calls));
  watch(m, given);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  watch(m, other);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(w.calls, 1);
  CHECK_EQ(next.calls, 1);
}

/* ---- Inside a watch function ----------------------------------------------------------------- */

static void invoke_inside(witness *it) {
  multicast_token token = {0};
  CHECK_EQ(multicast_token_current().id, it->token.id);
  CHECK_EQ(multicast_call_stack(&token, 1), 1);
  CHECK_EQ(token.id, it->token.id);
  CHECK_EQ(multicast_invoke(it->target, 1, NULL, 0), 1);
}

TEST_OF_MULTICAST(watch_is_not_notified_of_calls_that_its_functions_make) {
  multicast_token token = add(m, counter(&calls));
  w.target = m;
  w.in_function = invoke_inside;
  watch(m, watching(&w));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(w.calls, 1);
  CHECK_EQ(w.slow, 1);
  CHECK_EQ(calls, 3); /* one call from each function */
  expect_counted(token, 3, 0, 0);
}

static void remove_inside(witness *it) {
  it->in_function = NULL;
  status = multicast_token_remove(it->token);
}

TEST_OF_MULTICAST(watch_is_notified_before_a_removal_of_it_can_complete) {
  add_with(m, counter(&calls), &ADD_OPTIONS(.release = count_release));
  w.in_function = remove_inside;
  watch(m, counting_calls(&w));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_STATUS(status, MULTICAST_PENDING);
  CHECK_EQ(calls, 2); /* one call, followed by its release */
}

static void invoke_deeper(void *context, uint32_t event, const void *payload, size_t size) {
  if (event < 255) multicast_invoke(w.target, event + 1, NULL, 0);
}

TEST_OF_MULTICAST(watch_is_not_notified_of_the_innermost_of_256_calls) {
  multicast_token token = add(m, DELEGATE(invoke_deeper, NULL));
  w.target = m;
  watch(m, counting_calls(&w));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(w.calls, 255);
  expect_counted(token, 256, 0, 0);
}

/* ---- Stuck waits ----------------------------------------------------------------------------- */

static void expect_stuck(int64_t (*remove)(removal *)) {
  static running_call c;
  multicast_watch given = watching(&w);
  begin_running_call(&c, remove);
  given.slow_ns = 1000000;
  watch(c.r.target, given);
  pthread_t thread = start_thread(remove_in_thread, &c.r);
  EVENTUALLY(LOAD(w.stuck) == 1);
  CHECK_EQ(w.token.id, c.r.token.id);
  CHECK(w.elapsed_ns >= 1000000);
  CHECK(pthread_equal(w.thread, thread));
  CHECK_TEXT(w.label, "-");
  pause_ms(A_WHILE_MS);
  gate_open(&c.b.let_go);
  gate_wait(&c.r.returned);
  join_thread(thread);
  CHECK_EQ(invoke_finished(&c.i), 1);
  CHECK_EQ(w.stuck, 1); /* the wait has been reported only once */
}

TEST(watch_is_notified_of_a_removal_that_waits_long) { expect_stuck(by_token); }
TEST(watch_is_notified_of_a_removal_of_all_that_waits_long) { expect_stuck(by_all); }
TEST(watch_is_notified_of_a_destruction_that_waits_long) { expect_stuck(by_destroy); }

TEST(watch_is_notified_of_a_second_removal_that_waits_long) {
  static running_call c;
  multicast_watch given = watching(&w);
  begin_running_call(&c, by_token);
  CHECK_STATUS(multicast_token_remove_nowait(c.r.token), MULTICAST_PENDING);
  given.slow_ns = 1000000;
  watch(c.r.target, given);
  pthread_t thread = start_thread(remove_in_thread, &c.r);
  EVENTUALLY(LOAD(w.stuck) == 1);
  CHECK_EQ(w.token.id, c.r.token.id);
  gate_open(&c.b.let_go);
  join_thread(thread);
  CHECK_EQ(invoke_finished(&c.i), 1);
}

TEST_OF_MULTICAST(watch_stuck_has_the_label) {
  static running_call c;
  multicast_watch given = watching(&w);
  blocker b = BLOCKER_INIT;
  prepare_removal(&c.r, m, &b, by_token);
  c.r.token = add_with(m, blocking(&b), &ADD_OPTIONS(.label = "never returns"));
  given.slow_ns = 1000000;
  watch_all(given);
  begin_blocked(&b, m);
  c.r.thread = start_thread(remove_in_thread, &c.r);
  EVENTUALLY(LOAD(w.stuck) == 1);
  CHECK_TEXT(w.label, "never returns");
  gate_open(&b.let_go);
  join_thread(c.r.thread);
  CHECK_EQ(invoke_finished(&b.invoking), 1);
}

TEST(watch_is_not_notified_of_a_removal_with_a_shorter_timeout) {
  static running_call c;
  multicast_watch given = watching(&w);
  begin_running_call(&c, by_token);
  given.slow_ns = 20ull * 1000 * 1000 * 1000;
  watch(c.r.target, given);
  CHECK_ERROR(multicast_token_remove_within(c.r.token, 2000000), TIMEOUT);
  CHECK_EQ(w.stuck, 0);
  gate_open(&c.b.let_go);
  CHECK_EQ(invoke_finished(&c.i), 1);
}

TEST(watch_is_notified_of_a_longer_timeout_and_the_timeout_stays) {
  static running_call c;
  multicast_watch given = watching(&w);
  begin_running_call(&c, by_token);
  given.slow_ns = 1000000;
  watch(c.r.target, given);
  CHECK_ERROR(multicast_token_remove_within(c.r.token, 20000000), TIMEOUT);
  CHECK_EQ(w.stuck, 1);
  gate_open(&c.b.let_go);
  CHECK_EQ(invoke_finished(&c.i), 1);
}

TEST_OF_QUEUE(watch_is_notified_of_an_invocation_that_waits_long) {
  multicast_watch given = watching(&w);
  blocker b = BLOCKER_INIT;
  multicast_token token = add_queued(m, blocking(&b), q);
  waiter waits;
  given.slow_ns = 1000000;
  given.slow = NULL;
  given.called = NULL;
  watch(m, given);
  begin_waiting(&waits, m, NULL);
  EVENTUALLY(LOAD(w.stuck) == 1);
  CHECK_EQ(w.token.id, 0); /* the awaited call is still queued, so no token is reported */
  CHECK_OK(multicast_queue_start(q));
  gate_wait(&b.entered);
  gate_open(&b.let_go);
  expect_waited(&waits, 1, 1, 0);
  memset(&w, 0, sizeof w);
  b = (blocker)BLOCKER_INIT;
  begin_waiting(&waits, m, NULL);
  gate_wait(&b.entered);
  EVENTUALLY(LOAD(w.stuck) == 1);
  if (w.token.id != 0) CHECK_EQ(w.token.id, token.id);
  gate_open(&b.let_go);
  expect_waited(&waits, 1, 1, 0);
}

TEST_OF_MULTICAST(watch_timeout_of_an_invocation_that_waits_stays) {
  multicast_watch given = watching(&w);
  add_queued(m, counter(&calls), default_queue());
  multicast_invocation how = INVOCATION(.flags = MULTICAST_WAIT, .timeout_ns = 20000000);
  given.slow_ns = 1000000;
  watch(m, given);
  CHECK_ERROR(multicast_invoke_with(m, &how, NULL), TIMEOUT);
  CHECK_EQ(w.stuck, 1);
}

/* ---- Threads --------------------------------------------------------------------------------- */

enum { ROUNDS = 2000 };
static bool is_over;
static int told;

static void note_notified(void *context, multicast_token token, uint32_t event, uint64_t ns) {
  CHECK(LOAD(*(bool *)context)); /* the watch is set, or is currently being removed */
  ADD(told, 1);
}

THREAD(invoke_all_the_time, multicast *argument) {
  while (!LOAD(is_over)) multicast_invoke(*argument, 1, NULL, 0);
}

TEST(watch_that_was_taken_away_is_not_notified_by_invokers) {
  static bool is_set[2];
  multicast m = multicast_create(), all = {0};
  pthread_t threads[2];
  multicast_watch given = WATCH_WITH(.called = note_notified);
  add(m, counter(&calls));
  for (int i = 0; i < 2; ++i) threads[i] = start_thread(invoke_all_the_time, &m);
  for (int i = 0; i < ROUNDS; ++i) {
    multicast target = i % 3 ? m : all;
    given.context = &is_set[i % 2];
    STORE(is_set[i % 2], true);
    watch(target, given);
    if (i % 5 == 0) EVENTUALLY(LOAD(told) > i / 5);
    unwatch(target);
    STORE(is_set[i % 2], false);
  }
  STORE(is_over, true);
  for (int i = 0; i < 2; ++i) join_thread(threads[i]);
  CHECK(told > ROUNDS / 5);
}

THREAD(set_all_the_time, void *argument) {
  multicast all = {0};
  multicast_watch given = counting_calls(argument);
  for (int i = 0; i < ROUNDS; ++i) CHECK(multicast_set_watch(all, i % 2 ? NULL : &given) >= 0);
}

TEST_OF_MULTICAST(watches_of_all_that_threads_set_at_once_are_set_or_not) {
  static witness a, b;
  pthread_t threads[2];
  add(m, counter(&calls));
  threads[0] = start_thread(set_all_the_time, &a);
  threads[1] = start_thread(set_all_the_time, &b);
  join_thread(threads[0]);
  join_thread(threads[1]);
  a.calls = b.calls = 0;
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(a.calls + b.calls, 0); /* each thread removed its watch at the end */
  watch_all(counting_calls(&w));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(w.calls, 1);
}

static void invoke_in_child(void *argument) {
  multicast *m = argument;
  CHECK_EQ(multicast_invoke(*m, 1, NULL, 0), 1);
  CHECK_EQ(w.calls, 1);
  unwatch(*m); /* a thread of the parent was in a function of this watch */
}

TEST_OF_MULTICAST(watch_stays_in_the_child_of_a_fork) {
  invoker i;
  add(m, counter(&calls));
  w.in_function = block_function;
  watch(m, counting_calls(&w));
  invoke_in_background(&i, m);
  gate_wait(&in_watch.entered);
  w.in_function = NULL;
  w.calls = 0;
  in_child(invoke_in_child, &m);
  gate_open(&in_watch.let_go);
  CHECK_EQ(invoke_finished(&i), 1);
}

/* ---- Events that are not reported ------------------------------------------------------------ */

TEST(watch_is_not_notified_that_the_end_of_another_one_waits) {
  static setting s = {{0}, 0, GATE_INIT, 0};
  static witness all;
  multicast_watch given = counting_calls(&w), other = watching(&all);
  invoker i;
  s.target = multicast_create();
  w.in_function = block_function;
  add(s.target, counter(&calls));
  watch(s.target, given);
  watch_all(other); /* reports every wait longer than a nanosecond */
  invoke_in_background(&i, s.target);
  gate_wait(&in_watch.entered);
  s.thread = start_thread(take_away, &s);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  gate_open(&in_watch.let_go);
  join_thread(s.thread);
  CHECK_OK(s.result);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(all.stuck, 0);
  unwatch_all();
}

/* Destroys the multicast during the delegate's call, and creates multicasts with another watch, one
 * of which reuses the slot. */
FUNCTION(replace_target, multicast *m) {
  CHECK(multicast_destroy(*m) >= 0);
  for (int i = 0; i < 8; ++i) watch(multicast_create(), counting_calls(&w));
}

TEST_OF_MULTICAST(watch_is_not_notified_of_call_of_multicast_that_had_slot) {
  static witness first;
  add(m, DELEGATE(replace_target, &m));
  watch(m, counting_calls(&first));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(w.calls, 0);
  CHECK_EQ(first.calls <= 1, true);
}

TEST_OF_MULTICAST(watch_is_not_notified_of_queued_call_of_the_slots_last) {
  static witness first;
  multicast_queue queue = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
  add_queued(m, DELEGATE(replace_target, &m), queue);
  watch(m, counting_calls(&first));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(queue, 0), 1);
  CHECK_EQ(w.calls, 0);
  CHECK_EQ(first.calls <= 1, true);
}
