/* Tests the functions that end or remove something within a time limit. With a limit of 0, these
 * functions do not wait; with MULTICAST_FOREVER, they wait without a limit. */

#include "broadcasters.h"
#include "removals.h"

/* ---- Ways to end a registration -------------------------------------------------------------- */

typedef struct subject subject;
struct subject {
  multicast_broadcaster broadcaster;
  multicast target;
  multicast_lifetime lifetime;
  multicast_queue queue;
  multicast_token token;
  multicast_delegate delegate;
  bool is_queued;
  blocker b;
  invoker i;
  runner run;
};

typedef multicast_status ender(const subject *s, uint64_t timeout_ns);

static multicast_status end_delegate(const subject *s, uint64_t timeout_ns) {
  return multicast_remove_every_within(s->target, s->delegate, timeout_ns);
}
static multicast_status end_token(const subject *s, uint64_t timeout_ns) {
  return multicast_token_remove_within(s->token, timeout_ns);
}
static multicast_status end_multicast(const subject *s, uint64_t timeout_ns) {
  return multicast_destroy_within(s->target, timeout_ns);
}
static multicast_status end_lifetime(const subject *s, uint64_t timeout_ns) {
  return multicast_lifetime_end_within(s->lifetime, timeout_ns);
}
static multicast_status end_broadcaster(const subject *s, uint64_t timeout_ns) {
  return multicast_broadcaster_destroy_within(s->broadcaster, timeout_ns);
}
static multicast_status end_queue(const subject *s, uint64_t timeout_ns) {
  return multicast_queue_destroy_within(s->queue, timeout_ns);
}

/* A way to end a registration. */
typedef struct way {
  ender *end;
  /* The results of two more attempts to end the registration without waiting. The first attempt is
   * made while the delegate's call is still running, and the second after the call has returned. */
  multicast_status again, afterwards;
} way;

static const way ways[] = {
    {end_delegate, MULTICAST_ERROR_TIMEOUT, MULTICAST_ERROR_NOT_FOUND},
    {end_token, MULTICAST_ERROR_TIMEOUT, MULTICAST_ERROR_INVALID_HANDLE},
    {end_multicast, MULTICAST_ERROR_TIMEOUT, MULTICAST_ERROR_INVALID_HANDLE},
    {end_lifetime, MULTICAST_ERROR_TIMEOUT, MULTICAST_ERROR_INVALID_HANDLE},
    /* A broadcaster's or a queue's handle is no longer valid, even while the call is still
     * running. */
    {end_broadcaster, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_HANDLE},
    {end_queue, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_HANDLE},
};
enum { WAYS = sizeof ways / sizeof *ways };

static const blocker fresh_blocker = BLOCKER_INIT;

static void begin_with(subject *s, bool is_queued, multicast_delegate d,
                       void (*release)(void *)) {
  memset(s, 0, sizeof *s);
  s->is_queued = is_queued;
  s->b = fresh_blocker;
  s->broadcaster = create();
  s->lifetime = multicast_lifetime_create();
  s->queue = default_queue();
  s->delegate = d;
  multicast_add_options options = ADD_OPTIONS(.release = release, .lifetime = s->lifetime);
  if (is_queued) options.queue = s->queue;
  s->token = observe_with(s->broadcaster, NAME, d, &options);
  s->target = find(s->broadcaster, NAME);
}

static void begin_idle(subject *s, bool is_queued) {
  begin_with(s, is_queued, blocking(&s->b), release_blocker);
}

/* Adds the delegate, and returns once its call is running on another thread. */
static void begin_running(subject *s, bool is_queued) {
  begin_idle(s, is_queued);
  if (is_queued) {
    CHECK_EQ(multicast_invoke(s->target, 0, NULL, 0), 1);
    run_in_background(&s->run, s->queue, 0);
  } else {
    invoke_in_background(&s->i, s->target);
  }
  gate_wait(&s->b.entered);
}

static void let_call_go(subject *s) {
  CHECK(!LOAD(s->b.has_left));
  CHECK_EQ(LOAD(s->b.releases), 0);
  gate_open(&s->b.let_go);
  CHECK_EQ(s->is_queued ? run_finished(&s->run) : invoke_finished(&s->i), 1);
}

/* Lets a removed delegate's running call return, so that the calling thread runs `release`. */
static void let_go(subject *s) {
  let_call_go(s);
  CHECK_EQ(LOAD(s->b.releases), 1);
}

