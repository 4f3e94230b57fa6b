/* A thread that destroys a broadcaster or unregisters observers waits for calls on other threads.
 * A call to an observer may use every function of the library without hanging. */

#include "broadcasters.h"
#include "handles.h"

/* ---- Destroy --------------------------------------------------------------------------------- */

TEST(broadcaster_destroyed_takes_all_its_multicasts_along) {
  enum { NAMES = 300 };
  multicast m[NAMES];
  observer o = {0, 0};
  multicast_add_options options = ADD_OPTIONS(.release = release_observer);
  multicast_broadcaster b = create(), other = create();
  multicast_token token = {0};
  for (int i = 0; i < NAMES; ++i) {
    token = observe_with(b, numbered(NAME, i), observing(&o), &options);
    m[i] = find(b, numbered(NAME, i));
  }
  observe(other, NAME, counter(&calls));
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK_EQ(o.releases, NAMES);
  for (int i = 0; i < NAMES; ++i) CHECK(!multicast_is_valid(m[i]));
  CHECK(!multicast_token_is_valid(token));
  expect_no(OF_BROADCASTER, b.id);
  CHECK_EQ(notify(other, NAME), 1);
  CHECK_EQ(o.calls, 0);
}

static multicast_broadcaster ending;
static multicast ending_multicast;

FUNCTION(destroy_in_call, observer *o) {
  ADD(o->calls, 1);
  CHECK_STATUS(multicast_broadcaster_destroy(ending), MULTICAST_PENDING);
  CHECK_EQ(o->releases, 0);
  expect_no(OF_BROADCASTER, ending.id);
  CHECK(!multicast_is_valid(ending_multicast));
}

TEST(broadcaster_destroyed_inside_an_observers_call_is_pending) {
  observer o = {0, 0}, later = {0, 0}, elsewhere = {0, 0};
  multicast_add_options options = ADD_OPTIONS(.release = release_observer);
  ending = create();
  observe_with(ending, NAME, DELEGATE(destroy_in_call, &o), &options);
  observe_with(ending, NAME, observing(&later), &options);
  observe_with(ending, "Other", observing(&elsewhere), &options);
  ending_multicast = find(ending, NAME);
  CHECK_EQ(notify(ending, NAME), 1);
  CHECK(o.calls == 1 && o.releases == 1);
  CHECK(later.calls == 0 && later.releases == 1);
  CHECK(elsewhere.calls == 0 && elsewhere.releases == 1);
  expect_no(OF_BROADCASTER, ending.id);
}

/* Two threads each notify one name. A third thread, which destroys the broadcaster or unregisters
 * the observers, waits for these calls. */
static gate has_returned = GATE_INIT;
static int64_t waited_result;

THREAD(notify_name, void *name) {
  CHECK_EQ(notify(ending, name), 1);
}

THREAD(destroy_ending, void *unused) {
  waited_result = multicast_broadcaster_destroy(ending);
  gate_open(&has_returned);
}

static char first_name[] = "First", second_name[] = "Second";

TEST(broadcaster_destroy_waits_for_calls_of_all_names_elsewhere) {
  blocker first = BLOCKER_INIT, second = BLOCKER_INIT;
  multicast_add_options options = ADD_OPTIONS(.release = release_blocker);
  pthread_t notifiers[2], destroyer;
  ending = create();
  observe_with(ending, first_name, blocking(&first), &options);
  observe_with(ending, second_name, blocking(&second), &options);
  notifiers[0] = start_thread(notify_name, first_name);
  notifiers[1] = start_thread(notify_name, second_name);
  gate_wait(&first.entered);
  gate_wait(&second.entered);
  destroyer = start_thread(destroy_ending, NULL);
  CHECK(!gate_opens_within(&has_returned, A_WHILE_MS));
  gate_open(&first.let_go);
  CHECK(!gate_opens_within(&has_returned, A_WHILE_MS));
  CHECK(!LOAD(second.has_left));
  gate_open(&second.let_go);
  gate_wait(&has_returned);
  CHECK_OK(waited_result);
  CHECK(LOAD(first.has_left) && LOAD(second.has_left));
  CHECK(LOAD(first.releases) == 1 && LOAD(second.releases) == 1);
  join_thread(destroyer);
  join_thread(notifiers[0]);
  join_thread(notifiers[1]);
}

