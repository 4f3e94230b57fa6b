/* For each add, `release` runs exactly once. */

#include "harness.h"

static int ignored;

TEST_OF_MULTICAST(release_runs_once_on_every_way_of_removing) {
  int r[8] = {0};
  multicast_add_options options = ADD_OPTIONS(.release = count_release);
  multicast_token t[8];
  for (int i = 0; i < 8; ++i) t[i] = add_with(m, counter(&r[i]), &options);
  CHECK_OK(multicast_remove(m, counter(&r[0])));
  CHECK_OK(multicast_token_remove(t[1]));
  CHECK_OK(multicast_token_remove_nowait(t[2]));
  CHECK_OK(multicast_token_remove_within(t[3], 0));
  CHECK_OK(multicast_remove_at(m, 0));
  CHECK_EQ(multicast_remove_context(m, &r[5]), 1);
  multicast_delegate d = counter(&r[6]);
  CHECK_EQ(multicast_remove_many(m, &d, 1), 1);
  CHECK_EQ(r[7], 0);
  CHECK_OK(multicast_destroy(m));
  for (int i = 0; i < 8; ++i) CHECK_EQ(r[i], 1);
}

TEST(release_runs_when_an_add_fails) {
  int releases = 0;
  multicast_add_options options = ADD_OPTIONS(.release = count_release);
  multicast none = {0}, m = multicast_create();
  multicast_token token = {123};
  CHECK_ERROR(multicast_add(none, counter(&releases), &options, &token), INVALID_HANDLE);
  CHECK_EQ(releases, 1);
  CHECK_EQ(token.id, 0);
  CHECK_ERROR(multicast_add(m, DELEGATE(NULL, &releases), &options, NULL), INVALID_ARGUMENT);
  CHECK_EQ(releases, 2);
}

TEST_OF_MULTICAST(release_does_not_run_when_the_options_cannot_be_read) {
  int releases = 0;
  multicast_add_options options = {.release = count_release};
  CHECK_ERROR(multicast_add(m, counter(&releases), &options, NULL), INVALID_ARGUMENT);
  options = ADD_OPTIONS(.release = count_release, .flags = 0x80000000u);
  CHECK_ERROR(multicast_add(m, counter(&releases), &options, NULL), INVALID_ARGUMENT);
  CHECK_EQ(releases, 0);
}

TEST(release_runs_once_for_each_delegate_of_a_failed_add_many) {
  int releases[3] = {0};
  multicast_add_options options = ADD_OPTIONS(.release = count_release);
  multicast_delegate d[3];
  multicast_token t[3] = {{1}, {2}, {3}};
  multicast none = {0}, m = multicast_create();
  for (int i = 0; i < 3; ++i) d[i] = counter(&releases[i]);
  CHECK_ERROR(multicast_add_many(none, d, 3, &options, t), INVALID_HANDLE);
  for (int i = 0; i < 3; ++i) CHECK_EQ(releases[i], 1);
  for (int i = 0; i < 3; ++i) CHECK_EQ(t[i].id, 0);
  d[1].function = NULL;
  CHECK_ERROR(multicast_add_many(m, d, 3, &options, t), INVALID_ARGUMENT);
  for (int i = 0; i < 3; ++i) CHECK_EQ(releases[i], 2);
  CHECK_EQ(multicast_count(m), 0);
}

TEST_OF_MULTICAST(release_runs_after_the_last_call_on_the_thread_of_that_call) {
  blocker b = BLOCKER_INIT;
  multicast_token token = add_with(m, blocking(&b), &ADD_OPTIONS(.release = release_blocker));
  begin_blocked(&b, m);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  CHECK_EQ(LOAD(b.releases), 0);
  CHECK_EQ(end_blocked(&b), 1); /* the call itself ran `release` */
  CHECK_EQ(LOAD(b.releases), 1);
}

TEST_OF_MULTICAST(release_waits_for_the_last_of_several_calls) {
  blocker b = BLOCKER_INIT;
  invoker first, second;
  multicast_token token = add_with(m, blocking(&b), &ADD_OPTIONS(.release = release_blocker));
  invoke_in_background(&first, m);
  invoke_in_background(&second, m);
  while (LOAD(b.calls) < 2) pause_ms(1);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(b.releases), 0);
  gate_open(&b.let_go);
  invoke_finished(&first);
  invoke_finished(&second);
  CHECK_EQ(LOAD(b.releases), 1);
}

TEST_OF_MULTICAST(release_is_not_put_off_by_another_delegate_that_runs) {
  int releases = 0;
  blocker b = BLOCKER_INIT;
  add(m, blocking(&b));
  add_with(m, counter(&releases), &ADD_OPTIONS(.release = count_release));
  begin_blocked(&b, m);
  CHECK_OK(multicast_remove(m, counter(&releases)));
  CHECK_EQ(LOAD(releases), 1); /* released although the invocation is still running */
  end_blocked(&b);
  CHECK_EQ(LOAD(releases), 1);
}

typedef struct once {
  int calls, releases, releases_inside;
} once;

FUNCTION(call_once, once *o) {
  ++o->calls;
  o->releases_inside = o->releases;
}

static void release_once(void *context) { ++((once *)context)->releases; }

