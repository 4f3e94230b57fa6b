/* A thread calls exit() while other threads use the library. During exit(), exit handlers and
 * destructors use the library, too. */

#include "../Interface/harness.h"
#include "functions.h"

#include <sys/mman.h>
#include <unistd.h>

enum { EXPECTED_STATUS = 42 };

/* The number of handlers and destructors that have returned, in memory shared with the child. */
static int *handlers_run;

static bool is_ending; /* true in the child */

static void use_at_exit(void) {
  use_every_function();
  ADD(*handlers_run, 1);
}

static void *use_on_another_thread(void *unused) {
  use_every_function();
  ADD(*handlers_run, 1);
  return NULL;
}

static void use_at_exit_on_another_thread(void) {
  on_another_thread(use_on_another_thread, NULL);
}

/* This destructor of the program runs after all exit handlers and before the destructors of
 * libraries. */
__attribute__((destructor)) static void use_in_destructor(void) {
  if (is_ending) use_at_exit();
}

/* ---- The callers of exit() ------------------------------------------------------------------- */

static void exit_now(void *context, uint32_t event, const void *bytes, size_t size) {
  exit(EXPECTED_STATUS);
}

static bool exit_in_visit(void *context, const multicast_delegate *delegate) {
  exit_now(context, 0, NULL, 0);
  return true;
}

static void exit_in_release(void *context) { exit_now(context, 0, NULL, 0); }

static void *exit_in_lock(void *context) {
  exit_now(context, 0, NULL, 0);
  return NULL;
}

static const multicast_delegate exiting = {exit_now, NULL};
static multicast ending;

static void *invoke_ending(void *unused) {
  multicast_invoke(ending, 0, NULL, 0);
  return NULL;
}

static void by_delegate(void) {
  add(ending, exiting);
  multicast_invoke(ending, 0, NULL, 0);
}

static void by_delegate_on_another_thread(void) {
  add(ending, exiting);
  start_thread(invoke_ending, NULL);
}

static void by_visitor(void) {
  add(ending, exiting);
  multicast_visit(ending, exit_in_visit, NULL);
}

static void by_release(void) {
  add_with(ending, exiting, &ADD_OPTIONS(.release = exit_in_release));
  multicast_remove(ending, exiting);
}

static void by_lock(void) {
  add_with(ending, exiting, &ADD_OPTIONS(.lock = exit_in_lock, .unlock = unlock_nothing));
  multicast_invoke(ending, 0, NULL, 0);
}

static void by_queued_call(void) {
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  add_queued(ending, exiting, q);
  multicast_invoke(ending, 0, payload, sizeof payload);
  multicast_queue_run(q, 0);
}

static void by_call_of_a_queues_thread(void) {
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  add_queued(ending, exiting, q);
  CHECK_OK(multicast_queue_start(q));
  multicast_invoke(ending, 0, payload, sizeof payload);
}

static void by_main(void) { exit(EXPECTED_STATUS); }

/* The body of a thread that keeps calling all functions while another thread calls exit(). */
static void *be_busy(void *unused) {
  for (;;) use_every_function();
  return NULL;
}

static void end_by(void (*way)(void), bool is_busy) {
  STORE(*handlers_run, 0);
  pid_t child = begin_child();
  if (child == 0) {
    is_ending = true;
    CHECK_EQ(atexit(use_at_exit), 0);
    CHECK_EQ(atexit(use_at_exit_on_another_thread), 0);
    ending = multicast_create();
    if (is_busy) {
      start_thread(be_busy, NULL);
      start_thread(be_busy, NULL);
      pause_ms(3);
    }
    way();
    pause_ms(20000);
    _exit(1);
  }
  CHECK_EQ(end_of_child(child), EXPECTED_STATUS);
  CHECK_EQ(LOAD(*handlers_run), 3); /* two handlers and one destructor */
}

static void ends_well_by(void (*way)(void)) {
  handlers_run =
      mmap(NULL, sizeof *handlers_run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(handlers_run != MAP_FAILED);
  end_by(way, false);
  for (int i = 0; i < 10; ++i) end_by(way, true);
}

TEST(exit_of_a_busy_process_runs_handlers_that_use_everything) {
  ends_well_by(by_main);
}
TEST(exit_inside_of_a_delegate) { ends_well_by(by_delegate); }
TEST(exit_inside_of_a_delegate_on_another_thread) { ends_well_by(by_delegate_on_another_thread); }
TEST(exit_inside_of_a_visitor) { ends_well_by(by_visitor); }
TEST(exit_inside_of_a_release) { ends_well_by(by_release); }
TEST(exit_inside_of_a_lock_function) { ends_well_by(by_lock); }
TEST(exit_inside_of_a_queued_call) { ends_well_by(by_queued_call); }
TEST(exit_inside_of_a_call_of_a_queues_thread) { ends_well_by(by_call_of_a_queues_thread); }