TEST(broadcaster_is_stale_while_its_destroy_waits) {
  blocker b = BLOCKER_INIT;
  ending = create();
  observe(ending, first_name, blocking(&b));
  pthread_t notifier = start_thread(notify_name, first_name);
  gate_wait(&b.entered);
  pthread_t destroyer = start_thread(destroy_ending, NULL);
  CHECK(!gate_opens_within(&has_returned, A_WHILE_MS));
  CHECK_ERROR(notify(ending, first_name), INVALID_HANDLE);
  CHECK_ERROR(multicast_broadcaster_register(ending, NAME, counter(&calls), NULL, NULL),
              INVALID_HANDLE);
  CHECK_EQ(multicast_broadcaster_multicast(ending, first_name).id, 0);
  gate_open(&b.let_go);
  join_thread(destroyer);
  join_thread(notifier);
  CHECK_OK(waited_result);
}

/* ---- Unregister ------------------------------------------------------------------------------ */

static blocker unregistered = BLOCKER_INIT;

THREAD(unregister_blocker, void *unused) {
  waited_result = multicast_broadcaster_unregister(ending, first_name, blocking(&unregistered));
  gate_open(&has_returned);
}

THREAD(unregister_all_blockers, void *unused) {
  waited_result = multicast_broadcaster_unregister_all(ending, first_name);
  gate_open(&has_returned);
}

THREAD(unregister_context_of_blocker, void *unused) {
  waited_result = multicast_broadcaster_unregister_context(ending, first_name, &unregistered);
  gate_open(&has_returned);
}

static void expect_to_wait_for_the_call(void *(*body)(void *), int64_t result) {
  ending = create();
  observe(ending, first_name, blocking(&unregistered));
  pthread_t notifier = start_thread(notify_name, first_name);
  gate_wait(&unregistered.entered);
  pthread_t waiter = start_thread(body, NULL);
  CHECK(!gate_opens_within(&has_returned, A_WHILE_MS));
  gate_open(&unregistered.let_go);
  gate_wait(&has_returned);
  CHECK(LOAD(unregistered.has_left));
  CHECK_STATUS(waited_result, result);
  join_thread(waiter);
  join_thread(notifier);
}

TEST(broadcaster_unregister_waits_for_the_call_on_another_thread) {
  expect_to_wait_for_the_call(unregister_blocker, MULTICAST_OK);
}

TEST(broadcaster_unregister_all_waits_for_the_call_elsewhere) {
  expect_to_wait_for_the_call(unregister_all_blockers, 1);
}

TEST(broadcaster_unregister_context_waits_for_running_calls) {
  expect_to_wait_for_the_call(unregister_context_of_blocker, 1);
}

static void unregister_itself(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_delegate d = {unregister_itself, context};
  CHECK_STATUS(multicast_broadcaster_unregister(ending, NAME, d), MULTICAST_PENDING);
  CHECK_EQ(((observer *)context)->releases, 0);
}

TEST(broadcaster_unregister_inside_its_own_call_is_pending) {
  observer o = {0, 0};
  multicast_delegate d = {unregister_itself, &o};
  ending = create();
  observe_with(ending, NAME, d, &ADD_OPTIONS(.release = release_observer));
  CHECK_EQ(notify(ending, NAME), 1);
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(notify(ending, NAME), 0);
}

typedef struct crossing {
  multicast target;
  multicast_delegate destroyer;
  multicast_broadcaster broadcaster;
  gate in_destroyer, in_observer;
  bool has_observed;
} crossing;

