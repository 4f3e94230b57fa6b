/* Observers register with the same options as delegates. */

#include "broadcasters.h"

TEST_OF_BROADCASTER(broadcaster_token_is_that_of_the_registration) {
  multicast_token token = observe(b, NAME, counter(&calls));
  CHECK(multicast_token_is_live(token));
  CHECK_OK(multicast_token_pause(token));
  CHECK_EQ(notify(b, NAME), 0);
  CHECK_OK(multicast_token_resume(token));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK(!multicast_token_is_live(token));
  CHECK_EQ(notify(b, NAME), 0);
  CHECK_ERROR(multicast_broadcaster_unregister(b, NAME, counter(&calls)), NOT_FOUND);
  CHECK_OK(multicast_token_remove_nowait(observe(b, NAME, counter(&calls))));
  CHECK_OK(multicast_token_remove_within(observe(b, NAME, counter(&calls)), 0));
  token = observe(b, NAME, counter(&calls));
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&calls)));
  CHECK_ERROR(multicast_token_remove(token), INVALID_HANDLE);
}

static void remove_itself(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_EQ(multicast_token_current().id, *(uint64_t *)context);
  CHECK_STATUS(multicast_token_remove(multicast_token_current()), MULTICAST_PENDING);
}

TEST_OF_BROADCASTER(broadcaster_token_is_current_in_the_call_of_its_observer) {
  uint64_t token;
  token = observe(b, NAME, DELEGATE(remove_itself, &token)).id;
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(notify(b, NAME), 0);
}

TEST_OF_BROADCASTER(broadcaster_notifies_by_priority_then_by_registration) {
  char text[16] = "";
  letter a = {text, 'a'}, second = {text, 'b'}, c = {text, 'c'}, d = {text, 'd'};
  multicast_add_options options = ADD_OPTIONS(.priority = -1);
  observe_with(b, NAME, writer(&d), &options);
  observe(b, NAME, writer(&second));
  observe(b, NAME, writer(&c));
  options.priority = 5;
  observe_with(b, NAME, writer(&a), &options);
  CHECK_EQ(notify(b, NAME), 4);
  CHECK_TEXT(text, "abcd");
}

TEST_OF_BROADCASTER(broadcaster_notifies_once_who_registers_for_once) {
  observer o = {0, 0};
  multicast_add_options options = ADD_OPTIONS(.release = release_observer, .flags = MULTICAST_ONCE);
  multicast_token token = observe_with(b, NAME, observing(&o), &options);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(notify(b, NAME), 0);
  CHECK(o.calls == 1 && o.releases == 1);
  CHECK(!multicast_token_is_live(token));
}

TEST_OF_BROADCASTER(broadcaster_notifies_of_wanted_events_only) {
  observe_with(b, NAME, counter(&calls), &ADD_OPTIONS(.events = UINT64_C(1) << 3));
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 2, NULL, 0), 0);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 3, NULL, 0), 1);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 64, NULL, 0), 1);
  CHECK_EQ(calls, 2);
}

TEST(broadcaster_observers_leave_all_names_with_their_lifetime) {
  enum { NAMES = 20 };
  observer o = {0, 0};
  multicast_broadcaster b = create(), other = create();
  multicast_lifetime l = multicast_lifetime_create();
  multicast_add_options options = ADD_OPTIONS(.release = release_observer, .lifetime = l);
  for (int i = 0; i < NAMES; ++i) {
    observe_with(b, numbered(NAME, i), observing(&o), &options);
    observe_with(other, numbered(NAME, i), observing(&o), &options);
    observe(b, numbered(NAME, i), counter(&calls));
  }
  CHECK_EQ(multicast_lifetime_count(l), 2 * NAMES);
  for (int i = 0; i < NAMES; ++i) CHECK_EQ(notify(b, numbered(NAME, i)), 2);
  CHECK_OK(multicast_lifetime_end(l));
  CHECK_EQ(o.releases, 2 * NAMES);
  for (int i = 0; i < NAMES; ++i) {
    CHECK_EQ(notify(b, numbered(NAME, i)), 1);
    CHECK_EQ(notify(other, numbered(NAME, i)), 0);
  }
  CHECK_ERROR(multicast_broadcaster_register(b, NAME, observing(&o), &options, NULL),
              INVALID_HANDLE);
  CHECK_EQ(o.releases, 2 * NAMES + 1);
  CHECK_EQ(o.calls, NAMES);
}

