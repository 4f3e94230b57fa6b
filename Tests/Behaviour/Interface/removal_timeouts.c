/* Tests removals with a timeout, removals that do not wait, and waits that continue after
 * signals. */

#include "removals.h"

#include <signal.h>

/* A waiting thread sleeps instead of polling, so that it uses hardly any processor time. */
TEST(token_remove_within_sleeps_until_its_time_is_up) {
  running_call c;
  int round;
  begin_running_call(&c, by_token);
  moment begin = this_moment();
  /* enough rounds for the clock to reach a new second during one of the waits */
  for (round = 0; round < 4; ++round) {
    multicast_status status = multicast_token_remove_within(c.r.token, 350000000);
    CHECK_ERROR(status, TIMEOUT);
  }
  expect_to_have_slept(begin);
  gate_open(&c.b.let_go);
  invoke_finished(&c.i);
  CHECK_EQ(LOAD(c.b.releases), 1);
}

TEST(token_remove_nowait_again_notifies_whether_a_call_still_runs) {
  running_call c;
  begin_running_call(&c, by_nowait);
  CHECK_STATUS(multicast_token_remove_nowait(c.r.token), MULTICAST_PENDING);
  CHECK_STATUS(multicast_token_remove_nowait(c.r.token), MULTICAST_PENDING);
  gate_open(&c.b.let_go);
  CHECK_EQ(invoke_finished(&c.i), 1);
  CHECK_ERROR(multicast_token_remove_nowait(c.r.token), INVALID_HANDLE);
}

static int signals;
static void count_signal(int number) {
  ADD(signals, 1);
}

TEST(remove_waits_on_through_signals) {
  running_call c;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = count_signal;
  CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
  begin_running_call(&c, by_token);
  c.r.thread = start_thread(remove_in_thread, &c.r);
  for (int i = 0; i < 10; ++i) {
    pause_ms(4);
    CHECK_EQ(pthread_kill(c.r.thread, SIGUSR1), 0);
  }
  CHECK(!gate_opens_within(&c.r.returned, 10));
  CHECK(LOAD(signals) > 0);
  gate_open(&c.b.let_go);
  join_thread(c.r.thread);
  CHECK_OK(c.r.result);
  CHECK(c.r.had_left);
  invoke_finished(&c.i);
}

TEST(remove_waits_on_through_cancellation) {
  running_call c;
  begin_running_call(&c, by_token);
  c.r.thread = start_thread(remove_in_thread, &c.r);
  pause_ms(10);
  CHECK_EQ(pthread_cancel(c.r.thread), 0);
  CHECK(!gate_opens_within(&c.r.returned, A_WHILE_MS));
  CHECK_EQ(LOAD(c.b.releases), 0);
  gate_open(&c.b.let_go);
  invoke_finished(&c.i);
  EVENTUALLY(LOAD(c.b.releases) == 1);
  pthread_join(c.r.thread, NULL);
  CHECK_EQ(multicast_count(c.r.target), 0); /* the cancelled thread has left no lock held */
}
