/* The library calls a queue's `wake` function to notify an event loop that calls are waiting. The
 * library holds no lock while it calls `wake`, and never calls `wake` after the queue has been
 * destroyed. */

#include "notes.h"
#include "payloads.h"

/* ---- Queues with a `wake` function ----------------------------------------------------------- */

typedef struct woken {
  multicast_queue queue;
  multicast target;
  int wakes;
  pthread_t thread; /* the thread of the last call */
  void (*then)(struct woken *w);
  gate entered, let_go;
  bool has_left, blocks;
  multicast_status status;
  int64_t result;
  multicast_token current;
  int64_t depth;
} woken;

static void wake(void *context) {
  woken *w = context;
  w->thread = pthread_self();
  w->current = multicast_token_current();
  w->depth = multicast_call_stack(NULL, 0);
  ADD(w->wakes, 1);
  if (w->blocks) {
    gate_open(&w->entered);
    gate_wait(&w->let_go);
  }
  if (w->then != NULL) w->then(w);
  STORE(w->has_left, true);
}

static void begin_woken_with(woken *w, uint32_t capacity, multicast_overflow overflow) {
  memset(w, 0, sizeof *w);
  w->entered = shut;
  w->let_go = shut;
  w->queue = multicast_queue_create(&QUEUE_OPTIONS(.capacity = capacity, .overflow = overflow,
                                                   .wake = wake, .wake_context = w));
  CHECK(w->queue.id != 0);
  w->target = multicast_create();
}

static void begin_woken(woken *w) { begin_woken_with(w, 0, MULTICAST_OVERFLOW_REFUSE); }

static void expect_wakes(woken *w, int wakes) { CHECK_EQ(LOAD(w->wakes), wakes); }

/* ---- Options --------------------------------------------------------------------------------- */

static void *last_context = &last_context;
static void note_context(void *context) { last_context = context; }

TEST_OF_MULTICAST(queue_wake_gets_its_context_also_if_that_is_null) {
  multicast_queue q = multicast_queue_create(&QUEUE_OPTIONS(.wake = note_context));
  add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(last_context == NULL);
}

/* ---- When `wake` is called ------------------------------------------------------------------- */

static woken *begin(void) {
  static woken w;
  begin_woken(&w);
  return &w;
}

#define TEST_OF_WAKE(NAME) TEST_OF(NAME, (woken *w), (begin()))

TEST_OF_WAKE(queue_wake_is_called_when_a_call_is_queued_and_none_waited) {
  add_queued(w->target, counter(&calls), w->queue);
  add_queued(w->target, counter(&calls), w->queue);
  expect_wakes(w, 0);
  for (int i = 0; i < 3; ++i) {
    CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 2);
    expect_wakes(w, 1);
  }
  CHECK(pthread_equal(w->thread, pthread_self()));
  CHECK_EQ(multicast_queue_run(w->queue, 0), 6);
  expect_wakes(w, 1);
  CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 2);
  expect_wakes(w, 2);
}

TEST_OF_WAKE(queue_wake_is_called_on_the_thread_that_invokes) {
  invoker i;
  add_queued(w->target, counter(&calls), w->queue);
  invoke_in_background(&i, w->target);
  CHECK_EQ(invoke_finished(&i), 1);
  expect_wakes(w, 1);
  CHECK(pthread_equal(w->thread, i.thread));
}

TEST_OF_WAKE(queue_wake_is_called_by_every_kind_of_invocation) {
  cargo c = {0, 0, 0};
  static const char large[100];
  multicast_token t = add_queued(w->target, counter(&calls), w->queue);
  CHECK_EQ(multicast_invoke(w->target, 0, large, sizeof large), 1);
  CHECK_EQ(multicast_queue_run(w->queue, 0), 1);
  expect_wakes(w, 1);
  CHECK_EQ(hand_over(w->target, &c), 1);
  CHECK_EQ(multicast_queue_run(w->queue, 0), 1);
  expect_wakes(w, 2);
  CHECK_EQ(multicast_token_invoke(t, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(w->queue, 0), 1);
  expect_wakes(w, 3);
  multicast_invocation how = INVOCATION(.flags = MULTICAST_WAIT, .timeout_ns = 1);
  CHECK(multicast_invoke_with(w->target, &how, NULL) != 0);
  expect_wakes(w, 4);
}

TEST_OF_WAKE(queue_wake_is_called_when_a_run_ends_and_calls_still_wait) {
  runner run;
  add_queued(w->target, counter(&calls), w->queue);
  for (int i = 0; i < 5; ++i) CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 1);
  expect_wakes(w, 1);
  run_in_background(&run, w->queue, 2);
  CHECK_EQ(run_finished(&run), 2);
  expect_wakes(w, 2);
  CHECK(pthread_equal(w->thread, run.thread));
  CHECK_EQ(multicast_queue_run(w->queue, 2), 2);
  expect_wakes(w, 3);
  CHECK_EQ(multicast_queue_run(w->queue, 2), 1);
  expect_wakes(w, 3);
  CHECK_EQ(multicast_queue_run(w->queue, 2), 0);
  expect_wakes(w, 3);
}

