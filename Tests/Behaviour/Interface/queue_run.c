/* Queued calls run on the thread that runs the queue. They run on only one thread at a time, even
 * if runs are nested. */

#include "notes.h"
#include "queues.h"

FUNCTION(queue_itself_again, requeuer *r) {
  note_call((void *)(intptr_t)'a', event, payload, size);
  ++r->made;
  if (r->left > 0) {
    --r->left;
    CHECK_EQ(invoke_number(r->target, r->made + 1), 1);
  }
}

TEST(queue_run_makes_calls_queued_meanwhile_until_max_is_reached) {
  requeuer r;
  begin_requeuing(&r, queue_itself_again, 10);
  CHECK_NOTED(multicast_queue_run(r.queue, 5), 5, "a1 a2 a3 a4 a5");
  CHECK_EQ(multicast_queue_run(r.queue, 100), 6);
  CHECK_EQ(multicast_queue_run(r.queue, 100), 0);
}

TEST(queue_run_of_0_makes_as_many_as_waited) {
  requeuer r;
  begin_requeuing(&r, queue_itself_again, 1000000);
  CHECK_NOTED(multicast_queue_run(r.queue, 0), 1, "a1");
  CHECK_EQ(invoke_number(r.target, 77), 1);
  CHECK_NOTED(multicast_queue_run(r.queue, 0), 2, "a1 a2 a77");
}

TEST(queue_run_inside_its_own_call_goes_on_with_the_next) {
  requeuer r;
  begin_requeuing(&r, run_inside, 0);
  invoke_number(r.target, 2);
  invoke_number(r.target, 4);
  invoke_number(r.target, 6);
  /* this run makes the calls 1, 4 and 6; call 2 runs inside call 1 */
  CHECK_EQ(multicast_queue_run(r.queue, 0), 3);
  CHECK_EQ(r.nested, 1);
  CHECK_TEXT(noted, "(1 (2 )2 )1 (4 )4 (6 )6");
  CHECK_TEXT(figures(r.queue), "queued 4, delivered 4");
  CHECK_EQ(invoke_number(r.target, 8), 1); /* the queue still works */
  CHECK_EQ(run_elsewhere(r.queue, 0), 1);
}

FUNCTION(run_to_the_limit, requeuer *r) {
  ++r->made;
  int64_t result = multicast_queue_run(r->queue, 1);
  if (result < 0) r->nested = result;
}

TEST(queue_runs_nested_too_deep_are_limit) {
  requeuer r;
  begin_requeuing(&r, run_to_the_limit, 0);
  for (int i = 1; i < 600; ++i) CHECK_EQ(invoke_number(r.target, 1), 1);
  CHECK_EQ(multicast_queue_run(r.queue, 1), 1);
  CHECK_ERROR(r.nested, LIMIT);
  CHECK_EQ(r.made, 256);
  CHECK_TEXT(figures(r.queue), "pending 344, queued 600, delivered 256");
  CHECK_EQ(multicast_queue_run(r.queue, 1), 1); /* the runs can nest again */
  CHECK_EQ(r.made, 512);
}

FUNCTION(invoke_to_the_limit, requeuer *r) {
  ++r->made;
  if (r->made == 256) {
    r->nested = multicast_queue_run(r->queue, 0);
  } else {
    CHECK_EQ(multicast_invoke(r->target, event, payload, size), 1);
  }
}

TEST_OF_MULTICAST(queue_run_inside_256_invocations_is_limit) {
  requeuer r = {{0}, {0}, 0, 0, 0};
  r.queue = default_queue();
  r.target = multicast_create();
  add(r.target, DELEGATE(invoke_to_the_limit, &r));
  add_queued(m, noting('a'), r.queue);
  invoke_number(m, 1);
  CHECK_EQ(multicast_invoke(r.target, 0, NULL, 0), 1);
  CHECK_ERROR(r.nested, LIMIT);
  CHECK_NOTED(multicast_queue_run(r.queue, 0), 1, "a1");
}