static void for_each_way(void (*body)(const way *, bool is_queued)) {
  for (int i = 0; i < WAYS; ++i) {
    if (ways[i].end != end_queue) body(&ways[i], false);
    body(&ways[i], true);
  }
}

/* ---- While a call is running on another thread ----------------------------------------------- */

static void end_without_waiting(const way *w, bool is_queued) {
  subject s;
  begin_running(&s, is_queued);
  uint64_t start = now_ns();
  CHECK_ERROR(w->end(&s, 0), TIMEOUT);
  CHECK(!multicast_token_is_valid(s.token));
  CHECK_STATUS(w->end(&s, 0), w->again);
  CHECK(now_ns() - start < UINT64_C(5000000000));
  CHECK_STATUS(multicast_token_remove_nowait(s.token), MULTICAST_PENDING);
  let_go(&s);
  CHECK_STATUS(w->end(&s, 0), w->afterwards);
  CHECK_STATUS(w->end(&s, MULTICAST_FOREVER), w->afterwards);
  CHECK_ERROR(multicast_token_remove_nowait(s.token), INVALID_HANDLE);
}

TEST(ends_within_zero_end_without_waiting_and_are_timeout) { for_each_way(end_without_waiting); }

static void end_within_a_moment(const way *w, bool is_queued) {
  enum { MOMENT_NS = 15000000 };
  subject s;
  begin_running(&s, is_queued);
  uint64_t start = now_ns();
  CHECK_ERROR(w->end(&s, MOMENT_NS), TIMEOUT);
  CHECK(now_ns() - start >= MOMENT_NS);
  CHECK(!multicast_token_is_valid(s.token));
  let_go(&s);
}

TEST(ends_within_a_time_wait_for_all_of_it_and_are_timeout) { for_each_way(end_within_a_moment); }

typedef struct waiting_end {
  const way *w;
  subject *s;
  uint64_t timeout_ns;
  multicast_status result;
  bool had_left;
  gate returned;
} waiting_end;

THREAD(end_in_thread, waiting_end *e) {
  e->result = e->w->end(e->s, e->timeout_ns);
  e->had_left = LOAD(e->s->b.has_left);
  gate_open(&e->returned);
}

static void end_and_wait(const way *w, bool is_queued, uint64_t timeout_ns) {
  subject s;
  waiting_end e = {NULL, NULL, 0, MULTICAST_ERROR_STATE, false, GATE_INIT};
  e.w = w;
  e.s = &s;
  e.timeout_ns = timeout_ns;
  begin_running(&s, is_queued);
  pthread_t thread = start_thread(end_in_thread, &e);
  CHECK(!gate_opens_within(&e.returned, A_WHILE_MS));
  let_call_go(&s);
  join_thread(thread);
  CHECK_OK(e.result);
  CHECK(e.had_left);
  CHECK_EQ(LOAD(s.b.releases), 1);
}

static void end_forever(const way *w, bool is_queued) {
  end_and_wait(w, is_queued, MULTICAST_FOREVER);
}

TEST(ends_within_forever_wait_until_the_call_has_returned) { for_each_way(end_forever); }

/* ---- While no call is running ---------------------------------------------------------------- */

static void end_idle(const way *w, bool is_queued) {
  static const uint64_t timeouts[] = {0, 1000, MULTICAST_FOREVER};
  for (int i = 0; i < 3; ++i) {
    subject s;
    begin_idle(&s, is_queued);
    if (is_queued) CHECK_EQ(multicast_invoke(s.target, 0, NULL, 0), 1);
    CHECK_OK(w->end(&s, timeouts[i]));
    CHECK_EQ(s.b.releases, 1);
    CHECK_EQ(s.b.calls, 0);
    CHECK_STATUS(w->end(&s, timeouts[i]), w->afterwards);
  }
}

TEST(ends_within_any_time_are_ok_where_no_call_runs) { for_each_way(end_idle); }

/* ---- Inside the delegate's call -------------------------------------------------------------- */

typedef struct insider {
  subject s;
  const way *w;
  uint64_t timeout_ns;
  multicast_status result;
  int releases, releases_inside;
} insider;

FUNCTION(end_inside, insider *in) {
  in->result = in->w->end(&in->s, in->timeout_ns);
  CHECK_STATUS(multicast_token_remove_nowait(in->s.token), MULTICAST_PENDING);
  in->releases_inside = in->releases;
}

static void release_insider(void *context) { ++((insider *)context)->releases; }

