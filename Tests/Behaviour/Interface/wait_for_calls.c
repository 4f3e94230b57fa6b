/* An invocation with MULTICAST_WAIT returns when all the calls that it queued have been made,
 * dropped or cancelled. */

#include "notes.h"
#include "payloads.h"
#include "removals.h"

#include <signal.h>

static const cargo fresh;

/* ---- Calls that are made --------------------------------------------------------------------- */

TEST_OF_QUEUE(wait_returns_when_all_calls_were_made_on_another_thread) {
  blocker b = BLOCKER_INIT;
  waiter w;
  add_queued(m, counter(&calls), q);
  add_queued(m, blocking(&b), q);
  add_queued(m, counter(&calls), q);
  CHECK_OK(multicast_queue_start(q));
  begin_waiting(&w, m, NULL);
  gate_wait(&b.entered);
  expect_to_be_waiting(&w);
  gate_open(&b.let_go);
  expect_waited(&w, 3, 3, 0);
  CHECK_EQ(calls, 2);
  CHECK_OUTCOME(w.out, 0, 3, 0, 3, 0);
}

TEST_OF_MULTICAST(wait_is_over_at_once_without_queued_calls) {
  multicast_invocation how = waiting();
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  CHECK_EQ(multicast_invoke_with(m, &how, &out), 0);
  add(m, counter(&calls));
  CHECK_EQ(multicast_invoke_with(m, &how, &out), 1);
  CHECK_OUTCOME(out, 1, 0, 0, 0, 0);
}

