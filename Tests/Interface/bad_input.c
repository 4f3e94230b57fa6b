/* Null pointers: each gives a status and changes nothing. */

#include "harness.h"

TEST_OF_MULTICAST(null_function_is_invalid_argument) {
  multicast_delegate d = {NULL, NULL};
  multicast_token t = {77};
  CHECK_ERROR(multicast_add(m, d, NULL, &t), INVALID_ARGUMENT);
  CHECK_EQ(t.id, 0);
  CHECK_ERROR(multicast_remove(m, d), NOT_FOUND);
  CHECK(!multicast_contains(m, d));
  CHECK_EQ(multicast_count(m), 0);
}

TEST_OF_MULTICAST(null_pointers_are_invalid_argument) {
  multicast_token t = {77};
  CHECK_ERROR(multicast_add_many(m, NULL, 1, NULL, &t), INVALID_ARGUMENT);
  CHECK_EQ(t.id, 0);
  CHECK_ERROR(multicast_remove_many(m, NULL, 1), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_list(m, NULL, 1), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_visit(m, NULL, NULL), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_invoke(m, 0, NULL, 1), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_set_allocator(NULL), INVALID_ARGUMENT);
}
