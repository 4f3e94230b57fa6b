/* A thread, or the process, ends inside a queued call. */

#include "numbers.h"
#include "producers.h"
#include "queues.h"

/* ---- exit ------------------------------------------------------------------------------------ */

static void use_queue_at_exit(void) {
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create();
  int calls = 0;
  add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_queue_destroy(q));
}

static multicast inherited_target;

THREAD(produce_for_ever, void *unused) {
  for (;;) multicast_invoke(inherited_target, 0, NULL, 0);
}

static multicast_queue inherited;

static void exit_with_a_worker(void *unused) {
  static int calls;
  CHECK_EQ(atexit(use_queue_at_exit), 0);
  inherited = queue_with(16, MULTICAST_OVERFLOW_BLOCK);
  inherited_target = multicast_create();
  add_queued(inherited_target, counter(&calls), inherited);
  CHECK_OK(multicast_queue_start(inherited));
  start_thread(produce_for_ever, NULL);
  EVENTUALLY(LOAD(calls) > 10);
  exit(0);
}

TEST(queue_with_a_worker_and_producers_at_exit_is_harmless) {
  for (int i = 0; i < 3; ++i) in_child(exit_with_a_worker, NULL);
}

/* ---- Threads that end inside a call ---------------------------------------------------------- */

typedef struct ending {
  multicast_queue queue;
  multicast target;
  multicast_token token;
  bool removes_itself;
  int calls, releases;
  int64_t result;
} ending;

FUNCTION(end_thread, ending *e) {
  if (ADD(e->calls, 1) > 1) return;
  if (e->removes_itself)
    CHECK_STATUS(multicast_token_remove(multicast_token_current()), MULTICAST_PENDING);
  pthread_exit(NULL);
}

static void release_ending(void *context) { ADD(((ending *)context)->releases, 1); }

static void begin_ending(ending *e, bool removes_itself, int calls) {
  memset(e, 0, sizeof *e);
  e->removes_itself = removes_itself;
  e->queue = queue_with(16, MULTICAST_OVERFLOW_BLOCK);
  e->target = multicast_create();
  multicast_delegate d = {end_thread, e};
  e->token = add_with(e->target, d, &ADD_OPTIONS(.queue = e->queue, .release = release_ending));
  while (calls-- > 0)
    CHECK_EQ(invoke_padded_number(e->target, calls, calls % 2 == 0 ? 4096 : 4), 1);
}

THREAD(run_to_the_end, ending *e) {
  multicast_queue_run(e->queue, 0);
  CHECK(false); /* not reached: the thread has ended */
}

TEST(queue_call_in_which_its_thread_ends_leaves_queue_to_others) {
  ending e;
  begin_ending(&e, false, 3);
  on_another_thread(run_to_the_end, &e);
  CHECK_EQ(stats_of(e.queue).pending, 2);
  CHECK_EQ(multicast_queue_run(e.queue, 1), 1);
  CHECK_OK(multicast_queue_start(e.queue));
  EVENTUALLY(stats_of(e.queue).delivered == 3);
  CHECK_OK(multicast_queue_stop(e.queue));
  CHECK_EQ(e.calls, 3);
  CHECK_OK(multicast_token_remove(e.token));
  CHECK_EQ(LOAD(e.releases), 1);
  CHECK_OK(multicast_queue_destroy(e.queue));
}

TEST(queue_call_in_which_its_thread_ends_is_released) {
  ending e;
  begin_ending(&e, true, 3);
  on_another_thread(run_to_the_end, &e);
  CHECK_EQ(LOAD(e.releases), 1);
  CHECK_EQ(stats_of(e.queue).cancelled, 2);
  CHECK_EQ(multicast_queue_run(e.queue, 0), 0);
  CHECK_OK(multicast_queue_destroy(e.queue));
}

TEST(queue_call_in_which_its_thread_ends_leaves_no_payload_behind) {
  int64_t before = 0;
  use_test_allocator();
  for (int round = 0; round < 20; ++round) {
    ending e;
    begin_ending(&e, false, 1);
    on_another_thread(run_to_the_end, &e);
    CHECK_OK(multicast_destroy(e.target));
    CHECK_OK(multicast_queue_destroy(e.queue));
    if (round == 5) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}

static ending outer_ending;

static void run_inner(void *context, uint32_t event, const void *payload, size_t size) {
  if (ADD(outer_ending.calls, 1) == 1) multicast_queue_run(((ending *)context)->queue, 0);
}

TEST(queue_call_in_which_its_thread_ends_leaves_outer_queue_too) {
  ending inner;
  begin_ending(&inner, false, 2);
  outer_ending.queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  outer_ending.target = multicast_create();
  add_queued(outer_ending.target, DELEGATE(run_inner, &inner), outer_ending.queue);
  CHECK_EQ(multicast_invoke(outer_ending.target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(outer_ending.target, 0, NULL, 0), 1);
  on_another_thread(run_to_the_end, &outer_ending);
  CHECK_EQ(multicast_queue_run(outer_ending.queue, 0), 1);
  CHECK_EQ(multicast_queue_run(inner.queue, 0), 1);
  CHECK_OK(multicast_queue_destroy(outer_ending.queue));
  CHECK_OK(multicast_queue_destroy(inner.queue));
}

TEST(queue_worker_that_ends_inside_call_leaves_queue_to_others) {
  ending e;
  begin_ending(&e, false, 3);
  CHECK_OK(multicast_queue_start(e.queue));
  EVENTUALLY(LOAD(e.calls) == 1);
  multicast_status status = multicast_queue_stop(e.queue); /* must not wait forever */
  CHECK(status == MULTICAST_OK || status == MULTICAST_ERROR_STATE);
  EVENTUALLY(multicast_queue_run(e.queue, 1) == 1);
  CHECK_OK(multicast_queue_start(e.queue));
  EVENTUALLY(LOAD(e.calls) == 3);
  CHECK_OK(multicast_queue_destroy(e.queue));
  CHECK_EQ(LOAD(e.releases), 1);
}

TEST(queue_destroyed_after_its_worker_ended_inside_a_call) {
  ending e;
  begin_ending(&e, false, 3);
  CHECK_OK(multicast_queue_start(e.queue));
  EVENTUALLY(LOAD(e.calls) == 1);
  CHECK_OK(multicast_queue_destroy(e.queue));
  CHECK_EQ(LOAD(e.releases), 1);
  CHECK_EQ(LOAD(e.calls), 1);
}

TEST_OF_MULTICAST(queue_that_blocks_goes_on_where_its_consumer_has_ended) {
  ending e;
  begin_ending(&e, false, 1);
  on_another_thread(run_to_the_end, &e);
  add_queued(m, counter(&calls), e.queue);
  for (int i = 0; i < 16; ++i) CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  sleeper s = {.target = m, .returned = shut};
  s.thread = start_thread(invoke_into_full, &s);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  CHECK_EQ(multicast_queue_run(e.queue, 1), 1);
  join_thread(s.thread);
  CHECK_EQ(s.result, 1);
}
