/* A thread that waits for a queue continues as soon as a call is waiting or the queue is
 * destroyed. */

#include "notes.h"
#include "queues.h"

TEST_OF_QUEUE(queue_wait_returns_how_many_calls_wait) {
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  invoke_number(m, 2);
  CHECK_EQ(multicast_queue_wait(q, 0), 2);
  CHECK_EQ(multicast_queue_wait(q, 1), 2);
  CHECK_EQ(multicast_queue_wait(q, UINT64_MAX), 2);
  multicast_queue_run(q, 1);
  CHECK_EQ(multicast_queue_wait(q, UINT64_MAX), 1);
}

/* A waiting thread sleeps instead of polling, so it uses hardly any processor time. */
TEST(queue_wait_sleeps_until_its_time_is_up) {
  multicast_queue q = default_queue();
  const moment begin = this_moment();
  int round;
  /* enough rounds for the clock to reach a new second during one of the waits */
  for (round = 0; round < 4; ++round) {
    CHECK_ERROR(multicast_queue_wait(q, 350000000), TIMEOUT);
  }
  CHECK(now_ns() - begin.time_ns >= UINT64_C(4) * 350000000);
  expect_to_have_slept(begin);
}

typedef struct waiter {
  multicast_queue queue;
  uint64_t timeout;
  int64_t result;
  gate returned;
  pthread_t thread;
} waiter;

THREAD(wait_once, waiter *w) {
  w->result = multicast_queue_wait(w->queue, w->timeout);
  gate_open(&w->returned);
}

static void wait_in_background(waiter *w, multicast_queue q, uint64_t timeout) {
  w->queue = q;
  w->timeout = timeout;
  w->returned = shut;
  w->result = INT64_MIN;
  w->thread = start_thread(wait_once, w);
}

TEST_OF_QUEUE(queue_wait_is_woken_by_a_call_from_another_thread) {
  waiter w[3];
  add_queued(m, noting('a'), q);
  for (int i = 0; i < 3; ++i) {
    wait_in_background(&w[i], q, i == 0 ? UINT64_C(20000000000) : UINT64_MAX - (uint64_t)(i - 1));
    CHECK(!gate_opens_within(&w[i].returned, A_WHILE_MS));
  }
  CHECK_EQ(invoke_number(m, 1), 1);
  for (int i = 0; i < 3; ++i) {
    join_thread(w[i].thread);
    CHECK_EQ(w[i].result, 1);
  }
}

TEST(queue_wait_is_woken_by_destroy_with_invalid_handle) {
  multicast_queue q = default_queue();
  waiter w[3];
  for (int i = 0; i < 3; ++i) wait_in_background(&w[i], q, UINT64_MAX);
  CHECK(!gate_opens_within(&w[0].returned, A_WHILE_MS));
  CHECK_OK(multicast_queue_destroy(q));
  (void)default_queue(); /* may reuse the slot */
  for (int i = 0; i < 3; ++i) {
    join_thread(w[i].thread);
    CHECK_ERROR(w[i].result, INVALID_HANDLE);
  }
}

static int64_t once_count = -1;

static void wait_inside(void *context, uint32_t event, const void *payload, size_t size) {
  note_call((void *)(intptr_t)'a', event, payload, size);
  once_count = multicast_queue_wait(((requeuer *)context)->queue, 1000000);
}

TEST(queue_wait_inside_a_call_counts_what_waits_still) {
  requeuer r;
  begin_requeuing(&r, wait_inside, 0);
  invoke_number(r.target, 2);
  CHECK_EQ(multicast_queue_run(r.queue, 1), 1);
  CHECK_EQ(once_count, 1);
  CHECK_EQ(multicast_queue_run(r.queue, 1), 1);
  CHECK_ERROR(once_count, TIMEOUT);
}
