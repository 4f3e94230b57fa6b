/* Tests requests to the system that fail at first and succeed later. */

#include "../Interface/harness.h"
#include "functions.h"
#include "system.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

/* ---- The start of the library ---------------------------------------------------------------- */

static void expect_nothing_can_be_created(void) {
  CHECK_EQ(multicast_create().id, 0);
  CHECK_EQ(multicast_lifetime_create().id, 0);
  CHECK_EQ(multicast_queue_create(NULL).id, 0);
  CHECK_EQ(multicast_broadcaster_create(NULL).id, 0);
  CHECK_EQ(multicast_broadcaster_default().id, 0);
}

/* Tries to create objects while the request is refused, often enough that any resource leaked by a
 * failed creation would be exhausted. When the request is granted again, everything must work. */
static void is_refused_then_granted(ask *a) {
  int64_t bytes = 0;
  use_test_allocator();
  a->is_refused = true;
  for (int64_t i = 0; i < 600; ++i) {
    expect_nothing_can_be_created();
    if (i == 0) bytes = allocated_bytes;
  }
  if (a->count < 600 * 5) CHECK_EQ(a->count, 600 * 5);
  CHECK_EQ(allocated_bytes, bytes);
  use_test_allocator(); /* the library is not yet in use, so the allocator may be set again */
  a->is_refused = false;
  use_every_function();
}

TEST(thread_key_refused_creates_nothing_and_works_later) { is_refused_then_granted(&ask_key); }

/* The library registers its fork handlers when it is loaded. If that fails, it tries again when it
 * is first used. */
TEST(fork_handlers_refused_creates_nothing_and_works_later) {
  char *arguments[] = {"fault_tests", "--in-process",
                       "fork_handlers_refused_creates_nothing_and_works_later", NULL};
  pid_t child;
  if (getenv(REFUSE_FORK_HANDLERS_AT_LOAD) != NULL) {
    is_refused_then_granted(&ask_fork_handlers);
    return;
  }
  CHECK_EQ(setenv(REFUSE_FORK_HANDLERS_AT_LOAD, "yes", 1), 0);
  /* Start the program by name, because /proc/self/exe is valgrind itself when the test runs under
   * valgrind. */
  CHECK_EQ(posix_spawn(&child, program_invocation_name, NULL, NULL, arguments, environ), 0);
  CHECK_EQ(end_of_child(child), 0);
}

TEST(thread_keys_used_up_creates_nothing_at_first) {
  pthread_key_t keys[4096];
  int count = 0;
  while (pthread_key_create(&keys[count], NULL) == 0) CHECK(++count < 4096);
  expect_nothing_can_be_created();
  CHECK_EQ(pthread_key_delete(keys[0]), 0);
  use_every_function();
  while (--count > 0) CHECK_EQ(pthread_key_delete(keys[count]), 0);
}

/* ---- A record for each thread ---------------------------------------------------------------- */

static world *refused;

static void *first_of_a_thread(void *unused) {
  world *w = refused;
  world_state before = world_look(w);
  CHECK_ERROR(multicast_invoke(w->m, 0, NULL, 0), OUT_OF_MEMORY);
  CHECK_ERROR(multicast_broadcaster_notify(w->broadcaster, known_name, 0, NULL, 0), OUT_OF_MEMORY);
  CHECK_ERROR(multicast_queue_run(w->queue, 0), OUT_OF_MEMORY);
  CHECK_ERROR(multicast_queue_start(w->queue), OUT_OF_MEMORY);
  CHECK_EQ(multicast_broadcaster_multicast(w->broadcaster, known_name).id, w->known.id);
  CHECK_ERROR(multicast_broadcaster_unregister(w->broadcaster, known_name, other_delegate_of(w)),
              NOT_FOUND);
  world_expect(w, &before);
  return NULL;
}

