/* multicast_thread_prepare() does the work of a thread's first invocation in advance. */

#include "harness.h"

static multicast target;

static void *invoke_without_memory(void *unused) {
  CHECK_OK(multicast_thread_prepare());
  CHECK_OK(multicast_thread_prepare()); /* a second call has nothing to do */
  fail_after = 0;
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  fail_after = -1;
  CHECK(!has_failed);
  return unused;
}

TEST(thread_prepare_leaves_no_allocation_to_the_first_invocation) {
  use_test_allocator();
  target = multicast_create();
  add(target, counter(&calls));
  on_another_thread(invoke_without_memory, NULL);
  CHECK_EQ(calls, 1);
}

static void *prepare_before_all(void *unused) {
  CHECK_OK(multicast_thread_prepare());
  return unused;
}

TEST(thread_prepare_may_be_the_first_use_of_the_library) {
  multicast_allocator allocator = MULTICAST_ALLOCATOR_INIT;
  on_another_thread(prepare_before_all, NULL);
  CHECK_OK(multicast_thread_prepare());
  target = multicast_create();
  add(target, counter(&calls));
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  allocator.allocate = (void *(*)(void *, size_t, size_t))(uintptr_t)1;
  allocator.deallocate = (void (*)(void *, void *, size_t, size_t))(uintptr_t)1;
  CHECK_ERROR(multicast_set_allocator(&allocator), STATE);
}
