/* Tests the options of a broadcaster, and the default queue for observers without a queue of their
 * own. */

#include "broadcasters.h"

/* ---- Options --------------------------------------------------------------------------------- */

static void expect_none_created(const multicast_broadcaster_options *options) {
  CHECK_EQ(multicast_broadcaster_create(options).id, 0);
}

TEST(broadcaster_options_with_flags_create_none) {
  for (int bit = 0; bit < 32; ++bit) {
    expect_none_created(&BROADCASTER_OPTIONS(.flags = 1u << bit));
  }
}

/* ---- The default queue ----------------------------------------------------------------------- */

TEST(broadcaster_queue_gets_the_calls_of_observers_that_name_none) {
  multicast_queue q = create_queue(), own = create_queue();
  multicast_broadcaster b = create_on(q);
  multicast_add_options options = multicast_add_options_default();
  int with_defaults = 0, with_options = 0, with_queue = 0;
  observe(b, NAME, counter(&with_defaults));
  observe_with(b, NAME, counter(&with_options), &options);
  options.queue = own;
  observe_with(b, NAME, counter(&with_queue), &options);
  CHECK_EQ(notify(b, NAME), 3);
  CHECK(with_defaults == 0 && with_options == 0 && with_queue == 0);
  CHECK_EQ(multicast_queue_run(own, 0), 1);
  CHECK(with_defaults == 0 && with_options == 0 && with_queue == 1);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK(with_defaults == 1 && with_options == 1 && with_queue == 1);
}

TEST(broadcaster_queue_is_not_for_adds_to_the_multicast) {
  multicast_queue q = create_queue();
  multicast_broadcaster b = create_on(q);
  int added = 0, registered = 0;
  add(find(b, NAME), counter(&added));
  observe(b, NAME, counter(&registered));
  CHECK_EQ(multicast_invoke(find(b, NAME), 0, NULL, 0), 2);
  CHECK(added == 1 && registered == 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(registered, 1);
}

static char payload_sent[] = "a payload";

TEST(broadcaster_queue_stays_and_makes_no_call_after_destroy) {
  multicast_queue q = create_queue();
  multicast_broadcaster b = create_on(q), next;
  observer o = {0, 0};
  observe_with(b, NAME, observing(&o), &ADD_OPTIONS(.release = release_observer));
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 0, payload_sent, sizeof payload_sent), 1);
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK(o.calls == 0 && o.releases == 1);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  next = create_on(q);
  observe(next, NAME, counter(&calls));
  CHECK_EQ(notify(next, NAME), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(o.calls == 0 && calls == 1);
}

TEST(broadcaster_with_a_destroyed_queue_needs_own_queues) {
  multicast_queue q = create_queue(), own = create_queue();
  multicast_broadcaster b = create_on(q);
  observer before = {0, 0}, after = {0, 0}, elsewhere = {0, 0};
  multicast_add_options options = ADD_OPTIONS(.release = release_observer);
  multicast_token token = {77};
  observe_with(b, NAME, observing(&before), &options);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK(before.calls == 0 && before.releases == 1);
  CHECK_EQ(notify(b, NAME), 0);
  CHECK_ERROR(multicast_broadcaster_register(b, NAME, observing(&after), &options, &token),
              INVALID_HANDLE);
  CHECK_EQ(token.id, 0);
  CHECK(after.calls == 0 && after.releases == 1);
  CHECK_ERROR(multicast_broadcaster_register(b, NAME, counter(&calls), NULL, NULL), INVALID_HANDLE);
  CHECK_ERROR(multicast_broadcaster_register(b, "New", counter(&calls), NULL, NULL),
              INVALID_HANDLE);
  options.queue = own;
  observe_with(b, NAME, observing(&elsewhere), &options);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(multicast_queue_run(own, 0), 1);
  CHECK_EQ(elsewhere.calls, 1);
  add(find(b, NAME), counter(&calls));
  CHECK_EQ(notify(b, NAME), 2);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK_EQ(elsewhere.releases, 1);
}
