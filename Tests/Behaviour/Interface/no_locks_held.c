/* The library holds no lock while it is running one of the caller's functions. In each test, the
 * caller's function waits until another thread has used the same multicast. That thread would hang
 * if the library were holding a lock. */

#include "harness.h"

static multicast target;
static int runs;

THREAD(use_everything, void *unused) {
  multicast_delegate d = counter(&calls);
  multicast_token token = add(target, d);
  CHECK(multicast_token_is_valid(token));
  CHECK(multicast_contains(target, d));
  CHECK(multicast_count(target) >= 1);
  CHECK(multicast_list(target, NULL, 0) >= 1);
  CHECK_OK(multicast_token_pause(token));
  CHECK_OK(multicast_token_resume(token));
  CHECK_OK(multicast_token_remove(token));
  multicast other = multicast_create();
  add(other, d);
  CHECK_EQ(multicast_invoke(other, 0, NULL, 0), 1);
  CHECK_OK(multicast_destroy(other));
}

static void use_from_elsewhere(void) {
  ++runs;
  on_another_thread(use_everything, NULL);
}

static void delegate_function(void *context, uint32_t event, const void *payload, size_t size) {
  use_from_elsewhere();
}

static bool visitor_function(void *context, const multicast_delegate *delegate) {
  use_from_elsewhere();
  return true;
}

static void release_function(void *context) {
  use_from_elsewhere();
}

static multicast_delegate with_function(multicast_function function) {
  return (multicast_delegate){function, &runs};
}

TEST(no_lock_is_held_in_a_delegate) {
  target = multicast_create();
  add(target, with_function(delegate_function));
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  CHECK_EQ(runs, 1);
}

TEST(no_lock_is_held_in_a_delegate_called_once) {
  target = multicast_create();
  add_with(target, with_function(delegate_function), &ADD_OPTIONS(.flags = MULTICAST_ONCE));
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  CHECK_EQ(runs, 1);
}

TEST(no_lock_is_held_in_a_visitor) {
  target = multicast_create();
  add(target, counter(&calls));
  CHECK_EQ(multicast_visit(target, visitor_function, NULL), 1);
  CHECK_EQ(runs, 1);
}

TEST(no_lock_is_held_in_a_release_by_removal) {
  multicast_add_options options = ADD_OPTIONS(.release = release_function);
  target = multicast_create();
  multicast_token token = add_with(target, counter(&calls), &options);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(runs, 1);
}

TEST(no_lock_is_held_in_a_release_by_remove_all) {
  multicast_add_options options = ADD_OPTIONS(.release = release_function);
  target = multicast_create();
  add_with(target, counter(&calls), &options);
  add_with(target, counter(&calls), &options);
  CHECK_EQ(multicast_remove_all(target), 2);
  CHECK_EQ(runs, 2);
}

TEST(no_lock_is_held_in_a_release_by_a_failed_add) {
  multicast_add_options options = ADD_OPTIONS(.release = release_function);
  multicast_delegate none = {NULL, NULL};
  target = multicast_create();
  CHECK_ERROR(multicast_add(target, none, &options, NULL), INVALID_ARGUMENT);
  CHECK_EQ(runs, 1);
}

static void remove_current(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_STATUS(multicast_token_remove(multicast_token_current()), MULTICAST_PENDING);
  CHECK_EQ(runs, 0);
}

TEST(no_lock_is_held_in_a_release_after_the_last_call) {
  target = multicast_create();
  add_with(target, with_function(remove_current), &ADD_OPTIONS(.release = release_function));
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  CHECK_EQ(runs, 1);
}

TEST(no_lock_is_held_in_a_release_by_replacement) {
  multicast_add_options options = ADD_OPTIONS(.release = release_function);
  options.flags = MULTICAST_UNIQUE;
  target = multicast_create();
  add_with(target, counter(&calls), &options);
  add_with(target, counter(&calls), &options);
  CHECK_EQ(runs, 1);
  CHECK_EQ(multicast_count(target), 1);
}

static void destroy_inside(void *context) {
  ++*(int *)context;
  CHECK_ERROR(multicast_destroy(target), INVALID_HANDLE);
}

TEST(no_lock_is_held_in_a_release_by_destroy) {
  target = multicast_create();
  add_with(target, counter(&runs), &ADD_OPTIONS(.release = destroy_inside));
  CHECK_OK(multicast_destroy(target));
  CHECK_EQ(runs, 1);
}
