/* An observer is notified from its registration until it is unregistered. */

#include "broadcasters.h"

TEST_OF_BROADCASTER(broadcaster_notifies_the_observers_of_a_name) {
  int first = 0, second = 0;
  observe(b, NAME, counter(&first));
  observe(b, NAME, counter(&second));
  CHECK_EQ(notify(b, NAME), 2);
  CHECK_EQ(notify(b, NAME), 2);
  CHECK(first == 2 && second == 2);
  CHECK_OK(multicast_broadcaster_destroy(b));
}

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

TEST_OF_BROADCASTER(broadcaster_without_queue_calls_on_the_notifying_thread) {
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
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

TEST_OF_BROADCASTER(broadcaster_does_not_notify_who_has_unregistered) {
  int first = 0, second = 0;
  observe(b, NAME, counter(&first));
  observe(b, NAME, counter(&second));
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&first)));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK(first == 0 && second == 1);
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&second)));
  CHECK_EQ(notify(b, NAME), 0);
}

TEST_OF_BROADCASTER(broadcaster_unregister_of_an_unknown_name_is_not_found) {
  CHECK_ERROR(multicast_broadcaster_unregister(b, NAME, counter(&calls)), NOT_FOUND);
  observe(b, NAME, counter(&calls));
  CHECK_ERROR(multicast_broadcaster_unregister(b, "Other", counter(&calls)), NOT_FOUND);
  CHECK_EQ(notify(b, NAME), 1);
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
  CHECK(!multicast_token_is_live(first));
  CHECK(multicast_token_is_live(second));
}

TEST_OF_BROADCASTER(broadcaster_unregister_releases_the_context) {
  observer o = {0, 0};
  observe_with(b, NAME, observing(&o), &ADD_OPTIONS(.release = release_observer));
  CHECK_EQ(o.releases, 0);
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, observing(&o)));
  CHECK_EQ(o.releases, 1);
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

TEST(broadcaster_unregister_all_of_a_name_nobody_registered_is_0) {
  CHECK_EQ(multicast_broadcaster_unregister_all(create(), NAME), 0);
}

TEST_OF_BROADCASTER(broadcaster_notifies_twice_who_registers_twice) {
  observe(b, NAME, counter(&calls));
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 2);
  CHECK_EQ(calls, 2);
}

TEST_OF_BROADCASTER(broadcaster_notifies_unique_observer_once_and_last) {
  char text[16] = "";
  letter a = {text, 'a'}, other = {text, 'b'};
  multicast_add_options options = ADD_OPTIONS(.flags = MULTICAST_UNIQUE);
  observe_with(b, NAME, writer(&a), &options);
  observe_with(b, NAME, writer(&other), &options);
  observe_with(b, NAME, writer(&a), &options);
  CHECK_EQ(notify(b, NAME), 2);
  CHECK_TEXT(text, "ba");
}

TEST_OF_BROADCASTER(broadcaster_unique_is_about_one_name) {
  multicast_add_options options = ADD_OPTIONS(.flags = MULTICAST_UNIQUE);
  observe_with(b, NAME, counter(&calls), &options);
  observe_with(b, "Other", counter(&calls), &options);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(notify(b, "Other"), 1);
}

TEST_OF_BROADCASTER(broadcaster_registers_without_a_token_wanted) {
  CHECK_OK(multicast_broadcaster_register(b, NAME, counter(&calls), NULL, NULL));
  CHECK_ERROR(multicast_broadcaster_register(b, "", counter(&calls), NULL, NULL), INVALID_ARGUMENT);
  CHECK_EQ(notify(b, NAME), 1);
}
