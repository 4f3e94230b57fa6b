/* If a worker is started while another thread is running the queue, the worker takes over when that
 * thread's run ends, even if the run ends because the thread ends. */

#include "harness.h"

enum { WORK = 0, START = 1, END = 2, STAY = 4 };

typedef struct turn {
  multicast target;
  multicast_queue queue;
  gate has_worked, entered, may_return;
} turn;

FUNCTION(take_turn, turn *t) {
  if (event & STAY) {
    gate_open(&t->entered);
    gate_wait(&t->may_return);
  }
  if (event & START) {
    CHECK_OK(multicast_queue_start(t->queue));
    pause_ms(A_WHILE_MS); /* the worker is now waiting for its turn */
  }
  if (event & END) pthread_exit(NULL);
  if (event == WORK) gate_open(&t->has_worked);
}

static void begin_turns(turn *t) {
  t->target = multicast_create();
  t->queue = queue_with(10, MULTICAST_OVERFLOW_REFUSE);
  add_with(t->target, DELEGATE(take_turn, t), &ADD_OPTIONS(.queue = t->queue));
}

THREAD(run_all, multicast_queue *argument) {
  multicast_queue_run(*argument, 0);
}

TEST(queue_worker_goes_on_where_the_last_runner_has_ended) {
  static turn t = {{0}, {0}, GATE_INIT, GATE_INIT, GATE_INIT};
  begin_turns(&t);
  CHECK_EQ(multicast_invoke(t.target, START | END, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(t.target, WORK, NULL, 0), 1);
  on_another_thread(run_all, &t.queue);
  gate_wait(&t.has_worked);
  CHECK_OK(multicast_queue_destroy(t.queue));
}

TEST(queue_worker_gets_its_turn_after_runner_after_ended_one) {
  static turn t = {{0}, {0}, GATE_INIT, GATE_INIT, GATE_INIT};
  begin_turns(&t);
  CHECK_EQ(multicast_invoke(t.target, END, NULL, 0), 1);
  on_another_thread(run_all, &t.queue);
  CHECK_EQ(multicast_invoke(t.target, START, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(t.target, WORK, NULL, 0), 1);
  CHECK(multicast_queue_run(t.queue, 0) >= 1);
  gate_wait(&t.has_worked);
  CHECK_OK(multicast_queue_destroy(t.queue));
}

#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
static void expect_a_turn(void *argument) {
  turn *t = argument;
  CHECK_EQ(multicast_invoke(t->target, START, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(t->target, WORK, NULL, 0), 1);
  CHECK(multicast_queue_run(t->queue, 0) >= 1);
  gate_wait(&t->has_worked);
  CHECK_OK(multicast_queue_destroy(t->queue));
}

TEST(queue_worker_gets_its_turn_in_the_child_during_a_call) {
  static turn t = {{0}, {0}, GATE_INIT, GATE_INIT, GATE_INIT};
  begin_turns(&t);
  CHECK_EQ(multicast_invoke(t.target, STAY, NULL, 0), 1);
  pthread_t runner = start_thread(run_all, &t.queue);
  gate_wait(&t.entered);
  in_child(expect_a_turn, &t);
  gate_open(&t.may_return);
  join_thread(runner);
}
#endif