/* The context of a delegate whose first call makes the next call in a nested run. */
typedef struct again {
  woken *w;
  int left, calls;
  int64_t nested;
} again;

FUNCTION(run_one_inside, again *a) {
  if (++a->calls > 1) return;
  a->nested = multicast_queue_run(a->w->queue, 1);
  a->left = LOAD(a->w->wakes);
}

TEST_OF_WAKE(queue_wake_is_called_at_the_end_of_the_outermost_run_only) {
  again a = {w, 0, 0, 0};
  add_queued(w->target, DELEGATE(run_one_inside, &a), w->queue);
  for (int i = 0; i < 4; ++i) CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(w->queue, 2), 2);
  CHECK_EQ(a.nested, 1);
  CHECK_EQ(a.left, 1); /* the nested run did not call `wake`, because the outer run continues */
  expect_wakes(w, 2);
  CHECK_EQ(stats_of(w->queue).pending, 1);
}

TEST(queue_wake_is_not_called_without_need) {
  woken w;
  multicast latest = multicast_create();
  begin_woken_with(&w, 1, MULTICAST_OVERFLOW_REFUSE);
  multicast_token t = add_queued(w.target, counter(&calls), w.queue);
  CHECK_EQ(multicast_queue_run(w.queue, 0), 0);
  CHECK_EQ(multicast_queue_clear(w.queue), 0);
  CHECK_ERROR(multicast_queue_wait(w.queue, 0), TIMEOUT);
  CHECK_OK(multicast_token_pause(t));
  CHECK_EQ(multicast_invoke(w.target, 0, NULL, 0), 0);
  CHECK_OK(multicast_token_resume(t));
  expect_wakes(&w, 0);
  multicast_invocation how = INVOCATION(.copy = copy_nothing);
  /* the payload cannot be copied, so no call is queued */
  CHECK_EQ(multicast_invoke_with(w.target, &how, NULL), 0);
  expect_wakes(&w, 0);
  CHECK_EQ(multicast_invoke(w.target, 0, NULL, 0), 1);
  expect_wakes(&w, 1);
  CHECK_EQ(multicast_invoke(w.target, 0, NULL, 0), 0); /* the full queue refuses the call */
  expect_wakes(&w, 1);
  CHECK_EQ(multicast_queue_clear(w.queue), 1);
  expect_wakes(&w, 1);
  CHECK_EQ(multicast_queue_run(w.queue, 0), 0);
  add_flagged(latest, counter(&calls), w.queue, MULTICAST_LATEST);
  CHECK_EQ(multicast_invoke(latest, 0, NULL, 0), 1);
  expect_wakes(&w, 2);
  CHECK_EQ(multicast_invoke(latest, 0, NULL, 0), 1); /* replaces the waiting call */
  expect_wakes(&w, 2);
  CHECK_EQ(multicast_remove_all(latest), 1);
  /* `wake` is not called again, because the queue has not been run since the last wake */
  CHECK_EQ(multicast_invoke(w.target, 0, NULL, 0), 1);
  expect_wakes(&w, 2);
  CHECK_OK(multicast_queue_destroy(w.queue)); /* while a call is waiting */
  expect_wakes(&w, 2);
}

TEST(queue_wake_is_not_called_when_a_call_drops_the_oldest) {
  woken w;
  begin_woken_with(&w, 1, MULTICAST_OVERFLOW_DROP_OLDEST);
  add_queued(w.target, counter(&calls), w.queue);
  for (int i = 0; i < 3; ++i) CHECK_EQ(multicast_invoke(w.target, 0, NULL, 0), 1);
  expect_wakes(&w, 1);
}

/* A queued call may run another event loop. The library must wake that event loop for each new
 * call, even if other calls have been waiting the whole time. */
static int wakes_inside;

