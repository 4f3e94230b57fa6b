/* A multicast changes in quick succession while other threads invoke it. Only the first few changes
 * need the kernel's memory barrier, and every removal works as documented. */

#include "threads.h"

#include <unistd.h>

enum { MANY = 400 };

static multicast_delegate nothing(int *context) {
  return (multicast_delegate){call_nothing, context};
}

static void add_and_remove(multicast m) {
  static int context;
  CHECK_OK(multicast_token_remove(add(m, nothing(&context))));
}

/* Returns a multicast that has `count` delegates and that two threads have invoked. */
static multicast invoked_by_two(int count) {
  static int contexts[256];
  multicast m = multicast_create();
  for (int i = 0; i < count; ++i) add(m, nothing(&contexts[i]));
  let_two_threads_invoke(m);
  return m;
}

/* Makes the given number of changes, and returns how many memory barriers they needed. */
static int barriers_of(multicast m, int changes) {
  (void)membarriers();
  for (int i = 0; i < changes; ++i) add_and_remove(m);
  return membarriers();
}

/* Makes changes until they no longer need a barrier. On a loaded machine, this may take several
 * attempts, because the changes have to follow each other quickly. */
static void change_until_fenced(multicast m) { EVENTUALLY(barriers_of(m, MANY / 10) == 0); }
static void begin_fenced(multicast m) {
  count_membarriers();
  change_until_fenced(m);
}

/* Invokes the multicast until a removal needs a barrier again. */
static void invoke_until_biased(multicast m) {
  int tries = 0;
  while (barriers_of(m, 1) == 0) {
    CHECK(++tries < 1000);
    for (int i = 0; i < MANY * tries; ++i) multicast_invoke(m, 0, NULL, 0);
  }
}

/* ---- The number of barriers ------------------------------------------------------------------ */

TEST(changes_that_follow_each_other_make_few_barriers) {
  multicast m = invoked_by_two(10);
  count_membarriers();
  if (is_without_membarrier()) {
    CHECK_EQ(barriers_of(m, MANY), 0);
    return;
  }
  CHECK(barriers_of(m, 1) > 0); /* a single change needs a barrier */
  change_until_fenced(m);
  CHECK_EQ(barriers_of(m, MANY), 0);
}

TEST_OF_MULTICAST(changes_beside_a_single_invoker_elsewhere_make_few_barriers) {
  invoker other;
  count_membarriers();
  add(m, counter(&calls));
  invoke_in_background(&other, m);
  CHECK_EQ(invoke_finished(&other), 1);
  change_until_fenced(m);
  CHECK_EQ(barriers_of(m, MANY), 0);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(calls, 2);
}

TEST(changes_make_barriers_again_after_many_invocations) {
  multicast m = invoked_by_two(100);
  if (is_without_membarrier()) return; /* without membarrier there is never a barrier */
  begin_fenced(m);
  invoke_until_biased(m);
  change_until_fenced(m);
  invoke_until_biased(m);
}

TEST(invocations_between_changes_do_not_bring_barriers_back) {
  multicast m = invoked_by_two(10);
  int barriers = 0;
  begin_fenced(m);
  for (int i = 0; i < MANY; ++i) {
    multicast_invoke(m, 0, NULL, 0);
    barriers += barriers_of(m, 1);
  }
  CHECK_EQ(barriers, 0);
}

TEST(changes_of_one_multicast_leave_the_others_as_they_are) {
  multicast m = invoked_by_two(10), other = invoked_by_two(10);
  if (is_without_membarrier()) return; /* without membarrier there is never a barrier */
  begin_fenced(m);
  CHECK(barriers_of(other, 1) > 0);
  CHECK_EQ(barriers_of(m, 1), 0);
}