static void end_in_own_call(const way *w, bool is_queued) {
  for (int forever = 0; forever < 2; ++forever) {
    insider in = {0};
    begin_with(&in.s, is_queued, DELEGATE(end_inside, &in), release_insider);
    in.w = w;
    in.timeout_ns = forever ? MULTICAST_FOREVER : 0;
    CHECK_EQ(multicast_invoke(in.s.target, 0, NULL, 0), 1);
    if (is_queued) CHECK_EQ(multicast_queue_run(in.s.queue, 0), 1);
    CHECK_STATUS(in.result, MULTICAST_PENDING);
    CHECK_EQ(in.releases_inside, 0);
    CHECK_EQ(in.releases, 1);
  }
}

TEST(ends_within_in_a_call_of_their_own_are_pending) { for_each_way(end_in_own_call); }

/* ---- While a release is running -------------------------------------------------------------- */

typedef struct slow_release {
  gate begun, may_return;
  int returned;
} slow_release;

static void release_slowly(void *context) {
  slow_release *s = context;
  gate_open(&s->begun);
  gate_wait(&s->may_return);
  STORE(s->returned, 1);
}

static void end_while_a_release_runs(ender *end) {
  slow_release slow = {GATE_INIT, GATE_INIT, 0};
  subject s;
  begin_with(&s, true, DELEGATE(count_call, &slow), release_slowly);
  pthread_t thread = start_thread(remove_token, &s.token);
  gate_wait(&slow.begun);
  CHECK_ERROR(end(&s, 0), TIMEOUT);
  gate_open(&slow.may_return);
  join_thread(thread);
}

TEST(lifetime_end_within_zero_is_timeout_while_a_release_runs) {
  end_while_a_release_runs(end_lifetime);
}
TEST(queue_destroy_within_zero_is_timeout_while_a_release_runs) {
  end_while_a_release_runs(end_queue);
}

/* ---- Removal of all equal delegates ---------------------------------------------------------- */

TEST_OF_MULTICAST(remove_within_removes_every_equal_registration) {
  int calls = 0;
  for (int i = 0; i < 5; ++i) add(m, counter(&calls));
  CHECK_OK(multicast_remove_every_within(m, counter(&calls), 0));
  CHECK_EQ(multicast_count(m), 0);
}

/* ---- Removal of many delegates --------------------------------------------------------------- */

typedef int64_t remover(const subject *s, uint64_t timeout_ns, multicast_status *out);

static int64_t remove_many(const subject *s, uint64_t timeout_ns, multicast_status *out) {
  return multicast_remove_many_within(s->target, &s->delegate, 1, timeout_ns, out);
}
static int64_t remove_of_context(const subject *s, uint64_t timeout_ns, multicast_status *out) {
  return multicast_remove_context_within(s->target, s->delegate.context, timeout_ns, out);
}
static int64_t remove_all(const subject *s, uint64_t timeout_ns, multicast_status *out) {
  return multicast_remove_all_within(s->target, timeout_ns, out);
}

static remover *const removers[] = {remove_many, remove_of_context, remove_all};
enum { REMOVERS = sizeof removers / sizeof *removers, UNTOUCHED = 77 };

TEST(remove_many_within_report_timeout_beside_the_count) {
  for (int i = 0; i < REMOVERS; ++i) {
    for (int is_queued = 0; is_queued < 2; ++is_queued) {
      for (int is_null = 0; is_null < 2; ++is_null) {
        subject s;
        multicast_status status = UNTOUCHED;
        begin_running(&s, is_queued);
        CHECK_EQ(removers[i](&s, 0, is_null ? NULL : &status), 1);
        CHECK_STATUS(status, is_null ? UNTOUCHED : MULTICAST_ERROR_TIMEOUT);
        /* no delegate is left to remove, but the function still waits for the running call */
        CHECK_EQ(removers[i](&s, 1000000, &status), 0);
        CHECK_ERROR(status, TIMEOUT);
        let_go(&s);
        CHECK_EQ(removers[i](&s, 0, &status), 0);
        CHECK_OK(status);
      }
    }
  }
}

TEST(remove_many_within_report_ok_where_no_call_runs) {
  for (int i = 0; i < REMOVERS; ++i) {
    subject s;
    multicast_status status = UNTOUCHED;
    begin_idle(&s, i % 2);
    CHECK_EQ(removers[i](&s, 0, &status), 1);
    CHECK_OK(status);
    CHECK_EQ(s.b.releases, 1);
    status = UNTOUCHED;
    CHECK_EQ(removers[i](&s, MULTICAST_FOREVER, &status), 0);
    CHECK_OK(status);
  }
}

