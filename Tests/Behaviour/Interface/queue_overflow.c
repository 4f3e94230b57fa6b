/* Depending on its options, a full queue refuses the new call, drops the oldest call, or blocks the
 * invocation. */

#include "notes.h"
#include "queues.h"

/* A thread that invokes a multicast once, with a number as the payload. */
typedef struct sender {
  multicast target;
  int number;
  int64_t result;
  gate returned;
  pthread_t thread;
} sender;

THREAD(send_once, sender *s) {
  s->result = invoke_number(s->target, s->number);
  gate_open(&s->returned);
}

static void send_in_background(sender *s, multicast m, int number) {
  s->target = m;
  s->number = number;
  s->result = INT64_MIN;
  s->returned = shut;
  s->thread = start_thread(send_once, s);
}

static int64_t send_finished(sender *s) {
  join_thread(s->thread);
  return s->result;
}

TEST(queue_full_leaves_the_other_delegates_of_an_invocation_alone) {
  multicast_queue full = queue_with(1, MULTICAST_OVERFLOW_REFUSE), q = default_queue();
  multicast m = multicast_create();
  add_queued(m, noting('f'), full);
  add(m, noting('a'));
  add_queued(m, noting('q'), q);
  CHECK_EQ(invoke_number(m, 1), 3);
  CHECK_EQ(invoke_number(m, 2), 2);
  CHECK_NOTED(multicast_queue_run(full, 0) + multicast_queue_run(q, 0), 3, "a1 a2 f1 q1 q2");
}

TEST(queue_that_is_full_blocks_who_invokes_until_there_is_room) {
  narrow n;
  sender s;
  fill_narrow(&n, NULL);
  send_in_background(&s, n.target, 2);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  CHECK_TEXT(figures(n.queue), "pending 1, queued 1");
  CHECK_EQ(multicast_queue_run(n.queue, 1), 1);
  CHECK_EQ(send_finished(&s), 1);
  CHECK_NOTED(multicast_queue_run(n.queue, 1), 1, "a1 a2");
  CHECK_TEXT(figures(n.queue), "queued 2, delivered 2");
}

TEST(queue_that_blocks_takes_in_all_who_wait_for_room) {
  enum { SENDERS = 8 };
  narrow n;
  sender s[SENDERS];
  int made = 0;
  fill_narrow(&n, NULL);
  for (int i = 0; i < SENDERS; ++i) send_in_background(&s[i], n.target, 2 + i);
  while (made < SENDERS + 1) {
    CHECK(multicast_queue_wait(n.queue, UINT64_C(20000000000)) > 0);
    made += (int)multicast_queue_run(n.queue, 0);
  }
  for (int i = 0; i < SENDERS; ++i) CHECK_EQ(send_finished(&s[i]), 1);
  CHECK_TEXT(figures(n.queue), "queued 9, delivered 9");
}

TEST(queue_makes_room_for_who_is_blocked_as_a_call_begins) {
  /* A call makes room as soon as it starts. To show this, the call does not return until the
   * blocked invocation has continued. */
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast m = multicast_create(), other = multicast_create();
  blocker b = BLOCKER_INIT;
  runner r;
  sender s;
  add_queued(m, blocking(&b), q);
  add_queued(other, noting('x'), q);
  invoke_number(m, 1);
  send_in_background(&s, other, 2);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  run_in_background(&r, q, 1);
  gate_wait(&b.entered);
  CHECK_EQ(send_finished(&s), 1);
  gate_open(&b.let_go);
  CHECK_EQ(run_finished(&r), 1);
  CHECK_TEXT(figures(q), "pending 1, queued 2, delivered 1");
}

/* queue_refused.c tests the removal of a delegate whose own call is waiting for room. */
TEST(queue_unblocks_who_invokes_when_it_is_destroyed) {
  narrow n;
  sender s;
  fill_narrow(&n, &ADD_OPTIONS(.release = count_release_of));
  send_in_background(&s, n.target, 2);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  CHECK_OK(multicast_queue_destroy(n.queue));
  CHECK_EQ(send_finished(&s), 0);
  CHECK_EQ(releases['a'], 1);
}

