/* Tests threads with small stacks, many threads, and threads that end inside a call. */

#include "functions.h"

#include "../Interface/threads.h"

#include <limits.h>
#include <unistd.h>

/* ---- Small stacks ---------------------------------------------------------------------------- */

static void on_a_stack_of(size_t size, void *(*body)(void *), void *argument) {
  pthread_attr_t attributes;
  pthread_t thread;
  CHECK_EQ(pthread_attr_init(&attributes), 0);
  CHECK_EQ(pthread_attr_setstacksize(&attributes, stack_of(size)), 0);
  CHECK_EQ(pthread_create(&thread, &attributes, body, argument), 0);
  CHECK_EQ(pthread_attr_destroy(&attributes), 0);
  join_thread(thread);
}

/* The 16 KB must also have room for this program's stack frames and thread-local variables. */
TEST(stack_of_16_kilobytes_is_enough_for_every_function) {
  on_a_stack_of(16384, use_every_function_there, NULL);
}

TEST(stack_of_64_kilobytes_is_enough_for_every_function) {
  on_a_stack_of(65536, use_every_function_there, NULL);
}

/* ---- Small stacks and deep nesting ----------------------------------------------------------- */

typedef struct nest {
  multicast m;
  multicast_token token;
  multicast_queue queue;
  multicast_broadcaster broadcaster;
  int depth, deepest;
  bool has_reached_limit;
  int64_t (*again)(struct nest *);
} nest;

/* Starts the next level of nesting, while using very little stack itself. */
static void go_deeper(void *context, uint32_t event, const void *payload, size_t size) {
  nest *n = context;
  if (++n->depth > n->deepest) n->deepest = n->depth;
  int64_t result = n->again(n);
  if (result < 0) {
    CHECK_ERROR(result, LIMIT);
    n->has_reached_limit = true;
  }
  --n->depth;
}

static bool visit_deeper(void *context, const multicast_delegate *delegate) {
  go_deeper(context, 0, NULL, 0);
  return true;
}

static int64_t by_invoke(nest *n) { return multicast_invoke(n->m, 0, NULL, 0); }
static int64_t by_visit(nest *n) { return multicast_visit(n->m, visit_deeper, n); }
static int64_t by_notify(nest *n) {
  return multicast_broadcaster_notify(n->broadcaster, "name", 0, NULL, 0);
}
static const multicast_invocation nested_how = MULTICAST_INVOCATION_INIT;
static int64_t by_invoke_with(nest *n) { return multicast_invoke_with(n->m, &nested_how, NULL); }
static int64_t by_notify_with(nest *n) {
  return multicast_broadcaster_notify_with(n->broadcaster, "name", &nested_how, NULL);
}
static int64_t by_token_invoke(nest *n) { return multicast_token_invoke(n->token, 0, NULL, 0); }
static int64_t by_token_visit(nest *n) {
  return multicast_token_visit(n->token, visit_deeper, n);
}
/* Runs the queue, in which the delegate has queued another call to itself. */
static int64_t by_run(nest *n) { return multicast_queue_run(n->queue, 1); }

static void *nest_to_the_limit(void *argument) {
  nest *n = argument;
  CHECK_EQ(n->again(n), 1);
  CHECK_EQ(n->depth, 0);
  CHECK_EQ(n->deepest, 256);
  CHECK(n->has_reached_limit);
  return NULL;
}

static void unlock_nest(void *strong) { CHECK(strong != NULL); }

static void nest_on_a_stack_of(size_t size, int64_t (*again)(nest *),
                               multicast_add_options options) {
  nest n = {0};
  n.again = again;
  n.m = multicast_create();
  n.broadcaster = multicast_broadcaster_create(NULL);
  multicast_delegate d = {go_deeper, &n};
  if (again == by_run) {
    n.queue = queue_with(300, MULTICAST_OVERFLOW_REFUSE);
    options.queue = n.queue;
  }
  CHECK_OK(multicast_add(n.m, d, &options, &n.token));
  CHECK_OK(multicast_broadcaster_register(n.broadcaster, "name", d, &options, NULL));
  for (int i = 0; again == by_run && i < 300; ++i) CHECK_EQ(multicast_invoke(n.m, 0, NULL, 0), 1);
  on_a_stack_of(size, nest_to_the_limit, &n);
  CHECK_OK(multicast_broadcaster_destroy(n.broadcaster));
  CHECK_OK(multicast_destroy(n.m));
  if (again == by_run) CHECK_OK(multicast_queue_destroy(n.queue));
}