TEST(thread_specific_value_refused_is_out_of_memory_at_first) {
  world w;
  int64_t bytes = 0;
  use_test_allocator();
  world_begin(&w);
  refused = &w;
  for (int i = 0; i < 200; ++i) {
    ask_specific.count = 0;
    ask_specific.is_refused = true;
    on_another_thread(first_of_a_thread, NULL);
    CHECK(ask_specific.count >= 6);
    ask_specific.is_refused = false;
    if (i == 0) bytes = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, bytes);
  on_another_thread(use_every_function_there, NULL);
  CHECK_EQ(multicast_invoke(w.m, 0, NULL, 0), 4);
  world_end(&w);
}

static gate thread_may_end = GATE_INIT;

THREAD(invoke_and_stay, int *invoked) {
  CHECK(multicast_invoke(refused->m, 0, NULL, 0) > 0);
  ADD(*invoked, 1);
  gate_wait(&thread_may_end);
}

/* The library allocates the records of the first 64 threads and maps further records in blocks of
 * 64. */
TEST(mapping_refused_for_a_thread_is_out_of_memory_at_first) {
  enum { COUNT = 63 }; /* this thread is the 64th */
  pthread_t threads[COUNT];
  world w;
  int invoked = 0;
  world_begin(&w);
  refused = &w;
  for (int i = 0; i < COUNT; ++i) threads[i] = start_thread(invoke_and_stay, &invoked);
  EVENTUALLY(LOAD(invoked) == COUNT);
  ask_map.count = 0;
  ask_map.is_refused = true;
  on_another_thread(first_of_a_thread, NULL);
  CHECK(ask_map.count >= 6);
  ask_map.is_refused = false;
  on_another_thread(use_every_function_there, NULL);
  gate_open(&thread_may_end);
  for (int i = 0; i < COUNT; ++i) join_thread(threads[i]);
  world_end(&w);
}

/* ---- A thread for a queue -------------------------------------------------------------------- */

TEST(thread_refused_leaves_the_queue_and_the_signals_as_they_are) {
  world w;
  sigset_t before, after;
  int64_t bytes = 0;
  use_test_allocator();
  world_begin(&w);
  CHECK_EQ(multicast_invoke(w.m, 0, NULL, 0), 4);
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
  ask_thread.is_refused = true;
  for (int i = 0; i < 1000; ++i) {
    CHECK_ERROR(multicast_queue_start(w.queue), SYSTEM);
    CHECK_ERROR(multicast_queue_stop(w.queue), STATE);
    CHECK_EQ(stats_of(w.queue).pending, 1);
    if (i == 0) bytes = allocated_bytes;
  }
  CHECK_EQ(ask_thread.count, 1000);
  CHECK_EQ(allocated_bytes, bytes);
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
  for (int i = 1; i < SIGRTMAX; ++i) CHECK_EQ(sigismember(&after, i), sigismember(&before, i));
  ask_thread.is_refused = false;
  CHECK_OK(multicast_queue_start(w.queue));
  EVENTUALLY(stats_of(w.queue).pending == 0);
  CHECK_OK(multicast_queue_stop(w.queue));
  world_end(&w);
}

/* ---- A descriptor for a queue ---------------------------------------------------------------- */

TEST(descriptor_refused_is_minus_1_and_the_calls_are_made) {
  world w;
  world_begin(&w);
  ask_eventfd.is_refused = true;
  for (int i = 1; i <= 10; ++i) {
    errno = 0;
    CHECK_EQ(multicast_queue_fd(w.queue), -1);
    CHECK_EQ(errno, 0);
    CHECK_EQ(ask_eventfd.count, i);
    CHECK_EQ(multicast_invoke(w.m, 0, NULL, 0), 4);
    CHECK_EQ(multicast_queue_wait(w.queue, 0), 1);
    CHECK_EQ(multicast_queue_run(w.queue, 0), 1);
  }
  CHECK_EQ(multicast_invoke(w.m, 0, NULL, 0), 4);
  ask_eventfd.is_refused = false;
  /* the descriptor reports calls that were queued before it was opened */
  CHECK(is_readable(multicast_queue_fd(w.queue)));
  CHECK_EQ(multicast_queue_run(w.queue, 0), 1);
  CHECK(!is_readable(multicast_queue_fd(w.queue)));
  world_end(&w);
}

