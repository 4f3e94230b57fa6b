/* The removal of a delegate waits for its running queued call, unless the removal is made inside
 * that call. */

#include "notes.h"
#include "queues.h"
#include "removals.h"

/* ---- Removal outside of the call ------------------------------------------------------------- */

static void waits_for_queued_call(int64_t (*remove)(removal *)) {
  queued_call c;
  begin_queued_call(&c, remove);
  c.r.thread = start_thread(remove_in_thread, &c.r);
  EVENTUALLY(!multicast_token_is_valid(c.r.token));
  /* the queued calls are cancelled before the removal waits */
  if (remove != by_queue) EVENTUALLY(stats_of(c.r.queue).cancelled == 2);
  CHECK(!gate_opens_within(&c.r.returned, A_WHILE_MS));
  CHECK_EQ(LOAD(c.b.releases), 0);
  gate_open(&c.b.let_go);
  join_thread(c.r.thread);
  CHECK_STATUS(c.r.result, MULTICAST_OK);
  CHECK(c.r.had_left);
  CHECK_EQ(LOAD(c.b.releases), 1);
  CHECK_EQ(run_finished(&c.run), 1);
  CHECK_EQ(c.b.calls, 1);
  if (remove != by_queue)
    CHECK_TEXT(figures(c.r.queue), "queued 3, delivered 1, cancelled 2");
}

TEST(queue_call_that_runs_is_waited_for_by_remove) { waits_for_queued_call(by_remove); }
TEST(queue_call_that_runs_is_waited_for_by_token_remove) { waits_for_queued_call(by_token); }
TEST(queue_call_that_runs_is_waited_for_by_within) { waits_for_queued_call(by_within); }
TEST(queue_call_that_runs_is_waited_for_by_within_without_limit) {
  waits_for_queued_call(by_within_without_limit);
}
TEST(queue_call_that_runs_is_waited_for_by_remove_context) { waits_for_queued_call(by_context); }
TEST(queue_call_that_runs_is_waited_for_by_remove_at) { waits_for_queued_call(by_place); }
TEST(queue_call_that_runs_is_waited_for_by_remove_all) { waits_for_queued_call(by_all); }
TEST(queue_call_that_runs_is_waited_for_by_remove_many) { waits_for_queued_call(by_many); }
TEST(queue_call_that_runs_is_waited_for_by_destroy) { waits_for_queued_call(by_destroy); }
TEST(queue_call_that_runs_is_waited_for_by_lifetime_end) { waits_for_queued_call(by_lifetime); }
TEST(queue_call_that_runs_is_waited_for_by_queue_destroy) { waits_for_queued_call(by_queue); }

TEST(queue_call_that_runs_on_a_worker_is_waited_for) {
  removal r;
  blocker b = BLOCKER_INIT;
  add_removable(&r, blocking(&b), default_queue(), release_blocker);
  r.remove = by_token;
  r.b = &b;
  CHECK_OK(multicast_queue_start(r.queue));
  invoke_number(r.target, 1);
  gate_wait(&b.entered);
  expect_to_wait(&r, MULTICAST_OK);
  CHECK_EQ(LOAD(b.releases), 1);
}

TEST(queue_call_that_runs_is_not_waited_for_by_nowait) {
  queued_call c;
  begin_queued_call(&c, by_nowait);
  CHECK_STATUS(multicast_token_remove_nowait(c.r.token), MULTICAST_PENDING);
  CHECK_TEXT(figures(c.r.queue), "queued 3, delivered 1, cancelled 2");
  CHECK_EQ(LOAD(c.b.releases), 0);
  gate_open(&c.b.let_go);
  CHECK_EQ(run_finished(&c.run), 1);
  CHECK_EQ(LOAD(c.b.releases), 1);
  CHECK_EQ(c.b.calls, 1);
}

TEST(queue_call_that_runs_is_not_waited_for_by_unique) {
  queued_call c;
  begin_queued_call(&c, by_unique);
  CHECK_OK(by_unique(&c.r));
  CHECK_EQ(invoke_number(c.r.target, 4), 1);
  CHECK_TEXT(figures(c.r.queue), "pending 1, queued 4, delivered 1, cancelled 2");
  CHECK_EQ(LOAD(c.b.releases), 0);
  gate_open(&c.b.let_go);
  /* the run began with two waiting calls, so it also makes the call to the new registration */
  CHECK_EQ(run_finished(&c.run), 2);
  CHECK_EQ(LOAD(c.b.releases), 1);
  CHECK_EQ(c.b.calls, 2);
}

TEST(queue_call_of_another_delegate_is_not_waited_for) {
  queued_call c;
  begin_queued_call(&c, by_token);
  multicast_token other = add_queued(c.r.target, noting('x'), c.r.queue);
  invoke_number(c.r.target, 9);
  CHECK_OK(multicast_token_remove(other));
  CHECK(!LOAD(c.b.has_left));
  gate_open(&c.b.let_go);
  run_finished(&c.run);
  CHECK_TEXT(noted, "");
}

