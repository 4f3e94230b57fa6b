/* A thread forks while another thread is using the library for the first time, or is calling it
 * before any object exists. The child can use the library, because all locks are free in it. */

#include "process.h"

#include <unistd.h>

THREAD(use_once, void *unused) {
  multicast m = multicast_create();
  CHECK_OK(multicast_add(m, DELEGATE(call_nothing, NULL), NULL, NULL));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_OK(multicast_destroy(m));
}

static void expect_success(void *(*body)(void *)) {
  pid_t child = begin_child();
  if (child == 0) {
    body(NULL);
    _exit(0);
  }
  CHECK_EQ(end_of_child(child), 0);
}

/* Without a sanitizer, the fork may happen at any point of the first use. ThreadSanitizer, however,
 * does not protect the locks of its malloc() across a fork, so under ThreadSanitizer the fork
 * happens after the first use, when the other thread is idle. A few rounds are enough under
 * ThreadSanitizer, because all rounds are alike. Each round takes a second, because the sanitizer
 * waits for the idle thread at the end. */
#ifdef __SANITIZE_THREAD__
enum { IS_OVER_AT_FORKS = 1, ROUNDS = 5 };
#else
enum { IS_OVER_AT_FORKS = 0, ROUNDS = 150 };
#endif

static int spins;
static bool was_used;

static void *use_first(void *unused) {
  use_once(NULL);
  STORE(was_used, true);
  while (IS_OVER_AT_FORKS) pause();
  return unused;
}

/* Runs in a process that has not used the library. A second thread starts using the library while
 * this thread is forking. The second thread is detached, because ThreadSanitizer would otherwise
 * report it as a leak in the child. */
static void *fork_during_first_use(void *unused) {
  CHECK_EQ(pthread_detach(start_thread(use_first, NULL)), 0);
  for (int i = 0; i < spins; ++i) __asm__ volatile("");
  if (IS_OVER_AT_FORKS) EVENTUALLY(LOAD(was_used));
  expect_success(use_once);
  EVENTUALLY(LOAD(was_used));
  return unused;
}

TEST(fork_during_the_first_use_on_another_thread) {
  for (int i = 0; i < ROUNDS; ++i) {
    spins = i * 700;
    expect_success(fork_during_first_use);
  }
}

/* ---- Functions that take a lock before any object exists ------------------------------------- */

static bool is_over;

static void *trim_repeatedly(void *unused) {
  while (!LOAD(is_over)) multicast_trim();
  return unused;
}

static void *watch_repeatedly(void *unused) {
  const multicast all = {0};
  const multicast_watch given = MULTICAST_WATCH_INIT;
  while (!LOAD(is_over)) {
    CHECK_OK(multicast_set_watch(all, &given));
    CHECK_OK(multicast_set_watch(all, NULL));
  }
  return unused;
}

static bool ignore_text(void *context, const char *text, size_t size) {
  return true;
}

static void *dump_repeatedly(void *unused) {
  while (!LOAD(is_over)) CHECK_OK(multicast_dump(ignore_text, NULL));
  return unused;
}

static void *trim_and_use(void *unused) {
  multicast_trim();
  return use_once(unused);
}

static void fork_beside(void *(*body)(void *)) {
  pthread_t other = start_thread(body, NULL);
  for (int i = 0; i < 150; ++i) expect_success(trim_and_use);
  STORE(is_over, true);
  join_thread(other);
}

TEST(fork_beside_trims_before_anything_was_created) { fork_beside(trim_repeatedly); }
TEST(fork_beside_watches_before_anything_was_created) { fork_beside(watch_repeatedly); }
TEST(fork_beside_dumps_before_anything_was_created) { fork_beside(dump_repeatedly); }
