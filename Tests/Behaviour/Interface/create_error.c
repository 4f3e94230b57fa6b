/* Tests multicast_create_error(), and the functions that tell whether a handle is valid. */

#include "broadcasters.h"
#include "threads.h"

#include <limits.h>

static void expect_error(uint64_t handle, multicast_status reason) {
  CHECK_EQ(handle, 0);
  CHECK_STATUS(multicast_create_error(), reason);
}

static void expect_created(uint64_t handle) {
  CHECK(handle != 0);
  CHECK_OK(multicast_create_error());
}

static uint64_t queue_of_no_size(void) {
  return multicast_queue_create(&QUEUE_OPTIONS(.capacity = ((size_t)1 << 24) + 1)).id;
}

static uint64_t broadcaster_on(multicast_queue q) {
  return multicast_broadcaster_create(&BROADCASTER_OPTIONS(.queue = q)).id;
}

TEST(create_error_is_ok_before_the_first_creation) { CHECK_OK(multicast_create_error()); }

TEST_OF_BROADCASTER(create_error_is_ok_again_after_each_kind_of_creation) {
  expect_error(queue_of_no_size(), MULTICAST_ERROR_INVALID_ARGUMENT);
  expect_created(multicast_create().id);
  expect_error(queue_of_no_size(), MULTICAST_ERROR_INVALID_ARGUMENT);
  expect_created(multicast_lifetime_create().id);
  expect_error(queue_of_no_size(), MULTICAST_ERROR_INVALID_ARGUMENT);
  expect_created(multicast_queue_create(NULL).id);
  expect_error(queue_of_no_size(), MULTICAST_ERROR_INVALID_ARGUMENT);
  expect_created(multicast_broadcaster_create(NULL).id);
  expect_error(queue_of_no_size(), MULTICAST_ERROR_INVALID_ARGUMENT);
  expect_created(multicast_broadcaster_default().id);
  expect_error(queue_of_no_size(), MULTICAST_ERROR_INVALID_ARGUMENT);
  expect_created(multicast_broadcaster_multicast(b, NAME).id);
  expect_error(queue_of_no_size(), MULTICAST_ERROR_INVALID_ARGUMENT);
  /* succeeds, because the multicast of this name already exists */
  expect_created(multicast_broadcaster_multicast(b, NAME).id);
}

TEST_OF_BROADCASTER(create_error_of_bad_options_and_names_is_invalid) {
  char name[LONGEST + 2];
  multicast_queue_options q = {0};
  expect_error(multicast_queue_create(&q).id, MULTICAST_ERROR_INVALID_ARGUMENT);
  multicast_broadcaster_options options = BROADCASTER_OPTIONS(.flags = 1);
  expect_error(multicast_broadcaster_create(&options).id, MULTICAST_ERROR_INVALID_ARGUMENT);
  expect_error(multicast_broadcaster_multicast(b, NULL).id, MULTICAST_ERROR_INVALID_ARGUMENT);
  expect_error(multicast_broadcaster_multicast(b, "").id, MULTICAST_ERROR_INVALID_ARGUMENT);
  memset(name, 'x', sizeof name);
  name[LONGEST + 1] = '\0';
  expect_error(multicast_broadcaster_multicast(b, name).id, MULTICAST_ERROR_INVALID_ARGUMENT);
}

TEST_OF_BROADCASTER(create_error_of_handles_that_are_none_is_invalid_handle) {
  multicast_queue q = create_queue();
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK_OK(multicast_queue_destroy(q));
  expect_error(multicast_broadcaster_multicast(b, NAME).id, MULTICAST_ERROR_INVALID_HANDLE);
  expect_error(broadcaster_on(q), MULTICAST_ERROR_INVALID_HANDLE);
}

TEST(create_error_without_a_thread_specific_key_is_out_of_memory) {
  static pthread_key_t keys[PTHREAD_KEYS_MAX];
  int count = 0;
  while (count < PTHREAD_KEYS_MAX && pthread_key_create(&keys[count], NULL) == 0) ++count;
  expect_error(multicast_create().id, MULTICAST_ERROR_OUT_OF_MEMORY);
  expect_error(multicast_queue_create(NULL).id, MULTICAST_ERROR_OUT_OF_MEMORY);
  while (count > 0) CHECK_EQ(pthread_key_delete(keys[--count]), 0);
  expect_created(multicast_create().id);
}

static gate has_failed_there = GATE_INIT, may_look = GATE_INIT;

THREAD(fail_and_look, void *unused) {
  CHECK_OK(multicast_create_error());
  expect_error(queue_of_no_size(), MULTICAST_ERROR_INVALID_ARGUMENT);
  gate_open(&has_failed_there);
  gate_wait(&may_look);
  CHECK_ERROR(multicast_create_error(), INVALID_ARGUMENT);
}

