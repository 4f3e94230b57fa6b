/* A removal waits for a call, and the call waits for room in a full queue that the removing thread
 * would have to run. Either the removal or the call must give up waiting. */

#include "threads.h"

/* ---- The end of a lifetime ------------------------------------------------------------------- */

typedef struct cycle {
  multicast target; /* its delegate has a queue, which is full */
  gate entered, go_on, has_left;
  int64_t queued;
  int releases;
} cycle;

FUNCTION(invoke_into_the_full_queue, cycle *c) {
  gate_open(&c->entered);
  gate_wait(&c->go_on);
  c->queued = multicast_invoke(c->target, 0, NULL, 0);
  gate_open(&c->has_left);
}

static void release_cycle(void *context) { ADD(((cycle *)context)->releases, 1); }

/* Prepares a cycle. A delegate of the lifetime has been removed, but its call is still running.
 * When `go_on` opens, the call waits for room in a queue that this thread has to run. */
static multicast_lifetime begin_cycle(cycle *c, invoker *i, multicast_queue queue, int *calls) {
  multicast_lifetime lifetime = multicast_lifetime_create();
  multicast_add_options options = ADD_OPTIONS(.queue = queue);
  multicast m = multicast_create();
  c->target = multicast_create();
  add_with(c->target, counter(calls), &options);
  CHECK_EQ(multicast_invoke(c->target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(queue, 0), 1); /* makes this thread the queue's consumer */
  CHECK_EQ(multicast_invoke(c->target, 0, NULL, 0), 1); /* fills the queue */

  options = ADD_OPTIONS(.release = release_cycle);
  options.lifetime = lifetime;
  multicast_token token = add_with(m, DELEGATE(invoke_into_the_full_queue, c), &options);
  invoke_in_background(i, m);
  gate_wait(&c->entered);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  return lifetime;
}

TEST(queue_full_refuses_thread_that_end_of_lifetime_waits_for) {
  static cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  invoker i;
  multicast_queue queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast_lifetime lifetime = begin_cycle(&c, &i, queue, &calls);
  pthread_t opener = start_thread(open_after_a_while, &c.go_on);
  CHECK_OK(multicast_lifetime_end(lifetime));
  CHECK_EQ(c.releases, 1);
  CHECK_EQ(c.queued, 0);
  join_thread(opener);
  CHECK_EQ(invoke_finished(&i), 1);
}

TEST(lifetime_end_is_pending_where_the_caller_has_to_make_room) {
  static cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  invoker i;
  multicast_queue queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast_lifetime lifetime = begin_cycle(&c, &i, queue, &calls);
  gate_open(&c.go_on);
  CHECK(!gate_opens_within(&c.has_left, A_WHILE_MS)); /* the call is waiting for room */
  CHECK_STATUS(multicast_lifetime_end(lifetime), MULTICAST_PENDING);
  CHECK_EQ(multicast_queue_run(queue, 1), 1);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(c.queued, 1);
  CHECK_EQ(c.releases, 1);
}

/* ---- A thread that first runs a queue inside a release --------------------------------------- */

typedef struct late_runner {
  cycle c;
  multicast_queue queue;
  /* Whether the call begins to wait for room while `release` is still running, rather than after
   * `release` has returned. */
  bool fills;
  pthread_t opener;
  int calls;
} late_runner;

#define LATE_RUNNER_INIT(FILLS)                                                \
  {{{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0}, {0}, FILLS, 0, 0}

THREAD(fill, multicast *target) {
  CHECK_EQ(multicast_invoke(*target, 0, NULL, 0), 1);
}

static void run_in_release(void *context) {
  late_runner *l = context;
  CHECK_EQ(multicast_queue_run(l->queue, 1), 1);
  on_another_thread(fill, &l->c.target);
  if (l->fills) {
    gate_open(&l->c.go_on);
    CHECK(!gate_opens_within(&l->c.has_left, A_WHILE_MS)); /* the call is waiting for room */
  } else {
    l->opener = start_thread(open_after_a_while, &l->c.go_on);
  }
}

/* Must be called on a thread that has not yet used the library. */
static multicast begin_late(late_runner *l, invoker *i, multicast_lifetime lifetime) {
  multicast m = multicast_create();
  multicast_delegate running = {invoke_into_the_full_queue, &l->c}, other = {count_call, l};
  l->queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast_add_options options = ADD_OPTIONS(.queue = l->queue);
  l->c.target = multicast_create();
  add_with(l->c.target, counter(&l->calls), &options);
  on_another_thread(fill, &l->c.target);

  options = ADD_OPTIONS(.release = NULL);
  options.lifetime = lifetime;
  add_with(m, running, &options);
  options.release = run_in_release;
  options.events = UINT64_C(1) << 5; /* this delegate is never called */
  add_with(m, other, &options);
  invoke_in_background(i, m);
  gate_wait(&l->c.entered);
  return m;
}

static void end_late(late_runner *l, invoker *i) {
  if (l->fills) {
    CHECK(!gate_opens_within(&l->c.has_left, 0));
    CHECK_EQ(multicast_queue_run(l->queue, 1), 1);
  } else {
    join_thread(l->opener);
  }
  CHECK_EQ(invoke_finished(i), 1);
  CHECK_EQ(l->c.queued, l->fills ? 1 : 0);
}

TEST(remove_all_waits_for_no_call_that_waits_for_its_release) {
  static late_runner l = LATE_RUNNER_INIT(true);
  invoker i;
  multicast m = begin_late(&l, &i, (multicast_lifetime){0});
  CHECK_EQ(multicast_remove_all(m), 2);
  end_late(&l, &i);
}

TEST(remove_all_has_a_call_refused_that_waits_for_its_release) {
  static late_runner l = LATE_RUNNER_INIT(false);
  invoker i;
  multicast m = begin_late(&l, &i, (multicast_lifetime){0});
  CHECK_EQ(multicast_remove_all(m), 2);
  end_late(&l, &i);
}

TEST(lifetime_end_is_pending_where_a_call_waits_for_its_release) {
  static late_runner l = LATE_RUNNER_INIT(true);
  invoker i;
  multicast_lifetime lifetime = multicast_lifetime_create();
  begin_late(&l, &i, lifetime);
  CHECK_STATUS(multicast_lifetime_end(lifetime), MULTICAST_PENDING);
  end_late(&l, &i);
}

TEST(lifetime_end_has_calls_refused_that_wait_for_its_release) {
  static late_runner l = LATE_RUNNER_INIT(false);
  invoker i;
  multicast_lifetime lifetime = multicast_lifetime_create();
  begin_late(&l, &i, lifetime);
  CHECK_OK(multicast_lifetime_end(lifetime));
  end_late(&l, &i);
}

/* ---- Removal of calls that wait for room ----------------------------------------------------- */

typedef struct producer {
  multicast target;
  gate go_on, has_queued;
  int64_t queued;
  blocker *other; /* the queue's consumer is waiting for a call to this delegate */
} producer;

THREAD(produce, producer *p) {
  gate_wait(&p->go_on);
  p->queued = multicast_invoke(p->target, 0, NULL, 0);
  gate_open(&p->has_queued);
}

THREAD(release_both, producer *p) {
  pause_ms(A_WHILE_MS);
  gate_open(&p->go_on);
  CHECK(!gate_opens_within(&p->has_queued, A_WHILE_MS));
  gate_open(&p->other->let_go);
}

TEST(queue_full_refuses_nobody_while_its_thread_waits_elsewhere) {
  static blocker b = BLOCKER_INIT;
  static producer p = {{0}, GATE_INIT, GATE_INIT, -1, &b};
  multicast_queue queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast_queue_stats stats = multicast_queue_stats_default();
  multicast_add_options options = ADD_OPTIONS(.queue = queue);
  multicast other = multicast_create();
  multicast_lifetime lifetime = multicast_lifetime_create();
  pthread_t threads[2];
  p.target = multicast_create();
  add_with(p.target, counter(&calls), &options);
  CHECK_EQ(multicast_invoke(p.target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(queue, 0), 1); /* makes this thread the queue's consumer */
  CHECK_EQ(multicast_invoke(p.target, 0, NULL, 0), 1);

  options = multicast_add_options_default();
  options.lifetime = lifetime;
  multicast_token token = add_with(other, blocking(&b), &options);
  begin_blocked(&b, other);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  threads[0] = start_thread(produce, &p);
  threads[1] = start_thread(release_both, &p);
  /* The result is MULTICAST_PENDING if the other thread has not yet completed the removal and might
   * be waiting for this thread. Whatever the result, the call must have ended. */
  CHECK(multicast_lifetime_end(lifetime) >= MULTICAST_OK);
  CHECK(LOAD(b.has_left));
  CHECK_EQ(multicast_queue_run(queue, 1), 1);
  join_thread(threads[0]);
  join_thread(threads[1]);
  CHECK_EQ(invoke_finished(&b.invoking), 1);
  CHECK_EQ(p.queued, 1);
  CHECK_OK(multicast_queue_get_stats(queue, &stats));
  CHECK_EQ(stats.refused, 0);
}

static void remove_what_waits_for_room(cycle *c, multicast_queue queue) {
  int calls = 0;
  invoker i;
  multicast m = multicast_create();
  multicast_delegate d = {invoke_into_the_full_queue, c};
  add_with(c->target, counter(&calls), &ADD_OPTIONS(.queue = queue));
  on_another_thread(fill, &c->target);
  add(m, d);
  invoke_in_background(&i, m);
  gate_open(&c->go_on);
  gate_wait(&c->entered);
  CHECK(!gate_opens_within(&c->has_left, A_WHILE_MS)); /* the call is waiting for room */
  CHECK_STATUS(multicast_remove(m, d), MULTICAST_PENDING);
  CHECK_EQ(multicast_queue_run(queue, 1), 1);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(c->queued, 1);
}

/* A delegate's call waits for room in a queue whose consumer is this thread. This thread makes
 * room, which wakes the call. If `takes_room` is set, this thread also fills the queue again.
 * Finally it removes the delegate, and returns the status of the removal. */
static multicast_status remove_what_was_woken(bool takes_room) {
  cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  int calls = 0;
  invoker i;
  multicast m = multicast_create();
  multicast_queue queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast_delegate d = {invoke_into_the_full_queue, &c};
  c.target = multicast_create();
  add_with(c.target, counter(&calls), &ADD_OPTIONS(.queue = queue));
  CHECK_EQ(multicast_invoke(c.target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(queue, 0), 1); /* makes this thread the queue's consumer */
  CHECK_EQ(multicast_invoke(c.target, 0, NULL, 0), 1);
  add(m, d);
  invoke_in_background(&i, m);
  gate_open(&c.go_on);
  gate_wait(&c.entered);
  CHECK(!gate_opens_within(&c.has_left, A_WHILE_MS / 4)); /* the call is waiting for room */
  CHECK_EQ(multicast_queue_run(queue, 1), 1);
  if (takes_room) multicast_invoke(c.target, 0, NULL, 0);
  multicast_status status = multicast_remove(m, d);
  if (status == MULTICAST_OK) CHECK(gate_opens_within(&c.has_left, 0));
  CHECK(multicast_queue_run(queue, 0) >= 0);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_OK(multicast_destroy(m));
  CHECK_OK(multicast_destroy(c.target));
  CHECK_OK(multicast_queue_destroy(queue));
  return status;
}

TEST(removal_waits_for_a_call_that_this_thread_has_made_room_for) {
  for (int i = 0; i < 30; ++i) CHECK_OK(remove_what_was_woken(false));
}

/* If the call is already waiting for room again, the removal returns MULTICAST_PENDING; otherwise,
 * the queue refuses the call, and the removal returns MULTICAST_OK. */
TEST(removal_ends_where_its_call_was_woken_and_finds_no_room) {
  for (int i = 0; i < 30; ++i) {
    multicast_status status = remove_what_was_woken(true);
    CHECK(status == MULTICAST_OK || status == MULTICAST_PENDING);
  }
}

TEST(removal_is_pending_where_its_call_needs_an_unrun_queue) {
  static cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  c.target = multicast_create();
  remove_what_waits_for_room(&c, queue_with(1, MULTICAST_OVERFLOW_BLOCK));
}

/* No thread has run the queue yet, so the library must assume that any thread may have to run it,
 * including this thread, which may be using the library for the first time. */
THREAD(remove_what_will_wait_for_room, void *is_known) {
  static cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  int calls = 0;
  invoker i;
  multicast m = multicast_create();
  multicast_queue queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  if (is_known != NULL) CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  multicast_delegate d = {invoke_into_the_full_queue, &c};
  c.target = multicast_create();
  add_with(c.target, counter(&calls), &ADD_OPTIONS(.queue = queue));
  on_another_thread(fill, &c.target);
  add(m, d);
  invoke_in_background(&i, m);
  gate_wait(&c.entered);
  pthread_t opener = start_thread(open_after_a_while, &c.go_on);
  CHECK_OK(multicast_remove(m, d));
  CHECK_EQ(c.queued, 0);
  join_thread(opener);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(stats_of(queue).refused, 1);
}

TEST(queue_full_and_never_run_refuses_call_a_thread_removes) {
  on_another_thread(remove_what_will_wait_for_room, &(int){0});
}
TEST(queue_full_and_never_run_refuses_call_new_thread_removes) {
  on_another_thread(remove_what_will_wait_for_room, NULL);
}

typedef struct idler {
  multicast target;
  gate entered, may_end;
} idler;

THREAD(invoke_and_idle, idler *i) {
  CHECK_EQ(multicast_invoke(i->target, 0, NULL, 0), 0);
  gate_open(&i->entered);
  gate_wait(&i->may_end);
}

TEST(removal_is_pending_where_its_call_needs_an_ended_worker) {
  static cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  static blocker b = BLOCKER_INIT;
  static idler idle = {{0}, GATE_INIT, GATE_INIT};
  multicast_queue queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  c.target = multicast_create();
  multicast_token token = add_with(c.target, blocking(&b), &ADD_OPTIONS(.queue = queue));
  CHECK_OK(multicast_queue_start(queue));
  gate_open(&b.let_go);
  CHECK_EQ(multicast_invoke(c.target, 0, NULL, 0), 1);
  gate_wait(&b.entered);
  CHECK_OK(multicast_queue_stop(queue));
  pause_ms(A_WHILE_MS); /* the worker ends, and another thread reuses its record */
  CHECK_OK(multicast_token_remove(token));
  idle.target = c.target;
  pthread_t thread = start_thread(invoke_and_idle, &idle);
  gate_wait(&idle.entered);
  remove_what_waits_for_room(&c, queue);
  gate_open(&idle.may_end);
  join_thread(thread);
}

static gate destructor_begins = GATE_INIT, destructor_ends = GATE_INIT;

static void stay_in_destructor(void *key) {
  gate_open(&destructor_begins);
  gate_wait(&destructor_ends);
}

static void ask_for_destructor(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_EQ(pthread_setspecific(*(pthread_key_t *)context, context), 0);
}

/* The worker makes no more calls but has not yet ended, because it is in a destructor of the test.
 * The test's destructor runs before the library's destructor, because the test's key was created
 * first. */
TEST(removal_is_pending_where_its_call_needs_a_stopped_worker) {
  static cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  pthread_key_t key;
  CHECK_EQ(pthread_key_create(&key, stay_in_destructor), 0);
  multicast_delegate d = {ask_for_destructor, &key};
  multicast_queue queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  c.target = multicast_create();
  multicast_token token = add_with(c.target, d, &ADD_OPTIONS(.queue = queue));
  CHECK_OK(multicast_queue_start(queue));
  CHECK_EQ(multicast_invoke(c.target, 0, NULL, 0), 1);
  EVENTUALLY(stats_of(queue).delivered == 1);
  CHECK_OK(multicast_queue_stop(queue));
  gate_wait(&destructor_begins);
  CHECK_OK(multicast_token_remove(token));
  remove_what_waits_for_room(&c, queue);
  gate_open(&destructor_ends);
}

/* ---- A release that waits for room ----------------------------------------------------------- */

typedef struct releaser {
  multicast target; /* its delegate has a queue, which is full */
  multicast_token token;
  gate entered, go_on;
  int64_t queued;
} releaser;

static void invoke_in_release(void *context) {
  releaser *r = context;
  gate_open(&r->entered);
  gate_wait(&r->go_on);
  r->queued = multicast_invoke(r->target, 0, NULL, 0);
}

THREAD(remove_and_release, releaser *argument) {
  CHECK_OK(multicast_token_remove(argument->token));
}

TEST(queue_full_refuses_release_that_end_of_lifetime_waits_for) {
  static releaser r = {{0}, {0}, GATE_INIT, GATE_INIT, -1};
  multicast_queue queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast_lifetime lifetime = multicast_lifetime_create();
  r.target = multicast_create();
  add_queued(r.target, counter(&calls), queue);
  CHECK_EQ(multicast_invoke(r.target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(queue, 0), 1); /* makes this thread the queue's consumer */
  CHECK_EQ(multicast_invoke(r.target, 0, NULL, 0), 1); /* fills the queue */
  multicast_add_options options = ADD_OPTIONS(.release = invoke_in_release, .lifetime = lifetime);
  r.token = add_with(multicast_create(), DELEGATE(count_call, &r), &options);
  pthread_t remover = start_thread(remove_and_release, &r);
  gate_wait(&r.entered);
  pthread_t opener = start_thread(open_after_a_while, &r.go_on);
  CHECK_OK(multicast_lifetime_end(lifetime));
  CHECK_EQ(r.queued, 0);
  join_thread(opener);
  join_thread(remover);
}

/* ---- A worker that waits for room ------------------------------------------------------------ */

TEST_OF_MULTICAST(queue_stop_is_pending_where_worker_needs_an_unrun_queue) {
  static cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  multicast_queue full = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast_queue working = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  c.target = multicast_create();
  add_queued(c.target, counter(&calls), full);
  CHECK_EQ(multicast_invoke(c.target, 0, NULL, 0), 1);
  add_queued(m, DELEGATE(invoke_into_the_full_queue, &c), working);
  gate_open(&c.go_on);
  CHECK_OK(multicast_queue_start(working));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  gate_wait(&c.entered);
  CHECK(!gate_opens_within(&c.has_left, A_WHILE_MS));
  CHECK_STATUS(multicast_queue_stop(working), MULTICAST_PENDING);
  CHECK_EQ(multicast_queue_run(full, 1), 1);
  gate_wait(&c.has_left);
  CHECK_EQ(c.queued, 1);
  CHECK_OK(multicast_queue_destroy(working));
}

/* ---- A release that waits for room in a queue that no thread has run yet --------------------- */

typedef struct full_queue {
  multicast target, full;
  gate entered;
} full_queue;

static void invoke_into_it(void *context) {
  full_queue *f = context;
  gate_open(&f->entered);
  (void)multicast_invoke(f->full, 0, NULL, 0);
}

THREAD(remove_its_member, full_queue *f) {
  CHECK_EQ(multicast_remove_all(f->target), 1);
}

TEST(lifetime_end_waits_for_no_release_that_needs_an_unrun_queue) {
  static full_queue f = {{0}, {0}, GATE_INIT};
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast_add_options options = ADD_OPTIONS(.lifetime = multicast_lifetime_create());
  f.target = multicast_create();
  f.full = multicast_create();
  add_with(f.full, counter(&calls), &ADD_OPTIONS(.queue = q));
  CHECK_EQ(multicast_invoke(f.full, 0, NULL, 0), 1);
  options.release = invoke_into_it;
  add_with(f.target, DELEGATE(count_call, &f), &options);
  pthread_t remover = start_thread(remove_its_member, &f);
  gate_wait(&f.entered);
  pause_ms(50);
  /* If the release is already waiting for room, this thread might have to run the queue, so
   * multicast_lifetime_end() returns MULTICAST_PENDING; otherwise, the queue refuses the call. */
  multicast_status status = multicast_lifetime_end(options.lifetime);
  CHECK(status == MULTICAST_PENDING || status == MULTICAST_OK);
  CHECK_EQ(multicast_queue_run(q, 1), 1);
  join_thread(remover);
  CHECK_EQ(multicast_queue_run(q, 0), status == MULTICAST_PENDING ? 1 : 0);
}

#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
typedef struct orphan {
  cycle c;
  multicast_queue queue;
  gate has_run, may_end;
} orphan;

THREAD(run_and_stay, orphan *o) {
  CHECK_EQ(multicast_queue_run(o->queue, 0), 0);
  gate_open(&o->has_run);
  gate_wait(&o->may_end);
}

static void remove_what_waits_there(void *argument) {
  orphan *o = argument;
  remove_what_waits_for_room(&o->c, o->queue);
}

TEST(removal_in_the_child_is_pending_if_call_needs_the_parent) {
  static orphan o = {
      {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0}, {0}, GATE_INIT, GATE_INIT};
  static idler idle[2] = {{{0}, GATE_INIT, GATE_INIT}, {{0}, GATE_INIT, GATE_INIT}};
  pthread_t runner, idlers[2];
  o.c.target = multicast_create();
  o.queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  runner = start_thread(run_and_stay, &o);
  gate_wait(&o.has_run);
  for (int i = 0; i < 2; ++i) { /* threads of the child will reuse the records of these threads */
    idle[i].target = o.c.target;
    idlers[i] = start_thread(invoke_and_idle, &idle[i]);
    gate_wait(&idle[i].entered);
  }
  in_child(remove_what_waits_there, &o);
  gate_open(&o.may_end);
  join_thread(runner);
  for (int i = 0; i < 2; ++i) {
    gate_open(&idle[i].may_end);
    join_thread(idlers[i]);
  }
}
#endif