/* The child of a fork needs its own descriptor. */
TEST(descriptor_refused_in_the_child_leaves_the_parents_alone) {
  world w;
  world_begin(&w);
  int fd = multicast_queue_fd(w.queue);
  CHECK(fd >= 0);
  CHECK_EQ(multicast_invoke(w.m, 0, NULL, 0), 4);
  ask_eventfd.is_refused = true;
  pid_t child = begin_child();
  if (child == 0) {
    CHECK_EQ(ask_eventfd.count, 2);
    CHECK_EQ(multicast_queue_fd(w.queue), -1);
    CHECK_EQ(multicast_invoke(w.m, 0, NULL, 0), 4);
    CHECK_EQ(multicast_queue_run(w.queue, 0), 1);
    CHECK_EQ(multicast_invoke(w.m, 0, NULL, 0), 4);
    ask_eventfd.is_refused = false;
    CHECK(is_readable(multicast_queue_fd(w.queue)));
    world_end(&w);
    use_every_function();
    _exit(0);
  }
  CHECK_EQ(end_of_child(child), 0);
  CHECK(is_readable(fd));
  CHECK_EQ(multicast_queue_run(w.queue, 0), 1);
  CHECK(!is_readable(fd));
  world_end(&w);
}

/* ---- The memory barrier ---------------------------------------------------------------------- */

static void use_every_function_without_membarrier(void *unused) {
  deny_membarrier();
  use_every_function();
  on_another_thread(use_every_function_there, NULL);
}

TEST(membarrier_refused_from_the_start_changes_nothing) {
  in_child(use_every_function_without_membarrier, NULL);
}

static void *invoke_world(void *argument) {
  world *w = argument;
  CHECK_EQ(multicast_invoke(w->m, 0, NULL, 0), 4);
  CHECK_EQ(multicast_invoke(w->known, 0, NULL, 0), 1);
  return NULL;
}

static int64_t remove_it(world *w) { return multicast_remove(w->m, delegate_of(w)); }
static int64_t remove_many(world *w) {
  multicast_delegate d = delegate_of(w);
  return multicast_remove_many(w->m, &d, 1);
}
static int64_t remove_context(world *w) { return multicast_remove_context(w->m, w); }
static int64_t remove_first(world *w) { return multicast_remove_at(w->m, 0); }
static int64_t remove_all(world *w) { return multicast_remove_all(w->m); }
static int64_t destroy(world *w) { return multicast_destroy(w->m); }
static int64_t remove_the_token(world *w) { return multicast_token_remove(w->token); }
static int64_t remove_nowait(world *w) { return multicast_token_remove_nowait(w->token); }
static int64_t remove_within(world *w) { return multicast_token_remove_within(w->token, 1000); }
static int64_t end_lifetime(world *w) { return multicast_lifetime_end(w->lifetime); }
static int64_t destroy_queue(world *w) { return multicast_queue_destroy(w->queue); }
static int64_t unregister(world *w) {
  return multicast_broadcaster_unregister(w->broadcaster, known_name, delegate_of(w));
}
static int64_t unregister_all(world *w) {
  return multicast_broadcaster_unregister_all(w->broadcaster, known_name);
}
static int64_t destroy_broadcaster(world *w) {
  return multicast_broadcaster_destroy(w->broadcaster);
}

static const struct {
  const char *name;
  int64_t (*remove)(world *);
  int removed, unregistered;
} removals[] = {
    {"remove", remove_it, 1, 0},
    {"remove_many", remove_many, 1, 0},
    {"remove_context", remove_context, 4, 0},
    {"remove_at", remove_first, 1, 0},
    {"remove_all", remove_all, 4, 0},
    {"destroy", destroy, 4, 0},
    {"token_remove", remove_the_token, 1, 0},
    {"token_remove_nowait", remove_nowait, 1, 0},
    {"token_remove_within", remove_within, 1, 0},
    {"lifetime_end", end_lifetime, 1, 0},
    {"queue_destroy", destroy_queue, 1, 0},
    {"broadcaster_unregister", unregister, 0, 1},
    {"broadcaster_unregister_all", unregister_all, 0, 1},
    {"broadcaster_destroy", destroy_broadcaster, 0, 1},
};
enum { REMOVAL_COUNT = sizeof removals / sizeof *removals };

