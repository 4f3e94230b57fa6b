/* Rule 4: removal waits for what matters and never hangs. */

#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

/* ---- It waits for a running call, in every form ---------------------------------------------- */

typedef struct remover remover;
struct remover {
  int64_t (*remove)(remover *);
  multicast target;
  multicast_token token;
  blocker *b;
  gate returned;
  int64_t result;
  bool had_left; /* the call had ended when the removal returned */
  pthread_t thread;
};

static void *remove_in_thread(void *argument) {
  remover *r = argument;
  r->result = r->remove(r);
  r->had_left = LOAD(r->b->has_left);
  gate_open(&r->returned);
  return NULL;
}

static int64_t by_remove(remover *r) { return multicast_remove(r->target, blocking(r->b)); }
static int64_t by_token(remover *r) { return multicast_token_remove(r->token); }
static int64_t by_token_within(remover *r) {
  return multicast_token_remove_within(r->token, UINT64_MAX);
}
static int64_t by_token_within_long(remover *r) {
  return multicast_token_remove_within(r->token, UINT64_C(20000000000));
}
static int64_t by_remove_at(remover *r) { return multicast_remove_at(r->target, 0); }
static int64_t by_remove_context(remover *r) {
  return multicast_remove_context(r->target, r->b) - 1;
}
static int64_t by_remove_all(remover *r) { return multicast_remove_all(r->target) - 1; }
static int64_t by_remove_many(remover *r) {
  multicast_delegate d = blocking(r->b);
  return multicast_remove_many(r->target, &d, 1) - 1;
}
static int64_t by_destroy(remover *r) { return multicast_destroy(r->target); }

/* A removal of a delegate that another thread is calling. */
typedef struct scene {
  blocker b;
  invoker i;
  remover r;
} scene;

static void begin(scene *s, int64_t (*remove)(remover *)) {
  static const blocker fresh = BLOCKER_INIT;
  static const gate shut = GATE_INIT;
  multicast_options options = with_release(release_blocker);
  s->b = fresh;
  s->r.returned = shut;
  s->r.remove = remove;
  s->r.b = &s->b;
  s->r.target = multicast_create();
  s->r.token = add_with(s->r.target, blocking(&s->b), &options);
  invoke_in_background(&s->i, s->r.target);
  gate_wait(&s->b.entered);
}

static void waits(int64_t (*remove)(remover *)) {
  scene s;
  begin(&s, remove);
  s.r.thread = start_thread(remove_in_thread, &s.r);
  CHECK(!gate_opens_within(&s.r.returned, A_WHILE_MS));
  CHECK_EQ(LOAD(s.b.releases), 0);
  CHECK(!multicast_token_is_live(s.r.token));
  gate_open(&s.b.let_go);
  gate_wait(&s.r.returned);
  join_thread(s.r.thread);
  CHECK_STATUS(s.r.result, MULTICAST_OK);
  CHECK(s.r.had_left);
  CHECK_EQ(LOAD(s.b.releases), 1);
  CHECK_EQ(invoke_finished(&s.i), 1);
  CHECK_EQ(LOAD(s.b.calls), 1);
}

TEST(remove_waits_for_the_running_call) { waits(by_remove); }
TEST(token_remove_waits_for_the_running_call) { waits(by_token); }
TEST(token_remove_within_for_ever_waits_for_the_running_call) { waits(by_token_within); }
TEST(token_remove_within_waits_for_the_running_call) { waits(by_token_within_long); }
TEST(remove_at_waits_for_the_running_call) { waits(by_remove_at); }
TEST(remove_context_waits_for_the_running_call) { waits(by_remove_context); }
TEST(remove_all_waits_for_the_running_call) { waits(by_remove_all); }
TEST(remove_many_waits_for_the_running_call) { waits(by_remove_many); }
TEST(destroy_waits_for_the_running_call) { waits(by_destroy); }

static bool visit_blocking(void *context, const multicast_delegate *delegate) {
  (void)context;
  delegate->function(delegate->context, 0, NULL, 0);
  return true;
}

static void *visit_once(void *argument) {
  multicast_visit(((scene *)argument)->r.target, visit_blocking, NULL);
  return NULL;
}

