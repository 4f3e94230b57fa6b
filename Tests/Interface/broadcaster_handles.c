/* Broadcaster handles that are null, stale, forged or of another kind. */

#include "broadcasters.h"

static void expect_no_broadcaster(uint64_t id) {
  multicast_broadcaster b = {id};
  expect_stale(b);
}

TEST(broadcaster_of_null_is_invalid_before_anything_exists) { expect_no_broadcaster(0); }

TEST(broadcaster_of_null_is_invalid) {
  create();
  expect_no_broadcaster(0);
}

TEST_OF_MULTICAST(broadcaster_handles_of_another_kind_are_invalid) {
  multicast_broadcaster b = create();
  multicast_token token = observe(b, NAME, counter(&calls));
  expect_no_broadcaster(m.id);
  expect_no_broadcaster(token.id);
  expect_no_broadcaster(find(b, NAME).id);
  expect_no_broadcaster(multicast_lifetime_create().id);
  expect_no_broadcaster(create_queue().id);
  multicast as_multicast = {b.id};
  multicast_queue as_queue = {b.id};
  multicast_token as_token = {b.id};
  multicast_lifetime as_lifetime = {b.id};
  CHECK(!multicast_is_valid(as_multicast));
  CHECK_ERROR(multicast_invoke(as_multicast, 0, NULL, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_destroy(as_multicast), INVALID_HANDLE);
  CHECK(!multicast_token_is_live(as_token));
  CHECK_ERROR(multicast_token_remove(as_token), INVALID_HANDLE);
  CHECK_ERROR(multicast_lifetime_end(as_lifetime), INVALID_HANDLE);
  CHECK_ERROR(multicast_queue_run(as_queue, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_queue_destroy(as_queue), INVALID_HANDLE);
  CHECK_EQ(notify(b, NAME), 1);
}

TEST_OF_BROADCASTER(broadcaster_handles_that_are_forged_are_invalid) {
  multicast_token token = observe(b, NAME, counter(&calls));
  uint64_t random = UINT64_C(0x9E3779B97F4A7C15);
  CHECK_OK(multicast_broadcaster_destroy(create())); /* leaves a vacant slot */
  expect_no_broadcaster(UINT64_MAX);
  for (int bit = 0; bit < 64; ++bit) {
    expect_no_broadcaster(b.id ^ (UINT64_C(1) << bit));
    expect_no_broadcaster(UINT64_C(1) << bit);
  }
  for (int i = 0; i < 20000; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    if (random != b.id) expect_no_broadcaster(random);
  }
  for (int i = 0; i < 4096; ++i) {
    expect_no_broadcaster((random & ~UINT64_C(0x3FFFFFFF)) | (uint64_t)i);
    expect_no_broadcaster((uint64_t)i);
  }
  for (int i = 0; i < 16; ++i) { /* the kind is in four bits above the index */
    uint64_t id = (b.id & ~(UINT64_C(15) << 26)) | (uint64_t)i << 26;
    if (id != b.id) expect_no_broadcaster(id);
  }
  CHECK(multicast_token_is_live(token));
  CHECK_EQ(notify(b, NAME), 1);
}

TEST(broadcaster_default_is_not_reached_by_forged_handles) {
  multicast_broadcaster b = multicast_broadcaster_default();
  observe(b, NAME, counter(&calls));
  for (int bit = 0; bit < 64; ++bit) expect_no_broadcaster(b.id ^ (UINT64_C(1) << bit));
  CHECK_EQ(notify(b, NAME), 1);
}

TEST(broadcaster_with_a_bad_handle_and_a_bad_name_is_an_error) {
  static const multicast_broadcaster none = {0};
  observer o = {0, 0};
  multicast_add_options options = ADD_OPTIONS(.release = release_observer);
  CHECK(multicast_broadcaster_register(none, NULL, observing(&o), &options, NULL) < 0);
  CHECK_EQ(o.releases, 1);
  CHECK(multicast_broadcaster_unregister(none, NULL, observing(&o)) < 0);
  CHECK(multicast_broadcaster_unregister_all(none, NULL) < 0);
  CHECK(notify(none, NULL) < 0);
  CHECK_EQ(multicast_broadcaster_multicast(none, NULL).id, 0);
}