FUNCTION(invoke_and_count_wakes, woken *w) {
  if (event != 1) return;
  w->wakes = 0;
  CHECK_EQ(multicast_invoke(w->target, 2, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(w->target, 2, NULL, 0), 1);
  wakes_inside = w->wakes;
}

TEST_OF_WAKE(queue_wake_is_called_for_call_that_call_of_queue_queues) {
  add_queued(w->target, DELEGATE(invoke_and_count_wakes, w), w->queue);
  CHECK_EQ(multicast_invoke(w->target, 1, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(w->target, 2, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(w->queue, 0), 2);
  CHECK_EQ(wakes_inside, 1);
  CHECK_EQ(multicast_queue_run(w->queue, 0), 2);
}

TEST_OF_WAKE(queue_wake_is_called_again_after_a_run_that_was_refused) {
  runner run;
  blocker b = BLOCKER_INIT;
  add_queued(w->target, blocking(&b), w->queue);
  CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 1);
  run_in_background(&run, w->queue, 0);
  gate_wait(&b.entered);
  CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 1);
  expect_wakes(w, 2);
  CHECK_ERROR(multicast_queue_run(w->queue, 0), STATE);
  gate_open(&b.let_go);
  CHECK_EQ(run_finished(&run), 1);
  expect_wakes(w, 3);
}

THREAD(invoke_target, woken *argument) {
  CHECK_EQ(multicast_invoke(argument->target, 0, NULL, 0), 1);
}

TEST(queue_wake_is_called_for_a_call_that_has_waited_for_room) {
  woken w;
  begin_woken_with(&w, 1, MULTICAST_OVERFLOW_BLOCK);
  add_queued(w.target, counter(&calls), w.queue);
  CHECK_EQ(multicast_invoke(w.target, 0, NULL, 0), 1);
  expect_wakes(&w, 1);
  pthread_t blocked = start_thread(invoke_target, &w);
  pause_ms(A_WHILE_MS);
  expect_wakes(&w, 1);
  CHECK_EQ(multicast_queue_run(w.queue, 0), 1);
  join_thread(blocked);
  expect_wakes(&w, 2);
  CHECK(pthread_equal(w.thread, blocked));
}

TEST_OF_WAKE(queue_wake_of_a_queue_with_a_thread_is_called_too) {
  add_queued(w->target, counter(&calls), w->queue);
  CHECK_OK(multicast_queue_start(w->queue));
  CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 1);
  expect_wakes(w, 1);
  EVENTUALLY(LOAD(calls) == 1);
  CHECK_OK(multicast_queue_destroy(w->queue));
  expect_wakes(w, 1);
}

/* ---- Using the library inside `wake` --------------------------------------------------------- */

static void run_all(woken *w) { w->result = multicast_queue_run(w->queue, 0); }

TEST_OF_WAKE(queue_wake_may_run_the_queue) {
  w->then = run_all;
  add_queued(w->target, counter(&calls), w->queue);
  CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 1);
  CHECK_EQ(w->result, 1);
  CHECK_EQ(calls, 1);
  CHECK_EQ(w->depth, 0); /* `wake` runs outside all calls */
  CHECK_EQ(w->current.id, 0);
}

TEST_OF_WAKE(queue_wake_at_the_end_of_a_run_may_run_the_queue) {
  add_queued(w->target, counter(&calls), w->queue);
  for (int i = 0; i < 5; ++i) CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 1);
  w->then = run_all;
  CHECK_EQ(multicast_queue_run(w->queue, 2), 2);
  CHECK_EQ(w->result, 3);
  CHECK_EQ(calls, 5);
  CHECK_EQ(stats_of(w->queue).delivered, 5);
}

THREAD(use_queue, woken *w) {
  CHECK(stats_of(w->queue).pending > 0);
  CHECK(multicast_queue_clear(w->queue) > 0);
  CHECK(multicast_count(w->target) >= 1);
  CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 1);
}

static void use_on_another_thread(woken *w) {
  w->then = NULL;
  on_another_thread(use_queue, w);
}

TEST_OF_WAKE(queue_wake_runs_while_no_lock_is_held) {
  w->then = use_on_another_thread;
  add_queued(w->target, counter(&calls), w->queue);
  CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 1);
  expect_wakes(w, 1);
  CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 1);
  w->then = use_on_another_thread; /* this time, the run calls `wake` at its end */
  CHECK_EQ(multicast_queue_run(w->queue, 1), 1);
  expect_wakes(w, 2);
}

