/* An invocation with MULTICAST_WAIT never deadlocks. It does not wait for a call that only its own
 * thread could make, nor for a thread that is waiting for the invocation. */

#include "payloads.h"

/* ---- Delegates whose calls wait for a queue -------------------------------------------------- */

/* The context of a delegate whose call invokes `inner` with MULTICAST_WAIT. */
typedef struct inside {
  multicast inner;
  multicast_queue queue; /* the queue of the awaited calls; 0: do not check it */
  gate entered, go_on, has_left;
  multicast_outcome out;
  int64_t result;
  int releases;
} inside;

FUNCTION(wait_inside, inside *i) {
  gate_open(&i->entered);
  gate_wait(&i->go_on);
  i->out = multicast_outcome_default();
  i->result = multicast_invoke_with(i->inner, &INVOCATION(.flags = MULTICAST_WAIT), &i->out);
  gate_open(&i->has_left);
}

static void release_inside(void *context) { ADD(((inside *)context)->releases, 1); }

/* Returns a delegate whose call waits for calls in `q`. */
static multicast_delegate waiting_for(inside *i, multicast_queue q, int *calls) {
  memset(i, 0, sizeof *i);
  i->entered = shut;
  i->go_on = shut;
  i->has_left = shut;
  i->inner = multicast_create();
  i->queue = q;
  add_queued(i->inner, counter(calls), q);
  return (multicast_delegate){wait_inside, i};
}

/* Returns a queue whose consumer is this thread, because it was the last thread to run the
 * queue. */
static multicast_queue queue_of_this_thread(void) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  int calls = 0;
  add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_OK(multicast_destroy(m));
  return q;
}

static void expect_asleep(inside *i) {
  if (i->queue.id != 0) EVENTUALLY(stats_of(i->queue).pending > 0);
  CHECK(!gate_opens_within(&i->has_left, A_WHILE_MS));
}

/* Starts a worker for `q`, and returns once the worker is inside a call. When `go_on` opens, this
 * call waits for a call in `awaited`. */
static void begin_in_queue(inside *i, multicast_queue q, multicast_queue awaited, int *calls) {
  multicast m = multicast_create();
  add_queued(m, waiting_for(i, awaited, calls), q);
  CHECK_OK(multicast_queue_start(q));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  gate_wait(&i->entered);
}

static void sleep_in_queue(inside *i, multicast_queue q, multicast_queue awaited, int *calls) {
  begin_in_queue(i, q, awaited, calls);
  gate_open(&i->go_on);
  expect_asleep(i);
}

static void expect_outcome(inside *i, uint64_t finished, uint64_t unfinished) {
  gate_wait(&i->has_left);
  CHECK_EQ(i->result, 1);
  CHECK_OUTCOME(i->out, 0, 1, 0, finished, unfinished);
}

/* ---- A thread and its own queue -------------------------------------------------------------- */

TEST_OF_MULTICAST(wait_of_the_thread_that_ran_the_queue_last_is_unfinished) {
  multicast_queue q = queue_of_this_thread();
  add_queued(m, counter(&calls), q);
  add(m, counter(&calls));
  add_queued(m, counter(&calls), q);
  CHECK_INVOKED(m, &INVOCATION(.flags = MULTICAST_WAIT), 3, 1, 2, 0, 0, 2);
  CHECK_EQ(stats_of(q).pending, 2);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_EQ(calls, 3);
}

TEST_OF_QUEUE(wait_inside_a_call_of_the_same_queue_is_unfinished) {
  inside i;
  add_queued(m, waiting_for(&i, q, &calls), q);
  gate_open(&i.go_on);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 1), 1);
  expect_outcome(&i, 0, 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(calls, 1);
}

TEST(wait_of_thread_of_queue_for_its_own_queue_is_unfinished) {
  multicast_queue q = default_queue();
  inside i;
  begin_in_queue(&i, q, q, &calls);
  gate_open(&i.go_on);
  expect_outcome(&i, 0, 1);
  EVENTUALLY(LOAD(calls) == 1); /* the call was still in the queue */
  CHECK_OK(multicast_queue_destroy(q));
}

