/* An observer is notified from the time it is registered until it is unregistered. */

#include "broadcasters.h"

static char payload_sent[] = "a payload";

static void expect_what_was_sent(void *context, uint32_t event, const void *payload,
                                 size_t size) {
  CHECK_EQ(event, 7);
  CHECK(payload == payload_sent);
  CHECK_EQ(size, sizeof payload_sent);
  ADD(*(int *)context, 1);
}

TEST_OF_BROADCASTER(broadcaster_passes_event_payload_and_size_on) {
  observe(b, NAME, DELEGATE(expect_what_was_sent, &calls));
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 7, payload_sent, sizeof payload_sent), 1);
  CHECK_EQ(calls, 1);
}

TEST_OF_BROADCASTER(broadcaster_notify_of_a_name_nobody_registered_is_0) {
  CHECK_EQ(notify(b, NAME), 0);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, "UpdateTitl"), 0);
  CHECK_EQ(notify(b, "updateTitle"), 0);
  CHECK_EQ(multicast_broadcaster_notify(b, "Other", 0, payload_sent, 1), 0);
  CHECK_EQ(calls, 0);
}

TEST(broadcaster_asked_for_unknown_names_takes_no_memory) {
  use_test_allocator();
  multicast_broadcaster b = create();
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
  int64_t before = allocated_bytes;
  for (int i = 0; i < 10000; ++i) {
    const char *name = numbered("unknown", i);
    CHECK_EQ(notify(b, name), 0);
    CHECK_EQ(multicast_broadcaster_unregister_all(b, name), 0);
    CHECK_ERROR(multicast_broadcaster_unregister(b, name, counter(&calls)), NOT_FOUND);
  }
  CHECK_EQ(allocated_bytes, before);
}

TEST_OF_BROADCASTER(broadcaster_notify_of_size_without_payload_is_invalid) {
  observe(b, NAME, counter(&calls));
  CHECK_ERROR(multicast_broadcaster_notify(b, NAME, 0, NULL, 1), INVALID_ARGUMENT);
  CHECK_EQ(calls, 0);
}

TEST_OF_BROADCASTER(broadcaster_unregister_of_an_unknown_observer_is_not_found) {
  int other = 0;
  observe(b, NAME, counter(&calls));
  multicast_delegate same_context = {.function = count_call_too, .context = &calls};
  multicast_delegate same_function = counter(&other);
  CHECK_ERROR(multicast_broadcaster_unregister(b, NAME, same_context), NOT_FOUND);
  CHECK_ERROR(multicast_broadcaster_unregister(b, NAME, same_function), NOT_FOUND);
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&calls)));
  CHECK_ERROR(multicast_broadcaster_unregister(b, NAME, counter(&calls)), NOT_FOUND);
}

TEST_OF_BROADCASTER(broadcaster_unregister_removes_the_first_of_equal_observers) {
  multicast_token first = observe(b, NAME, counter(&calls));
  multicast_token second = observe(b, NAME, counter(&calls));
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&calls)));
  CHECK(!multicast_token_is_valid(first));
  CHECK(multicast_token_is_valid(second));
}

TEST_OF_BROADCASTER(broadcaster_unregister_all_counts_and_leaves_other_names) {
  observer o = {0, 0};
  multicast_add_options options = ADD_OPTIONS(.release = release_observer);
  for (int i = 0; i < 10; ++i) observe_with(b, NAME, observing(&o), &options);
  observe(b, "Other", counter(&calls));
  CHECK_EQ(multicast_broadcaster_unregister_all(b, NAME), 10);
  CHECK_EQ(o.releases, 10);
  CHECK_EQ(multicast_broadcaster_unregister_all(b, NAME), 0);
  CHECK_EQ(notify(b, NAME), 0);
  CHECK_EQ(notify(b, "Other"), 1);
}

TEST_OF_BROADCASTER(broadcaster_unique_is_about_one_name) {
  multicast_add_options options = ADD_OPTIONS(.flags = MULTICAST_UNIQUE);
  observe_with(b, NAME, counter(&calls), &options);
  observe_with(b, "Other", counter(&calls), &options);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(notify(b, "Other"), 1);
}
