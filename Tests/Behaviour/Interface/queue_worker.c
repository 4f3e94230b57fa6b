/* A queue's worker is a thread that the library creates to make the queued calls one after the
 * other. */

#include "linux.h"
#include "notes.h"
#include "queues.h"
#include "removals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

/* ---- Calls ----------------------------------------------------------------------------------- */

/* The context of a delegate that counts its calls, expects them not to overlap, and records the
 * threads on which they run. */
typedef struct observer {
  int calls, inside;
  pthread_t on;
  bool is_elsewhere_too; /* whether calls have run on more than one thread */
  pthread_t maker;
  bool blocks_signals;
} observer;

FUNCTION(observe, observer *o) {
  sigset_t blocked;
  CHECK_EQ(ADD(o->inside, 1), 1);
  if (o->calls > 0 && !pthread_equal(o->on, pthread_self())) o->is_elsewhere_too = true;
  o->on = pthread_self();
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
  o->blocks_signals = sigismember(&blocked, SIGINT) == 1 && sigismember(&blocked, SIGTERM) == 1 &&
                      sigismember(&blocked, SIGUSR1) == 1 && sigismember(&blocked, SIGCHLD) == 1;
  ADD(o->inside, -1);
  ADD(o->calls, 1);
}

static multicast_delegate observing(observer *o) {
  memset(o, 0, sizeof *o);
  o->maker = pthread_self();
  return (multicast_delegate){observe, o};
}

static void copy_signal_mask(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, context), 0);
}

TEST_OF_QUEUE(queue_worker_blocks_no_signal_of_fault_and_no_real_time_one) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  sigset_t there, before, after;
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
  add_queued(m, DELEGATE(copy_signal_mask, &there), q);
  CHECK_OK(multicast_queue_start(q));
  CHECK_EQ(invoke_number(m, 0), 1);
  EVENTUALLY(stats_of(q).delivered == 1);
  CHECK_OK(multicast_queue_stop(q));
  for (size_t i = 0; i < sizeof faults / sizeof *faults; ++i)
    CHECK_EQ(sigismember(&there, faults[i]) * faults[i], 0);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal)
    CHECK_EQ(sigismember(&there, signal) * signal, 0);
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
  for (int signal = 1; signal <= SIGRTMAX; ++signal)
    CHECK_EQ(sigismember(&after, signal), sigismember(&before, signal));
}

TEST_OF_QUEUE(queue_worker_makes_the_calls_on_a_thread_of_its_own) {
  observer o;
  add_queued(m, observing(&o), q);
  invoke_number(m, 0); /* the call is waiting before the worker starts */
  CHECK_OK(multicast_queue_start(q));
  for (int i = 1; i < 100; ++i) {
    CHECK_EQ(invoke_number(m, i), 1);
    if (i % 10 == 0) EVENTUALLY(LOAD(o.calls) == i + 1); /* the worker has to be woken again */
  }
  EVENTUALLY(LOAD(o.calls) == 100);
  CHECK_OK(multicast_queue_stop(q));
  CHECK(!pthread_equal(o.on, pthread_self()));
  CHECK(!o.is_elsewhere_too);
  CHECK(o.blocks_signals);
  CHECK_TEXT(figures(q), "queued 100, delivered 100");
}

TEST(queue_worker_lets_nobody_else_run_the_queue) {
  multicast_queue q = default_queue();
  CHECK_OK(multicast_queue_start(q));
  CHECK_ERROR(multicast_queue_run(q, 0), STATE);
  CHECK_ERROR(multicast_queue_run(q, 1), STATE);
  CHECK_OK(multicast_queue_stop(q));
  CHECK_EQ(multicast_queue_run(q, 0), 0);
}

TEST(queue_run_inside_a_call_of_its_worker_goes_on_with_the_next) {
  requeuer r;
  begin_requeuing(&r, run_inside, 0);
  invoke_number(r.target, 2);
  invoke_number(r.target, 4);
  CHECK_OK(multicast_queue_start(r.queue));
  EVENTUALLY(stats_of(r.queue).delivered == 3);
  CHECK_OK(multicast_queue_stop(r.queue));
  CHECK_EQ(r.nested, 1);
  CHECK_TEXT(noted, "(1 (2 )2 )1 (4 )4");
}

/* ---- Starting again -------------------------------------------------------------------------- */

TEST(queue_start_twice_is_state) {
  multicast_queue q = default_queue();
  CHECK_OK(multicast_queue_start(q));
  CHECK_ERROR(multicast_queue_start(q), STATE);
  CHECK_OK(multicast_queue_stop(q));
}

