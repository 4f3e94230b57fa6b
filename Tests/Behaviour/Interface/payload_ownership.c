/* A payload that is handed over is released exactly once, when the last call that shares it has
 * returned or been cancelled. */

#include "notes.h"
#include "payloads.h"
#include "removals.h"

static const cargo fresh;

/* ---- Direct calls ---------------------------------------------------------------------------- */

TEST_OF_MULTICAST(payload_is_released_before_return_if_no_call_is_queued) {
  cargo c = fresh;
  seen s;
  CHECK_EQ(hand_over(m, &c), 0); /* the multicast has never had a delegate */
  CHECK_EQ(c.releases, 1);
  add(m, seeing(&s));
  CHECK_EQ(hand_over(m, &c), 1);
  CHECK_EQ(c.releases, 2);
  CHECK_EQ(s.releases, 1); /* from the previous call; this payload is released after the call */
  CHECK(s.payload == &c && s.size == sizeof c);
  CHECK_EQ(c.size, sizeof c);
  CHECK(pthread_equal(c.released_on, pthread_self()));
  CHECK_OK(multicast_remove_every(m, seeing(&s)));
  CHECK_EQ(hand_over(m, &c), 0); /* the multicast is empty again */
  CHECK_EQ(c.releases, 3);
}

TEST_OF_MULTICAST(payload_is_released_once_if_all_delegates_are_paused) {
  cargo c = fresh;
  CHECK_OK(multicast_token_pause(add(m, counter(&calls))));
  CHECK_OK(multicast_token_pause(add_queued(m, counter(&calls), default_queue())));
  CHECK_EQ(hand_over(m, &c), 0);
  CHECK_EQ(c.releases, 1);
}

static void destroy_target(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_STATUS(multicast_destroy(*(multicast *)context), MULTICAST_PENDING);
}

TEST_OF_QUEUE(payload_is_released_once_if_multicast_is_destroyed_inside) {
  cargo c = fresh;
  add_queued(m, counter(&calls), q);
  add(m, DELEGATE(destroy_target, &m));
  add_queued(m, counter(&calls), q);
  CHECK_EQ(hand_over(m, &c), 2);
  CHECK_EQ(c.releases, 1);
  CHECK_TEXT(figures(q), "queued 1, cancelled 1");
}

/* ---- Queued calls ---------------------------------------------------------------------------- */

TEST_OF_MULTICAST(payload_of_many_calls_on_two_queues_is_released_after_last) {
  multicast_queue q[2];
  cargo c = fresh;
  seen s[6];
  q[0] = default_queue();
  q[1] = default_queue();
  for (int i = 0; i < 6; ++i) add_queued(m, seeing(&s[i]), q[i % 2]);
  CHECK_EQ(hand_over(m, &c), 6);
  CHECK_EQ(multicast_queue_run(q[0], 0), 3);
  CHECK_EQ(multicast_queue_run(q[1], 2), 2);
  CHECK_EQ(c.releases, 0);
  CHECK_EQ(multicast_queue_run(q[1], 0), 1);
  CHECK_EQ(c.releases, 1);
  for (int i = 0; i < 6; ++i) CHECK(s[i].calls == 1 && s[i].releases == 0 && s[i].payload == &c);
}

TEST_OF_QUEUE(payload_of_a_small_size_is_handed_over_and_not_copied) {
  cargo c = fresh;
  multicast_invocation how = handing_over(&c);
  seen s;
  add_queued(m, seeing(&s), q);
  for (size_t size = 0; size < 3; ++size) {
    how.size = size;
    c = fresh;
    CHECK_EQ(multicast_invoke_with(m, &how, NULL), 1);
    CHECK_EQ(c.releases, 0);
    CHECK_EQ(multicast_queue_run(q, 0), 1);
    CHECK(s.payload == &c && s.size == size);
    CHECK_EQ(c.releases, 1);
    CHECK_EQ(c.size, size);
  }
}

TEST_OF_MULTICAST(payload_of_calls_all_refused_is_released_by_the_invocation) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
  cargo first = fresh, second = fresh;
  add_queued(m, counter(&calls), q);
  CHECK_EQ(hand_over(m, &first), 1);
  CHECK_EQ(hand_over(m, &second), 0);
  CHECK_EQ(second.releases, 1);
  CHECK_EQ(first.releases, 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(first.releases, 1);
  CHECK_EQ(second.releases, 1);
}

