/* multicast_dump() reports on the whole process. */

#include "allocators.h"
#include "linux.h"
#include "removals.h"
#include "reports.h"

#include <stddef.h>
#include <unistd.h>

static report text;

static unsigned long long number(uint64_t id) { return id; }

/* ---- Objects of the process ------------------------------------------------------------------ */

TEST(dump_has_the_labels_of_queues) {
  multicast_queue_options options = multicast_queue_options_default();
  options.label = "to the screen";
  multicast_queue q = multicast_queue_create(&options);
  char longest[80];
  memset(longest, 'q', sizeof longest);
  longest[sizeof longest - 1] = '\0';
  options.label = longest;
  multicast_queue other = multicast_queue_create(&options);
  dumped(&text);
  expect_line(text.text, "queue 0x%llx \"to the screen\": calls that wait: 0 of 1024...",
              number(q.id));
  expect_line(text.text, "queue 0x%llx \"%.63s\": calls that wait: 0 of 1024...",
              number(other.id), longest);
  /* Create a queue with options that lack the label, as a caller with an old header would. */
  options.struct_size = (uint32_t)offsetof(multicast_queue_options, label);
  multicast_queue older = multicast_queue_create(&options);
  dumped(&text);
  expect_line(text.text, "queue 0x%llx: calls that wait: 0 of 1024...", number(older.id));
}

