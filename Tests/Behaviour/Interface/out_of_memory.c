/* If an add fails because memory has run out, it changes nothing. Faults/memory.c makes each
 * allocation of each function fail. */

#include "harness.h"

TEST(out_of_memory_in_add_reclaims_what_it_had_taken) {
  /* Every 32nd multicast belongs to the same stripe, and the multicasts of a stripe share their
   * slabs of registrations. */
  multicast m[129];
  int releases = 0;
  multicast_add_options options = ADD_OPTIONS(.release = count_release);
  use_test_allocator();
  for (int i = 0; i < 129; ++i) m[i] = multicast_create();
  for (int i = 32; i < 129; i += 32) {
    add(m[i], counter(&calls));
    add(m[i], counter(&calls)); /* the list has room for one more */
  }
  add(m[0], counter(&calls)); /* the list has no more room */
  for (int i = 0; i < 200; ++i) {
    fail_after = 0; /* allocating the larger list fails */
    CHECK_ERROR(multicast_add(m[0], counter(&calls), NULL, NULL), OUT_OF_MEMORY);
  }
  for (int i = 32; i < 129; i += 32) {
    fail_after = 0; /* the add needs no memory */
    CHECK_OK(multicast_add(m[i], counter(&calls), NULL, NULL));
  }
  fail_after = -1;
  int64_t before = allocated_bytes;
  for (int i = 0; i < 200; ++i) {
    multicast_token token = {1};
    fail_after = 0;
    CHECK_ERROR(multicast_add(m[0], counter(&releases), &options, &token), OUT_OF_MEMORY);
    CHECK_EQ(token.id, 0);
  }
  fail_after = -1;
  CHECK_EQ(releases, 200);
  CHECK_EQ(allocated_bytes, before);
  options.events = 1; /* this option is stored in separate memory */
  for (int i = 0; i < 200; ++i) {
    fail_after = 1; /* the details of the registration are allocated, but not the list */
    CHECK_ERROR(multicast_add(m[0], counter(&releases), &options, NULL), OUT_OF_MEMORY);
  }
  fail_after = -1;
  CHECK_EQ(releases, 400);
  CHECK_EQ(allocated_bytes, before);
  multicast_lifetime ended = multicast_lifetime_create();
  CHECK_OK(multicast_lifetime_end(ended));
  options.lifetime = ended;
  before = allocated_bytes;
  for (int i = 0; i < 200; ++i) {
    CHECK_ERROR(multicast_add(m[0], counter(&releases), &options, NULL), INVALID_HANDLE);
  }
  CHECK_EQ(allocated_bytes, before);
}

TEST_OF_MEMORY(out_of_memory_never_keeps_a_removal_from_working) {
  for (int i = 0; i < 100; ++i) add(m, counter(&calls));
  fail_only_once = false;
  fail_after = 0;
  for (int i = 0; i < 95; ++i) CHECK_OK(multicast_remove_at(m, 0));
  CHECK_EQ(multicast_count(m), 5);
  CHECK_EQ(multicast_remove_all(m), 5);
  CHECK_OK(multicast_destroy(m));
}

TEST(nothing_is_leaked_by_a_thousand_rounds_of_everything) {
  int64_t before = 0;
  use_test_allocator();
  for (int round = 0; round < 1000; ++round) {
    int releases = 0, count = 1 + round % 70;
    multicast_add_options options = ADD_OPTIONS(.release = count_release);
    multicast m = multicast_create();
    for (int i = 0; i < count; ++i) {
      options.priority = i % 3;
      add_with(m, counter(&releases), &options);
    }
    for (int i = 0; i < count / 2; ++i) CHECK_OK(multicast_remove_at(m, (size_t)(i % 2)));
    CHECK_OK(multicast_destroy(m));
    CHECK_EQ(releases, count);
    if (round == 200) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}