TEST_OF_MULTICAST(release_of_a_delegate_called_once_follows_its_call) {
  once o = {0, 0, 0};
  multicast_delegate d = {call_once, &o};
  add_with(m, d, &ADD_OPTIONS(.release = release_once, .flags = MULTICAST_ONCE));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(o.calls, 1);
  CHECK_EQ(o.releases_inside, 0);
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
}

static multicast chained;
static int chain_left;

static void remove_another(void *context) {
  if (--chain_left > 0) CHECK_OK(multicast_remove_at(chained, 0));
}

TEST(release_may_remove_others_whose_releases_run_too) {
  multicast_add_options options = ADD_OPTIONS(.release = remove_another);
  chained = multicast_create();
  chain_left = 20;
  for (int i = 0; i < 20; ++i) add_with(chained, counter(&ignored), &options);
  CHECK_OK(multicast_remove_at(chained, 0));
  CHECK_EQ(chain_left, 0);
  CHECK_EQ(multicast_count(chained), 0);
}

static char order[16];

static void note_release(void *context) {
  size_t end = strlen(order);
  order[end] = ((letter *)context)->name;
}

TEST_OF_MULTICAST(release_of_many_runs_in_order_of_invocation) {
  letter a = {order, 'a'}, b = {order, 'b'}, c = {order, 'c'};
  multicast_add_options options = ADD_OPTIONS(.release = note_release);
  add_with(m, writer(&a), &options);
  add_with(m, writer(&b), &options);
  add_with(m, writer(&c), &options);
  CHECK_EQ(multicast_remove_all(m), 3);
  CHECK_TEXT(order, "abc");
}

typedef struct contested {
  int calls, releases;
} contested;

static void call_contested(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_EQ(LOAD(((contested *)context)->releases), 0);
  ADD(((contested *)context)->calls, 1);
}

static void release_contested(void *context) { ADD(((contested *)context)->releases, 1); }

TEST(release_runs_exactly_once_whoever_wins) {
  /* This thread removes each delegate while two other threads are calling it. Every second delegate
   * is added with MULTICAST_ONCE. */
  enum { ROUNDS = 300 };
  static contested all[ROUNDS];
  multicast_add_options options = ADD_OPTIONS(.release = release_contested);
  multicast m = multicast_create();
  for (int i = 0; i < ROUNDS; ++i) {
    invoker invokers[2];
    options.flags = i % 2 ? MULTICAST_ONCE : 0;
    multicast_token token = add_with(m, DELEGATE(call_contested, &all[i]), &options);
    invoke_in_background(&invokers[0], m);
    invoke_in_background(&invokers[1], m);
    if (i % 3) pause_ms(0);
    multicast_token_remove(token);
    invoke_finished(&invokers[0]);
    invoke_finished(&invokers[1]);
    CHECK(!multicast_token_is_valid(token));
    CHECK_EQ(LOAD(all[i].releases), 1);
    if (i % 2) CHECK(LOAD(all[i].calls) <= 1);
  }
  CHECK_EQ(multicast_count(m), 0);
}

/* ---- The current token ----------------------------------------------------------------------- */

/* The context of a delegate. If the delegate is removed during its call, `release` runs once the
 * call has ended. */
typedef struct last_call {
  multicast_token own, in_call, in_release;
  void (*remove)(struct last_call *);
  multicast inner; /* a multicast that is invoked inside the call */
  int releases;
} last_call;

FUNCTION(be_called_last, last_call *l) {
  l->in_call = multicast_token_current();
  if (l->remove != NULL) l->remove(l);
  if (l->inner.id != 0) multicast_invoke(l->inner, 0, NULL, 0);
}

static void note_current(void *context) {
  last_call *l = context;
  l->in_release = multicast_token_current();
  ++l->releases;
}

static void remove_last(last_call *l) {
  CHECK_STATUS(multicast_token_remove(l->own), MULTICAST_PENDING);
}

static void add_last(multicast m, last_call *l, uint32_t flags, multicast_queue q) {
  memset(l, 0, sizeof *l);
  multicast_delegate d = {be_called_last, l};
  l->in_release.id = 77;
  if (flags == 0) l->remove = remove_last;
  l->own = add_with(m, d, &ADD_OPTIONS(.release = note_current, .flags = flags, .queue = q));
}

TEST_OF_MULTICAST(release_at_end_of_its_own_last_call_sees_no_current_token) {
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  last_call l;
  for (int way = 0; way < 4; ++way) {
    multicast_queue none = MULTICAST_NONE;
    add_last(m, &l, way & 1 ? MULTICAST_ONCE : 0, way & 2 ? q : none);
    CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
    if (way & 2) CHECK_EQ(multicast_queue_run(q, 0), 1);
    CHECK_EQ(l.in_call.id, l.own.id);
    CHECK_EQ(l.releases, 1);
    CHECK_EQ(l.in_release.id, 0);
  }
}

TEST(release_at_end_of_last_call_sees_token_of_enclosing_call) {
  multicast m = multicast_create(), inner = multicast_create();
  multicast_queue none = MULTICAST_NONE;
  last_call outer, l;
  for (int once = 0; once < 2; ++once) {
    add_last(m, &outer, 0, none);
    outer.inner = inner;
    add_last(inner, &l, once ? MULTICAST_ONCE : 0, none);
    CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
    CHECK_EQ(l.in_call.id, l.own.id);
    CHECK_EQ(l.in_release.id, outer.own.id);
    CHECK_EQ(outer.in_release.id, 0);
    CHECK(l.releases == 1 && outer.releases == 1);
  }
}
