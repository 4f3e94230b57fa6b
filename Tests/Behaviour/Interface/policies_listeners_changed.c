/* The library calls `listeners_changed` after the first delegate has been added and after the last
 * delegate has been removed. */

#include "policies.h"
#include "queues.h"

#include <sys/wait.h>
#include <unistd.h>

/* The notifications in order: '+' for the first delegate, '-' for the last. */
typedef struct listener {
  char told[64];
  int count;
  int releases;
  multicast target;
  pthread_t thread;
  void (*in_call)(struct listener *);
} listener;

static listener it;

static void hear(void *context, multicast target, bool wanted) {
  listener *i = context;
  CHECK_EQ(target.id, i->target.id);
  CHECK(i->count < (int)sizeof i->told - 1);
  CHECK_EQ(i->releases, 0);
  i->thread = pthread_self();
  i->told[i->count++] = wanted ? '+' : '-';
  if (i->in_call != NULL) i->in_call(i);
}

static void release_listener(void *context) { ADD(((listener *)context)->releases, 1); }

static multicast_create_options options_of(listener *i) {
  memset(i, 0, sizeof *i);
  return CREATE_OPTIONS(.context = i, .listeners_changed = hear, .release = release_listener);
}

static multicast create_heard(void) {
  multicast_create_options options = options_of(&it);
  it.target = multicast_create_with(&options);
  CHECK(it.target.id != 0);
  return it.target;
}

static void expect_notified(const char *told) {
  CHECK_TEXT(it.told, told);
  memset(it.told, 0, sizeof it.told);
  it.count = 0;
}

/* ---- Every way to add and to remove ---------------------------------------------------------- */

static multicast_delegate delegates[2];
static multicast_status status;

static void by_remove(multicast m) { CHECK_OK(multicast_remove(m, delegates[0])); }
static void by_remove_every(multicast m) { CHECK_OK(multicast_remove_every(m, delegates[0])); }
static void by_remove_within(multicast m) {
  CHECK_OK(multicast_remove_every_within(m, delegates[0], MULTICAST_FOREVER));
}
static void by_remove_many(multicast m) { CHECK_EQ(multicast_remove_many(m, delegates, 2), 1); }
static void by_remove_many_within(multicast m) {
  CHECK_EQ(multicast_remove_many_within(m, delegates, 2, MULTICAST_FOREVER, &status), 1);
}
static void by_remove_context(multicast m) {
  CHECK_EQ(multicast_remove_context(m, delegates[0].context), 1);
}
static void by_remove_context_within(multicast m) {
  CHECK_EQ(multicast_remove_context_within(m, delegates[0].context, 1, &status), 1);
}
static void by_remove_at(multicast m) { CHECK_OK(multicast_remove_at(m, 0)); }
static void by_remove_all(multicast m) { CHECK_EQ(multicast_remove_all(m), 1); }
static void by_remove_all_within(multicast m) {
  CHECK_EQ(multicast_remove_all_within(m, MULTICAST_FOREVER, &status), 1);
}

#define TEST_OF_HEARD(NAME) TEST_OF(NAME, (multicast m), (create_heard()))

TEST_OF_HEARD(listeners_changed_is_called_for_the_first_and_the_last) {
  void (*const ways[])(multicast) = {
      by_remove,         by_remove_every,          by_remove_within, by_remove_many,
      by_remove_many_within, by_remove_context,    by_remove_context_within,
      by_remove_at,      by_remove_all,            by_remove_all_within};
  delegates[0] = noting('a');
  delegates[1] = noting('b');
  expect_notified("");
  for (size_t which = 0; which < sizeof ways / sizeof *ways; ++which) {
    add(m, delegates[0]);
    expect_notified("+");
    CHECK_OK(multicast_remove_every(m, delegates[0]));
    expect_notified("-");
    CHECK_OK(multicast_add_many(m, delegates, 2, NULL, NULL));
    expect_notified("+");
    CHECK_OK(multicast_remove(m, delegates[1]));
    expect_notified("");
    ways[which](m);
    expect_notified("-");
  }
  CHECK_OK(multicast_destroy(m));
  expect_notified("");
}

