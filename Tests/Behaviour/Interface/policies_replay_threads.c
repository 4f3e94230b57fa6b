/* Multicasts replay past invocations while other threads invoke them, add and remove delegates, and
 * end. */

#include "payloads.h"
#include "policies.h"
#include "queues.h"

#include <sched.h>

static multicast target;

static multicast create_replaying(uint32_t replay) {
  target = multicast_create_with(&CREATE_OPTIONS(.replay = replay));
  CHECK(target.id != 0);
  return target;
}

/* ---- A replay on another thread -------------------------------------------------------------- */

/* The context of a delegate whose first call waits until `let_go` opens. */
typedef struct stopper {
  gate entered, let_go;
  int numbers[1000];
  int count;
} stopper;
static stopper it = {GATE_INIT, GATE_INIT, {0}, 0};
static multicast_token stopped;

FUNCTION(stop_in_first, stopper *s) {
  CHECK_EQ(size, sizeof(int));
  memcpy(&s->numbers[s->count++], payload, sizeof(int));
  if (s->count > 1) return;
  stopped = multicast_token_current();
  gate_open(&s->entered);
  gate_wait(&s->let_go);
}

static multicast_add_options how_added = MULTICAST_ADD_OPTIONS_INIT;
static multicast_status added;
THREAD(add_stopper, void *unused) {
  added = multicast_add(target, DELEGATE(stop_in_first, &it), &how_added, NULL);
}

/* Invokes the multicast with the numbers 1 and 2, and then adds a delegate on another thread. The
 * replay on that thread blocks inside the call with the number 1. */
static pthread_t begin_replay(uint32_t replay) {
  create_replaying(replay);
  CHECK_EQ(invoke_number(target, 1), 0);
  CHECK_EQ(invoke_number(target, 2), 0);
  pthread_t thread = start_thread(add_stopper, NULL);
  gate_wait(&it.entered);
  return thread;
}

static void expect_numbers(int from, int to) {
  CHECK_EQ(it.count, to - from + 1);
  for (int i = from; i <= to; ++i) CHECK_EQ(it.numbers[i - from], i);
}

TEST(replay_has_what_other_threads_invoke_meanwhile) {
  pthread_t thread = begin_replay(2);
  int calls = 0;
  add(target, counter(&calls));
  CHECK_EQ(calls, 2);
  for (int number = 3; number <= 60; ++number) CHECK_EQ(invoke_number(target, number), 1);
  CHECK_EQ(it.count, 1);
  gate_open(&it.let_go);
  join_thread(thread);
  CHECK_OK(added);
  CHECK_EQ(invoke_number(target, 61), 2);
  expect_numbers(1, 61);
  CHECK_EQ(calls, 61);
}

THREAD(add_other_stopper, void *stopper) {
  CHECK_OK(multicast_add(target, DELEGATE(stop_in_first, stopper), NULL, NULL));
}

TEST(replays_on_several_threads_end_in_any_order) {
  static stopper others[2] = {{GATE_INIT, GATE_INIT, {0}, 0}, {GATE_INIT, GATE_INIT, {0}, 0}};
  pthread_t thread = begin_replay(2), threads[2];
  for (int i = 0; i < 2; ++i) {
    threads[i] = start_thread(add_other_stopper, &others[i]);
    gate_wait(&others[i].entered);
  }
  for (int number = 3; number <= 50; ++number) CHECK_EQ(invoke_number(target, number), 0);
  gate_open(&others[0].let_go);
  join_thread(threads[0]);
  CHECK_EQ(invoke_number(target, 51), 1);
  gate_open(&it.let_go);
  join_thread(thread);
  CHECK_EQ(invoke_number(target, 52), 2);
  gate_open(&others[1].let_go);
  join_thread(threads[1]);
  CHECK_EQ(invoke_number(target, 53), 3);
  expect_numbers(1, 53);
  for (int i = 0; i < 2; ++i) CHECK_EQ(others[i].count, 53);
}

THREAD(invoke_hundred, void *returned) {
  for (int number = 3; number <= 102; ++number) CHECK(invoke_number(target, number) >= 0);
  gate_open(returned);
}

TEST(replay_that_is_behind_makes_invocations_wait) {
  static gate returned = GATE_INIT;
  pthread_t thread = begin_replay(2), invoking = start_thread(invoke_hundred, &returned);
  CHECK(!gate_opens_within(&returned, A_WHILE_MS));
  gate_open(&it.let_go);
  gate_wait(&returned);
  join_thread(thread);
  join_thread(invoking);
  expect_numbers(1, 102);
}

THREAD(let_go_after_a_while, void *unused) {
  pause_ms(A_WHILE_MS);
  gate_open(&it.let_go);
}