TEST(queue_run_inside_a_call_of_another_queue_makes_its_calls) {
  requeuer r;
  multicast_queue outer = default_queue();
  multicast m = multicast_create(), other = multicast_create();
  r.queue = default_queue(); /* the call runs this queue */
  r.nested = 0;
  add_queued(m, DELEGATE(run_inside, &r), outer);
  add_queued(other, noting('x'), r.queue);
  invoke_number(m, 1);
  invoke_number(m, 2);
  invoke_number(other, 3);
  CHECK_EQ(multicast_queue_run(outer, 0), 2);
  CHECK_EQ(r.nested, 1);
  CHECK_TEXT(noted, "(1 x3 )1 (2 )2");
}

TEST_OF_QUEUE(queue_run_by_a_second_thread_is_state) {
  blocker b = BLOCKER_INIT;
  runner r;
  add_queued(m, blocking(&b), q);
  invoke_number(m, 1);
  invoke_number(m, 2);
  run_in_background(&r, q, 1);
  gate_wait(&b.entered);
  CHECK_ERROR(multicast_queue_run(q, 0), STATE);
  CHECK_ERROR(multicast_queue_run(q, 1), STATE);
  gate_open(&b.let_go);
  CHECK_EQ(run_finished(&r), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(b.calls, 2);
}

typedef struct nesting {
  multicast_queue queue;
  int calls;
  int64_t nested;
  gate has_nested, may_return;
} nesting;

FUNCTION(run_then_stay, nesting *n) {
  if (ADD(n->calls, 1) > 1) return;
  n->nested = multicast_queue_run(n->queue, 1);
  gate_open(&n->has_nested);
  gate_wait(&n->may_return);
}

TEST_OF_MULTICAST(queue_run_by_second_thread_is_state_after_a_nested_run) {
  static nesting n = {{0}, 0, -1, GATE_INIT, GATE_INIT};
  runner r;
  n.queue = default_queue();
  add_queued(m, DELEGATE(run_then_stay, &n), n.queue);
  invoke_number(m, 1);
  invoke_number(m, 2);
  invoke_number(m, 3);
  run_in_background(&r, n.queue, 1);
  gate_wait(&n.has_nested);
  CHECK_EQ(n.nested, 1);
  CHECK_ERROR(multicast_queue_run(n.queue, 0), STATE);
  CHECK_EQ(LOAD(n.calls), 2);
  /* Like any other thread, a worker does not make the next call until the current call has
   * returned. */
  CHECK_OK(multicast_queue_start(n.queue));
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(n.calls), 2);
  gate_open(&n.may_return);
  CHECK_EQ(run_finished(&r), 1);
  EVENTUALLY(LOAD(n.calls) == 3);
  CHECK_OK(multicast_queue_destroy(n.queue));
}

TEST_OF_MULTICAST(queue_destroyed_inside_its_own_call_makes_no_further_one) {
  doomed = default_queue();
  add_queued(m, noting('a'), doomed);
  add_destroyer(m);
  add_queued(m, noting('b'), doomed);
  CHECK_EQ(invoke_number(m, 1), 3);
  CHECK_NOTED(multicast_queue_run(doomed, 0), 2, "a1 d1");
  CHECK_EQ(releases['d'], 1);
  CHECK_EQ(multicast_count(m), 0);
}

static void run_then_destroy(void *context, uint32_t event, const void *payload, size_t size) {
  note_call(context, event, payload, size);
  if (strcmp(noted, "d1") == 0) {
    CHECK_EQ(multicast_queue_run(doomed, 0), 1); /* the call destroys the queue */
  } else {
    CHECK_STATUS(multicast_queue_destroy(doomed), MULTICAST_PENDING);
  }
}

