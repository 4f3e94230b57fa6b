/* A delegate with a dead context stays registered until a call or multicast_prune() finds the
 * context dead. */

#include "queues.h"

typedef struct subject subject;
struct subject {
  bool is_dead;
  int locks, unlocks, releases, calls;
  multicast_token token;
  void (*in_lock)(subject *);
};

static void *lock_subject(void *context) {
  subject *s = context;
  ++s->locks;
  if (s->in_lock != NULL) s->in_lock(s);
  return s->is_dead ? NULL : s;
}
static void unlock_subject(void *strong) { ++((subject *)strong)->unlocks; }
static void release_subject(void *context) { ++((subject *)context)->releases; }
static void call_subject(void *context, uint32_t event, const void *payload, size_t size) {
  ++((subject *)context)->calls;
}

static multicast_delegate delegate_of(subject *s) {
  return (multicast_delegate){call_subject, s};
}

static void add_weak_under(multicast m, subject *s, uint32_t flags, multicast_queue q,
                           multicast_lifetime l) {
  multicast_add_options options = ADD_OPTIONS(.release = release_subject, .lock = lock_subject,
                                              .unlock = unlock_subject, .flags = flags, .queue = q,
                                              .lifetime = l);
  memset(s, 0, sizeof *s);
  s->token = add_with(m, delegate_of(s), &options);
}

static void add_weak(multicast m, subject *s, uint32_t flags, multicast_queue q) {
  multicast_lifetime none = MULTICAST_NONE;
  add_weak_under(m, s, flags, q, none);
}

static const multicast_queue no_queue = MULTICAST_NONE;

TEST_OF_MULTICAST(weak_delegates_that_are_dead_count_until_found) {
  multicast_delegate listed[2];
  multicast_lifetime l = multicast_lifetime_create();
  subject s;
  add_weak_under(m, &s, 0, no_queue, l);
  s.is_dead = true;
  CHECK_EQ(multicast_lifetime_count(l), 1);
  CHECK_EQ(multicast_count(m), 1);
  CHECK(multicast_contains(m, delegate_of(&s)));
  CHECK_EQ(multicast_list(m, listed, 2), 1);
  CHECK(listed[0].context == &s);
  CHECK(multicast_token_is_valid(s.token));
  CHECK_EQ(s.locks, 0);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(multicast_lifetime_count(l), 0);
  CHECK(!multicast_contains(m, delegate_of(&s)));
  CHECK_EQ(multicast_list(m, listed, 2), 0);
  CHECK_EQ(s.releases, 1);
  add_weak(m, &s, 0, no_queue);
  s.is_dead = true;
  CHECK_OK(multicast_remove_at(m, 0));
  CHECK_EQ(s.locks, 0);
  CHECK_EQ(s.releases, 1);
}

TEST_OF_MULTICAST(prune_removes_those_that_are_dead_and_calls_none) {
  enum { COUNT = 20 };
  subject s[COUNT];
  int plain = 0;
  for (int i = 0; i < COUNT; ++i) {
    add_weak(m, &s[i], 0, no_queue);
    s[i].is_dead = i % 3 == 0;
    if (i % 5 == 0) add(m, counter(&plain));
  }
  CHECK_EQ(multicast_prune(m), 7);
  for (int i = 0; i < COUNT; ++i) {
    CHECK_EQ(s[i].locks, 1);
    CHECK_EQ(s[i].unlocks, s[i].is_dead ? 0 : 1);
    CHECK_EQ(s[i].releases, s[i].is_dead ? 1 : 0);
    CHECK_EQ(multicast_token_is_valid(s[i].token), !s[i].is_dead);
    CHECK_EQ(s[i].calls, 0);
  }
  CHECK_EQ(plain, 0);
  CHECK_EQ(multicast_count(m), COUNT - 7 + 4);
  CHECK_EQ(multicast_prune(m), 0);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), COUNT - 7 + 4);
}

