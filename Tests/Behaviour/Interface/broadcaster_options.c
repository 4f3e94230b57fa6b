/* Observers accept the same options as delegates. */

#include "broadcasters.h"

TEST_OF_BROADCASTER(broadcaster_token_is_that_of_the_registration) {
  multicast_token token = observe(b, NAME, counter(&calls));
  CHECK(multicast_token_is_valid(token));
  CHECK_OK(multicast_token_pause(token));
  CHECK_EQ(notify(b, NAME), 0);
  CHECK_OK(multicast_token_resume(token));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK(!multicast_token_is_valid(token));
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
  observe_with(b, NAME, observing(&o), &options); /* `lock` will report that its context is dead */
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK(o.calls == 1 && o.releases == 2 && unlocks == 1);
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
