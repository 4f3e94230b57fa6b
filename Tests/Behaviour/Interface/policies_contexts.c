/* Tests multicasts whose contexts all have the same `lock`, `unlock` and `release`, and multicasts
 * that can only be visited. */

#include "payloads.h"
#include "policies.h"
#include "queues.h"

/* A context that counts the library's operations on it. */
typedef struct item {
  bool is_dead;
  int locks, unlocks, releases, calls;
  void (*in_lock)(struct item *);
} item;

static item items[8];

static void *lock_item(void *context) {
  item *i = context;
  ++i->locks;
  if (i->in_lock != NULL) i->in_lock(i);
  /* this pointer differs from the context, so that the tests detect any confusion of the two */
  return i->is_dead ? NULL : &i->calls;
}
static void unlock_item(void *strong) {
  ++items[0].unlocks;
}
static void release_item(void *context) { ++((item *)context)->releases; }

static multicast_delegate delegate_of(item *i) {
  return (multicast_delegate){count_call, i};
}

static multicast_create_options of_items(void) {
  return CREATE_OPTIONS(.lock_context = lock_item, .unlock_context = unlock_item,
                        .release_context = release_item);
}

static multicast create_for_items(void) {
  multicast_create_options options = of_items();
  multicast m = multicast_create_with(&options);
  CHECK(m.id != 0);
  return m;
}

/* ---- Contexts of one kind -------------------------------------------------------------------- */

#define TEST_OF_ITEMS(NAME) TEST_OF(NAME, (multicast m), (create_for_items()))

TEST_OF_ITEMS(contexts_of_one_kind_are_locked_for_each_call) {
  add(m, delegate_of(&items[1]));
  add(m, delegate_of(&items[2]));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK(items[1].locks == 2 && items[1].calls == 2 && items[2].locks == 2 && items[2].calls == 2);
  CHECK_EQ(items[0].unlocks, 4);
  int64_t count = multicast_remove_all(m);
  CHECK_EQ(count, 2);
  CHECK(items[1].releases == 1 && items[2].releases == 1);
}

TEST_OF_ITEMS(contexts_of_one_kind_that_are_dead_are_removed_and_released) {
  multicast_token token = add(m, delegate_of(&items[1]));
  add(m, delegate_of(&items[2]));
  items[1].is_dead = true;
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(!multicast_token_is_valid(token));
  CHECK_EQ(multicast_count(m), 1);
  CHECK(items[1].calls == 0 && items[1].releases == 1);
  CHECK_EQ(items[0].unlocks, 1);
  items[2].is_dead = true;
  CHECK_EQ(multicast_prune(m), 1);
  CHECK_EQ(items[2].releases, 1);
  CHECK_EQ(multicast_count(m), 0);
}

TEST_OF_ITEMS(contexts_of_one_kind_are_locked_with_any_option) {
  multicast_queue q = default_queue();
  multicast_lifetime lifetime = multicast_lifetime_create();
  for (int which = 1; which < 7; ++which) {
    multicast_add_options options = MULTICAST_ADD_OPTIONS_INIT;
    if (which == 1) options.flags = MULTICAST_ONCE;
    if (which == 2) options.flags = MULTICAST_UNIQUE;
    if (which == 3) options.events = 1;
    if (which == 4) options.priority = 3;
    if (which == 5) options.lifetime = lifetime;
    if (which == 6) options.queue = q;
    add_with(m, delegate_of(&items[which]), &options);
  }
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 6);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  for (int which = 1; which < 7; ++which) {
    CHECK_EQ(items[which].locks, 1);
    CHECK_EQ(items[which].calls, 1);
    CHECK_EQ(items[which].releases, which == 1 ? 1 : 0);
  }
  CHECK_EQ(items[0].unlocks, 6);
  for (int which = 1; which < 7; ++which) items[which].is_dead = true;
  /* only the delegate with a queue is counted, since its context is not found dead until the queue
   * runs */
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  for (int which = 1; which < 7; ++which) CHECK_EQ(items[which].releases, 1);
  CHECK_EQ(multicast_count(m), 0);
}

static int own_locks, own_releases;
static void *lock_own(void *context) {
  ++own_locks;
  return context;
}
static void release_own(void *context) {
  ++own_releases;
}

TEST_OF_ITEMS(contexts_with_functions_of_their_own_use_those) {
  multicast_add_options options = ADD_OPTIONS(.release = release_own, .lock = lock_own,
                                              .unlock = unlock_nothing);
  add_with(m, delegate_of(&items[1]), &options);
  options = ADD_OPTIONS(.release = release_own);
  add_with(m, delegate_of(&items[2]), &options);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK_EQ(own_locks, 1);
  CHECK(items[1].locks == 0 && items[2].locks == 1);
  CHECK_EQ(multicast_remove_all(m), 2);
  CHECK_EQ(own_releases, 2);
  CHECK(items[1].releases == 0 && items[2].releases == 0);
}

TEST_OF_ITEMS(contexts_of_one_kind_reach_visitors_as_strong_pointers) {
  multicast_token token = add(m, delegate_of(&items[1]));
  CHECK_EQ(multicast_visit(m, visit_all, NULL), 1);
  CHECK_EQ(multicast_token_visit(token, visit_all, NULL), 1);
  CHECK_EQ(multicast_token_invoke(token, 0, NULL, 0), 1);
  CHECK(items[1].locks == 3 && items[1].calls == 3);
  CHECK_EQ(items[0].unlocks, 3);
}

