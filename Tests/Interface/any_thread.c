/* Any function may be called on any thread at any time, and an invocation takes no lock. */

#include "allocators.h"
#include "numbers.h"
#include "threads.h"

static multicast shared[4];
static bool is_over;
static int total_calls;

typedef struct worker {
  unsigned seed;
  int releases_expected;
} worker;

static int releases;

static void note(void *context, uint32_t event, const void *payload, size_t size) {
  ADD(total_calls, 1);
}

static void note_release(void *context) {
  ADD(releases, 1);
}

THREAD(do_anything, worker *w) {
  multicast_token tokens[8] = {{0}};
  multicast_delegate d, listed[4];
  multicast_add_options options = ADD_OPTIONS(.release = note_release);
  d.function = note;
  for (int i = 0; i < 1500; ++i) {
    multicast m = shared[next(&w->seed) % 4];
    unsigned slot = next(&w->seed) % 8;
    d.context = &tokens[slot];
    options.flags = next(&w->seed) % 4;
    options.priority = (int32_t)(next(&w->seed) % 3);
    options.events = next(&w->seed) % 4 == 0 ? 2 : 0;
    switch (next(&w->seed) % 14) {
      case 0: case 1: case 2: case 3:
        CHECK_OK(multicast_add(m, d, &options, &tokens[slot]));
        ADD(w->releases_expected, 1);
        break;
      case 4: multicast_token_remove(tokens[slot]); break;
      case 5: multicast_token_remove_nowait(tokens[slot]); break;
      case 6: multicast_token_remove_within(tokens[slot], 1000); break;
      case 7: multicast_remove(m, d); break;
      case 8: multicast_remove_context(m, d.context); break;
      case 9: CHECK(multicast_list(m, listed, 4) >= 0); break;
      case 10: multicast_token_pause(tokens[slot]); break;
      case 11: multicast_token_resume(tokens[slot]); break;
      case 12: CHECK(multicast_remove_all(m) >= 0); break;
      default: CHECK(multicast_invoke(m, next(&w->seed) % 3, NULL, 0) >= 0); break;
    }
  }
}

TEST(every_function_from_four_threads_at_once) {
  worker workers[4] = {{1, 0}, {2, 0}, {3, 0}, {4, 0}};
  pthread_t threads[4];
  int expected = 0;
  for (int i = 0; i < 4; ++i) shared[i] = multicast_create();
  for (int i = 0; i < 4; ++i) threads[i] = start_thread(do_anything, &workers[i]);
  for (int i = 0; i < 4; ++i) join_thread(threads[i]);
  for (int i = 0; i < 4; ++i) {
    expected += workers[i].releases_expected;
    CHECK_OK(multicast_destroy(shared[i]));
  }
  CHECK_EQ(LOAD(releases), expected);
}

THREAD(create_and_destroy, void *unused) {
  for (int i = 0; i < 2000; ++i) {
    int calls = 0;
    multicast m = multicast_create();
    add(m, counter(&calls));
    CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
    CHECK_OK(multicast_destroy(m));
    CHECK_EQ(calls, 1);
  }
}

THREAD(use_stale, uint64_t *handle) {
  multicast m;
  while (!LOAD(is_over)) {
    m.id = LOAD(*handle);
    multicast_invoke(m, 0, NULL, 0);
    CHECK(multicast_count(m) <= 1);
  }
}

TEST(create_and_destroy_at_once_while_others_use_the_handles) {
  static uint64_t handle;
  pthread_t makers[2], user = start_thread(use_stale, &handle);
  for (int i = 0; i < 2; ++i) makers[i] = start_thread(create_and_destroy, NULL);
  for (int i = 0; i < 2000; ++i) {
    int calls = 0;
    multicast m = multicast_create();
    STORE(handle, m.id);
    add(m, counter(&calls));
    CHECK_OK(multicast_destroy(m));
  }
  STORE(is_over, true);
  for (int i = 0; i < 2; ++i) join_thread(makers[i]);
  join_thread(user);
}

TEST_OF_MEMORY(invoke_allocates_nothing_after_the_first_of_a_thread) {
  for (int i = 0; i < 100; ++i) add(m, counter(&calls));
  multicast_invoke(m, 0, NULL, 0);
  int64_t blocks = allocated_blocks;
  fail_after = 0;
  for (int i = 0; i < 100; ++i) CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 100);
  CHECK_EQ(allocated_blocks, blocks);
  CHECK(!has_failed);
}

/* An allocator that invokes once, on another thread, while the library holds the lock of the
 * multicast. */
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
  /* Adding a second delegate allocates under the lock of the multicast. The other thread would hang
   * if invoking took that lock. */
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