TEST_OF_MULTICAST(wait_of_a_queue_whose_thread_was_started_is_for_that_thread) {
  multicast_queue q = queue_of_this_thread();
  add_queued(m, counter(&calls), q);
  CHECK_OK(multicast_queue_start(q));
  CHECK_INVOKED(m, &INVOCATION(.flags = MULTICAST_WAIT), 1, 0, 1, 0, 1, 0);
  CHECK_OK(multicast_queue_destroy(q));
}

TEST(wait_for_several_queues_is_for_those_that_close_no_cycle) {
  for (int order = 0; order < 2; ++order) {
    multicast_queue own = queue_of_this_thread(), q = default_queue();
    multicast m = multicast_create();
    multicast_outcome out = MULTICAST_OUTCOME_INIT;
    blocker b = BLOCKER_INIT;
    int calls = 0;
    if (order == 0) add_queued(m, counter(&calls), own);
    add_queued(m, blocking(&b), q);
    if (order == 1) add_queued(m, counter(&calls), own);
    CHECK_OK(multicast_queue_start(q));
    pthread_t opener = start_thread(open_after_a_while, &b.let_go);
    CHECK_EQ(multicast_invoke_with(m, &INVOCATION(.flags = MULTICAST_WAIT), &out), 2);
    CHECK(b.has_left); /* the invocation has waited for the other call */
    CHECK_OUTCOME(out, 0, 2, 0, 1, 1);
    join_thread(opener);
    CHECK_EQ(multicast_queue_run(own, 0), 1);
    CHECK_OK(multicast_queue_destroy(q));
  }
}

TEST(wait_of_two_threads_for_queues_that_none_has_run_goes_on) {
  multicast_queue q[2];
  multicast m[2];
  waiter w[2];
  for (int i = 0; i < 2; ++i) {
    q[i] = default_queue();
    m[i] = multicast_create();
    add_queued(m[i], counter(&calls), q[i]);
    begin_waiting(&w[i], m[i], NULL);
    EVENTUALLY(stats_of(q[i]).pending == 1);
  }
  expect_to_be_waiting(&w[0]);
  expect_to_be_waiting(&w[1]);
  for (int i = 0; i < 2; ++i) {
    CHECK_EQ(multicast_queue_run(q[i], 0), 1);
    expect_waited(&w[i], 1, 1, 0);
  }
}

/* ---- Threads that wait for each other -------------------------------------------------------- */

/* Each queue's worker waits for a call in the next queue. The worker of `q[first]` is the first to
 * wait. */
static void wait_in_a_circle(int count, int first) {
  multicast_queue q[3];
  inside i[3];
  uint64_t finished = 0, unfinished = 0;
  int calls = 0;
  for (int k = 0; k < count; ++k) q[k] = default_queue();
  for (int k = 0; k < count; ++k) begin_in_queue(&i[k], q[k], q[(k + 1) % count], &calls);
  for (int k = 0; k < count; ++k) gate_open(&i[(first + k) % count].go_on);
  for (int k = 0; k < count; ++k) {
    gate_wait(&i[k].has_left);
    finished += i[k].out.finished;
    unfinished += i[k].out.unfinished;
  }
  CHECK_EQ(finished, count - 1);
  CHECK_EQ(unfinished, 1);
  EVENTUALLY(LOAD(calls) == count);
  for (int k = 0; k < count; ++k) CHECK_OK(multicast_queue_destroy(q[k]));
}

TEST(wait_of_two_threads_for_the_queue_of_the_other_ends) {
  for (int round = 0; round < 20; ++round) wait_in_a_circle(2, round % 2);
}
TEST(wait_of_three_threads_in_a_circle_ends) { wait_in_a_circle(3, 0); }