TEST(replay_is_waited_for_by_a_removal_and_ends_with_it) {
  pthread_t thread = begin_replay(2), other = start_thread(let_go_after_a_while, NULL);
  CHECK_OK(multicast_token_remove(stopped));
  CHECK(it.let_go.is_open);
  CHECK_EQ(it.count, 1);
  join_thread(thread);
  join_thread(other);
  CHECK_OK(added);
  CHECK_EQ(it.count, 1);
}

TEST(replay_with_a_removal_that_has_a_time_limit) {
  pthread_t thread = begin_replay(2);
  CHECK_ERROR(multicast_token_remove_within(stopped, 1000000), TIMEOUT);
  gate_open(&it.let_go);
  join_thread(thread);
  CHECK_EQ(it.count, 1);
}

TEST(replay_ends_when_another_thread_destroys_the_multicast) {
  static cargo kept;
  pthread_t thread = begin_replay(2), other;
  CHECK_EQ(hand_over(target, &kept), 0);
  other = start_thread(let_go_after_a_while, NULL);
  CHECK_OK(multicast_destroy(target));
  CHECK(it.let_go.is_open);
  CHECK_EQ(kept.releases, 1);
  join_thread(thread);
  join_thread(other);
  CHECK_OK(added);
  CHECK_EQ(it.count, 1);
}

TEST(replay_that_is_behind_ends_when_the_multicast_is_destroyed) {
  static invoker i;
  pthread_t thread = begin_replay(2);
  for (int number = 3; number <= 67; ++number) CHECK_EQ(invoke_number(target, number), 0);
  invoke_in_background(&i, target);
  pause_ms(A_WHILE_MS);
  CHECK_ERROR(multicast_destroy_within(target, 0), TIMEOUT);
  CHECK_ERROR(invoke_finished(&i), INVALID_HANDLE);
  gate_open(&it.let_go);
  join_thread(thread);
  CHECK_EQ(it.count, 1);
}

TEST(replay_that_is_behind_ends_when_its_delegate_is_removed) {
  static gate returned = GATE_INIT;
  pthread_t thread = begin_replay(2), invoking = start_thread(invoke_hundred, &returned);
  CHECK(!gate_opens_within(&returned, A_WHILE_MS));
  CHECK_STATUS(multicast_token_remove_nowait(stopped), MULTICAST_PENDING);
  gate_wait(&returned); /* the call itself has not yet returned */
  gate_open(&it.let_go);
  join_thread(thread);
  join_thread(invoking);
  CHECK_EQ(it.count, 1);
}

/* ---- Cycles ---------------------------------------------------------------------------------- */

/* Two threads must not wait for each other. One thread is in a call to the delegate of `other`, and
 * invokes `target` until it has to wait for the replay. The other thread performs the replay, in
 * which a delegate removes the delegate of `other` and would have to wait for that call. */
static multicast other;
static multicast_token of_other;
static gate is_inside = GATE_INIT, may_invoke = GATE_INIT;
static multicast_status removed = 99;
static int replayed;

static void invoke_inside_other(void *context, uint32_t event, const void *payload, size_t size) {
  gate_open(&is_inside);
  gate_wait(&may_invoke);
  for (int number = 1; number <= 200; ++number) CHECK(invoke_number(target, number) >= 0);
}

static void remove_in_replay(void *context, uint32_t event, const void *payload, size_t size) {
  if (++replayed > 1) return;
  gate_open(&may_invoke);
  pause_ms(A_WHILE_MS);
  removed = multicast_token_remove(of_other);
}

THREAD(invoke_other, void *unused) {
  CHECK_EQ(multicast_invoke(other, 0, NULL, 0), 1);
}

TEST(replay_and_invocation_that_wait_for_each_other_do_not_hang) {
  multicast_delegate inside = {invoke_inside_other, NULL}, d = {remove_in_replay, NULL};
  other = multicast_create();
  of_other = add(other, inside);
  create_replaying(1);
  CHECK_EQ(invoke_number(target, 0), 0);
  pthread_t thread = start_thread(invoke_other, NULL);
  gate_wait(&is_inside);
  add(target, d);
  CHECK(removed == MULTICAST_PENDING || removed == MULTICAST_OK);
  join_thread(thread);
  CHECK_EQ(replayed, 201);
}

/* Like remove_in_replay(), but the removal begins to wait before the other thread invokes
 * `target`. */
static void remove_first(void *context, uint32_t event, const void *payload, size_t size) {
  if (++replayed > 1) return;
  removed = multicast_token_remove(of_other);
}
THREAD(open_late, void *unused) {
  pause_ms(2 * A_WHILE_MS);
  gate_open(&may_invoke);
}