TEST(remove_waits_for_a_running_visit) {
  scene s;
  static const blocker fresh = BLOCKER_INIT;
  static const gate shut = GATE_INIT;
  pthread_t visitor;
  s.b = fresh;
  s.r.returned = shut;
  s.r.remove = by_remove;
  s.r.b = &s.b;
  s.r.target = multicast_create();
  add(s.r.target, blocking(&s.b));
  visitor = start_thread(visit_once, &s);
  gate_wait(&s.b.entered);
  s.r.thread = start_thread(remove_in_thread, &s.r);
  CHECK(!gate_opens_within(&s.r.returned, A_WHILE_MS));
  gate_open(&s.b.let_go);
  join_thread(s.r.thread);
  join_thread(visitor);
  CHECK_OK(s.r.result);
  CHECK(s.r.had_left);
}

TEST(remove_waits_for_every_thread_that_calls) {
  blocker b = BLOCKER_INIT;
  enum { THREADS = 4 };
  invoker invokers[THREADS];
  scene s;
  static const gate shut = GATE_INIT;
  int i;
  s.r.returned = shut;
  s.r.remove = by_remove;
  s.r.b = &b;
  s.r.target = multicast_create();
  add(s.r.target, blocking(&b));
  for (i = 0; i < THREADS; ++i) invoke_in_background(&invokers[i], s.r.target);
  while (LOAD(b.calls) < THREADS) pause_ms(1);
  s.r.thread = start_thread(remove_in_thread, &s.r);
  CHECK(!gate_opens_within(&s.r.returned, A_WHILE_MS));
  gate_open(&b.let_go);
  join_thread(s.r.thread);
  CHECK_OK(s.r.result);
  for (i = 0; i < THREADS; ++i) CHECK_EQ(invoke_finished(&invokers[i]), 1);
}

static multicast nested_target;

static void invoke_nested(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event;
  (void)payload;
  (void)size;
  CHECK_EQ(multicast_invoke(nested_target, 0, NULL, 0), 1);
  STORE(((blocker *)context)->calls, -1); /* the outer call goes on after the inner one */
}

TEST(remove_waits_for_a_call_in_an_outer_invocation) {
  blocker b = BLOCKER_INIT;
  multicast_delegate outer;
  multicast_token token;
  remover r;
  invoker i;
  static const gate shut = GATE_INIT;
  nested_target = multicast_create();
  add(nested_target, blocking(&b));
  outer.function = invoke_nested;
  outer.context = &b;
  r.target = multicast_create();
  token = add(r.target, outer);
  r.returned = shut;
  r.remove = by_token;
  r.token = token;
  r.b = &b;
  invoke_in_background(&i, r.target);
  gate_wait(&b.entered);
  r.thread = start_thread(remove_in_thread, &r);
  CHECK(!gate_opens_within(&r.returned, A_WHILE_MS));
  gate_open(&b.let_go);
  join_thread(r.thread);
  CHECK_OK(r.result);
  CHECK_EQ(LOAD(b.calls), -1);
  invoke_finished(&i);
}

/* ---- It waits for nothing else --------------------------------------------------------------- */

TEST(remove_does_not_wait_for_other_delegates_of_the_multicast) {
  int calls = 0;
  blocker b = BLOCKER_INIT;
  invoker i;
  multicast m = multicast_create();
  add(m, counter(&calls)); /* has been called already by the invocation that runs */
  add(m, blocking(&b));
  add(m, counter(&b.releases));
  invoke_in_background(&i, m);
  gate_wait(&b.entered);
  CHECK_OK(multicast_remove(m, counter(&calls)));
  CHECK_OK(multicast_remove(m, counter(&b.releases)));
  CHECK(!LOAD(b.has_left));
  gate_open(&b.let_go);
  CHECK_EQ(invoke_finished(&i), 2);
}

TEST(remove_does_not_wait_for_the_same_function_in_another_multicast) {
  blocker b = BLOCKER_INIT;
  invoker i;
  multicast m = multicast_create(), other = multicast_create();
  add(m, blocking(&b));
  add(other, blocking(&b));
  invoke_in_background(&i, m);
  gate_wait(&b.entered);
  CHECK_OK(multicast_remove(other, blocking(&b)));
  CHECK(!LOAD(b.has_left));
  gate_open(&b.let_go);
  invoke_finished(&i);
}

static void *invoke_repeatedly(void *argument) {
  scene *s = argument;
  while (!LOAD(s->b.has_left)) multicast_invoke(s->r.target, 0, NULL, 0);
  return NULL;
}

