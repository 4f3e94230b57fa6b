/* Rule 7 across fork: the calls that wait are the parent's, the queue is usable in both. */

#include "harness.h"
#include "numbers.h"
#include "producers.h"
#include "queues.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- The queue ------------------------------------------------------------------------------- */

static multicast_queue inherited;
static multicast inherited_target;
static int inherited_fd;
static char noted[4096];

static void note_number(void *context, uint32_t event, const void *payload, size_t size) {
  size_t used = strlen(noted);
  int number;
  (void)context;
  (void)event;
  CHECK(size >= sizeof number);
  memcpy(&number, payload, sizeof number);
  snprintf(noted + used, sizeof noted - used, "%s%d", used > 0 ? " " : "", number);
}

static multicast_delegate noting(void) {
  multicast_delegate d = {note_number, NULL};
  return d;
}

static void inherit_calls(int count) {
  int i;
  inherited = queue_with(20, MULTICAST_OVERFLOW_REFUSE);
  inherited_target = multicast_create();
  inherited_fd = multicast_queue_fd(inherited);
  add_queued(inherited_target, noting(), inherited);
  for (i = 1; i <= count; ++i)
    CHECK_EQ(invoke_number(inherited_target, i, i % 2 == 0 ? 4096 : 4), 1);
}

static void expect_empty_and_usable(void *unused) {
  multicast_queue_stats s = stats_of(inherited);
  (void)unused;
  CHECK_EQ(s.pending, 0);
  CHECK_EQ(s.dropped, 3); /* they were the parent's to make */
  CHECK_EQ(s.queued, 3);
  CHECK_EQ(multicast_queue_run(inherited, 0), 0);
  CHECK_STATUS(multicast_queue_wait(inherited, 0), MULTICAST_ERROR_TIMEOUT);
  CHECK_EQ(multicast_queue_fd(inherited), inherited_fd);
  CHECK(!is_readable(inherited_fd));
  CHECK_EQ(multicast_count(inherited_target), 1);
  CHECK_EQ(invoke_number(inherited_target, 8, 4), 1);
  CHECK(is_readable(inherited_fd));
  CHECK_EQ(invoke_number(inherited_target, 9, 4096), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  CHECK(!is_readable(inherited_fd));
  CHECK_TEXT(noted, "8 9");
#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
  CHECK_OK(multicast_queue_start(inherited));
  CHECK_EQ(invoke_number(inherited_target, 10, 4), 1);
  EVENTUALLY(stats_of(inherited).delivered == 3);
  CHECK_OK(multicast_queue_stop(inherited));
  CHECK_TEXT(noted, "8 9 10");
#endif
  CHECK_OK(multicast_queue_destroy(inherited));
}

TEST(queue_is_empty_and_usable_in_the_child_of_a_fork) {
  inherit_calls(3);
  CHECK(is_readable(inherited_fd));
  in_child(expect_empty_and_usable, NULL);
  CHECK(is_readable(inherited_fd)); /* whatever the child did with its own */
  CHECK_EQ(stats_of(inherited).pending, 3);
  CHECK_EQ(stats_of(inherited).dropped, 0);
  CHECK_EQ(multicast_queue_run(inherited, 0), 3);
  CHECK_TEXT(noted, "1 2 3");
  CHECK(!is_readable(inherited_fd));
}

static void fill_and_leave(void *unused) {
  (void)unused;
  CHECK_EQ(invoke_number(inherited_target, 9, 4), 1);
  CHECK(is_readable(inherited_fd));
}

TEST(queue_fd_of_the_parent_is_not_made_readable_by_the_child) {
  inherit_calls(1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  in_child(fill_and_leave, NULL);
  CHECK(!is_readable(inherited_fd));
  CHECK_EQ(invoke_number(inherited_target, 2, 4), 1);
  CHECK(is_readable(inherited_fd));
}

TEST(queue_fd_of_the_child_is_not_changed_by_the_parent) {
  int to_child[2], to_parent[2], status;
  char byte = 0;
  pid_t child;
  inherit_calls(2);
  CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20);
    CHECK_EQ(invoke_number(inherited_target, 7, 4), 1);
    CHECK_EQ(write(to_parent[1], &byte, 1), 1);
    CHECK_EQ(read(to_child[0], &byte, 1), 1); /* the parent has drained its own */
    CHECK(is_readable(inherited_fd));
    CHECK_EQ(multicast_queue_run(inherited, 0), 1);
    CHECK(!is_readable(inherited_fd));
    _exit(0);
  }
  CHECK_EQ(read(to_parent[0], &byte, 1), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  CHECK(!is_readable(inherited_fd)); /* though the child's is */
  CHECK_EQ(write(to_child[1], &byte, 1), 1);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
  CHECK(!is_readable(inherited_fd));
}

static void expect_grandchild_empty(void *unused) {
  (void)unused;
  CHECK_EQ(stats_of(inherited).pending, 0);
  CHECK_EQ(invoke_number(inherited_target, 5, 4), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
}

static void fork_again(void *unused) {
  (void)unused;
  CHECK_EQ(invoke_number(inherited_target, 4, 4), 1);
  in_child(expect_grandchild_empty, NULL);
  CHECK(is_readable(inherited_fd));
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  CHECK_TEXT(noted, "4");
}

TEST(queue_in_the_child_of_the_child_of_a_fork) {
  inherit_calls(2);
  in_child(fork_again, NULL);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  CHECK_TEXT(noted, "1 2");
}

static int payloads_before;

static void expect_payloads_let_go(void *unused) {
  (void)unused;
  CHECK_EQ(allocated_blocks, payloads_before);
}

TEST(queue_payloads_are_let_go_in_the_child_of_a_fork) {
  use_test_allocator();
  inherit_calls(2);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  payloads_before = (int)allocated_blocks;
  CHECK_EQ(invoke_number(inherited_target, 3, 4096), 1);
  CHECK_EQ(invoke_number(inherited_target, 4, 4096), 1);
  CHECK_EQ(allocated_blocks, payloads_before + 2);
  in_child(expect_payloads_let_go, NULL);
  CHECK_EQ(allocated_blocks, payloads_before + 2);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  CHECK_EQ(allocated_blocks, payloads_before);
}

static blocker busy = BLOCKER_INIT;
static multicast_token busy_token;

static void *run_inherited(void *result) {
  *(int64_t *)result = multicast_queue_run(inherited, 0);
  return NULL;
}

static pthread_t begin_busy_call(int64_t *result) {
  multicast_options options;
  pthread_t thread;
  inherit_calls(0);
  options = to_queue(inherited);
  options.release = release_blocker;
  busy_token = add_with(inherited_target, blocking(&busy), &options);
  CHECK_EQ(invoke_number(inherited_target, 1, 4), 2);
  CHECK_EQ(invoke_number(inherited_target, 2, 4), 2);
  thread = start_thread(run_inherited, result);
  gate_wait(&busy.entered);
  return thread;
}

static void expect_nobody_running(void *unused) {
  (void)unused;
  CHECK_OK(multicast_token_remove(busy_token)); /* of a call that does not run here */
  CHECK_EQ(busy.releases, 1);
  CHECK_EQ(invoke_number(inherited_target, 7, 4), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1); /* it is not run by a thread that is not here */
  CHECK_OK(multicast_queue_destroy(inherited));
}

TEST(queue_that_another_thread_runs_is_run_by_nobody_in_the_child_of_a_fork) {
  int64_t result = 0;
  pthread_t thread = begin_busy_call(&result);
  in_child(expect_nobody_running, NULL);
  CHECK_EQ(LOAD(busy.releases), 0);
  gate_open(&busy.let_go);
  join_thread(thread);
  CHECK_EQ(result, 4);
  CHECK_TEXT(noted, "1 2");
}

static void expect_released(void *unused) {
  (void)unused;
  CHECK_EQ(busy.releases, 1);
}

TEST(queue_call_that_was_removed_and_runs_is_released_in_the_child_of_a_fork) {
  int64_t result = 0;
  pthread_t thread = begin_busy_call(&result);
  CHECK_STATUS(multicast_token_remove_nowait(busy_token), MULTICAST_PENDING);
  in_child(expect_released, NULL);
  CHECK_EQ(LOAD(busy.releases), 0);
  gate_open(&busy.let_go);
  join_thread(thread);
  CHECK_EQ(LOAD(busy.releases), 1);
}

static void expect_room(void *unused) {
  (void)unused;
  CHECK_EQ(multicast_invoke(inherited_target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  CHECK_OK(multicast_queue_destroy(inherited));
}

TEST(queue_on_which_threads_sleep_is_usable_in_the_child_of_a_fork) {
  sleeper blocked, waiting;
  int calls = 0;
  inherited = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  inherited_target = multicast_create();
  add_queued(inherited_target, counter(&calls), inherited);
  CHECK_EQ(multicast_invoke(inherited_target, 0, NULL, 0), 1);
  blocked.target = inherited_target;
  blocked.returned = shut;
  blocked.thread = start_thread(invoke_into_full, &blocked);
  waiting.queue = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
  waiting.returned = shut;
  waiting.thread = start_thread(wait_in_queue, &waiting);
  pause_ms(A_WHILE_MS);
  in_child(expect_room, NULL);
  CHECK_EQ(multicast_queue_run(inherited, 1), 1);
  join_thread(blocked.thread);
  CHECK_EQ(blocked.result, 1);
  CHECK_OK(multicast_queue_destroy(waiting.queue));
  join_thread(waiting.thread);
  CHECK_STATUS(waiting.result, MULTICAST_ERROR_INVALID_HANDLE);
}

/* ---- Calls that fork ------------------------------------------------------------------------- */

static pid_t forked = -1;

static void fork_in_call(void *context, uint32_t event, const void *payload, size_t size) {
  int number;
  memcpy(&number, payload, sizeof number);
  note_number(context, event, payload, size);
  if (number == 1) forked = fork();
  CHECK(size == 4 || size == 4096);
}

TEST(queue_call_that_forks_returns_from_the_run_and_goes_on_in_the_child) {
  multicast_delegate d = {fork_in_call, NULL};
  multicast_token token;
  int status = -1;
  int64_t made;
  inherit_calls(0);
  token = add_queued(inherited_target, d, inherited);
  CHECK_OK(multicast_remove(inherited_target, noting()));
  CHECK_EQ(invoke_number(inherited_target, 1, 4096), 1);
  CHECK_EQ(invoke_number(inherited_target, 2, 4), 1);
  CHECK_EQ(invoke_number(inherited_target, 3, 4096), 1);
  made = multicast_queue_run(inherited, 0);
  CHECK(forked >= 0);
  if (forked == 0) {
    alarm(20);
    CHECK_EQ(made, 1); /* the others are the parent's */
    CHECK_TEXT(noted, "1");
    CHECK_EQ(stats_of(inherited).delivered, 1);
    CHECK_EQ(stats_of(inherited).dropped, 2);
    CHECK_EQ(invoke_number(inherited_target, 4, 4096), 1);
    CHECK_EQ(multicast_queue_run(inherited, 0), 1);
    CHECK_TEXT(noted, "1 4");
    CHECK_OK(multicast_token_remove(token));
    CHECK_OK(multicast_queue_destroy(inherited));
    _exit(0);
  }
  CHECK_EQ(made, 3);
  CHECK_TEXT(noted, "1 2 3");
  CHECK(waitpid(forked, &status, 0) == forked);
  CHECK_EQ(status, 0);
}

static void run_in_child_of_call(void *unused) {
  (void)unused;
  CHECK_EQ(multicast_queue_run(inherited, 0), 0);
  CHECK_EQ(invoke_number(inherited_target, 7, 4), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  CHECK_STATUS(multicast_queue_destroy(inherited), MULTICAST_PENDING);
}

static void fork_and_use(void *context, uint32_t event, const void *payload, size_t size) {
  int number;
  memcpy(&number, payload, sizeof number);
  note_number(context, event, payload, size);
  if (number == 1) in_child(run_in_child_of_call, NULL);
}

TEST(queue_call_that_forks_may_run_and_destroy_the_queue_in_the_child) {
  multicast_delegate d = {fork_and_use, NULL};
  inherit_calls(0);
  add_queued(inherited_target, d, inherited);
  CHECK_OK(multicast_remove(inherited_target, noting()));
  CHECK_EQ(invoke_number(inherited_target, 1, 4), 1);
  CHECK_EQ(invoke_number(inherited_target, 2, 4), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  CHECK_TEXT(noted, "1 2");
}

static gate worker_has_forked = GATE_INIT;

static void fork_in_worker(void *context, uint32_t event, const void *payload, size_t size) {
  note_number(context, event, payload, size);
  if (forked >= 0) return;
  forked = fork();
  CHECK(forked >= 0);
  if (forked == 0) {
    alarm(20);
    CHECK_STATUS(multicast_queue_stop(inherited), MULTICAST_ERROR_STATE); /* it has no worker */
    CHECK_EQ(stats_of(inherited).pending, 0);
    CHECK_EQ(invoke_number(inherited_target, 8, 4), 1);
    return; /* the child's only thread ends, and so does the child, with 0 */
  }
  gate_open(&worker_has_forked);
}

TEST(queue_worker_whose_call_forks_ends_in_the_child_and_goes_on_in_the_parent) {
  multicast_delegate d = {fork_in_worker, NULL};
  int status = -1;
  inherit_calls(0);
  add_queued(inherited_target, d, inherited);
  CHECK_OK(multicast_remove(inherited_target, noting()));
  CHECK_OK(multicast_queue_start(inherited));
  CHECK_EQ(invoke_number(inherited_target, 1, 4), 1);
  CHECK_EQ(invoke_number(inherited_target, 2, 4), 1);
  gate_wait(&worker_has_forked);
  EVENTUALLY(stats_of(inherited).pending == 0);
  CHECK_OK(multicast_queue_stop(inherited));
  CHECK_TEXT(noted, "1 2");
  CHECK(waitpid(forked, &status, 0) == forked);
  CHECK_EQ(status, 0);
}
