/* A queue loses no call where memory is short, and needs little stack. */

#include "allocators.h"
#include "notes.h"
#include "queues.h"

/* ---- Out of memory --------------------------------------------------------------------------- */

static void use_queue_where_memory_may_fail(multicast_overflow overflow, uint32_t flags) {
  static unsigned char payload[4096];
  int64_t result, expected_queued = 0, expected_refused = 0;
  noted_length = 0;
  releases['a'] = 0;
  multicast_queue q = multicast_queue_create(&QUEUE_OPTIONS(.capacity = 4, .overflow = overflow));
  multicast m = multicast_create();
  if (q.id == 0 || m.id == 0) {
    CHECK(has_failed);
    if (q.id != 0) CHECK_OK(multicast_queue_destroy(q));
    if (m.id != 0) CHECK_OK(multicast_destroy(m));
    return;
  }
  multicast_add_options how = ADD_OPTIONS(.release = count_release_of, .queue = q, .flags = flags);
  multicast_status status = multicast_add(m, noting('a'), &how, NULL);
  if (status != MULTICAST_OK) {
    CHECK_ERROR(status, OUT_OF_MEMORY);
    CHECK_EQ(releases['a'], 1);
    CHECK_EQ(multicast_count(m), 0);
  } else {
    for (int64_t i = 0; i < 3; ++i) {
      result = multicast_invoke(m, 0, payload, sizeof payload);
      /* possible only for the first invocation of a thread */
      if (result != MULTICAST_ERROR_OUT_OF_MEMORY) {
        CHECK(result == 0 || result == 1);
        if (result == 0 && (flags & MULTICAST_ONCE) == 0) ++expected_refused;
        expected_queued += result;
      }
    }
    CHECK_EQ(stats_of(q).queued, expected_queued);
    if ((flags & MULTICAST_ONCE) == 0) CHECK_EQ(stats_of(q).refused, expected_refused);
    result = multicast_queue_run(q, 2);
    CHECK(result >= 0 || result == MULTICAST_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(stats_of(q).delivered, result < 0 ? 0 : result);
  }
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(releases['a'], 1);
  CHECK_OK(multicast_destroy(m));
}

THREAD(fail_each_allocation_of_a_queue, void *given) {
  const bool is_first = given != NULL;
  static const uint32_t flags[] = {0, MULTICAST_LATEST, MULTICAST_ONCE};
  int which;
  for (int i = 0; i < 9; ++i) {
    for (int mode = 0; mode < 2; ++mode) {
      fail_only_once = mode == 0;
      for (which = 0;; ++which) {
        int64_t before = allocated_bytes;
        CHECK(which < 1000);
        has_failed = false;
        fail_after = which;
        use_queue_where_memory_may_fail((multicast_overflow)(i % 3), flags[i / 3]);
        fail_after = -1;
        if (!is_first) CHECK_EQ(allocated_bytes, before);
        if (!has_failed) break;
      }
      CHECK(which >= 2);
    }
  }
}

TEST(queue_out_of_memory_at_any_allocation_loses_nothing) {
  use_test_allocator();
  fail_each_allocation_of_a_queue(&noted); /* allocates what is kept */
  fail_each_allocation_of_a_queue(NULL);
}

TEST(queue_out_of_memory_at_any_allocation_of_a_new_thread) {
  use_test_allocator();
  on_another_thread(fail_each_allocation_of_a_queue, &noted);
  int64_t before = allocated_bytes;
  on_another_thread(fail_each_allocation_of_a_queue, &noted);
  CHECK_EQ(allocated_bytes, before);
}

TEST(queue_out_of_memory_in_add_many_adds_none_and_releases_all) {
  int which;
  use_test_allocator();
  for (int mode = 0; mode < 4; ++mode) {
    fail_only_once = mode % 2 == 0;
    for (which = 0;; ++which) {
      multicast_queue q = default_queue();
      multicast m = multicast_create();
      multicast_delegate d[20];
      int64_t before = allocated_bytes;
      for (int i = 0; i < 20; ++i) d[i] = noting('a');
      multicast_add_options options = ADD_OPTIONS(.queue = q, .release = count_release_of);
      releases['a'] = 0;
      has_failed = false;
      fail_after = which;
      multicast_status status = multicast_add_many(m, d, 20, &options, NULL);
      fail_after = -1;
      if (has_failed) {
        CHECK_ERROR(status, OUT_OF_MEMORY);
        CHECK_EQ(releases['a'], 20);
        CHECK_EQ(multicast_count(m), 0);
        if (mode > 1) CHECK_EQ(allocated_bytes, before);
      } else {
        CHECK_OK(status);
        CHECK_EQ(invoke_number(m, 1), 20);
      }
      CHECK_OK(multicast_queue_destroy(q));
      CHECK_EQ(releases['a'], 20);
      CHECK_OK(multicast_destroy(m));
      if (!has_failed) break;
    }
    CHECK(which > 0);
  }
}

TEST(queue_create_out_of_memory_again_and_again_leaks_nothing) {
  int64_t bytes = 0, blocks = 0;
  use_test_allocator();
  CHECK_OK(multicast_queue_destroy(default_queue()));
  for (int round = 0; round < 3000; ++round) {
    fail_after = 0;
    CHECK_EQ(multicast_queue_create(NULL).id, 0);
    CHECK_EQ(fail_after, -1); /* the allocation has failed */
    CHECK_OK(multicast_queue_destroy(default_queue()));
    if (round == 10) {
      bytes = allocated_bytes;
      blocks = allocated_blocks;
    }
  }
  CHECK_EQ(allocated_bytes, bytes);
  CHECK_EQ(allocated_blocks, blocks);
}

TEST(queue_create_out_of_memory_is_null_handle_and_works_later) {
  use_test_allocator();
  fail_after = 0;
  fail_only_once = false;
  CHECK_EQ(multicast_queue_create(NULL).id, 0);
  fail_after = -1;
  CHECK(multicast_queue_create(NULL).id != 0);
}

/* A full queue refuses what cannot be copied, and keeps its calls. */
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

TEST(queue_counts_each_delegate_for_which_there_was_no_memory) {
  static unsigned char payload[4096];
  use_test_allocator();
  multicast_queue q = default_queue();
  multicast m = multicast_create();
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
  for (int i = 0; i < 100; ++i) { /* so large that the size of the allocation would overflow */
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