TEST_OF_ITEMS(contexts_are_released_after_an_add_that_succeeds_only) {
  multicast_delegate none = {NULL, NULL}, delegates[2];
  multicast_add_options options = MULTICAST_ADD_OPTIONS_INIT;
  multicast stale = m;
  none.context = &items[1];
  CHECK_ERROR(multicast_add(m, none, NULL, NULL), INVALID_ARGUMENT);
  options.queue.id = 77;
  CHECK_ERROR(multicast_add(m, delegate_of(&items[1]), &options, NULL), INVALID_HANDLE);
  delegates[0] = delegate_of(&items[2]);
  delegates[1] = none;
  CHECK_ERROR(multicast_add_many(m, delegates, 2, NULL, NULL), INVALID_ARGUMENT);
  CHECK_OK(multicast_destroy(m));
  CHECK_ERROR(multicast_add(stale, delegate_of(&items[1]), NULL, NULL), INVALID_HANDLE);
  CHECK(items[1].releases == 0 && items[2].releases == 0);
}

TEST(contexts_with_release_alone) {
  multicast_delegate delegates[2];
  multicast m = multicast_create_with(&CREATE_OPTIONS(.release_context = release_item));
  delegates[0] = delegate_of(&items[1]);
  delegates[1] = delegate_of(&items[2]);
  CHECK_OK(multicast_add_many(m, delegates, 2, NULL, NULL));
  CHECK_OK(multicast_remove_every(m, delegates[0]));
  CHECK_EQ(items[1].releases, 1);
  CHECK_OK(multicast_destroy(m));
  CHECK_EQ(items[2].releases, 1);
  CHECK(items[1].locks == 0 && items[2].locks == 0);
}

static multicast shared;
static void remove_in_lock(item *i) {
  i->in_lock = NULL;
  CHECK_EQ(multicast_remove_context(shared, i), 1);
}
static void destroy_in_lock(item *i) {
  i->in_lock = NULL;
  CHECK_STATUS(multicast_destroy(shared), MULTICAST_PENDING);
}

TEST(contexts_removed_while_locked_are_unlocked_and_not_called) {
  for (int which = 0; which < 2; ++which) {
    memset(items, 0, sizeof items);
    shared = create_for_items();
    items[1].in_lock = which == 0 ? remove_in_lock : destroy_in_lock;
    add(shared, delegate_of(&items[1]));
    CHECK_EQ(multicast_invoke(shared, 0, NULL, 0), 0);
    CHECK(items[1].calls == 0 && items[1].releases == 1);
    CHECK_EQ(items[0].unlocks, 1);
  }
}

TEST(contexts_dead_or_removed_while_locked_are_not_visited) {
  shared = create_for_items();
  items[1].is_dead = true;
  items[2].in_lock = remove_in_lock;
  add(shared, delegate_of(&items[1]));
  add(shared, delegate_of(&items[2]));
  add(shared, delegate_of(&items[3]));
  CHECK_EQ(multicast_visit(shared, visit_all, NULL), 1);
  CHECK(items[1].calls == 0 && items[1].releases == 1);
  CHECK(items[2].calls == 0 && items[2].releases == 1);
  CHECK(items[3].calls == 1 && items[3].releases == 0);
  CHECK_EQ(items[0].unlocks, 2);
  CHECK_EQ(multicast_count(shared), 1);
}

/* If a multicast has functions for the contexts, its delegates without functions of their own need
 * no more memory than the delegates of other multicasts. */
TEST(contexts_of_one_kind_take_no_memory) {
  use_test_allocator();
  multicast m = create_for_items();
  CHECK_OK(multicast_destroy(m));
  m = multicast_create();
  for (int i = 0; i < 3000; ++i) add(m, delegate_of(&items[1])); /* allocates enough slots */
  CHECK_OK(multicast_destroy(m));
  int64_t before = allocated_bytes;
  m = multicast_create();
  for (int i = 0; i < 1000; ++i) add(m, delegate_of(&items[1]));
  int64_t plain = allocated_bytes - before;
  CHECK_OK(multicast_destroy(m));
  m = create_for_items();
  before = allocated_bytes;
  for (int i = 0; i < 1000; ++i) add(m, delegate_of(&items[1]));
  int64_t locked = allocated_bytes - before;
  /* this multicast may belong to another stripe, whose unused slots make a small difference */
  CHECK(locked <= plain + INT64_C(32) * 1000);
  CHECK_EQ(multicast_remove_all(m), 1000);
  CHECK_EQ(items[1].releases, 1000);
}

/* ---- Multicasts that can only be visited ----------------------------------------------------- */

TEST(visit_only_refuses_invocations) {
  static cargo c;
  multicast m = multicast_create_with(&CREATE_OPTIONS(.flags = MULTICAST_VISIT_ONLY));
  multicast_token token = add(m, counter(&calls));
  CHECK_ERROR(multicast_invoke(m, 0, NULL, 0), STATE);
  multicast_invocation how = handing_over(&c);
  CHECK_ERROR(multicast_invoke_with(m, &how, NULL), STATE);
  CHECK_EQ(c.releases, 1);
  CHECK_ERROR(multicast_token_invoke(token, 0, NULL, 0), STATE);
  CHECK_EQ(calls, 0);
  CHECK_EQ(multicast_visit(m, visit_all, NULL), 1);
  CHECK_EQ(multicast_token_visit(token, visit_all, NULL), 1);
  CHECK_EQ(calls, 2);
}