/* While only one thread has invoked a multicast, removals by that thread need no membarrier
 * call. */
static void use_with_single_invoker(void) {
  int calls = 0, releases = 0;
  multicast m = multicast_create();
  multicast_token token = add(m, counter(&calls));
  add_with(m, counter(&releases), &ADD_OPTIONS(.release = count_release));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK_EQ(releases, 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK_OK(multicast_destroy(m));
  CHECK_EQ(releases, 2);
  CHECK_EQ(calls, 1);
}

/* The removal fails with MULTICAST_ERROR_SYSTEM. The delegate is not called again, but the library
 * never releases it. Everything else works. */
static void remove_without_membarrier(void *argument) {
  const int i = *(int *)argument;
  world w;
  printf("multicast_%s\n", removals[i].name);
  fflush(stdout);
  world_begin(&w);
  invoke_world(&w);
  on_another_thread(invoke_world, &w); /* now the multicast has several invokers */
  CHECK_EQ(multicast_queue_run(w.queue, 0), 2);
  CHECK_EQ(w.calls, 2 * 5);
  deny_membarrier();
  CHECK_ERROR(removals[i].remove(&w), SYSTEM);
  if (removals[i].removed == 4 && !multicast_is_valid(w.m)) {
    CHECK_ERROR(multicast_invoke(w.m, 0, NULL, 0), INVALID_HANDLE);
  } else {
    CHECK_EQ(multicast_count(w.m), 4 - removals[i].removed);
    CHECK_EQ(multicast_invoke(w.m, 0, NULL, 0), 4 - removals[i].removed);
  }
  if (removals[i].unregistered > 0)
    CHECK(multicast_broadcaster_notify(w.broadcaster, known_name, 0, NULL, 0) <= 0);
  CHECK_EQ(w.releases, 0);
  use_with_single_invoker();
}

TEST(membarrier_refused_later_makes_each_removal_system) {
  if (is_without_membarrier()) return; /* without membarrier, there is nothing to refuse */
  for (int i = 0; i < REMOVAL_COUNT; ++i) in_child(remove_without_membarrier, &i);
}

/* To the kernel, the child of a fork is a new process, which has to register for membarrier
 * itself. */
TEST(membarrier_refused_in_the_child_of_a_fork_is_system) {
  world w;
  if (is_without_membarrier()) return;
  world_begin(&w);
  invoke_world(&w);
  on_another_thread(invoke_world, &w);
  pid_t child = begin_child();
  if (child == 0) {
    deny_membarrier();
    child = begin_child();
    if (child == 0) {
        CHECK_ERROR(multicast_token_remove(w.token), SYSTEM);
      CHECK_EQ(w.releases, 0);
      CHECK_EQ(multicast_invoke(w.m, 0, NULL, 0), 3);
      _exit(0);
    }
    _exit(end_of_child(child) == 0 ? 0 : 1);
  }
  CHECK_EQ(end_of_child(child), 0);
  CHECK_EQ(multicast_queue_run(w.queue, 0), 2);
  world_end(&w);
}

/* ---- Aligned memory from libc ---------------------------------------------------------------- */

static multicast growing;
static bool has_grown;

/* Adds enough delegates for the list to be replaced several times. The invocation is still reading
 * the first list, which is freed when the invocation ends. */
FUNCTION(add_50_others, void *unused) {
  if (has_grown) return;
  has_grown = true;
  ask_aligned.is_refused = true;
  for (int i = 0; i < 50; ++i) add(growing, counter(&calls));
}

TEST_OF_MULTICAST(memory_refused_after_adding_50_delegates_in_a_call) {
  growing = m;
  /* make the library allocate all the registration slots that the test needs */
  for (int i = 0; i < 64; ++i) add(m, counter(&calls));
  CHECK_EQ(multicast_remove_all(m), 64);
  add(m, DELEGATE(add_50_others, NULL));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  ask_aligned.is_refused = false;
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 51);
  CHECK_EQ(calls, 50);
  CHECK_OK(multicast_destroy(m));
}
