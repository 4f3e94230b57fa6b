/* A null pointer argument results in an error status and changes nothing. */

#include "queues.h"

static bool pass(void *context, const multicast_registration *registration) { return true; }

TEST_OF_QUEUE(null_pointers_are_invalid_argument) {
  multicast_delegate d = counter(&calls), none = {NULL, &calls};
  multicast_token t = {77};
  CHECK_EQ(multicast_list(m, &d, 1), 0); /* the multicast has never had a delegate */
  CHECK_EQ(multicast_remove_many(m, &d, 1), 0);
  CHECK_ERROR(multicast_add(m, none, NULL, &t), INVALID_ARGUMENT);
  CHECK_EQ(t.id, 0);
  t = add(m, d);
  CHECK_ERROR(multicast_add_many(m, NULL, 1, NULL, NULL), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_remove_many(m, NULL, 1), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_list(m, NULL, 1), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_visit(m, NULL, NULL), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_visit_undo(m, NULL, visit_all, NULL), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_visit_undo(m, visit_all, NULL, NULL), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_enumerate(m, NULL, NULL), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_invoke(m, 0, NULL, 1), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_token_invoke(t, 0, NULL, 1), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_token_get_registration(t, NULL), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_token_get_stats(t, NULL), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_call_stack(NULL, 1), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_queue_get_stats(q, NULL), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_set_allocator(NULL), INVALID_ARGUMENT);
  CHECK_EQ(multicast_enumerate(m, pass, NULL), 1);
  CHECK_EQ(calls, 0);
}