TEST(wait_is_not_for_calls_that_were_queued_before) {
  multicast m = multicast_create(), other = multicast_create();
  multicast_queue q = default_queue(), full = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
  multicast_invocation how = waiting();
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  add_queued(other, counter(&calls), q);
  add_queued(m, counter(&calls), full);
  CHECK_EQ(multicast_invoke(other, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke_with(m, &how, &out), 0); /* refused: the queue is full */
  CHECK_OUTCOME(out, 0, 0, 1, 0, 0);
}

TEST_OF_QUEUE(wait_without_flag_leaves_finished_and_unfinished_0) {
  add_queued(m, counter(&calls), q);
  CHECK_INVOKED(m, &INVOCATION(.timeout_ns = 1), 1, 0, 1, 0, 0, 0);
}

TEST_OF_QUEUE(wait_until_another_thread_runs_a_queue_that_none_has_run) {
  waiter w;
  add_queued(m, counter(&calls), q);
  begin_waiting(&w, m, NULL);
  expect_to_be_waiting(&w);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  expect_waited(&w, 1, 1, 0);
}

static multicast_queue run_while_empty;

THREAD(run_nothing_and_wait, waiter *w) {
  CHECK_EQ(multicast_queue_run(run_while_empty, 0), 0);
  w->result = multicast_invoke_with(w->target, &w->how, &w->out);
  gate_open(&w->returned);
}

TEST_OF_QUEUE(wait_of_thread_that_ran_queue_while_it_was_empty_goes_on) {
  waiter w;
  add_queued(m, counter(&calls), q);
  w.target = m;
  w.how = waiting();
  w.out = multicast_outcome_default();
  w.returned = shut;
  run_while_empty = q;
  w.thread = start_thread(run_nothing_and_wait, &w);
  EVENTUALLY(stats_of(q).pending == 1);
  CHECK(!gate_opens_within(&w.returned, A_WHILE_MS));
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  expect_waited(&w, 1, 1, 0);
}

TEST_OF_QUEUE(wait_goes_on_if_the_thread_that_ran_the_queue_has_ended) {
  waiter w;
  add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(run_elsewhere(q, 0), 1);
  begin_waiting(&w, m, NULL);
  expect_to_be_waiting(&w);
  CHECK_EQ(run_elsewhere(q, 0), 1);
  expect_waited(&w, 1, 1, 0);
}

TEST_OF_QUEUE(wait_goes_on_if_the_thread_of_the_queue_is_stopped) {
  blocker b = BLOCKER_INIT;
  waiter w;
  add_queued(m, blocking(&b), q);
  add_queued(m, counter(&calls), q);
  CHECK_OK(multicast_queue_start(q));
  begin_waiting(&w, m, NULL);
  gate_wait(&b.entered);
  pthread_t opener = start_thread(open_after_a_while, &b.let_go);
  CHECK_OK(multicast_queue_stop(q));
  join_thread(opener);
  expect_to_be_waiting(&w);
  CHECK_OK(multicast_queue_start(q));
  expect_waited(&w, 2, 2, 0);
}

TEST_OF_MULTICAST(wait_for_several_queues_is_for_all_of_them) {
  multicast_queue q[3];
  waiter w;
  for (int i = 0; i < 3; ++i) q[i] = default_queue();
  for (int i = 0; i < 9; ++i) add_queued(m, counter(&calls), q[i * 2 % 3]);
  begin_waiting(&w, m, NULL);
  EVENTUALLY(stats_of(q[0]).pending + stats_of(q[1]).pending + stats_of(q[2]).pending == 9);
  CHECK_EQ(multicast_queue_run(q[2], 0), 3);
  CHECK_EQ(multicast_queue_run(q[0], 2), 2);
  CHECK_EQ(multicast_queue_run(q[1], 0), 3);
  expect_to_be_waiting(&w);
  CHECK_EQ(multicast_queue_run(q[0], 0), 1);
  expect_waited(&w, 9, 9, 0);
}

TEST(wait_with_a_payload_handed_over_returns_after_its_release) {
  for (int kind = 0; kind < 2; ++kind) {
    multicast m = multicast_create();
    multicast_queue q = default_queue();
    cargo c = fresh;
    multicast_invocation how = kind == 0 ? handing_over(&c) : copying(&c);
    seen s[2];
    add_queued(m, seeing(&s[0]), q);
    add_queued(m, seeing(&s[1]), q);
    CHECK_OK(multicast_queue_start(q));
    how.flags = MULTICAST_WAIT;
    CHECK_INVOKED(m, &how, 2, 0, 2, 0, 2, 0);
    CHECK(s[0].calls == 1 && s[1].calls == 1 && s[0].releases == 0 && s[1].releases == 0);
    CHECK(s[0].size == sizeof c);
    CHECK(s[0].payload == (kind == 0 ? &c : &copies[0]) && s[1].payload == s[0].payload);
    CHECK_EQ(kind == 0 ? c.releases : copies[0].releases, 1);
    CHECK_OK(multicast_queue_destroy(q));
  }
}

TEST_OF_QUEUE(wait_with_a_small_payload_passes_a_copy) {
  int number = 5;
  add_queued(m, noting('a'), q);
  add_queued(m, noting('b'), q);
  CHECK_OK(multicast_queue_start(q));
  multicast_invocation how = INVOCATION(.flags = MULTICAST_WAIT, .payload = &number,
                                        .size = sizeof number);
  CHECK_INVOKED(m, &how, 2, 0, 2, 0, 2, 0);
  CHECK_TEXT(noted, "a5 b5"); /* the effects of the calls are visible */
}

THREAD(open_after_long, void *to_open) {
  pause_ms(350);
  gate_open(to_open);
}

TEST_OF_QUEUE(wait_sleeps_and_does_not_poll) {
  blocker b = BLOCKER_INIT;
  add_queued(m, blocking(&b), q);
  CHECK_OK(multicast_queue_start(q));
  pthread_t opener = start_thread(open_after_long, &b.let_go);
  moment begin = this_moment();
  CHECK_EQ(multicast_invoke_with(m, &INVOCATION(.flags = MULTICAST_WAIT), NULL), 1);
  CHECK(b.has_left);
  join_thread(opener);
  expect_to_have_slept(begin);
}

/* ---- Calls that are cancelled --------------------------------------------------------------- */

static void ended_by(int64_t (*remove)(removal *)) {
  removal r;
  int calls = 0;
  waiter w;
  add_removable(&r, counter(&calls), default_queue(), NULL);
  begin_waiting(&w, r.target, NULL);
  EVENTUALLY(stats_of(r.queue).pending == 1);
  expect_to_be_waiting(&w);
  CHECK_OK(remove(&r));
  expect_waited(&w, 1, 0, 0);
  CHECK_OUTCOME(w.out, 0, 1, 0, 0, 0);
  CHECK_EQ(calls, 0);
}

TEST(wait_is_over_if_its_call_is_removed) { ended_by(by_remove); }
TEST(wait_is_over_if_its_call_is_removed_by_token) { ended_by(by_token); }
TEST(wait_is_over_if_its_call_is_removed_without_waiting) { ended_by(by_nowait); }
TEST(wait_is_over_if_the_context_is_removed) { ended_by(by_context); }
TEST(wait_is_over_if_all_are_removed) { ended_by(by_all); }
TEST(wait_is_over_if_the_multicast_is_destroyed) { ended_by(by_destroy); }
TEST(wait_is_over_if_the_lifetime_ends) { ended_by(by_lifetime); }
TEST(wait_is_over_if_the_queue_is_destroyed) { ended_by(by_queue); }

TEST_OF_QUEUE(wait_is_over_if_the_queue_is_cleared) {
  waiter w;
  add_queued(m, counter(&calls), q);
  add_queued(m, counter(&calls), q);
  begin_waiting(&w, m, NULL);
  EVENTUALLY(stats_of(q).pending == 2);
  CHECK_EQ(multicast_queue_clear(q), 2);
  expect_waited(&w, 2, 0, 0);
}

TEST_OF_QUEUE(waits_of_several_threads_are_over_if_the_queue_is_cleared) {
  waiter a, b;
  add_queued(m, counter(&calls), q);
  begin_waiting(&a, m, NULL);
  begin_waiting(&b, m, NULL);
  EVENTUALLY(stats_of(q).pending == 2);
  CHECK_EQ(multicast_queue_clear(q), 2);
  expect_waited(&a, 1, 0, 0);
  expect_waited(&b, 1, 0, 0);
}

TEST_OF_MULTICAST(wait_is_over_if_its_calls_are_dropped_for_newer_ones) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_DROP_OLDEST);
  waiter w;
  add_queued(m, counter(&calls), q);
  begin_waiting(&w, m, NULL);
  EVENTUALLY(stats_of(q).pending == 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  expect_waited(&w, 1, 0, 0);
}