TEST(queue_call_removed_nowait_is_waited_for_by_every_removal) {
  static const struct {
    int64_t (*remove)(removal *);
    int64_t expected;
  } rows[] = {
      {by_remove, MULTICAST_ERROR_NOT_FOUND},
      {by_token, MULTICAST_ERROR_INVALID_HANDLE},
      {by_within, MULTICAST_ERROR_INVALID_HANDLE},
      {by_context, 0 - 1},
      {by_all, 0 - 1},
      {by_many, 0 - 1},
      {by_destroy, MULTICAST_OK},
      {by_queue, MULTICAST_OK},
      {by_lifetime, MULTICAST_OK},
  };
  for (row = 0; row < 9; ++row) {
    queued_call c;
    begin_queued_call(&c, rows[row].remove);
    CHECK_STATUS(multicast_token_remove_nowait(c.r.token), MULTICAST_PENDING);
    expect_to_wait(&c.r, rows[row].expected);
    run_finished(&c.run);
    CHECK_EQ(LOAD(c.b.releases), 1);
  }
}

TEST(queue_call_removed_is_not_waited_for_by_removal_of_others) {
  queued_call c;
  begin_queued_call(&c, by_nowait);
  CHECK_STATUS(multicast_token_remove_nowait(c.r.token), MULTICAST_PENDING);
  CHECK_ERROR(multicast_remove(c.r.target, counter(&calls)), NOT_FOUND);
  CHECK_EQ(multicast_remove_context(c.r.target, &calls), 0);
  gate_open(&c.b.let_go);
  CHECK_EQ(run_finished(&c.run), 1);
}

/* ---- Removal inside the call ----------------------------------------------------------------- */

static void removes_itself(int64_t (*remove)(removal *), int64_t expected) {
  own_removal o = {0};
  add_removable(&o.r, DELEGATE(remove_itself, &o), default_queue(), release_itself);
  o.r.remove = remove;
  invoke_number(o.r.target, 1);
  invoke_number(o.r.target, 2);
  CHECK_EQ(multicast_queue_run(o.r.queue, 0), 1);
  CHECK_STATUS(o.result, expected);
  CHECK_EQ(o.calls, 1);
  CHECK_EQ(o.releases_inside, 0);
  CHECK_EQ(o.releases, 1);
  if (remove != by_queue)
    CHECK_TEXT(figures(o.r.queue), "queued 2, delivered 1, cancelled 1");
}

TEST(queue_call_that_removes_itself_is_pending) { removes_itself(by_remove, MULTICAST_PENDING); }
TEST(queue_call_that_removes_its_token_is_pending) { removes_itself(by_token, MULTICAST_PENDING); }
TEST(queue_call_that_removes_itself_nowait_is_pending) {
  removes_itself(by_nowait, MULTICAST_PENDING);
}
TEST(queue_call_that_removes_itself_within_is_pending) {
  removes_itself(by_within_without_limit, MULTICAST_PENDING);
}
TEST(queue_call_that_removes_its_place_is_pending) { removes_itself(by_place, MULTICAST_PENDING); }
TEST(queue_call_that_destroys_its_multicast_is_pending) {
  removes_itself(by_destroy, MULTICAST_PENDING);
}
TEST(queue_call_that_ends_its_lifetime_is_pending) {
  removes_itself(by_lifetime, MULTICAST_PENDING);
}
TEST(queue_call_that_destroys_its_queue_is_pending) {
  removes_itself(by_queue, MULTICAST_PENDING);
}
TEST(queue_call_that_removes_its_context_counts_it) { removes_itself(by_context, 1 - 1); }
TEST(queue_call_that_removes_all_counts_it) { removes_itself(by_all, 1 - 1); }
TEST(queue_call_that_removes_many_counts_it) { removes_itself(by_many, 1 - 1); }
TEST(queue_call_that_replaces_itself_by_unique_is_released_after) {
  removes_itself(by_unique, MULTICAST_OK);
}

/* The context of a delegate whose call removes another delegate. Two threads make two such calls,
 * and each call removes the delegate of the other. */
typedef struct rival {
  multicast target;
  multicast_token token;
  struct rival *other;
  gate entered;
  int64_t result;
  int releases;
} rival;

FUNCTION(remove_the_other, rival *r) {
  gate_open(&r->entered);
  gate_wait(&r->other->entered);
  r->result = multicast_token_remove(r->other->token);
}

static void release_rival(void *context) { ADD(((rival *)context)->releases, 1); }

TEST(queue_calls_that_remove_each_other_do_not_hang) {
  rival rivals[2];
  multicast_queue queues[2];
  runner runs[2];
  memset(rivals, 0, sizeof rivals);
  for (int i = 0; i < 2; ++i) {
    rivals[i].entered = shut;
    rivals[i].other = &rivals[1 - i];
    queues[i] = default_queue();
    multicast_add_options options = ADD_OPTIONS(.queue = queues[i], .release = release_rival);
    rivals[i].target = multicast_create();
    rivals[i].token = add_with(rivals[i].target, DELEGATE(remove_the_other, &rivals[i]), &options);
    CHECK_EQ(invoke_number(rivals[i].target, 1), 1);
  }
  for (int i = 0; i < 2; ++i) run_in_background(&runs[i], queues[i], 0);
  for (int i = 0; i < 2; ++i) CHECK_EQ(run_finished(&runs[i]), 1);
  CHECK(rivals[0].result == MULTICAST_PENDING || rivals[1].result == MULTICAST_PENDING);
  for (int i = 0; i < 2; ++i) {
    CHECK(rivals[i].result == MULTICAST_OK || rivals[i].result == MULTICAST_PENDING);
    CHECK_EQ(LOAD(rivals[i].releases), 1);
  }
}
