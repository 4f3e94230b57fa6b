/* A process forks while payloads, waiting invocations and wake functions exist. A payload that was
 * handed over before the fork belongs to the parent. */

#include "notes.h"
#include "payloads.h"

#include <sys/wait.h>
#include <unistd.h>

static multicast target;
static multicast_queue inherited;
static cargo before, made;

static void inherit(void) {
  target = multicast_create();
  inherited = default_queue();
  add_queued(target, counter(&calls), inherited);
}

/* ---- Queued calls ---------------------------------------------------------------------------- */

static void use_in_child(void *unused) {
  multicast_invocation how = copying(&made);
  CHECK_EQ(before.releases, 0);
  CHECK_EQ(copies[0].releases, 0);
  CHECK_EQ(multicast_queue_run(inherited, 0), 0);
  CHECK_EQ(hand_over(target, &made), 1);
  CHECK_EQ(multicast_invoke_with(target, &how, NULL), 1);
  CHECK_EQ(copy_count, 2);
  CHECK_EQ(multicast_queue_run(inherited, 1), 1);
  CHECK_EQ(made.releases, 1);
  CHECK_OK(multicast_queue_destroy(inherited));
  CHECK_EQ(copies[1].releases, 1);
  CHECK_EQ(made.releases, 1);
  CHECK_OK(multicast_destroy(target));
  CHECK_EQ(before.releases, 0);
  CHECK_EQ(copies[0].releases, 0);
}

TEST(payload_of_before_a_fork_is_released_in_the_parent_alone) {
  multicast_invocation how = copying(&before);
  inherit();
  CHECK_EQ(hand_over(target, &before), 1);
  CHECK_EQ(multicast_invoke_with(target, &how, NULL), 1);
  in_child(use_in_child, NULL);
  CHECK_EQ(before.releases, 0);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  CHECK_EQ(before.releases, 1);
  CHECK_EQ(copies[0].releases, 1);
}

static int64_t blocks_before;

static void expect_blocks_freed(void *unused) {
  CHECK_EQ(allocated_blocks, blocks_before);
}

TEST(payload_of_before_a_fork_leaves_no_memory_in_the_child) {
  use_test_allocator();
  inherit();
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  blocks_before = allocated_blocks;
  CHECK_EQ(hand_over(target, &before), 1);
  CHECK_EQ(allocated_blocks, blocks_before + 1);
  in_child(expect_blocks_freed, NULL);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  CHECK_EQ(allocated_blocks, blocks_before);
}

/* ---- Inside calls ---------------------------------------------------------------------------- */

static pid_t child;

static void fork_inside(void *context, uint32_t event, const void *payload, size_t size) {
  fflush(NULL);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) alarm(20);
}

static void expect_child_to_succeed(void) {
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
}

/* The invocation that forks also continues in the child, but its payload belongs to the parent. */
TEST(payload_of_invocation_that_forks_is_released_in_parent_only) {
  for (int is_queued = 0; is_queued < 2; ++is_queued) {
    for (int waits = 0; waits < 2; ++waits) {
      multicast_outcome out = MULTICAST_OUTCOME_INIT;
      before.releases = 0;
      inherit();
      multicast_invocation how = handing_over(&before);
      add(target, DELEGATE(fork_inside, NULL));
      CHECK_EQ(multicast_queue_run(inherited, 0), 0);
      if (waits) how.flags = MULTICAST_WAIT;
      if (!is_queued) CHECK_EQ(multicast_remove(target, counter(&calls)), MULTICAST_OK);
      if (waits && is_queued) CHECK_OK(multicast_queue_start(inherited));
      CHECK_EQ(multicast_invoke_with(target, &how, &out), is_queued ? 2 : 1);
      if (child == 0) {
        CHECK_EQ(before.releases, 0);
        CHECK_EQ(out.unfinished, 0);
        CHECK_EQ(multicast_queue_run(inherited, 0), 0);
        CHECK_OK(multicast_queue_destroy(inherited));
        CHECK_EQ(before.releases, 0);
        CHECK_EQ(hand_over(target, &made), 1 /* the delegate forks again, which has no effect */);
        _exit(0);
      }
      if (is_queued && !waits) CHECK_EQ(multicast_queue_run(inherited, 0), 1);
      CHECK_EQ(before.releases, 1);
      expect_child_to_succeed();
      if (waits && is_queued) CHECK_OK(multicast_queue_destroy(inherited));
    }
  }
}

static void fork_in_queued_call(void *context, uint32_t event, const void *payload, size_t size) {
  fork_inside(context, event, payload, size);
}

