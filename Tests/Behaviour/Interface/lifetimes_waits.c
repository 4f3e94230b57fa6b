/* Ending a lifetime waits for calls and releases, and returns MULTICAST_PENDING where waiting would
 * deadlock. */

#include "removals.h"

/* Starts a call to a delegate of a lifetime on another thread. The removal under test, `r`, will
 * end that lifetime. */
static void begin_member(removal *r, blocker *b, invoker *i, void (*release)(void *),
                         uint32_t flags) {
  prepare_removal(r, multicast_create(), b, by_lifetime);
  r->lifetime = multicast_lifetime_create();
  r->token = add_with(r->target, r->delegate, &ADD_OPTIONS(.lifetime = r->lifetime,
                                                           .release = release, .flags = flags));
  invoke_in_background(i, r->target);
  gate_wait(&b->entered);
}

static void end_waits(bool remove_before) {
  blocker b = BLOCKER_INIT;
  removal r;
  invoker i;
  begin_member(&r, &b, &i, release_blocker, 0);
  if (remove_before)
    CHECK_STATUS(multicast_token_remove_nowait(r.token), MULTICAST_PENDING);
  expect_to_wait(&r, MULTICAST_OK);
  invoke_finished(&i);
  CHECK_EQ(LOAD(b.releases), 1);
}

TEST(lifetime_end_waits_for_running_calls) { end_waits(false); }
TEST(lifetime_end_waits_for_calls_of_what_was_removed_before) { end_waits(true); }

TEST(lifetime_end_in_its_own_call_is_pending_until_last_release) {
  multicast m = multicast_create(), other = multicast_create();
  own_removal o = {0};
  o.r.remove = by_lifetime;
  o.r.lifetime = multicast_lifetime_create();
  multicast_add_options options = ADD_OPTIONS(.lifetime = o.r.lifetime, .release = release_itself);
  multicast_delegate d = {remove_itself, &o};
  add_with(m, d, &options);
  d.function = count_call; /* this delegate is never called */
  add_with(other, d, &options);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_STATUS(o.result, MULTICAST_PENDING);
  CHECK_EQ(o.releases_inside, 1); /* the release of the other delegate */
  CHECK_EQ(o.releases, 2);
  CHECK_ERROR(multicast_lifetime_end(o.r.lifetime), INVALID_HANDLE);
}

static own_removal crossed[2];
static gate both_inside = GATE_INIT;
static int inside;

FUNCTION(end_of_the_other, own_removal *o) {
  if (ADD(inside, 1) == 2) gate_open(&both_inside);
  gate_wait(&both_inside);
  o->result = multicast_lifetime_end(crossed[o == &crossed[0]].r.lifetime);
}

TEST(lifetime_ends_that_wait_for_each_other_do_not_hang) {
  invoker invokers[2];
  multicast m[2];
  for (int i = 0; i < 2; ++i) {
    crossed[i].r.lifetime = multicast_lifetime_create();
    multicast_add_options options = ADD_OPTIONS(.lifetime = crossed[i].r.lifetime);
    options.release = release_itself;
    m[i] = multicast_create();
    add_with(m[i], DELEGATE(end_of_the_other, &crossed[i]), &options);
  }
  for (int i = 0; i < 2; ++i) invoke_in_background(&invokers[i], m[i]);
  for (int i = 0; i < 2; ++i) CHECK_EQ(invoke_finished(&invokers[i]), 1);
  CHECK(crossed[0].result == MULTICAST_PENDING || crossed[1].result == MULTICAST_PENDING);
  for (int i = 0; i < 2; ++i) {
    CHECK(crossed[i].result == MULTICAST_OK || crossed[i].result == MULTICAST_PENDING);
    CHECK_EQ(LOAD(crossed[i].releases), 1);
  }
}

static gate release_begun = GATE_INIT, release_may_return = GATE_INIT;
static bool release_has_returned;

static void release_slowly(void *context) {
  gate_open(&release_begun);
  gate_wait(&release_may_return);
  STORE(release_has_returned, true);
}

static void end_waits_for_release(uint32_t flags) {
  /* The delegate is removed during its call, so its release runs on the call's thread. */
  blocker b = BLOCKER_INIT;
  removal r;
  invoker i;
  begin_member(&r, &b, &i, release_slowly, flags);
  if (flags == 0) CHECK_STATUS(multicast_token_remove_nowait(r.token), MULTICAST_PENDING);
  gate_open(&b.let_go);
  gate_wait(&release_begun);
  CHECK_EQ(multicast_lifetime_count(r.lifetime), 0);
  r.thread = start_thread(remove_in_thread, &r);
  CHECK(!gate_opens_within(&r.returned, A_WHILE_MS));
  gate_open(&release_may_return);
  join_thread(r.thread);
  CHECK_OK(r.result);
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
  result_in_release = multicast_lifetime_end(ended_in_release);
}

