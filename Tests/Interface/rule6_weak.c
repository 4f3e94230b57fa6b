/* Rule 6: lifetimes, and contexts that count references. */

#include "harness.h"

#include <time.h>

static int calls;

static multicast_options under(multicast_lifetime lifetime) {
  multicast_options options = multicast_options_default();
  options.lifetime = lifetime;
  return options;
}

/* ---- Lifetimes ------------------------------------------------------------------------------- */

TEST(lifetime_end_removes_its_registrations_from_every_multicast) {
  enum { COUNT = 5 };
  multicast targets[COUNT];
  multicast_lifetime l = multicast_lifetime_create();
  multicast_options options = under(l);
  int releases = 0, i;
  options.release = count_release;
  CHECK(l.id != 0);
  for (i = 0; i < COUNT; ++i) {
    targets[i] = multicast_create();
    add_with(targets[i], counter(&releases), &options);
    add_with(targets[i], counter(&releases), &options);
    add(targets[i], counter(&calls));
  }
  CHECK_EQ(multicast_lifetime_count(l), 2 * COUNT);
  CHECK_OK(multicast_lifetime_end(l));
  CHECK_EQ(releases, 2 * COUNT);
  for (i = 0; i < COUNT; ++i) {
    CHECK_EQ(multicast_count(targets[i]), 1);
    CHECK(!multicast_contains(targets[i], counter(&releases)));
    CHECK_EQ(multicast_invoke(targets[i], 0, NULL, 0), 1);
  }
  CHECK_EQ(releases, 2 * COUNT);
}