TEST_OF_QUEUE(wait_is_over_if_its_call_is_replaced_by_the_latest) {
  waiter w;
  add_flagged(m, counter(&calls), q, MULTICAST_LATEST);
  begin_waiting(&w, m, NULL);
  EVENTUALLY(stats_of(q).pending == 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  expect_waited(&w, 1, 0, 0); /* a replaced call is neither finished nor unfinished */
  CHECK_EQ(w.out.queued, 1);
  CHECK_EQ(stats_of(q).pending, 1);
}

TEST_OF_QUEUE(wait_does_not_count_a_call_to_a_dead_context_as_finished) {
  add_queued(m, counter(&calls), q);
  add_with(m, counter(&calls), &ADD_OPTIONS(.queue = q, .lock = lock_dead,
                                            .unlock = unlock_nothing));
  CHECK_OK(multicast_queue_start(q));
  CHECK_INVOKED(m, &INVOCATION(.flags = MULTICAST_WAIT), 2, 0, 2, 0, 1, 0);
}

TEST_OF_MULTICAST(wait_for_destroyed_queue_lasts_while_its_call_runs) {
  multicast_queue q = default_queue(), next;
  blocker b = BLOCKER_INIT;
  runner run;
  waiter w;
  add_queued(m, blocking(&b), q);
  add_queued(m, counter(&calls), q);
  begin_waiting(&w, m, NULL);
  EVENTUALLY(stats_of(q).pending == 2);
  run_in_background(&run, q, 0);
  gate_wait(&b.entered);
  CHECK_ERROR(multicast_queue_destroy_within(q, 0), TIMEOUT);
  next = default_queue(); /* may reuse the slot */
  expect_to_be_waiting(&w);
  gate_open(&b.let_go);
  expect_waited(&w, 2, 1, 0);
  CHECK_EQ(run_finished(&run), 1);
  CHECK_EQ(calls, 0);
  CHECK_OK(multicast_queue_destroy(next));
}

/* The last delegate destroys the queue, after a call has been queued and before the invocation
 * begins to wait for that call. */
static multicast_queue doomed_queue;
static blocker *running;
static runner *runs_doomed;
static gate doomed_is_gone = GATE_INIT;

static void destroy_doomed(void *context, uint32_t event, const void *payload, size_t size) {
  if (running != NULL) {
    run_in_background(runs_doomed, doomed_queue, 0);
    gate_wait(&running->entered);
  }
  CHECK_STATUS(multicast_queue_destroy_within(doomed_queue, 0),
               running != NULL ? MULTICAST_ERROR_TIMEOUT : MULTICAST_OK);
  /* Make this thread the consumer of a new queue, which may reuse the slot. */
  multicast_queue next = default_queue();
  multicast m = multicast_create();
  int calls = 0;
  add_queued(m, counter(&calls), next);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(next, 0), 1);
  CHECK_OK(multicast_destroy(m));
  gate_open(&doomed_is_gone);
}