static void *lock_observer(void *context) {
  return LOAD(((observer *)context)->releases) == 0 ? context : NULL;
}

static int unlocks;
static void unlock_observer(void *strong) {
  ADD(unlocks, 1);
}

TEST_OF_BROADCASTER(broadcaster_registers_with_options_of_every_kind_at_once) {
  observer o = {0, 0};
  multicast_add_options options = ADD_OPTIONS(.release = release_observer), before;
  multicast_lifetime l = multicast_lifetime_create();
  multicast_queue q = create_queue();
  options.flags = MULTICAST_ONCE | MULTICAST_UNIQUE | MULTICAST_LATEST;
  options.priority = INT32_MIN;
  options.events = 1;
  options.lifetime = l;
  options.queue = q;
  options.lock = lock_observer;
  options.unlock = unlock_observer;
  memcpy(&before, &options, sizeof options);
  observe_with(b, NAME, observing(&o), &options);
  CHECK(memcmp(&before, &options, sizeof options) == 0);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 1, NULL, 0), 0);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(o.calls, 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(o.calls == 1 && o.releases == 1 && unlocks == 1);
  CHECK_EQ(multicast_lifetime_count(l), 0);
  observe_with(b, NAME, observing(&o), &options); /* `lock` will report it as dead */
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK(o.calls == 1 && o.releases == 2 && unlocks == 1);
}

TEST_OF_BROADCASTER(broadcaster_register_of_bad_options_is_invalid_argument) {
  observer o = {0, 0};
  multicast_add_options options;
  for (int which = 0; which < 4; ++which) {
    multicast_token token = {77};
    options = ADD_OPTIONS(.release = release_observer);
    if (which == 0) options.struct_size = 0;
    if (which == 1) options.struct_size = 1025;
    if (which == 2) options.flags = 0x10;
    if (which == 3) options.reserved = 1;
    CHECK_ERROR(multicast_broadcaster_register(b, NAME, observing(&o), &options, &token),
                INVALID_ARGUMENT);
    CHECK_EQ(token.id, 0);
  }
  CHECK_EQ(o.releases, 0); /* the options could not be read */
  options = ADD_OPTIONS(.release = release_observer);
  options.lock = lock_observer;
  CHECK_ERROR(multicast_broadcaster_register(b, NAME, observing(&o), &options, NULL),
              INVALID_ARGUMENT);
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(notify(b, NAME), 0);
}

TEST_OF_BROADCASTER(broadcaster_register_without_a_function_releases) {
  observer o = {0, 0};
  multicast_add_options options = ADD_OPTIONS(.release = release_observer);
  multicast_token token = {77};
  CHECK_ERROR(multicast_broadcaster_register(b, NAME, DELEGATE(NULL, &o), &options, &token),
              INVALID_ARGUMENT);
  CHECK_EQ(token.id, 0);
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(notify(b, NAME), 0);
}

typedef struct newer_options {
  multicast_add_options known;
  uint64_t unknown[20];
} newer_options;

TEST(broadcaster_registers_for_newer_callers) {
  for (int with_queue = 0; with_queue < 2; ++with_queue) {
    observer o = {0, 0};
    multicast_queue q = create_queue();
    multicast_broadcaster b = with_queue ? create_on(q) : create();
    newer_options newer = {0};
    newer.known.struct_size = sizeof newer;
    newer.known.release = release_observer;
    observe_with(b, NAME, observing(&o), &newer.known);
    CHECK_EQ(notify(b, NAME), 1);
    CHECK_EQ(o.calls, !with_queue);
    CHECK_EQ(multicast_queue_run(q, 0), with_queue);
    CHECK_EQ(o.calls, 1);
    newer.unknown[19] = 1;
    CHECK_ERROR(multicast_broadcaster_register(b, NAME, observing(&o), &newer.known, NULL),
                INVALID_ARGUMENT);
    CHECK_EQ(o.releases, 0);
    CHECK_OK(multicast_broadcaster_destroy(b));
    CHECK_EQ(o.releases, 1);
    CHECK_OK(multicast_queue_destroy(q));
  }
}
