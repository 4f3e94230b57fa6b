/* Each name of a broadcaster has one multicast until that multicast is destroyed. */

#include "broadcasters.h"

TEST_OF_BROADCASTER(broadcaster_multicast_is_where_observers_register) {
  multicast m = find(b, NAME);
  multicast_token token = observe(b, NAME, counter(&calls));
  CHECK(multicast_contains(m, counter(&calls)));
  CHECK_OK(multicast_remove(m, counter(&calls)));
  CHECK(!multicast_token_is_valid(token));
  CHECK_EQ(notify(b, NAME), 0);
  add(m, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&calls)));
  CHECK_EQ(multicast_count(m), 0);
}

TEST_OF_BROADCASTER(broadcaster_makes_a_new_multicast_for_one_that_was_destroyed) {
  observer o = {0, 0};
  multicast old = find(b, NAME), new;
  observe_with(b, NAME, observing(&o), &ADD_OPTIONS(.release = release_observer));
  CHECK_OK(multicast_destroy(old));
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(notify(b, NAME), 0);
  CHECK_EQ(multicast_broadcaster_unregister_all(b, NAME), 0);
  CHECK_ERROR(multicast_broadcaster_unregister(b, NAME, observing(&o)), NOT_FOUND);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(calls, 1);
  new = find(b, NAME);
  CHECK(new.id != old.id);
  CHECK_EQ(multicast_invoke(new, 0, NULL, 0), 1);
  CHECK_ERROR(multicast_invoke(old, 0, NULL, 0), INVALID_HANDLE);
  CHECK_OK(multicast_broadcaster_destroy(b));
}

TEST(broadcaster_memory_stays_as_its_multicasts_are_destroyed) {
  int64_t before = 0;
  use_test_allocator();
  multicast_broadcaster b = create();
  for (int i = 0; i < 5000; ++i) {
    observe(b, NAME, counter(&calls));
    CHECK_OK(multicast_destroy(find(b, NAME)));
    if (i == 1000) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
}

TEST(register_under_ended_lifetime_leaves_name_its_multicast) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  multicast before = multicast_broadcaster_multicast(b, "door");
  int calls = 0;
  multicast_add_options options = ADD_OPTIONS(.lifetime = multicast_lifetime_create());
  CHECK_OK(multicast_lifetime_end(options.lifetime));
  CHECK_OK(multicast_destroy(before));
  CHECK_ERROR(multicast_broadcaster_register(b, "door", counter(&calls), &options, NULL),
              INVALID_HANDLE);
  CHECK_EQ(multicast_broadcaster_multicast(b, "door").id, before.id);
}