TEST(lifetime_end_frees_without_any_further_invocation) {
  int64_t before = 0;
  int round, i;
  multicast m;
  use_test_allocator();
  m = multicast_create();
  multicast_invoke(m, 0, NULL, 0);
  for (round = 0; round < 100; ++round) {
    multicast_lifetime l = multicast_lifetime_create();
    multicast_options options = under(l);
    for (i = 0; i < 50; ++i) add_with(m, counter(&calls), &options);
    CHECK_OK(multicast_lifetime_end(l));
    CHECK_EQ(multicast_count(m), 0);
    if (round == 10) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
  CHECK_EQ(calls, 0);
}

TEST(lifetime_end_twice_is_invalid_handle) {
  multicast_lifetime l = multicast_lifetime_create();
  CHECK_EQ(multicast_lifetime_count(l), 0);
  CHECK_OK(multicast_lifetime_end(l));
  CHECK_STATUS(multicast_lifetime_end(l), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_lifetime_count(l), MULTICAST_ERROR_INVALID_HANDLE);
}

TEST(lifetime_handles_of_any_other_value_are_invalid) {
  multicast m = multicast_create();
  multicast_token token = add(m, counter(&calls));
  multicast_lifetime l = multicast_lifetime_create(), other;
  int bit;
  multicast as_multicast;
  for (bit = 0; bit < 64; ++bit) {
    other.id = l.id ^ (UINT64_C(1) << bit);
    CHECK_STATUS(multicast_lifetime_end(other), MULTICAST_ERROR_INVALID_HANDLE);
    CHECK_STATUS(multicast_lifetime_count(other), MULTICAST_ERROR_INVALID_HANDLE);
  }
  other.id = 0;
  CHECK_STATUS(multicast_lifetime_end(other), MULTICAST_ERROR_INVALID_HANDLE);
  other.id = m.id;
  CHECK_STATUS(multicast_lifetime_end(other), MULTICAST_ERROR_INVALID_HANDLE);
  other.id = token.id;
  CHECK_STATUS(multicast_lifetime_end(other), MULTICAST_ERROR_INVALID_HANDLE);
  as_multicast.id = l.id;
  CHECK_STATUS(multicast_count(as_multicast), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(multicast_lifetime_count(l), 0);
}

TEST(lifetime_that_has_ended_takes_no_more) {
  multicast m = multicast_create();
  multicast_lifetime l = multicast_lifetime_create();
  multicast_options options = under(l);
  multicast_token token = {5};
  int releases = 0;
  CHECK_OK(multicast_lifetime_end(l));
  options.release = count_release;
  CHECK_STATUS(multicast_add(m, counter(&releases), &options, &token),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(releases, 1);
  CHECK_EQ(token.id, 0);
  options.lifetime.id = m.id; /* another kind */
  CHECK_STATUS(multicast_add(m, counter(&releases), &options, NULL),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(releases, 2);
  CHECK_EQ(multicast_count(m), 0);
}

TEST(lifetime_count_follows_every_way_of_leaving) {
  multicast m = multicast_create(), gone = multicast_create();
  multicast_lifetime l = multicast_lifetime_create();
  multicast_options options = under(l);
  multicast_token t[4];
  int i;
  for (i = 0; i < 4; ++i) t[i] = add_with(m, counter(&calls), &options);
  add_with(gone, counter(&calls), &options);
  CHECK_EQ(multicast_lifetime_count(l), 5);
  CHECK_OK(multicast_token_remove(t[1]));
  CHECK_EQ(multicast_lifetime_count(l), 4);
  CHECK_OK(multicast_token_pause(t[0]));
  CHECK_EQ(multicast_lifetime_count(l), 4);
  CHECK_OK(multicast_destroy(gone));
  CHECK_EQ(multicast_lifetime_count(l), 3);
  options.flags = MULTICAST_ONCE;
  add_with(m, counter(&calls), &options);
  multicast_invoke(m, 0, NULL, 0);
  CHECK_EQ(multicast_lifetime_count(l), 3);
  options.flags = MULTICAST_UNIQUE; /* replaces the three that are left */
  add_with(m, counter(&calls), &options);
  CHECK_EQ(multicast_lifetime_count(l), 1);
  CHECK_EQ(multicast_remove_all(m), 1);
  CHECK_EQ(multicast_lifetime_count(l), 0);
  CHECK_OK(multicast_lifetime_end(l));
}

TEST(lifetime_end_leaves_those_of_other_lifetimes) {
  multicast m = multicast_create();
  multicast_lifetime a = multicast_lifetime_create(), b = multicast_lifetime_create();
  multicast_options options = under(a);
  int i;
  for (i = 0; i < 20; ++i) {
    options.lifetime = i % 2 ? a : b;
    options.priority = i % 3;
    add_with(m, counter(&calls), &options);
  }
  CHECK_OK(multicast_lifetime_end(a));
  CHECK_EQ(multicast_count(m), 10);
  CHECK_EQ(multicast_lifetime_count(b), 10);
  CHECK_OK(multicast_lifetime_end(b));
  CHECK_EQ(multicast_count(m), 0);
}

TEST(lifetime_end_during_invoke_keeps_the_rest_from_being_called) {
  blocker b = BLOCKER_INIT;
  multicast m = multicast_create();
  multicast_lifetime l = multicast_lifetime_create();
  multicast_options options = under(l);
  invoker i;
  add(m, blocking(&b));
  add_with(m, counter(&calls), &options);
  invoke_in_background(&i, m);
  gate_wait(&b.entered);
  CHECK_OK(multicast_lifetime_end(l)); /* and does not wait for the other delegate */
  CHECK(!LOAD(b.has_left));
  gate_open(&b.let_go);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(LOAD(calls), 0);
}

typedef struct ender {
  multicast_lifetime lifetime;
  blocker *b;
  gate returned;
  int64_t result;
  bool had_left;
} ender;

static void *end_in_thread(void *argument) {
  ender *e = argument;
  e->result = multicast_lifetime_end(e->lifetime);
  e->had_left = LOAD(e->b->has_left);
  gate_open(&e->returned);
  return NULL;
}

static void end_waits(bool remove_before) {
  static const gate shut = GATE_INIT;
  blocker b = BLOCKER_INIT;
  multicast m = multicast_create();
  multicast_lifetime l = multicast_lifetime_create();
  multicast_options options = under(l);
  multicast_token token;
  ender e;
  invoker i;
  pthread_t thread;
  options.release = release_blocker;
  token = add_with(m, blocking(&b), &options);
  invoke_in_background(&i, m);
  gate_wait(&b.entered);
  if (remove_before)
    CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  e.lifetime = l;
  e.b = &b;
  e.returned = shut;
  thread = start_thread(end_in_thread, &e);
  CHECK(!gate_opens_within(&e.returned, A_WHILE_MS));
  CHECK_EQ(LOAD(b.releases), 0);
  gate_open(&b.let_go);
  join_thread(thread);
  CHECK_OK(e.result);
  CHECK(e.had_left);
  invoke_finished(&i);
  CHECK_EQ(LOAD(b.releases), 1);
}

TEST(lifetime_end_waits_for_running_calls) { end_waits(false); }
TEST(lifetime_end_waits_for_running_calls_of_what_was_removed_before) { end_waits(true); }

typedef struct own {
  multicast_lifetime lifetime;
  int64_t result;
  int releases, releases_inside;
} own;

static void end_own(void *context, uint32_t event, const void *payload, size_t size) {
  own *o = context;
  (void)event;
  (void)payload;
  (void)size;
  o->result = multicast_lifetime_end(o->lifetime);
  o->releases_inside = o->releases;
}

static void release_own(void *context) { ++((own *)context)->releases; }

TEST(lifetime_end_in_a_call_of_its_own_is_pending_until_the_last_release) {
  own o = {{0}, 0, 0, 0};
  multicast m = multicast_create(), other = multicast_create();
  multicast_options options;
  multicast_delegate d;
  o.lifetime = multicast_lifetime_create();
  options = under(o.lifetime);
  options.release = release_own;
  d.function = end_own;
  d.context = &o;
  add_with(m, d, &options);
  d.function = count_call; /* never called */
  add_with(other, d, &options);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_STATUS(o.result, MULTICAST_PENDING);
  CHECK_EQ(o.releases_inside, 1); /* the other's */
  CHECK_EQ(o.releases, 2);
  CHECK_STATUS(multicast_lifetime_end(o.lifetime), MULTICAST_ERROR_INVALID_HANDLE);
}

static own crossed[2];
static gate both_inside = GATE_INIT;
static int inside;

static void end_of_the_other(void *context, uint32_t event, const void *payload, size_t size) {
  own *o = context;
  (void)event;
  (void)payload;
  (void)size;
  if (ADD(inside, 1) == 2) gate_open(&both_inside);
  gate_wait(&both_inside);
  o->result = multicast_lifetime_end(crossed[o == &crossed[0]].lifetime);
}

static void release_crossed(void *context) { ADD(((own *)context)->releases, 1); }

TEST(lifetime_ends_that_wait_for_each_other_do_not_hang) {
  invoker invokers[2];
  multicast m[2];
  int i;
  for (i = 0; i < 2; ++i) {
    multicast_options options;
    multicast_delegate d;
    crossed[i].lifetime = multicast_lifetime_create();
    options = under(crossed[i].lifetime);
    options.release = release_crossed;
    d.function = end_of_the_other;
    d.context = &crossed[i];
    m[i] = multicast_create();
    add_with(m[i], d, &options);
  }
  for (i = 0; i < 2; ++i) invoke_in_background(&invokers[i], m[i]);
  for (i = 0; i < 2; ++i) CHECK_EQ(invoke_finished(&invokers[i]), 1);
  CHECK(crossed[0].result == MULTICAST_PENDING || crossed[1].result == MULTICAST_PENDING);
  for (i = 0; i < 2; ++i) {
    CHECK(crossed[i].result == MULTICAST_OK || crossed[i].result == MULTICAST_PENDING);
    CHECK_EQ(LOAD(crossed[i].releases), 1);
  }
}

static gate release_begun = GATE_INIT, release_let_go = GATE_INIT;
static bool release_has_returned;

static void release_slowly(void *context) {
  (void)context;
  gate_open(&release_begun);
  gate_wait(&release_let_go);
  STORE(release_has_returned, true);
}

static void end_waits_for_release(uint32_t flags) {
  /* The release of a delegate that is gone already runs on the thread that called it. */
  blocker b = BLOCKER_INIT;
  static const gate shut = GATE_INIT;
  multicast m = multicast_create();
  multicast_lifetime l = multicast_lifetime_create();
  multicast_options options = under(l);
  multicast_token token;
  ender e;
  invoker i;
  pthread_t thread;
  options.release = release_slowly;
  options.flags = flags;
  token = add_with(m, blocking(&b), &options);
  invoke_in_background(&i, m);
  gate_wait(&b.entered);
  if (flags == 0) CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  gate_open(&b.let_go);
  gate_wait(&release_begun);
  CHECK_EQ(multicast_lifetime_count(l), 0);
  e.lifetime = l;
  e.b = &b;
  e.returned = shut;
  thread = start_thread(end_in_thread, &e);
  CHECK(!gate_opens_within(&e.returned, A_WHILE_MS));
  gate_open(&release_let_go);
  join_thread(thread);
  CHECK_OK(e.result);
  CHECK(LOAD(release_has_returned));
  invoke_finished(&i);
}

TEST(lifetime_end_waits_for_a_running_release) { end_waits_for_release(0); }
TEST(lifetime_end_waits_for_the_release_of_one_called_once) {
  end_waits_for_release(MULTICAST_ONCE);
}

static multicast_lifetime ended_in_release;
static int64_t result_in_release;

static void end_in_release(void *context) {
  (void)context;
  result_in_release = multicast_lifetime_end(ended_in_release);
}

TEST(lifetime_end_in_a_release_of_its_own_is_pending) {
  multicast m = multicast_create();
  multicast_options options;
  ended_in_release = multicast_lifetime_create();
  options = under(ended_in_release);
  options.release = end_in_release;
  CHECK_OK(multicast_token_remove(add_with(m, counter(&calls), &options)));
  CHECK_STATUS(result_in_release, MULTICAST_PENDING);
  CHECK_STATUS(multicast_lifetime_count(ended_in_release), MULTICAST_ERROR_INVALID_HANDLE);
}

/* ---- Many, and at once ----------------------------------------------------------------------- */

static bool is_over;
static multicast busy[16];

static void *invoke_busy(void *unused) {
  int i;
  (void)unused;
  while (!LOAD(is_over)) {
    for (i = 0; i < 16; ++i) CHECK(multicast_invoke(busy[i], 0, NULL, 0) >= 0);
  }
  return NULL;
}

typedef struct member {
  uint32_t alive; /* plain: a call after the end is a race that the thread sanitizer sees */
} member;

static void touch(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event;
  (void)payload;
  (void)size;
  CHECK_EQ(((member *)context)->alive, 0xA11CE);
}

static void *add_and_remove_busy(void *unused) {
  int i;
  (void)unused;
  for (i = 0; !LOAD(is_over); ++i) {
    member *m = malloc(sizeof *m);
    multicast_delegate d;
    CHECK(m != NULL);
    m->alive = 0xA11CE;
    d.function = touch;
    d.context = m;
    add(busy[i % 16], d);
    CHECK_OK(multicast_remove(busy[i % 16], d));
    m->alive = 0;
    free(m);
  }
  return NULL;
}

static void *remove_some(void *unused) {
  int i;
  (void)unused;
  for (i = 0; !LOAD(is_over); ++i) multicast_remove_at(busy[i % 16], 1);
  return NULL;
}

TEST(lifetime_end_while_threads_invoke_add_and_remove) {
  enum { ROUNDS = 150, EACH = 64 };
  pthread_t threads[4];
  int i, round;
  for (i = 0; i < 16; ++i) busy[i] = multicast_create();
  threads[0] = start_thread(invoke_busy, NULL);
  threads[1] = start_thread(invoke_busy, NULL);
  threads[2] = start_thread(invoke_busy, NULL);
  threads[3] = start_thread(add_and_remove_busy, NULL);
  for (round = 0; round < ROUNDS; ++round) {
    member *members = malloc(EACH * sizeof *members);
    multicast_lifetime l = multicast_lifetime_create();
    multicast_options options = under(l);
    CHECK(members != NULL);
    for (i = 0; i < EACH; ++i) {
      multicast_delegate d;
      members[i].alive = 0xA11CE;
      d.function = touch;
      d.context = &members[i];
      options.priority = i % 3;
      add_with(busy[i % 16], d, &options);
    }
    CHECK_EQ(multicast_lifetime_count(l), EACH);
    CHECK_OK(multicast_lifetime_end(l));
    for (i = 0; i < EACH; ++i) members[i].alive = 0;
    free(members);
  }
  STORE(is_over, true);
  for (i = 0; i < 4; ++i) join_thread(threads[i]);
}

TEST(lifetime_end_while_others_remove_the_same_registrations) {
  enum { ROUNDS = 200, EACH = 64 };
  static int releases[ROUNDS][EACH];
  pthread_t remover, invoking;
  int i, round;
  for (i = 0; i < 16; ++i) {
    busy[i] = multicast_create();
    add(busy[i], counter(&calls));
  }
  remover = start_thread(remove_some, NULL);
  invoking = start_thread(invoke_busy, NULL);
  for (round = 0; round < ROUNDS; ++round) {
    multicast_lifetime l = multicast_lifetime_create();
    multicast_options options = under(l);
    multicast_delegate d;
    options.release = count_release;
    d.function = count_call;
    for (i = 0; i < EACH; ++i) {
      d.context = &releases[round][i];
      options.events = 2; /* never called: the int counts releases alone */
      add_with(busy[i % 16], d, &options);
    }
    CHECK_OK(multicast_lifetime_end(l));
    for (i = 0; i < 16; ++i) CHECK(multicast_count(busy[i]) <= 1);
  }
  STORE(is_over, true);
  join_thread(remover);
  join_thread(invoking);
  for (round = 0; round < ROUNDS; ++round) {
    for (i = 0; i < EACH; ++i) CHECK_EQ(LOAD(releases[round][i]), 1);
  }
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

TEST(lifetime_end_of_100000_registrations_in_1000_multicasts_while_others_invoke) {
  enum { TARGETS = 1000, EACH = 100 };
  static multicast targets[TARGETS];
  static int never;
  pthread_t threads[2];
  multicast_lifetime l = multicast_lifetime_create();
  multicast_options options = under(l);
  double start;
  int i, k;
  for (i = 0; i < TARGETS; ++i) targets[i] = multicast_create();
  for (i = 0; i < 16; ++i) busy[i] = targets[(size_t)i * 60];
  for (i = 0; i < 2; ++i) threads[i] = start_thread(invoke_busy, NULL);
  for (k = 0; k < EACH; ++k) {
    for (i = 0; i < TARGETS; ++i) add_with(targets[i], counter(&never), &options);
  }
  CHECK_EQ(multicast_lifetime_count(l), TARGETS * EACH);
  start = seconds();
  CHECK_OK(multicast_lifetime_end(l));
  printf("ended %d registrations in %.1f ms\n", TARGETS * EACH, (seconds() - start) * 1e3);
  for (i = 0; i < TARGETS; ++i) CHECK_EQ(multicast_count(targets[i]), 0);
  STORE(is_over, true);
  for (i = 0; i < 2; ++i) join_thread(threads[i]);
}

TEST(lifetimes_by_the_million_take_no_more_memory) {
  enum { ROUNDS = 1000000 };
  int64_t before = 0;
  int i;
  multicast m;
  use_test_allocator();
  m = multicast_create();
  for (i = 0; i < ROUNDS; ++i) {
    multicast_lifetime l = multicast_lifetime_create();
    multicast_options options = under(l);
    CHECK_OK(multicast_add(m, counter(&calls), &options, NULL));
    CHECK_OK(multicast_lifetime_end(l));
    if (i == 1000) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
  CHECK_EQ(multicast_count(m), 0);
}

/* ---- Contexts that count references ---------------------------------------------------------- */

typedef struct counted {
  int references; /* 0: dead */
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

static void call_counted(void *context, uint32_t event, const void *payload, size_t size) {
  counted *c = context;
  (void)event;
  (void)payload;
  (void)size;
  CHECK(LOAD(c->references) >= 1); /* ours */
  ADD(c->calls, 1);
  if (c->inside != NULL) c->inside(c);
}

static multicast_token add_counted(multicast m, counted *c, uint32_t flags) {
  multicast_options options = with_release(release_counted);
  multicast_delegate d;
  options.lock = lock_counted;
  options.unlock = unlock_counted;
  options.flags = flags;
  d.function = call_counted;
  d.context = c;
  c->target = m;
  return add_with(m, d, &options);
}

TEST(weak_context_is_locked_for_each_call_and_unlocked_after) {
  counted c = {1, 0, 0, 0, 0, {0}, NULL};
  multicast m = multicast_create();
  add_counted(m, &c, 0);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(c.locks == 2 && c.unlocks == 2 && c.calls == 2 && c.references == 1);
  CHECK_OK(multicast_destroy(m));
  CHECK_EQ(c.releases, 1);
}

TEST(weak_context_that_is_dead_is_removed_there_and_then) {
  counted c = {0, 0, 0, 0, 0, {0}, NULL};
  multicast m = multicast_create();
  multicast_token token = add_counted(m, &c, 0);
  add(m, counter(&calls));
  CHECK_EQ(multicast_count(m), 2);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1); /* it is not counted as called */
  CHECK(c.locks == 1 && c.unlocks == 0 && c.calls == 0 && c.releases == 1);
  CHECK(!multicast_token_is_live(token));
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(c.locks, 1);
  CHECK_EQ(c.releases, 1);
}

static char other_object;
static void *lock_as_another(void *context) {
  (void)context;
  return &other_object;
}
static void *unlocked;
static void unlock_noting(void *strong) { unlocked = strong; }
static void *received;
static void receive(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event;
  (void)payload;
  (void)size;
  received = context;
}
static bool receive_visit(void *context, const multicast_delegate *delegate) {
  *(void **)context = delegate->context;
  return true;
}

TEST(weak_delegate_gets_the_strong_pointer_as_its_context) {
  multicast_options options = multicast_options_default();
  multicast m = multicast_create();
  multicast_delegate d;
  void *visited = NULL;
  options.lock = lock_as_another;
  options.unlock = unlock_noting;
  d.function = receive;
  d.context = &calls;
  add_with(m, d, &options);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(received == &other_object);
  CHECK(unlocked == &other_object);
  CHECK_EQ(multicast_visit(m, receive_visit, &visited), 1);
  CHECK(visited == &other_object);
  CHECK(multicast_contains(m, d)); /* it is still told by the weak one */
}

TEST(weak_lock_without_unlock_or_the_reverse_is_invalid_argument) {
  counted c = {1, 0, 0, 0, 0, {0}, NULL};
  multicast_options options = with_release(release_counted);
  multicast m = multicast_create();
  multicast_delegate d;
  d.function = call_counted;
  d.context = &c;
  options.lock = lock_counted;
  CHECK_STATUS(multicast_add(m, d, &options, NULL), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(c.releases, 1);
  options.lock = NULL;
  options.unlock = unlock_counted;
  CHECK_STATUS(multicast_add(m, d, &options, NULL), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(c.releases, 2);
  CHECK_EQ(multicast_count(m), 0);
}

static void remove_itself(counted *c) {
  (void)c;
  CHECK_STATUS(multicast_token_remove(multicast_token_current()), MULTICAST_PENDING);
}
static void destroy_its_multicast(counted *c) {
  CHECK_STATUS(multicast_destroy(c->target), MULTICAST_PENDING);
}
static void nest(counted *c) {
  if (LOAD(c->calls) < 5) CHECK_EQ(multicast_invoke(c->target, 0, NULL, 0), 1);
}

TEST(weak_unlock_follows_a_call_that_removed_itself) {
  counted c = {1, 0, 0, 0, 0, {0}, remove_itself};
  multicast m = multicast_create();
  add_counted(m, &c, 0);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(c.locks == 1 && c.unlocks == 1 && c.releases == 1 && c.references == 1);
}

TEST(weak_unlock_follows_a_call_that_destroyed_the_multicast) {
  counted c = {1, 0, 0, 0, 0, {0}, destroy_its_multicast};
  multicast m = multicast_create();
  add_counted(m, &c, 0);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(c.locks == 1 && c.unlocks == 1 && c.releases == 1 && c.references == 1);
}

TEST(weak_unlock_follows_each_of_nested_calls) {
  counted c = {1, 0, 0, 0, 0, {0}, nest};
  multicast m = multicast_create();
  add_counted(m, &c, 0);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(c.calls == 5 && c.locks == 5 && c.unlocks == 5 && c.references == 1);
}

TEST(weak_and_once_is_locked_called_and_released_once) {
  counted c = {1, 0, 0, 0, 0, {0}, NULL};
  multicast m = multicast_create();
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

TEST(weak_delegate_removed_by_its_lock_is_not_called) {
  counted c = {1, 0, 0, 0, 0, {0}, NULL};
  multicast_options options = with_release(release_counted);
  multicast m = multicast_create();
  multicast_delegate d;
  options.lock = lock_removing;
  options.unlock = unlock_counted;
  d.function = call_counted;
  d.context = &c;
  locked_token = add_with(m, d, &options);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK(c.calls == 0 && c.locks == 1 && c.unlocks == 1 && c.releases == 1);
}

static void *invoke_counted(void *argument) {
  counted *c = argument;
  while (LOAD(c->releases) == 0) CHECK(multicast_invoke(c->target, 0, NULL, 0) >= 0);
  return NULL;
}

TEST(weak_lock_racing_the_last_reference) {
  enum { ROUNDS = 100 };
  int round;
  for (round = 0; round < ROUNDS; ++round) {
    counted *c = calloc(1, sizeof *c);
    multicast m = multicast_create();
    pthread_t threads[2];
    int i;
    CHECK(c != NULL);
    c->references = 1;
    add_counted(m, c, 0);
    for (i = 0; i < 2; ++i) threads[i] = start_thread(invoke_counted, c);
    while (LOAD(c->calls) < 10) pause_ms(0);
    ADD(c->references, -1); /* the owner lets go: the next lock fails, and that removes it */
    for (i = 0; i < 2; ++i) join_thread(threads[i]);
    CHECK_EQ(c->releases, 1);
    CHECK_EQ(c->references, 0);
    CHECK_EQ(multicast_count(m), 0);
    CHECK_OK(multicast_destroy(m));
    free(c);
  }
}

TEST(weak_and_under_a_lifetime_is_released_once_whichever_ends_first) {
  int first;
  for (first = 0; first < 2; ++first) {
    counted c = {1, 0, 0, 0, 0, {0}, NULL};
    multicast m = multicast_create();
    multicast_lifetime l = multicast_lifetime_create();
    multicast_options options = under(l);
    multicast_delegate d;
    options.release = release_counted;
    options.lock = lock_counted;
    options.unlock = unlock_counted;
    d.function = call_counted;
    d.context = &c;
    add_with(m, d, &options);
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

/* ---- The stories of sets and lists ----------------------------------------------------------- */

TEST(set_contains_nothing_that_has_died) {
  counted c = {0, 0, 0, 0, 0, {0}, NULL};
  multicast m = multicast_create();
  multicast_lifetime l = multicast_lifetime_create();
  multicast_options options = under(l);
  multicast_delegate d;
  d.function = call_counted;
  d.context = &c;
  add_with(m, counter(&calls), &options);
  add_counted(m, &c, 0);
  CHECK_OK(multicast_lifetime_end(l));
  CHECK(!multicast_contains(m, counter(&calls)));
  multicast_invoke(m, 0, NULL, 0); /* finds that the other is dead */
  CHECK(!multicast_contains(m, d));
  CHECK_EQ(multicast_count(m), 0);
}

/* ---- Out of memory, fork --------------------------------------------------------------------- */

TEST(out_of_memory_in_lifetime_create_and_in_adding_under_one) {
  multicast_lifetime l = {0};
  multicast m;
  int which, releases = 0, failures = 0;
  use_test_allocator();
  m = multicast_create();
  for (which = 0; l.id == 0; ++which) {
    fail_after = which;
    l = multicast_lifetime_create();
    fail_after = -1;
  }
  CHECK(which == 2);
  for (which = 0;; ++which) {
    multicast_options options = under(l);
    multicast_status status;
    options.release = count_release;
    has_failed = false;
    fail_after = which;
    status = multicast_add(m, counter(&releases), &options, NULL);
    fail_after = -1;
    if (!has_failed) {
      CHECK_OK(status);
      break;
    }
    CHECK_STATUS(status, MULTICAST_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(releases, ++failures);
    CHECK_EQ(multicast_lifetime_count(l), 0);
  }
  CHECK_EQ(multicast_lifetime_count(l), 1);
  CHECK_OK(multicast_lifetime_end(l));
  CHECK_EQ(releases, failures + 1);
}

static multicast_lifetime inherited;
static void end_in_child(void *unused) {
  (void)unused;
  CHECK_OK(multicast_lifetime_end(inherited));
}

TEST(fork_child_ends_a_lifetime_whose_delegates_the_parent_runs) {
  blocker b = BLOCKER_INIT;
  multicast m = multicast_create();
  multicast_options options;
  invoker i;
  inherited = multicast_lifetime_create();
  options = under(inherited);
  add_with(m, blocking(&b), &options);
  invoke_in_background(&i, m);
  gate_wait(&b.entered);
  in_child(end_in_child, NULL);
  gate_open(&b.let_go);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_OK(multicast_lifetime_end(inherited));
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void *invoke_all_three(void *targets) {
  int i;
  for (i = 0; i < 3; ++i) multicast_invoke(((multicast *)targets)[i], 0, NULL, 0);
  return NULL;
}

/* Several threads have invoked them: their lists cannot be freed at once as they are replaced. */
TEST(lifetime_end_keeps_no_lists_of_the_multicasts_that_it_empties) {
  enum { MANY = 2000, FEW_BYTES = 3 * 2048 };
  static int many_calls;
  multicast targets[3];
  multicast_options options = multicast_options_default();
  int64_t before;
  int i, k;
  use_test_allocator();
  for (i = 0; i < 3; ++i) targets[i] = multicast_create();
  invoke_all_three(targets);
  on_another_thread(invoke_all_three, targets);
  options.lifetime = multicast_lifetime_create();
  for (k = 0; k < 3 * MANY; ++k) add_with(targets[k % 3], counter(&many_calls), &options);
  for (i = 0; i < 3; ++i) CHECK_EQ(multicast_remove_all(targets[i]), MANY);
  before = allocated_bytes;
  for (k = 0; k < 3 * MANY; ++k) add_with(targets[k % 3], counter(&many_calls), &options);
  CHECK(allocated_bytes >= before + (int64_t)3 * MANY * 32);
  CHECK_OK(multicast_lifetime_end(options.lifetime));
  if (allocated_bytes > before + FEW_BYTES) CHECK_EQ(allocated_bytes, before);
  CHECK_EQ(many_calls, 0);
}
