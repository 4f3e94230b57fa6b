/* Tests which calls a full queue with MULTICAST_OVERFLOW_BLOCK refuses, and how it counts them. */

#include "notes.h"
#include "producers.h"
#include "queues.h"
#include "removals.h"

/* ---- Removal while the call waits for room --------------------------------------------------- */

static void remove_blocked(removal *r, int64_t (*remove)(removal *)) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast other = multicast_create();
  int calls = 0;
  add_queued(other, counter(&calls), q);
  CHECK_EQ(multicast_invoke(other, 0, NULL, 0), 1); /* fills the queue */
  add_removable(r, noting('a'), q, NULL);
  sleeper s = {.target = r->target, .returned = shut};
  s.thread = start_thread(invoke_into_full, &s);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  CHECK_TEXT(figures(q), "pending 1, queued 1");
  CHECK_OK(remove(r));
  join_thread(s.thread);
  CHECK_EQ(s.result, 0);
  CHECK_TEXT(figures(q), "pending 1, queued 1, refused 1");
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(calls, 1);
  CHECK_TEXT(noted, "");
}

TEST(queue_counts_a_blocked_call_that_is_removed_as_refused) {
  static int64_t (*const ways[])(removal *) = {by_remove, by_token,  by_nowait,   by_context,
                                               by_all,    by_destroy, by_lifetime};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
    removal r;
    remove_blocked(&r, ways[i]);
  }
}

/* ---- The thread that is expected to make room ------------------------------------------------ */

typedef struct empty_runner {
  multicast_queue queue;
  multicast target;
  gate has_run, is_full, has_invoked;
  int64_t result;
} empty_runner;

THREAD(run_nothing_and_invoke, empty_runner *r) {
  CHECK_EQ(multicast_queue_run(r->queue, 0), 0);
  CHECK_EQ(multicast_queue_run(r->queue, 5), 0);
  gate_open(&r->has_run);
  gate_wait(&r->is_full);
  r->result = multicast_invoke(r->target, 0, NULL, 0);
  gate_open(&r->has_invoked);
}

static void overflow_after_an_empty_run(bool has_run_calls) {
  static empty_runner r;
  int calls = 0;
  r.queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  r.target = multicast_create();
  r.has_run = r.is_full = r.has_invoked = shut;
  add_queued(r.target, counter(&calls), r.queue);
  if (has_run_calls) { /* makes this thread the queue's consumer */
    CHECK_EQ(multicast_invoke(r.target, 0, NULL, 0), 1);
    CHECK_EQ(multicast_queue_run(r.queue, 0), 1);
  }
  pthread_t thread = start_thread(run_nothing_and_invoke, &r);
  gate_wait(&r.has_run);
  CHECK_EQ(multicast_invoke(r.target, 0, NULL, 0), 1);
  gate_open(&r.is_full);
  CHECK(!gate_opens_within(&r.has_invoked, A_WHILE_MS)); /* the invocation is waiting for room */
  CHECK_EQ(multicast_queue_run(r.queue, 1), 1);
  join_thread(thread);
  CHECK_EQ(r.result, 1);
  CHECK_EQ(stats_of(r.queue).refused, 0);
}

TEST(queue_run_of_nothing_makes_its_thread_no_consumer) {
  overflow_after_an_empty_run(false);
}

/* A run makes its thread the queue's consumer even if it finds only a dead context. */
TEST(queue_run_of_dead_context_makes_its_thread_the_consumer) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast m = multicast_create();
  add_with(m, counter(&calls), &ADD_OPTIONS(.queue = q, .lock = lock_dead,
                                            .unlock = unlock_nothing));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK_TEXT(figures(q), "pending 1, queued 2, refused 1, cancelled 1");
}

TEST(queue_run_of_nothing_leaves_the_consumer_as_it_is) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast m = multicast_create();
  overflow_after_an_empty_run(true);
  add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(run_elsewhere(q, 0), 0);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  /* this call is refused, because this thread was the last to run the queue */
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK_EQ(stats_of(q).refused, 1);
}
