/* A queue does not lose any calls when memory runs out, and needs little stack. */

#include "allocators.h"
#include "notes.h"
#include "queues.h"

/* ---- Out of memory --------------------------------------------------------------------------- */

/* Expects a full queue to refuse a call whose payload cannot be copied, and to keep its other
 * calls. */
static void refuses_what_cannot_be_copied(multicast_overflow overflow, uint32_t flags) {
  static unsigned char payload[4096];
  use_test_allocator();
  multicast_queue q = queue_with(1, overflow);
  multicast m = multicast_create();
  add_flagged(m, noting('a'), q, flags);
  CHECK_EQ(invoke_number(m, 1), 1);
  fail_after = 0;
  CHECK_EQ(multicast_invoke(m, 0, payload, 4096), 0);
  fail_after = -1;
  CHECK_TEXT(figures(q), "pending 1, queued 1, refused 1");
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "a1");
}

TEST(queue_refuses_what_cannot_be_copied) {
  refuses_what_cannot_be_copied(MULTICAST_OVERFLOW_REFUSE, 0);
}
TEST(queue_drops_nothing_for_what_cannot_be_copied) {
  refuses_what_cannot_be_copied(MULTICAST_OVERFLOW_DROP_OLDEST, 0);
}
TEST(queue_does_not_block_for_what_cannot_be_copied) {
  refuses_what_cannot_be_copied(MULTICAST_OVERFLOW_BLOCK, 0);
}
TEST(queue_keeps_the_latest_that_could_be_copied) {
  refuses_what_cannot_be_copied(MULTICAST_OVERFLOW_REFUSE, MULTICAST_LATEST);
}

TEST_OF_MEMORY(queue_counts_each_delegate_for_which_there_was_no_memory) {
  static unsigned char payload[4096];
  multicast_queue q = default_queue();
  for (int i = 0; i < 5; ++i) add_queued(m, noting('a'), q);
  add(m, noting('b'));
  fail_only_once = false;
  CHECK_EQ(invoke_number(m, 1), 6);
  CHECK_EQ(multicast_queue_run(q, 0), 5);
  fail_after = 0;
  CHECK_EQ(multicast_invoke(m, 0, payload, 4096), 1);
  fail_after = -1;
  CHECK_TEXT(figures(q), "queued 5, delivered 5, refused 5");
}

static void *allocate_a_little(void *context, size_t size, size_t alignment) {
  return size > (size_t)1 << 24 ? NULL : allocate_aligned(size, alignment);
}

TEST(queue_of_payloads_larger_than_memory_refuses_them) {
  int byte = 0;
  use_allocator(allocate_a_little, NULL);
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  add_queued(m, noting('a'), q);
  /* these payloads are so large that computing the size of the allocation overflows */
  for (int i = 0; i < 100; ++i) {
    CHECK_EQ(multicast_invoke(m, 0, &byte, SIZE_MAX - (size_t)i), 0);
    CHECK_EQ(multicast_invoke(m, 0, &byte, (size_t)PTRDIFF_MAX - (size_t)i), 0);
    CHECK_EQ(multicast_invoke(m, 0, &byte, ((size_t)PTRDIFF_MAX) + 1 + (size_t)i), 0);
  }
  CHECK_TEXT(figures(q), "refused 300");
}

TEST(queue_rounds_of_everything_leak_nothing) {
  static unsigned char payload[4096];
  int64_t before = 0;
  use_test_allocator();
  for (int round = 0; round < 300; ++round) {
    multicast_queue q = queue_with(1 + (uint32_t)round % 20, (multicast_overflow)(round % 2));
    multicast m = multicast_create(), other = multicast_create();
    multicast_token token = add_flagged(m, noting('a'), q, round % 3 == 0 ? MULTICAST_LATEST : 0);
    add_flagged(m, noting('b'), q, round % 5 == 0 ? MULTICAST_ONCE : 0);
    add_queued(other, noting('c'), q);
    noted_length = 0;
    for (int i = 0; i < 30; ++i) {
      multicast_invoke(i % 2 == 0 ? m : other, 0, payload, (size_t)((i * 37 + round) % 4097));
      if (i == 20) CHECK_OK(multicast_token_remove(token));
    }
    multicast_queue_run(q, (size_t)(round % 7));
    if (round % 4 == 0) CHECK(multicast_queue_fd(q) >= 0);
    if (round % 2 == 0) CHECK_OK(multicast_queue_destroy(q));
    CHECK_OK(multicast_destroy(m));
    CHECK_OK(multicast_destroy(other));
    if (round % 2 == 1) CHECK_OK(multicast_queue_destroy(q));
    if (round == 100) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}

TEST_OF_MEMORY(queue_counts_a_once_delegate_that_waits_not_as_refused) {
  char payload[33] = "";
  multicast_queue q = multicast_queue_create(NULL);
  add_with(m, counter(&calls), &ADD_OPTIONS(.queue = q, .flags = MULTICAST_ONCE));
  CHECK_EQ(multicast_invoke(m, 0, payload, sizeof payload), 1);
  fail_only_once = false;
  fail_after = 0;
  CHECK_EQ(multicast_invoke(m, 0, payload, sizeof payload), 0);
  CHECK(has_failed);
  fail_after = -1;
  CHECK_EQ(stats_of(q).refused, 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(calls, 1);
}

/* ---- The stack ------------------------------------------------------------------------------- */

THREAD(use_queue_on_small_stack, requeuer *r) {
  unsigned char payload[1000] = {0};
  CHECK_EQ(multicast_invoke(r->target, 0, payload, sizeof payload), 1);
  CHECK_EQ(invoke_number(r->target, 1), 1);
  CHECK_EQ(multicast_queue_run(r->queue, 0), 2);
  CHECK_OK(multicast_queue_start(r->queue));
  CHECK_OK(multicast_queue_stop(r->queue));
  CHECK_OK(multicast_queue_destroy(r->queue));
}

TEST(queue_operations_fit_a_stack_of_64_kilobytes) {
  requeuer r;
  r.queue = default_queue();
  r.target = multicast_create();
  add_queued(r.target, counter(&calls), r.queue);
  on_small_stack(use_queue_on_small_stack, &r);
  CHECK_EQ(calls, 2);
}
