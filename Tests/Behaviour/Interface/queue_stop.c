/* Stopping or destroying a queue ends its worker after the current call. */

#include "notes.h"
#include "queues.h"
#include "removals.h"

/* ---- Stop ------------------------------------------------------------------------------------ */

TEST(queue_stop_without_start_is_state) {
  multicast_queue q = default_queue();
  CHECK_ERROR(multicast_queue_stop(q), STATE);
  CHECK_OK(multicast_queue_start(q));
  CHECK_OK(multicast_queue_stop(q));
  CHECK_ERROR(multicast_queue_stop(q), STATE);
}

static int64_t by_stop(removal *r) { return multicast_queue_stop(r->queue); }

TEST_OF_QUEUE(queue_stop_lets_the_call_finish_and_keeps_the_rest) {
  blocker b = BLOCKER_INIT;
  removal r;
  prepare_removal(&r, m, &b, by_stop);
  r.queue = q;
  add_queued(m, r.delegate, q);
  invoke_number(m, 1);
  invoke_number(m, 2);
  invoke_number(m, 3);
  CHECK_OK(multicast_queue_start(q));
  gate_wait(&b.entered);
  r.thread = start_thread(remove_in_thread, &r);
  CHECK(!gate_opens_within(&r.returned, A_WHILE_MS));
  /* a stopping queue still counts as started */
  EVENTUALLY(multicast_queue_start(q) == MULTICAST_ERROR_STATE);
  gate_open(&b.let_go);
  join_thread(r.thread);
  CHECK_OK(r.result);
  CHECK(r.had_left);
  CHECK_TEXT(figures(q), "pending 2, queued 3, delivered 1");
  CHECK_EQ(invoke_number(m, 4), 1);
  pause_ms(A_WHILE_MS);
  CHECK_TEXT(figures(q), "pending 3, queued 4, delivered 1");
  CHECK_EQ(multicast_queue_run(q, 0), 3);
  CHECK_EQ(b.calls, 4);
}

FUNCTION(stop_inside, requeuer *r) {
  r->nested = multicast_queue_stop(r->queue);
  ADD(r->made, 1);
}

TEST(queue_stop_inside_its_own_call_is_pending) {
  requeuer r;
  multicast_status status;
  begin_requeuing(&r, stop_inside, 0);
  invoke_number(r.target, 2);
  CHECK_OK(multicast_queue_start(r.queue));
  EVENTUALLY(LOAD(r.made) == 1);
  status = multicast_queue_stop(r.queue); /* waits for the worker unless it has already ended */
  CHECK(status == MULTICAST_OK || status == MULTICAST_ERROR_STATE);
  CHECK_STATUS(r.nested, MULTICAST_PENDING);
  CHECK_TEXT(figures(r.queue), "pending 1, queued 2, delivered 1");
  CHECK_OK(multicast_queue_start(r.queue));
  EVENTUALLY(LOAD(r.made) == 2);
}

FUNCTION(start_and_stop, requeuer *r) {
  CHECK_OK(multicast_queue_start(r->queue));
  r->nested = multicast_queue_stop(r->queue);
}

TEST(queue_stop_inside_a_run_waits_for_an_idle_worker) {
  requeuer r;
  begin_requeuing(&r, start_and_stop, 0);
  CHECK_EQ(multicast_queue_run(r.queue, 1), 1);
  CHECK_STATUS(r.nested, MULTICAST_OK); /* the worker was waiting for its turn, so it could end */
}

TEST_OF_MULTICAST(queue_stop_inside_call_elsewhere_waits_where_no_cycle_closes) {
  blocker b = BLOCKER_INIT;
  requeuer r = {{0}, {0}, 0, 0, -1};
  invoker i;
  r.queue = default_queue();
  r.target = multicast_create();
  add(r.target, DELEGATE(stop_inside, &r));
  add_queued(m, blocking(&b), r.queue);
  invoke_number(m, 1);
  CHECK_OK(multicast_queue_start(r.queue));
  gate_wait(&b.entered);
  invoke_in_background(&i, r.target);
  pause_ms(A_WHILE_MS);
  gate_open(&b.let_go);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_OK(r.nested);
  CHECK(LOAD(b.has_left));
}