TEST_OF_MULTICAST(wait_is_over_at_once_if_the_queue_was_destroyed_before_it) {
  doomed_queue = default_queue();
  add_queued(m, counter(&calls), doomed_queue);
  add(m, DELEGATE(destroy_doomed, NULL));
  CHECK_INVOKED(m, &INVOCATION(.flags = MULTICAST_WAIT), 2, 1, 1, 0, 0, 0);
}

TEST_OF_MULTICAST(wait_for_a_queue_destroyed_before_it_lasts_while_a_call_runs) {
  static blocker b = BLOCKER_INIT;
  static runner run;
  waiter w;
  running = &b;
  runs_doomed = &run;
  doomed_queue = default_queue();
  add_queued(m, blocking(&b), doomed_queue);
  add(m, DELEGATE(destroy_doomed, NULL));
  begin_waiting(&w, m, NULL);
  gate_wait(&doomed_is_gone);
  expect_to_be_waiting(&w);
  gate_open(&b.let_go);
  expect_waited(&w, 2, 1, 0);
  CHECK_EQ(run_finished(&run), 1);
}

/* ---- Threads that end ------------------------------------------------------------------------ */

TEST_OF_QUEUE(wait_is_over_if_the_thread_that_runs_the_call_ends_inside_it) {
  cargo c = fresh;
  multicast_invocation how = handing_over(&c);
  runner run;
  waiter w;
  add_queued(m, DELEGATE(end_this_thread, NULL), q);
  begin_waiting(&w, m, &how);
  EVENTUALLY(stats_of(q).pending == 1);
  run.queue = q;
  on_another_thread(run_on_a_new_thread, &run);
  gate_wait(&w.returned);
  join_thread(w.thread);
  CHECK_EQ(w.result, 1);
  CHECK_EQ(w.out.unfinished, 0);
  CHECK_EQ(w.out.finished, 1); /* the call counts as made, although its thread has ended */
  CHECK_EQ(stats_of(q).delivered, 1);
  CHECK_EQ(c.releases, 1);
}

TEST_OF_QUEUE(wait_goes_on_for_calls_that_thread_has_left_as_it_ended) {
  runner run;
  waiter w;
  add_queued(m, DELEGATE(end_this_thread, NULL), q);
  add_queued(m, counter(&calls), q);
  begin_waiting(&w, m, NULL);
  EVENTUALLY(stats_of(q).pending == 2);
  run.queue = q;
  on_another_thread(run_on_a_new_thread, &run);
  expect_to_be_waiting(&w);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  gate_wait(&w.returned);
  join_thread(w.thread);
  CHECK_EQ(w.out.unfinished, 0);
  CHECK_EQ(calls, 1);
}

THREAD(invoke_and_never_return, waiter *w) {
  multicast_invoke_with(w->target, &w->how, &w->out);
  CHECK(false);
}

