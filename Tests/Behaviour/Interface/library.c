/* Tests the version, the texts of statuses, the initializers and the allocator. */

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

TEST(process_memory_has_one_address_for_each_index) {
  unsigned char *all[8];
  for (uint32_t i = 0; i < 8; ++i) {
    all[i] = multicast_process_memory(i, 8192);
    CHECK(all[i] != NULL);
    CHECK_EQ((uintptr_t)all[i] % 64, 0);
    CHECK(multicast_process_memory(i, 0) == all[i]);
    for (size_t byte = 0; byte < 8192; ++byte) CHECK_EQ(all[i][byte], 0);
  }
  for (size_t i = 0; i < 8; ++i) memset(all[i], (int)i + 1, 8192);
  for (size_t i = 0; i < 8; ++i) {
    for (size_t byte = 0; byte < 8192; ++byte) CHECK_EQ(all[i][byte], i + 1);
  }
}

TEST(process_memory_beyond_the_limits_is_null) {
  CHECK(multicast_process_memory(8, 1) == NULL);
  CHECK(multicast_process_memory(UINT32_MAX, 1) == NULL);
  CHECK(multicast_process_memory(0, 8193) == NULL);
  CHECK(multicast_process_memory(0, SIZE_MAX) == NULL);
}

/* Functions that return a count return negative statuses as 64-bit integers. */
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

/* Expects the initializer macro and the inline function to produce equal structs, in which
 * `struct_size` is the struct's size and all other fields are zero. */
#define CHECK_DEFAULT(type, initializer)                  \
  do {                                                    \
    static type initialized = initializer;                \
    type zeros, inlined = type##_default();               \
    memset(&zeros, 0, sizeof zeros);                      \
    zeros.struct_size = sizeof zeros;                     \
    CHECK(memcmp(&initialized, &zeros, sizeof zeros) == 0); \
    CHECK(memcmp(&inlined, &zeros, sizeof zeros) == 0);   \
  } while (0)

TEST(zeros_and_the_size_are_the_default_of_each_struct) {
  CHECK_DEFAULT(multicast_add_options, MULTICAST_ADD_OPTIONS_INIT);
  CHECK_DEFAULT(multicast_queue_options, MULTICAST_QUEUE_OPTIONS_INIT);
  CHECK_DEFAULT(multicast_queue_stats, MULTICAST_QUEUE_STATS_INIT);
  CHECK_DEFAULT(multicast_broadcaster_options, MULTICAST_BROADCASTER_OPTIONS_INIT);
  CHECK_DEFAULT(multicast_allocator, MULTICAST_ALLOCATOR_INIT);
  CHECK_DEFAULT(multicast_registration, MULTICAST_REGISTRATION_INIT);
  CHECK_DEFAULT(multicast_invocation, MULTICAST_INVOCATION_INIT);
  CHECK_DEFAULT(multicast_outcome, MULTICAST_OUTCOME_INIT);
  CHECK_DEFAULT(multicast_create_options, MULTICAST_CREATE_OPTIONS_INIT);
  CHECK_DEFAULT(multicast_transport, MULTICAST_TRANSPORT_INIT);
  CHECK_DEFAULT(multicast_watch, MULTICAST_WATCH_INIT);
  CHECK_DEFAULT(multicast_token_stats, MULTICAST_TOKEN_STATS_INIT);
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

TEST(set_allocator_again_before_anything_else_is_fine) {
  use_test_allocator();
  use_test_allocator();
}

TEST_OF_MULTICAST(set_allocator_after_creation_is_state) {
  multicast_allocator allocator = multicast_allocator_default();
  allocator.allocate = (void *(*)(void *, size_t, size_t))(uintptr_t)1;
  allocator.deallocate = (void (*)(void *, void *, size_t, size_t))(uintptr_t)1;
  CHECK_ERROR(multicast_set_allocator(&allocator), STATE);
  CHECK_OK(multicast_destroy(m));
  CHECK_ERROR(multicast_set_allocator(&allocator), STATE);
}

TEST(set_allocator_without_functions_is_invalid_argument) {
  multicast_allocator allocator = multicast_allocator_default();
  CHECK_ERROR(multicast_set_allocator(&allocator), INVALID_ARGUMENT);
  allocator.allocate = (void *(*)(void *, size_t, size_t))(uintptr_t)1;
  CHECK_ERROR(multicast_set_allocator(&allocator), INVALID_ARGUMENT);
  allocator.deallocate = (void (*)(void *, void *, size_t, size_t))(uintptr_t)1;
  allocator.struct_size = 0;
  CHECK_ERROR(multicast_set_allocator(&allocator), INVALID_ARGUMENT);
  CHECK(multicast_create().id != 0); /* the failed calls have changed nothing */
}

TEST_OF_MEMORY(memory_of_an_empty_multicast_and_of_a_delegate_is_small) {
  /* The limits are averages over many objects, because the library allocates slabs, each of which
   * holds many objects. */
  enum { MANY = 100000 };
  static int calls;
  int64_t before = allocated_bytes;
  for (int i = 0; i < MANY; ++i) CHECK(multicast_create().id != 0);
  printf("an empty multicast: %.1f bytes\n", (double)(allocated_bytes - before) / MANY);
  CHECK((allocated_bytes - before) / MANY <= 128);
  before = allocated_bytes;
  for (int i = 0; i < MANY; ++i) add(m, counter(&calls));
  printf("a delegate: %.1f bytes\n", (double)(allocated_bytes - before) / MANY);
  CHECK((allocated_bytes - before) / MANY <= 96);
}
