/* A queue is as its options say, and options that are not valid create none. */

#include "notes.h"
#include "queues.h"

TEST(queue_of_no_options_works) {
  multicast_queue q = multicast_queue_create(NULL);
  multicast m = multicast_create();
  CHECK(q.id != 0);
  CHECK_TEXT(figures(q), "");
  add_queued(m, noting('a'), q);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "a1");
  CHECK_OK(multicast_queue_destroy(q));
}

TEST(queue_of_default_options_holds_1024_calls_and_refuses) {
  multicast_queue_options options = multicast_queue_options_default();
  multicast_queue q = multicast_queue_create(&options), of_null = default_queue();
  multicast m = multicast_create(), other = multicast_create();
  add_queued(m, counter(&calls), q);
  add_queued(other, counter(&calls), of_null);
  for (int i = 0; i < 1030; ++i) {
    CHECK_EQ(invoke_number(m, i), i < 1024);
    CHECK_EQ(invoke_number(other, i), i < 1024);
  }
  CHECK_TEXT(figures(q), "pending 1024, queued 1024, refused 6");
  CHECK_TEXT(figures(of_null), "pending 1024, queued 1024, refused 6");
}

TEST_OF_MULTICAST(queue_options_are_read_during_the_call_only) {
  multicast_queue_options options = QUEUE_OPTIONS(.capacity = 2);
  multicast_queue q = multicast_queue_create(&options);
  memset(&options, 0xFF, sizeof options);
  add_queued(m, noting('a'), q);
  CHECK_EQ(invoke_number(m, 1) + invoke_number(m, 2) + invoke_number(m, 3), 2);
}

TEST(queue_options_of_a_bad_struct_size_create_none) {
  multicast_queue_options options = multicast_queue_options_default();
  for (options.struct_size = 0; options.struct_size < 40; ++options.struct_size)
    CHECK_EQ(multicast_queue_create(&options).id, 0);
  options.struct_size = 1025;
  CHECK_EQ(multicast_queue_create(&options).id, 0);
  options.struct_size = UINT32_MAX;
  CHECK_EQ(multicast_queue_create(&options).id, 0);
}

TEST(queue_options_of_a_newer_caller_are_fine_if_the_rest_is_zero) {
  struct {
    multicast_queue_options known;
    uint32_t unknown[20];
  } newer;
  memset(&newer, 0, sizeof newer);
  newer.known.struct_size = sizeof newer;
  newer.known.capacity = 1;
  CHECK(multicast_queue_create(&newer.known).id != 0);
  newer.unknown[0] = 1;
  CHECK_EQ(multicast_queue_create(&newer.known).id, 0);
  newer.unknown[0] = 0;
  newer.unknown[19] = UINT32_C(1) << 31;
  CHECK_EQ(multicast_queue_create(&newer.known).id, 0);
}

TEST(queue_options_of_an_unknown_overflow_create_none) {
  multicast_queue_options options = multicast_queue_options_default();
  static const int bad[] = {3, 4, 256, -1, INT32_MIN, INT32_MAX};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
    memcpy(&options.overflow, &bad[i], sizeof bad[i]);
    CHECK_EQ(multicast_queue_create(&options).id, 0);
  }
}

TEST(queue_of_more_than_2_to_the_24_calls_is_none) {
  multicast_queue_options options = QUEUE_OPTIONS(.capacity = (UINT32_C(1) << 24) + 1);
  CHECK_EQ(multicast_queue_create(&options).id, 0);
  options.capacity = UINT32_MAX;
  CHECK_EQ(multicast_queue_create(&options).id, 0);
}

TEST(queue_of_2_to_the_24_calls_works) {
  multicast_queue q = queue_with(UINT32_C(1) << 24, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create();
  add_queued(m, noting('a'), q);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "a1");
  CHECK_OK(multicast_queue_destroy(q));
}

TEST(queue_takes_64_to_192_bytes_for_each_call_at_once) {
  use_test_allocator();
  CHECK_OK(multicast_queue_destroy(default_queue()));
  int64_t before = allocated_bytes;
  multicast_queue q = queue_with(10000, MULTICAST_OVERFLOW_REFUSE);
  int64_t bytes = allocated_bytes - before;
  CHECK(bytes >= INT64_C(10000) * 64 && bytes <= INT64_C(10000) * 192 + 256);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_EQ(allocated_bytes, before);
}

TEST(queue_handles_differ) {
  multicast_queue q[50];
  for (int i = 0; i < 50; ++i) {
    q[i] = default_queue();
    for (int j = 0; j < i; ++j) CHECK(q[j].id != q[i].id);
  }
  CHECK_OK(multicast_queue_destroy(q[20]));
  CHECK(default_queue().id != q[20].id);
}
