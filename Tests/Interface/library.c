/* The version, the texts of statuses, initializers and the allocator. */

#include "harness.h"

TEST(version_is_that_of_the_header) {
  CHECK_EQ(multicast_version(), MULTICAST_VERSION);
  CHECK_EQ(multicast_version() >> 16, MULTICAST_VERSION_MAJOR);
}

TEST(status_names_are_the_identifiers) {
#define CHECK_NAME(name, value, message) CHECK_TEXT(multicast_status_name(name), #name);
  MULTICAST_STATUS_MAP(CHECK_NAME)
#undef CHECK_NAME
}

TEST(status_messages_are_those_of_the_map) {
#define CHECK_MESSAGE(name, value, message) CHECK_TEXT(multicast_status_message(name), message);
  MULTICAST_STATUS_MAP(CHECK_MESSAGE)
#undef CHECK_MESSAGE
}

TEST(status_map_has_the_numbers_of_the_enum) {
#define CHECK_NUMBER(name, value, message) CHECK_EQ(name, value);
  MULTICAST_STATUS_MAP(CHECK_NUMBER)
#undef CHECK_NUMBER
}

TEST(status_texts_of_other_numbers_are_not_null) {
  CHECK_TEXT(multicast_status_name((multicast_status)12345), "MULTICAST_UNKNOWN_STATUS");
  CHECK_TEXT(multicast_status_message((multicast_status)-12345),
             "not a status of this library");
}

/* The negative result of a function that counts has 64 bits. */
TEST(status_texts_are_those_of_all_64_bits) {
  int64_t count = multicast_count((multicast)MULTICAST_NONE);
  CHECK_TEXT(multicast_status_name(count), "MULTICAST_ERROR_INVALID_HANDLE");
  CHECK_TEXT(multicast_status_name(INT64_C(1) << 32), "MULTICAST_UNKNOWN_STATUS");
  CHECK_TEXT(multicast_status_name((INT64_C(1) << 32) - 10), "MULTICAST_UNKNOWN_STATUS");
  CHECK_TEXT(multicast_status_name(-(INT64_C(1) << 32)), "MULTICAST_UNKNOWN_STATUS");
  CHECK_TEXT(multicast_status_name(INT64_MIN), "MULTICAST_UNKNOWN_STATUS");
  CHECK_TEXT(multicast_status_message(INT64_C(1) << 40), "not a status of this library");
  CHECK_TEXT(multicast_status_message((INT64_C(1) << 32) + 1), "not a status of this library");
}