TEST_OF_MULTICAST(queue_unblocks_who_invokes_when_a_removal_makes_room) {
  narrow n;
  sender s;
  fill_narrow(&n, NULL);
  add_queued(m, noting('x'), n.queue);
  send_in_background(&s, m, 2);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  CHECK_OK(multicast_token_remove(n.token));
  CHECK_EQ(send_finished(&s), 1);
  CHECK_NOTED(multicast_queue_run(n.queue, 0), 1, "x2");
  CHECK_EQ(stats_of(n.queue).cancelled, 1);
}

TEST(queue_refuses_instead_of_blocking_thread_that_ran_it_last) {
  narrow n;
  fill_narrow(&n, NULL);
  CHECK_EQ(multicast_queue_run(n.queue, 0), 1);
  CHECK_EQ(invoke_number(n.target, 2), 1);
  CHECK_EQ(invoke_number(n.target, 3), 0);
  CHECK_TEXT(figures(n.queue), "pending 1, queued 2, delivered 1, refused 1");
  CHECK_NOTED(multicast_queue_run(n.queue, 0), 1, "a1 a2");
}

FUNCTION(invoke_twice, requeuer *r) {
  if (++r->made == 1)
    r->nested = invoke_number(r->target, 2) * 10 + invoke_number(r->target, 3);
}

static void begin_invoking_twice(requeuer *r) {
  memset(r, 0, sizeof *r);
  r->queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  r->target = multicast_create();
  add_queued(r->target, DELEGATE(invoke_twice, r), r->queue);
}

TEST(queue_refuses_instead_of_blocking_its_own_call) {
  requeuer r;
  begin_invoking_twice(&r);
  CHECK_EQ(invoke_number(r.target, 1), 1);
  CHECK_EQ(run_elsewhere(r.queue, 1), 1); /* another thread runs the queue for the first time */
  CHECK_EQ(r.nested, 10);
  CHECK_TEXT(figures(r.queue), "pending 1, queued 2, delivered 1, refused 1");
}

TEST(queue_refuses_instead_of_blocking_a_call_of_its_worker) {
  requeuer r;
  begin_invoking_twice(&r);
  CHECK_OK(multicast_queue_start(r.queue));
  CHECK_EQ(invoke_number(r.target, 1), 1);
  EVENTUALLY(stats_of(r.queue).delivered == 2);
  CHECK_OK(multicast_queue_stop(r.queue));
  CHECK_EQ(r.nested, 10);
  CHECK_TEXT(figures(r.queue), "queued 2, delivered 2, refused 1");
}

/* The context of a delegate. Its call waits for `may_return`, and then makes an invocation, which
 * blocks because a queue is full. */
typedef struct blocked_call {
  narrow full;
  gate entered, may_return, returned;
  int64_t result;
  multicast target;
  multicast_token token;
  int releases;
} blocked_call;

FUNCTION(invoke_into_full, blocked_call *c) {
  gate_open(&c->entered);
  gate_wait(&c->may_return);
  c->result = invoke_number(c->full.target, 2);
  gate_open(&c->returned);
}

static void release_blocked(void *context) { ADD(((blocked_call *)context)->releases, 1); }

static void begin_blocked_call(blocked_call *c) {
  memset(c, 0, sizeof *c);
  c->entered = c->may_return = c->returned = shut;
  fill_narrow(&c->full, NULL);
  CHECK_EQ(multicast_queue_run(c->full.queue, 0), 1); /* makes this thread the queue's consumer */
  CHECK_EQ(invoke_number(c->full.target, 1), 1);
  multicast_delegate d = {invoke_into_full, c};
  c->target = multicast_create();
  c->token = add_with(c->target, d, &ADD_OPTIONS(.release = release_blocked));
}

/* The queue's consumer has removed the delegate whose call waits for room in that queue. To avoid a
 * deadlock, the library has either let the removal return MULTICAST_PENDING or refused the
 * delegate's invocation. */