TEST(dump_lists_multicasts_queues_and_lifetimes) {
  multicast_queue q = queue_with(2, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create(), other;
  other = multicast_create_with(&CREATE_OPTIONS(.label = "input"));
  multicast_add_options options = ADD_OPTIONS(.queue = q, .lifetime = multicast_lifetime_create());
  add_with(m, counter(&calls), &options);
  add_with(m, counter(&calls), &options);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  dumped(&text);
  expect_line(text.text, "libmulticast %d.%d.%d in process %d", MULTICAST_VERSION_MAJOR,
              MULTICAST_VERSION_MINOR, MULTICAST_VERSION_PATCH, (int)getpid());
  expect_line(text.text, "multicast 0x%llx: delegates: 2", number(m.id));
  expect_line(text.text, "multicast 0x%llx \"input\": delegates: 0", number(other.id));
  expect_line(text.text,
              "queue 0x%llx: calls that wait: 2 of 2; queued: 2, refused: 2, dropped: 0, "
              "at most: 2",
              number(q.id));
  expect_line(text.text, "lifetime 0x%llx: delegates: 2", number(options.lifetime.id));
  CHECK(strstr(text.text, "thread") == NULL);
}

TEST(dump_of_what_was_given_back_is_one_line) {
  multicast_queue q = queue_with(2, MULTICAST_OVERFLOW_REFUSE);
  multicast_lifetime lifetime = multicast_lifetime_create();
  multicast m = multicast_create();
  add_with(m, counter(&calls), &ADD_OPTIONS(.queue = q, .lifetime = lifetime));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_OK(multicast_lifetime_end(lifetime));
  CHECK_OK(multicast_queue_destroy(q));
  dumped(&text);
  CHECK_EQ(text.lines, 3); /* the destroyed multicast has no line */
  expect_line(text.text, "multicast 0x%llx: delegates: 0", number(m.id));
  CHECK_OK(multicast_destroy(m));
  dumped(&text);
  CHECK_EQ(text.lines, 1);
}

TEST(dump_before_anything_was_made) {
  dumped(&text);
  CHECK_EQ(text.lines, 1);
}

TEST_OF_MULTICAST(dump_without_a_writer_goes_to_a_descriptor) {
  char from_pipe[sizeof text.text] = "";
  int ends[2], closed = -1;
  add(m, counter(&calls));
  CHECK_EQ(pipe(ends), 0);
  CHECK_OK(multicast_dump(NULL, &ends[1]));
  CHECK_EQ(close(ends[1]), 0);
  CHECK(read(ends[0], from_pipe, sizeof from_pipe - 1) > 0);
  CHECK_TEXT(from_pipe, dumped(&text));
  CHECK_OK(multicast_dump(NULL, &closed)); /* the closed stream receives nothing */
}

TEST(dump_without_writer_and_descriptor_goes_to_standard_error) {
  char from_pipe[sizeof text.text] = "";
  int ends[2], before = dup(2);
  CHECK_EQ(pipe(ends), 0);
  CHECK_EQ(dup2(ends[1], 2), 2);
  CHECK_OK(multicast_dump(NULL, NULL));
  CHECK_EQ(dup2(before, 2), 2);
  CHECK(read(ends[0], from_pipe, sizeof from_pipe - 1) > 0);
  CHECK_TEXT(from_pipe, dumped(&text));
}

TEST(dump_takes_no_memory) {
  use_test_allocator();
  add(multicast_create(), counter(&calls));
  fail_after = 0;
  CHECK(has_line(dumped(&text), "  delegate ..."));
  CHECK(!has_failed);
  fail_after = -1;
}

/* ---- The calls of each thread ---------------------------------------------------------------- */

static multicast inner;
static multicast_queue own;

static void invoke_inner(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_EQ(multicast_invoke(inner, 0, NULL, 0), 1);
}

static void dump_here(void *context, uint32_t event, const void *payload, size_t size) {
  dumped(&text);
}

TEST_OF_MULTICAST(dump_has_the_calls_of_a_thread_from_the_outermost) {
  needs_kernel("names of threads");
  multicast_delegate outer = {invoke_inner, NULL}, innermost = {dump_here, NULL};
  inner = multicast_create();
  own = queue_with(2, MULTICAST_OVERFLOW_REFUSE);
  multicast_token first = add_with(m, outer, &ADD_OPTIONS(.queue = own, .label = "outer"));
  multicast_token second = add(inner, innermost);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(prctl(PR_SET_NAME, "a caller"), 0);
  CHECK_EQ(multicast_queue_run(own, 0), 1);
  expect_line(text.text, is_posix() ? "thread %s" : "thread %s \"a caller\"", own_number());
  char *at = strstr(text.text, "thread");
  expect_line(at, "  in a call of delegate 0x%llx \"outer\" from queue 0x%llx", number(first.id),
              number(own.id));
  at = strstr(at, "\"outer\"");
  expect_line(at, "  in a call of delegate 0x%llx by multicast 0x%llx", number(second.id),
              number(inner.id));
  expect_line(text.text, "  last run by thread: %s", own_number());
}

static void dump_inside(void *unused) {
  CHECK_EQ(multicast_invoke(inner, 0, NULL, 0), 1);
  expect_line(text.text, "thread %s \"...\"", own_number());
}

TEST(dump_in_the_child_of_a_fork_has_the_numbers_of_the_child) {
  needs_linux("numbers and names of threads");
  inner = multicast_create();
  add(inner, DELEGATE(dump_here, NULL));
  dump_inside(NULL);
  in_child(dump_inside, NULL);
}

static bool is_over;

THREAD(dump_until_it_is_over, void *unused) {
  static report own;
  while (!LOAD(is_over)) dumped(&own);
}

static void dump_in_child(void *unused) {
  dumped(&text);
}

/* A dump reads the list of loaded libraries, so a thread of the parent that is making a dump may be
 * holding the loader's lock at the fork. */
TEST(dump_in_the_child_does_not_hang_if_another_thread_dumped) {
  inner = multicast_create();
  for (int i = 0; i < 100; ++i) add(inner, DELEGATE(dump_here, NULL));
  pthread_t other = start_thread(dump_until_it_is_over, NULL);
  for (int i = 0; i < 50; ++i) in_child(dump_in_child, NULL);
  STORE(is_over, true);
  join_thread(other);
}

/* ---- The waits of each thread ---------------------------------------------------------------- */

/* Dumps again once a dump has shown a waiting thread, because the first lines of that dump may
 * describe the state before the wait began. */
static void dump_when_a_thread_waits(void) {
  EVENTUALLY(strstr(dumped(&text), "  waits ") != NULL);
  dumped(&text);
}

/* The program hangs on purpose, because a removal waits for a call that does not return. Another
 * thread reports the reason. */
TEST_OF_MULTICAST(dump_shows_for_whom_a_removal_waits) {
  blocker b = BLOCKER_INIT;
  removal r;
  prepare_removal(&r, m, &b, by_token);
  r.token = add_with(m, r.delegate, &ADD_OPTIONS(.label = MULTICAST_HERE));
  begin_blocked(&b, m);
  r.thread = start_thread(remove_in_thread, &r);
  dump_when_a_thread_waits();
  expect_line(text.text,
              "  in a call of delegate 0x%llx \"...dump.c:...\" (removed) by multicast 0x%llx",
              number(r.token.id), number(m.id));
  expect_line(text.text, "  waits ... s for calls of delegate 0x%llx \"...dump.c:...\" (removed)",
              number(r.token.id));
  expect_line(text.text, "    thread ... is in one");
  pause_ms(20);
  CHECK(strstr(dumped(&text), "  waits 0.000 s") == NULL); /* the reported time increases */
  gate_open(&b.let_go);
  join_thread(r.thread);
  CHECK_EQ(invoke_finished(&b.invoking), 1);
  CHECK(strstr(dumped(&text), "thread") == NULL);
}

/* In this test, the waiting thread is inside a call, so it has a thread record. */
static multicast_token awaited;

static void remove_awaited(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_token_remove(awaited);
}

TEST(dump_shows_what_a_thread_waits_for_inside_a_call) {
  blocker b = BLOCKER_INIT;
  invoker waiting;
  multicast m = multicast_create(), other = multicast_create();
  awaited = add(m, blocking(&b));
  add(other, DELEGATE(remove_awaited, NULL));
  begin_blocked(&b, m);
  invoke_in_background(&waiting, other);
  dump_when_a_thread_waits();
  expect_line(strstr(text.text, "thread"), "  in a call of ... by multicast 0x%llx",
              number(other.id));
  expect_line(text.text, "  waits ... s for calls of delegate 0x%llx (removed): %s",
              number(awaited.id), some_place());
  CHECK_EQ(end_blocked(&b), 1);
  CHECK_EQ(invoke_finished(&waiting), 1);
}

THREAD(remove_all_of, multicast *m) {
  CHECK_EQ(multicast_remove_all(*m), 2);
}

TEST_OF_MULTICAST(dump_shows_that_a_thread_waits_for_calls_of_several) {
  blocker b = BLOCKER_INIT, c = BLOCKER_INIT;
  multicast_token t = add(m, blocking(&b)), u;
  CHECK_OK(multicast_token_pause(t));
  u = add(m, blocking(&c));
  begin_blocked(&c, m);
  CHECK_OK(multicast_token_resume(t));
  CHECK_OK(multicast_token_pause(u));
  begin_blocked(&b, m);
  pthread_t thread = start_thread(remove_all_of, &m);
  dump_when_a_thread_waits();
  CHECK(has_line(text.text, "  waits ... for calls of delegate ... (removed): ..., and of others"));
  gate_open(&b.let_go);
  gate_open(&c.let_go);
  join_thread(thread);
  CHECK_EQ(invoke_finished(&c.invoking), 1);
  CHECK_EQ(invoke_finished(&b.invoking), 1);
}

THREAD(invoke_waiting, multicast *m) {
  CHECK_EQ(multicast_invoke_with(*m, &INVOCATION(.flags = MULTICAST_WAIT), NULL), 1);
}

TEST_OF_MULTICAST(dump_shows_that_a_thread_waits_for_queued_calls) {
  own = queue_with(2, MULTICAST_OVERFLOW_REFUSE);
  add_queued(m, counter(&calls), own);
  pthread_t thread = start_thread(invoke_waiting, &m);
  dump_when_a_thread_waits();
  expect_line(text.text,
              "  waits ... s for calls in queue 0x%llx; to run it: a thread that is not known",
              number(own.id));
  CHECK_EQ(multicast_queue_run(own, 0), 1);
  join_thread(thread);
}

THREAD(invoke_twice, multicast *m) {
  CHECK_EQ(multicast_invoke(*m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(*m, 0, NULL, 0), 1);
}

TEST_OF_MULTICAST(dump_shows_that_a_thread_waits_for_room) {
  pthread_t thread;
  queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  own = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  add_queued(m, counter(&calls), own);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(own, 0), 1); /* makes this thread the queue's consumer */
  thread = start_thread(invoke_twice, &m);
  dump_when_a_thread_waits();
  expect_line(text.text, "  waits ... s for room in queue 0x%llx; to run it: thread %s",
              number(own.id), own_number());
  CHECK_EQ(multicast_queue_run(own, 0), 1);
  EVENTUALLY(calls == 2 && stats_of(own).pending == 1);
  join_thread(thread);
}

THREAD(stop_own, void *unused) {
  CHECK_OK(multicast_queue_stop(own));
}

TEST_OF_MULTICAST(dump_shows_that_a_thread_waits_for_the_thread_of_a_queue) {
  blocker b = BLOCKER_INIT;
  own = queue_with(2, MULTICAST_OVERFLOW_REFUSE);
  add_queued(m, blocking(&b), own);
  CHECK_OK(multicast_queue_start(own));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  gate_wait(&b.entered);
  expect_line(dumped(&text), "  its own thread: ...");
  pthread_t thread = start_thread(stop_own, NULL);
  dump_when_a_thread_waits();
  expect_line(text.text, "  waits ... s for thread ... to end what it does");
  gate_open(&b.let_go);
  join_thread(thread);
}

/* ---- While other threads hold locks or change things ----------------------------------------- */

static gate holds = GATE_INIT, let_go = GATE_INIT;
static int is_to_hold;

/* The library calls this allocator while holding locks, and does not release them until `let_go`
 * opens. */
static void *allocate_slowly(void *context, size_t size, size_t alignment) {
  if (LOAD(is_to_hold) != 0) {
    STORE(is_to_hold, 0);
    gate_open(&holds);
    gate_wait(&let_go);
  }
  return allocate_aligned(size, alignment);
}

THREAD(add_some, multicast *m) {
  for (int i = 0; i < 20; ++i) add(*m, counter(&calls));
}

TEST(dump_does_not_hang_if_a_thread_keeps_a_lock_of_the_library) {
  const char *line;
  int refused = 0, i;
  use_allocator(allocate_slowly, NULL);
  multicast m = multicast_create();
  multicast beside = multicast_create();
  /* some of these multicasts share a lock with `m` */
  for (i = 0; i < 300; ++i) CHECK(multicast_create().id != 0);
  add(m, counter(&calls));
  add(beside, counter(&calls));
  STORE(is_to_hold, 1);
  pthread_t thread = start_thread(add_some, &m);
  gate_wait(&holds);
  dumped(&text);
  expect_line(text.text, "multicast 0x%llx: a thread is changing it and does not go on",
              number(m.id));
  expect_line(text.text, "multicast 0x%llx: delegates: 1", number(beside.id));
  for (line = text.text; (line = strstr(line, "does not go on")) != NULL; ++line) ++refused;
  CHECK(refused > 5); /* after several timeouts the dump stops waiting for locks */
  described(&text, m);
  expect_line(text.text, "multicast 0x%llx: a thread is changing it and does not go on",
              number(m.id));
  gate_open(&let_go);
  join_thread(thread);
  expect_line(dumped(&text), "multicast 0x%llx: delegates: 21", number(m.id));
}

static void release_slowly(void *context) {
  gate_open(&holds);
  gate_wait(&let_go);
}

THREAD(end_lifetime, multicast_lifetime *lifetime) {
  multicast_lifetime_end(*lifetime);
}

TEST(dump_shows_that_a_thread_waits_for_release_functions) {
  multicast_add_options options = ADD_OPTIONS(.lifetime = multicast_lifetime_create());
  pthread_t threads[2];
  options.release = release_slowly;
  add_with(multicast_create(), counter(&calls), &options);
  threads[0] = start_thread(end_lifetime, &options.lifetime);
  gate_wait(&holds);
  threads[1] = start_thread(end_lifetime, &options.lifetime);
  dump_when_a_thread_waits();
  expect_line(text.text, "  waits ... s for release functions on other threads");
  gate_open(&let_go);
  for (int i = 0; i < 2; ++i) join_thread(threads[i]);
}

static int stopped;

THREAD(change_things, multicast *m) {
  while (LOAD(stopped) == 0) {
    multicast_token t = add_with(*m, counter(NULL), &ADD_OPTIONS(.label = "comes and goes"));
    multicast_token u = add(*m, counter(NULL));
    CHECK_OK(multicast_token_pause(t));
    multicast_token_remove(t);
    multicast_token_remove(u);
    CHECK_OK(multicast_destroy(multicast_create()));
  }
}

static void do_nothing(void *context, uint32_t event, const void *payload, size_t size) {
}

THREAD(invoke_again_and_again, multicast *m) {
  while (LOAD(stopped) == 0) CHECK(multicast_invoke(*m, 0, NULL, 0) >= 0);
}

TEST(dump_has_what_stays_while_threads_change_the_rest) {
  multicast m = multicast_create(), busy = multicast_create();
  multicast_token kept = add(m, DELEGATE(do_nothing, NULL));
  pthread_t threads[2];
  for (int i = 0; i < 20; ++i) CHECK_OK(multicast_token_pause(add(busy, counter(NULL))));
  threads[0] = start_thread(change_things, &busy);
  threads[1] = start_thread(invoke_again_and_again, &m);
  for (int i = 0; i < 200; ++i) {
    dumped(&text);
    expect_line(text.text, "multicast 0x%llx: delegates: 1", number(m.id));
    expect_line(text.text, "  delegate 0x%llx: ...", number(kept.id));
    expect_line(text.text, "multicast 0x%llx: delegates: ...", number(busy.id));
  }
  STORE(stopped, 1);
  for (int i = 0; i < 2; ++i) join_thread(threads[i]);
}