TEST(removing_many_makes_one_barrier_at_most) {
  multicast m = invoked_by_two(64), others[2];
  multicast_lifetime lifetime = multicast_lifetime_create();
  multicast_add_options options = ADD_OPTIONS(.lifetime = lifetime);
  int contexts[64];
  count_membarriers();
  CHECK_EQ(multicast_remove_all(m), 64);
  CHECK(membarriers() <= 1);
  others[0] = invoked_by_two(1);
  others[1] = invoked_by_two(1);
  for (int i = 0; i < 64; ++i) add_with(others[i % 2], nothing(&contexts[i]), &options);
  (void)membarriers();
  CHECK_OK(multicast_lifetime_end(lifetime));
  CHECK(membarriers() <= 1);
  CHECK_OK(multicast_destroy(others[0]));
  CHECK(membarriers() <= 1);
}

TEST(removing_many_from_fenced_multicasts_makes_no_barrier) {
  multicast m = invoked_by_two(1);
  multicast_lifetime lifetime = multicast_lifetime_create();
  multicast_add_options options = ADD_OPTIONS(.lifetime = lifetime);
  int contexts[64];
  begin_fenced(m);
  for (int i = 0; i < 64; ++i) add_with(m, nothing(&contexts[i]), &options);
  CHECK_OK(multicast_lifetime_end(lifetime));
  CHECK_EQ(multicast_remove_all(m), 1);
  CHECK_OK(multicast_destroy(m));
  CHECK_EQ(membarriers(), 0);
}

TEST(adding_while_there_is_room_makes_no_barrier) {
  int contexts[10], blocks;
  use_test_allocator();
  multicast m = invoked_by_two(5); /* this list has room for ten delegates */
  blocks = (int)allocated_blocks;
  count_membarriers();
  for (int i = 0; i < 5; ++i) add(m, nothing(&contexts[i]));
  CHECK_EQ(membarriers(), 0);
  CHECK_EQ(allocated_blocks, blocks);
}

/* ---- The promises of removals ---------------------------------------------------------------- */

THREAD(remove_blocker, void *argument) {
  void **arguments = argument;
  CHECK_OK(multicast_remove(*(multicast *)arguments[0], blocking(arguments[1])));
  CHECK(((blocker *)arguments[1])->has_left);
}

/* Expects a removal on another thread to wait for a call to `b` on a third thread. */
static void expect_removal_to_wait(multicast m, blocker *b) {
  void *arguments[] = {&m, b};
  invoker other;
  invoke_in_background(&other, m);
  gate_wait(&b->entered);
  pthread_t remover = start_thread(remove_blocker, arguments);
  pause_ms(A_WHILE_MS);
  CHECK(!LOAD(b->has_left));
  gate_open(&b->let_go);
  join_thread(remover);
  invoke_finished(&other);
}

TEST(removal_from_a_fenced_multicast_waits_for_the_call) {
  blocker b = BLOCKER_INIT;
  multicast m = invoked_by_two(3);
  begin_fenced(m);
  add(m, blocking(&b));
  expect_removal_to_wait(m, &b);
  CHECK_EQ(membarriers(), 0);
}

/* An invocation is inside the call to the first delegate while the multicast changes many times. A
 * removal must still wait for the same invocation's call to the second delegate. */
TEST_OF_MULTICAST(removal_waits_for_a_call_that_began_before_the_changes) {
  blocker first = BLOCKER_INIT, second = BLOCKER_INIT;
  void *arguments[2];
  add(m, blocking(&first));
  add(m, blocking(&second));
  gate_open(&first.let_go);
  gate_open(&second.let_go);
  let_two_threads_invoke(m);
  first.let_go = second.let_go = first.entered = second.entered = shut;
  second.has_left = false;
  count_membarriers();
  begin_blocked(&first, m);
  if (!is_without_membarrier()) {
    for (int i = 0; i < MANY; ++i) CHECK(barriers_of(m, 1) > 0); /* while the call runs */
  }
  gate_open(&first.let_go);
  gate_wait(&second.entered);
  arguments[0] = &m, arguments[1] = &second;
  pthread_t remover = start_thread(remove_blocker, arguments);
  pause_ms(A_WHILE_MS);
  CHECK(!LOAD(second.has_left));
  gate_open(&second.let_go);
  join_thread(remover);
  CHECK_EQ(invoke_finished(&first.invoking), 2);
  change_until_fenced(m);
}

