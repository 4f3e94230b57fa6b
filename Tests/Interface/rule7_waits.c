/* Rule 7 meets rule 4: who waits for whom where queues are full, end, or begin anew. */

#include "harness.h"

#include <sched.h>
#include <unistd.h>

/* ---- The next queue in a slot ---------------------------------------------------------------- */

typedef struct successor {
  multicast_queue old, new;
  multicast target;
  int calls;
  blocker *other; /* runs in the new queue meanwhile, if there is one */
  pthread_t runner;
} successor;

static void *run_the_new(void *argument) {
  successor *s = argument;
  CHECK_EQ(multicast_queue_run(s->new, 1), 1);
  return NULL;
}

static void destroy_and_create(void *context, uint32_t event, const void *payload, size_t size) {
  successor *s = context;
  multicast_options options;
  multicast_queue taken[64];
  int count = 0;
  (void)event, (void)payload, (void)size;
  ++s->calls;
  CHECK_STATUS(multicast_queue_destroy(s->old), MULTICAST_PENDING);
  /* Until it is the one that has the old one's slot: the low bits are its index. */
  do {
    s->new = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
    if (((s->new.id ^ s->old.id) & 0x3FFFFFF) == 0) break;
    taken[count++] = s->new;
  } while (count < 64);
  CHECK(count < 64);
  while (count > 0) CHECK_OK(multicast_queue_destroy(taken[--count]));
  options = to_queue(s->new);
  if (s->other != NULL) {
    add_with(s->target, blocking(s->other), &options);
    CHECK_EQ(multicast_invoke(s->target, 0, NULL, 0), 1);
    s->runner = start_thread(run_the_new, s);
    gate_wait(&s->other->entered);
  } else {
    add_with(s->target, counter(&s->calls), &options);
    CHECK_EQ(multicast_invoke(s->target, 0, NULL, 0), 1);
  }
}

TEST(queue_run_makes_no_call_of_the_next_queue_in_its_slot) {
  successor s = {{0}, {0}, {0}, 0, NULL, 0};
  multicast m = multicast_create();
  multicast_delegate d = {destroy_and_create, &s};
  multicast_options options;
  s.old = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  s.target = multicast_create();
  options = to_queue(s.old);
  add_with(m, d, &options);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(s.old, 100), 1);
  CHECK_EQ(s.calls, 1);
  CHECK_EQ(stats_of(s.new).pending, 1);
  CHECK_EQ(multicast_queue_run(s.new, 0), 1);
  CHECK_EQ(s.calls, 2);
}

TEST(queue_run_that_ends_late_leaves_the_next_queue_in_its_slot_to_its_runner) {
  static blocker b = BLOCKER_INIT;
  successor s = {{0}, {0}, {0}, 0, &b, 0};
  multicast m = multicast_create();
  multicast_delegate d = {destroy_and_create, &s};
  multicast_options options;
  s.old = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  s.target = multicast_create();
  options = to_queue(s.old);
  add_with(m, d, &options);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(s.old, 100), 1);
  CHECK_STATUS(multicast_queue_run(s.new, 1), MULTICAST_ERROR_STATE);
  gate_open(&b.let_go);
  join_thread(s.runner);
}

/* ---- What is not waited for ------------------------------------------------------------------ */

static void *run_one(void *argument) {
  multicast_queue_run(*(multicast_queue *)argument, 1);
  return NULL;
}

TEST(queue_call_that_was_removed_is_not_waited_for_by_the_removal_of_others) {
  static blocker b = BLOCKER_INIT;
  int calls = 0;
  multicast m = multicast_create();
  multicast_queue queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  multicast_options options = to_queue(queue);
  multicast_token token = add_with(m, blocking(&b), &options);
  pthread_t runner;
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  runner = start_thread(run_one, &queue);
  gate_wait(&b.entered);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  CHECK_STATUS(multicast_remove(m, counter(&calls)), MULTICAST_ERROR_NOT_FOUND);
  CHECK_EQ(multicast_remove_context(m, &calls), 0);
  gate_open(&b.let_go);
  join_thread(runner);
}

/* ---- Ends of lifetimes, and threads that wait for room --------------------------------------- */

typedef struct cycle {
  multicast target; /* its delegate's calls wait in a queue that is full */
  gate entered, go_on, has_left;
  int64_t queued;
  int releases;
} cycle;

static void invoke_into_the_full_queue(void *context, uint32_t event, const void *payload,
                                       size_t size) {
  cycle *c = context;
  (void)event, (void)payload, (void)size;
  gate_open(&c->entered);
  gate_wait(&c->go_on);
  c->queued = multicast_invoke(c->target, 0, NULL, 0);
  gate_open(&c->has_left);
}

static void release_cycle(void *context) { ADD(((cycle *)context)->releases, 1); }

static void *open_after_a_while(void *argument) {
  pause_ms(A_WHILE_MS);
  gate_open(argument);
  return NULL;
}

/* A delegate of a lifetime that is removed, but runs still, and is about to wait for room in a
 * queue that this thread runs. */