TEST(create_error_is_that_of_the_calling_thread) {
  multicast_broadcaster none = MULTICAST_NONE;
  pthread_t thread = start_thread(fail_and_look, NULL);
  gate_wait(&has_failed_there);
  CHECK_OK(multicast_create_error());
  expect_error(multicast_broadcaster_multicast(none, NAME).id, MULTICAST_ERROR_INVALID_HANDLE);
  gate_open(&may_look);
  join_thread(thread);
  CHECK_ERROR(multicast_create_error(), INVALID_HANDLE);
}

/* Only functions that create objects change the error. */
TEST_OF_MULTICAST(create_error_stays_until_the_next_creation) {
  int n = 0;
  multicast none = MULTICAST_NONE;
  expect_error(queue_of_no_size(), MULTICAST_ERROR_INVALID_ARGUMENT);
  add(m, counter(&n));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_ERROR(multicast_destroy(none), INVALID_HANDLE);
  CHECK_OK(multicast_destroy(m));
  CHECK_ERROR(multicast_create_error(), INVALID_ARGUMENT);
}

/* ---- Valid handles --------------------------------------------------------------------------- */

/* Returns a set of bits, one for each function that considers the handle valid. */
static int kinds_of(uint64_t id) {
  multicast m = MULTICAST_NONE;
  multicast_lifetime l = MULTICAST_NONE;
  multicast_queue q = MULTICAST_NONE;
  multicast_broadcaster b = MULTICAST_NONE;
  m.id = l.id = q.id = b.id = id;
  return multicast_is_valid(m) | multicast_lifetime_is_valid(l) << 1 |
         multicast_queue_is_valid(q) << 2 | multicast_broadcaster_is_valid(b) << 3;
}

TEST(is_valid_of_each_kind_is_true_from_creation_to_end) {
  for (int round = 0; round < 300; ++round) {
    multicast m = multicast_create();
    multicast_lifetime l = multicast_lifetime_create();
    multicast_queue q = create_queue();
    multicast_broadcaster b = create();
    CHECK_EQ(kinds_of(m.id), 1);
    CHECK_EQ(kinds_of(l.id), 2);
    CHECK_EQ(kinds_of(q.id), 4);
    CHECK_EQ(kinds_of(b.id), 8);
    CHECK_OK(multicast_destroy(m));
    CHECK_OK(multicast_lifetime_end(l));
    CHECK_OK(multicast_queue_destroy(q));
    CHECK_OK(multicast_broadcaster_destroy(b));
    CHECK_EQ(kinds_of(m.id), 0);
    CHECK_EQ(kinds_of(l.id), 0);
    CHECK_EQ(kinds_of(q.id), 0);
    CHECK_EQ(kinds_of(b.id), 0);
  }
  CHECK_EQ(kinds_of(multicast_broadcaster_default().id), 8);
}

TEST_OF_MULTICAST(is_valid_of_none_and_of_forged_handles_is_false) {
  uint64_t ids[4];
  int none = 0;
  ids[0] = m.id;
  ids[1] = multicast_lifetime_create().id;
  ids[2] = create_queue().id;
  ids[3] = create().id;
  CHECK_EQ(kinds_of(0), 0);
  CHECK_EQ(kinds_of(UINT64_MAX), 0);
  CHECK_EQ(kinds_of(add(m, counter(&none)).id), 0);
  for (int i = 0; i < 4; ++i) {
    for (int bit = 0; bit < 64; ++bit) {
      uint64_t forged = ids[i] ^ UINT64_C(1) << bit;
      int expected = 0;
      for (int j = 0; j < 4; ++j) {
        /* by chance, the forged handle may equal the handle of another object */
        if (forged == ids[j]) expected = 1 << j;
      }
      CHECK_EQ(kinds_of(forged), expected);
    }
  }
}

static gate inside_call = GATE_INIT, may_return = GATE_INIT;

static void stay_inside(void *context, uint32_t event, const void *payload, size_t size) {
  gate_open(&inside_call);
  gate_wait(&may_return);
}

TEST_OF_BROADCASTER(is_valid_is_false_as_soon_as_the_end_has_begun) {
  multicast_lifetime l = multicast_lifetime_create();
  invoker i;
  observe_with(b, NAME, DELEGATE(stay_inside, NULL), &ADD_OPTIONS(.lifetime = l));
  invoke_in_background(&i, find(b, NAME));
  gate_wait(&inside_call);
  CHECK_ERROR(multicast_lifetime_end_within(l, 0), TIMEOUT);
  CHECK(!multicast_lifetime_is_valid(l));
  CHECK_ERROR(multicast_broadcaster_destroy_within(b, 0), TIMEOUT);
  CHECK(!multicast_broadcaster_is_valid(b));
  gate_open(&may_return);
  CHECK_EQ(invoke_finished(&i), 1);
}
