/* Waits continue despite signals, cancellation and jumps of the wall clock. */

#include "system.h"
#include "waits.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef struct waiter {
  const wait *w;
  scene s;
  int64_t result, took_ns;
  bool has_left; /* whether the awaited call has returned before the wait */
  pid_t id;
  gate begins, returned;
  pthread_t thread;
} waiter;

static int64_t now_ns(void) {
  struct timespec now;
  CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void *wait_there(void *argument) {
  waiter *w = argument;
  w->id = (pid_t)syscall(SYS_gettid);
  gate_open(&w->begins);
  int64_t begin = now_ns();
  w->result = w->w->wait(&w->s);
  w->took_ns = now_ns() - begin;
  w->has_left = LOAD(w->s.b.has_left);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  gate_open(&w->returned);
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  pthread_testcancel();
  return NULL;
}

/* Disturbs a waiting thread, and expects the wait to have the same result as without the
 * disturbance. */
static void is_undisturbed(const wait *kind, void (*disturb)(waiter *), void (*calm)(void),
                           void *ends_with) {
  static const gate shut = GATE_INIT;
  static waiter w;
  void *end;
  printf("%s\n", kind->name);
  fflush(stdout);
  memset(&w, 0, sizeof w);
  w.w = kind;
  w.begins = shut;
  w.returned = shut;
  scene_begin(&w.s, kind);
  w.thread = start_thread(wait_there, &w);
  gate_wait(&w.begins);
  disturb(&w);
  /* if `end` is NULL, the wait times out, on a busy machine perhaps even before this point */
  if (kind->end != NULL) {
    CHECK(!gate_opens_within(&w.returned, A_WHILE_MS));
    kind->end(&w.s);
  }
  gate_wait(&w.returned);
  if (calm != NULL) calm();
  CHECK_STATUS(w.result, kind->result);
  CHECK_EQ(pthread_join(w.thread, &end), 0);
  CHECK(end == ends_with);
  if (kind->end == NULL) {
    CHECK(w.took_ns >= SHORT_NS);
    /* the limit is generous because the machine may be busy */
    CHECK(w.took_ns < 20 * (int64_t)SHORT_NS);
  } else if (w.s.token.id != 0 && !w.s.release_blocks) {
    CHECK(w.has_left); /* the wait did not end early */
  }
  thread_may_begin = NULL;
  scene_end(&w.s);
}

static void none_is_disturbed(void (*disturb)(waiter *), void (*calm)(void), void *ends_with) {
  int64_t bytes = 0;
  use_test_allocator();
  for (int i = 0; i < 2 * wait_count; ++i) {
    is_undisturbed(&waits[i % wait_count], disturb, calm, ends_with);
    if (i % wait_count != wait_count - 1) continue;
    if (i > wait_count) CHECK_EQ(allocated_bytes, bytes);
    bytes = allocated_bytes;
  }
}

/* ---- Signals --------------------------------------------------------------------------------- */

enum { PERIOD_NS = 100000 };
static int signals;
static timer_t storm;

static void count_signal(int number) {
  ADD(signals, 1);
}

/* Sends a signal every 0.1 ms, without SA_RESTART, so that it interrupts every system call. */
static void begin_storm(waiter *w) {
  struct sigaction action;
  struct sigevent event;
  struct itimerspec period = {{0, PERIOD_NS}, {0, PERIOD_NS}};
  memset(&action, 0, sizeof action);
  action.sa_handler = count_signal;
  CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGUSR1;
#ifdef sigev_notify_thread_id
  event.sigev_notify_thread_id = w->id;
#else
  event._sigev_un._tid = w->id;
#endif
  STORE(signals, 0);
  CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &storm), 0);
  CHECK_EQ(timer_settime(storm, 0, &period, NULL), 0);
  EVENTUALLY(LOAD(signals) >= 20);
}

static void end_storm(void) { CHECK_EQ(timer_delete(storm), 0); }

TEST(signals_without_end_disturb_no_wait) { none_is_disturbed(begin_storm, end_storm, NULL); }

/* ---- Cancellation ---------------------------------------------------------------------------- */

static void cancel(waiter *w) {
  pause_ms(10);
  CHECK_EQ(pthread_cancel(w->thread), 0);
}

/* A cancellation does not cut the wait short. The thread is cancelled later, at its next
 * cancellation point. */
TEST(cancellation_disturbs_no_wait) { none_is_disturbed(cancel, NULL, PTHREAD_CANCELED); }

static void cancel_before(waiter *w) { CHECK_EQ(pthread_cancel(w->thread), 0); }

TEST(cancellation_that_is_pending_disturbs_no_wait) {
  none_is_disturbed(cancel_before, NULL, PTHREAD_CANCELED);
}

/* ---- The wall clock -------------------------------------------------------------------------- */

static void do_nothing(waiter *w) { (void)w; }

/* The library sees the wall clock alternate between a day ahead and a day behind. If a condition
 * variable used the wall clock, deadlines taken from the monotonic clock would lie in the distant
 * past. */
TEST(wall_clock_is_never_asked_for_by_a_wait) {
  asked_monotonic = 0;
  for (int i = 0; i < wait_count; ++i) is_undisturbed(&waits[i], do_nothing, NULL, NULL);
  CHECK(asked_monotonic >= 6 * 2); /* each wait with a timeout reads the clock at least twice */
  CHECK_EQ(asked_other_clock, 0);
}
