/* A removal waits for the running calls of the removed delegate, and for nothing else. */

#include "removals.h"

/* ---- Waiting for a running call -------------------------------------------------------------- */

static void waits(int64_t (*remove)(removal *)) {
  running_call c;
  begin_running_call(&c, remove);
  expect_to_wait(&c.r, MULTICAST_OK);
  CHECK_EQ(LOAD(c.b.releases), 1);
  CHECK_EQ(invoke_finished(&c.i), 1);
  CHECK_EQ(LOAD(c.b.calls), 1);
}

TEST(remove_waits_for_the_running_call) { waits(by_remove); }
TEST(token_remove_waits_for_the_running_call) { waits(by_token); }
TEST(token_remove_within_without_limit_waits_for_the_running_call) {
  waits(by_within_without_limit);
}
TEST(token_remove_within_waits_for_the_running_call) { waits(by_within); }
TEST(remove_at_waits_for_the_running_call) { waits(by_place); }
TEST(remove_context_waits_for_the_running_call) { waits(by_context); }
TEST(remove_all_waits_for_the_running_call) { waits(by_all); }
TEST(remove_many_waits_for_the_running_call) { waits(by_many); }
TEST(destroy_waits_for_the_running_call) { waits(by_destroy); }

static bool visit_blocking(void *context, const multicast_delegate *delegate) {
  delegate->function(delegate->context, 0, NULL, 0);
  return true;
}

THREAD(visit_once, multicast *target) {
  multicast_visit(*target, visit_blocking, NULL);
}

TEST(remove_waits_for_a_running_visit) {
  blocker b = BLOCKER_INIT;
  removal r;
  prepare_removal(&r, multicast_create(), &b, by_remove);
  add(r.target, r.delegate);
  pthread_t visitor = start_thread(visit_once, &r.target);
  gate_wait(&b.entered);
  expect_to_wait(&r, MULTICAST_OK);
  join_thread(visitor);
}

static multicast nested_target;

static void invoke_nested(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_EQ(multicast_invoke(nested_target, 0, NULL, 0), 1);
  STORE(((blocker *)context)->calls, -1); /* the outer call is still running */
}

TEST(remove_waits_for_a_call_in_an_outer_invocation) {
  blocker b = BLOCKER_INIT;
  removal r;
  nested_target = multicast_create();
  add(nested_target, blocking(&b));
  prepare_removal(&r, multicast_create(), &b, by_token);
  r.token = add(r.target, DELEGATE(invoke_nested, &b));
  begin_blocked(&b, r.target);
  expect_to_wait(&r, MULTICAST_OK);
  CHECK_EQ(LOAD(b.calls), -1);
  invoke_finished(&b.invoking);
}

/* ---- Calls that a removal does not wait for -------------------------------------------------- */

TEST_OF_MULTICAST(remove_does_not_wait_for_other_delegates_of_the_multicast) {
  blocker b = BLOCKER_INIT;
  add(m, counter(&calls)); /* the invocation has already called this delegate */
  add(m, blocking(&b));
  add(m, counter(&b.releases));
  begin_blocked(&b, m);
  CHECK_OK(multicast_remove(m, counter(&calls)));
  CHECK_OK(multicast_remove(m, counter(&b.releases)));
  CHECK(!LOAD(b.has_left));
  CHECK_EQ(end_blocked(&b), 2);
}

TEST(remove_does_not_wait_for_same_function_in_another_multicast) {
  blocker b = BLOCKER_INIT;
  multicast m = multicast_create(), other = multicast_create();
  add(m, blocking(&b));
  add(other, blocking(&b));
  begin_blocked(&b, m);
  CHECK_OK(multicast_remove(other, blocking(&b)));
  CHECK(!LOAD(b.has_left));
  end_blocked(&b);
}

static multicast busy;
static bool is_over;

THREAD(invoke_until_over, void *unused) {
  while (!LOAD(is_over)) CHECK(multicast_invoke(busy, 0, NULL, 0) >= 0);
}

TEST(remove_returns_while_others_keep_invoking) {
  /* If a removal waited until no thread was invoking the multicast, it would hang. */
  static int calls[200];
  pthread_t threads[2];
  busy = multicast_create();
  add(busy, counter(&calls[0]));
  for (int i = 0; i < 2; ++i) threads[i] = start_thread(invoke_until_over, NULL);
  for (int i = 1; i < 200; ++i) {
    add(busy, counter(&calls[i]));
    CHECK_OK(multicast_remove(busy, counter(&calls[i])));
  }
  STORE(is_over, true);
  for (int i = 0; i < 2; ++i) join_thread(threads[i]);
}

TEST_OF_MULTICAST(remove_many_of_nothing_does_not_wait_for_what_was_removed) {
  static blocker b = BLOCKER_INIT;
  int calls[4] = {0};
  multicast_delegate absent[2];
  multicast_token token = add(m, blocking(&b));
  absent[0] = counter(&calls[2]);
  absent[1] = counter(&calls[3]);
  add(m, counter(&calls[0]));
  add(m, counter(&calls[1]));
  begin_blocked(&b, m);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  CHECK_EQ(multicast_remove_many(m, absent, 2), 0); /* this removal would hang if it waited */
  CHECK(!LOAD(b.has_left));
  CHECK_EQ(end_blocked(&b), 3);
  CHECK_OK(multicast_destroy(m));
}

TEST(remove_does_not_wait_for_a_queued_call_of_another_multicast) {
  static blocker b = BLOCKER_INIT;
  multicast m = multicast_create(), other = multicast_create();
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  multicast_token token = add_queued(other, blocking(&b), q);
  runner run;
  CHECK_EQ(multicast_invoke(other, 0, NULL, 0), 1);
  run_in_background(&run, q, 0);
  gate_wait(&b.entered);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  CHECK_ERROR(multicast_remove(m, blocking(&b)), NOT_FOUND);
  CHECK_ERROR(multicast_remove(m, counter(&calls)), NOT_FOUND);
  CHECK(!LOAD(b.has_left));
  gate_open(&b.let_go);
  CHECK_EQ(run_finished(&run), 1);
  CHECK_OK(multicast_destroy(m));
  CHECK_OK(multicast_destroy(other));
  CHECK_OK(multicast_queue_destroy(q));
}

/* ---- The context may be freed after MULTICAST_OK --------------------------------------------- */

TEST(remove_returning_ok_means_the_context_may_be_freed) {
  enum { ROUNDS = 3000, THREADS = 3 };
  pthread_t threads[THREADS];
  busy = multicast_create();
  for (int i = 0; i < THREADS; ++i) threads[i] = start_thread(invoke_until_over, NULL);
  for (int i = 0; i < ROUNDS; ++i) {
    guarded *g = malloc(sizeof *g);
    CHECK(g != NULL);
    multicast_delegate d = begin_guarded(g);
    multicast_token token = add(busy, d);
    if (i % 3 == 0) {
      CHECK_OK(multicast_token_remove(token));
    } else if (i % 3 == 1) {
      CHECK_OK(multicast_remove(busy, d));
    } else {
      CHECK_EQ(multicast_remove_context(busy, g), 1);
    }
    end_guarded(g);
    free(g);
  }
  STORE(is_over, true);
  for (int i = 0; i < THREADS; ++i) join_thread(threads[i]);
  CHECK_EQ(multicast_count(busy), 0);
}