TEST(remove_returns_while_others_keep_invoking) {
  /* A removal that waited for the multicast to be idle would wait for ever. */
  static scene s;
  static int calls[200];
  pthread_t threads[2];
  int i;
  s.r.target = multicast_create();
  add(s.r.target, counter(&calls[0]));
  for (i = 0; i < 2; ++i) threads[i] = start_thread(invoke_repeatedly, &s);
  for (i = 1; i < 200; ++i) {
    add(s.r.target, counter(&calls[i]));
    CHECK_OK(multicast_remove(s.r.target, counter(&calls[i])));
  }
  STORE(s.b.has_left, true);
  for (i = 0; i < 2; ++i) join_thread(threads[i]);
}

/* ---- From inside its own call ---------------------------------------------------------------- */

typedef struct self {
  multicast target;
  multicast_token token;
  int64_t (*remove)(struct self *);
  int64_t result;
  int releases, releases_inside;
} self;

static void remove_own(void *context, uint32_t event, const void *payload, size_t size) {
  self *s = context;
  (void)event;
  (void)payload;
  (void)size;
  s->result = s->remove(s);
  s->releases_inside = s->releases;
}

static void release_self(void *context) { ++((self *)context)->releases; }

static multicast_delegate removing_own(self *s) {
  multicast_delegate d;
  d.function = remove_own;
  d.context = s;
  return d;
}

static int64_t own_remove(self *s) { return multicast_remove(s->target, removing_own(s)); }
static int64_t own_token(self *s) { return multicast_token_remove(s->token); }
static int64_t own_nowait(self *s) { return multicast_token_remove_nowait(s->token); }
static int64_t own_within(self *s) { return multicast_token_remove_within(s->token, UINT64_MAX); }
static int64_t own_at(self *s) { return multicast_remove_at(s->target, 0); }
static int64_t own_destroy(self *s) { return multicast_destroy(s->target); }
static int64_t own_context(self *s) { return multicast_remove_context(s->target, s); }
static int64_t own_all(self *s) { return multicast_remove_all(s->target); }
static int64_t own_many(self *s) {
  multicast_delegate d = removing_own(s);
  return multicast_remove_many(s->target, &d, 1);
}

static void own_call(int64_t (*remove)(self *), int64_t expected) {
  self s = {{0}, {0}, NULL, 0, 0, 0};
  multicast_options options = with_release(release_self);
  s.remove = remove;
  s.target = multicast_create();
  s.token = add_with(s.target, removing_own(&s), &options);
  CHECK_EQ(multicast_invoke(s.target, 0, NULL, 0), 1);
  CHECK_STATUS(s.result, expected);
  CHECK_EQ(s.releases_inside, 0);
  CHECK_EQ(s.releases, 1);
}

TEST(remove_in_its_own_call_is_pending_until_release) { own_call(own_remove, MULTICAST_PENDING); }
TEST(token_remove_in_its_own_call_is_pending) { own_call(own_token, MULTICAST_PENDING); }
TEST(token_remove_nowait_in_its_own_call_is_pending) { own_call(own_nowait, MULTICAST_PENDING); }
TEST(token_remove_within_in_its_own_call_is_pending) { own_call(own_within, MULTICAST_PENDING); }
TEST(remove_at_in_its_own_call_is_pending) { own_call(own_at, MULTICAST_PENDING); }
TEST(destroy_in_its_own_call_is_pending) { own_call(own_destroy, MULTICAST_PENDING); }
TEST(remove_context_in_its_own_call_counts_it) { own_call(own_context, 1); }
TEST(remove_all_in_its_own_call_counts_it) { own_call(own_all, 1); }
TEST(remove_many_in_its_own_call_counts_it) { own_call(own_many, 1); }

static void nest_and_remove(void *context, uint32_t event, const void *payload, size_t size) {
  self *s = context;
  (void)payload;
  (void)size;
  if (event < 3) {
    CHECK_EQ(multicast_invoke(s->target, event + 1, NULL, 0), 1);
    s->releases_inside += s->releases; /* it is still in the calls further out */
  } else {
    s->result = multicast_token_remove(s->token);
  }
}

