/* If a second thread ends a queue, lifetime, broadcaster or multicast that another thread is
 * already ending, both threads wait for the same calls. */

#include "broadcasters.h"
#include "removals.h"

typedef struct ended ended;
typedef multicast_status ender(const ended *e, uint64_t timeout_ns);

struct ended {
  ender *end;
  multicast_broadcaster broadcaster;
  multicast_lifetime lifetime;
  multicast_queue queue;
  multicast target;
  blocker b;
  invoker i;
  runner run;
};

static multicast_status end_multicast(const ended *e, uint64_t timeout_ns) {
  return multicast_destroy_within(e->target, timeout_ns);
}
static multicast_status end_lifetime(const ended *e, uint64_t timeout_ns) {
  return multicast_lifetime_end_within(e->lifetime, timeout_ns);
}
static multicast_status end_queue(const ended *e, uint64_t timeout_ns) {
  return multicast_queue_destroy_within(e->queue, timeout_ns);
}
static multicast_status end_broadcaster(const ended *e, uint64_t timeout_ns) {
  return multicast_broadcaster_destroy_within(e->broadcaster, timeout_ns);
}

static ender *const enders[] = {end_multicast, end_lifetime, end_queue, end_broadcaster};
enum { ENDERS = sizeof enders / sizeof *enders };

static const blocker fresh_blocker = BLOCKER_INIT;

/* Registers an observer with a lifetime, and also with a queue if the test ends a queue. */
static void begin_with(ended *e, ender *end, multicast_delegate d, void (*release)(void *)) {
  memset(e, 0, sizeof *e);
  e->end = end;
  e->b = fresh_blocker;
  e->broadcaster = create();
  e->lifetime = multicast_lifetime_create();
  e->queue = default_queue();
  multicast_add_options options = ADD_OPTIONS(.release = release, .lifetime = e->lifetime);
  if (end == end_queue) options.queue = e->queue;
  observe_with(e->broadcaster, NAME, d, &options);
  e->target = find(e->broadcaster, NAME);
}

static void begin_call(ended *e) {
  if (e->end == end_queue) {
    CHECK_EQ(multicast_invoke(e->target, 0, NULL, 0), 1);
    run_in_background(&e->run, e->queue, 0);
  } else {
    invoke_in_background(&e->i, e->target);
  }
}

static void begin_running(ended *e, ender *end) {
  begin_with(e, end, blocking(&e->b), release_blocker);
  begin_call(e);
  gate_wait(&e->b.entered);
}

static void finish_running(ended *e) {
  CHECK_EQ(e->end == end_queue ? run_finished(&e->run) : invoke_finished(&e->i), 1);
}

/* A thread that ends the object. */
typedef struct caller {
  ended *e;
  uint64_t timeout_ns;
  multicast_status status;
  bool had_left;
  int releases;
  gate returned;
  pthread_t thread;
} caller;

THREAD(end_it, caller *c) {
  c->status = c->e->end(c->e, c->timeout_ns);
  c->had_left = LOAD(c->e->b.has_left);
  c->releases = LOAD(c->e->b.releases);
  gate_open(&c->returned);
}

static void start_caller(caller *c, ended *e, uint64_t timeout_ns) {
  c->e = e;
  c->timeout_ns = timeout_ns;
  c->status = MULTICAST_ERROR_STATE;
  c->returned = shut;
  c->thread = start_thread(end_it, c);
}

static void expect_waiting(caller *c) {
  CHECK(!gate_opens_within(&c->returned, A_WHILE_MS));
}

static void second_waits(ender *end) {
  ended e;
  caller first, second;
  begin_running(&e, end);
  start_caller(&first, &e, MULTICAST_FOREVER);
  expect_waiting(&first);
  start_caller(&second, &e, MULTICAST_FOREVER);
  expect_waiting(&second);
  CHECK(!LOAD(e.b.has_left));
  gate_open(&e.b.let_go);
  join_thread(first.thread);
  join_thread(second.thread);
  CHECK_OK(first.status);
  CHECK_ERROR(second.status, INVALID_HANDLE);
  CHECK(first.had_left && second.had_left);
  CHECK_EQ(first.releases, 1);
  finish_running(&e);
  CHECK_ERROR(end(&e, MULTICAST_FOREVER), INVALID_HANDLE);
}

