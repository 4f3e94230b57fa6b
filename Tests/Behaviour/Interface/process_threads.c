/* When a thread ends, its running calls end and its record is reclaimed. */

#include "process.h"

#include <unistd.h>

THREAD(invoke_and_end, void *unused) {
  CHECK_EQ(multicast_invoke(inherited, 0, NULL, 0), 1);
}

TEST(threads_that_end_have_their_records_reclaimed) {
  int64_t bytes = 0;
  use_test_allocator();
  inherited = multicast_create();
  add(inherited, counter(&calls));
  for (int i = 0; i < 1000; ++i) {
    on_another_thread(invoke_and_end, NULL);
    if (i == 10) bytes = allocated_bytes;
  }
  CHECK_EQ(calls, 1000);
  CHECK_EQ(allocated_bytes, bytes);
}

static pthread_key_t late_key;

static void invoke_late(void *rounds) {
  CHECK_EQ(multicast_invoke(inherited, 0, NULL, 0), 1);
  if ((intptr_t)rounds > 1)
    pthread_setspecific(late_key, (void *)((intptr_t)rounds - 1));
}

THREAD(end_with_destructor, void *unused) {
  CHECK_EQ(multicast_invoke(inherited, 0, NULL, 0), 1);
  CHECK_EQ(pthread_setspecific(late_key, (void *)3), 0);
}

TEST(thread_local_destructors_may_invoke) {
  /* the library creates its key before `late_key` exists, but either destructor may run first */
  inherited = multicast_create();
  add(inherited, counter(&calls));
  CHECK_EQ(pthread_key_create(&late_key, invoke_late), 0);
  on_another_thread(end_with_destructor, NULL);
  CHECK_EQ(calls, 4);
  CHECK_OK(multicast_remove(inherited, counter(&calls)));
}

static void end_thread(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_token_remove_nowait(multicast_token_current());
  ADD(*(int *)context, 1);
  pthread_exit(NULL);
}

THREAD(invoke_until_exit, void *unused) {
  multicast_invoke(inherited, 0, NULL, 0);
  CHECK(false);
}

TEST(thread_that_ends_inside_a_call_holds_nothing_up) {
  int releases = 0;
  inherited = multicast_create();
  add_with(inherited, DELEGATE(end_thread, &releases), &ADD_OPTIONS(.release = count_release));
  on_another_thread(invoke_until_exit, NULL);
  CHECK_EQ(LOAD(releases), 2); /* one call and one release */
  CHECK_EQ(multicast_count(inherited), 0);
  CHECK_OK(multicast_destroy(inherited));
}

static void end_thread_once(void *context, uint32_t event, const void *payload, size_t size) {
  ADD(*(int *)context, 1);
  pthread_exit(NULL);
}

TEST(thread_that_ends_inside_a_once_delegate_releases_it) {
  int releases = 0;
  multicast_delegate d = {end_thread_once, &releases};
  inherited = multicast_create();
  add_with(inherited, d, &ADD_OPTIONS(.release = count_release, .flags = MULTICAST_ONCE));
  on_another_thread(invoke_until_exit, NULL);
  CHECK_EQ(LOAD(releases), 2); /* one call and one release */
}

typedef struct replacer {
  int calls;
  bool ends_thread;
} replacer;

FUNCTION(replace_list, replacer *r) {
  multicast_token tokens[100];
  for (int i = 0; i < 100; ++i) tokens[i] = add(inherited, counter(&r->calls));
  for (int i = 0; i < 100; ++i) CHECK_OK(multicast_token_remove(tokens[i]));
  if (r->ends_thread) pthread_exit(NULL);
}

/* Replaces the list of a multicast inside a call, and returns how many bytes are allocated once the
 * call's thread has ended. */
static int64_t bytes_held(bool ends_thread) {
  replacer r = {.ends_thread = ends_thread};
  inherited = multicast_create();
  add(inherited, DELEGATE(replace_list, &r));
  on_another_thread(invoke_and_end, NULL);
  int64_t bytes = allocated_bytes;
  CHECK_OK(multicast_destroy(inherited));
  return bytes;
}

TEST(thread_that_ends_inside_a_call_leaves_no_list_behind) {
  use_test_allocator();
  bytes_held(false); /* the first use allocates memory that stays allocated */
  CHECK_EQ(bytes_held(true), bytes_held(false));
}

TEST(delegate_of_a_thread_that_has_ended_can_be_removed) {
  inherited = multicast_create();
  multicast_token token = add(inherited, counter(&calls));
  on_another_thread(invoke_and_end, NULL);
  CHECK_OK(multicast_token_remove(token));
}

/* ---- Threads that are cancelled in their last destructors ------------------------------------ */

static pthread_key_t last_word;
static gate in_last_word = GATE_INIT;

static void wait_to_be_cancelled(void *context, uint32_t event, const void *payload, size_t size) {
  int previous;
  if (event == 0) return;
  /* enable cancellation, which musl disables while a thread ends */
  CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &previous), 0);
  gate_open(&in_last_word);
  for (;;) pause(); /* a cancellation point */
}

static void invoke_at_the_end(void *unused) {
  multicast_invoke(inherited, 1, NULL, 0);
}

THREAD(end_with_a_last_word, void *unused) {
  CHECK_EQ(multicast_invoke(inherited, 0, NULL, 0), 1);
  CHECK_EQ(pthread_setspecific(last_word, &last_word), 0);
}

TEST(thread_cancelled_in_call_of_last_destructor_ends_the_call) {
  /* the library creates its key first, so that its destructor runs before the destructors of later
   * keys */
  inherited = multicast_create();
  CHECK_EQ(pthread_key_create(&last_word, invoke_at_the_end), 0);
  multicast_token token = add(inherited, DELEGATE(wait_to_be_cancelled, NULL));
  pthread_t thread = start_thread(end_with_a_last_word, NULL);
  gate_wait(&in_last_word);
  CHECK_EQ(pthread_cancel(thread), 0);
  join_thread(thread);
  CHECK_OK(multicast_token_remove(token));
}