TEST_OF_HEARD(listeners_changed_is_called_for_removals_by_token) {
  CHECK_OK(multicast_token_remove(add(m, noting('a'))));
  CHECK_OK(multicast_token_remove_nowait(add(m, noting('a'))));
  CHECK_OK(multicast_token_remove_within(add(m, noting('a')), 1));
  expect_notified("+-+-+-");
}

TEST_OF_HEARD(listeners_changed_is_not_called_for_pauses_or_failed_adds) {
  multicast_delegate none = {NULL, NULL};
  CHECK_ERROR(multicast_add(m, none, NULL, NULL), INVALID_ARGUMENT);
  expect_notified("");
  multicast_token token = add(m, noting('a'));
  expect_notified("+");
  CHECK_OK(multicast_token_pause(token));
  CHECK_OK(multicast_token_resume(token));
  expect_notified("");
}

TEST_OF_HEARD(listeners_changed_is_not_called_for_a_replaced_delegate) {
  multicast_add_options options = ADD_OPTIONS(.flags = MULTICAST_UNIQUE);
  add_with(m, noting('a'), &options);
  add_with(m, noting('a'), &options);
  expect_notified("+");
}

TEST_OF_HEARD(listeners_changed_is_called_for_a_delegate_called_once) {
  add_with(m, noting('a'), &ADD_OPTIONS(.flags = MULTICAST_ONCE));
  expect_notified("+");
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  expect_notified("-");
}

static bool pass_registration(void *context, const multicast_registration *registration) {
  return true;
}

TEST(listeners_changed_is_called_for_dead_contexts) {
  for (int which = 0; which < 6; ++which) {
    multicast_add_options options = MULTICAST_ADD_OPTIONS_INIT;
    multicast_create_options create = options_of(&it);
    if (which >= 3) {
      create.lock_context = lock_dead;
      create.unlock_context = unlock_nothing;
    } else {
      options.lock = lock_dead;
      options.unlock = unlock_nothing;
    }
    multicast m = it.target = multicast_create_with(&create);
    add_with(m, noting('a'), &options);
    expect_notified("+");
    if (which % 3 == 0) CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
    if (which % 3 == 1) CHECK_EQ(multicast_prune(m), 1);
    if (which % 3 == 2) CHECK_EQ(multicast_enumerate(m, pass_registration, NULL), 0);
    expect_notified("-");
    CHECK_OK(multicast_destroy(m));
  }
}

TEST(listeners_changed_is_called_when_a_lifetime_ends) {
  multicast_lifetime lifetime = multicast_lifetime_create();
  listener many[20];
  for (int i = 0; i < 20; ++i) {
    multicast_create_options create = options_of(&many[i]);
    many[i].target = multicast_create_with(&create);
    add_with(many[i].target, noting('a'), &ADD_OPTIONS(.lifetime = lifetime));
  }
  CHECK_OK(multicast_lifetime_end(lifetime));
  for (int i = 0; i < 20; ++i) CHECK_TEXT(many[i].told, "+-");
}

TEST_OF_HEARD(listeners_changed_is_called_when_a_queue_is_destroyed) {
  multicast_queue q = default_queue();
  add_queued(m, noting('a'), q);
  expect_notified("+");
  CHECK_OK(multicast_queue_destroy(q));
  expect_notified("-");
}

TEST_OF_HEARD(listeners_changed_is_called_at_destroy_and_then_released) {
  CHECK_OK(multicast_destroy(m)); /* the multicast has never had delegates */
  expect_notified("");
  CHECK_EQ(it.releases, 1);
  m = create_heard();
  add(m, noting('a'));
  CHECK_OK(multicast_destroy(m));
  expect_notified("+-");
  CHECK_EQ(it.releases, 1);
  CHECK_ERROR(multicast_destroy(m), INVALID_HANDLE);
  CHECK_EQ(it.releases, 1);
}

