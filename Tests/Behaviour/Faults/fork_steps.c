/* Forks at each instruction of another thread that is inside the library. */

#include "../Interface/harness.h"
#include "steps.h"

enum { THREADS_IN_A_BLOCK = 64, MOST_THREADS = 3 * THREADS_IN_A_BLOCK };

/* ---- The watched thread ---------------------------------------------------------------------- */

static void (*be_the_child)(void);

static due at_each_step(void) { return NOW; }

static void fork_once(void) {
  pid_t child = begin_child();
  if (child == 0) {
    forget_steps();
    be_the_child();
    _Exit(0);
  }
  need_no_lock(); /* the fork is over, and only the child still works */
  CHECK_EQ(end_of_child(child), 0);
}

/* Forks at each instruction of the body, and returns the number of forks. */
static int fork_at_each_step(void (*body)(void), void (*be_child)(void)) {
  be_the_child = be_child;
  return answer_at_steps(body, at_each_step, fork_once);
}

/* ---- Thread records -------------------------------------------------------------------------- */

static gate may_end = GATE_INIT;
static int prepared;

static void *prepare(void *until) {
  CHECK_OK(multicast_thread_prepare());
  ADD(prepared, 1);
  if (until != NULL) gate_wait(until);
  return NULL;
}

static void start_threads(pthread_t *threads, int count, gate *until) {
  prepared = 0;
  for (int i = 0; i < count; ++i) threads[i] = start_thread(prepare, until);
  EVENTUALLY(LOAD(prepared) == count);
}

static void use_more_records_than_the_parent(void) {
  static gate all_end = GATE_INIT;
  pthread_t threads[THREADS_IN_A_BLOCK + 8];
  enum { COUNT = sizeof threads / sizeof *threads };
  start_threads(threads, COUNT, &all_end);
  gate_open(&all_end);
  for (int i = 0; i < COUNT; ++i) join_thread(threads[i]);
}

static void prepare_this(void) { CHECK_OK(multicast_thread_prepare()); }

static void prepare_in_steps(void) {
  begin_steps();
  prepare_this();
}

static void *fork_while_another_thread_prepares(void *unused) {
  (void)unused;
  prepare_this();
  int forks = fork_at_each_step(prepare_in_steps, use_more_records_than_the_parent);
  CHECK(forks > 50);
  return NULL;
}

/* 64 idle threads own all records of the first block. The watched thread and the forking thread use
 * records of a later block, whose pages multicast_trim() has returned to the system. By the time of
 * the fork, the forking thread has already written to these pages. */
TEST(fork_at_each_instruction_of_the_first_use_by_a_thread) {
  static gate none_are_left = GATE_INIT;
  static pthread_t threads[MOST_THREADS];
  start_threads(threads, MOST_THREADS, &none_are_left);
  gate_open(&none_are_left);
  for (int i = 0; i < MOST_THREADS; ++i) join_thread(threads[i]);
  CHECK(multicast_trim() > 0);
  start_threads(threads, THREADS_IN_A_BLOCK, &may_end);
  on_another_thread(fork_while_another_thread_prepares, NULL);
  gate_open(&may_end);
  for (int i = 0; i < THREADS_IN_A_BLOCK; ++i) join_thread(threads[i]);
}
