/* A debugger or profiler stops a thread with ptrace(). The thread may be inside a call, asleep in a
 * removal, or at any instruction of a removal. Meanwhile, the timeouts of other threads still work;
 * afterwards, everything continues. */

#include "../Interface/harness.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- The tracer, which is another process ---------------------------------------------------- */

enum { STOP = 's', GO_ON = 'g', PAUSES = 'p', DONE = 'd', REFUSED = 'r' };

typedef struct order {
  int what;
  pid_t thread;
} order;

typedef struct tracer {
  int orders, answers;
  pid_t process;
} tracer;

static bool wait_for_stop(pid_t thread) {
  for (;;) {
    int status;
    if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) return false;
    if (WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP) return true;
    /* this signal is not from ptrace(), so pass it on to the thread */
    if (ptrace(PTRACE_CONT, thread, 0, WSTOPSIG(status)) != 0) return false;
  }
}

static bool stop(pid_t thread) {
  return ptrace(PTRACE_INTERRUPT, thread, 0, 0) == 0 && wait_for_stop(thread);
}

static void rest(long microseconds) {
  struct timespec duration = {0, 1000 * microseconds};
  nanosleep(&duration, NULL);
}

/* Stops the thread repeatedly, each time at a different instruction and for a millisecond. */
static bool pause_often(pid_t thread) {
  for (int i = 0; i < 150; ++i) {
    if (!stop(thread)) return false;
    for (int step = 0; step < i % 50; ++step) {
      if (ptrace(PTRACE_SINGLESTEP, thread, 0, 0) != 0 || !wait_for_stop(thread)) return false;
    }
    rest(1000);
    if (ptrace(PTRACE_CONT, thread, 0, 0) != 0) return false;
    rest(100 + i);
  }
  return stop(thread) && ptrace(PTRACE_DETACH, thread, 0, 0) == 0;
}

static bool obey(order o) {
  if (o.what == GO_ON) return ptrace(PTRACE_DETACH, o.thread, 0, 0) == 0;
  if (ptrace(PTRACE_SEIZE, o.thread, 0, 0) != 0) return false;
  return o.what == STOP ? stop(o.thread) : pause_often(o.thread);
}

static void trace(int orders, int answers) {
  order o;
  while (read(orders, &o, sizeof o) == (ssize_t)sizeof o) {
    o.what = obey(o) ? DONE : REFUSED;
    if (write(answers, &o, sizeof o) != (ssize_t)sizeof o) break;
  }
  _exit(0);
}

static bool tell(tracer *t, int what, pid_t thread) {
  order o = {what, thread};
  CHECK_EQ(write(t->orders, &o, sizeof o), sizeof o);
  CHECK_EQ(read(t->answers, &o, sizeof o), sizeof o);
  return o.what == DONE;
}

static pid_t this_thread(void) { return (pid_t)syscall(SYS_gettid); }

static void begin_tracer(tracer *t) {
  int orders[2], answers[2];
  CHECK_EQ(pipe(orders), 0);
  CHECK_EQ(pipe(answers), 0);
  t->process = begin_child();
  if (t->process == 0) {
    close(orders[1]);
    close(answers[0]);
    trace(orders[0], answers[1]);
  }
  close(orders[0]);
  close(answers[1]);
  t->orders = orders[1];
  t->answers = answers[0];
#ifdef PR_SET_PTRACER
  prctl(PR_SET_PTRACER, (unsigned long)t->process, 0, 0, 0);
#endif
}

static void end_tracer(tracer *t) {
  close(t->orders);
  close(t->answers);
  CHECK_EQ(end_of_child(t->process), 0);
}

/* ---- A thread that can be stopped ------------------------------------------------------------ */

typedef struct traced {
  multicast m;
  multicast_token token;
  uint64_t timeout_ns;
  pid_t number;
  gate has_begun;
  int64_t result;
  bool has_to_end;
} traced;

static void begin_traced(traced *t) {
  t->number = this_thread();
  gate_open(&t->has_begun);
}

static void *invoke_it(void *argument) {
  traced *t = argument;
  begin_traced(t);
  t->result = multicast_invoke(t->m, 0, NULL, 0);
  return NULL;
}

static void *remove_it(void *argument) {
  traced *t = argument;
  begin_traced(t);
  t->result = multicast_token_remove_within(t->token, t->timeout_ns);
  return NULL;
}

/* Stops the thread. It must be asleep, because a running thread may be holding one of the test's
 * locks. Returns false if ptrace() is not permitted, so that the caller can skip the test. */
static bool is_stopped(tracer *t, traced *thread) {
  if (tell(t, STOP, thread->number)) return true;
  puts("ptrace is not permitted here");
  return false;
}

/* ---- Inside a call --------------------------------------------------------------------------- */