TEST(stack_of_64_to_352_kilobytes_is_enough_for_256_levels) {
  const multicast_add_options none = MULTICAST_ADD_OPTIONS_INIT, some = ADD_OPTIONS(.events = 1);
  const multicast_add_options weak = ADD_OPTIONS(.lock = lock_same, .unlock = unlock_nest);
  const struct {
    size_t kilobytes;
    int64_t (*again)(nest *);
    multicast_add_options options;
  } rows[] = {
      {64, by_invoke, none},
      {64, by_visit, none},
      {64, by_notify, none},
      /* Each level of nesting needs at most 1,300 bytes of stack, including this test's
       * delegate. */
      {320, by_invoke_with, none},
      {352, by_notify_with, none},
      {192, by_token_invoke, none},
      {192, by_token_visit, none},
      /* Delegates with events, a lock or a queue need three times as much stack. */
      {192, by_invoke, some},
      {192, by_invoke, weak},
      {320, by_invoke_with, weak},
      {192, by_run, none},
  };
  for (row = 0; row < (int)(sizeof rows / sizeof *rows); ++row)
    nest_on_a_stack_of(rows[row].kilobytes * 1024, rows[row].again, rows[row].options);
}

TEST(stack_of_288_kilobytes_is_enough_for_256_watched_invocations) {
  multicast_watch watch = MULTICAST_WATCH_INIT;
  multicast all = {0};
  CHECK_OK(multicast_set_watch(all, &watch));
  nest_on_a_stack_of((size_t)288 * 1024, by_invoke, multicast_add_options_default());
}

/* ---- Many threads ---------------------------------------------------------------------------- */

enum { MANY = 10000, AT_ONCE = 8 };

static multicast common;
static multicast_queue common_queue;
static int common_calls;

static void *use_and_end(void *unused) {
  CHECK_EQ(multicast_invoke(common, 0, NULL, 0), 2);
  /* returns an error status if another thread is running the queue */
  CHECK(multicast_queue_run(common_queue, 1) != 0);
  return NULL;
}

static long resident_kilobytes(void) {
  long pages = 0, unused;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL);
  CHECK_EQ(fscanf(file, "%ld %ld", &unused, &pages), 2);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

TEST(threads_by_ten_thousand_that_come_and_go_take_no_more_memory) {
  pthread_t threads[AT_ONCE];
  int64_t bytes = 0;
  long kilobytes = 0;
  use_test_allocator();
  common = multicast_create();
  common_queue = queue_with(2 * AT_ONCE, MULTICAST_OVERFLOW_DROP_OLDEST);
  add(common, counter(&common_calls));
  add_queued(common, counter(&common_calls), common_queue);
  for (int round = 0; round < MANY / AT_ONCE; ++round) {
    for (int i = 0; i < AT_ONCE; ++i) threads[i] = start_thread(use_and_end, NULL);
    for (int i = 0; i < AT_ONCE; ++i) join_thread(threads[i]);
    if (round == MANY / AT_ONCE / 10) kilobytes = resident_kilobytes();
    bytes = allocated_bytes;
    /* more than enough for AT_ONCE thread records of 10 KB each */
    if (round > 0) CHECK(bytes < 400000);
  }
  CHECK(LOAD(common_calls) >= MANY);
  CHECK(resident_kilobytes() - kilobytes < 1024);
  printf("%d threads: %lld bytes, resident %ld KB, then %ld KB\n", MANY, (long long)bytes,
         kilobytes, resident_kilobytes());
  CHECK_OK(multicast_queue_destroy(common_queue));
  CHECK_OK(multicast_destroy(common));
}

/* ---- Cancellation inside a call -------------------------------------------------------------- */

static gate is_inside = GATE_INIT;

static void sleep_for_long(void *context, uint32_t event, const void *payload, size_t size) {
  ADD(*(int *)context, 1);
  gate_open(&is_inside);
  sleep(60); /* a cancellation point */
  ADD(*(int *)context, 1000);
}

static bool visit_for_long(void *context, const multicast_delegate *delegate) {
  sleep_for_long(context, 0, NULL, 0);
  return true;
}