TEST_OF_MULTICAST(prune_removes_paused_ones) {
  subject s[2];
  for (int i = 0; i < 2; ++i) {
    add_weak(m, &s[i], 0, no_queue);
    CHECK_OK(multicast_token_pause(s[i].token));
  }
  s[0].is_dead = true;
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK_EQ(s[0].locks, 0);
  CHECK_EQ(multicast_prune(m), 1);
  CHECK_EQ(s[0].releases, 1);
  CHECK_EQ(s[1].unlocks, 1);
  CHECK_OK(multicast_token_resume(s[1].token)); /* pruning has not ended the pause */
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
}

TEST_OF_MULTICAST(prune_removes_those_that_do_not_want_any_event) {
  subject s = {.is_dead = true};
  multicast_add_options options = ADD_OPTIONS(.release = release_subject, .lock = lock_subject,
                                              .unlock = unlock_subject,
                                              .events = UINT64_C(1) << 40);
  add_with(m, delegate_of(&s), &options);
  CHECK_EQ(multicast_prune(m), 1);
  CHECK_EQ(s.releases, 1);
}

TEST_OF_QUEUE(prune_removes_queued_ones_and_cancels_their_calls) {
  subject s[2];
  add_weak(m, &s[0], 0, q);
  add_weak(m, &s[1], MULTICAST_LATEST, q);
  CHECK_EQ(multicast_invoke(m, 0, "payload", 8), 2);
  s[0].is_dead = true;
  CHECK_EQ(multicast_prune(m), 1);
  CHECK_EQ(s[0].releases, 1);
  CHECK_TEXT(figures(q), "pending 1, queued 2, cancelled 1");
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(s[0].calls == 0 && s[1].calls == 1);
}

TEST_OF_QUEUE(prune_uses_up_no_once_delegate) {
  subject s[4];
  for (int i = 0; i < 4; ++i) {
    add_weak(m, &s[i], MULTICAST_ONCE, i < 2 ? no_queue : q);
    s[i].is_dead = i % 2 == 1;
  }
  CHECK_EQ(multicast_prune(m), 2);
  CHECK_EQ(multicast_count(m), 2);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(s[0].calls == 1 && s[2].calls == 1);
  for (int i = 0; i < 4; ++i) CHECK_EQ(s[i].releases, 1);
  CHECK_EQ(multicast_count(m), 0);
}

TEST(prune_of_nothing_is_zero_of_no_multicast_invalid_handle) {
  multicast m = multicast_create(), none = MULTICAST_NONE;
  int n = 0;
  CHECK_EQ(multicast_prune(m), 0);
  add(m, counter(&n));
  CHECK_EQ(multicast_prune(m), 0);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_OK(multicast_destroy(m));
  CHECK_ERROR(multicast_prune(m), INVALID_HANDLE);
  CHECK_ERROR(multicast_prune(none), INVALID_HANDLE);
}

/* ---- Using the library inside `lock` --------------------------------------------------------- */

static multicast pruned;

static void remove_self(subject *s) {
  CHECK(multicast_token_remove(s->token) >= MULTICAST_OK);
}
static void destroy_pruned(subject *s) {
  CHECK(multicast_destroy(pruned) >= MULTICAST_OK);
}
static void prune_again(subject *s) {
  s->in_lock = NULL;
  multicast_prune(pruned);
}

static void prune_with(void (*in_lock)(subject *), bool is_dead, int64_t removed, int left) {
  subject s[3];
  int releases = 0;
  pruned = multicast_create();
  for (int i = 0; i < 3; ++i) add_weak(pruned, &s[i], 0, no_queue);
  s[0].in_lock = in_lock;
  s[0].is_dead = is_dead;
  CHECK_EQ(multicast_prune(pruned), removed);
  for (int i = 0; i < 3; ++i) {
    CHECK(s[i].releases <= 1);
    releases += s[i].releases;
    CHECK_EQ(s[i].locks - s[i].unlocks, i == 0 && is_dead ? s[i].locks : 0);
  }
  CHECK_EQ(releases, 3 - left);
  if (left > 0) CHECK_EQ(multicast_count(pruned), left);
}