TEST_OF_QUEUE(thread_that_ends_inside_waiting_invocation_leaves_its_calls) {
  cargo c = fresh;
  add_queued(m, counter(&calls), q);
  add_queued(m, counter(&calls), default_queue());
  add(m, DELEGATE(end_this_thread, NULL));
  waiter w = {.target = m, .how = handing_over(&c)};
  w.how.flags = MULTICAST_WAIT;
  w.out = multicast_outcome_default();
  on_another_thread(invoke_and_never_return, &w);
  CHECK_EQ(c.releases, 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(c.releases, 0);
  CHECK_OK(multicast_destroy(m));
  CHECK_EQ(c.releases, 1);
}

/* ---- Timeouts -------------------------------------------------------------------------------- */

TEST_OF_MULTICAST(wait_that_times_out_leaves_its_calls_queued_and_says_so) {
  multicast_queue q = default_queue(), other = default_queue();
  cargo c = fresh;
  multicast_invocation how = handing_over(&c);
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  uint64_t begun = now_ns();
  add(m, counter(&calls));
  add_queued(m, counter(&calls), q);
  add_queued(m, counter(&calls), other);
  add_queued(m, counter(&calls), q);
  how.flags = MULTICAST_WAIT;
  how.timeout_ns = UINT64_C(30000000);
  CHECK_ERROR(multicast_invoke_with(m, &how, &out), TIMEOUT);
  CHECK(now_ns() - begun >= how.timeout_ns);
  CHECK_OUTCOME(out, 1, 3, 0, 0, 3);
  CHECK_EQ(calls, 1);
  CHECK_EQ(c.releases, 0);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_EQ(c.releases, 0);
  CHECK_EQ(multicast_queue_run(other, 0), 1);
  CHECK_EQ(c.releases, 1);
  CHECK_EQ(calls, 4);
}

TEST_OF_QUEUE(wait_that_times_out_during_a_call_counts_it_as_unfinished) {
  blocker b = BLOCKER_INIT;
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  add_queued(m, counter(&calls), q);
  add_queued(m, blocking(&b), q);
  CHECK_OK(multicast_queue_start(q));
  multicast_invocation how = INVOCATION(.flags = MULTICAST_WAIT, .timeout_ns = UINT64_C(300000000));
  CHECK_ERROR(multicast_invoke_with(m, &how, &out), TIMEOUT);
  CHECK_EQ(out.finished + out.unfinished, 2);
  CHECK(out.unfinished >= 1); /* on a slow machine, both calls may still be unfinished */
  gate_open(&b.let_go);
  CHECK_OK(multicast_queue_destroy(q));
}

static void take_time(void *context, uint32_t event, const void *payload, size_t size) {
  pause_ms(A_WHILE_MS);
  ADD(*(int *)context, 1);
}

/* The direct call takes as long as the invocation's timeout. After that, another thread makes the
 * queued call. The wait must time out anyway, because its time limit counts from the start of the
 * invocation and not from the end of the direct call. */
enum { TIME_MS = 400, SOON_MS = 200 };
static multicast_queue run_soon_queue;
static pthread_t soon;

THREAD(run_soon, void *unused) {
  pause_ms(SOON_MS);
  CHECK_EQ(multicast_queue_run(run_soon_queue, 0), 1);
}

static void take_all_the_time(void *context, uint32_t event, const void *payload, size_t size) {
  pause_ms(TIME_MS);
  ++*(int *)context;
  soon = start_thread(run_soon, NULL);
}

TEST_OF_MULTICAST(wait_has_the_time_from_the_beginning_of_the_invocation) {
  multicast_invocation how = waiting();
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  int queued = 0;
  run_soon_queue = default_queue();
  add_queued(m, counter(&queued), run_soon_queue);
  add(m, DELEGATE(take_all_the_time, &calls));
  how.timeout_ns = TIME_MS * UINT64_C(1000000);
  CHECK_ERROR(multicast_invoke_with(m, &how, &out), TIMEOUT);
  CHECK_OUTCOME(out, 1, 1, 0, 0, 1);
  CHECK_EQ(calls, 1); /* the direct call ran to its end */
  join_thread(soon);
}

TEST(wait_for_room_is_not_cut_short_by_the_time_of_the_invocation) {
  narrow n;
  waiter w;
  fill_narrow(&n, NULL);
  begin_waiting(&w, n.target, &INVOCATION(.flags = MULTICAST_WAIT, .timeout_ns = 1));
  expect_to_be_waiting(&w);
  CHECK_EQ(multicast_queue_run(n.queue, 1), 1);
  expect_waited(&w, MULTICAST_ERROR_TIMEOUT, 0, 1);
  CHECK_OUTCOME(w.out, 0, 1, 0, 0, 1);
  CHECK_EQ(multicast_queue_run(n.queue, 0), 1);
}

TEST_OF_QUEUE(wait_whose_time_is_up_is_no_timeout_if_all_calls_were_made) {
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  int queued = 0;
  multicast_invocation how = INVOCATION(.flags = MULTICAST_WAIT, .timeout_ns = 1);
  add(m, DELEGATE(take_time, &calls));
  CHECK_EQ(multicast_invoke_with(m, &how, &out), 1); /* no call has been queued */
  CHECK_OUTCOME(out, 1, 0, 0, 0, 0);
  add_queued(m, counter(&queued), q);
  doomed_queue = q;
  running = NULL;
  add(m, DELEGATE(destroy_doomed, NULL));
  CHECK_EQ(multicast_invoke_with(m, &how, &out), 3); /* the queued call has been cancelled */
  CHECK_OUTCOME(out, 2, 1, 0, 0, 0);
}

TEST_OF_QUEUE(wait_with_the_longest_time_has_no_limit) {
  waiter w;
  add_queued(m, counter(&calls), q);
  begin_waiting(&w, m, &INVOCATION(.flags = MULTICAST_WAIT, .timeout_ns = MULTICAST_FOREVER));
  expect_to_be_waiting(&w);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  expect_waited(&w, 1, 1, 0);
}

/* ---- Signals --------------------------------------------------------------------------------- */

static int signals_caught;

static void catch_signal(int number) {
  ADD(signals_caught, 1);
}

TEST_OF_QUEUE(wait_goes_on_through_signals) {
  struct sigaction action;
  waiter w;
  memset(&action, 0, sizeof action);
  action.sa_handler = catch_signal;
  CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
  add_queued(m, counter(&calls), q);
  begin_waiting(&w, m, NULL);
  EVENTUALLY(stats_of(q).pending == 1);
  pause_ms(10);
  for (int i = 1; i <= 10; ++i) {
    CHECK_EQ(pthread_kill(w.thread, SIGUSR1), 0);
    EVENTUALLY(LOAD(signals_caught) >= i);
  }
  expect_to_be_waiting(&w);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  expect_waited(&w, 1, 1, 0);
}

/* ---- Many threads ---------------------------------------------------------------------------- */

enum { WAITERS = 3, WAITS = 1500 };
static multicast storm_target;

THREAD(wait_often, void *unused) {
  for (int i = 0; i < WAITS; ++i) {
    multicast_outcome out = MULTICAST_OUTCOME_INIT;
    int64_t count = multicast_invoke_with(storm_target, &INVOCATION(.flags = MULTICAST_WAIT), &out);
    CHECK(count >= 0);
    CHECK_EQ(out.called + out.queued, count);
    CHECK_EQ(out.unfinished, 0);
    CHECK(out.finished <= out.queued);
  }
}

TEST(wait_of_many_threads_while_others_clear_and_remove) {
  multicast_queue q[2];
  pthread_t threads[WAITERS];
  storm_target = multicast_create();
  for (int i = 0; i < 2; ++i) {
    q[i] = queue_with(4, i == 0 ? MULTICAST_OVERFLOW_REFUSE : MULTICAST_OVERFLOW_DROP_OLDEST);
    add_queued(storm_target, counter(&calls), q[i]);
    CHECK_OK(multicast_queue_start(q[i]));
  }
  for (int i = 0; i < WAITERS; ++i) threads[i] = start_thread(wait_often, NULL);
  for (int round = 0; round < 300; ++round) {
    multicast_token t = add_flagged(storm_target, counter(&calls), q[round % 2],
                                    round % 3 == 0 ? MULTICAST_LATEST : 0);
    CHECK(multicast_queue_clear(q[round % 2]) >= 0);
    CHECK_OK(multicast_token_remove(t));
  }
  for (int i = 0; i < WAITERS; ++i) join_thread(threads[i]);
  CHECK_OK(multicast_queue_destroy(q[0]));
  CHECK_OK(multicast_queue_destroy(q[1]));
}
