/* multicast_enumerate() and multicast_visit_undo(). */

#include "policies.h"
#include "queues.h"

/* ---- Enumerating ----------------------------------------------------------------------------- */

enum { MOST = 16 };
static multicast_registration passed[MOST];
static int passed_count, stop_after;
static void (*in_enumerator)(int index);

static bool pass(void *context, const multicast_registration *registration) {
  CHECK(context == &passed_count);
  CHECK(passed_count < MOST);
  CHECK_EQ(registration->struct_size, sizeof *registration);
  CHECK_EQ(multicast_token_current().id, registration->token.id);
  passed[passed_count++] = *registration;
  if (in_enumerator != NULL) in_enumerator(passed_count - 1);
  return passed_count != stop_after;
}

static int64_t enumerate(multicast m) {
  passed_count = 0;
  return multicast_enumerate(m, pass, &passed_count);
}

static int locks, unlocks, dead;
static void *lock_it(void *context) {
  ++locks;
  return context == &dead ? NULL : &locks;
}
static void unlock_it(void *strong) {
  CHECK(strong == &locks);
  ++unlocks;
}

TEST_OF_QUEUE(enumerate_passes_every_registration_in_order_and_calls_none) {
  multicast_lifetime lifetime = multicast_lifetime_create();
  multicast_token tokens[4];
  tokens[0] = add(m, noting('a'));
  multicast_add_options options = ADD_OPTIONS(.flags = MULTICAST_ONCE);
  tokens[1] = add_with(m, noting('b'), &options);
  options = ADD_OPTIONS(.queue = q);
  options.flags = MULTICAST_LATEST;
  options.events = 6;
  tokens[2] = add_with(m, noting('c'), &options);
  options = ADD_OPTIONS(.lifetime = lifetime);
  options.priority = 2;
  tokens[3] = add_with(m, noting('d'), &options);
  CHECK_OK(multicast_token_pause(tokens[0]));
  CHECK_EQ(enumerate(m), 4);
  CHECK_EQ(passed[0].token.id, tokens[3].id);
  CHECK_EQ(passed[0].priority, 2);
  CHECK_EQ(passed[0].lifetime.id, lifetime.id);
  CHECK_EQ(passed[1].token.id, tokens[0].id);
  CHECK(passed[1].is_paused && !passed[2].is_paused);
  CHECK_EQ(passed[2].token.id, tokens[1].id);
  CHECK_EQ(passed[2].flags, MULTICAST_ONCE);
  CHECK_EQ(passed[3].token.id, tokens[2].id);
  CHECK_EQ(passed[3].flags, MULTICAST_LATEST);
  CHECK_EQ(passed[3].events, 6);
  CHECK_EQ(passed[3].queue.id, q.id);
  CHECK_EQ(passed[3].target.id, m.id);
  CHECK(passed[3].delegate.function == note_call);
  CHECK(passed[3].strong == NULL && passed[3].label == NULL);
  CHECK_EQ(enumerate(m), 4); /* no MULTICAST_ONCE delegate was used up */
  CHECK_EQ(stats_of(q).queued, 0);
  CHECK_TEXT(noted, "");
}

TEST_OF_MULTICAST(enumerate_stops_when_the_enumerator_returns_false) {
  CHECK_EQ(enumerate(m), 0);
  add(m, noting('a'));
  add(m, noting('b'));
  add(m, noting('c'));
  stop_after = 2;
  CHECK_EQ(enumerate(m), 2);
  CHECK_EQ(passed_count, 2);
}