TEST(replay_whose_call_waits_for_an_invocation_delays_it_not) {
  multicast_delegate inside = {invoke_inside_other, NULL}, d = {remove_first, NULL};
  other = multicast_create();
  of_other = add(other, inside);
  create_replaying(1);
  CHECK_EQ(invoke_number(target, 0), 0);
  pthread_t thread = start_thread(invoke_other, NULL);
  gate_wait(&is_inside);
  pthread_t opening = start_thread(open_late, NULL);
  add(target, d);
  CHECK_OK(removed);
  join_thread(thread);
  join_thread(opening);
  CHECK_EQ(replayed, 201);
}

/* ---- Threads that end, and fork -------------------------------------------------------------- */

static cargo owned[4];
static int calls_of_ending;

static void end_in_call(void *context, uint32_t event, const void *payload, size_t size) {
  if (++calls_of_ending == 1) pthread_exit(NULL);
}
static void destroy_and_end(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_STATUS(multicast_destroy(target), MULTICAST_PENDING);
  end_in_call(context, event, payload, size);
}

THREAD(add_given, multicast_delegate *delegate) {
  multicast_delegate d = *delegate;
  multicast_add(target, d, &ADD_OPTIONS(.release = count_release), NULL);
}

TEST(replay_is_given_up_when_its_thread_ends) {
  static int ended;
  multicast_delegate d = {end_in_call, &ended};
  create_replaying(3);
  CHECK_EQ(hand_over(target, &owned[0]), 0);
  CHECK_EQ(hand_over(target, &owned[1]), 0);
  on_another_thread(add_given, &d);
  CHECK_EQ(calls_of_ending, 1);
  CHECK_EQ(hand_over(target, &owned[2]), 1); /* the delegate is called from now on */
  CHECK_EQ(calls_of_ending, 2);
  CHECK_EQ(owned[0].releases, 0);
  CHECK_EQ(hand_over(target, &owned[3]), 1);
  CHECK_EQ(owned[0].releases, 1); /* no delegate needs this payload any more */
  CHECK_EQ(ended, 0);
  CHECK_OK(multicast_destroy(target));
  CHECK_EQ(ended, 1);
  CHECK_EQ(owned[3].releases, 1);
}

TEST(replay_is_given_up_when_its_thread_destroys_and_ends) {
  static int ended;
  multicast_delegate d = {destroy_and_end, &ended};
  create_replaying(3);
  CHECK_EQ(hand_over(target, &owned[0]), 0);
  CHECK_EQ(hand_over(target, &owned[1]), 0);
  on_another_thread(add_given, &d);
  CHECK_EQ(calls_of_ending, 1);
  CHECK_EQ(owned[0].releases, 1);
  CHECK_EQ(owned[1].releases, 1);
  CHECK_EQ(ended, 1);
}

static void use_in_child(void *unused) {
  int calls = 0;
  CHECK_EQ(it.count, 1);
  for (int number = 3; number <= 200; ++number) CHECK_EQ(invoke_number(target, number), 1);
  CHECK_EQ(it.count, 199);
  CHECK_EQ(it.numbers[1], 3);
  add(target, counter(&calls));
  CHECK_EQ(calls, 2);
  CHECK_OK(multicast_destroy(target));
}

TEST(replay_of_another_thread_is_given_up_in_the_child_of_a_fork) {
  pthread_t thread = begin_replay(2);
  in_child(use_in_child, NULL);
  gate_open(&it.let_go);
  join_thread(thread);
  expect_numbers(1, 2);
}

TEST(replay_into_full_queue_waits_and_delays_no_removal) {
  create_replaying(3);
  CHECK_EQ(invoke_number(target, 1), 0);
  CHECK_EQ(invoke_number(target, 2), 0);
  how_added.queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  pthread_t thread = start_thread(add_stopper, NULL);
  EVENTUALLY(stats_of(how_added.queue).pending == 1);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(multicast_remove_all(target), 1);
  join_thread(thread);
  CHECK_OK(added);
  CHECK_EQ(stats_of(how_added.queue).pending, 0);
}

/* ---- Millions of numbered invocations -------------------------------------------------------- */

/* Two threads number their invocations. Every delegate must receive the numbers of each thread in
 * order and without a gap. A delegate may start with any number, because old invocations are not
 * replayed. */
enum { INVOKING = 2, ADDING = 2, REPLAYED = 16 };
static struct {
  uint32_t invoked[INVOKING];
  int left; /* threads that are still invoking */
  uint64_t delegates;
} all;

typedef struct event {
  uint32_t thread, number;
} event;

