/* Tests with more concurrent threads than fit into one block of thread records. */

#include "process.h"
#include "threads.h"

enum { THREADS = 150 };

typedef struct crowd {
  multicast target;
  multicast_token forking; /* the delegate in whose call a thread forks */
  blocker b;
  pthread_t threads[THREADS];
} crowd;

THREAD(invoke_in_crowd, crowd *c) {
  CHECK_EQ(multicast_invoke(c->target, 0, NULL, 0), 1);
}

static void begin_calls(crowd *c) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 262144);
  for (int i = 0; i < THREADS; ++i)
    CHECK_EQ(pthread_create(&c->threads[i], &small, invoke_in_crowd, c), 0);
  pthread_attr_destroy(&small);
  EVENTUALLY(LOAD(c->b.calls) == THREADS);
}

static void end_calls(crowd *c) {
  gate_open(&c->b.let_go);
  for (int i = 0; i < THREADS; ++i) join_thread(c->threads[i]);
}

static int releases;
static void count_member(void *context) { (void)context, ADD(releases, 1); }

TEST(removal_finds_a_call_on_any_of_many_threads) {
  static crowd c;
  blocker fresh = BLOCKER_INIT;
  multicast_token token;
  c.target = multicast_create();
  for (int round = 0; round < 2; ++round) { /* the second round reuses the records of the first */
    c.b = fresh;
    releases = 0;
    token = add_with(c.target, blocking(&c.b), &ADD_OPTIONS(.release = count_member));
    begin_calls(&c);
    CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
    CHECK_ERROR(multicast_token_remove_within(token, 1), TIMEOUT);
    CHECK_EQ(LOAD(releases), 0);
    end_calls(&c);
    CHECK_EQ(LOAD(releases), 1);
  }
  CHECK_OK(multicast_destroy(c.target));
}

TEST(removal_of_many_finds_which_of_them_many_threads_call) {
  static crowd c;
  multicast_add_options options = ADD_OPTIONS(.release = count_member);
  blocker fresh = BLOCKER_INIT;
  multicast_status waiting;
  c.b = fresh;
  c.target = multicast_create();
  add_with(c.target, blocking(&c.b), &options);
  multicast_token idle = add_with(c.target, blocking(&c.b), &options);
  CHECK_OK(multicast_token_pause(idle));
  begin_calls(&c);
  CHECK_EQ(multicast_remove_all_within(c.target, 0, &waiting), 2);
  CHECK_ERROR(waiting, TIMEOUT);
  CHECK_EQ(LOAD(releases), 1);
  end_calls(&c);
  CHECK_EQ(LOAD(releases), 2);
  CHECK_OK(multicast_destroy(c.target));
}

/* Many threads end, and the same number of new threads reuse their records, beginning with the
 * first block. One more thread then receives a record in a later block, which has had no owners for
 * a while. The removal must find that thread's call. */
TEST_OF_MULTICAST(removal_finds_call_on_thread_that_came_after_many_had_ended) {
  static crowd earlier, others;
  blocker b = BLOCKER_INIT;
  multicast_token token = add(m, blocking(&b));
  earlier.target = multicast_create();
  others.target = multicast_create();
  earlier.b = others.b = b;
  add(earlier.target, blocking(&earlier.b));
  add(others.target, blocking(&others.b));
  begin_calls(&earlier);
  end_calls(&earlier);
  begin_calls(&others);
  begin_blocked(&b, m);
  CHECK_ERROR(multicast_token_remove_within(token, 1000000), TIMEOUT);
  CHECK_EQ(end_blocked(&b), 1);
  end_calls(&others);
  CHECK_OK(multicast_destroy(m));
  CHECK_OK(multicast_destroy(earlier.target));
  CHECK_OK(multicast_destroy(others.target));
}

/* ---- A fork while many threads exist --------------------------------------------------------- */

static bool has_text(void *context, const char *text, size_t size) {
  *(int *)context += memmem(text, size, "thread", 6) != NULL;
  return true;
}

/* Returns how many lines of a report are about threads. */
static int threads_in_report(void) {
  int count = 0;
  CHECK_OK(multicast_dump(has_text, &count));
  return count;
}

#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
THREAD(time_out_at_call, crowd *c) {
  CHECK_ERROR(multicast_token_remove_within(c->forking, 1000000), TIMEOUT);
}
#endif

/* Runs in the child, inside the call that has forked. */
static void use_after_many(void *argument) {
  crowd *c = argument;
  CHECK_EQ(threads_in_report(), 1);
  CHECK_EQ(multicast_remove_all(c->target), 1);
#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
  int calls = 0;
  add(c->target, counter(&calls));
  for (int i = 0; i < THREADS; ++i) on_another_thread(invoke_in_crowd, c);
  CHECK_EQ(calls, THREADS);
  on_another_thread(time_out_at_call, c);
#endif
}

static void fork_and_use(void *c, uint32_t event, const void *payload, size_t size) {
  (void)event, (void)payload, (void)size;
  in_child(use_after_many, c);
}

static void *rest_in_crowd(void *argument) {
  crowd *c = argument;
  CHECK_OK(multicast_destroy(multicast_create())); /* the thread caches the slot */
  CHECK(multicast_invoke(c->target, 0, NULL, 0) >= 0);
  CHECK_OK(multicast_destroy(multicast_create()));
  ADD(c->b.calls, 1);
  gate_wait(&c->b.let_go);
  return NULL;
}

static void fork_beside(void *(*body)(void *), crowd *c) {
  for (int i = 0; i < THREADS; ++i) c->threads[i] = start_thread(body, c);
  EVENTUALLY(LOAD(c->b.calls) == THREADS);
  multicast outer = multicast_create();
  c->forking = add(outer, DELEGATE(fork_and_use, c));
  CHECK_EQ(multicast_invoke(outer, 0, NULL, 0), 1);
  CHECK_OK(multicast_destroy(outer));
  end_calls(c);
}

TEST(fork_forgets_many_threads_in_calls) {
  static crowd c;
  c.b = (blocker)BLOCKER_INIT;
  c.target = multicast_create();
  add(c.target, blocking(&c.b));
  fork_beside(invoke_in_crowd, &c);
}

TEST(fork_forgets_many_threads_at_rest) {
  static crowd c;
  int calls = 0;
  c.b = (blocker)BLOCKER_INIT;
  c.target = multicast_create();
  add(c.target, counter(&calls));
  fork_beside(rest_in_crowd, &c);
}
