/* When a process forks, queued calls stay in the parent, and both processes can use the queue. */

#include "notes.h"
#include "producers.h"
#include "queues.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The queue ------------------------------------------------------------------------------- */

static multicast_queue inherited;
static multicast inherited_target;
static int inherited_fd;

static void inherit_calls(int count) {
  inherited = queue_with(20, MULTICAST_OVERFLOW_REFUSE);
  inherited_target = multicast_create();
  inherited_fd = multicast_queue_fd(inherited);
  add_queued(inherited_target, noting('a'), inherited);
  for (int i = 1; i <= count; ++i)
    CHECK_EQ(invoke_padded_number(inherited_target, i, i % 2 == 0 ? 4096 : 4), 1);
}

static void expect_empty_and_usable(void *unused) {
  multicast_queue_stats s = stats_of(inherited);
  CHECK_EQ(s.pending, 0);
  CHECK_EQ(s.dropped, 3); /* the calls stay in the parent */
  CHECK_EQ(s.queued, 3);
  CHECK_EQ(multicast_queue_run(inherited, 0), 0);
  CHECK_ERROR(multicast_queue_wait(inherited, 0), TIMEOUT);
  CHECK_EQ(multicast_queue_fd(inherited), inherited_fd);
  CHECK(!is_readable(inherited_fd));
  CHECK_EQ(multicast_count(inherited_target), 1);
  CHECK_EQ(invoke_number(inherited_target, 8), 1);
  CHECK(is_readable(inherited_fd));
  CHECK_EQ(invoke_padded_number(inherited_target, 9, 4096), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  CHECK(!is_readable(inherited_fd));
  CHECK_TEXT(noted, "a8 a9");
#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
  CHECK_OK(multicast_queue_start(inherited));
  CHECK_EQ(invoke_number(inherited_target, 10), 1);
  EVENTUALLY(stats_of(inherited).delivered == 3);
  CHECK_OK(multicast_queue_stop(inherited));
  CHECK_TEXT(noted, "a8 a9 a10");
#endif
  CHECK_OK(multicast_queue_destroy(inherited));
}

TEST(queue_is_empty_and_usable_in_the_child_of_a_fork) {
  inherit_calls(3);
  CHECK(is_readable(inherited_fd));
  in_child(expect_empty_and_usable, NULL);
  CHECK(is_readable(inherited_fd)); /* the child has a descriptor of its own */
  CHECK_EQ(stats_of(inherited).pending, 3);
  CHECK_EQ(stats_of(inherited).dropped, 0);
  CHECK_NOTED(multicast_queue_run(inherited, 0), 3, "a1 a2 a3");
  CHECK(!is_readable(inherited_fd));
}

TEST(queue_fd_of_the_child_is_not_changed_by_the_parent) {
  int to_child[2], to_parent[2], status;
  char byte = 0;
  inherit_calls(2);
  CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20);
    CHECK_EQ(invoke_number(inherited_target, 7), 1);
    CHECK_EQ(write(to_parent[1], &byte, 1), 1);
    CHECK_EQ(read(to_child[0], &byte, 1), 1); /* the parent has now run all its calls */
    CHECK(is_readable(inherited_fd));
    CHECK_EQ(multicast_queue_run(inherited, 0), 1);
    CHECK(!is_readable(inherited_fd));
    _exit(0);
  }
  CHECK_EQ(read(to_parent[0], &byte, 1), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  CHECK(!is_readable(inherited_fd)); /* only the child's descriptor is readable */
  CHECK_EQ(write(to_child[1], &byte, 1), 1);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
  CHECK(!is_readable(inherited_fd));
}

