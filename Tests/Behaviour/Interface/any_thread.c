/* An invocation takes no lock and allocates no memory, and no function needs a large stack. The
 * stress test checks that any thread may call any function at any time. */

#include "allocators.h"
#include "numbers.h"
#include "threads.h"

TEST_OF_MEMORY(invoke_allocates_nothing_after_the_first_of_a_thread) {
  for (int i = 0; i < 100; ++i) add(m, counter(&calls));
  multicast_invoke(m, 0, NULL, 0);
  int64_t blocks = allocated_blocks;
  fail_after = 0;
  for (int i = 0; i < 100; ++i) CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 100);
  CHECK_EQ(allocated_blocks, blocks);
  CHECK(!has_failed);
}

/* While the library is allocating with the multicast's lock held, this allocator invokes the
 * multicast on another thread. */
static multicast invoked_in_allocator;
static int64_t result_in_allocator;
static bool invoke_in_allocator;

THREAD(invoke_there, void *unused) {
  result_in_allocator = multicast_invoke(invoked_in_allocator, 0, NULL, 0);
}

static void *allocate_and_invoke(void *context, size_t size, size_t alignment) {
  if (invoke_in_allocator) {
    invoke_in_allocator = false;
    on_another_thread(invoke_there, NULL);
  }
  return allocate_aligned(size, alignment);
}

TEST(invoke_takes_no_lock) {
  /* Adding a second delegate allocates memory under the multicast's lock. The other thread would
   * hang if an invocation took that lock. */
  use_allocator(allocate_and_invoke, NULL);
  invoked_in_allocator = multicast_create();
  add(invoked_in_allocator, counter(&calls));
  let_two_threads_invoke(invoked_in_allocator);
  invoke_in_allocator = true;
  add(invoked_in_allocator, counter(&calls));
  CHECK(!invoke_in_allocator);
  CHECK_EQ(result_in_allocator, 1);
}

TEST(no_thread_is_started_behind_the_callers_back) {
  int before = count_threads();
  multicast m = multicast_create();
  add(m, counter(&calls));
  multicast_invoke(m, 0, NULL, 0);
  CHECK_EQ(count_threads(), before);
}

THREAD(use_on_small_stack, multicast *argument) {
  multicast m = *argument;
  int calls = 0;
  multicast_token token = add(m, counter(&calls));
  CHECK(multicast_invoke(m, 0, NULL, 0) >= 1);
  CHECK_OK(multicast_token_remove(token));
}

TEST_OF_MULTICAST(every_operation_fits_a_stack_of_64_kilobytes) {
  on_small_stack(use_on_small_stack, &m);
}
