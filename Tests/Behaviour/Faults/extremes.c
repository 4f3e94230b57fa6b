/* Tests extreme timeouts, and unusual ways to start a process, during a long call. */

#include "../Interface/harness.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* Like a wait without a limit, a wait with a nearly infinite timeout ends when the call ends. */
static const uint64_t nearly_for_ever[] = {
    UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 1000000000, INT64_MAX, (uint64_t)INT64_MAX + 1};

typedef struct remover {
  multicast_token token;
  uint64_t timeout_ns;
  multicast_status status;
  gate has_begun;
} remover;

THREAD(remove_within, remover *r) {
  gate_open(&r->has_begun);
  r->status = multicast_token_remove_within(r->token, r->timeout_ns);
}

TEST(timeouts_next_to_the_largest_wait_for_the_call) {
  for (size_t i = 0; i < sizeof nearly_for_ever / sizeof *nearly_for_ever; ++i) {
    multicast m = multicast_create();
    blocker b = BLOCKER_INIT;
    remover r = {add(m, blocking(&b)), nearly_for_ever[i], MULTICAST_PENDING, GATE_INIT};
    begin_blocked(&b, m);
    pthread_t thread = start_thread(remove_within, &r);
    gate_wait(&r.has_begun);
    EVENTUALLY(!multicast_token_is_valid(r.token));
    pause_ms(1); /* by now it is usually asleep */
    gate_open(&b.let_go);
    join_thread(thread);
    CHECK_OK(r.status);
    CHECK(b.has_left);
    CHECK_EQ(invoke_finished(&b.invoking), 1);
    CHECK_OK(multicast_destroy(m));
  }
}

TEST(timeouts_next_to_the_largest_of_a_queue_end_with_a_call) {
  for (size_t i = 0; i < sizeof nearly_for_ever / sizeof *nearly_for_ever; ++i) {
    multicast m = multicast_create();
    multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_DROP_OLDEST);
    int calls = 0;
    invoker background;
    add_queued(m, counter(&calls), q);
    invoke_in_background(&background, m);
    CHECK_EQ(multicast_queue_wait(q, nearly_for_ever[i]), 1);
    CHECK_EQ(multicast_queue_run(q, 0), 1);
    CHECK_EQ(invoke_finished(&background), 1);
    CHECK_OK(multicast_queue_destroy(q));
    CHECK_OK(multicast_destroy(m));
  }
}

/* Each removal with a timeout times out and does not run `release` early. The last removal has no
 * time limit and waits for the call. */
TEST(a_nanosecond_again_and_again_beside_a_long_call) {
  enum { TIMES = 2000 };
  multicast m = multicast_create();
  blocker b = BLOCKER_INIT;
  multicast_status status = MULTICAST_OK;
  multicast_token token = add_with(m, blocking(&b), &ADD_OPTIONS(.release = release_blocker));
  begin_blocked(&b, m);
  CHECK_ERROR(multicast_token_remove_within(token, 1), TIMEOUT);
  for (int i = 0; i < TIMES; ++i) {
    CHECK_ERROR(multicast_token_remove_within(token, 1), TIMEOUT);
    CHECK_EQ(multicast_remove_all_within(m, 1, &status), 0);
    CHECK_ERROR(status, TIMEOUT);
  }
  CHECK_EQ(LOAD(b.releases), 0);
  gate_open(&b.let_go);
  CHECK_EQ(multicast_remove_all(m), 0);
  CHECK_EQ(invoke_finished(&b.invoking), 1);
  EVENTUALLY(LOAD(b.releases) == 1);
  CHECK_OK(multicast_destroy(m));
}

/* As after vfork(), the child shares the parent's memory until it executes another program. */
TEST(posix_spawn_inside_a_call_changes_nothing) {
  multicast m = multicast_create();
  blocker b = BLOCKER_INIT;
  int status;
  multicast_token token = add(m, blocking(&b));
  begin_blocked(&b, m);
  for (int i = 0; i < 20; ++i) {
    char *arguments[] = {"true", NULL};
    pid_t child;
    CHECK_EQ(posix_spawnp(&child, "true", NULL, NULL, arguments, environ), 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_ERROR(multicast_token_remove_within(token, 0), TIMEOUT);
  }
  CHECK_EQ(end_blocked(&b), 1);
  CHECK_OK(multicast_destroy(m));
}

static void *go_on_as_daemon(void *unused) {
  return NULL;
}

/* The process that daemon() creates can use its parent's objects. */
TEST(daemon_goes_on_with_what_there_was) {
  multicast m = multicast_create();
  int ends[2], calls = 0;
  char answer = 0;
  add(m, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(pipe(ends), 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    if (daemon(1, 1) != 0) _exit(1);
#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
    on_another_thread(go_on_as_daemon, NULL);
#endif
    answer = multicast_invoke(m, 0, NULL, 0) == 1 && calls == 2 &&
                     multicast_remove_all(m) == 1 && multicast_destroy(m) == MULTICAST_OK
                 ? 'y'
                 : 'n';
    _exit(write(ends[1], &answer, 1) != 1);
  }
  close(ends[1]);
  CHECK_EQ(waitpid(child, NULL, 0), child);
  CHECK_EQ(read(ends[0], &answer, 1), 1);
  CHECK_EQ(answer, 'y');
  CHECK_EQ(calls, 1);
}