TEST(remove_in_a_nested_call_is_finished_by_the_outermost) {
  self s = {{0}, {0}, NULL, 0, 0, 0};
  multicast_options options = with_release(release_self);
  multicast_delegate d;
  d.function = nest_and_remove;
  d.context = &s;
  s.target = multicast_create();
  s.token = add_with(s.target, d, &options);
  CHECK_EQ(multicast_invoke(s.target, 0, NULL, 0), 1);
  CHECK_STATUS(s.result, MULTICAST_PENDING);
  CHECK_EQ(s.releases_inside, 0);
  CHECK_EQ(s.releases, 1);
}

/* ---- Cycles of waits ------------------------------------------------------------------------- */

enum { RING = 4 };
static struct {
  multicast target;
  multicast_token token;
  gate entered;
  int64_t result;
  int releases;
} ring[RING];
static int ring_size;
static gate everyone_inside;
static int inside;

static void remove_next(void *context, uint32_t event, const void *payload, size_t size) {
  int i = (int)(intptr_t)context;
  (void)event;
  (void)payload;
  (void)size;
  if (ADD(inside, 1) == ring_size) gate_open(&everyone_inside);
  gate_wait(&everyone_inside);
  ring[i].result = multicast_token_remove(ring[(i + 1) % ring_size].token);
}

static void release_in_ring(void *context) { ADD(ring[(intptr_t)context].releases, 1); }

static void ring_of(int size) {
  static const gate shut = GATE_INIT;
  multicast_options options = with_release(release_in_ring);
  invoker invokers[RING];
  int i, pending = 0;
  ring_size = size;
  everyone_inside = shut;
  for (i = 0; i < size; ++i) {
    multicast_delegate d;
    d.function = remove_next;
    d.context = (void *)(intptr_t)i;
    ring[i].target = multicast_create();
    ring[i].token = add_with(ring[i].target, d, &options);
  }
  for (i = 0; i < size; ++i) invoke_in_background(&invokers[i], ring[i].target);
  for (i = 0; i < size; ++i) CHECK_EQ(invoke_finished(&invokers[i]), 1);
  for (i = 0; i < size; ++i) {
    CHECK(ring[i].result == MULTICAST_OK || ring[i].result == MULTICAST_PENDING);
    pending += ring[i].result == MULTICAST_PENDING;
    CHECK_EQ(LOAD(ring[i].releases), 1);
  }
  CHECK(pending >= 1); /* one at least gave way */
}

TEST(remove_of_each_other_by_two_calls_does_not_hang) { ring_of(2); }
TEST(remove_around_a_ring_of_three_calls_does_not_hang) { ring_of(3); }
TEST(remove_around_a_ring_of_four_calls_does_not_hang) { ring_of(4); }

static void remove_then_report(void *context, uint32_t event, const void *payload, size_t size) {
  remover *r = context;
  (void)event;
  (void)payload;
  (void)size;
  r->result = r->remove(r);
  r->had_left = LOAD(r->b->has_left);
}

TEST(remove_inside_another_delegates_call_waits_where_no_cycle_closes) {
  scene s;
  multicast_delegate d;
  invoker second;
  multicast other = multicast_create();
  begin(&s, by_token);
  d.function = remove_then_report;
  d.context = &s.r;
  add(other, d);
  invoke_in_background(&second, other);
  pause_ms(A_WHILE_MS);
  CHECK(!LOAD(s.b.has_left));
  gate_open(&s.b.let_go);
  CHECK_EQ(invoke_finished(&second), 1);
  CHECK_OK(s.r.result);
  CHECK(s.r.had_left);
  invoke_finished(&s.i);
}

/* ---- Timeouts -------------------------------------------------------------------------------- */

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

TEST(token_remove_within_gives_timeout_and_has_removed) {
  scene s;
  double start;
  begin(&s, by_token);
  start = seconds();
  CHECK_STATUS(multicast_token_remove_within(s.r.token, 30000000), MULTICAST_ERROR_TIMEOUT);
  CHECK(seconds() - start >= 0.030);
  CHECK(!multicast_token_is_live(s.r.token));
  CHECK_EQ(multicast_count(s.r.target), 0);
  CHECK_EQ(LOAD(s.b.releases), 0);
  gate_open(&s.b.let_go);
  CHECK_EQ(invoke_finished(&s.i), 1);
  CHECK_EQ(LOAD(s.b.releases), 1); /* by the call that was the last */
}