typedef struct scene {
  multicast m;
  multicast_token own, next;
  int calls, releases;
  multicast_status status;
} scene;

static void release_of_scene(void *context) { ++((scene *)context)->releases; }

static void count_in_scene(void *context, uint32_t event, const void *payload, size_t size) {
  ++((scene *)context)->calls;
}

FUNCTION(remove_itself, scene *s) {
  ++s->calls;
  s->status = multicast_token_remove(s->own);
  CHECK_EQ(s->releases, 0);
}

TEST(delegate_of_a_fenced_multicast_removes_itself) {
  scene s = {{0}, {0}, {0}, 0, 0, MULTICAST_OK};
  multicast_delegate d = {remove_itself, &s}, after = {count_in_scene, &s};
  s.m = invoked_by_two(2);
  begin_fenced(s.m);
  s.own = add_with(s.m, d, &ADD_OPTIONS(.release = release_of_scene));
  s.next = add(s.m, after);
  CHECK_EQ(multicast_invoke(s.m, 0, NULL, 0), 4);
  CHECK_STATUS(s.status, MULTICAST_PENDING);
  CHECK_EQ(s.calls, 2);
  CHECK_EQ(s.releases, 1);
  CHECK_EQ(multicast_invoke(s.m, 0, NULL, 0), 3);
  CHECK_EQ(membarriers(), 0);
}

FUNCTION(remove_next, scene *s) {
  s->status = multicast_token_remove(s->next);
}

TEST(delegate_of_a_fenced_multicast_removes_the_next_one) {
  scene s = {{0}, {0}, {0}, 0, 0, MULTICAST_PENDING};
  multicast_delegate d = {remove_next, &s}, after = {count_in_scene, &s};
  s.m = invoked_by_two(2);
  begin_fenced(s.m);
  s.own = add(s.m, d);
  s.next = add_with(s.m, after, &ADD_OPTIONS(.release = release_of_scene));
  CHECK_EQ(multicast_invoke(s.m, 0, NULL, 0), 3);
  CHECK_STATUS(s.status, MULTICAST_OK);
  CHECK_EQ(s.calls, 0);
  CHECK_EQ(s.releases, 1);
  CHECK_EQ(multicast_invoke(s.m, 0, NULL, 0), 3);
}

/* Tests a release function that waits for another thread to remove the next delegate. */
static multicast_token behind;

THREAD(remove_behind, void *unused) {
  CHECK_OK(multicast_token_remove(behind));
}

static void release_and_wait(void *context) {
  ++*(int *)context;
  on_another_thread(remove_behind, NULL);
}

static void remove_in_background(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_STATUS(multicast_token_remove(*(multicast_token *)((void **)context)[0]),
               MULTICAST_PENDING);
}

static void release_pair(void *context) { release_and_wait(((void **)context)[1]); }

TEST(release_after_call_may_wait_for_removal_of_next_delegate) {
  multicast_token own;
  int releases = 0;
  void *pair[] = {&own, &releases};
  multicast m = invoked_by_two(2);
  begin_fenced(m);
  own = add_with(m, DELEGATE(remove_in_background, pair), &ADD_OPTIONS(.release = release_pair));
  behind = add(m, counter(&calls));
  multicast_invoke(m, 0, NULL, 0);
  CHECK_EQ(releases, 1);
  CHECK_EQ(calls, 0); /* the delegate has been removed before its call */
  CHECK_EQ(multicast_count(m), 2);
}

/* ---- Nested invocations ---------------------------------------------------------------------- */

FUNCTION(invoke_and_change, scene *s) {
  ++s->calls;
  if (event == 0) return;
  if (event == 1) change_until_fenced(s->m);
  if (event == 2) invoke_until_biased(s->m);
  CHECK_EQ(multicast_invoke(s->m, event - 1, NULL, 0), 12);
  add_and_remove(s->m);
}