TEST(second_multicast_destroy_waits_and_is_invalid_handle) { second_waits(end_multicast); }
TEST(second_lifetime_end_waits_and_is_invalid_handle) { second_waits(end_lifetime); }
TEST(second_queue_destroy_waits_and_is_invalid_handle) { second_waits(end_queue); }
TEST(second_broadcaster_destroy_waits_and_is_invalid_handle) { second_waits(end_broadcaster); }

TEST(second_callers_are_timeout_while_the_first_waits) {
  for (int i = 0; i < ENDERS; ++i) {
    ended e;
    caller first;
    begin_running(&e, enders[i]);
    start_caller(&first, &e, MULTICAST_FOREVER);
    expect_waiting(&first);
    CHECK_ERROR(enders[i](&e, 0), TIMEOUT);
    uint64_t start = now_ns();
    CHECK_ERROR(enders[i](&e, 10000000), TIMEOUT);
    CHECK(now_ns() - start >= 10000000);
    expect_waiting(&first);
    gate_open(&e.b.let_go);
    join_thread(first.thread);
    CHECK_OK(first.status);
    CHECK_ERROR(enders[i](&e, 0), INVALID_HANDLE);
    finish_running(&e);
  }
}

/* ---- Second callers also wait for release functions ------------------------------------------ */

typedef struct slow {
  gate begun, may_return;
  bool has_returned;
} slow;

static void release_slowly(void *context) {
  slow *s = context;
  gate_open(&s->begun);
  gate_wait(&s->may_return);
  STORE(s->has_returned, true);
}

static void second_waits_for_release(ender *end) {
  slow s = {GATE_INIT, GATE_INIT, false};
  ended e;
  caller first, second;
  begin_with(&e, end, DELEGATE(count_call, &s), release_slowly);
  start_caller(&first, &e, MULTICAST_FOREVER);
  gate_wait(&s.begun);
  start_caller(&second, &e, MULTICAST_FOREVER);
  expect_waiting(&second);
  gate_open(&s.may_return);
  join_thread(second.thread);
  join_thread(first.thread);
  CHECK(LOAD(s.has_returned));
  CHECK_OK(first.status);
  CHECK_ERROR(second.status, INVALID_HANDLE);
}

TEST(second_lifetime_end_waits_for_the_releases_of_the_first) {
  second_waits_for_release(end_lifetime);
}
TEST(second_queue_destroy_waits_for_the_releases_of_the_first) {
  second_waits_for_release(end_queue);
}
TEST(second_broadcaster_destroy_waits_for_releases_of_first) {
  second_waits_for_release(end_broadcaster);
}

/* ---- A second caller that the first caller is waiting for ------------------------------------ */

typedef struct inside {
  ended e;
  gate entered, go_on;
  multicast_status status;
  int releases;
} inside;

FUNCTION(end_inside, inside *in) {
  gate_open(&in->entered);
  gate_wait(&in->go_on);
  in->status = in->e.end(&in->e, MULTICAST_FOREVER);
}

static void release_inside(void *context) { ADD(((inside *)context)->releases, 1); }

TEST(second_callers_do_not_wait_inside_call_that_first_waits_for) {
  for (int i = 0; i < ENDERS; ++i) {
    static inside in;
    caller first;
    in.entered = in.go_on = shut;
    in.status = MULTICAST_OK;
    in.releases = 0;
    begin_with(&in.e, enders[i], DELEGATE(end_inside, &in), release_inside);
    begin_call(&in.e);
    gate_wait(&in.entered);
    start_caller(&first, &in.e, MULTICAST_FOREVER);
    expect_waiting(&first);
    gate_open(&in.go_on);
    join_thread(first.thread);
    finish_running(&in.e);
    CHECK_OK(first.status);
    CHECK_ERROR(in.status, INVALID_HANDLE);
    CHECK_EQ(LOAD(in.releases), 1);
  }
}