typedef struct listener {
  uint32_t next[INVOKING]; /* 0: nothing received yet */
  uint64_t calls;
} listener;

static void listen_to(void *context, uint32_t unused, const void *payload, size_t size) {
  listener *l = context;
  event e;
  CHECK_EQ(size, sizeof e);
  memcpy(&e, payload, sizeof e);
  uint32_t *next = &l->next[e.thread];
  if (LOAD(*next) != 0) CHECK_EQ(e.number, LOAD(*next));
  STORE(*next, e.number + 1); /* calls with events of one thread never overlap */
  ADD(l->calls, 1);
}

THREAD(invoke_events, void *argument) {
  event e = {(uint32_t)(intptr_t)argument, 1};
  uint32_t count = all.invoked[e.thread];
  for (; e.number <= count; ++e.number) {
    CHECK(multicast_invoke(target, 0, &e, sizeof e) >= 0);
  }
  ADD(all.left, -1);
}

/* Repeatedly adds a listener, lets it listen for a while, and removes it. */
THREAD(add_listeners, void *argument) {
  unsigned seed = (unsigned)(intptr_t)argument;
  bool is_last = false;
  while (!is_last) {
    listener l = {{0, 0}, 0};
    multicast_token token;
    is_last = LOAD(all.left) == 0;
    CHECK_OK(multicast_add(target, DELEGATE(listen_to, &l), NULL, &token));
    if (is_last) CHECK_EQ(l.calls, REPLAYED); /* the threads no longer invoke */
    for (int i = (int)(next(&seed) % 64); i > 0 && LOAD(all.left) > 0; --i) sched_yield();
    if (LOAD(all.left) == 0) { /* the listener has received the last event */
      for (int i = 0; i < INVOKING; ++i) {
        if (l.next[i] != 0) CHECK_EQ(l.next[i], all.invoked[i] + 1);
      }
    }
    CHECK_OK(multicast_token_remove(token));
    ADD(all.delegates, 1);
  }
}

static void storm(uint32_t count) {
  static listener always;
  pthread_t threads[INVOKING + ADDING];
  int i;
  create_replaying(REPLAYED);
  add(target, DELEGATE(listen_to, &always));
  all.left = INVOKING;
  for (i = 0; i < INVOKING; ++i) all.invoked[i] = count;
  for (i = 0; i < INVOKING; ++i) {
    threads[i] = start_thread(invoke_events, (void *)(intptr_t)i);
  }
  for (; i < INVOKING + ADDING; ++i) {
    threads[i] = start_thread(add_listeners, (void *)(intptr_t)i);
  }
  for (i = 0; i < INVOKING + ADDING; ++i) pthread_join(threads[i], NULL);
  for (i = 0; i < INVOKING; ++i) CHECK_EQ(always.next[i], count + 1);
  CHECK_EQ(always.calls, (uint64_t)INVOKING * count);
  CHECK(all.delegates > ADDING);
  CHECK_OK(multicast_destroy(target));
}

/* The number of invocations by each thread: the value of the environment variable MULTICAST_EVENTS,
 * or a default. */
static uint32_t event_count(void) {
  const char *given = getenv("MULTICAST_EVENTS");
  return given == NULL ? 100000 : (uint32_t)strtoul(given, NULL, 10);
}

TEST(replay_gives_each_event_once_in_order_beside_threads) {
  storm(event_count());
}

/* ---- A thread delayed by a replay ------------------------------------------------------------ */

static gate in_replay = GATE_INIT, is_over = GATE_INIT;

static void invoke_until_it_waits(void *context, uint32_t event, const void *payload,
                                  size_t size) {
  gate_wait(&in_replay);
  /* from the 65th invocation on, the thread waits for the replay */
  for (int i = 0; i < 80; ++i) CHECK(invoke_number(target, i) >= 0);
  gate_open(&is_over);
}

FUNCTION(replay_meanwhile, int *calls) {
  if ((*calls)++ > 0) return;
  gate_open(&in_replay);
  CHECK(!gate_opens_within(&is_over, A_WHILE_MS));
}

TEST(removal_waits_for_call_delayed_by_replay_of_this_thread) {
  static int calls;
  invoker i;
  multicast other = multicast_create();
  multicast_delegate late = {replay_meanwhile, &calls}, d = {invoke_until_it_waits, NULL};
  create_replaying(1);
  CHECK_EQ(invoke_number(target, 0), 0);
  add(other, d);
  invoke_in_background(&i, other);
  CHECK_OK(multicast_add(target, late, NULL, NULL));
  CHECK_OK(multicast_remove(other, d));
  CHECK(gate_opens_within(&is_over, 0));
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(calls, 81);
}