TEST(mode_changes_during_nested_invocations) {
  scene s = {{0}, {0}, {0}, 0, 0, MULTICAST_OK};
  if (is_without_membarrier()) return; /* there is only one mode */
  s.m = invoked_by_two(10);
  multicast_delegate d = {invoke_and_change, &s};
  add(s.m, d);
  add(s.m, d);
  count_membarriers();
  for (int i = 0; i < 3; ++i) {
    s.calls = 0;
    CHECK_EQ(multicast_invoke(s.m, 1, NULL, 0), 12);
    invoke_until_biased(s.m);
    change_until_fenced(s.m);
  }
  CHECK(s.calls > 0);
}

/* ---- Every kind of invocation ---------------------------------------------------------------- */

static bool stop_at_third(void *context, const multicast_delegate *d) {
  return ++*(int *)context < 3;
}

TEST(every_kind_of_invocation_works_in_a_fenced_multicast) {
  multicast m = invoked_by_two(4);
  multicast_queue q = queue_with(8, MULTICAST_OVERFLOW_REFUSE);
  multicast_invocation options = MULTICAST_INVOCATION_INIT;
  multicast_add_options once = MULTICAST_ADD_OPTIONS_INIT, filtered = MULTICAST_ADD_OPTIONS_INIT;
  int visits = 0, queued = 0;
  once.flags = MULTICAST_ONCE;
  filtered.events = 2;
  begin_fenced(m);
  CHECK_EQ(multicast_visit(m, stop_at_third, &visits), 3);
  CHECK_EQ(visits, 3);
  add_with(m, counter(&calls), &once);
  multicast_token token = add(m, counter(&calls));
  add_with(m, counter(&calls), &filtered);
  add_queued(m, counter(&queued), q);
  multicast_token paused = add(m, counter(&calls));
  CHECK_OK(multicast_token_pause(paused));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 7);
  CHECK_EQ(calls, 2);
  CHECK_EQ(multicast_invoke_with(m, &options, NULL), 6);
  CHECK_EQ(calls, 3);
  CHECK_EQ(multicast_token_invoke(token, 0, NULL, 0), 1);
  CHECK_EQ(calls, 4);
  CHECK_EQ(multicast_prune(m), 0);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_EQ(queued, 2);
  CHECK_EQ(membarriers(), 0);
  CHECK_OK(multicast_destroy(m));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), MULTICAST_ERROR_INVALID_HANDLE);
}

/* ---- Reuse of a slot ------------------------------------------------------------------------- */

TEST(next_multicast_in_the_slot_of_a_fenced_one_begins_anew) {
  if (is_without_membarrier()) return; /* without membarrier there is never a barrier */
  count_membarriers();
  for (int i = 0; i < 3; ++i) {
    multicast m = invoked_by_two(3);
    CHECK(barriers_of(m, 1) > 0);
    change_until_fenced(m);
    CHECK_OK(multicast_destroy(m));
  }
}

/* ---- fork ------------------------------------------------------------------------------------ */

static void use_in_child(void *argument) {
  multicast m = *(multicast *)argument;
  int calls = 0;
  multicast_token token = add(m, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 11);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(calls, 1);
  for (int i = 0; i < MANY; ++i) add_and_remove(m);
  for (int i = 0; i < MANY; ++i) multicast_invoke(m, 0, NULL, 0);
}

TEST(fork_of_a_fenced_multicast) {
  multicast m = invoked_by_two(10);
  begin_fenced(m);
  in_child(use_in_child, &m);
  CHECK_EQ(barriers_of(m, MANY), 0);
}

static void fork_in_call(void *context, uint32_t event, const void *payload, size_t size) {
  if (event == 1) in_child(use_in_child, context);
}

TEST(fork_inside_a_call_of_a_fenced_multicast) {
  multicast m = invoked_by_two(9);
  add(m, DELEGATE(fork_in_call, &m));
  begin_fenced(m);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 10);
}