TEST(listeners_changed_context_is_released_without_function) {
  multicast_create_options options = options_of(&it);
  options.listeners_changed = NULL;
  CHECK_OK(multicast_destroy(multicast_create_with(&options)));
  CHECK_EQ(it.releases, 1);
  options.reentry = 77;
  CHECK_EQ(multicast_create_with(&options).id, 0);
  CHECK_EQ(it.releases, 1); /* a failed creation does not release */
}

/* ---- Threads --------------------------------------------------------------------------------- */

THREAD(add_elsewhere, multicast *m) {
  add(*m, noting('a'));
  CHECK(pthread_equal(it.thread, pthread_self()));
}
THREAD(remove_elsewhere, multicast *m) {
  CHECK_EQ(multicast_remove_all(*m), 1);
  CHECK(pthread_equal(it.thread, pthread_self()));
}

TEST_OF_HEARD(listeners_changed_is_called_on_the_thread_of_the_change) {
  on_another_thread(add_elsewhere, &m);
  expect_notified("+");
  on_another_thread(remove_elsewhere, &m);
  expect_notified("-");
}

/* ---- Changes inside listeners_changed -------------------------------------------------------- */

static void change_inside(listener *i) {
  i->in_call = NULL;
  CHECK_EQ(multicast_remove_all(i->target), 1);
  /* notifications do not nest, so the removal is reported later */
  CHECK_TEXT(i->told, "+");
  add(i->target, noting('b'));
  CHECK_EQ(multicast_remove_all(i->target), 1);
}

TEST_OF_HEARD(listeners_changed_is_called_for_its_own_changes_afterwards) {
  it.in_call = change_inside;
  add(m, noting('a'));
  expect_notified("+-");
}

static void cancel_out(listener *i) {
  i->in_call = NULL;
  CHECK_EQ(multicast_remove_all(i->target), 1);
  add(i->target, noting('b'));
}

TEST_OF_HEARD(listeners_changed_is_not_called_if_changes_cancel_out) {
  it.in_call = cancel_out;
  add(m, noting('a'));
  expect_notified("+");
}

static void destroy_inside(listener *i) {
  i->in_call = NULL;
  CHECK_OK(multicast_destroy(i->target));
  CHECK_EQ(i->releases, 0); /* the context is still in use */
}

TEST_OF_HEARD(listeners_changed_that_destroys_the_multicast_is_called) {
  it.in_call = destroy_inside;
  add(m, noting('a'));
  expect_notified("+-");
  CHECK_EQ(it.releases, 1);
  CHECK(!multicast_is_valid(m));
}

static gate entered, let_go;
static void stay_inside(listener *i) {
  i->in_call = NULL;
  gate_open(&entered);
  gate_wait(&let_go);
}
THREAD(add_and_stay, multicast *m) {
  add(*m, noting('a'));
}

TEST_OF_HEARD(listeners_changed_that_runs_elsewhere_is_released_afterwards) {
  entered = let_go = shut;
  it.in_call = stay_inside;
  pthread_t thread = start_thread(add_and_stay, &m);
  gate_wait(&entered);
  CHECK_EQ(multicast_remove_all(m), 1);
  CHECK_OK(multicast_destroy(m));
  CHECK_EQ(LOAD(it.releases), 0);
  gate_open(&let_go);
  join_thread(thread);
  expect_notified("+-"); /* the thread that added the delegate has reported both changes */
  CHECK_EQ(it.releases, 1);
}

THREAD(invoke_it, multicast *m) {
  multicast_invoke(*m, 0, NULL, 0);
}

TEST_OF_HEARD(listeners_changed_is_called_before_a_removal_waits) {
  static blocker b = BLOCKER_INIT;
  add(m, blocking(&b));
  pthread_t thread = start_thread(invoke_it, &m);
  gate_wait(&b.entered);
  CHECK_ERROR(multicast_remove_every_within(m, blocking(&b), 1000000), TIMEOUT);
  expect_notified("+-");
  gate_open(&b.let_go);
  join_thread(thread);
}

/* ---- Concurrent changes ---------------------------------------------------------------------- */