/* Nothing is polled: a wait takes hardly any time of the processor. */
TEST(token_remove_within_sleeps_until_its_time_is_up) {
  scene s;
  struct timespec used;
  int round;
  begin(&s, by_token);
  for (round = 0; round < 4; ++round) { /* so that some seconds of the clock begin meanwhile */
    multicast_status status = multicast_token_remove_within(s.r.token, 350000000);
    CHECK_STATUS(status, MULTICAST_ERROR_TIMEOUT);
  }
  CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), 0);
  CHECK_EQ(used.tv_sec, 0);
  if (used.tv_nsec > 100000000) CHECK_EQ(used.tv_nsec, 100000000);
  gate_open(&s.b.let_go);
  invoke_finished(&s.i);
  CHECK_EQ(LOAD(s.b.releases), 1);
}

TEST(token_remove_within_zero_only_looks) {
  scene s;
  double start;
  begin(&s, by_token);
  start = seconds();
  CHECK_STATUS(multicast_token_remove_within(s.r.token, 0), MULTICAST_ERROR_TIMEOUT);
  CHECK(seconds() - start < 5);
  gate_open(&s.b.let_go);
  invoke_finished(&s.i);
  CHECK_EQ(LOAD(s.b.releases), 1);
}

TEST(token_remove_within_zero_of_an_idle_delegate_is_ok) {
  int calls = 0;
  multicast m = multicast_create();
  multicast_token token = add(m, counter(&calls));
  CHECK_OK(multicast_token_remove_within(token, 0));
}

TEST(token_remove_nowait_is_pending_while_a_call_runs) {
  scene s;
  begin(&s, by_token);
  CHECK_STATUS(multicast_token_remove_nowait(s.r.token), MULTICAST_PENDING);
  CHECK(!LOAD(s.b.has_left));
  CHECK_EQ(LOAD(s.b.releases), 0);
  gate_open(&s.b.let_go);
  invoke_finished(&s.i);
  CHECK_EQ(LOAD(s.b.releases), 1);
}

static int signals;
static void count_signal(int number) {
  (void)number;
  ADD(signals, 1);
}

TEST(remove_waits_on_through_signals) {
  scene s;
  struct sigaction action;
  int i;
  memset(&action, 0, sizeof action);
  action.sa_handler = count_signal;
  CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
  begin(&s, by_token);
  s.r.thread = start_thread(remove_in_thread, &s.r);
  for (i = 0; i < 10; ++i) {
    pause_ms(4);
    CHECK_EQ(pthread_kill(s.r.thread, SIGUSR1), 0);
  }
  CHECK(!gate_opens_within(&s.r.returned, 10));
  CHECK(LOAD(signals) > 0);
  gate_open(&s.b.let_go);
  join_thread(s.r.thread);
  CHECK_OK(s.r.result);
  CHECK(s.r.had_left);
  invoke_finished(&s.i);
}

TEST(remove_waits_on_through_cancellation) {
  scene s;
  begin(&s, by_token);
  s.r.thread = start_thread(remove_in_thread, &s.r);
  pause_ms(10);
  CHECK_EQ(pthread_cancel(s.r.thread), 0);
  CHECK(!gate_opens_within(&s.r.returned, A_WHILE_MS));
  CHECK_EQ(LOAD(s.b.releases), 0);
  gate_open(&s.b.let_go);
  invoke_finished(&s.i);
  while (LOAD(s.b.releases) == 0) pause_ms(1);
  pthread_join(s.r.thread, NULL);
  CHECK_EQ(multicast_count(s.r.target), 0); /* no lock was left behind */
}

/* ---- What others are removing ---------------------------------------------------------------- */

static void second_removal(int64_t (*first)(remover *), int64_t (*second)(remover *),
                           int64_t expected) {
  scene s;
  begin(&s, second);
  CHECK_STATUS(first(&s.r), MULTICAST_PENDING);
  s.r.thread = start_thread(remove_in_thread, &s.r);
  CHECK(!gate_opens_within(&s.r.returned, A_WHILE_MS));
  gate_open(&s.b.let_go);
  join_thread(s.r.thread);
  CHECK_STATUS(s.r.result, expected);
  CHECK(s.r.had_left);
  invoke_finished(&s.i);
  CHECK_EQ(LOAD(s.b.releases), 1);
}