static world around;

static void *be_cancelled_in_invoke(void *unused) {
  multicast_invoke(around.known, 0, NULL, 0);
  return NULL;
}

static void *be_cancelled_in_visit(void *given) {
  multicast_visit(around.known, visit_for_long, given);
  return NULL;
}

static void *be_cancelled_in_run(void *unused) {
  multicast_queue_run(around.queue, 0);
  return NULL;
}

/* Cancels a thread inside a call. As after pthread_exit(), the call ends, a removed delegate is
 * released, and the thread record is reused. */
static void is_cancelled(void *(*body)(void *), bool is_queued, bool is_removed) {
  static const gate shut = GATE_INIT;
  int calls = 0, releases = 0;
  multicast_add_options options = ADD_OPTIONS(.release = count_release);
  void *end;
  is_inside = shut;
  world_begin(&around);
  CHECK_OK(multicast_broadcaster_unregister(around.broadcaster, known_name,
                                            delegate_of(&around)));
  if (is_queued) options.queue = around.queue;
  options.release = NULL;
  multicast_token token = add_with(around.known, DELEGATE(sleep_for_long, &calls), &options);
  options.release = count_release;
  options.queue.id = 0;
  if (is_queued) CHECK_EQ(multicast_invoke(around.known, 0, payload, sizeof payload), 1);
  pthread_t thread = start_thread(body, &calls);
  gate_wait(&is_inside);
  if (is_removed) CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  CHECK_EQ(pthread_cancel(thread), 0);
  CHECK_EQ(pthread_join(thread, &end), 0);
  CHECK(end == PTHREAD_CANCELED);
  CHECK_EQ(calls, 1);
  if (!is_removed) CHECK_OK(multicast_token_remove(token)); /* no call is left to wait for */
  CHECK_EQ(multicast_queue_run(around.queue, 0), 0);         /* no other thread runs the queue */
  add_with(around.known, counter(&releases), &options);
  CHECK_EQ(multicast_invoke(around.known, 0, NULL, 0), 1);
  world_end(&around);
  CHECK_EQ(releases, 2); /* one call and one release */
}

static void is_cancelled_and_leaves_nothing(void *(*body)(void *), bool is_queued) {
  int64_t bytes = 0;
  use_test_allocator();
  for (int i = 0; i < 6; ++i) {
    is_cancelled(body, is_queued, i % 2 != 0);
    if (i == 3) bytes = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, bytes);
  use_every_function();
}

TEST(cancellation_inside_of_a_delegate_ends_its_call) {
  is_cancelled_and_leaves_nothing(be_cancelled_in_invoke, false);
}
TEST(cancellation_inside_of_a_visitor_ends_its_call) {
  is_cancelled_and_leaves_nothing(be_cancelled_in_visit, false);
}
TEST(cancellation_inside_of_a_queued_call_ends_it) {
  is_cancelled_and_leaves_nothing(be_cancelled_in_run, true);
}

/* ---- Late destructors ------------------------------------------------------------------------ */

static pthread_key_t late;

/* This destructor runs in each round of destructors, after the library's destructor. */
static void use_late(void *rounds_left) {
  use_every_function();
  if ((intptr_t)rounds_left > 1)
    CHECK_EQ(pthread_setspecific(late, (void *)((intptr_t)rounds_left - 1)), 0);
}

static void *end_late(void *unused) {
  CHECK_EQ(multicast_invoke(common, 0, NULL, 0), 1);
  CHECK_EQ(pthread_setspecific(late, (void *)PTHREAD_DESTRUCTOR_ITERATIONS), 0);
  return NULL;
}

TEST(late_destructors_of_a_thread_may_call_every_function) {
  int64_t bytes = 0;
  use_test_allocator();
  /* the library creates its key first, so that the library's destructor runs before use_late() */
  common = multicast_create();
  add(common, counter(&common_calls));
  CHECK_EQ(pthread_key_create(&late, use_late), 0);
  for (int i = 0; i < 110; ++i) {
    on_another_thread(end_late, NULL);
    if (i == 9) bytes = allocated_bytes;
  }
  /* Some workers of stopped queues may still have their records, but not all 100 of them. */
  CHECK(allocated_bytes - bytes < 100000);
  use_every_function();
  CHECK_OK(multicast_destroy(common));
}