THREAD(run_queue_once, woken *argument) {
  argument->result = multicast_queue_run(argument->queue, 0);
}

static void run_on_another_thread(woken *w) {
  w->then = NULL;
  on_another_thread(run_queue_once, w);
}

TEST_OF_WAKE(queue_wake_at_end_of_run_may_have_another_thread_run_queue) {
  add_queued(w->target, counter(&calls), w->queue);
  for (int i = 0; i < 3; ++i) CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 1);
  w->then = run_on_another_thread;
  CHECK_EQ(multicast_queue_run(w->queue, 1), 1);
  CHECK_EQ(w->result, 2);
  CHECK_EQ(calls, 3);
}

static void remove_everything(woken *w) {
  w->result = multicast_remove_all(w->target);
  w->status = multicast_destroy(w->target);
}

TEST_OF_WAKE(queue_wake_may_remove_and_destroy_the_multicast) {
  w->then = remove_everything;
  add_queued(w->target, counter(&calls), w->queue);
  add_queued(w->target, counter(&calls), w->queue);
  /* `wake` removes the second delegate before a call to it can be queued */
  CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 1);
  CHECK_EQ(w->result, 2);
  CHECK_OK(w->status);
  CHECK_TEXT(figures(w->queue), "queued 1, cancelled 1");
}

static void destroy_own_queue(woken *w) {
  w->then = NULL;
  w->status = multicast_queue_destroy(w->queue);
  CHECK_ERROR(multicast_queue_destroy(w->queue), INVALID_HANDLE);
}

TEST(queue_destroy_inside_its_wake_is_pending) {
  woken w;
  for (int i = 0; i < 2; ++i) {
    begin_woken(&w);
    add_queued(w.target, counter(&calls), w.queue);
    if (i == 0) w.then = destroy_own_queue;
    for (int round = 0; round < (i == 0 ? 1 : 3); ++round)
      CHECK_EQ(multicast_invoke(w.target, 0, NULL, 0), 1);
    if (i == 1) {
      w.then = destroy_own_queue; /* this time, the run calls `wake` at its end */
      CHECK_EQ(multicast_queue_run(w.queue, 1), 1);
    }
    CHECK_STATUS(w.status, MULTICAST_PENDING);
    CHECK(!multicast_queue_is_valid(w.queue));
    CHECK_EQ(multicast_count(w.target), 0);
    CHECK_EQ(multicast_invoke(w.target, 0, NULL, 0), 0);
    expect_wakes(&w, i + 1);
  }
}

static multicast_token token_in_wake;

static void remove_itself_in_wake(woken *w) { w->status = multicast_token_remove(token_in_wake); }

TEST_OF_WAKE(queue_wake_is_no_call_of_the_delegate) {
  w->then = remove_itself_in_wake;
  token_in_wake = add_queued(w->target, counter(&calls), w->queue);
  CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 1);
  CHECK_OK(w->status);
  CHECK_EQ(stats_of(w->queue).pending, 0);
}

typedef struct invoking_call {
  woken *w;
  multicast_token token;
} invoking_call;

static void invoke_target_inside(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_EQ(multicast_invoke(((invoking_call *)context)->w->target, 0, NULL, 0), 1);
}

TEST_OF_MULTICAST(queue_wake_inside_a_call_is_not_on_the_call_stack) {
  woken w;
  invoking_call c;
  begin_woken(&w);
  c.w = &w;
  c.token = add(m, DELEGATE(invoke_target_inside, &c));
  add_queued(w.target, counter(&calls), w.queue);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(w.depth, 1);
  CHECK_EQ(w.current.id, c.token.id);
}

/* ---- Destruction ----------------------------------------------------------------------------- */

typedef struct destroyer {
  woken *w;
  uint64_t timeout_ns;
  multicast_status status;
  bool had_left;
  gate returned;
  pthread_t thread;
} destroyer;

THREAD(destroy_in_thread, destroyer *d) {
  d->status = d->timeout_ns == MULTICAST_FOREVER
                  ? multicast_queue_destroy(d->w->queue)
                  : multicast_queue_destroy_within(d->w->queue, d->timeout_ns);
  d->had_left = LOAD(d->w->has_left);
  gate_open(&d->returned);
}

static void destroy_in_background(destroyer *d, woken *w) {
  d->w = w;
  d->timeout_ns = MULTICAST_FOREVER;
  d->returned = shut;
  d->thread = start_thread(destroy_in_thread, d);
}

