/* The payload of a queued call is a copy, which exists until the call has returned. */

#include "notes.h"
#include "queues.h"

static void expect_copy_of(size_t size) {
  static parcel p, direct;
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  unsigned char *payload = malloc(size), *original = malloc(size);
  CHECK(payload != NULL && original != NULL);
  for (size_t i = 0; i < size; ++i) original[i] = payload[i] = (unsigned char)(i * 7 + size);
  add_queued(m, keeping(&p), q);
  add(m, keeping(&direct));
  CHECK_EQ(multicast_invoke(m, 0, payload, size), 2);
  CHECK(direct.payload == payload);
  memset(payload, 0xEE, size);
  int before = p.calls;
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(p.calls, before + 1);
  CHECK_EQ(p.size, size);
  CHECK(p.payload != payload);
  CHECK_EQ((uintptr_t)p.payload % 16, 0);
  CHECK(memcmp(p.bytes, original, size) == 0);
  free(payload);
  free(original);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_OK(multicast_destroy(m));
}
TEST(queue_copies_a_payload_of_4096_bytes) { expect_copy_of(4096); }

TEST(queue_copies_payloads_of_every_size) {
  for (size_t size = 1; size <= 200; ++size) expect_copy_of(size);
}

TEST_OF_QUEUE(queue_copies_a_payload_that_is_not_aligned) {
  static parcel p;
  unsigned char bytes[128];
  for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = (unsigned char)i;
  add_queued(m, keeping(&p), q);
  for (size_t size = 1; size < 100; ++size) {
    CHECK_EQ(multicast_invoke(m, 0, bytes + size % 16 + 1, size), 1);
    CHECK_EQ(multicast_queue_run(q, 0), 1);
    CHECK_EQ((uintptr_t)p.payload % 16, 0);
    CHECK(memcmp(p.bytes, bytes + size % 16 + 1, size) == 0);
  }
}

TEST_OF_QUEUE(queue_passes_the_pointer_itself_when_the_size_is_0) {
  static parcel p;
  int object = 5;
  add_queued(m, keeping(&p), q);
  CHECK_EQ(multicast_invoke(m, 0, &object, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(p.payload == &object && p.size == 0);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(p.payload == NULL && p.size == 0);
}

TEST_OF_QUEUE(queue_takes_no_size_without_a_payload) {
  add_queued(m, noting('a'), q);
  CHECK_ERROR(multicast_invoke(m, 0, NULL, 1), INVALID_ARGUMENT);
  CHECK_TEXT(figures(q), "");
}

TEST(queue_shares_one_copy_between_all_delegates_of_an_invocation) {
  static parcel p[8];
  static unsigned char payload[4096];
  use_test_allocator();
  multicast_queue q = default_queue();
  multicast_queue other = default_queue();
  multicast m = multicast_create();
  for (int i = 0; i < 8; ++i) add_queued(m, keeping(&p[i]), i % 2 == 0 ? q : other);
  multicast_invoke(m, 0, payload, 1);
  multicast_queue_run(q, 0);
  multicast_queue_run(other, 0);
  for (int i = 0; i < 4096; ++i) payload[i] = (unsigned char)(i * 3);
  int64_t blocks = allocated_blocks;
  int64_t bytes = allocated_bytes;
  CHECK_EQ(multicast_invoke(m, 0, payload, sizeof payload), 8);
  CHECK_EQ(allocated_blocks, blocks + 1);
  CHECK_EQ(multicast_queue_run(q, 0), 4);
  CHECK(memcmp(p[0].bytes, payload, 4096) == 0 && memcmp(p[6].bytes, payload, 4096) == 0);
  CHECK_EQ(multicast_queue_run(other, 3), 3);
  CHECK_EQ(allocated_blocks, blocks + 1); /* one call still needs the copy */
  CHECK_EQ(multicast_queue_run(other, 0), 1);
  CHECK(memcmp(p[7].bytes, payload, 4096) == 0);
  CHECK_EQ(allocated_blocks, blocks);
  CHECK_EQ(allocated_bytes, bytes);
}

TEST_OF_MEMORY(queue_calls_of_up_to_32_bytes_need_no_allocation) {
  unsigned char payload[33] = {0};
  multicast_queue q = default_queue();
  add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, payload, 1), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  fail_after = 0;
  for (int i = 0; i < 2000; ++i) {
    CHECK_EQ(multicast_invoke(m, 0, payload, (size_t)i % 33), 1);
    if (i % 100 == 99) CHECK_EQ(multicast_queue_run(q, 0), 100);
  }
  CHECK(!has_failed);
}

FUNCTION(queue_again_and_compare, requeuer *r) {
  unsigned char seen[64], other[64];
  memcpy(seen, payload, size);
  memset(other, 0xCC, sizeof other);
  if (r->left > 0) {
    --r->left;
    for (int i = 0; i < 5; ++i) multicast_invoke(r->target, 0, other, size);
  }
  CHECK(memcmp(payload, seen, size) == 0);
  ++r->made;
}

TEST(queue_payload_stays_as_it_is_while_its_call_queues_more) {
  requeuer r = {{0}, {0}, 3, 0, 0};
  multicast_delegate d;
  unsigned char bytes[64];
  for (size_t size = 16; size <= 64; size += 16) {
    r.left = 3;
    r.queue = queue_with(2, MULTICAST_OVERFLOW_DROP_OLDEST);
    r.target = multicast_create();
    d.function = queue_again_and_compare;
    d.context = &r;
    add_queued(r.target, d, r.queue);
    memset(bytes, 0x11, sizeof bytes);
    multicast_invoke(r.target, 0, bytes, size);
    while (multicast_queue_run(r.queue, 0) > 0) {
    }
  }
  CHECK(r.made > 10);
}