TEST_OF_MULTICAST(queue_destroyed_inside_a_nested_run_ends_both) {
  multicast_delegate d = noting('d');
  doomed = default_queue();
  d.function = run_then_destroy;
  add_queued(m, d, doomed);
  for (int i = 1; i <= 4; ++i) invoke_number(m, i);
  CHECK_NOTED(multicast_queue_run(doomed, 0), 1, "d1 d2");
}

static multicast_queue successor;
static multicast successor_target;

static void destroy_and_create(void *context, uint32_t event, const void *payload, size_t size) {
  note_call(context, event, payload, size);
  CHECK_STATUS(multicast_queue_destroy(doomed), MULTICAST_PENDING);
  successor = default_queue(); /* may reuse the slot */
  add_queued(successor_target, noting('s'), successor);
  CHECK_EQ(invoke_number(successor_target, 2), 1);
  CHECK_EQ(invoke_number(successor_target, 3), 1);
  CHECK_EQ(invoke_number(successor_target, 4), 1);
  CHECK_EQ(multicast_queue_run(successor, 1), 1);
  /* another thread can run the new queue, because this thread is running only the destroyed
   * queue */
  CHECK_EQ(run_elsewhere(successor, 1), 1);
}

TEST_OF_MULTICAST(queue_created_inside_a_call_of_one_just_destroyed_is_another) {
  multicast_delegate d = noting('d');
  successor_target = multicast_create();
  doomed = default_queue();
  d.function = destroy_and_create;
  add_queued(m, d, doomed);
  invoke_number(m, 1);
  invoke_number(m, 9);
  CHECK_NOTED(multicast_queue_run(doomed, 0), 1, "d1 s2 s3");
  CHECK_EQ(run_elsewhere(successor, 0), 1);
  CHECK_TEXT(figures(successor), "queued 3, delivered 3");
}

TEST(queue_run_allocates_nothing_after_the_first_of_a_thread) {
  runner r;
  unsigned char payload[100] = {0};
  use_test_allocator();
  r.queue = default_queue();
  multicast m = multicast_create();
  add_queued(m, counter(&calls), r.queue);
  CHECK_EQ(multicast_invoke(m, 0, payload, 100), 1);
  fail_after = 0;
  on_another_thread(run_on_a_new_thread, &r);
  CHECK_ERROR(r.result, OUT_OF_MEMORY);
  CHECK_TEXT(figures(r.queue), "pending 1, queued 1");
  fail_after = 0;
  CHECK_EQ(multicast_queue_run(r.queue, 0), 1); /* this thread already has its record */
  CHECK_EQ(fail_after, 0);
  fail_after = -1;
  CHECK_EQ(multicast_invoke(m, 0, payload, 100), 1);
  on_another_thread(run_on_a_new_thread, &r);
  CHECK_EQ(r.result, 1);
}

static multicast_queue nested;

static void check_alignment(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_EQ((uintptr_t)payload % 16, 0);
  ADD(calls, 1);
  if (event == 1) multicast_queue_run(nested, 0);
}

TEST(queue_payload_is_aligned_in_a_run_inside_a_call) {
  char payload[64] = {0};
  nested = default_queue();
  multicast m = multicast_create();
  add_queued(m, DELEGATE(check_alignment, NULL), nested);
  for (size_t size = 1; size <= sizeof payload; ++size) {
    for (uint32_t event = 1; event <= 3; ++event) multicast_invoke(m, event, payload, size);
    CHECK_EQ(multicast_queue_run(nested, 1), 1);
  }
  CHECK_EQ(calls, 3 * (int)sizeof payload);
}

FUNCTION(look_at_figures, requeuer *r) {
  ++r->made;
  CHECK_TEXT(figures(r->queue), r->made == 1 ? "pending 1, queued 2, delivered 1"
                                             : "queued 2, delivered 2");
}

TEST(queue_statistics_count_the_call_that_runs_as_delivered) {
  requeuer r;
  begin_requeuing(&r, look_at_figures, 0);
  invoke_number(r.target, 2);
  CHECK_EQ(multicast_queue_run(r.queue, 0), 2);
}