FUNCTION(destroy_broadcaster, crossing *c) {
  gate_open(&c->in_destroyer);
  gate_wait(&c->in_observer);
  pause_ms(A_WHILE_MS); /* the removal now waits for this call */
  CHECK_STATUS(multicast_destroy(find(c->broadcaster, NAME)), MULTICAST_PENDING);
  CHECK_STATUS(multicast_broadcaster_destroy(c->broadcaster), MULTICAST_PENDING);
  CHECK(!LOAD(c->has_observed));
}

FUNCTION(remove_and_observe, crossing *c) {
  gate_wait(&c->in_destroyer);
  gate_open(&c->in_observer);
  CHECK_OK(multicast_remove(c->target, c->destroyer));
  STORE(c->has_observed, true);
}

TEST(broadcaster_destroy_is_pending_in_call_of_a_gone_multicast) {
  static crossing c = {{0}, {destroy_broadcaster, &c}, {0}, GATE_INIT, GATE_INIT, false};
  invoker i, o;
  c.target = multicast_create();
  add(c.target, c.destroyer);
  c.broadcaster = create();
  observe(c.broadcaster, NAME, DELEGATE(remove_and_observe, &c));
  invoke_in_background(&i, c.target);
  invoke_in_background(&o, find(c.broadcaster, NAME));
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(invoke_finished(&o), 1);
  CHECK(c.has_observed);
}

/* ---- Inside calls and releases --------------------------------------------------------------- */

static void do_anything(void *context, uint32_t event, const void *payload, size_t size) {
  ADD(*(int *)context, 1);
  if (event > 0) return;
  multicast_broadcaster b = create();
  observe(b, NAME, counter(context));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_OK(multicast_broadcaster_destroy(b));
  observe(ending, "New", counter(context));
  observe(ending, NAME, counter(context)); /* not called by the running notification */
  CHECK_EQ(notify(ending, "New"), 1);
  CHECK_EQ(multicast_broadcaster_notify(ending, NAME, 1, NULL, 0), 2);
  CHECK_EQ(multicast_broadcaster_unregister_all(ending, "New"), 1);
}

TEST(broadcaster_may_be_used_in_every_way_inside_observers_call) {
  ending = create();
  observe(ending, NAME, DELEGATE(do_anything, &calls));
  CHECK_EQ(notify(ending, NAME), 1);
  CHECK_EQ(calls, 5);
}

static void use_in_release(void *context) {
  multicast_broadcaster b = *(multicast_broadcaster *)context;
  CHECK_EQ(notify(b, NAME), 0);
  observe(b, "Other", counter(&calls));
  CHECK_EQ(notify(b, "Other"), 1);
  CHECK_EQ(multicast_broadcaster_unregister_all(b, "Other"), 1);
}

TEST_OF_BROADCASTER(broadcaster_may_be_used_inside_a_release) {
  multicast_add_options options = ADD_OPTIONS(.release = use_in_release);
  multicast_delegate d = {count_call, &b};
  observe_with(b, NAME, d, &options);
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, d));
  CHECK_EQ(calls, 1);
  CHECK_ERROR(multicast_broadcaster_register(b, "", d, &options, NULL), INVALID_ARGUMENT);
  CHECK_EQ(calls, 2);
}

static void nest(void *context, uint32_t event, const void *payload, size_t size) {
  ADD(*(int *)context, 1);
  int64_t result = multicast_broadcaster_notify(ending, NAME, event + 1, NULL, 0);
  if (event < 255) {
    CHECK_EQ(result, 1);
  } else {
    CHECK_ERROR(result, LIMIT);
  }
}

TEST(broadcaster_notifications_nested_too_deep_are_limit) {
  ending = create();
  observe(ending, NAME, DELEGATE(nest, &calls));
  CHECK_EQ(notify(ending, NAME), 1);
  CHECK_EQ(calls, 256);
}
