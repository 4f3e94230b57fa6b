/* clone() creates child processes without libc's knowledge. They share this process's memory, but
 * do not use the library. */

#include "../Interface/harness.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK = 65536 };
static char stack[STACK] __attribute__((aligned(16)));

static int exit_at_once(void *unused) {
  _exit(7);
}

static int execute(void *unused) {
  static char *const arguments[] = {"true", NULL};
  execvp("true", arguments);
  _exit(1);
}

/* Stays alive for a while, so that parent and child run at the same time. */
static int linger(void *unused) {
  usleep(2000);
  _exit(7);
}

static bool has_to_end;

static void *invoke_until_the_end(void *m) {
  while (!LOAD(has_to_end)) CHECK(multicast_invoke(*(multicast *)m, 0, NULL, 0) >= 1);
  return NULL;
}

static void *change_until_the_end(void *m) {
  int calls = 0;
  while (!LOAD(has_to_end)) CHECK_OK(multicast_token_remove(add(*(multicast *)m, counter(&calls))));
  return NULL;
}

static void with_children(int (*body)(void *), int flags, int expected) {
  multicast m = multicast_create();
  blocker b = BLOCKER_INIT;
  pthread_t threads[2];
  int calls = 0, status;
  multicast_token token = add(m, blocking(&b)), first;
  begin_blocked(&b, m);
  CHECK_ERROR(multicast_token_remove_within(token, 0), TIMEOUT);
  first = add(m, counter(&calls));
  STORE(has_to_end, false);
  threads[0] = start_thread(invoke_until_the_end, &m);
  threads[1] = start_thread(change_until_the_end, &m);
  for (int i = 0; i < 100; ++i) {
    int before = LOAD(calls);
    pid_t child = clone(body, stack + STACK, CLONE_VM | flags | SIGCHLD, NULL);
    CHECK(child > 0);
    /* The parent's threads keep running, whether or not the child has exited. */
    EVENTUALLY(LOAD(calls) > before);
    CHECK(!LOAD(b.has_left));
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), expected);
  }
  STORE(has_to_end, true);
  for (int i = 0; i < 2; ++i) join_thread(threads[i]);
  gate_open(&b.let_go);
  CHECK_OK(multicast_token_remove(first));
  CHECK_EQ(invoke_finished(&b.invoking), 1);
  CHECK_OK(multicast_destroy(m));
  CHECK(b.has_left);
}

TEST(children_that_share_the_memory_and_exit_change_nothing) {
  with_children(exit_at_once, CLONE_VFORK, 7);
}
TEST(children_that_share_the_memory_and_execute_change_nothing) {
  with_children(execute, CLONE_VFORK, 0);
}
TEST(children_that_share_the_memory_change_nothing) {
  with_children(linger, 0, 7);
}