TEST(prune_does_not_count_what_lock_has_removed) {
  prune_with(remove_self, false, 0, 2);
  prune_with(remove_self, true, 0, 2);
}
TEST(prune_ends_where_lock_destroys_the_multicast) {
  prune_with(destroy_pruned, false, 0, 0);
  prune_with(destroy_pruned, true, 0, 0);
}
TEST(prune_inside_a_lock_of_a_prune_removes_and_counts_each_once) {
  prune_with(prune_again, false, 0, 3);
  prune_with(prune_again, true, 0, 2);
}

/* ---- Inside calls ---------------------------------------------------------------------------- */

typedef struct own {
  bool is_dead;
  int releases, releases_inside;
  int64_t pruned;
  multicast target;
} own;

static void *lock_own(void *context) { return ((own *)context)->is_dead ? NULL : context; }
static void release_own(void *context) { ++((own *)context)->releases; }
FUNCTION(die_and_prune, own *o) {
  o->is_dead = true;
  o->pruned = multicast_prune(o->target);
  o->releases_inside = o->releases;
}

TEST(prune_inside_call_of_one_that_died_releases_it_after_call) {
  own o = {false, 0, 0, -1, MULTICAST_NONE};
  multicast_delegate d = {die_and_prune, &o};
  o.target = multicast_create();
  add_with(o.target, d, &ADD_OPTIONS(.release = release_own, .lock = lock_own,
                                     .unlock = unlock_nothing));
  CHECK_EQ(multicast_invoke(o.target, 0, NULL, 0), 1);
  CHECK_EQ(o.pruned, 1);
  CHECK_EQ(o.releases_inside, 0);
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(multicast_count(o.target), 0);
}

/* ---- Threads --------------------------------------------------------------------------------- */

typedef struct shared_subject {
  int is_dead, locks, unlocks, releases, calls;
} shared_subject;

static void *lock_shared(void *context) {
  shared_subject *s = context;
  CHECK_EQ(LOAD(s->releases), 0);
  if (LOAD(s->is_dead)) return NULL;
  ADD(s->locks, 1);
  return s;
}
static void unlock_shared(void *strong) { ADD(((shared_subject *)strong)->unlocks, 1); }
static void release_shared(void *context) { ADD(((shared_subject *)context)->releases, 1); }
static void call_shared(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_EQ(LOAD(((shared_subject *)context)->releases), 0);
}

static int64_t found;
static multicast shared_target;
static bool is_over;

THREAD(prune_all_the_time, void *unused) {
  while (!LOAD(is_over)) ADD(found, multicast_prune(shared_target));
}

TEST(prune_on_several_threads_finds_each_dead_delegate_once) {
  enum { ROUNDS = 2000 };
  pthread_t threads[3];
  shared_target = multicast_create();
  for (int i = 0; i < 3; ++i) threads[i] = start_thread(prune_all_the_time, NULL);
  for (int i = 0; i < ROUNDS; ++i) {
    static shared_subject fresh;
    shared_subject *s = malloc(sizeof *s);
    CHECK(s != NULL);
    *s = fresh;
    multicast_delegate d = {call_shared, s};
    add_with(shared_target, d, &ADD_OPTIONS(.release = release_shared, .lock = lock_shared,
                                            .unlock = unlock_shared));
    STORE(s->is_dead, 1);
    EVENTUALLY(LOAD(s->releases) == 1);
    CHECK_EQ(LOAD(s->locks), LOAD(s->unlocks));
    free(s);
  }
  STORE(is_over, true);
  for (int i = 0; i < 3; ++i) join_thread(threads[i]);
  CHECK_EQ(found, ROUNDS);
  CHECK_EQ(multicast_count(shared_target), 0);
}