enum { THREADS = 4, CHANGES = 5000 };
static int running, last_word, told, is_notifying;

static void hear_at_once(void *context, multicast target, bool wanted) {
  CHECK_EQ(ADD(is_notifying, 1), 1); /* notifications never overlap */
  CHECK_EQ(LOAD(last_word), !wanted); /* notifications alternate */
  STORE(last_word, wanted);
  ADD(told, 1);
  ADD(is_notifying, -1);
}

THREAD(change_at_once, multicast *m) {
  for (int i = 0; i < CHANGES; ++i) CHECK_OK(multicast_token_remove(add(*m, counter(&running))));
}

TEST(listeners_changed_at_once_ends_with_the_current_state) {
  pthread_t threads[THREADS];
  multicast m = multicast_create_with(&CREATE_OPTIONS(.listeners_changed = hear_at_once));
  for (int round = 0; round < 4; ++round) {
    multicast_token token = {0};
    for (int i = 0; i < THREADS; ++i) threads[i] = start_thread(change_at_once, &m);
    if (round % 2 == 1) token = add(m, counter(&running));
    for (int i = 0; i < THREADS; ++i) join_thread(threads[i]);
    CHECK_EQ(LOAD(last_word), round % 2);
    if (token.id != 0) CHECK_OK(multicast_token_remove(token));
    CHECK_EQ(LOAD(last_word), 0);
  }
  CHECK(told >= 4);
}

/* ---- Memory, fork ---------------------------------------------------------------------------- */

TEST(listeners_changed_is_called_without_memory) {
  use_test_allocator();
  multicast m = create_heard();
  multicast_token token = add(m, noting('a'));
  fail_after = 0;
  CHECK_OK(multicast_token_remove(token));
  expect_notified("+-");
  CHECK_ERROR(multicast_add(m, noting('a'), NULL, NULL), OUT_OF_MEMORY);
  expect_notified("");
  CHECK_OK(multicast_destroy(m));
  CHECK_EQ(it.releases, 1);
  fail_after = -1;
}

THREAD(remove_without_memory, multicast_token *argument) {
  fail_after = 0;
  CHECK_OK(multicast_token_remove(*argument));
  expect_notified("+-");
  fail_after = -1;
}

TEST(listeners_changed_is_called_on_a_new_thread_without_memory) {
  use_test_allocator();
  multicast_token token = add(create_heard(), noting('a'));
  join_thread(start_thread(remove_without_memory, &token));
  CHECK_OK(multicast_destroy(it.target));
  CHECK_EQ(it.releases, 1);
}

static pid_t child;
static void fork_in_call(listener *i) {
  i->in_call = NULL;
  child = fork();
  CHECK(child >= 0);
}

TEST_OF_HEARD(fork_inside_listeners_changed_continues_in_both) {
  int exit_status;
  it.in_call = fork_in_call;
  multicast_token token = add(m, noting('a'));
  expect_notified("+");
  CHECK_OK(multicast_token_remove(token));
  expect_notified("-");
  CHECK_OK(multicast_destroy(m));
  CHECK_EQ(it.releases, 1);
  if (child == 0) _exit(0);
  CHECK_EQ(waitpid(child, &exit_status, 0), child);
  CHECK_EQ(exit_status, 0);
}

static void go_on_in_child(void *argument) {
  multicast *m = argument;
  expect_notified("+-"); /* fork() has made the other thread's notification */
  add(*m, noting('b'));
  expect_notified("+");
  CHECK_OK(multicast_destroy(*m));
  expect_notified("-");
  CHECK_EQ(it.releases, 1);
}

TEST_OF_HEARD(fork_child_is_notified_instead_of_the_parents_thread) {
  entered = let_go = shut;
  it.in_call = stay_inside;
  pthread_t thread = start_thread(add_and_stay, &m);
  gate_wait(&entered);
  CHECK_EQ(multicast_remove_all(m), 1);
  in_child(go_on_in_child, &m);
  CHECK_TEXT(it.told, "+");
  gate_open(&let_go);
  join_thread(thread);
  expect_notified("+-");
}