TEST_OF_MULTICAST(enumerate_locks_contexts_and_removes_those_that_are_dead) {
  int released = 0;
  multicast_delegate weak = counter(&released), gone = counter(&dead);
  multicast_add_options options = ADD_OPTIONS(.release = count_release, .lock = lock_it,
                                              .unlock = unlock_it);
  add_with(m, weak, &options);
  multicast_token token = add_with(m, gone, &options);
  add(m, noting('c'));
  CHECK_EQ(enumerate(m), 2);
  CHECK(passed[0].strong == &locks && passed[0].delegate.context == &released);
  CHECK(passed[1].strong == NULL);
  CHECK(locks == 2 && unlocks == 1);
  CHECK(!multicast_token_is_valid(token));
  CHECK_EQ(dead, 1);
  CHECK_EQ(multicast_count(m), 2);
}

TEST(enumerate_locks_contexts_of_one_kind) {
  multicast m = multicast_create_with(&CREATE_OPTIONS(.lock_context = lock_it,
                                                      .unlock_context = unlock_it));
  add(m, counter(&unlocks));
  add(m, counter(&dead));
  CHECK_EQ(enumerate(m), 1);
  CHECK(passed[0].strong == &locks && passed[0].delegate.context == &unlocks);
  CHECK(locks == 2 && unlocks == 1);
  CHECK_EQ(multicast_count(m), 1);
}

static multicast_token removed;
static void *remove_in_lock(void *context) {
  ++locks;
  CHECK_STATUS(multicast_token_remove(removed), MULTICAST_PENDING);
  return context;
}
static void unlock_any(void *strong) {
  ++unlocks;
}

TEST_OF_MULTICAST(enumerate_unlocks_and_does_not_pass_what_its_lock_removes) {
  removed = add_with(m, counter(&dead), &ADD_OPTIONS(.release = count_release,
                                                     .lock = remove_in_lock, .unlock = unlock_any));
  CHECK_EQ(enumerate(m), 0);
  CHECK(locks == 1 && unlocks == 1);
  CHECK_EQ(dead, 1);
  CHECK_EQ(multicast_count(m), 0);
}

static multicast target;
static multicast_token later;
static void change(int index) {
  if (index != 0) return;
  CHECK_STATUS(multicast_token_remove(multicast_token_current()), MULTICAST_PENDING);
  CHECK_OK(multicast_token_remove(later));
  add(target, noting('d'));
}

TEST(enumerate_leaves_out_what_is_added_or_removed_meanwhile) {
  target = multicast_create();
  add_with(target, noting('a'), NULL);
  later = add(target, noting('b'));
  add(target, noting('c'));
  in_enumerator = change;
  CHECK_EQ(enumerate(target), 2);
  CHECK(passed[1].delegate.context == noting('c').context);
  in_enumerator = NULL;
  CHECK_EQ(enumerate(target), 2);
  CHECK(passed[1].delegate.context == noting('d').context);
}

static void destroy_target(int index) {
  CHECK_STATUS(multicast_destroy(target), MULTICAST_PENDING);
}

TEST(enumerate_ends_when_the_multicast_is_destroyed) {
  multicast_add_options options = ADD_OPTIONS(.release = count_release_of);
  target = multicast_create();
  add_with(target, noting('a'), &options);
  add_with(target, noting('b'), &options);
  in_enumerator = destroy_target;
  CHECK_EQ(enumerate(target), 1);
  CHECK(releases['a'] == 1 && releases['b'] == 1);
}

static gate is_inside, let_go;
static bool stay_inside(void *context, const multicast_registration *registration) {
  gate_open(&is_inside);
  gate_wait(&let_go);
  return true;
}
THREAD(enumerate_elsewhere, void *argument) {
  CHECK_EQ(multicast_enumerate(target, stay_inside, NULL), 1);
}

TEST(enumerate_is_waited_for_by_removals) {
  is_inside = let_go = shut;
  target = multicast_create();
  multicast_token token = add(target, noting('a'));
  pthread_t thread = start_thread(enumerate_elsewhere, NULL);
  gate_wait(&is_inside);
  CHECK_ERROR(multicast_token_remove_within(token, 1000000), TIMEOUT);
  gate_open(&let_go);
  join_thread(thread);
}

