/* Threads that wait for a queue keep waiting despite signals and cancellation. A thread with a
 * pending cancellation does not leave a lock held. */

#include "producers.h"
#include "queues.h"

#include <signal.h>

static int signals_caught;

static void catch_signal(int number) {
  ADD(signals_caught, 1);
}

static void disturb(pthread_t thread, bool cancels) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = catch_signal;
  CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
  pause_ms(10);
  if (cancels) CHECK_EQ(pthread_cancel(thread), 0);
  for (int i = 0; !cancels && i < 10; ++i) {
    CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
    pause_ms(2);
  }
}

static void sleeps_on(bool is_blocked, bool cancels) {
  sleeper s;
  int calls = 0;
  s.queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  s.target = multicast_create();
  s.returned = shut;
  s.result = -1;
  add_queued(s.target, counter(&calls), s.queue);
  if (is_blocked) multicast_invoke(s.target, 0, NULL, 0);
  s.thread = start_thread(is_blocked ? invoke_into_full : wait_in_queue, &s);
  disturb(s.thread, cancels);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  if (is_blocked) {
    CHECK_EQ(multicast_queue_run(s.queue, 1), 1);
  } else {
    CHECK_EQ(multicast_invoke(s.target, 0, NULL, 0), 1);
  }
  CHECK_EQ(pthread_join(s.thread, NULL), 0);
  if (!cancels) CHECK_EQ(s.result, 1);
  EVENTUALLY(stats_of(s.queue).pending == 1); /* the disturbed thread has left no lock held */
  CHECK_EQ(multicast_queue_run(s.queue, 0), 1);
  CHECK_OK(multicast_queue_destroy(s.queue));
}

TEST(queue_wait_goes_on_through_signals) { sleeps_on(false, false); }
TEST(queue_wait_goes_on_through_cancellation) { sleeps_on(false, true); }
TEST(queue_that_blocks_goes_on_through_signals) { sleeps_on(true, false); }
TEST(queue_that_blocks_goes_on_through_cancellation) { sleeps_on(true, true); }

/* ---- Pending cancellation -------------------------------------------------------------------- */

typedef struct cancelled {
  multicast target;
  multicast_queue queue;
  int calls;
} cancelled;

static void begin_cancelled(cancelled *c) {
  c->calls = 0;
  c->target = multicast_create();
  c->queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  add_with(c->target, counter(&c->calls), &ADD_OPTIONS(.queue = c->queue));
  /* the library reads and writes the descriptor, and both calls are cancellation points */
  CHECK(multicast_queue_fd(c->queue) >= 0);
}

THREAD(invoke_cancelled, cancelled *c) {
  CHECK_EQ(pthread_cancel(pthread_self()), 0);
  multicast_invoke(c->target, 0, NULL, 0);
  pthread_testcancel();
}

THREAD(run_cancelled, cancelled *c) {
  CHECK_EQ(pthread_cancel(pthread_self()), 0);
  multicast_queue_run(c->queue, 0);
  pthread_testcancel();
}

THREAD(destroy_cancelled, cancelled *c) {
  CHECK_EQ(pthread_cancel(pthread_self()), 0);
  multicast_queue_destroy(c->queue);
  pthread_testcancel();
}

TEST(invocation_with_cancellation_pending_leaves_no_lock_held) {
  cancelled c;
  begin_cancelled(&c);
  on_another_thread(invoke_cancelled, &c);
  CHECK_EQ(stats_of(c.queue).pending, 1);
  CHECK_EQ(multicast_queue_run(c.queue, 0), 1);
  CHECK_EQ(c.calls, 1);
  CHECK_OK(multicast_queue_destroy(c.queue));
}

TEST(queue_run_with_a_cancellation_pending_leaves_no_lock_held) {
  cancelled c;
  begin_cancelled(&c);
  CHECK_EQ(multicast_invoke(c.target, 0, NULL, 0), 1);
  on_another_thread(run_cancelled, &c);
  CHECK_EQ(stats_of(c.queue).pending, 0);
  CHECK_EQ(c.calls, 1);
  CHECK_EQ(multicast_invoke(c.target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(c.queue, 0), 1);
  CHECK_OK(multicast_queue_destroy(c.queue));
}

TEST(queue_destroy_with_cancellation_pending_leaves_no_lock_held) {
  cancelled c;
  begin_cancelled(&c);
  CHECK_EQ(multicast_invoke(c.target, 0, NULL, 0), 1);
  on_another_thread(destroy_cancelled, &c);
  CHECK_ERROR(multicast_queue_destroy(c.queue), INVALID_HANDLE);
  CHECK_EQ(multicast_count(c.target), 0);
  CHECK_OK(multicast_queue_destroy(queue_with(1, MULTICAST_OVERFLOW_REFUSE)));
}