TEST_OF_MULTICAST(payload_of_a_call_dropped_for_a_newer_one_is_released) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_DROP_OLDEST);
  cargo first = fresh, second = fresh;
  add_queued(m, counter(&calls), q);
  CHECK_EQ(hand_over(m, &first), 1);
  CHECK_EQ(hand_over(m, &second), 1);
  CHECK_EQ(first.releases, 1);
  CHECK_EQ(second.releases, 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(first.releases == 1 && second.releases == 1);
}

TEST_OF_MULTICAST(payload_of_a_call_that_drops_one_of_its_own_is_released_once) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_DROP_OLDEST);
  cargo c = fresh;
  for (int i = 0; i < 3; ++i) add_queued(m, counter(&calls), q);
  CHECK_EQ(hand_over(m, &c), 3);
  CHECK_EQ(c.releases, 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(c.releases, 1);
}

TEST_OF_QUEUE(payload_of_a_call_that_is_replaced_by_the_latest_is_released) {
  cargo c[3] = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}};
  seen s;
  add_flagged(m, seeing(&s), q, MULTICAST_LATEST);
  CHECK_EQ(hand_over(m, &c[0]), 1);
  CHECK_EQ(hand_over(m, &c[1]), 1);
  CHECK(c[0].releases == 1 && c[1].releases == 0);
  /* a call without a payload replaces the queued call */
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(c[1].releases, 1);
  CHECK_EQ(hand_over(m, &c[2]), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(s.payload == &c[2]);
  CHECK(c[0].releases == 1 && c[1].releases == 1 && c[2].releases == 1);
}