/* Starts a thread that stays inside `wake`, which is called by an invocation or, if `at_end` is
 * set, at the end of a run. */
static void begin_blocked_wake(woken *w, invoker *i, runner *run, int *calls, bool at_end) {
  begin_woken(w);
  add_queued(w->target, counter(calls), w->queue);
  if (at_end) {
    CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 1);
    CHECK_EQ(multicast_invoke(w->target, 0, NULL, 0), 1);
  }
  w->has_left = false;
  w->blocks = true;
  if (at_end) {
    run_in_background(run, w->queue, 1);
  } else {
    invoke_in_background(i, w->target);
  }
  gate_wait(&w->entered);
}

TEST(queue_destroy_waits_for_a_wake_on_another_thread) {
  for (int at_end = 0; at_end < 2; ++at_end) {
    woken w;
    invoker i;
    runner run;
    destroyer d, second;
    int calls = 0;
    begin_blocked_wake(&w, &i, &run, &calls, at_end == 1);
    destroy_in_background(&d, &w);
    CHECK(!gate_opens_within(&d.returned, A_WHILE_MS));
    CHECK(!multicast_queue_is_valid(w.queue));
    destroy_in_background(&second, &w);
    CHECK(!gate_opens_within(&second.returned, A_WHILE_MS)); /* the second caller also waits */
    gate_open(&w.let_go);
    join_thread(d.thread);
    join_thread(second.thread);
    CHECK_OK(d.status);
    CHECK_ERROR(second.status, INVALID_HANDLE);
    CHECK(d.had_left && second.had_left);
    CHECK_EQ(at_end ? run_finished(&run) : invoke_finished(&i), 1);
  }
}

TEST(queue_destroy_within_a_time_does_not_wait_longer_for_a_wake) {
  static const uint64_t times[] = {0, UINT64_C(20000000)};
  for (size_t k = 0; k < 2; ++k) {
    woken w;
    invoker i;
    int calls = 0;
    begin_blocked_wake(&w, &i, NULL, &calls, false);
    CHECK_ERROR(multicast_queue_destroy_within(w.queue, times[k]), TIMEOUT);
    CHECK(!multicast_queue_is_valid(w.queue));
    CHECK_ERROR(multicast_queue_destroy(w.queue), INVALID_HANDLE);
    gate_open(&w.let_go);
    CHECK_EQ(invoke_finished(&i), 1);
    expect_wakes(&w, 1);
  }
}

/* The thread that destroys the queue is in a call to a delegate. The thread inside `wake` is
 * removing that delegate and waiting for the call. */
static woken *pending_woken;
static multicast_status pending_status;

FUNCTION(destroy_inside_call, blocker *b) {
  gate_open(&b->entered);
  gate_wait(&b->let_go);
  pending_status = multicast_queue_destroy(pending_woken->queue);
}

static multicast pending_target;
static multicast_delegate pending_delegate;

static void remove_the_destroyer(woken *w) {
  w->status = multicast_remove(pending_target, pending_delegate);
}

TEST(queue_destroy_is_pending_if_the_wake_waits_for_this_thread) {
  static woken w;
  static blocker b = BLOCKER_INIT;
  invoker i;
  begin_woken(&w);
  pending_woken = &w;
  pending_target = multicast_create();
  pending_delegate.function = destroy_inside_call;
  pending_delegate.context = &b;
  add(pending_target, pending_delegate);
  begin_blocked(&b, pending_target);
  add_queued(w.target, counter(&calls), w.queue);
  w.then = remove_the_destroyer;
  w.blocks = true;
  gate_open(&w.let_go);
  invoke_in_background(&i, w.target);
  gate_wait(&w.entered);
  pthread_t opener = start_thread(open_after_a_while, &b.let_go);
  CHECK_EQ(invoke_finished(&b.invoking), 1);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_STATUS(pending_status, MULTICAST_PENDING);
  CHECK_OK(w.status);
  join_thread(opener);
}

static void destroy_and_note(woken *w) {
  w->then = NULL;
  w->status = multicast_queue_destroy(w->queue);
}

TEST(queue_destroy_on_another_thread_and_in_the_wake_at_once_ends) {
  woken w;
  invoker i;
  destroyer d;
  begin_blocked_wake(&w, &i, NULL, &calls, false);
  w.then = destroy_and_note;
  destroy_in_background(&d, &w);
  CHECK(!gate_opens_within(&d.returned, A_WHILE_MS));
  gate_open(&w.let_go);
  join_thread(d.thread);
  CHECK_OK(d.status);
  CHECK(d.had_left);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK(w.status == MULTICAST_ERROR_INVALID_HANDLE || w.status == MULTICAST_PENDING);
}

