/* If contexts are weak, `lock` runs before each call and `unlock` after it. */

#include "harness.h"

typedef struct counted {
  int references; /* 0 if the object is dead */
  int locks, unlocks, releases, calls;
  multicast target;
  void (*inside)(struct counted *);
} counted;

static void *lock_counted(void *context) {
  counted *c = context;
  int references = LOAD(c->references);
  ADD(c->locks, 1);
  while (references > 0) {
    if (__atomic_compare_exchange_n(&c->references, &references, references + 1, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return c;
  }
  return NULL;
}

static void unlock_counted(void *strong) {
  counted *c = strong;
  ADD(c->unlocks, 1);
  ADD(c->references, -1);
}

static void release_counted(void *context) { ADD(((counted *)context)->releases, 1); }

FUNCTION(call_counted, counted *c) {
  CHECK(LOAD(c->references) >= 1); /* the lock around this call holds a reference */
  ADD(c->calls, 1);
  if (c->inside != NULL) c->inside(c);
}

static multicast_token add_counted_with(multicast m, counted *c, multicast_add_options options) {
  options.release = release_counted;
  options.unlock = unlock_counted;
  if (options.lock == NULL) options.lock = lock_counted;
  c->target = m;
  return add_with(m, DELEGATE(call_counted, c), &options);
}

static multicast_token add_counted(multicast m, counted *c, uint32_t flags) {
  multicast_add_options options = ADD_OPTIONS(.flags = flags);
  return add_counted_with(m, c, options);
}

TEST_OF_MULTICAST(weak_context_is_locked_for_each_call_and_unlocked_after) {
  counted c = {1, 0, 0, 0, 0, {0}, NULL};
  add_counted(m, &c, 0);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(c.locks == 2 && c.unlocks == 2 && c.calls == 2 && c.references == 1);
  CHECK_OK(multicast_destroy(m));
  CHECK_EQ(c.releases, 1);
}

TEST_OF_MULTICAST(weak_context_that_is_dead_is_removed_there_and_then) {
  counted c = {0, 0, 0, 0, 0, {0}, NULL};
  multicast_token token = add_counted(m, &c, 0);
  add(m, counter(&calls));
  CHECK_EQ(multicast_count(m), 2);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1); /* the dead delegate is not counted */
  CHECK(c.locks == 1 && c.unlocks == 0 && c.calls == 0 && c.releases == 1);
  CHECK(!multicast_token_is_valid(token));
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(c.locks, 1);
  CHECK_EQ(c.releases, 1);
}

static char other_object;
static void *lock_as_another(void *context) {
  return &other_object;
}
static void *unlocked;
static void unlock_noting(void *strong) { unlocked = strong; }
static void *received;
static void receive(void *context, uint32_t event, const void *payload, size_t size) {
  received = context;
}
static bool receive_visit(void *context, const multicast_delegate *delegate) {
  *(void **)context = delegate->context;
  return true;
}

TEST_OF_MULTICAST(weak_delegate_gets_the_strong_pointer_as_its_context) {
  void *visited = NULL;
  multicast_delegate d = {receive, &calls};
  add_with(m, d, &ADD_OPTIONS(.lock = lock_as_another, .unlock = unlock_noting));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(received == &other_object);
  CHECK(unlocked == &other_object);
  CHECK_EQ(multicast_visit(m, receive_visit, &visited), 1);
  CHECK(visited == &other_object);
  CHECK(multicast_contains(m, d)); /* searching compares the weak context */
}

TEST_OF_MULTICAST(weak_lock_without_unlock_or_the_reverse_is_invalid_argument) {
  counted c = {1, 0, 0, 0, 0, {0}, NULL};
  multicast_delegate d = {call_counted, &c};
  multicast_add_options options = ADD_OPTIONS(.release = release_counted, .lock = lock_counted);
  CHECK_ERROR(multicast_add(m, d, &options, NULL), INVALID_ARGUMENT);
  CHECK_EQ(c.releases, 1);
  options.lock = NULL;
  options.unlock = unlock_counted;
  CHECK_ERROR(multicast_add(m, d, &options, NULL), INVALID_ARGUMENT);
  CHECK_EQ(c.releases, 2);
  CHECK_EQ(multicast_count(m), 0);
}

static void remove_itself(counted *c) {
  CHECK_STATUS(multicast_token_remove(multicast_token_current()), MULTICAST_PENDING);
}
static void destroy_its_multicast(counted *c) {
  CHECK_STATUS(multicast_destroy(c->target), MULTICAST_PENDING);
}
static void nest(counted *c) {
  if (LOAD(c->calls) < 5) CHECK_EQ(multicast_invoke(c->target, 0, NULL, 0), 1);
}

static void unlocks_after(void (*inside)(counted *), int calls_made, int releases) {
  counted c = {1, 0, 0, 0, 0, {0}, NULL};
  multicast m = multicast_create();
  c.inside = inside;
  add_counted(m, &c, 0);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(c.calls == calls_made && c.locks == calls_made && c.unlocks == calls_made);
  CHECK(c.releases == releases && c.references == 1);
}

TEST(weak_unlock_follows_a_call_that_removed_itself) { unlocks_after(remove_itself, 1, 1); }
TEST(weak_unlock_follows_a_call_that_destroyed_the_multicast) {
  unlocks_after(destroy_its_multicast, 1, 1);
}
TEST(weak_unlock_follows_each_of_nested_calls) { unlocks_after(nest, 5, 0); }

TEST_OF_MULTICAST(weak_and_once_is_locked_called_and_released_once) {
  counted c = {1, 0, 0, 0, 0, {0}, NULL};
  add_counted(m, &c, MULTICAST_ONCE);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK(c.calls == 1 && c.locks == 1 && c.unlocks == 1 && c.releases == 1);
}

static multicast_token locked_token;
static void *lock_removing(void *context) {
  multicast_token_remove(locked_token);
  return lock_counted(context);
}

TEST_OF_MULTICAST(weak_delegate_removed_by_its_lock_is_not_called) {
  counted c = {1, 0, 0, 0, 0, {0}, NULL};
  multicast_add_options options = ADD_OPTIONS(.lock = lock_removing);
  locked_token = add_counted_with(m, &c, options);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK(c.calls == 0 && c.locks == 1 && c.unlocks == 1 && c.releases == 1);
}

THREAD(invoke_counted, counted *c) {
  while (LOAD(c->releases) == 0) CHECK(multicast_invoke(c->target, 0, NULL, 0) >= 0);
}

TEST(weak_lock_racing_the_last_reference) {
  enum { ROUNDS = 100 };
  for (int round = 0; round < ROUNDS; ++round) {
    counted *c = calloc(1, sizeof *c);
    multicast m = multicast_create();
    pthread_t threads[2];
    CHECK(c != NULL);
    c->references = 1;
    add_counted(m, c, 0);
    for (int i = 0; i < 2; ++i) threads[i] = start_thread(invoke_counted, c);
    while (LOAD(c->calls) < 10) pause_ms(0);
    /* Drop the last reference. The next `lock` fails, which makes the library remove the
     * registration. */
    ADD(c->references, -1);
    for (int i = 0; i < 2; ++i) join_thread(threads[i]);
    CHECK_EQ(c->releases, 1);
    CHECK_EQ(c->references, 0);
    CHECK_EQ(multicast_count(m), 0);
    CHECK_OK(multicast_destroy(m));
    free(c);
  }
}

TEST(weak_under_a_lifetime_is_released_once_whichever_ends) {
  for (int first = 0; first < 2; ++first) {
    counted c = {1, 0, 0, 0, 0, {0}, NULL};
    multicast m = multicast_create();
    multicast_lifetime l = multicast_lifetime_create();
    add_counted_with(m, &c, ADD_OPTIONS(.lifetime = l));
    if (first == 0) {
      c.references = 0;
      CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
      CHECK_EQ(c.releases, 1);
      CHECK_EQ(multicast_lifetime_count(l), 0);
    }
    CHECK_OK(multicast_lifetime_end(l));
    CHECK_EQ(c.releases, 1);
    CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  }
}
