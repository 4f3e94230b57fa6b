/* Handles that are null, stale or forged, and null pointers: each gives a status and changes
 * nothing. */

#include "harness.h"

/* Calls every function that takes the handle of a multicast. */
static void expect_invalid_multicast(uint64_t id) {
  multicast_delegate d = counter(&calls), out[1];
  multicast_token t;
  multicast m = {id};
  CHECK(!multicast_is_valid(m));
  CHECK(!multicast_contains(m, d));
  CHECK_ERROR(multicast_destroy(m), INVALID_HANDLE);
  CHECK_ERROR(multicast_add(m, d, NULL, &t), INVALID_HANDLE);
  CHECK_ERROR(multicast_add_many(m, &d, 1, NULL, &t), INVALID_HANDLE);
  CHECK_ERROR(multicast_add_many(m, NULL, 0, NULL, NULL), INVALID_HANDLE);
  CHECK_ERROR(multicast_remove(m, d), INVALID_HANDLE);
  CHECK_ERROR(multicast_remove_many(m, &d, 1), INVALID_HANDLE);
  CHECK_ERROR(multicast_remove_context(m, &calls), INVALID_HANDLE);
  CHECK_ERROR(multicast_remove_at(m, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_remove_all(m), INVALID_HANDLE);
  CHECK_ERROR(multicast_count(m), INVALID_HANDLE);
  CHECK_ERROR(multicast_list(m, out, 1), INVALID_HANDLE);
  CHECK_ERROR(multicast_invoke(m, 0, NULL, 0), INVALID_HANDLE);
}

static bool visit_nothing(void *context, const multicast_delegate *delegate) {
  return true;
}

static void expect_invalid_token(uint64_t id) {
  multicast_token t = {id};
  CHECK(!multicast_token_is_live(t));
  CHECK_ERROR(multicast_token_remove(t), INVALID_HANDLE);
  CHECK_ERROR(multicast_token_remove_nowait(t), INVALID_HANDLE);
  CHECK_ERROR(multicast_token_remove_within(t, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_token_remove_within(t, UINT64_MAX), INVALID_HANDLE);
  CHECK_ERROR(multicast_token_pause(t), INVALID_HANDLE);
  CHECK_ERROR(multicast_token_resume(t), INVALID_HANDLE);
}

TEST(null_handles_are_invalid_before_anything_exists) {
  expect_invalid_multicast(0);
  expect_invalid_token(0);
}

TEST_OF_MULTICAST(null_handles_are_invalid) {
  multicast none = {0};
  add(m, counter(&calls));
  expect_invalid_multicast(0);
  expect_invalid_token(0);
  CHECK_ERROR(multicast_visit(none, visit_nothing, NULL), INVALID_HANDLE);
}

TEST(stale_handles_are_invalid_though_their_slots_are_used_again) {
  multicast old = multicast_create(), new;
  multicast_token token = add(old, counter(&calls));
  CHECK_OK(multicast_destroy(old));
  expect_invalid_multicast(old.id);
  expect_invalid_token(token.id);
  new = multicast_create();
  add(new, counter(&calls));
  CHECK(new.id != old.id);
  expect_invalid_multicast(old.id);
  expect_invalid_token(token.id);
  CHECK_ERROR(multicast_visit(old, visit_nothing, NULL), INVALID_HANDLE);
  CHECK_EQ(multicast_count(new), 1);
}

TEST(handles_of_vacant_slots_are_invalid_whatever_kind_they_claim) {
  multicast gone = multicast_create(), kept = multicast_create();
  multicast_token token = add(kept, counter(&calls));
  CHECK_OK(multicast_token_remove(token));
  CHECK_OK(multicast_destroy(gone));
  for (uint64_t kind = 0; kind < 16; ++kind) { /* the four bits of the kind */
    expect_invalid_multicast((gone.id & ~(UINT64_C(15) << 26)) | kind << 26);
    expect_invalid_token((token.id & ~(UINT64_C(15) << 26)) | kind << 26);
  }
  CHECK_EQ(multicast_count(kept), 0);
}

TEST_OF_MULTICAST(handles_of_another_kind_are_invalid) {
  multicast_token token = add(m, counter(&calls));
  expect_invalid_multicast(token.id);
  expect_invalid_token(m.id);
  CHECK_EQ(multicast_count(m), 1);
}

TEST_OF_MULTICAST(forged_handles_are_invalid) {
  multicast_token token = add(m, counter(&calls));
  uint64_t random = UINT64_C(0x9E3779B97F4A7C15);
  multicast_destroy(multicast_create()); /* leaves a vacant slot */
  expect_invalid_multicast(UINT64_MAX);
  expect_invalid_token(UINT64_MAX);
  for (int bit = 0; bit < 64; ++bit) {
    expect_invalid_multicast(m.id ^ (UINT64_C(1) << bit));
    expect_invalid_token(token.id ^ (UINT64_C(1) << bit));
    expect_invalid_multicast(UINT64_C(1) << bit);
    expect_invalid_token(UINT64_C(1) << bit);
  }
  for (int i = 0; i < 20000; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    if (random != m.id) expect_invalid_multicast(random);
    if (random != token.id) expect_invalid_token(random);
  }
  /* Low bits of existing slots, vacant and used, with random high bits and with none. */
  for (int i = 0; i < 4096; ++i) {
    uint64_t id = (random & ~UINT64_C(0x3FFFFFFF)) | (uint64_t)i;
    expect_invalid_multicast(id);
    expect_invalid_token(id);
    expect_invalid_multicast((uint64_t)i);
    expect_invalid_token((uint64_t)i);
  }
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
}

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