TEST(payload_of_queued_call_that_forks_is_released_in_parent_only) {
  target = multicast_create();
  inherited = default_queue();
  add_queued(target, DELEGATE(fork_in_queued_call, NULL), inherited);
  CHECK_EQ(hand_over(target, &before), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  if (child == 0) {
    CHECK_EQ(before.releases, 0);
    _exit(0);
  }
  CHECK_EQ(before.releases, 1);
  expect_child_to_succeed();
}

/* ---- Other threads --------------------------------------------------------------------------- */

static blocker running = BLOCKER_INIT;

static void use_while_threads_are_gone(void *unused) {
  CHECK_EQ(before.releases, 0);
  CHECK_OK(multicast_destroy(target)); /* no call of its delegates is running in the child */
  CHECK_OK(multicast_queue_destroy(inherited));
  CHECK_EQ(before.releases, 0);
}

THREAD(hand_over_in_thread, void *unused) {
  CHECK(hand_over(target, &before) >= 1);
}

TEST(payload_that_the_parent_was_passing_on_stays_in_the_child) {
  inherit();
  add(target, blocking(&running));
  pthread_t thread = start_thread(hand_over_in_thread, NULL);
  gate_wait(&running.entered);
  in_child(use_while_threads_are_gone, NULL);
  gate_open(&running.let_go);
  join_thread(thread);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  CHECK_EQ(before.releases, 1);
}

TEST(payload_of_a_call_of_the_parent_stays_in_the_child) {
  runner run;
  target = multicast_create();
  inherited = default_queue();
  add_queued(target, blocking(&running), inherited);
  CHECK_EQ(hand_over(target, &before), 1);
  run_in_background(&run, inherited, 0);
  gate_wait(&running.entered);
  in_child(use_while_threads_are_gone, NULL);
  gate_open(&running.let_go);
  CHECK_EQ(run_finished(&run), 1);
  CHECK_EQ(before.releases, 1);
}

static void wait_in_child(void *unused) {
  multicast_invocation how = waiting();
  CHECK_EQ(multicast_queue_run(inherited, 0), 0); /* makes this thread the queue's consumer */
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  CHECK_INVOKED(target, &how, 1, 0, 1, 0, 0, 1);
#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
  CHECK_OK(multicast_queue_start(inherited));
  EVENTUALLY(stats_of(inherited).pending == 0);
  CHECK_INVOKED(target, &how, 1, 0, 1, 0, 1, 0);
#endif
  CHECK_OK(multicast_queue_destroy(inherited));
}

TEST(wait_in_the_child_while_a_thread_of_the_parent_waits) {
  waiter w;
  inherit();
  begin_waiting(&w, target, NULL);
  EVENTUALLY(stats_of(inherited).pending == 1);
  expect_to_be_waiting(&w);
  in_child(wait_in_child, NULL);
  expect_to_be_waiting(&w);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  expect_waited(&w, 1, 1, 0);
}

/* ---- Wake ------------------------------------------------------------------------------------ */

static int wakes;
static gate in_wake = GATE_INIT, leave_wake = GATE_INIT;
static bool wake_blocks;

static void wake(void *unused) {
  ADD(wakes, 1);
  if (!LOAD(wake_blocks)) return;
  STORE(wake_blocks, false);
  gate_open(&in_wake);
  gate_wait(&leave_wake);
}

static void inherit_wake(void) {
  target = multicast_create();
  inherited = multicast_queue_create(&QUEUE_OPTIONS(.wake = wake));
  add_queued(target, counter(&calls), inherited);
}

static void expect_woken(void *unused) {
  CHECK_EQ(wakes, 1);
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1); /* the queue was empty in the child */
  CHECK_EQ(wakes, 2);
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  CHECK_EQ(wakes, 2);
  CHECK_EQ(multicast_queue_run(inherited, 1), 1);
  CHECK_EQ(wakes, 3);
  CHECK_OK(multicast_queue_destroy(inherited)); /* no thread is inside `wake` */
}

TEST(queue_wake_is_called_in_the_child_of_a_fork) {
  inherit_wake();
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  in_child(expect_woken, NULL);
  CHECK_EQ(wakes, 1);
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  CHECK_EQ(wakes, 1);
}

TEST(queue_destroy_in_child_does_not_wait_for_wake_of_parent) {
  invoker i;
  inherit_wake();
  STORE(wake_blocks, true);
  invoke_in_background(&i, target);
  gate_wait(&in_wake);
  in_child(expect_woken, NULL);
  gate_open(&leave_wake);
  CHECK_EQ(invoke_finished(&i), 1);
}