typedef struct many_end {
  remover *remove;
  subject s;
  multicast_status status;
  int64_t result;
  gate returned;
} many_end;

THREAD(remove_forever, many_end *e) {
  e->result = e->remove(&e->s, MULTICAST_FOREVER, &e->status);
  gate_open(&e->returned);
}

TEST(remove_many_within_forever_wait_and_report_ok) {
  for (int i = 0; i < REMOVERS; ++i) {
    static many_end e;
    e.remove = removers[i];
    e.status = UNTOUCHED;
    e.returned = shut;
    begin_running(&e.s, false);
    pthread_t thread = start_thread(remove_forever, &e);
    CHECK(!gate_opens_within(&e.returned, A_WHILE_MS));
    let_call_go(&e.s);
    join_thread(thread);
    CHECK_EQ(LOAD(e.s.b.releases), 1);
    CHECK_EQ(e.result, 1);
    CHECK_OK(e.status);
  }
}

typedef struct many_inside {
  subject s;
  remover *remove;
  multicast_status status;
  int64_t result;
  int releases, releases_inside;
} many_inside;

FUNCTION(remove_many_inside, many_inside *in) {
  in->result = in->remove(&in->s, MULTICAST_FOREVER, &in->status);
  in->releases_inside = in->releases;
}

static void release_many_inside(void *context) { ++((many_inside *)context)->releases; }

static int64_t remove_many_plainly(const subject *s, uint64_t timeout_ns, multicast_status *out) {
  return multicast_remove_many(s->target, &s->delegate, 1);
}
static int64_t remove_context_plainly(const subject *s, uint64_t timeout_ns,
                                      multicast_status *out) {
  return multicast_remove_context(s->target, s->delegate.context);
}
static int64_t remove_all_plainly(const subject *s, uint64_t timeout_ns, multicast_status *out) {
  return multicast_remove_all(s->target);
}

static void remove_in_its_call(remover *remove, multicast_status expected) {
  for (int is_queued = 0; is_queued < 2; ++is_queued) {
    many_inside in = {0};
    begin_with(&in.s, is_queued, DELEGATE(remove_many_inside, &in), release_many_inside);
    in.remove = remove;
    in.status = UNTOUCHED;
    CHECK_EQ(multicast_invoke(in.s.target, 0, NULL, 0), 1);
    if (is_queued) CHECK_EQ(multicast_queue_run(in.s.queue, 0), 1);
    CHECK_EQ(in.result, 1);
    CHECK_STATUS(in.status, expected);
    CHECK_EQ(in.releases_inside, 0);
    CHECK_EQ(in.releases, 1);
  }
}

TEST(remove_many_within_report_pending_inside_a_call_of_one) {
  for (int i = 0; i < REMOVERS; ++i) remove_in_its_call(removers[i], MULTICAST_PENDING);
}

TEST(removals_of_many_without_limit_do_not_report_pending) {
  remove_in_its_call(remove_many_plainly, UNTOUCHED);
  remove_in_its_call(remove_context_plainly, UNTOUCHED);
  remove_in_its_call(remove_all_plainly, UNTOUCHED);
}

TEST(remove_many_within_give_their_failure_in_the_status_too) {
  subject s;
  multicast_status status = UNTOUCHED;
  begin_idle(&s, false);
  CHECK_ERROR(multicast_remove_many_within(s.target, NULL, 1, 0, &status), INVALID_ARGUMENT);
  CHECK_ERROR(status, INVALID_ARGUMENT);
  CHECK_ERROR(multicast_remove_many_within(s.target, NULL, 1, 0, NULL), INVALID_ARGUMENT);
  CHECK_EQ(multicast_count(s.target), 1);
  CHECK_EQ(multicast_remove_many_within(s.target, NULL, 0, 0, &status), 0);
  CHECK_OK(status);
  CHECK_OK(multicast_broadcaster_destroy(s.broadcaster));
  for (int i = 0; i < REMOVERS; ++i) {
    status = UNTOUCHED;
    CHECK_ERROR(removers[i](&s, 0, &status), INVALID_HANDLE);
    CHECK_ERROR(status, INVALID_HANDLE);
    CHECK_ERROR(removers[i](&s, 0, NULL), INVALID_HANDLE);
  }
  CHECK_ERROR(multicast_remove_many_within(s.target, NULL, 0, 0, &status), INVALID_HANDLE);
  CHECK_ERROR(status, INVALID_HANDLE);
}