TEST(wait_for_call_that_needs_room_of_this_thread_unfinished) {
  multicast_queue narrow_queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK), q = default_queue();
  multicast into_narrow = multicast_create(), m = multicast_create();
  inside i;
  int queued = 0;
  /* Make this thread the consumer of the narrow queue, and fill that queue. */
  add_queued(into_narrow, counter(&calls), narrow_queue);
  CHECK_EQ(multicast_invoke(into_narrow, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(narrow_queue, 0), 1);
  CHECK_EQ(multicast_invoke(into_narrow, 0, NULL, 0), 1);
  /* The call in `q` waits for room in the narrow queue. */
  multicast_delegate d = waiting_for(&i, q, &queued);
  i.inner = into_narrow;
  i.queue.id = 0;
  gate_open(&i.go_on);
  add_queued(m, d, q);
  CHECK_OK(multicast_queue_start(q));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  expect_asleep(&i);
  CHECK_INVOKED(m, &INVOCATION(.flags = MULTICAST_WAIT), 1, 0, 1, 0, 0, 1);
  CHECK_EQ(multicast_queue_clear(q), 1);
  CHECK_EQ(multicast_queue_run(narrow_queue, 1), 1);
  EVENTUALLY(stats_of(narrow_queue).pending == 1);
  CHECK_EQ(multicast_queue_run(narrow_queue, 1), 1);
  expect_outcome(&i, 1, 0);
  CHECK_OK(multicast_queue_destroy(narrow_queue));
  CHECK_OK(multicast_queue_destroy(q));
}

TEST(queue_full_refuses_thread_that_waiting_call_of_it_waits_for) {
  multicast_queue own = queue_of_this_thread();
  multicast_queue full = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  inside i;
  int more = 0;
  sleep_in_queue(&i, full, own, &calls); /* the worker of `full` is waiting for this thread */
  multicast other = multicast_create();
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  multicast_invocation how = MULTICAST_INVOCATION_INIT;
  add_queued(other, counter(&more), full);
  CHECK_EQ(multicast_invoke_with(other, &how, &out), 1);
  CHECK_EQ(multicast_invoke_with(other, &how, &out), 0);
  CHECK_OUTCOME(out, 0, 0, 1, 0, 0);
  CHECK_EQ(multicast_queue_run(own, 0), 1);
  expect_outcome(&i, 1, 0);
  CHECK_OK(multicast_queue_destroy(full));
}

/* ---- Removals -------------------------------------------------------------------------------- */

typedef enum ending { BY_TOKEN, BY_REMOVE, BY_DESTROY, BY_LIFETIME, ENDINGS } ending;

typedef struct scene {
  multicast m;
  multicast_delegate d;
  multicast_lifetime lifetime;
  multicast_token token;
  inside i;
  invoker invoking;
  int calls;
} scene;

/* Starts a call to a delegate on another thread. When `go_on` opens, the call waits for calls in
 * `q`. */
static void begin_scene(scene *s, multicast_queue q) {
  s->calls = 0;
  s->m = multicast_create();
  s->lifetime = multicast_lifetime_create();
  s->d = waiting_for(&s->i, q, &s->calls);
  s->token = add_with(s->m, s->d, &ADD_OPTIONS(.release = release_inside, .lifetime = s->lifetime));
  invoke_in_background(&s->invoking, s->m);
  gate_wait(&s->i.entered);
}

static multicast_status end_scene(scene *s, ending how) {
  switch (how) {
    case BY_TOKEN: return multicast_token_remove(s->token);
    case BY_REMOVE: return multicast_remove(s->m, s->d);
    case BY_DESTROY: return multicast_destroy(s->m);
    default: return multicast_lifetime_end(s->lifetime);
  }
}

static void expect_pending_removals(multicast_queue (*make)(void)) {
  for (int how = 0; how < ENDINGS; ++how) {
    multicast_queue q = make();
    scene s;
    begin_scene(&s, q);
    gate_open(&s.i.go_on);
    expect_asleep(&s.i);
    CHECK_STATUS(end_scene(&s, (ending)how), MULTICAST_PENDING);
    CHECK_EQ(LOAD(s.i.releases), 0);
    CHECK_EQ(multicast_queue_run(q, 0), 1);
    expect_outcome(&s.i, 1, 0);
    CHECK_EQ(invoke_finished(&s.invoking), 1);
    CHECK_EQ(s.i.releases, 1);
  }
}

TEST(removal_of_one_whose_call_waits_for_own_queue_is_pending) {
  expect_pending_removals(queue_of_this_thread);
}
TEST(removal_of_one_whose_call_waits_for_unrun_queue_is_pending) {
  expect_pending_removals(default_queue);
}

/* This thread removes the delegate and waits for its call. Only then does the call begin to wait
 * for the queue. */