TEST(thread_stopped_inside_a_call_lets_removals_time_out) {
  multicast m = multicast_create();
  blocker b = BLOCKER_INIT;
  traced t = {m, add(m, blocking(&b)), 0, 0, GATE_INIT, 0, false};
  tracer by;
  int calls = 0;
  multicast_token other = add(m, counter(&calls));
  begin_tracer(&by);
  pthread_t thread = start_thread(invoke_it, &t);
  gate_wait(&b.entered);
  pause_ms(A_WHILE_MS);
  if (is_stopped(&by, &t)) {
    gate_open(&b.let_go); /* the call could return if its thread were running */
    for (int i = 0; i < 3; ++i)
      CHECK_ERROR(multicast_token_remove_within(t.token, 5000000), TIMEOUT);
    CHECK_OK(multicast_token_remove(other)); /* no thread is in a call of this delegate */
    CHECK_EQ(multicast_count(m), 0);
    CHECK(!LOAD(b.has_left));
    CHECK(tell(&by, GO_ON, t.number));
  }
  gate_open(&b.let_go);
  CHECK(multicast_token_remove(t.token) <= 0);
  CHECK(LOAD(b.has_left));
  join_thread(thread);
  end_tracer(&by);
  CHECK_OK(multicast_destroy(m));
}

/* ---- Asleep in a removal --------------------------------------------------------------------- */

enum { IN_TIME_MS = 500 };

static void stop_removal(uint64_t timeout_ns, bool ends_meanwhile) {
  multicast m = multicast_create();
  blocker b = BLOCKER_INIT;
  traced t = {m, add(m, blocking(&b)), timeout_ns, 0, GATE_INIT, 0, false};
  tracer by;
  begin_tracer(&by);
  begin_blocked(&b, m);
  pthread_t thread = start_thread(remove_it, &t);
  gate_wait(&t.has_begun);
  EVENTUALLY(!multicast_token_is_valid(t.token));
  pause_ms(A_WHILE_MS);
  if (is_stopped(&by, &t)) {
    int calls = 0;
    multicast_token other = add(m, counter(&calls));
    CHECK_ERROR(multicast_token_remove_within(t.token, 1000000), TIMEOUT);
    CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
    CHECK_OK(multicast_token_remove(other));
    if (ends_meanwhile) {
      CHECK_EQ(end_blocked(&b), 1);
    }
    pause_ms(2 * IN_TIME_MS);
    CHECK(tell(&by, GO_ON, t.number));
    join_thread(thread);
    if (ends_meanwhile) {
      CHECK_OK(t.result); /* although the timeout may have passed while the thread was stopped */
    } else {
      CHECK_ERROR(t.result, TIMEOUT);
      CHECK(!LOAD(b.has_left));
    }
  } else {
    ends_meanwhile = false;
    gate_open(&b.let_go);
    join_thread(thread);
  }
  gate_open(&b.let_go);
  if (!ends_meanwhile) CHECK_EQ(invoke_finished(&b.invoking), 1);
  end_tracer(&by);
  CHECK_OK(multicast_destroy(m));
}

TEST(removal_that_is_stopped_beyond_its_time_times_out) {
  stop_removal(IN_TIME_MS * UINT64_C(1000000), false);
}
TEST(removal_that_is_stopped_when_the_call_ends_is_ok) {
  stop_removal(IN_TIME_MS * UINT64_C(1000000), true);
}
TEST(removal_without_a_limit_stopped_when_the_call_ends_is_ok) {
  stop_removal(MULTICAST_FOREVER, true);
}

/* ---- At any instruction ---------------------------------------------------------------------- */

static void *change_often(void *argument) {
  traced *t = argument;
  int calls = 0;
  begin_traced(t);
  while (!LOAD(t->has_to_end)) {
    multicast_token token = add(t->m, counter(&calls));
    CHECK(multicast_invoke(t->m, 0, NULL, 0) >= 1);
    CHECK_OK(multicast_token_remove(token));
    ++t->result;
  }
  return NULL;
}

/* Waits until the tracer has stopped the traced thread for the last time. Whenever that thread is
 * stopped while holding a lock, other threads have to wait until it continues. */
static void *pause_it(void *argument) {
  tracer *by = argument;
  order o;
  CHECK_EQ(read(by->answers, &o, sizeof o), sizeof o);
  if (o.what != DONE) puts("ptrace is not permitted here");
  return NULL;
}

TEST(thread_stopped_at_any_instruction_of_removal_only_delays) {
  traced t = {multicast_create(), {0}, 0, 0, GATE_INIT, 0, false};
  order o = {PAUSES, 0};
  tracer by;
  int calls = 0, rounds = 0;
  bool is_over = false;
  begin_tracer(&by);
  pthread_t changing = start_thread(change_often, &t);
  gate_wait(&t.has_begun);
  o.thread = t.number;
  CHECK_EQ(write(by.orders, &o, sizeof o), sizeof o);
  pthread_t waiting = start_thread(pause_it, &by);
  while (!is_over) {
    multicast_token token = add(t.m, counter(&calls));
    CHECK(multicast_invoke(t.m, 0, NULL, 0) >= 1);
    CHECK_OK(multicast_token_remove_within(token, UINT64_C(20000000000)));
    ++rounds;
    is_over = pthread_tryjoin_np(waiting, NULL) == 0;
  }
  STORE(t.has_to_end, true);
  join_thread(changing);
  end_tracer(&by);
  printf("%d rounds beside %lld\n", rounds, (long long)t.result);
  CHECK_EQ(multicast_count(t.m), 0);
  CHECK(calls >= rounds);
  CHECK_OK(multicast_destroy(t.m));
}