TEST_OF_QUEUE(payload_for_a_once_delegate_that_waits_is_released) {
  cargo first = fresh, second = fresh;
  seen s;
  add_flagged(m, seeing(&s), q, MULTICAST_ONCE);
  CHECK_EQ(hand_over(m, &first), 1);
  CHECK_EQ(hand_over(m, &second), 0);
  CHECK(first.releases == 0 && second.releases == 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(first.releases == 1 && second.releases == 1 && s.payload == &first);
}

TEST_OF_QUEUE(payload_of_calls_that_are_cleared_is_released) {
  cargo first = fresh, second = fresh;
  add_queued(m, counter(&calls), q);
  add_queued(m, counter(&calls), q);
  CHECK_EQ(hand_over(m, &first), 2);
  CHECK_EQ(hand_over(m, &second), 2);
  CHECK_EQ(multicast_queue_clear(q), 4);
  CHECK(first.releases == 1 && second.releases == 1);
  CHECK(pthread_equal(first.released_on, pthread_self()));
  CHECK_EQ(calls, 0);
}

TEST_OF_QUEUE(payload_of_calls_to_a_dead_context_is_released) {
  cargo first = fresh, second = fresh;
  add_with(m, counter(&calls), &ADD_OPTIONS(.queue = q, .lock = lock_dead,
                                            .unlock = unlock_nothing));
  CHECK_EQ(hand_over(m, &first), 1);
  CHECK_EQ(hand_over(m, &second), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK(first.releases == 1 && second.releases == 1);
  CHECK_EQ(calls, 0);
}

/* ---- Removal of delegates with queued calls -------------------------------------------------- */

static void released_by(int64_t (*remove)(removal *));

TEST(payload_is_released_by_remove) { released_by(by_remove); }
TEST(payload_is_released_by_token_remove) { released_by(by_token); }
TEST(payload_is_released_by_token_remove_nowait) { released_by(by_nowait); }
TEST(payload_is_released_by_remove_context) { released_by(by_context); }
TEST(payload_is_released_by_remove_at) { released_by(by_place); }
TEST(payload_is_released_by_remove_all) { released_by(by_all); }
TEST(payload_is_released_by_remove_many) { released_by(by_many); }
TEST(payload_is_released_by_destroy) { released_by(by_destroy); }
TEST(payload_is_released_by_lifetime_end) { released_by(by_lifetime); }
TEST(payload_is_released_by_queue_destroy) { released_by(by_queue); }
TEST(payload_is_released_by_a_unique_add) { released_by(by_unique); }

static void released_by(int64_t (*remove)(removal *)) {
  cargo c[2] = {{0, 0, 0}, {0, 0, 0}};
  removal r;
  seen s;
  add_removable(&r, seeing(&s), default_queue(), NULL);
  CHECK_EQ(hand_over(r.target, &c[0]), 1);
  CHECK_EQ(hand_over(r.target, &c[1]), 1);
  CHECK_OK(remove(&r));
  CHECK(c[0].releases == 1 && c[1].releases == 1);
  CHECK(c[0].size == sizeof *c);
  CHECK_EQ(s.calls, 0);
}

TEST_OF_QUEUE(payload_that_running_call_shares_outlives_removal_of_others) {
  blocker b = BLOCKER_INIT;
  runner run;
  cargo c = fresh;
  add_queued(m, blocking(&b), q);
  add_queued(m, counter(&calls), q);
  CHECK_EQ(hand_over(m, &c), 2);
  run_in_background(&run, q, 0);
  gate_wait(&b.entered);
  CHECK_OK(multicast_remove(m, counter(&calls)));
  CHECK_ERROR(multicast_queue_destroy_within(q, 0), TIMEOUT);
  CHECK_EQ(LOAD(c.releases), 0);
  gate_open(&b.let_go);
  CHECK_EQ(run_finished(&run), 1);
  CHECK_EQ(c.releases, 1);
  CHECK(pthread_equal(c.released_on, run.thread));
}

/* ---- Threads that end ------------------------------------------------------------------------ */

typedef struct sending {
  multicast m;
  cargo c;
} sending;

THREAD(send, sending *s) {
  hand_over(s->m, &s->c);
  CHECK(false);
}

TEST(payload_is_released_if_thread_ends_inside_direct_delegate) {
  sending s = {.m = multicast_create()};
  add(s.m, DELEGATE(end_this_thread, NULL));
  on_another_thread(send, &s);
  CHECK_EQ(s.c.releases, 1);
}

TEST(payload_of_queued_calls_outlives_thread_that_ends_in_call) {
  multicast_queue q = default_queue();
  sending s = {.m = multicast_create()};
  add_queued(s.m, counter(&calls), q);
  add(s.m, DELEGATE(end_this_thread, NULL));
  on_another_thread(send, &s);
  CHECK_EQ(s.c.releases, 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(s.c.releases, 1);
}

TEST_OF_QUEUE(payload_is_released_if_the_thread_ends_inside_a_queued_call) {
  runner run;
  cargo c = fresh;
  run.queue = q;
  add_queued(m, DELEGATE(end_this_thread, NULL), q);
  CHECK_EQ(hand_over(m, &c), 1);
  on_another_thread(run_on_a_new_thread, &run);
  CHECK_EQ(c.releases, 1);
}

/* ---- Using the library inside `release` ------------------------------------------------------ */

/* A payload whose `release` uses the library. */
typedef struct busy {
  multicast m, other;
  multicast_queue q;
  multicast_lifetime lifetime;
  multicast_token token;
  int releases, calls, nested;
} busy;

static void use_everything_in_release(const void *payload, size_t size) {
  busy *b = (busy *)(uintptr_t)payload;
  ADD(b->releases, 1);
  CHECK(multicast_invoke(b->other, 0, NULL, 0) >= 0);
  CHECK(multicast_queue_run(b->q, 1) <= 0); /* negative if the queue has been destroyed */
  multicast_token_remove(b->token);
  multicast_status status = multicast_lifetime_end(b->lifetime);
  CHECK(status == MULTICAST_OK || status == MULTICAST_PENDING ||
        status == MULTICAST_ERROR_INVALID_HANDLE);
  status = multicast_queue_destroy(b->q);
  CHECK(status == MULTICAST_OK || status == MULTICAST_PENDING ||
        status == MULTICAST_ERROR_INVALID_HANDLE);
  status = multicast_destroy(b->m);
  CHECK(status == MULTICAST_OK || status == MULTICAST_PENDING ||
        status == MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(multicast_create().id != 0);
}

static void begin_busy(busy *b, bool is_queued) {
  memset(b, 0, sizeof *b);
  b->m = multicast_create();
  b->other = multicast_create();
  b->q = default_queue();
  b->lifetime = multicast_lifetime_create();
  add(b->other, counter(&b->nested));
  multicast_add_options options = ADD_OPTIONS(.lifetime = b->lifetime);
  if (is_queued) options.queue = b->q;
  b->token = add_with(b->m, counter(&b->calls), &options);
  multicast_invocation how = INVOCATION(.payload = b, .size = sizeof *b,
                                        .release = use_everything_in_release);
  CHECK_EQ(multicast_invoke_with(b->m, &how, NULL), 1);
}

TEST(payload_release_may_call_anything_wherever_it_runs) {
  for (row = 0; row < 7; ++row) {
    busy b;
    begin_busy(&b, row > 0);
    switch (row) {
      case 0: break; /* the direct calls have released the payload */
      case 1: CHECK_EQ(multicast_queue_run(b.q, 0), 1); break;
      case 2: CHECK_EQ(multicast_queue_clear(b.q), 1); break;
      case 3: CHECK_EQ(multicast_remove_all(b.m), 1); break;
      case 4: CHECK_OK(multicast_queue_destroy(b.q)); break;
      case 5: CHECK_OK(multicast_lifetime_end(b.lifetime)); break;
      default: CHECK_OK(multicast_destroy(b.m));
    }
    CHECK_EQ(b.releases, 1);
    CHECK_EQ(b.nested, 1);
    CHECK(!multicast_is_valid(b.m) && !multicast_queue_is_valid(b.q));
    CHECK(!multicast_lifetime_is_valid(b.lifetime));
  }
}

/* The objects that another thread uses while `release` is running. That thread would hang if the
 * library were holding a lock. */
static busy *meanwhile_used;

THREAD(use_meanwhile, void *unused) {
  busy *b = meanwhile_used;
  CHECK(multicast_invoke(b->m, 0, NULL, 0) >= 0);
  CHECK(multicast_queue_clear(b->q) >= 0);
  CHECK_OK(multicast_token_remove(add_queued(b->m, counter(&b->calls), b->q)));
}

static void use_on_another_thread(const void *payload, size_t size) {
  ADD(meanwhile_used->releases, 1);
  on_another_thread(use_meanwhile, NULL);
}

TEST(payload_release_runs_while_no_lock_is_held) {
  static busy b;
  meanwhile_used = &b;
  b.m = multicast_create();
  b.q = queue_with(1, MULTICAST_OVERFLOW_DROP_OLDEST);
  multicast_token token = add_queued(b.m, counter(&b.calls), b.q);
  multicast_invocation how = INVOCATION(.payload = &b, .size = sizeof b,
                                        .release = use_on_another_thread);
  for (int i = 1; i <= 3; ++i) {
    CHECK_EQ(multicast_invoke_with(b.m, &how, NULL), 1);
    if (i == 1) CHECK_EQ(multicast_queue_clear(b.q), 1);
    /* the new call replaces the queued call */
    if (i == 2) CHECK_EQ(multicast_invoke(b.m, 0, NULL, 0), 1);
    if (i == 3) CHECK_OK(multicast_token_remove(token));
    CHECK_EQ(b.releases, i);
  }
}

/* ---- Many threads ---------------------------------------------------------------------------- */

enum { SENDERS = 3, SENT = 2000 };

typedef struct storm {
  multicast m;
  cargo c[SENT];
  int64_t failures;
} storm;
static storm storms[SENDERS];

THREAD(send_many, storm *s) {
  for (int i = 0; i < SENT; ++i) {
    multicast_invocation how = handing_over(&s->c[i]);
    if (i % 7 == 0) how.flags = MULTICAST_WAIT;
    if (multicast_invoke_with(s->m, &how, NULL) < 0) ++s->failures;
  }
}

TEST_OF_MULTICAST(payloads_of_many_threads_are_each_released_once) {
  multicast_queue q[2];
  pthread_t threads[SENDERS];
  int direct = 0;
  q[0] = queue_with(8, MULTICAST_OVERFLOW_DROP_OLDEST);
  q[1] = queue_with(8, MULTICAST_OVERFLOW_REFUSE);
  add(m, counter(&direct));
  for (int i = 0; i < 2; ++i) {
    add_queued(m, counter(&calls), q[i]);
    CHECK_OK(multicast_queue_start(q[i]));
  }
  for (int i = 0; i < SENDERS; ++i) {
    storms[i].m = m;
    threads[i] = start_thread(send_many, &storms[i]);
  }
  for (int round = 0; round < 200; ++round) {
    multicast_token t = add_flagged(m, counter(&calls), q[round % 2], round % 8);
    CHECK(multicast_queue_clear(q[round % 2]) >= 0);
    multicast_token_remove(t);
  }
  for (int i = 0; i < SENDERS; ++i) join_thread(threads[i]);
  CHECK_OK(multicast_queue_destroy(q[0]));
  CHECK_OK(multicast_queue_destroy(q[1]));
  for (int i = 0; i < SENDERS; ++i) {
    CHECK_EQ(storms[i].failures, 0);
    for (int round = 0; round < SENT; ++round) CHECK_EQ(LOAD(storms[i].c[round].releases), 1);
  }
  CHECK_EQ(direct, SENDERS * SENT);
}