TEST(removal_does_not_wait_for_a_wake) {
  woken w;
  invoker i;
  begin_blocked_wake(&w, &i, NULL, &calls, false);
  CHECK_OK(multicast_remove(w.target, counter(&calls)));
  gate_open(&w.let_go);
  CHECK_EQ(invoke_finished(&i), 1);
}

/* ---- No call to `wake` after the destruction ------------------------------------------------- */

typedef struct poisoned {
  uint32_t magic;
  int wakes;
} poisoned;
enum { IS_ALIVE = 0x600DF00D, IS_GONE = 0x0BADF00D };

static void wake_poisoned(void *context) {
  poisoned *p = context;
  CHECK_EQ(p->magic, (uint32_t)IS_ALIVE);
  ADD(p->wakes, 1);
  CHECK_EQ(p->magic, (uint32_t)IS_ALIVE);
}

static multicast stormed;
static multicast_queue current_queue;
static bool is_over;

THREAD(invoke_on_and_on, void *unused) {
  while (!LOAD(is_over)) {
    CHECK(multicast_invoke(stormed, 0, NULL, 0) >= 0);
    multicast_queue q = {LOAD(current_queue.id)};
    multicast_queue_run(q, 1);
  }
}

TEST(queue_wake_is_never_called_after_the_destruction) {
  enum { QUEUES = 2000 };
  static poisoned contexts[QUEUES];
  pthread_t threads[3];
  int wakes = 0;
  stormed = multicast_create();
  for (int i = 0; i < 3; ++i) threads[i] = start_thread(invoke_on_and_on, NULL);
  for (int i = 0; i < QUEUES; ++i) {
    contexts[i].magic = IS_ALIVE;
    multicast_queue_options options = QUEUE_OPTIONS(.capacity = 2, .wake = wake_poisoned,
                                                    .wake_context = &contexts[i]);
    multicast_queue q = multicast_queue_create(&options);
    CHECK(q.id != 0);
    STORE(current_queue.id, q.id);
    add_queued(stormed, counter(&calls), q);
    if (i % 50 == 0) pause_ms(1);
    if (i % 3 > 0) multicast_queue_run(q, (size_t)i % 3);
    CHECK_OK(multicast_queue_destroy(q));
    /* this write is not atomic, so that the thread sanitizer detects a late call to `wake` */
    contexts[i].magic = IS_GONE;
    wakes += contexts[i].wakes;
  }
  STORE(is_over, true);
  for (int i = 0; i < 3; ++i) join_thread(threads[i]);
  CHECK(wakes > 0);
}

/* An event loop that always sleeps until `wake` is called does not miss any calls. */
static pthread_mutex_t loop_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t loop_condition = PTHREAD_COND_INITIALIZER;
static bool is_woken;

static void wake_loop(void *unused) {
  pthread_mutex_lock(&loop_mutex);
  is_woken = true;
  pthread_cond_signal(&loop_condition);
  pthread_mutex_unlock(&loop_mutex);
}

THREAD(invoke_thousands, void *unused) {
  for (int i = 0; i < 3000; ++i) CHECK_EQ(multicast_invoke(stormed, 0, NULL, 0), 1);
}

TEST(queue_wake_is_enough_for_loop_that_sleeps_until_it_is_woken) {
  pthread_t threads[2];
  multicast_queue q = multicast_queue_create(&QUEUE_OPTIONS(.wake = wake_loop,
      .overflow = MULTICAST_OVERFLOW_BLOCK, .capacity = 4));
  stormed = multicast_create();
  add_queued(stormed, counter(&calls), q);
  for (int i = 0; i < 2; ++i) threads[i] = start_thread(invoke_thousands, NULL);
  while (calls < 6000) {
    pthread_mutex_lock(&loop_mutex);
    while (!is_woken) pthread_cond_wait(&loop_condition, &loop_mutex);
    is_woken = false;
    pthread_mutex_unlock(&loop_mutex);
    CHECK(multicast_queue_run(q, (size_t)(calls % 3)) >= 0);
  }
  for (int i = 0; i < 2; ++i) join_thread(threads[i]);
  CHECK_OK(multicast_queue_destroy(q));
}