static void expect_grandchild_empty(void *unused) {
  CHECK_EQ(stats_of(inherited).pending, 0);
  CHECK_EQ(invoke_number(inherited_target, 5), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
}

static void fork_again(void *unused) {
  CHECK_EQ(invoke_number(inherited_target, 4), 1);
  in_child(expect_grandchild_empty, NULL);
  CHECK(is_readable(inherited_fd));
  CHECK_NOTED(multicast_queue_run(inherited, 0), 1, "a4");
}

TEST(queue_in_the_child_of_the_child_of_a_fork) {
  inherit_calls(2);
  in_child(fork_again, NULL);
  CHECK_NOTED(multicast_queue_run(inherited, 0), 2, "a1 a2");
}

static blocker busy = BLOCKER_INIT;
static multicast_token busy_token;

THREAD(run_inherited, int64_t *result) {
  *result = multicast_queue_run(inherited, 0);
}

static pthread_t begin_busy_call(int64_t *result) {
  inherit_calls(0);
  multicast_add_options options = ADD_OPTIONS(.queue = inherited, .release = release_blocker);
  busy_token = add_with(inherited_target, blocking(&busy), &options);
  CHECK_EQ(invoke_number(inherited_target, 1), 2);
  CHECK_EQ(invoke_number(inherited_target, 2), 2);
  pthread_t thread = start_thread(run_inherited, result);
  gate_wait(&busy.entered);
  return thread;
}

static void expect_nobody_running(void *unused) {
  CHECK_OK(multicast_token_remove(busy_token)); /* the call runs only in the parent */
  CHECK_EQ(busy.releases, 1);
  CHECK_EQ(invoke_number(inherited_target, 7), 1);
  /* the thread that was running the call does not exist in the child */
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  CHECK_OK(multicast_queue_destroy(inherited));
}

TEST(queue_that_another_thread_runs_is_run_by_nobody_in_the_child) {
  int64_t result = 0;
  pthread_t thread = begin_busy_call(&result);
  in_child(expect_nobody_running, NULL);
  CHECK_EQ(LOAD(busy.releases), 0);
  gate_open(&busy.let_go);
  join_thread(thread);
  CHECK_EQ(result, 4);
  CHECK_TEXT(noted, "a1 a2");
}

static void expect_released(void *unused) {
  CHECK_EQ(busy.releases, 1);
}

TEST(queue_call_removed_while_it_runs_is_released_in_the_child) {
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
  CHECK_EQ(multicast_invoke(inherited_target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  CHECK_OK(multicast_queue_destroy(inherited));
}

TEST(queue_on_which_threads_sleep_is_usable_in_the_child) {
  sleeper blocked, waiting;
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
  CHECK_ERROR(waiting.result, INVALID_HANDLE);
}

/* ---- Calls that fork ------------------------------------------------------------------------- */

static pid_t forked = -1;

static void fork_in_call(void *context, uint32_t event, const void *payload, size_t size) {
  int number;
  memcpy(&number, payload, sizeof number);
  note_call(context, event, payload, size);
  if (number == 1) forked = fork();
  CHECK(size == 4 || size == 4096);
}

TEST(queue_call_that_forks_returns_from_run_and_goes_on_in_child) {
  multicast_delegate d = noting('a');
  int status = -1;
  inherit_calls(0);
  d.function = fork_in_call;
  multicast_token token = add_queued(inherited_target, d, inherited);
  CHECK_OK(multicast_remove(inherited_target, noting('a')));
  CHECK_EQ(invoke_padded_number(inherited_target, 1, 4096), 1);
  CHECK_EQ(invoke_number(inherited_target, 2), 1);
  CHECK_EQ(invoke_padded_number(inherited_target, 3, 4096), 1);
  int64_t made = multicast_queue_run(inherited, 0);
  CHECK(forked >= 0);
  if (forked == 0) {
    alarm(20);
    CHECK_EQ(made, 1); /* the other calls stay in the parent */
    CHECK_TEXT(noted, "a1");
    CHECK_EQ(stats_of(inherited).delivered, 1);
    CHECK_EQ(stats_of(inherited).dropped, 2);
    CHECK_EQ(invoke_padded_number(inherited_target, 4, 4096), 1);
    CHECK_NOTED(multicast_queue_run(inherited, 0), 1, "a1 a4");
    CHECK_OK(multicast_token_remove(token));
    CHECK_OK(multicast_queue_destroy(inherited));
    _exit(0);
  }
  CHECK_EQ(made, 3);
  CHECK_TEXT(noted, "a1 a2 a3");
  CHECK(waitpid(forked, &status, 0) == forked);
  CHECK_EQ(status, 0);
}

static void run_in_child_of_call(void *unused) {
  CHECK_EQ(multicast_queue_run(inherited, 0), 0);
  CHECK_EQ(invoke_number(inherited_target, 7), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  CHECK_STATUS(multicast_queue_destroy(inherited), MULTICAST_PENDING);
}

static void fork_and_use(void *context, uint32_t event, const void *payload, size_t size) {
  int number;
  memcpy(&number, payload, sizeof number);
  note_call(context, event, payload, size);
  if (number == 1) in_child(run_in_child_of_call, NULL);
}

TEST(queue_call_that_forks_may_run_and_destroy_queue_in_child) {
  multicast_delegate d = noting('a');
  inherit_calls(0);
  d.function = fork_and_use;
  add_queued(inherited_target, d, inherited);
  CHECK_OK(multicast_remove(inherited_target, noting('a')));
  CHECK_EQ(invoke_number(inherited_target, 1), 1);
  CHECK_EQ(invoke_number(inherited_target, 2), 1);
  CHECK_NOTED(multicast_queue_run(inherited, 0), 2, "a1 a2");
}

static gate worker_has_forked = GATE_INIT;

static void fork_in_worker(void *context, uint32_t event, const void *payload, size_t size) {
  note_call(context, event, payload, size);
  if (forked >= 0) return;
  forked = fork();
  CHECK(forked >= 0);
  if (forked == 0) {
    alarm(20);
    /* the worker does not exist in the child */
    CHECK_ERROR(multicast_queue_stop(inherited), STATE);
    CHECK_EQ(stats_of(inherited).pending, 0);
    CHECK_EQ(invoke_number(inherited_target, 8), 1);
    return; /* ends the only thread of the child, so the child exits with status 0 */
  }
  gate_open(&worker_has_forked);
}

TEST(queue_worker_whose_call_forks_ends_in_the_child_alone) {
  multicast_delegate d = noting('a');
  int status = -1;
  inherit_calls(0);
  d.function = fork_in_worker;
  add_queued(inherited_target, d, inherited);
  CHECK_OK(multicast_remove(inherited_target, noting('a')));
  CHECK_OK(multicast_queue_start(inherited));
  CHECK_EQ(invoke_number(inherited_target, 1), 1);
  CHECK_EQ(invoke_number(inherited_target, 2), 1);
  gate_wait(&worker_has_forked);
  EVENTUALLY(stats_of(inherited).pending == 0);
  CHECK_OK(multicast_queue_stop(inherited));
  CHECK_TEXT(noted, "a1 a2");
  CHECK(waitpid(forked, &status, 0) == forked);
  CHECK_EQ(status, 0);
}

/* ---- Many queues, and descriptors ------------------------------------------------------------ */

enum { MANY = 200 };

static multicast_queue many[MANY];
static multicast all_of_them;
static int many_calls;

static void find_all_empty(void *unused) {
  for (int i = 0; i < MANY; ++i) CHECK_EQ(stats_of(many[i]).pending, 0);
  CHECK_EQ(multicast_invoke(all_of_them, 0, NULL, 0), MANY);
  for (int i = 0; i < MANY; ++i) CHECK_EQ(multicast_queue_run(many[i], 0), 1);
  CHECK_EQ(many_calls, MANY);
}

TEST(fork_child_finds_many_queues_empty_the_parent_full) {
  all_of_them = multicast_create();
  for (int i = 0; i < MANY; ++i) {
    many[i] = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
    add_queued(all_of_them, counter(&many_calls), many[i]);
  }
  CHECK_EQ(multicast_invoke(all_of_them, 0, NULL, 0), MANY);
  in_child(find_all_empty, NULL);
  CHECK_EQ(many_calls, 0);
  for (int i = 0; i < MANY; ++i) CHECK_EQ(multicast_queue_run(many[i], 0), 1);
  CHECK_EQ(many_calls, MANY);
  for (int i = 0; i < MANY; ++i) CHECK_OK(multicast_queue_destroy(many[i]));
}

typedef struct watched {
  multicast_queue queue;
  multicast m;
  int descriptor;
} watched;

static void find_it_closed_on_exec(void *context) {
  watched *w = context;
  int flags = fcntl(w->descriptor, F_GETFD);
  CHECK_EQ(multicast_queue_fd(w->queue), w->descriptor);
  CHECK(flags >= 0);
  CHECK_EQ(flags & FD_CLOEXEC, FD_CLOEXEC);
}

/* The child's descriptor is closed on exec, even if the library had to change its number in the
 * child. */
TEST(queue_fd_of_child_of_fork_is_not_passed_on_to_other_programs) {
  int lower = open("/dev/null", O_RDONLY);
  watched w;
  CHECK(lower >= 0);
  w.queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  w.descriptor = multicast_queue_fd(w.queue);
  CHECK(w.descriptor > lower);
  in_child(find_it_closed_on_exec, &w);
  CHECK_EQ(close(lower), 0);
  in_child(find_it_closed_on_exec, &w);
  CHECK_OK(multicast_queue_destroy(w.queue));
}

static void find_it_readable(void *context) {
  watched *w = context;
  CHECK_EQ(multicast_queue_fd(w->queue), w->descriptor);
  CHECK(!is_readable(w->descriptor));
  CHECK_EQ(multicast_invoke(w->m, 0, NULL, 0), 1);
  CHECK(is_readable(w->descriptor));
  CHECK_EQ(multicast_queue_run(w->queue, 0), 1);
  CHECK(!is_readable(w->descriptor));
}

/* The child's descriptor keeps the old number, although a lower number is free. */
TEST(queue_fd_keeps_its_number_in_child_where_lower_one_is_free) {
  int lower = open("/dev/null", O_RDONLY);
  watched w;
  CHECK(lower >= 0);
  w.m = multicast_create();
  w.queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  add_queued(w.m, counter(&calls), w.queue);
  w.descriptor = multicast_queue_fd(w.queue);
  CHECK(w.descriptor > lower);
  CHECK_EQ(close(lower), 0);
  in_child(find_it_readable, &w);
  CHECK(!is_readable(w.descriptor)); /* the child has a descriptor of its own */
  find_it_readable(&w);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_queue_destroy(w.queue));
}