TEST_OF_QUEUE(queue_may_be_started_again_and_again) {
  observer o;
  add_queued(m, observing(&o), q);
  for (int i = 1; i <= 30; ++i) {
    CHECK_OK(multicast_queue_start(q));
    CHECK_EQ(invoke_number(m, i), 1);
    if (i % 2 == 0) EVENTUALLY(LOAD(o.calls) == i);
    CHECK_OK(multicast_queue_stop(q));
    multicast_queue_run(q, 0); /* makes the call if the worker has not yet made it */
    CHECK_EQ(LOAD(o.calls), i);
  }
}

static multicast_queue started_inside;
static int64_t start_result;

FUNCTION(start_in_a_call, observer *o) {
  ADD(o->inside, 1); /* a concurrent call on the worker would detect this */
  start_result = multicast_queue_start(started_inside);
  pause_ms(A_WHILE_MS);
  ADD(o->inside, -1);
}

TEST(queue_worker_started_inside_a_call_ends_the_run) {
  observer o;
  multicast_delegate d = observing(&o), starting;
  multicast m = multicast_create();
  starting.function = start_in_a_call;
  starting.context = &o;
  started_inside = default_queue();
  add_queued(m, starting, started_inside);
  add_queued(m, d, started_inside);
  add_queued(m, d, started_inside);
  CHECK_EQ(invoke_number(m, 1), 3);
  CHECK_EQ(multicast_queue_run(started_inside, 0), 1);
  CHECK_OK(start_result);
  EVENTUALLY(LOAD(o.calls) == 2);
  CHECK_OK(multicast_queue_stop(started_inside));
  CHECK(!pthread_equal(o.on, pthread_self()));
}

TEST(queue_worker_started_while_other_thread_runs_begins_after_it) {
  queued_call c;
  begin_queued_call(&c, by_token);
  CHECK_OK(multicast_queue_start(c.r.queue));
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(c.b.calls), 1);
  gate_open(&c.b.let_go);
  CHECK_EQ(run_finished(&c.run), 1);
  EVENTUALLY(LOAD(c.b.calls) == 3);
  CHECK_OK(multicast_queue_stop(c.r.queue));
  CHECK_TEXT(figures(c.r.queue), "queued 3, delivered 3");
}

TEST(queue_wait_sees_what_a_worker_has_not_come_to) {
  removal r;
  blocker b = BLOCKER_INIT;
  add_removable(&r, blocking(&b), default_queue(), NULL);
  CHECK_OK(multicast_queue_start(r.queue));
  invoke_number(r.target, 1);
  gate_wait(&b.entered);
  CHECK_ERROR(multicast_queue_wait(r.queue, 0), TIMEOUT);
  invoke_number(r.target, 2);
  CHECK_EQ(multicast_queue_wait(r.queue, 0), 1);
  gate_open(&b.let_go);
  CHECK_OK(multicast_queue_destroy(r.queue));
}

/* ---- Threads --------------------------------------------------------------------------------- */

TEST(queue_workers_end_and_leave_nothing_behind) {
  enum { WORKERS = 100 };
  int64_t before = 0;
  use_test_allocator();
  for (int i = 0; i < WORKERS; ++i) {
    multicast_queue q = default_queue();
    CHECK_OK(multicast_queue_start(q));
    if (i % 2 == 0) CHECK_OK(multicast_queue_stop(q));
    CHECK_OK(multicast_queue_destroy(q));
    if (i == 10) before = allocated_bytes;
  }
  EVENTUALLY(count_threads() < 10); /* this thread and threads of a sanitizer remain */
  /* Several workers may have existed simultaneously, so the library may have kept several thread
   * records. */
  CHECK(LOAD(allocated_bytes) - before < INT64_C(8192) * WORKERS / 2);
}

TEST_OF_QUEUE(queue_starts_no_thread_behind_the_callers_back) {
  int before = count_threads();
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  CHECK(multicast_queue_fd(q) >= 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(count_threads(), before);
}

static void deny_threads(void) {
#ifdef __linux__
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {(unsigned short)(sizeof filter / sizeof filter[0]), filter};
  CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
#endif
}

static void start_without_threads(void *unused) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  deny_threads();
  CHECK_ERROR(multicast_queue_start(q), SYSTEM);
  CHECK_ERROR(multicast_queue_start(q), SYSTEM);
  CHECK_ERROR(multicast_queue_stop(q), STATE);
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "a1");
  CHECK_OK(multicast_queue_destroy(q));
}

TEST(queue_start_is_system_when_there_is_no_thread_left) {
  needs_kernel("a filter of system calls");
  /* use a child, so that a sanitizer can still start threads when this process exits */
  in_child(start_without_threads, NULL);
}