TEST(queue_stop_of_a_worker_before_its_turn_does_not_wait) {
  queued_call c;
  begin_queued_call(&c, by_token);
  CHECK_OK(multicast_queue_start(c.r.queue));
  CHECK_OK(multicast_queue_stop(c.r.queue));
  CHECK(!LOAD(c.b.has_left));
  gate_open(&c.b.let_go);
  CHECK_EQ(run_finished(&c.run) + multicast_queue_run(c.r.queue, 0), 3);
}

/* Two threads would wait for each other if neither of them gave up. The worker is in a call that
 * removes a delegate. Another thread is in a call to that delegate, and the call stops or destroys
 * the queue. */
typedef struct standoff {
  multicast_queue queue;
  multicast_token direct_token;
  gate in_worker, in_direct;
  bool destroys;
  int64_t removed, stopped;
  int releases;
} standoff;

FUNCTION(remove_direct, standoff *s) {
  gate_open(&s->in_worker);
  gate_wait(&s->in_direct);
  s->removed = multicast_token_remove(s->direct_token);
}

FUNCTION(stop_worker, standoff *s) {
  gate_open(&s->in_direct);
  gate_wait(&s->in_worker);
  s->stopped = s->destroys ? multicast_queue_destroy(s->queue) : multicast_queue_stop(s->queue);
}

static void release_standoff(void *context) { ADD(((standoff *)context)->releases, 1); }

static void expect_no_standoff(bool destroys) {
  multicast m = multicast_create(), direct = multicast_create();
  multicast_add_options options = ADD_OPTIONS(.release = release_standoff);
  standoff s = {0};
  s.in_worker = s.in_direct = shut;
  s.queue = default_queue();
  s.destroys = destroys;
  multicast_delegate d = {.context = &s, .function = stop_worker};
  s.direct_token = add_with(direct, d, &options);
  d.function = remove_direct;
  options.queue = s.queue;
  add_with(m, d, &options);
  CHECK_OK(multicast_queue_start(s.queue));
  invoke_number(m, 1);
  CHECK_EQ(multicast_invoke(direct, 0, NULL, 0), 1);
  if (!destroys) CHECK_OK(multicast_queue_destroy(s.queue));
  EVENTUALLY(LOAD(s.releases) == 2);
  CHECK(s.stopped == MULTICAST_PENDING || s.removed == MULTICAST_PENDING);
  CHECK(s.stopped == MULTICAST_PENDING || s.stopped == MULTICAST_OK);
  CHECK(s.removed == MULTICAST_PENDING || s.removed == MULTICAST_OK);
}

TEST(queue_stop_and_a_removal_by_its_worker_do_not_hang) { expect_no_standoff(false); }

/* ---- Destroy --------------------------------------------------------------------------------- */

TEST(queue_destroy_and_a_removal_by_its_worker_do_not_hang) { expect_no_standoff(true); }

TEST_OF_QUEUE(queue_destroyed_while_its_worker_sleeps) {
  add_queued(m, noting('a'), q);
  CHECK_OK(multicast_queue_start(q));
  invoke_number(m, 1);
  EVENTUALLY(stats_of(q).delivered == 1);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_TEXT(noted, "a1");
  CHECK_EQ(multicast_count(m), 0);
}

TEST_OF_MULTICAST(queue_destroyed_in_a_call_of_its_worker_ends_it) {
  doomed = default_queue();
  add_destroyer(m);
  add_queued(m, noting('b'), doomed);
  CHECK_EQ(invoke_number(m, 1), 2);
  CHECK_OK(multicast_queue_start(doomed));
  EVENTUALLY(LOAD(releases['d']) == 1);
  CHECK_TEXT(noted, "d1");
  CHECK_ERROR(multicast_queue_stop(doomed), INVALID_HANDLE);
}

TEST(queue_destroyed_with_calls_waiting_for_its_worker_makes_none) {
  removal r;
  blocker b = BLOCKER_INIT;
  multicast other = multicast_create();
  add_removable(&r, blocking(&b), default_queue(), release_blocker);
  r.remove = by_queue;
  r.b = &b;
  add_queued(other, noting('x'), r.queue);
  CHECK_OK(multicast_queue_start(r.queue));
  invoke_number(r.target, 1);
  invoke_number(other, 2);
  gate_wait(&b.entered);
  expect_to_wait(&r, MULTICAST_OK);
  pause_ms(A_WHILE_MS);
  CHECK_TEXT(noted, "");
  CHECK_EQ(LOAD(b.releases), 1);
}
