/* Tests how much memory multicast_invoke_with() allocates, and how it fails when memory runs
 * out. */

#include "payloads.h"

/* ---- Allocations ----------------------------------------------------------------------------- */

static multicast m;
static multicast_queue q[2];
static int direct;

static void begin(void) {
  use_test_allocator();
  m = multicast_create();
  q[0] = default_queue();
  q[1] = default_queue();
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0); /* allocates the record of this thread */
}

static void add_rows(const char *rows) {
  for (; *rows != '\0'; ++rows) {
    if (*rows == '-') {
      add(m, counter(&direct));
    } else {
      add_queued(m, counter(&calls), q[*rows - '0']);
    }
  }
}

TEST(payload_that_is_handed_over_takes_one_small_allocation) {
  cargo c = {0, 0, 0};
  multicast_invocation how;
  int64_t blocks, bytes;
  begin();
  add_rows("-001-10");
  for (int kind = 0; kind < 2; ++kind) {
    how = kind == 0 ? handing_over(&c) : copying(&c);
    how.size = kind == 0 ? sizeof c : 1000000; /* the library only passes the size on */
    blocks = allocated_blocks;
    bytes = allocated_bytes;
    CHECK_EQ(multicast_invoke_with(m, &how, NULL), 7);
    CHECK_EQ(allocated_blocks, blocks + 1);
    CHECK(allocated_bytes - bytes <= 64);
    CHECK_EQ(multicast_queue_run(q[0], 0), 3);
    CHECK_EQ(allocated_blocks, blocks + 1);
    CHECK_EQ(multicast_queue_run(q[1], 0), 2);
    CHECK_EQ(allocated_blocks, blocks);
  }
}

TEST(wait_takes_one_allocation_for_each_row_of_calls) {
  begin();
  add_rows("00-0011-1100");
  int64_t blocks = allocated_blocks;
  multicast_invocation how = INVOCATION(.flags = MULTICAST_WAIT, .timeout_ns = 1);
  CHECK_ERROR(multicast_invoke_with(m, &how, NULL), TIMEOUT);
  CHECK_EQ(allocated_blocks, blocks + 3 + 1); /* plus one for the payload */
  CHECK_EQ(multicast_queue_run(q[0], 0), 6);
  CHECK_EQ(multicast_queue_run(q[1], 0), 4);
  CHECK_EQ(allocated_blocks, blocks);
}

TEST(invoke_with_defaults_allocates_as_invoke_does) {
  static char large[1000];
  begin();
  add_rows("-001");
  int64_t blocks = allocated_blocks;
  multicast_invocation how = INVOCATION(.payload = large, .size = 32);
  CHECK_EQ(multicast_invoke_with(m, &how, NULL), 4);
  CHECK_EQ(allocated_blocks, blocks);
  how.size = 33;
  CHECK_EQ(multicast_invoke_with(m, &how, NULL), 4);
  CHECK_EQ(allocated_blocks, blocks + 1);
  CHECK_EQ(multicast_queue_clear(q[0]), 4);
  CHECK_EQ(multicast_queue_clear(q[1]), 2);
  CHECK_EQ(allocated_blocks, blocks);
}

/* ---- Failing allocations --------------------------------------------------------------------- */

TEST(payload_that_cannot_be_taken_over_is_released_and_not_used) {
  cargo c = {0, 0, 0};
  multicast_invocation how = handing_over(&c);
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  begin();
  add_rows("-0-1");
  memset(&out.called, 0x77, 40);
  fail_after = 0;
  CHECK_ERROR(multicast_invoke_with(m, &how, &out), OUT_OF_MEMORY);
  CHECK(has_failed);
  CHECK_EQ(c.releases, 1);
  CHECK_EQ(c.size, sizeof c);
  CHECK_EQ(direct, 0);
  CHECK_EQ(stats_of(q[0]).queued, 0);
  CHECK_OUTCOME(out, 0, 0, 0, 0, 0);
}

/* The outcome is not a valid struct, so the library must not write to the outcome, whatever else
 * fails. */
TEST(outcome_of_bad_struct_size_is_not_written_without_memory) {
  union {
    uint64_t bytes[8];
    multicast_outcome out;
  } given, before;
  uint32_t sizes[] = {4, 1025};
  begin();
  add_rows("-");
  for (size_t i = 0; i < 2; ++i) {
    cargo c = {0, 0, 0};
    multicast_invocation how = handing_over(&c);
    memset(&given, 0x77, sizeof given);
    given.out.struct_size = sizes[i];
    before = given;
    fail_after = 0;
    CHECK(multicast_invoke_with(m, &how, &given.out) < 0);
    fail_after = -1;
    CHECK(memcmp(given.bytes, before.bytes, sizeof given.bytes) == 0);
    CHECK_EQ(c.releases, 1);
  }
}

TEST(outcome_of_newer_caller_is_zero_to_its_end_without_memory) {
  union {
    unsigned char bytes[96];
    multicast_outcome out;
  } given;
  cargo c = {0, 0, 0};
  multicast_invocation how = handing_over(&c);
  begin();
  memset(&given, 0x77, sizeof given);
  given.out.struct_size = sizeof given;
  fail_after = 0;
  CHECK_ERROR(multicast_invoke_with(m, &how, &given.out), OUT_OF_MEMORY);
  for (size_t i = 4; i < sizeof given; ++i) CHECK_EQ(given.bytes[i], 0);
}