static void end_in_release(void *context) {
  inside *in = context;
  in->status = in->e.end(&in->e, MULTICAST_FOREVER);
  ADD(in->releases, 1);
}

TEST(second_callers_inside_a_release_of_the_first_do_not_wait) {
  for (int i = 0; i < ENDERS; ++i) {
    static inside in;
    multicast_delegate d = {end_inside, &in}; /* this delegate is never called */
    in.status = MULTICAST_OK;
    in.releases = 0;
    begin_with(&in.e, enders[i], d, end_in_release);
    CHECK_OK(enders[i](&in.e, MULTICAST_FOREVER));
    CHECK_ERROR(in.status, INVALID_HANDLE);
    CHECK_EQ(in.releases, 1);
  }
}

/* ---- Many concurrent callers ----------------------------------------------------------------- */

enum { CALLERS = 4 };

typedef struct race {
  ended e;
  int ready, ok, invalid;
  guarded context;
} race;

THREAD(end_at_once, race *r) {
  ADD(r->ready, 1);
  while (LOAD(r->ready) < CALLERS) sched_yield();
  multicast_status status = r->e.end(&r->e, MULTICAST_FOREVER);
  /* Once any thread has received MULTICAST_OK, no call is using the context any more, whichever
   * thread ended the object first. */
  if (status == MULTICAST_OK) {
    ADD(r->ok, 1);
  } else {
    CHECK_ERROR(status, INVALID_HANDLE);
    ADD(r->invalid, 1);
  }
}

static bool is_racing;

THREAD(invoke_all_the_time, race *r) {
  ADD(r->ready, 1);
  while (multicast_invoke(r->e.target, 0, NULL, 0) > 0 && LOAD(is_racing))
    if (r->e.end == end_queue) multicast_queue_run(r->e.queue, 0);
}

TEST(one_of_several_ends_at_once_is_ok_and_all_have_waited) {
  enum { ROUNDS = 60 };
  int i;
  for (int round = 0; round < ROUNDS * ENDERS; ++round) {
    pthread_t threads[CALLERS];
    is_racing = true;
    race r = {0};
    begin_with(&r.e, enders[round % ENDERS], begin_guarded(&r.context), NULL);
    for (i = 0; i < CALLERS - 1; ++i) threads[i] = start_thread(end_at_once, &r);
    threads[i] = start_thread(invoke_all_the_time, &r);
    for (i = 0; i < CALLERS - 1; ++i) join_thread(threads[i]);
    end_guarded(&r.context);
    STORE(is_racing, false);
    join_thread(threads[CALLERS - 1]);
    CHECK_EQ(r.ok, 1);
    CHECK_EQ(r.invalid, CALLERS - 2);
  }
}

/* ---- fork ------------------------------------------------------------------------------------ */

static void end_in_child(void *argument) {
  ended *e = argument;
  /* The thread that is ending the object in the parent does not exist in the child. */
  CHECK_ERROR(e->end(e, MULTICAST_FOREVER), INVALID_HANDLE);
  CHECK(!multicast_is_valid(e->target) || e->end == end_lifetime || e->end == end_queue);
}

static void second_in_child(ender *end) {
  ended e;
  caller first;
  begin_running(&e, end);
  start_caller(&first, &e, MULTICAST_FOREVER);
  expect_waiting(&first);
  in_child(end_in_child, &e);
  gate_open(&e.b.let_go);
  join_thread(first.thread);
  finish_running(&e);
  CHECK_OK(first.status);
}

TEST(second_multicast_destroy_in_the_child_does_not_hang) {
  second_in_child(end_multicast);
}
TEST(second_lifetime_end_in_the_child_of_a_fork_does_not_hang) { second_in_child(end_lifetime); }
TEST(second_queue_destroy_in_the_child_of_a_fork_does_not_hang) { second_in_child(end_queue); }
TEST(second_broadcaster_destroy_in_the_child_does_not_hang) {
  second_in_child(end_broadcaster);
}