static int64_t by_token_nowait(remover *r) { return multicast_token_remove_nowait(r->token); }
static int64_t context_count(remover *r) { return multicast_remove_context(r->target, r->b); }
static int64_t all_count(remover *r) { return multicast_remove_all(r->target); }

TEST(remove_of_what_was_just_removed_is_not_found_after_waiting) {
  second_removal(by_token_nowait, by_remove, MULTICAST_ERROR_NOT_FOUND);
}
TEST(token_remove_of_what_was_just_removed_is_invalid_handle_after_waiting) {
  second_removal(by_token_nowait, by_token, MULTICAST_ERROR_INVALID_HANDLE);
}
TEST(remove_context_of_what_was_just_removed_waits) {
  second_removal(by_token_nowait, context_count, 0);
}
TEST(remove_all_after_a_removal_without_waiting_waits) {
  second_removal(by_token_nowait, all_count, 0);
}
TEST(destroy_after_a_removal_without_waiting_waits) {
  second_removal(by_token_nowait, by_destroy, MULTICAST_OK);
}

TEST(token_remove_within_of_what_was_just_removed_gives_timeout) {
  scene s;
  begin(&s, by_token);
  CHECK_STATUS(multicast_token_remove_nowait(s.r.token), MULTICAST_PENDING);
  CHECK_STATUS(multicast_token_remove_within(s.r.token, 1000000), MULTICAST_ERROR_TIMEOUT);
  gate_open(&s.b.let_go);
  invoke_finished(&s.i);
  CHECK_STATUS(multicast_token_remove_within(s.r.token, 1000000), MULTICAST_ERROR_INVALID_HANDLE);
}

static int64_t by_destroy_count(remover *r) { return multicast_destroy(r->target); }