static void expect_waits_that_end(multicast_queue (*make)(void)) {
  for (int how = 0; how < ENDINGS; ++how) {
    multicast_queue q = make();
    scene s;
    begin_scene(&s, q);
    pthread_t opener = start_thread(open_after_a_while, &s.i.go_on);
    CHECK_OK(end_scene(&s, (ending)how));
    expect_outcome(&s.i, 0, 1);
    CHECK_EQ(s.i.releases, 1);
    join_thread(opener);
    CHECK_EQ(invoke_finished(&s.invoking), 1);
    CHECK_EQ(multicast_queue_clear(q), 1);
    CHECK_OK(multicast_queue_destroy(q));
  }
}

TEST(wait_for_queue_of_remover_of_the_waiter_is_unfinished) {
  expect_waits_that_end(queue_of_this_thread);
}

/* No thread has run the queue yet, so the library must assume that any thread may have to run it,
 * including this thread, which may be using the library for the first time. */
THREAD(remove_waiting_delegates, void *is_known) {
  if (is_known != NULL) CHECK_EQ(multicast_invoke(multicast_create(), 0, NULL, 0), 0);
  expect_waits_that_end(default_queue);
}

TEST(wait_for_unrun_queue_is_unfinished_if_its_runner_waits) {
  on_another_thread(remove_waiting_delegates, &(int){0});
}
TEST(wait_for_unrun_queue_is_unfinished_if_new_thread_waits) {
  on_another_thread(remove_waiting_delegates, NULL);
}

/* A delegate's release waits for queued calls, and the end of the delegate's lifetime waits for
 * that release. */
static inside in_release;
static multicast_lifetime ended_meanwhile;

static void wait_in_release(void *context) { wait_inside(context, 0, NULL, 0); }

THREAD(end_lifetime, void *is_known) {
  if (is_known != NULL) CHECK_EQ(multicast_invoke(multicast_create(), 0, NULL, 0), 0);
  pthread_t opener = start_thread(open_after_a_while, &in_release.go_on);
  CHECK_OK(multicast_lifetime_end(ended_meanwhile));
  CHECK(gate_opens_within(&in_release.has_left, 0));
  join_thread(opener);
}