TEST(static_initializers_are_what_the_functions_fill_in) {
  static multicast_add_options add_options = MULTICAST_ADD_OPTIONS_INIT;
  static multicast_queue_options queue_options = MULTICAST_QUEUE_OPTIONS_INIT;
  static multicast_queue_stats stats = MULTICAST_QUEUE_STATS_INIT;
  static multicast_broadcaster_options broadcaster_options = MULTICAST_BROADCASTER_OPTIONS_INIT;
  static multicast_allocator allocator = MULTICAST_ALLOCATOR_INIT;
  static multicast_registration registration = MULTICAST_REGISTRATION_INIT;
  static multicast_invocation invocation = MULTICAST_INVOCATION_INIT;
  static multicast_outcome outcome = MULTICAST_OUTCOME_INIT;
  /* Of a struct that has grown, callers of version 1.0 have the first part. */
#define CHECK_INIT(given, type, smallest)                        \
  do {                                                           \
    type filled, inlined = type##_default();                     \
    memset(&filled, 0xFF, sizeof filled);                        \
    CHECK_OK(type##_init(&filled, sizeof filled));               \
    CHECK_EQ((given).struct_size, sizeof filled);                \
    CHECK(memcmp(&(given), &filled, sizeof filled) == 0);        \
    CHECK(memcmp(&inlined, &filled, sizeof filled) == 0);        \
    CHECK_STATUS(type##_init(&filled, (smallest) - 1), MULTICAST_ERROR_INVALID_ARGUMENT);    \
    CHECK_STATUS(type##_init(&filled, 1025), MULTICAST_ERROR_INVALID_ARGUMENT);              \
    CHECK_STATUS(type##_init(NULL, sizeof filled), MULTICAST_ERROR_INVALID_ARGUMENT);        \
  } while (0)
  CHECK_INIT(add_options, multicast_add_options, 64);
  CHECK_INIT(queue_options, multicast_queue_options, 40);
  CHECK_INIT(stats, multicast_queue_stats, sizeof stats);
  CHECK_INIT(broadcaster_options, multicast_broadcaster_options, sizeof broadcaster_options);
  CHECK_INIT(allocator, multicast_allocator, sizeof allocator);
  CHECK_INIT(registration, multicast_registration, sizeof registration);
  CHECK_INIT(invocation, multicast_invocation, sizeof invocation);
  CHECK_INIT(outcome, multicast_outcome, sizeof outcome);
#undef CHECK_INIT
}

TEST(none_is_the_handle_of_nothing) {
  multicast m = MULTICAST_NONE;
  multicast_token t = MULTICAST_NONE;
  multicast_lifetime l = MULTICAST_NONE;
  multicast_queue q = MULTICAST_NONE;
  multicast_broadcaster b = MULTICAST_NONE;
  CHECK(m.id == 0 && t.id == 0 && l.id == 0 && q.id == 0 && b.id == 0);
  CHECK(MULTICAST_FOREVER == UINT64_MAX);
}

TEST(options_init_fills_in_defaults) {
  multicast_add_options options, inlined = multicast_add_options_default();
  memset(&options, 0xFF, sizeof options);
  CHECK_OK(multicast_add_options_init(&options, sizeof options));
  CHECK_EQ(options.struct_size, sizeof options);
  CHECK(memcmp(&options, &inlined, sizeof options) == 0);
}

TEST(options_init_serves_newer_callers) {
  union {
    multicast_add_options options;
    unsigned char bytes[256];
  } newer;
  memset(&newer, 0xFF, sizeof newer);
  CHECK_OK(multicast_add_options_init(&newer.options, 200));
  CHECK_EQ(newer.options.struct_size, 200);
  CHECK_EQ(newer.bytes[199], 0);
  CHECK_EQ(newer.bytes[200], 0xFF);
}

TEST(options_init_refuses_other_sizes) {
  multicast_add_options options;
  options.struct_size = 7;
  CHECK_STATUS(multicast_add_options_init(&options, 63), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_add_options_init(&options, 0), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_add_options_init(&options, 1025), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_add_options_init(&options, SIZE_MAX), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(options.struct_size, 7);
}

TEST(queue_options_init_fills_in_defaults_and_refuses_other_sizes) {
  multicast_queue_options options, inlined = multicast_queue_options_default();
  union {
    multicast_queue_options options;
    unsigned char bytes[256];
  } newer;
  memset(&options, 0xFF, sizeof options);
  CHECK_STATUS(multicast_queue_options_init(&options, 11), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_queue_options_init(&options, 0), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_queue_options_init(&options, 1025), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_queue_options_init(NULL, 12), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(options.struct_size, UINT32_MAX);
  CHECK_OK(multicast_queue_options_init(&options, sizeof options));
  CHECK(memcmp(&options, &inlined, sizeof options) == 0);
  memset(&newer, 0xFF, sizeof newer);
  CHECK_OK(multicast_queue_options_init(&newer.options, 200));
  CHECK_EQ(newer.options.struct_size, 200);
  CHECK(newer.bytes[4] == 0 && newer.bytes[199] == 0 && newer.bytes[200] == 0xFF);
}

TEST(queue_stats_init_fills_in_zeros_and_refuses_other_sizes) {
  multicast_queue_stats stats, inlined = multicast_queue_stats_default();
  union {
    multicast_queue_stats stats;
    unsigned char bytes[256];
  } newer;
  memset(&stats, 0xFF, sizeof stats);
  CHECK_STATUS(multicast_queue_stats_init(&stats, 71), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_queue_stats_init(&stats, 0), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_queue_stats_init(&stats, 1025), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_queue_stats_init(NULL, 72), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(stats.struct_size, UINT32_MAX);
  CHECK_OK(multicast_queue_stats_init(&stats, sizeof stats));
  CHECK_EQ(stats.struct_size, inlined.struct_size);
  CHECK(memcmp(&stats.pending, &inlined.pending, 8 * sizeof stats.pending) == 0);
  memset(&newer, 0xFF, sizeof newer);
  CHECK_OK(multicast_queue_stats_init(&newer.stats, 200));
  CHECK_EQ(newer.stats.struct_size, 200);
  CHECK(newer.bytes[8] == 0 && newer.bytes[199] == 0 && newer.bytes[200] == 0xFF);
}

TEST(broadcaster_options_init_fills_in_defaults) {
  multicast_broadcaster_options options, inlined = multicast_broadcaster_options_default();
  memset(&options, 0xFF, sizeof options);
  CHECK_STATUS(multicast_broadcaster_options_init(&options, 15),
               MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(options.struct_size, UINT32_MAX);
  CHECK_OK(multicast_broadcaster_options_init(&options, sizeof options));
  CHECK(memcmp(&options, &inlined, sizeof options) == 0);
}

TEST(allocator_init_fills_in_zeros_and_refuses_other_sizes) {
  multicast_allocator allocator, inlined = multicast_allocator_default();
  memset(&allocator, 0xFF, sizeof allocator);
  CHECK_STATUS(multicast_allocator_init(&allocator, 31), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_allocator_init(&allocator, 1025), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(allocator.struct_size, UINT32_MAX);
  CHECK_OK(multicast_allocator_init(&allocator, sizeof allocator));
  CHECK_EQ(allocator.struct_size, inlined.struct_size);
  CHECK(allocator.context == NULL && allocator.allocate == NULL && allocator.deallocate == NULL);
}

TEST(set_allocator_gets_all_memory_from_there) {
  int calls = 0;
  multicast m;
  use_test_allocator();
  m = multicast_create();
  CHECK(allocated_blocks > 0);
  add(m, counter(&calls));
  multicast_invoke(m, 0, NULL, 0);
  CHECK(allocated_blocks >= 3);
  CHECK_OK(multicast_destroy(m));
}

TEST(set_allocator_again_before_anything_else_is_fine) {
  use_test_allocator();
  use_test_allocator();
}

TEST(set_allocator_after_creation_is_state) {
  multicast_allocator allocator = multicast_allocator_default();
  multicast m = multicast_create();
  allocator.allocate = (void *(*)(void *, size_t, size_t))(uintptr_t)1;
  allocator.deallocate = (void (*)(void *, void *, size_t, size_t))(uintptr_t)1;
  CHECK_STATUS(multicast_set_allocator(&allocator), MULTICAST_ERROR_STATE);
  CHECK_OK(multicast_destroy(m));
  CHECK_STATUS(multicast_set_allocator(&allocator), MULTICAST_ERROR_STATE);
}

TEST(set_allocator_without_functions_is_invalid_argument) {
  multicast_allocator allocator = multicast_allocator_default();
  CHECK_STATUS(multicast_set_allocator(&allocator), MULTICAST_ERROR_INVALID_ARGUMENT);
  allocator.allocate = (void *(*)(void *, size_t, size_t))(uintptr_t)1;
  CHECK_STATUS(multicast_set_allocator(&allocator), MULTICAST_ERROR_INVALID_ARGUMENT);
  allocator.deallocate = (void (*)(void *, void *, size_t, size_t))(uintptr_t)1;
  allocator.struct_size = 0;
  CHECK_STATUS(multicast_set_allocator(&allocator), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK(multicast_create().id != 0); /* a failed call has changed nothing */
}

TEST(memory_of_an_empty_multicast_and_of_a_delegate_is_small) {
  /* The limits are 128 bytes and 96 bytes. Slabs are allocated for many at a time. */
  enum { MANY = 100000 };
  static int calls;
  int64_t before;
  multicast m;
  int i;
  use_test_allocator();
  m = multicast_create();
  before = allocated_bytes;
  for (i = 0; i < MANY; ++i) CHECK(multicast_create().id != 0);
  printf("an empty multicast: %.1f bytes\n", (double)(allocated_bytes - before) / MANY);
  CHECK((allocated_bytes - before) / MANY <= 128);
  before = allocated_bytes;
  for (i = 0; i < MANY; ++i) add(m, counter(&calls));
  printf("a delegate: %.1f bytes\n", (double)(allocated_bytes - before) / MANY);
  CHECK((allocated_bytes - before) / MANY <= 96);
}