static void removal_beside_destroy(int64_t (*second)(remover *)) {
  scene s;
  remover other;
  static const gate shut = GATE_INIT;
  begin(&s, by_destroy_count);
  other = s.r;
  other.returned = shut;
  other.remove = second;
  s.r.thread = start_thread(remove_in_thread, &s.r);
  while (multicast_is_valid(s.r.target)) pause_ms(1);
  other.thread = start_thread(remove_in_thread, &other);
  CHECK(!gate_opens_within(&other.returned, A_WHILE_MS));
  gate_open(&s.b.let_go);
  join_thread(s.r.thread);
  join_thread(other.thread);
  CHECK_OK(s.r.result);
  CHECK_STATUS(other.result, MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(s.r.had_left && other.had_left);
  invoke_finished(&s.i);
}

TEST(destroy_beside_a_destroy_that_waits_is_invalid_handle_after_waiting) {
  removal_beside_destroy(by_destroy_count);
}
TEST(remove_beside_a_destroy_that_waits_is_invalid_handle_after_waiting) {
  removal_beside_destroy(by_remove);
}
TEST(remove_all_beside_a_destroy_that_waits_is_invalid_handle_after_waiting) {
  removal_beside_destroy(all_count);
}
TEST(remove_context_beside_a_destroy_that_waits_is_invalid_handle_after_waiting) {
  removal_beside_destroy(context_count);
}

TEST(remove_by_two_threads_at_once_succeeds_for_one_and_waits_for_both) {
  scene s;
  remover other;
  static const gate shut = GATE_INIT;
  begin(&s, by_token);
  other = s.r;
  other.returned = shut;
  s.r.thread = start_thread(remove_in_thread, &s.r);
  other.thread = start_thread(remove_in_thread, &other);
  CHECK(!gate_opens_within(&s.r.returned, A_WHILE_MS));
  CHECK(!gate_opens_within(&other.returned, 1));
  gate_open(&s.b.let_go);
  join_thread(s.r.thread);
  join_thread(other.thread);
  CHECK(s.r.had_left && other.had_left);
  CHECK_EQ((s.r.result == MULTICAST_OK) + (other.result == MULTICAST_OK), 1);
  CHECK_EQ((s.r.result == MULTICAST_ERROR_INVALID_HANDLE) +
               (other.result == MULTICAST_ERROR_INVALID_HANDLE),
           1);
  invoke_finished(&s.i);
  CHECK_EQ(LOAD(s.b.releases), 1);
}

/* A delegate that is called once has returned when its call has; its release is not waited for. */
static multicast_token once_token, crossing_token;
static gate once_entered = GATE_INIT, crossing_entered = GATE_INIT, crossing_waits = GATE_INIT;
static int64_t in_release = INT64_MIN, in_crossing = INT64_MIN;

static void stay_a_while(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context;
  (void)event;
  (void)payload;
  (void)size;
  gate_open(&once_entered);
  gate_wait(&crossing_waits);
  pause_ms(A_WHILE_MS);
}

static void remove_crossing(void *context) {
  (void)context;
  in_release = multicast_token_remove(crossing_token);
}

static void wait_for_once(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context;
  (void)event;
  (void)payload;
  (void)size;
  gate_open(&crossing_entered);
  gate_wait(&once_entered);
  gate_open(&crossing_waits);
  in_crossing = multicast_token_remove(once_token);
}

TEST(remove_waits_for_the_call_of_a_delegate_called_once_and_not_for_its_release) {
  multicast m = multicast_create(), other = multicast_create();
  multicast_options options = with_release(remove_crossing);
  multicast_delegate once = {stay_a_while, NULL}, crossing = {wait_for_once, NULL};
  invoker first, second;
  options.flags = MULTICAST_ONCE;
  once_token = add_with(m, once, &options);
  crossing_token = add(other, crossing);
  invoke_in_background(&second, other);
  gate_wait(&crossing_entered);
  invoke_in_background(&first, m);
  CHECK_EQ(invoke_finished(&first), 1);
  CHECK_EQ(invoke_finished(&second), 1);
  CHECK_STATUS(in_release, MULTICAST_OK);
  CHECK_STATUS(in_crossing, MULTICAST_ERROR_INVALID_HANDLE);
}

static void *end_lifetime(void *argument) {
  CHECK_OK(multicast_lifetime_end(*(multicast_lifetime *)argument));
  return NULL;
}

TEST(lifetime_end_releases_what_has_returned_while_it_waits_for_the_rest) {
  blocker slow = BLOCKER_INIT, quick = BLOCKER_INIT;
  multicast m = multicast_create(), other = multicast_create();
  multicast_lifetime l = multicast_lifetime_create();
  multicast_options options = with_release(release_blocker);
  invoker first, second;
  options.lifetime = l;
  add_with(m, blocking(&slow), &options);
  add_with(other, blocking(&quick), &options);
  invoke_in_background(&first, m);
  invoke_in_background(&second, other);
  gate_wait(&slow.entered);
  gate_wait(&quick.entered);
  {
    pthread_t thread = start_thread(end_lifetime, &l);
    pause_ms(A_WHILE_MS);
    gate_open(&quick.let_go);
    invoke_finished(&second);
    while (LOAD(quick.releases) == 0) pause_ms(1); /* though the slow one is still waited for */
    CHECK(!LOAD(slow.has_left));
    gate_open(&slow.let_go);
    join_thread(thread);
  }
  invoke_finished(&first);
  CHECK_EQ(LOAD(slow.releases), 1);
}

typedef struct sweeper {
  multicast target;
  gate may_sweep;
  int64_t result;
  int releases;
} sweeper;

static void remove_everything(void *context, uint32_t event, const void *payload, size_t size) {
  sweeper *s = context;
  (void)payload;
  (void)size;
  if (event != 1) return;
  gate_wait(&s->may_sweep);
  s->result = multicast_remove_all(s->target);
}

static void release_sweeper(void *context) { ++((sweeper *)context)->releases; }

static void *invoke_event_one(void *argument) {
  multicast_invoke(*(multicast *)argument, 1, NULL, 0);
  return NULL;
}

typedef struct event_invoker {
  multicast target;
  uint32_t event;
} event_invoker;

static void *invoke_event(void *argument) {
  event_invoker i = *(event_invoker *)argument;
  free(argument);
  multicast_invoke(i.target, i.event, NULL, 0);
  return NULL;
}

static void start_event_invoker(invoker *i, multicast m, uint32_t event) {
  event_invoker *argument = malloc(sizeof *argument);
  CHECK(argument != NULL);
  argument->target = m;
  argument->event = event;
  i->thread = start_thread(invoke_event, argument);
}

TEST(remove_all_in_a_call_waits_for_those_of_others_and_leaves_its_own) {
  /* Some run elsewhere, one runs here, some do not run: each is released once, in its own way. */
  enum { RUNNING = 3, IDLE = 3 };
  blocker running[RUNNING];
  invoker invokers[RUNNING];
  static const blocker fresh = BLOCKER_INIT;
  static const gate shut = GATE_INIT;
  int idle[IDLE] = {0}, i, round;
  for (round = 0; round < 2; ++round) {
    multicast m = multicast_create();
    multicast_delegate d;
    multicast_options options = with_release(release_sweeper);
    sweeper s = {{0}, GATE_INIT, 0, 0};
    pthread_t thread;
    s.target = m;
    s.may_sweep = shut;
    d.function = remove_everything;
    d.context = &s;
    options.events = 2; /* the others' invocations leave it out */
    if (round == 0) add_with(m, d, &options);
    options.release = release_blocker;
    for (i = 0; i < RUNNING; ++i) {
      running[i] = fresh;
      options.events = UINT64_C(1) << (i + 2);
      add_with(m, blocking(&running[i]), &options);
    }
    options.release = count_release;
    options.events = UINT64_C(1) << 60;
    for (i = 0; i < IDLE; ++i) {
      idle[i] = 0;
      add_with(m, counter(&idle[i]), &options);
    }
    options.release = release_sweeper;
    options.events = 2;
    if (round == 1) add_with(m, d, &options);
    for (i = 0; i < RUNNING; ++i) {
      start_event_invoker(&invokers[i], m, (uint32_t)(i + 2));
      gate_wait(&running[i].entered);
    }
    thread = start_thread(invoke_event_one, &m);
    gate_open(&s.may_sweep);
    pause_ms(A_WHILE_MS);
    for (i = 0; i < IDLE; ++i) CHECK_EQ(LOAD(idle[i]), 1); /* not held up by the others */
    for (i = 0; i < RUNNING; ++i) {
      CHECK_EQ(LOAD(running[i].releases), 0);
      gate_open(&running[i].let_go);
      while (LOAD(running[i].releases) == 0) pause_ms(1);
    }
    join_thread(thread);
    for (i = 0; i < RUNNING; ++i) join_thread(invokers[i].thread);
    CHECK_EQ(s.result, RUNNING + IDLE + 1);
    CHECK_EQ(s.releases, 1);
    for (i = 0; i < RUNNING; ++i) CHECK_EQ(LOAD(running[i].releases), 1);
    for (i = 0; i < IDLE; ++i) CHECK_EQ(LOAD(idle[i]), 1);
    CHECK_OK(multicast_destroy(m));
  }
}

/* ---- OK means what it says ------------------------------------------------------------------- */

typedef struct guarded {
  uint32_t alive; /* plain: a call after the removal is a race that the thread sanitizer sees */
} guarded;

static multicast churned;
static bool churn_is_over;

static void touch(void *context, uint32_t event, const void *payload, size_t size) {
  guarded *g = context;
  (void)event;
  (void)payload;
  (void)size;
  CHECK_EQ(g->alive, 0xA11CE);
}

static void *invoke_until_over(void *unused) {
  (void)unused;
  while (!LOAD(churn_is_over)) CHECK(multicast_invoke(churned, 0, NULL, 0) >= 0);
  return NULL;
}

TEST(remove_returning_ok_means_the_context_may_be_freed) {
  enum { ROUNDS = 3000, THREADS = 3 };
  pthread_t threads[THREADS];
  int i;
  churned = multicast_create();
  for (i = 0; i < THREADS; ++i) threads[i] = start_thread(invoke_until_over, NULL);
  for (i = 0; i < ROUNDS; ++i) {
    guarded *g = malloc(sizeof *g);
    multicast_delegate d;
    multicast_token token;
    CHECK(g != NULL);
    g->alive = 0xA11CE;
    d.function = touch;
    d.context = g;
    token = add(churned, d);
    if (i % 3 == 0) {
      CHECK_OK(multicast_token_remove(token));
    } else if (i % 3 == 1) {
      CHECK_OK(multicast_remove(churned, d));
    } else {
      CHECK_EQ(multicast_remove_context(churned, g), 1);
    }
    g->alive = 0xDEAD;
    free(g);
  }
  STORE(churn_is_over, true);
  for (i = 0; i < THREADS; ++i) join_thread(threads[i]);
  CHECK_EQ(multicast_count(churned), 0);
}