TEST_OF_MULTICAST(lifetime_end_in_a_release_of_its_own_is_pending) {
  ended_in_release = multicast_lifetime_create();
  multicast_add_options options = ADD_OPTIONS(.lifetime = ended_in_release);
  options.release = end_in_release;
  CHECK_OK(multicast_token_remove(add_with(m, counter(&calls), &options)));
  CHECK_STATUS(result_in_release, MULTICAST_PENDING);
  CHECK_ERROR(multicast_lifetime_count(ended_in_release), INVALID_HANDLE);
}

/* ---- Releases, and delegates that end their lifetime ----------------------------------------- */

typedef struct stay {
  multicast_lifetime lifetime;
  multicast m;
  multicast_token token;
  blocker call, release;
} stay;
#define STAY_INIT {{0}, {0}, {0}, BLOCKER_INIT, BLOCKER_INIT}

static void stay_in_release(void *context) {
  block_call(&((stay *)context)->release, 0, NULL, 0);
}

static void stay_in_call(void *context, uint32_t event, const void *payload, size_t size) {
  block_call(&((stay *)context)->call, event, payload, size);
}

static void begin_stay(stay *s) {
  multicast_delegate d = {stay_in_call, s};
  s->lifetime = multicast_lifetime_create();
  s->m = multicast_create();
  s->token = add_with(s->m, d, &ADD_OPTIONS(.release = stay_in_release, .lifetime = s->lifetime));
}

static void end_at_once(void *lifetime) {
  CHECK_OK(multicast_lifetime_end(*(multicast_lifetime *)lifetime));
}

TEST(lifetime_end_in_the_child_waits_for_no_parents_release) {
  static stay s = STAY_INIT;
  begin_stay(&s);
  pthread_t remover = start_thread(remove_token, &s.token);
  gate_wait(&s.release.entered);
  in_child(end_at_once, &s.lifetime);
  gate_open(&s.release.let_go);
  join_thread(remover);
  CHECK_OK(multicast_lifetime_end(s.lifetime));
}

static int64_t queued;

THREAD(queue_one_more, multicast *target) {
  queued = multicast_invoke(*target, 0, NULL, 0);
}

TEST_OF_MULTICAST(lifetime_end_does_not_wait_as_a_release_has_to_make_room) {
  static stay s = STAY_INIT;
  int calls = 0;
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  begin_stay(&s);
  add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  pthread_t remover = start_thread(remove_token, &s.token);
  gate_wait(&s.release.entered);
  pthread_t producer = start_thread(queue_one_more, &m);
  pause_ms(A_WHILE_MS); /* the producer now waits for room */
  CHECK_STATUS(multicast_lifetime_end(s.lifetime), MULTICAST_PENDING);
  CHECK(!LOAD(s.release.has_left));
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  join_thread(producer);
  CHECK_EQ(queued, 1);
  gate_open(&s.release.let_go);
  join_thread(remover);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_EQ(calls, 2);
}

THREAD(let_it_return_later, stay *of) {
  pause_ms(2);
  gate_open(&of->call.let_go);
}

static multicast_status ended;

/* Ends the lifetime, perhaps before another thread has run the `release` of the delegate that
 * belongs to the lifetime. */
FUNCTION(end_inside_a_call, stay *s) {
  pthread_t opener = start_thread(let_it_return_later, s);
  ended = multicast_lifetime_end(s->lifetime);
  CHECK(ended == MULTICAST_OK || ended == MULTICAST_PENDING);
  CHECK(LOAD(s->call.has_left));
  if (ended == MULTICAST_OK) CHECK(LOAD(s->release.has_left));
  join_thread(opener);
}

TEST(lifetime_end_inside_a_call_reports_whether_releases_ran) {
  for (int round = 0; round < 50; ++round) {
    static const stay fresh = STAY_INIT;
    stay s = fresh;
    multicast m = multicast_create();
    invoker i;
    begin_stay(&s);
    gate_open(&s.release.let_go);
    add(m, DELEGATE(end_inside_a_call, &s));
    invoke_in_background(&i, s.m);
    gate_wait(&s.call.entered);
    CHECK_STATUS(multicast_token_remove_nowait(s.token), MULTICAST_PENDING);
    CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
    CHECK_EQ(invoke_finished(&i), 1);
    CHECK_EQ(s.release.calls, 1);
    CHECK_OK(multicast_destroy(m));
    CHECK_OK(multicast_destroy(s.m));
  }
}