/* ---- Visiting all or none -------------------------------------------------------------------- */

static char refused;
static void (*in_visit)(char name);

static bool prepare(void *context, const multicast_delegate *delegate) {
  char name = (char)(intptr_t)delegate->context;
  CHECK(context == &refused);
  note_call(delegate->context, 0, NULL, 0);
  if (in_visit != NULL) in_visit(name);
  return name != refused;
}

static bool roll_back(void *context, const multicast_delegate *delegate) {
  CHECK(context == &refused);
  note_call(delegate->context, 9, NULL, 0);
  return false; /* the result is ignored */
}

static int64_t visit_or_undo(multicast m) {
  return multicast_visit_undo(m, prepare, roll_back, &refused);
}

TEST_OF_MULTICAST(visit_undo_visits_all) {
  CHECK_EQ(visit_or_undo(m), 0);
  add(m, noting('a'));
  add(m, noting('b'));
  CHECK_OK(multicast_token_pause(add(m, noting('p'))));
  CHECK_NOTED(visit_or_undo(m), 2, "a b");
}

TEST_OF_QUEUE(visit_undo_undoes_in_reverse_what_was_visited_before) {
  add(m, noting('a'));
  CHECK_OK(multicast_token_pause(add(m, noting('p'))));
  add_queued(m, noting('b'), q);
  add(m, noting('c'));
  add(m, noting('d'));
  refused = 'c';
  CHECK_NOTED(visit_or_undo(m), 0, "a b c b@9 a@9");
  refused = 'a';
  CHECK_NOTED(visit_or_undo(m), 0, "a b c b@9 a@9 a");
}

static multicast_token tokens[3];
static void change_in_visit(char name) {
  if (name != 'c') return;
  CHECK_OK(multicast_token_remove(tokens[0]));
  CHECK_OK(multicast_token_pause(tokens[1]));
}

TEST_OF_MULTICAST(visit_undo_leaves_out_what_was_removed_not_what_is_paused) {
  tokens[0] = add(m, noting('a'));
  tokens[1] = add(m, noting('b'));
  add_with(m, noting('o'), &ADD_OPTIONS(.flags = MULTICAST_ONCE));
  add(m, noting('c'));
  in_visit = change_in_visit;
  refused = 'c';
  CHECK_NOTED(visit_or_undo(m), 0, "a b o c b@9");
}

TEST_OF_MULTICAST(visit_undo_of_many) {
  for (int i = 0; i < 1000; ++i) add(m, noting(i == 990 ? 'z' : 'a'));
  refused = 'z';
  CHECK_EQ(visit_or_undo(m), 0);
  CHECK_EQ(noted_length, 990 * 2 + 2 + 990 * 4 - 1);
}

TEST_OF_MULTICAST(visit_undo_locks_contexts) {
  add_with(m, counter(&passed_count), &ADD_OPTIONS(.release = count_release_of, .lock = lock_it,
                                                   .unlock = unlock_it));
  add(m, noting('b'));
  refused = 'b';
  CHECK_EQ(visit_or_undo(m), 0);
  CHECK(locks == 2 && unlocks == 2);
}

static bool end_thread(void *context, const multicast_delegate *delegate) {
  pthread_exit(NULL);
}
THREAD(visit_until_the_end, multicast *m) {
  multicast_visit_undo(*m, end_thread, end_thread, NULL);
}
THREAD(visit_elsewhere, multicast *m) {
  CHECK_EQ(visit_or_undo(*m), 1);
}

TEST_OF_MEMORY(visit_undo_of_a_thread_that_ends_leaves_no_memory) {
  add(m, noting('a'));
  on_another_thread(visit_elsewhere, &m);
  int64_t blocks = allocated_blocks;
  on_another_thread(visit_until_the_end, &m);
  CHECK_EQ(allocated_blocks, blocks);
  CHECK_EQ(multicast_remove_all(m), 1);
}