static void expect_one_to_have_given_way(blocked_call *c, invoker *i, multicast_status status) {
  if (status == MULTICAST_PENDING) {
    CHECK_EQ(multicast_queue_run(c->full.queue, 1), 1);
    CHECK_EQ(invoke_finished(i), 1);
    CHECK_EQ(c->result, 1);
  } else {
    CHECK_OK(status);
    CHECK_EQ(LOAD(c->releases), 1);
    CHECK_EQ(invoke_finished(i), 1);
    CHECK_EQ(c->result, 0);
    CHECK_EQ(stats_of(c->full.queue).refused, 1);
  }
  CHECK_EQ(LOAD(c->releases), 1);
}

TEST(queue_that_blocks_a_call_its_consumer_removes_does_not_hang) {
  blocked_call c;
  invoker i;
  begin_blocked_call(&c);
  invoke_in_background(&i, c.target);
  gate_open(&c.may_return);
  gate_wait(&c.entered);
  CHECK(!gate_opens_within(&c.returned, A_WHILE_MS)); /* the call is probably waiting now */
  expect_one_to_have_given_way(&c, &i, multicast_token_remove(c.token));
}

TEST(queue_refuses_a_call_for_which_its_consumer_waits) {
  blocked_call c;
  invoker i;
  begin_blocked_call(&c);
  invoke_in_background(&i, c.target);
  gate_wait(&c.entered);
  /* when the helper opens the gate, this thread is probably waiting */
  pthread_t helper = start_thread(open_after_a_while, &c.may_return);
  expect_one_to_have_given_way(&c, &i, multicast_token_remove(c.token));
  join_thread(helper);
}

static void *remove_blocked(void *argument) {
  blocked_call *c = argument;
  return (void *)(intptr_t)multicast_token_remove(c->token);
}

TEST(queue_that_blocks_a_call_that_others_remove_has_it_wait) {
  blocked_call c;
  invoker i;
  void *status;
  begin_blocked_call(&c);
  invoke_in_background(&i, c.target);
  gate_open(&c.may_return);
  CHECK(!gate_opens_within(&c.returned, A_WHILE_MS));
  pthread_t remover = start_thread(remove_blocked, &c);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(c.releases), 0);
  CHECK_EQ(multicast_queue_run(c.full.queue, 1), 1);
  CHECK_EQ(pthread_join(remover, &status), 0);
  CHECK_OK((intptr_t)status);
  CHECK_EQ(LOAD(c.releases), 1);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(c.result, 1);
}

TEST(queue_that_blocks_an_invocation_delays_no_other_removal) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast m = multicast_create();
  sender s;
  multicast_token filler = add_queued(m, noting('f'), q);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_OK(multicast_token_pause(filler));
  multicast_token before = add(m, noting('a'));
  add_queued(m, noting('q'), q);
  multicast_token after = add(m, noting('b'));
  send_in_background(&s, m, 2);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  CHECK_OK(multicast_token_remove(before));
  CHECK_OK(multicast_token_remove(after));
  CHECK_OK(multicast_token_remove(filler)); /* removing this delegate makes room */
  CHECK_EQ(send_finished(&s), 2);
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "a2 q2");
}

/* Two invocations are blocked. Room for one call unblocks both, because with these flags, the queue
 * never holds more than one call to a delegate. */
static void expect_both_unblocked(uint32_t flags, int64_t sum) {
  narrow n;
  sender s[2];
  multicast m = multicast_create();
  fill_narrow(&n, NULL);
  add_with(m, noting('x'), &ADD_OPTIONS(.queue = n.queue, .flags = flags));
  for (int i = 0; i < 2; ++i) send_in_background(&s[i], m, 2);
  for (int i = 0; i < 2; ++i) CHECK(!gate_opens_within(&s[i].returned, A_WHILE_MS));
  CHECK_EQ(multicast_queue_run(n.queue, 1), 1);
  CHECK_EQ(send_finished(&s[0]) + send_finished(&s[1]), sum);
  CHECK_NOTED(multicast_queue_run(n.queue, 0), 1, "a1 x2");
}

TEST(queue_unblocks_a_latest_call_once_it_can_replace_another) {
  expect_both_unblocked(MULTICAST_LATEST, 2);
}
TEST(queue_unblocks_a_once_call_once_another_waits) { expect_both_unblocked(MULTICAST_ONCE, 1); }