static void wait_in_a_release(void *is_known) {
  multicast m = multicast_create();
  multicast_queue q = default_queue();
  multicast_add_options options = ADD_OPTIONS(.release = wait_in_release);
  int calls = 0;
  ended_meanwhile = multicast_lifetime_create();
  options.lifetime = ended_meanwhile;
  multicast_delegate d = waiting_for(&in_release, q, &calls);
  multicast_token token = add_with(m, d, &options);
  pthread_t remover = start_thread(remove_token, &token);
  gate_wait(&in_release.entered);
  on_another_thread(end_lifetime, is_known);
  join_thread(remover);
  expect_outcome(&in_release, 0, 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
}

TEST(wait_in_release_for_unrun_queue_unfinished_as_lifetime_ends) {
  wait_in_a_release(&(int){0});
}
TEST(wait_in_release_for_unrun_queue_unfinished_by_new_thread) {
  wait_in_a_release(NULL);
}

/* Three threads would wait for each other in a cycle. A queue's worker waits for a call in a second
 * queue, which no thread has run yet, so that this thread might have to run it. This thread waits
 * for a delegate's call on a third thread, and that call waits for the worker. */
typedef struct chain {
  scene s;
  multicast into_q;
  inside i; /* the context of the call in the queue */
} chain;

THREAD(close_the_chain, chain *c) {
  pause_ms(A_WHILE_MS); /* let the removal fall asleep */
  CHECK_EQ(multicast_invoke(c->into_q, 0, NULL, 0), 1);
  expect_asleep(&c->i);
  gate_open(&c->s.i.go_on);
}

THREAD(remove_in_a_chain, void *is_known) {
  multicast_queue q = default_queue(), never_run = default_queue();
  int calls = 0;
  chain c;
  if (is_known != NULL) CHECK_EQ(multicast_invoke(multicast_create(), 0, NULL, 0), 0);
  c.into_q = multicast_create();
  add_queued(c.into_q, waiting_for(&c.i, never_run, &calls), q);
  gate_open(&c.i.go_on);
  CHECK_OK(multicast_queue_start(q));
  begin_scene(&c.s, q);
  pthread_t closer = start_thread(close_the_chain, &c);
  CHECK_OK(multicast_token_remove(c.s.token));
  expect_outcome(&c.s.i, 0, 1);
  join_thread(closer);
  CHECK_EQ(invoke_finished(&c.s.invoking), 1);
  CHECK_EQ(multicast_queue_run(never_run, 0), 1);
  expect_outcome(&c.i, 1, 0);
  CHECK_OK(multicast_queue_destroy(q));
}

TEST(wait_for_waiter_of_unrun_queue_is_unfinished_in_a_cycle) {
  on_another_thread(remove_in_a_chain, &(int){0});
}
TEST(wait_for_waiter_of_unrun_queue_unfinished_by_new_thread) {
  on_another_thread(remove_in_a_chain, NULL);
}

/* Once the awaited calls have been made, a removal must no longer regard the thread as waiting for
 * them, even if the thread has not yet woken up. */
TEST(removal_right_after_awaited_calls_were_made_waits) {
  for (int round = 0; round < 100; ++round) {
    multicast_queue q = queue_of_this_thread();
    scene s;
    begin_scene(&s, q);
    gate_open(&s.i.go_on);
    EVENTUALLY(stats_of(q).pending == 1);
    if (round % 4 == 0) pause_ms(1);
    CHECK_EQ(multicast_queue_run(q, 0), 1);
    CHECK_OK(end_scene(&s, (ending)(round % ENDINGS)));
    CHECK_EQ(s.i.releases, 1);
    expect_outcome(&s.i, 1, 0);
    CHECK_EQ(invoke_finished(&s.invoking), 1);
    CHECK_OK(multicast_queue_destroy(q));
  }
}

/* Inside a delegate's call, a thread waits for a queued call, which removes that delegate. */
static scene *to_remove;
static multicast_status removed_with;

static void remove_the_waiting_one(void *context, uint32_t event, const void *payload,
                                   size_t size) {
  pause_ms(A_WHILE_MS); /* after this, the other thread is usually waiting */
  removed_with = multicast_token_remove(to_remove->token);
}

TEST(removal_inside_a_call_that_is_waited_for_does_not_hang) {
  multicast_queue q = default_queue();
  static scene s;
  int unused = 0;
  to_remove = &s;
  removed_with = INT32_MIN;
  s.m = multicast_create();
  s.d = waiting_for(&s.i, q, &unused);
  CHECK_EQ(multicast_remove_all(s.i.inner), 1);
  add_queued(s.i.inner, DELEGATE(remove_the_waiting_one, NULL), q);
  s.token = add(s.m, s.d);
  CHECK_OK(multicast_queue_start(q));
  gate_open(&s.i.go_on);
  CHECK_EQ(multicast_invoke(s.m, 0, NULL, 0), 1);
  CHECK_OK(multicast_queue_destroy(q)); /* the call has returned */
  CHECK(removed_with == MULTICAST_PENDING || removed_with == MULTICAST_OK);
  expect_outcome(&s.i, removed_with == MULTICAST_PENDING, removed_with == MULTICAST_OK);
}

TEST(removal_of_queued_delegate_cancels_what_its_call_waits_for) {
  /* The delegate's call waits for another call to the same delegate. */
  multicast_queue q = default_queue(), other = default_queue();
  multicast m = multicast_create();
  inside i;
  multicast_delegate d = waiting_for(&i, other, &calls);
  CHECK_EQ(multicast_remove_all(i.inner), 1);
  multicast_token token = add_queued(i.inner, d, other);
  add_queued(m, d, q);
  gate_open(&i.go_on);
  CHECK_OK(multicast_queue_start(q));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  EVENTUALLY(stats_of(other).pending == 1);
  expect_asleep(&i);
  CHECK_OK(multicast_token_remove(token));
  gate_wait(&i.has_left);
  CHECK_OUTCOME(i.out, 0, 1, 0, 0, 0);
  CHECK_OK(multicast_queue_destroy(q));
}

/* A thread that runs a queue once and then stays alive. */
typedef struct idle {
  multicast_queue queue;
  gate has_run, end;
  pthread_t thread;
} idle;

THREAD(run_and_idle, idle *l) {
  CHECK_EQ(multicast_queue_run(l->queue, 0), 1);
  gate_open(&l->has_run);
  gate_wait(&l->end);
}

TEST_OF_MULTICAST(removal_cancels_queued_calls_before_it_waits) {
  multicast_queue q = default_queue(), other = default_queue();
  idle l = {{0}, GATE_INIT, GATE_INIT, 0};
  inside i;
  int unused = 0;
  multicast_delegate d = waiting_for(&i, other, &unused);
  /* Make another thread the consumer of `other`. That thread will make no more calls. */
  CHECK_EQ(multicast_invoke(i.inner, 0, NULL, 0), 1);
  l.queue = other;
  l.thread = start_thread(run_and_idle, &l);
  gate_wait(&l.has_run);
  /* Both delegates are in `m`. The first delegate's call invokes `m` again, which queues a call to
   * the second delegate. */
  i.inner = m;
  multicast_add_options options = ADD_OPTIONS(.queue = q, .events = 2);
  multicast_token first = add_with(m, d, &options);
  options.queue = other;
  options.events = 1;
  add_with(m, counter(&calls), &options);
  CHECK_OK(multicast_queue_start(q));
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  gate_open(&i.go_on);
  EVENTUALLY(stats_of(other).pending == 1);
  expect_asleep(&i);
  CHECK_EQ(multicast_remove_all(m), 2);
  CHECK(gate_opens_within(&i.has_left, 0)); /* the removal has waited for the call */
  CHECK_OUTCOME(i.out, 0, 1, 0, 0, 0);
  CHECK(!multicast_token_is_valid(first));
  CHECK_EQ(calls, 0);
  gate_open(&l.end);
  join_thread(l.thread);
  CHECK_OK(multicast_queue_destroy(q));
}

/* After waiting, wait_and_let_go() lets this blocked call return. */
static blocker *let_go_after;

static void wait_and_let_go(void *context, uint32_t event, const void *payload, size_t size) {
  wait_inside(context, event, payload, size);
  gate_open(&let_go_after->let_go);
}

TEST(queue_destroy_cancels_calls_before_it_waits_for_one) {
  multicast_queue q = default_queue();
  multicast m = multicast_create(), outer = multicast_create();
  blocker b = BLOCKER_INIT;
  invoker invoking;
  inside i;
  multicast_delegate d = waiting_for(&i, q, &calls);
  d.function = wait_and_let_go;
  let_go_after = &b;
  add_queued(m, blocking(&b), q);
  CHECK_OK(multicast_queue_start(q));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  gate_wait(&b.entered);
  add(outer, d);
  gate_open(&i.go_on);
  invoke_in_background(&invoking, outer);
  EVENTUALLY(stats_of(q).pending == 1);
  expect_asleep(&i);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK(b.has_left);
  expect_outcome(&i, 0, 0);
  CHECK_EQ(invoke_finished(&invoking), 1);
}

/* A queue has been destroyed while one of its calls was running. One thread is inside a delegate's
 * call and waits for the queue's running call, which removes that delegate. */
typedef struct doomed_scene {
  multicast_queue q;
  multicast outer;
  multicast_token token;
  gate entered, go_on;
  runner run;
  multicast_status status;
  multicast_outcome out;
} doomed_scene;
static doomed_scene ds;

static void remove_outer(void *context, uint32_t event, const void *payload, size_t size) {
  gate_open(&ds.entered);
  gate_wait(&ds.go_on);
  ds.status = multicast_token_remove(ds.token);
}

static void run_and_destroy(void *context, uint32_t event, const void *payload, size_t size) {
  run_in_background(&ds.run, ds.q, 0);
  gate_wait(&ds.entered);
  CHECK_ERROR(multicast_queue_destroy_within(ds.q, 0), TIMEOUT);
}

static void wait_for_doomed(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_invocation how = waiting();
  ds.out = multicast_outcome_default();
  CHECK_EQ(multicast_invoke_with(*(multicast *)context, &how, &ds.out), 2);
}

TEST_OF_MULTICAST(removal_in_call_of_destroyed_queue_that_is_waited_for_ends) {
  multicast_delegate in_queue = {remove_outer, NULL}, direct = {run_and_destroy, NULL};
  invoker invoking;
  multicast_delegate waits = {wait_for_doomed, &m};
  ds.q = default_queue();
  ds.outer = multicast_create();
  ds.entered = shut;
  ds.go_on = shut;
  add_queued(m, in_queue, ds.q);
  add(m, direct);
  ds.token = add(ds.outer, waits);
  invoke_in_background(&invoking, ds.outer);
  gate_wait(&ds.entered);
  EVENTUALLY(!multicast_queue_is_valid(ds.q));
  pause_ms(A_WHILE_MS); /* let the other thread begin to wait */
  gate_open(&ds.go_on);
  CHECK_EQ(invoke_finished(&invoking), 1);
  CHECK_EQ(run_finished(&ds.run), 1);
  CHECK(ds.status == MULTICAST_PENDING || ds.status == MULTICAST_OK);
  CHECK_EQ(ds.out.finished, ds.status == MULTICAST_PENDING);
  CHECK_EQ(ds.out.unfinished, ds.status == MULTICAST_OK);
}

/* ---- Queues that stop and end ---------------------------------------------------------------- */

TEST(queue_stop_of_thread_whose_call_waits_for_stopper_is_pending) {
  multicast_queue own = queue_of_this_thread(), q = default_queue();
  inside i;
  sleep_in_queue(&i, q, own, &calls);
  CHECK_STATUS(multicast_queue_stop(q), MULTICAST_PENDING);
  CHECK_EQ(multicast_queue_run(own, 0), 1);
  expect_outcome(&i, 1, 0);
  CHECK_OK(multicast_queue_destroy(q));
}

TEST(wait_of_call_for_thread_that_stops_its_queue_is_unfinished) {
  multicast_queue own = queue_of_this_thread(), q = default_queue();
  inside i;
  begin_in_queue(&i, q, own, &calls);
  pthread_t opener = start_thread(open_after_a_while, &i.go_on);
  CHECK_OK(multicast_queue_stop(q));
  expect_outcome(&i, 0, 1);
  join_thread(opener);
  CHECK_OK(multicast_queue_destroy(q));
}

TEST(queue_destroy_is_pending_if_its_call_waits_for_destroyer) {
  multicast_queue own = queue_of_this_thread(), q = default_queue();
  inside i;
  sleep_in_queue(&i, q, own, &calls);
  CHECK_STATUS(multicast_queue_destroy(q), MULTICAST_PENDING);
  CHECK_EQ(multicast_queue_run(own, 0), 1);
  expect_outcome(&i, 1, 0);
}

TEST(queue_destroy_of_queue_that_call_waits_for_lets_it_go_on) {
  multicast_queue own = queue_of_this_thread(), q = default_queue();
  inside i;
  sleep_in_queue(&i, q, own, &calls);
  CHECK_OK(multicast_queue_destroy(own));
  expect_outcome(&i, 0, 0);
  CHECK_OK(multicast_queue_destroy(q));
}

/* A queue is destroyed while one of its calls is running, and a new queue reuses the slot. A thread
 * waiting for this call must not be mistaken for a thread waiting for the new queue's consumer. */
TEST(wait_for_destroyed_queue_is_not_for_next_queue_in_slot) {
  multicast_queue q = default_queue(), next;
  blocker b = BLOCKER_INIT;
  runner run;
  invoker invoking;
  multicast m = multicast_create(), other = multicast_create();
  inside i;
  int unused = 0;
  multicast_delegate d = waiting_for(&i, q, &unused);
  CHECK_EQ(multicast_remove_all(i.inner), 1);
  add_queued(i.inner, blocking(&b), q);
  gate_open(&i.go_on);
  multicast_token token = add_with(m, d, &ADD_OPTIONS(.release = release_inside));
  invoke_in_background(&invoking, m);
  expect_asleep(&i);
  run_in_background(&run, q, 0);
  gate_wait(&b.entered);
  CHECK_ERROR(multicast_queue_destroy_within(q, 0), TIMEOUT);
  next = default_queue();
  CHECK(((next.id ^ q.id) & 0x3FFFFFF) == 0); /* the new queue reuses the slot */
  add_queued(other, counter(&calls), next);
  CHECK_EQ(multicast_invoke(other, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(next, 0), 1); /* makes this thread the consumer of the new queue */
  pthread_t opener = start_thread(open_after_a_while, &b.let_go);
  CHECK_OK(multicast_token_remove(token)); /* OK, because no thread is waiting for this thread */
  CHECK_EQ(i.releases, 1);
  join_thread(opener);
  CHECK_EQ(invoke_finished(&invoking), 1);
  CHECK_EQ(run_finished(&run), 1);
  expect_outcome(&i, 1, 0);
}