static multicast_lifetime begin_cycle(cycle *c, invoker *i, multicast_queue queue, int *calls) {
  multicast_lifetime lifetime = multicast_lifetime_create();
  multicast_options options = to_queue(queue);
  multicast m = multicast_create();
  multicast_delegate d = {invoke_into_the_full_queue, c};
  multicast_token token;
  c->target = multicast_create();
  add_with(c->target, counter(calls), &options);
  CHECK_EQ(multicast_invoke(c->target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(queue, 0), 1); /* it is for this thread to run */
  CHECK_EQ(multicast_invoke(c->target, 0, NULL, 0), 1); /* it is full */

  options = with_release(release_cycle);
  options.lifetime = lifetime;
  token = add_with(m, d, &options);
  invoke_in_background(i, m);
  gate_wait(&c->entered);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  return lifetime;
}

TEST(queue_that_is_full_refuses_a_thread_that_the_end_of_a_lifetime_waits_for) {
  static cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  int calls = 0;
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

TEST(lifetime_end_is_pending_where_a_thread_waits_for_room_that_the_caller_has_to_make) {
  static cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  int calls = 0;
  invoker i;
  multicast_queue queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast_lifetime lifetime = begin_cycle(&c, &i, queue, &calls);
  gate_open(&c.go_on);
  CHECK(!gate_opens_within(&c.has_left, A_WHILE_MS)); /* it waits for room */
  CHECK_STATUS(multicast_lifetime_end(lifetime), MULTICAST_PENDING);
  CHECK_EQ(multicast_queue_run(queue, 1), 1);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(c.queued, 1);
  CHECK_EQ(c.releases, 1);
}

/* ---- Queues that end while others come ------------------------------------------------------- */

static multicast_queue passing;
static bool is_over;

static void *create_and_destroy(void *unused) {
  int i;
  (void)unused;
  for (i = 0; i < 3000; ++i) {
    multicast_queue queue = queue_with(2, MULTICAST_OVERFLOW_REFUSE);
    STORE(passing.id, queue.id);
    CHECK_OK(multicast_queue_destroy(queue));
  }
  STORE(is_over, true);
  return NULL;
}

TEST(queue_that_ends_as_others_add_leaves_nothing_in_their_lifetimes) {
  multicast m = multicast_create();
  multicast_lifetime lifetime = multicast_lifetime_create();
  multicast_options options = with_release(count_release);
  int releases = 0, added = 0;
  pthread_t thread = start_thread(create_and_destroy, NULL);
  options.lifetime = lifetime;
  while (!LOAD(is_over)) {
    multicast_status status;
    options.queue.id = LOAD(passing.id);
    if (options.queue.id == 0) continue;
    status = multicast_add(m, counter(&releases), &options, NULL);
    if (status != MULTICAST_OK) CHECK_STATUS(status, MULTICAST_ERROR_INVALID_HANDLE);
    ++added;
    multicast_invoke(m, 0, NULL, 0);
  }
  join_thread(thread);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(multicast_lifetime_count(lifetime), 0);
  CHECK_OK(multicast_lifetime_end(lifetime));
  CHECK_EQ(LOAD(releases), added);
}

/* ---- A worker after the other ---------------------------------------------------------------- */

static void *stop_all_the_time(void *argument) {
  while (!LOAD(is_over)) {
    multicast_status status = multicast_queue_stop(*(multicast_queue *)argument);
    if (status != MULTICAST_OK) CHECK_STATUS(status, MULTICAST_ERROR_STATE);
  }
  return NULL;
}

TEST(queue_stop_waits_for_the_worker_that_it_stops_and_not_for_the_next) {
  multicast_queue queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  pthread_t stopper = start_thread(stop_all_the_time, &queue);
  int started = 0;
  while (started < 200) {
    multicast_status status = multicast_queue_start(queue);
    if (status == MULTICAST_OK) {
      ++started;
    } else {
      CHECK_STATUS(status, MULTICAST_ERROR_STATE);
    }
  }
  STORE(is_over, true);
  join_thread(stopper);
  CHECK_OK(multicast_queue_destroy(queue));
}

/* ---- A worker after a thread that has ended -------------------------------------------------- */

enum { WORK = 0, START = 1, END = 2, STAY = 4 };

typedef struct turn {
  multicast target;
  multicast_queue queue;
  gate has_worked, entered, let_go;
} turn;

static void take_turn(void *context, uint32_t event, const void *payload, size_t size) {
  turn *t = context;
  (void)payload, (void)size;
  if (event & STAY) {
    gate_open(&t->entered);
    gate_wait(&t->let_go);
  }
  if (event & START) {
    CHECK_OK(multicast_queue_start(t->queue));
    pause_ms(A_WHILE_MS); /* its thread waits for its turn */
  }
  if (event & END) pthread_exit(NULL);
  if (event == WORK) gate_open(&t->has_worked);
}

static void begin_turns(turn *t) {
  multicast_delegate d = {take_turn, t};
  multicast_options options;
  t->target = multicast_create();
  t->queue = queue_with(10, MULTICAST_OVERFLOW_REFUSE);
  options = to_queue(t->queue);
  add_with(t->target, d, &options);
}

static void *run_all(void *argument) {
  multicast_queue_run(*(multicast_queue *)argument, 0);
  return NULL;
}

TEST(queue_worker_goes_on_where_the_thread_that_ran_before_it_has_ended) {
  static turn t = {{0}, {0}, GATE_INIT, GATE_INIT, GATE_INIT};
  begin_turns(&t);
  CHECK_EQ(multicast_invoke(t.target, START | END, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(t.target, WORK, NULL, 0), 1);
  on_another_thread(run_all, &t.queue);
  gate_wait(&t.has_worked);
  CHECK_OK(multicast_queue_destroy(t.queue));
}

TEST(queue_worker_gets_its_turn_after_a_thread_that_ran_after_one_that_has_ended) {
  static turn t = {{0}, {0}, GATE_INIT, GATE_INIT, GATE_INIT};
  begin_turns(&t);
  CHECK_EQ(multicast_invoke(t.target, END, NULL, 0), 1);
  on_another_thread(run_all, &t.queue);
  CHECK_EQ(multicast_invoke(t.target, START, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(t.target, WORK, NULL, 0), 1);
  CHECK(multicast_queue_run(t.queue, 0) >= 1);
  gate_wait(&t.has_worked);
  CHECK_OK(multicast_queue_destroy(t.queue));
}

#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
static void expect_a_turn(void *argument) {
  turn *t = argument;
  CHECK_EQ(multicast_invoke(t->target, START, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(t->target, WORK, NULL, 0), 1);
  CHECK(multicast_queue_run(t->queue, 0) >= 1);
  gate_wait(&t->has_worked);
  CHECK_OK(multicast_queue_destroy(t->queue));
}

TEST(queue_worker_gets_its_turn_in_the_child_of_a_fork_during_a_call) {
  static turn t = {{0}, {0}, GATE_INIT, GATE_INIT, GATE_INIT};
  pthread_t runner;
  begin_turns(&t);
  CHECK_EQ(multicast_invoke(t.target, STAY, NULL, 0), 1);
  runner = start_thread(run_all, &t.queue);
  gate_wait(&t.entered);
  in_child(expect_a_turn, &t);
  gate_open(&t.let_go);
  join_thread(runner);
}
#endif

/* ---- A thread that runs a queue for the first time inside a release -------------------------- */

typedef struct late_runner {
  cycle c;
  multicast_queue queue;
  bool fills; /* it is full again, and waited for, as the release returns */
  pthread_t opener;
  int calls;
} late_runner;

#define LATE_RUNNER_INIT(FILLS)                                                \
  {{{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0}, {0}, FILLS, 0, 0}

static void *fill(void *target) {
  CHECK_EQ(multicast_invoke(*(multicast *)target, 0, NULL, 0), 1);
  return NULL;
}

static void run_in_release(void *context) {
  late_runner *l = context;
  CHECK_EQ(multicast_queue_run(l->queue, 1), 1);
  on_another_thread(fill, &l->c.target);
  if (l->fills) {
    gate_open(&l->c.go_on);
    CHECK(!gate_opens_within(&l->c.has_left, A_WHILE_MS)); /* it waits for room */
  } else {
    l->opener = start_thread(open_after_a_while, &l->c.go_on);
  }
}

/* This thread has done nothing yet that the library remembers a thread for. */
static multicast begin_late(late_runner *l, invoker *i, multicast_lifetime lifetime) {
  multicast m = multicast_create();
  multicast_options options;
  multicast_delegate running = {invoke_into_the_full_queue, NULL}, other = {count_call, NULL};
  running.context = &l->c;
  other.context = l;
  l->queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  options = to_queue(l->queue);
  l->c.target = multicast_create();
  add_with(l->c.target, counter(&l->calls), &options);
  on_another_thread(fill, &l->c.target);

  options = with_release(NULL);
  options.lifetime = lifetime;
  add_with(m, running, &options);
  options.release = run_in_release;
  options.events = UINT64_C(1) << 5; /* it is not called */
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

TEST(remove_all_does_not_wait_for_a_call_that_waits_for_what_its_release_began_to_run) {
  static late_runner l = LATE_RUNNER_INIT(true);
  invoker i;
  multicast m = begin_late(&l, &i, (multicast_lifetime){0});
  CHECK_EQ(multicast_remove_all(m), 2);
  end_late(&l, &i);
}

TEST(remove_all_has_a_call_refused_that_would_wait_for_what_its_release_began_to_run) {
  static late_runner l = LATE_RUNNER_INIT(false);
  invoker i;
  multicast m = begin_late(&l, &i, (multicast_lifetime){0});
  CHECK_EQ(multicast_remove_all(m), 2);
  end_late(&l, &i);
}

TEST(lifetime_end_is_pending_where_a_call_waits_for_what_its_release_began_to_run) {
  static late_runner l = LATE_RUNNER_INIT(true);
  invoker i;
  multicast_lifetime lifetime = multicast_lifetime_create();
  begin_late(&l, &i, lifetime);
  CHECK_STATUS(multicast_lifetime_end(lifetime), MULTICAST_PENDING);
  end_late(&l, &i);
}

TEST(lifetime_end_has_a_call_refused_that_would_wait_for_what_its_release_began_to_run) {
  static late_runner l = LATE_RUNNER_INIT(false);
  invoker i;
  multicast_lifetime lifetime = multicast_lifetime_create();
  begin_late(&l, &i, lifetime);
  CHECK_OK(multicast_lifetime_end(lifetime));
  end_late(&l, &i);
}

/* ---- The next multicast in a slot ------------------------------------------------------------ */

typedef struct heir {
  multicast old, new;
  gate entered, let_go;
} heir;

static void destroy_and_inherit(void *context, uint32_t event, const void *payload, size_t size) {
  heir *h = context;
  int count = 0;
  (void)event, (void)payload, (void)size;
  CHECK_STATUS(multicast_destroy(h->old), MULTICAST_PENDING);
  do {
    CHECK(++count < 64);
    h->new = multicast_create();
  } while (((h->new.id ^ h->old.id) & 0x3FFFFFF) != 0);
  gate_open(&h->entered);
  gate_wait(&h->let_go);
}

TEST(remove_all_does_not_wait_for_a_queued_call_of_the_last_multicast_in_its_slot) {
  static heir h = {{0}, {0}, GATE_INIT, GATE_INIT};
  multicast_delegate d = {destroy_and_inherit, &h};
  multicast_queue queue = queue_with(10, MULTICAST_OVERFLOW_REFUSE);
  multicast_options options = to_queue(queue);
  h.old = multicast_create();
  add_with(h.old, d, &options);
  CHECK_OK(multicast_queue_start(queue));
  CHECK_EQ(multicast_invoke(h.old, 0, NULL, 0), 1);
  gate_wait(&h.entered);
  CHECK_EQ(multicast_remove_all(h.new), 0); /* or it would wait for what follows */
  gate_open(&h.let_go);
  CHECK_OK(multicast_queue_destroy(queue));
}

/* ---- Releases on other threads, in the child of a fork --------------------------------------- */

static blocker releasing = BLOCKER_INIT;

static void block_release(void *context) { block_call(context, 0, NULL, 0); }

static void *remove_everything(void *target) {
  CHECK_EQ(multicast_remove_all(*(multicast *)target), 1);
  return NULL;
}

static void end_while_a_release_runs(void *is_queue) {
  multicast m = multicast_create();
  multicast_options options = with_release(block_release);
  pthread_t remover, opener;
  if (is_queue != NULL) {
    options.queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  } else {
    options.lifetime = multicast_lifetime_create();
  }
  add_with(m, blocking(&releasing), &options);
  remover = start_thread(remove_everything, &m);
  gate_wait(&releasing.entered);
  opener = start_thread(open_after_a_while, &releasing.let_go);
  if (is_queue != NULL) {
    CHECK_OK(multicast_queue_destroy(options.queue));
  } else {
    CHECK_OK(multicast_lifetime_end(options.lifetime));
  }
  CHECK(LOAD(releasing.has_left));
  join_thread(opener);
  join_thread(remover);
}

TEST(lifetime_end_in_the_child_of_a_fork_waits_for_releases_on_its_other_threads) {
  CHECK_OK(multicast_lifetime_end(multicast_lifetime_create()));
#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
  in_child(end_while_a_release_runs, NULL);
#endif
  end_while_a_release_runs(NULL);
}

TEST(queue_destroy_in_the_child_of_a_fork_waits_for_releases_on_its_other_threads) {
  CHECK_OK(multicast_queue_destroy(queue_with(4, MULTICAST_OVERFLOW_REFUSE)));
#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
  in_child(end_while_a_release_runs, &releasing);
#endif
  end_while_a_release_runs(&releasing);
}

/* ---- Broadcasters ---------------------------------------------------------------------------- */

typedef struct crossing {
  multicast target;
  multicast_delegate destroyer;
  multicast_broadcaster broadcaster;
  gate in_destroyer, in_observer;
  bool has_observed;
} crossing;

static void destroy_broadcaster(void *context, uint32_t event, const void *payload, size_t size) {
  crossing *c = context;
  (void)event, (void)payload, (void)size;
  gate_open(&c->in_destroyer);
  gate_wait(&c->in_observer);
  pause_ms(A_WHILE_MS); /* it waits for this call to end */
  CHECK_STATUS(multicast_destroy(multicast_broadcaster_multicast(c->broadcaster, "name")),
               MULTICAST_PENDING);
  CHECK_STATUS(multicast_broadcaster_destroy(c->broadcaster), MULTICAST_PENDING);
  CHECK(!LOAD(c->has_observed));
}

static void observe(void *context, uint32_t event, const void *payload, size_t size) {
  crossing *c = context;
  (void)event, (void)payload, (void)size;
  gate_wait(&c->in_destroyer);
  gate_open(&c->in_observer);
  CHECK_OK(multicast_remove(c->target, c->destroyer));
  STORE(c->has_observed, true);
}

TEST(broadcaster_destroy_is_pending_where_an_observer_runs_whose_multicast_was_destroyed) {
  static crossing c = {{0}, {destroy_broadcaster, &c}, {0}, GATE_INIT, GATE_INIT, false};
  multicast_delegate observer = {observe, &c};
  invoker i, o;
  c.target = multicast_create();
  add(c.target, c.destroyer);
  c.broadcaster = multicast_broadcaster_create(NULL);
  CHECK_OK(multicast_broadcaster_register(c.broadcaster, "name", observer, NULL, NULL));
  invoke_in_background(&i, c.target);
  invoke_in_background(&o, multicast_broadcaster_multicast(c.broadcaster, "name"));
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(invoke_finished(&o), 1);
  CHECK(c.has_observed);
}

static void *invoke_it(void *target) {
  multicast_invoke(*(multicast *)target, 0, NULL, 0);
  return NULL;
}

TEST(broadcaster_destroy_after_the_kernel_took_the_barrier_back_calls_no_observer_any_more) {
  int calls = 0;
  multicast_broadcaster broadcaster = multicast_broadcaster_create(NULL);
  multicast m;
  if (is_without_membarrier()) return; /* it was never granted: nothing to take back */
  CHECK_OK(multicast_broadcaster_register(broadcaster, "name", counter(&calls), NULL, NULL));
  m = multicast_broadcaster_multicast(broadcaster, "name");
  invoke_it(&m);
  on_another_thread(invoke_it, &m);
  CHECK_EQ(calls, 2);
  deny_membarrier();
  CHECK_STATUS(multicast_broadcaster_destroy(broadcaster), MULTICAST_ERROR_SYSTEM);
  CHECK(!multicast_is_valid(m));
  CHECK_STATUS(multicast_invoke(m, 0, NULL, 0), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(calls, 2);
  _exit(0); /* its names are freed by nobody now, which a sanitizer would take for a leak */
}

/* ---- Who waits for room ---------------------------------------------------------------------- */

typedef struct producer {
  multicast target;
  gate go_on, has_queued;
  int64_t queued;
  blocker *other; /* what the thread that runs the queue waits for meanwhile */
} producer;

static void *produce(void *argument) {
  producer *p = argument;
  gate_wait(&p->go_on);
  p->queued = multicast_invoke(p->target, 0, NULL, 0);
  gate_open(&p->has_queued);
  return NULL;
}

static void *let_them_go(void *argument) {
  producer *p = argument;
  pause_ms(A_WHILE_MS);
  gate_open(&p->go_on);
  CHECK(!gate_opens_within(&p->has_queued, A_WHILE_MS));
  gate_open(&p->other->let_go);
  return NULL;
}

TEST(queue_that_is_full_refuses_nobody_while_its_thread_waits_for_something_else) {
  static blocker b = BLOCKER_INIT;
  static producer p = {{0}, GATE_INIT, GATE_INIT, -1, &b};
  int calls = 0;
  invoker i;
  multicast_queue queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast_queue_stats stats = multicast_queue_stats_default();
  multicast_options options = to_queue(queue);
  multicast other = multicast_create();
  multicast_lifetime lifetime = multicast_lifetime_create();
  multicast_token token;
  pthread_t threads[2];
  p.target = multicast_create();
  add_with(p.target, counter(&calls), &options);
  CHECK_EQ(multicast_queue_run(queue, 0), 0); /* it is for this thread to run */
  CHECK_EQ(multicast_invoke(p.target, 0, NULL, 0), 1);

  options = multicast_options_default();
  options.lifetime = lifetime;
  token = add_with(other, blocking(&b), &options);
  invoke_in_background(&i, other);
  gate_wait(&b.entered);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  threads[0] = start_thread(produce, &p);
  threads[1] = start_thread(let_them_go, &p);
  /* Pending where the other thread, which might now wait for this one, has not said yet that it is
   * through; but not before the call has ended. */
  CHECK(multicast_lifetime_end(lifetime) >= MULTICAST_OK);
  CHECK(LOAD(b.has_left));
  CHECK_EQ(multicast_queue_run(queue, 1), 1);
  join_thread(threads[0]);
  join_thread(threads[1]);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(p.queued, 1);
  CHECK_OK(multicast_queue_statistics(queue, &stats));
  CHECK_EQ(stats.refused, 0);
}

static void remove_what_waits_for_room(cycle *c, multicast_queue queue) {
  int calls = 0;
  invoker i;
  multicast m = multicast_create();
  multicast_options options = to_queue(queue);
  multicast_delegate d = {invoke_into_the_full_queue, NULL};
  d.context = c;
  add_with(c->target, counter(&calls), &options);
  on_another_thread(fill, &c->target);
  add(m, d);
  invoke_in_background(&i, m);
  gate_open(&c->go_on);
  gate_wait(&c->entered);
  CHECK(!gate_opens_within(&c->has_left, A_WHILE_MS)); /* it waits for room */
  CHECK_STATUS(multicast_remove(m, d), MULTICAST_PENDING);
  CHECK_EQ(multicast_queue_run(queue, 1), 1);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(c->queued, 1);
}

TEST(removal_is_pending_where_its_call_waits_for_room_in_a_queue_that_nobody_runs) {
  static cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  c.target = multicast_create();
  remove_what_waits_for_room(&c, queue_with(1, MULTICAST_OVERFLOW_BLOCK));
}

typedef struct idler {
  multicast target;
  gate entered, let_go;
} idler;

static void *invoke_and_idle(void *argument) {
  idler *i = argument;
  CHECK_EQ(multicast_invoke(i->target, 0, NULL, 0), 0);
  gate_open(&i->entered);
  gate_wait(&i->let_go);
  return NULL;
}

TEST(removal_is_pending_where_its_call_waits_for_room_in_a_queue_whose_worker_has_ended) {
  static cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  static blocker b = BLOCKER_INIT;
  static idler idle = {{0}, GATE_INIT, GATE_INIT};
  multicast_queue queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast_options options = to_queue(queue);
  multicast_token token;
  pthread_t thread;
  c.target = multicast_create();
  token = add_with(c.target, blocking(&b), &options);
  CHECK_OK(multicast_queue_start(queue));
  gate_open(&b.let_go);
  CHECK_EQ(multicast_invoke(c.target, 0, NULL, 0), 1);
  gate_wait(&b.entered);
  CHECK_OK(multicast_queue_stop(queue));
  pause_ms(A_WHILE_MS); /* its thread ends, and another gets what the library knew it by */
  CHECK_OK(multicast_token_remove(token));
  idle.target = c.target;
  thread = start_thread(invoke_and_idle, &idle);
  gate_wait(&idle.entered);
  remove_what_waits_for_room(&c, queue);
  gate_open(&idle.let_go);
  join_thread(thread);
}

static gate destructor_begins = GATE_INIT, destructor_ends = GATE_INIT;

static void stay_in_destructor(void *key) {
  (void)key;
  gate_open(&destructor_begins);
  gate_wait(&destructor_ends);
}

static void ask_for_destructor(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event, (void)payload, (void)size;
  CHECK_EQ(pthread_setspecific(*(pthread_key_t *)context, context), 0);
}

/* Its thread makes no call any more, but has not ended yet: it is in a destructor, and those run in
 * the order in which their keys were made. */
TEST(removal_is_pending_where_its_call_waits_for_room_in_a_queue_whose_worker_has_stopped) {
  static cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  pthread_key_t key;
  multicast_queue queue;
  multicast_options options;
  multicast_token token;
  multicast_delegate d = {ask_for_destructor, NULL};
  CHECK_EQ(pthread_key_create(&key, stay_in_destructor), 0);
  d.context = &key;
  queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  options = to_queue(queue);
  c.target = multicast_create();
  token = add_with(c.target, d, &options);
  CHECK_OK(multicast_queue_start(queue));
  CHECK_EQ(multicast_invoke(c.target, 0, NULL, 0), 1);
  EVENTUALLY(stats_of(queue).delivered == 1);
  CHECK_OK(multicast_queue_stop(queue));
  gate_wait(&destructor_begins);
  CHECK_OK(multicast_token_remove(token));
  remove_what_waits_for_room(&c, queue);
  gate_open(&destructor_ends);
}

/* ---- A fork while something ends ------------------------------------------------------------- */

enum { MEMBERS = 20000 };

typedef struct ending {
  multicast target;
  multicast_queue queue;
  multicast_lifetime lifetime; /* zero where the queue ends */
  bool has_begun;
} ending;

static void *end_it(void *argument) {
  ending *e = argument;
  STORE(e->has_begun, true);
  if (e->lifetime.id != 0) {
    CHECK_OK(multicast_lifetime_end(e->lifetime));
  } else {
    CHECK_OK(multicast_queue_destroy(e->queue));
  }
  return NULL;
}

static void expect_all_or_nothing(void *argument) {
  ending *e = argument;
  int64_t left = e->lifetime.id != 0 ? multicast_lifetime_count(e->lifetime)
                                     : multicast_queue_wait(e->queue, 0);
  if (left == MULTICAST_ERROR_INVALID_HANDLE) {
    CHECK_EQ(multicast_count(e->target), 0);
    CHECK_EQ(multicast_invoke(e->target, 0, NULL, 0), 0);
  } else {
    CHECK_EQ(multicast_count(e->target), MEMBERS);
  }
}

static void fork_while_it_ends(bool is_queue) {
  static multicast_delegate members[MEMBERS];
  static int contexts[MEMBERS];
  int i, round;
  for (i = 0; i < MEMBERS; ++i) members[i] = counter(&contexts[i]);
  for (round = 0; round < 10; ++round) {
    ending e = {{0}, {0}, {0}, false};
    multicast_options options = multicast_options_default();
    pthread_t thread;
    e.target = multicast_create();
    if (is_queue) {
      options.queue = e.queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
    } else {
      options.lifetime = e.lifetime = multicast_lifetime_create();
    }
    CHECK_OK(multicast_add_many(e.target, members, MEMBERS, &options, NULL));
    thread = start_thread(end_it, &e);
    while (!LOAD(e.has_begun)) sched_yield();
    usleep((useconds_t)round * 100);
    in_child(expect_all_or_nothing, &e);
    join_thread(thread);
    CHECK_EQ(multicast_count(e.target), 0);
    CHECK_OK(multicast_destroy(e.target));
  }
}

TEST(fork_while_a_lifetime_ends_leaves_the_child_none_of_its_registrations) {
  fork_while_it_ends(false);
}

TEST(fork_while_a_queue_is_destroyed_leaves_the_child_none_of_its_registrations) {
  fork_while_it_ends(true);
}

/* ---- What the parent's threads waited for, or were to do ------------------------------------- */

#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
typedef struct inheritance {
  multicast outer, inner;
  multicast_token token;
  pthread_t waiter;
  gate is_known;
  blocker b;
} inheritance;

static void *wait_for_the_outer_call(void *argument) {
  inheritance *h = argument;
  CHECK_EQ(multicast_invoke(h->inner, 0, NULL, 0), 0);
  gate_open(&h->is_known);
  CHECK_OK(multicast_token_remove(h->token));
  return NULL;
}

static void wait_for_a_new_thread(void *argument) {
  inheritance *h = argument;
  invoker i;
  pthread_t opener;
  add(h->inner, blocking(&h->b));
  invoke_in_background(&i, h->inner);
  gate_wait(&h->b.entered);
  opener = start_thread(open_after_a_while, &h->b.let_go);
  CHECK_OK(multicast_remove(h->inner, blocking(&h->b)));
  CHECK(LOAD(h->b.has_left));
  join_thread(opener);
  CHECK_EQ(invoke_finished(&i), 1);
}

static void fork_while_another_waits(void *context, uint32_t event, const void *payload,
                                     size_t size) {
  inheritance *h = context;
  (void)event, (void)payload, (void)size;
  h->waiter = start_thread(wait_for_the_outer_call, h);
  gate_wait(&h->is_known);
  pause_ms(A_WHILE_MS); /* it waits for this call */
  in_child(wait_for_a_new_thread, h);
}

/* That thread takes the place of the parent's, which waited for the call that the child is in. */
TEST(removal_in_the_child_of_a_fork_waits_for_a_thread_that_waits_for_nothing) {
  static inheritance h = {{0}, {0}, {0}, 0, GATE_INIT, BLOCKER_INIT};
  multicast_delegate d = {fork_while_another_waits, &h};
  h.outer = multicast_create();
  h.inner = multicast_create();
  h.token = add(h.outer, d);
  CHECK_EQ(multicast_invoke(h.outer, 0, NULL, 0), 1);
  join_thread(h.waiter);
}

typedef struct orphan {
  cycle c;
  multicast_queue queue;
  gate has_run, let_go;
} orphan;

static void *run_and_stay(void *argument) {
  orphan *o = argument;
  CHECK_EQ(multicast_queue_run(o->queue, 0), 0);
  gate_open(&o->has_run);
  gate_wait(&o->let_go);
  return NULL;
}

static void remove_what_waits_there(void *argument) {
  orphan *o = argument;
  remove_what_waits_for_room(&o->c, o->queue);
}

TEST(removal_in_the_child_of_a_fork_is_pending_where_its_call_waits_for_a_thread_of_the_parents) {
  static orphan o = {
      {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0}, {0}, GATE_INIT, GATE_INIT};
  static idler idle[2] = {{{0}, GATE_INIT, GATE_INIT}, {{0}, GATE_INIT, GATE_INIT}};
  pthread_t runner, idlers[2];
  int i;
  o.c.target = multicast_create();
  o.queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  runner = start_thread(run_and_stay, &o);
  gate_wait(&o.has_run);
  for (i = 0; i < 2; ++i) { /* the child's threads take the places of these */
    idle[i].target = o.c.target;
    idlers[i] = start_thread(invoke_and_idle, &idle[i]);
    gate_wait(&idle[i].entered);
  }
  in_child(remove_what_waits_there, &o);
  gate_open(&o.let_go);
  join_thread(runner);
  for (i = 0; i < 2; ++i) {
    gate_open(&idle[i].let_go);
    join_thread(idlers[i]);
  }
}
#endif

/* ---- Cancellation that waits for a cancellation point ---------------------------------------- */

typedef struct cancelled {
  multicast target;
  multicast_queue queue;
  int calls;
} cancelled;

static void begin_cancelled(cancelled *c) {
  multicast_options options;
  c->calls = 0;
  c->target = multicast_create();
  c->queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  options = to_queue(c->queue);
  add_with(c->target, counter(&c->calls), &options);
  CHECK(multicast_queue_fd(c->queue) >= 0); /* what is written to and read may end the thread */
}

static void *invoke_cancelled(void *argument) {
  cancelled *c = argument;
  CHECK_EQ(pthread_cancel(pthread_self()), 0);
  multicast_invoke(c->target, 0, NULL, 0);
  pthread_testcancel();
  return NULL;
}

static void *run_cancelled(void *argument) {
  cancelled *c = argument;
  CHECK_EQ(pthread_cancel(pthread_self()), 0);
  multicast_queue_run(c->queue, 0);
  pthread_testcancel();
  return NULL;
}

static void *destroy_cancelled(void *argument) {
  cancelled *c = argument;
  CHECK_EQ(pthread_cancel(pthread_self()), 0);
  multicast_queue_destroy(c->queue);
  pthread_testcancel();
  return NULL;
}

TEST(invocation_with_a_cancellation_pending_leaves_no_lock_of_the_queue_held) {
  cancelled c;
  begin_cancelled(&c);
  on_another_thread(invoke_cancelled, &c);
  CHECK_EQ(stats_of(c.queue).pending, 1);
  CHECK_EQ(multicast_queue_run(c.queue, 0), 1);
  CHECK_EQ(c.calls, 1);
  CHECK_OK(multicast_queue_destroy(c.queue));
}

TEST(queue_run_with_a_cancellation_pending_leaves_no_lock_held) {
  cancelled c;
  begin_cancelled(&c);
  CHECK_EQ(multicast_invoke(c.target, 0, NULL, 0), 1);
  on_another_thread(run_cancelled, &c);
  CHECK_EQ(stats_of(c.queue).pending, 0);
  CHECK_EQ(c.calls, 1);
  CHECK_EQ(multicast_invoke(c.target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(c.queue, 0), 1);
  CHECK_OK(multicast_queue_destroy(c.queue));
}

TEST(queue_destroy_with_a_cancellation_pending_leaves_no_lock_held) {
  cancelled c;
  begin_cancelled(&c);
  CHECK_EQ(multicast_invoke(c.target, 0, NULL, 0), 1);
  on_another_thread(destroy_cancelled, &c);
  CHECK_STATUS(multicast_queue_destroy(c.queue), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(multicast_count(c.target), 0);
  CHECK_OK(multicast_queue_destroy(queue_with(1, MULTICAST_OVERFLOW_REFUSE)));
}

/* ---- A release that waits for room ----------------------------------------------------------- */

typedef struct releaser {
  multicast target; /* its delegate's calls wait in a queue that is full */
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

static void *remove_and_release(void *argument) {
  CHECK_OK(multicast_token_remove(((releaser *)argument)->token));
  return NULL;
}

TEST(queue_that_is_full_refuses_a_release_that_the_end_of_a_lifetime_waits_for) {
  static releaser r = {{0}, {0}, GATE_INIT, GATE_INIT, -1};
  int calls = 0;
  multicast_queue queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast_lifetime lifetime = multicast_lifetime_create();
  multicast_options options = with_release(invoke_in_release);
  multicast_delegate d = {count_call, &r};
  pthread_t remover, opener;
  r.target = multicast_create();
  add_queued(r.target, counter(&calls), queue);
  CHECK_EQ(multicast_invoke(r.target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(queue, 0), 1); /* it is for this thread to run */
  CHECK_EQ(multicast_invoke(r.target, 0, NULL, 0), 1); /* it is full */
  options.lifetime = lifetime;
  r.token = add_with(multicast_create(), d, &options);
  remover = start_thread(remove_and_release, &r);
  gate_wait(&r.entered);
  opener = start_thread(open_after_a_while, &r.go_on);
  CHECK_OK(multicast_lifetime_end(lifetime));
  CHECK_EQ(r.queued, 0);
  join_thread(opener);
  join_thread(remover);
}

/* ---- A worker that waits for room ------------------------------------------------------------ */

TEST(queue_stop_is_pending_where_the_worker_waits_for_room_in_a_queue_that_nobody_runs) {
  static cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  int calls = 0;
  multicast m = multicast_create();
  multicast_delegate d = {invoke_into_the_full_queue, &c};
  multicast_queue full = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast_queue working = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  c.target = multicast_create();
  add_queued(c.target, counter(&calls), full);
  CHECK_EQ(multicast_invoke(c.target, 0, NULL, 0), 1);
  add_queued(m, d, working);
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

/* ---- Calls that come to nothing -------------------------------------------------------------- */

static void *lock_nothing(void *context) {
  (void)context;
  return NULL;
}
static void unlock_nothing(void *strong) { (void)strong; }

TEST(queue_run_makes_as_many_as_asked_for_beside_dead_contexts) {
  size_t max;
  for (max = 0; max < 3; ++max) {
    multicast m = multicast_create();
    multicast_queue q = multicast_queue_create(NULL);
    multicast_options weak = to_queue(q);
    int calls = 0, never = 0;
    weak.lock = lock_nothing;
    weak.unlock = unlock_nothing;
    add_with(m, counter(&never), &weak);
    add_queued(m, counter(&calls), q);
    CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
    CHECK_EQ(multicast_queue_run(q, max), 1);
    CHECK_EQ(calls, 1);
    CHECK_EQ(never, 0);
    CHECK_EQ(stats_of(q).pending, 0);
  }
}

TEST(queue_counts_nothing_as_refused_for_a_delegate_called_once_that_waits) {
  multicast m;
  multicast_queue q;
  multicast_options options;
  char payload[33] = "";
  int calls = 0;
  use_test_allocator();
  m = multicast_create();
  q = multicast_queue_create(NULL);
  options = to_queue(q);
  options.flags = MULTICAST_ONCE;
  add_with(m, counter(&calls), &options);
  CHECK_EQ(multicast_invoke(m, 0, payload, sizeof payload), 1);
  fail_only_once = false;
  fail_after = 0;
  CHECK_EQ(multicast_invoke(m, 0, payload, sizeof payload), 0);
  CHECK(has_failed);
  fail_after = -1;
  CHECK_EQ(stats_of(q).refused, 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(calls, 1);
}
