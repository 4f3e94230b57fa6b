/* Rule 10: bad input never crashes, hangs or corrupts; each is a status and changes nothing. */

#include "harness.h"

static int calls;

/* Every function that takes a handle of a multicast. */
static void expect_invalid_multicast(uint64_t id) {
  multicast m;
  multicast_delegate d = counter(&calls), out[1];
  multicast_token t;
  m.id = id;
  CHECK(!multicast_is_valid(m));
  CHECK(!multicast_contains(m, d));
  CHECK_STATUS(multicast_destroy(m), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_add(m, d, NULL, &t), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_add_many(m, &d, 1, NULL, &t), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_add_many(m, NULL, 0, NULL, NULL), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_remove(m, d), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_remove_many(m, &d, 1), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_remove_context(m, &calls), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_remove_at(m, 0), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_remove_all(m), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_count(m), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_list(m, out, 1), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_invoke(m, 0, NULL, 0), MULTICAST_ERROR_INVALID_HANDLE);
}

static bool visit_nothing(void *context, const multicast_delegate *delegate) {
  (void)context;
  (void)delegate;
  return true;
}

static void expect_invalid_token(uint64_t id) {
  multicast_token t;
  t.id = id;
  CHECK(!multicast_token_is_live(t));
  CHECK_STATUS(multicast_token_remove(t), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_token_remove_nowait(t), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_token_remove_within(t, 0), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_token_remove_within(t, UINT64_MAX), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_token_pause(t), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_token_resume(t), MULTICAST_ERROR_INVALID_HANDLE);
}

TEST(null_handles_are_invalid_before_anything_exists) {
  expect_invalid_multicast(0);
  expect_invalid_token(0);
}

TEST(null_handles_are_invalid) {
  multicast m = multicast_create();
  multicast none = {0};
  add(m, counter(&calls));
  expect_invalid_multicast(0);
  expect_invalid_token(0);
  CHECK_STATUS(multicast_visit(none, visit_nothing, NULL), MULTICAST_ERROR_INVALID_HANDLE);
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
  CHECK_STATUS(multicast_visit(old, visit_nothing, NULL), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(multicast_count(new), 1);
}

TEST(handles_of_vacant_slots_are_invalid_whatever_kind_they_claim) {
  multicast gone = multicast_create(), kept = multicast_create();
  multicast_token token = add(kept, counter(&calls));
  uint64_t kind;
  CHECK_OK(multicast_token_remove(token));
  CHECK_OK(multicast_destroy(gone));
  for (kind = 0; kind < 16; ++kind) { /* the four bits above the index */
    expect_invalid_multicast((gone.id & ~(UINT64_C(15) << 26)) | kind << 26);
    expect_invalid_token((token.id & ~(UINT64_C(15) << 26)) | kind << 26);
  }
  CHECK_EQ(multicast_count(kept), 0);
}

TEST(handles_of_another_kind_are_invalid) {
  multicast m = multicast_create();
  multicast_token token = add(m, counter(&calls));
  expect_invalid_multicast(token.id);
  expect_invalid_token(m.id);
  CHECK_EQ(multicast_count(m), 1);
}

TEST(forged_handles_are_invalid) {
  multicast m = multicast_create();
  multicast_token token = add(m, counter(&calls));
  uint64_t random = UINT64_C(0x9E3779B97F4A7C15);
  int bit, i;
  multicast_destroy(multicast_create()); /* a vacant slot is there, too */
  expect_invalid_multicast(UINT64_MAX);
  expect_invalid_token(UINT64_MAX);
  for (bit = 0; bit < 64; ++bit) {
    expect_invalid_multicast(m.id ^ (UINT64_C(1) << bit));
    expect_invalid_token(token.id ^ (UINT64_C(1) << bit));
    expect_invalid_multicast(UINT64_C(1) << bit);
    expect_invalid_token(UINT64_C(1) << bit);
  }
  for (i = 0; i < 20000; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    if (random != m.id) expect_invalid_multicast(random);
    if (random != token.id) expect_invalid_token(random);
  }
  /* The low bits of what exists with every high bit set or not: vacant and used slots alike. */
  for (i = 0; i < 4096; ++i) {
    uint64_t id = (random & ~UINT64_C(0x3FFFFFFF)) | (uint64_t)i;
    expect_invalid_multicast(id);
    expect_invalid_token(id);
    expect_invalid_multicast((uint64_t)i);
    expect_invalid_token((uint64_t)i);
  }
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
}

TEST(null_function_is_invalid_argument) {
  multicast m = multicast_create();
  multicast_delegate d = {NULL, NULL};
  multicast_token t = {77};
  CHECK_STATUS(multicast_add(m, d, NULL, &t), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(t.id, 0);
  CHECK_STATUS(multicast_remove(m, d), MULTICAST_ERROR_NOT_FOUND);
  CHECK(!multicast_contains(m, d));
  CHECK_EQ(multicast_count(m), 0);
}

TEST(null_pointers_are_invalid_argument) {
  multicast m = multicast_create();
  multicast_token t = {77};
  CHECK_STATUS(multicast_add_many(m, NULL, 1, NULL, &t), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(t.id, 0);
  CHECK_STATUS(multicast_remove_many(m, NULL, 1), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_list(m, NULL, 1), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_visit(m, NULL, NULL), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_invoke(m, 0, NULL, 1), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_set_allocator(NULL), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_options_init(NULL, 64), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_allocator_init(NULL, 32), MULTICAST_ERROR_INVALID_ARGUMENT);
}

/* ---- Options --------------------------------------------------------------------------------- */

static void expect_refused(const multicast_options *options) {
  multicast m = multicast_create();
  multicast_token t = {77};
  CHECK_STATUS(multicast_add(m, counter(&calls), options, &t), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(t.id, 0);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_OK(multicast_destroy(m));
}

TEST(struct_size_zero_or_too_small_is_invalid_argument) {
  uint32_t size;
  for (size = 0; size < sizeof(multicast_options); ++size) {
    multicast_options options = multicast_options_default();
    options.struct_size = size;
    expect_refused(&options);
  }
}

TEST(struct_size_of_a_newer_caller_is_fine_if_the_rest_is_zero) {
  struct {
    multicast_options known;
    uint64_t unknown[20];
  } newer;
  multicast m = multicast_create();
  memset(&newer, 0, sizeof newer);
  newer.known.struct_size = sizeof newer;
  newer.known.priority = 4;
  CHECK_OK(multicast_add(m, counter(&calls), &newer.known, NULL));
  newer.unknown[19] = UINT64_C(1) << 56;
  expect_refused(&newer.known);
}

TEST(struct_size_beyond_1024_is_invalid_argument) {
  multicast_options options = multicast_options_default();
  options.struct_size = 1025;
  expect_refused(&options);
  options.struct_size = UINT32_MAX;
  expect_refused(&options);
}

TEST(unknown_flags_are_invalid_argument) {
  int bit;
  for (bit = 3; bit < 32; ++bit) {
    multicast_options options = multicast_options_default();
    options.flags = 1u << bit;
    expect_refused(&options);
  }
}

TEST(reserved_fields_that_are_not_zero_are_invalid_argument) {
  multicast_options options = multicast_options_default();
  options.reserved = 1;
  expect_refused(&options);
}

TEST(queue_that_is_none_is_invalid_handle_and_releases) {
  int releases = 0;
  multicast m = multicast_create();
  multicast_token t = {77};
  multicast_options options = with_release(count_release);
  options.queue.id = 1;
  CHECK_STATUS(multicast_add(m, counter(&releases), &options, &t),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(releases, 1);
  CHECK_EQ(t.id, 0);
  options.queue.id = m.id; /* another kind */
  CHECK_STATUS(multicast_add(m, counter(&releases), &options, NULL),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(releases, 2);
  CHECK_EQ(multicast_count(m), 0);
}

TEST(counts_beyond_all_memory_are_limit) {
  multicast m = multicast_create();
  multicast_delegate d = counter(&calls);
  CHECK_STATUS(multicast_add_many(m, &d, SIZE_MAX, NULL, NULL), MULTICAST_ERROR_LIMIT);
  CHECK_STATUS(multicast_add_many(m, &d, ((size_t)1 << 26) + 1, NULL, NULL),
               MULTICAST_ERROR_LIMIT);
  CHECK_STATUS(multicast_remove_at(m, SIZE_MAX), MULTICAST_ERROR_NOT_FOUND);
  CHECK_EQ(multicast_count(m), 0);
}

TEST(add_many_of_2_to_the_26_is_not_beyond_the_limit) {
  multicast m = multicast_create();
  CHECK_STATUS(multicast_add_many(m, NULL, (size_t)1 << 26, NULL, NULL),
               MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_add_many(m, NULL, ((size_t)1 << 26) + 1, NULL, NULL),
               MULTICAST_ERROR_LIMIT);
  CHECK_EQ(multicast_count(m), 0);
}

/* ---- Structs of newer callers ---------------------------------------------------------------- */

enum { LARGEST_STRUCT = 1024 };

/* A struct of each kind, and what takes it; returns whether it did. */
typedef struct taker {
  const char *name;
  size_t known;
  multicast_status (*init)(void *given, size_t size);
  bool (*takes)(void *given);
} taker;

static multicast_queue asked_queue;

static multicast_status init_options(void *given, size_t size) {
  return multicast_options_init(given, size);
}

static multicast_status init_queue_options(void *given, size_t size) {
  return multicast_queue_options_init(given, size);
}

static multicast_status init_broadcaster_options(void *given, size_t size) {
  return multicast_broadcaster_options_init(given, size);
}

static multicast_status init_stats(void *given, size_t size) {
  return multicast_queue_stats_init(given, size);
}

static multicast_status init_allocator(void *given, size_t size) {
  return multicast_allocator_init(given, size);
}

static bool takes_options(void *given) {
  multicast m = multicast_create();
  multicast_status status = multicast_add(m, counter(&calls), given, NULL);
  if (status != MULTICAST_OK) CHECK_STATUS(status, MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_OK(multicast_destroy(m));
  return status == MULTICAST_OK;
}

static bool takes_queue_options(void *given) {
  multicast_queue q;
  ((multicast_queue_options *)given)->capacity = 1;
  q = multicast_queue_create(given);
  if (q.id != 0) CHECK_OK(multicast_queue_destroy(q));
  return q.id != 0;
}

static bool takes_broadcaster_options(void *given) {
  multicast_broadcaster b = multicast_broadcaster_create(given);
  if (b.id != 0) CHECK_OK(multicast_broadcaster_destroy(b));
  return b.id != 0;
}

static bool takes_stats(void *given) {
  multicast_status status = multicast_queue_statistics(asked_queue, given);
  if (status != MULTICAST_OK) CHECK_STATUS(status, MULTICAST_ERROR_INVALID_ARGUMENT);
  return status == MULTICAST_OK;
}

/* Something has been created: what is right is refused as too late. */
static bool takes_allocator(void *given) {
  multicast_allocator *allocator = given;
  multicast_status status;
  allocator->allocate = (void *(*)(void *, size_t, size_t))(uintptr_t)1;
  allocator->deallocate = (void (*)(void *, void *, size_t, size_t))(uintptr_t)1;
  status = multicast_set_allocator(allocator);
  if (status != MULTICAST_ERROR_STATE) CHECK_STATUS(status, MULTICAST_ERROR_INVALID_ARGUMENT);
  return status == MULTICAST_ERROR_STATE;
}

static const taker takers[] = {
    {"multicast_options", 64, init_options, takes_options},
    {"multicast_queue_options", 12, init_queue_options, takes_queue_options},
    {"multicast_broadcaster_options", 16, init_broadcaster_options, takes_broadcaster_options},
    {"multicast_queue_stats", 72, init_stats, takes_stats},
    {"multicast_allocator", 32, init_allocator, takes_allocator},
};
enum { TAKERS = sizeof takers / sizeof *takers };

typedef union given {
  uint64_t aligned;
  unsigned char bytes[LARGEST_STRUCT + 8];
} given;

/* Or refused, because of a byte. */
static void expect_taken(const taker *t, given *g, size_t size, size_t byte) {
  char line[128];
  if (t->takes(g) == (byte == SIZE_MAX)) return;
  if (byte == SIZE_MAX) {
    snprintf(line, sizeof line, "of %zu bytes is refused", size);
  } else {
    snprintf(line, sizeof line, "of %zu bytes is taken though byte %zu is %d", size, byte,
             g->bytes[byte]);
  }
  check_failed(__FILE__, __LINE__, t->name, line);
}

TEST(struct_of_a_newer_caller_is_refused_for_any_byte_that_is_not_zero_beyond_what_is_known) {
  static const size_t sizes[] = {96, 257, LARGEST_STRUCT};
  size_t i, which, byte;
  asked_queue = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
  for (i = 0; i < TAKERS; ++i) {
    for (which = 0; which < sizeof sizes / sizeof *sizes; ++which) {
      given g;
      memset(&g, 0xFF, sizeof g); /* what is beyond the struct does not matter */
      CHECK_OK(takers[i].init(&g, sizes[which]));
      expect_taken(&takers[i], &g, sizes[which], SIZE_MAX);
      for (byte = takers[i].known; byte < sizes[which]; ++byte) {
        g.bytes[byte] = 1;
        expect_taken(&takers[i], &g, sizes[which], byte);
        g.bytes[byte] = 0;
      }
      expect_taken(&takers[i], &g, sizes[which], SIZE_MAX);
    }
  }
}

TEST(struct_of_any_size_from_what_is_known_to_1024_can_be_initialized_and_is_taken) {
  size_t i, size, byte;
  asked_queue = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
  for (i = 0; i < TAKERS; ++i) {
    for (size = 0; size <= LARGEST_STRUCT + 1; ++size) {
      bool is_right = size >= takers[i].known && size <= LARGEST_STRUCT;
      uint32_t told = 0;
      given g;
      memset(&g, 0xFF, sizeof g);
      CHECK_STATUS(takers[i].init(&g, size),
                   is_right ? MULTICAST_OK : MULTICAST_ERROR_INVALID_ARGUMENT);
      for (byte = sizeof told; byte < sizeof g.bytes; ++byte)
        CHECK_EQ(g.bytes[byte], is_right && byte < size ? 0 : 0xFF);
      if (!is_right) continue;
      memcpy(&told, &g, sizeof told);
      CHECK_EQ(told, size);
      expect_taken(&takers[i], &g, size, SIZE_MAX);
    }
  }
}

/* ---- Out of memory --------------------------------------------------------------------------- */

/* Runs an operation with the first allocation failing, then the second, until none is left, once
 * with that one alone failing and once with all from there on. */
typedef struct attempt {
  multicast m;
  int64_t result;
} attempt;

static void fail_each_allocation(void (*prepare)(attempt *), void (*operate)(attempt *),
                                 void (*verify)(attempt *)) {
  int mode, which;
  use_test_allocator();
  for (mode = 0; mode < 2; ++mode) {
    fail_only_once = mode == 0;
    for (which = 0;; ++which) {
      attempt a = {{0}, 0};
      int64_t before;
      CHECK(which < 10000);
      prepare(&a);
      before = allocated_bytes;
      has_failed = false;
      fail_after = which;
      operate(&a);
      fail_after = -1;
      if (!has_failed) {
        CHECK(a.result >= 0);
        verify(&a);
        if (multicast_is_valid(a.m)) multicast_destroy(a.m);
        break;
      }
      (void)before;
      if (a.result < 0) CHECK_STATUS(a.result, MULTICAST_ERROR_OUT_OF_MEMORY);
      verify(&a);
      if (multicast_is_valid(a.m)) multicast_destroy(a.m);
    }
  }
}

static void prepare_nothing(attempt *a) { (void)a; }
static void prepare_empty(attempt *a) {
  a->m = multicast_create();
  CHECK(a->m.id != 0);
}
static void verify_nothing(attempt *a) { (void)a; }

static void try_create(attempt *a) {
  a->m = multicast_create();
  a->result = a->m.id != 0 ? 0 : MULTICAST_ERROR_OUT_OF_MEMORY;
}

TEST(out_of_memory_in_create_gives_the_null_handle) {
  fail_each_allocation(prepare_nothing, try_create, verify_nothing);
}

static int add_releases;
static void try_add(attempt *a) {
  multicast_options options = with_release(count_release);
  int i;
  add_releases = 0;
  for (i = 0; i < 40 && a->result >= 0; ++i) {
    multicast_token token = {1};
    a->result = multicast_add(a->m, counter(&add_releases), &options, &token);
    CHECK((a->result == MULTICAST_OK) == (token.id != 0));
    CHECK_EQ(add_releases, a->result == MULTICAST_OK ? 0 : 1);
    CHECK_EQ(multicast_count(a->m), a->result == MULTICAST_OK ? i + 1 : i);
  }
}

TEST(out_of_memory_in_add_changes_nothing_and_releases) {
  fail_each_allocation(prepare_empty, try_add, verify_nothing);
}

TEST(out_of_memory_in_add_again_and_again_leaks_nothing) {
  multicast m;
  int64_t before;
  int i;
  use_test_allocator();
  m = multicast_create();
  add(m, counter(&calls));
  add(m, counter(&calls)); /* the next one needs a larger list */
  before = allocated_bytes;
  for (i = 0; i < 5000; ++i) {
    fail_after = 0;
    CHECK_STATUS(multicast_add(m, counter(&calls), NULL, NULL), MULTICAST_ERROR_OUT_OF_MEMORY);
  }
  fail_after = -1;
  CHECK_EQ(allocated_bytes, before);
  CHECK_EQ(multicast_count(m), 2);
}

TEST(out_of_memory_in_add_gives_back_what_it_had_taken) {
  /* Multicasts far enough apart share what registrations are taken from. */
  multicast m[129];
  int releases = 0, i;
  int64_t before;
  multicast_options options = with_release(count_release);
  multicast_lifetime ended;
  use_test_allocator();
  for (i = 0; i < 129; ++i) m[i] = multicast_create();
  for (i = 32; i < 129; i += 32) add(m[i], counter(&calls)); /* has room for one more */
  add(m[0], counter(&calls));
  add(m[0], counter(&calls)); /* has none */
  for (i = 0; i < 200; ++i) {
    fail_after = 0; /* the larger list */
    CHECK_STATUS(multicast_add(m[0], counter(&calls), NULL, NULL), MULTICAST_ERROR_OUT_OF_MEMORY);
  }
  for (i = 32; i < 129; i += 32) {
    fail_after = 0; /* no memory is needed */
    CHECK_OK(multicast_add(m[i], counter(&calls), NULL, NULL));
  }
  fail_after = -1;
  before = allocated_bytes;
  for (i = 0; i < 200; ++i) {
    fail_after = 1; /* there is memory for the options, not for the list */
    CHECK_STATUS(multicast_add(m[0], counter(&releases), &options, NULL),
                 MULTICAST_ERROR_OUT_OF_MEMORY);
  }
  fail_after = -1;
  CHECK_EQ(releases, 200);
  CHECK_EQ(allocated_bytes, before);
  ended = multicast_lifetime_create();
  CHECK_OK(multicast_lifetime_end(ended));
  options.lifetime = ended;
  before = allocated_bytes;
  for (i = 0; i < 200; ++i) {
    CHECK_STATUS(multicast_add(m[0], counter(&releases), &options, NULL),
                 MULTICAST_ERROR_INVALID_HANDLE);
  }
  CHECK_EQ(allocated_bytes, before);
}

static void try_add_by_priority(attempt *a) {
  multicast_options options = multicast_options_default();
  int i;
  for (i = 0; i < 20 && a->result >= 0; ++i) {
    options.priority = i;
    a->result = multicast_add(a->m, counter(&calls), &options, NULL);
    CHECK_EQ(multicast_count(a->m), a->result == MULTICAST_OK ? i + 1 : i);
  }
}

TEST(out_of_memory_in_add_by_priority_changes_nothing) {
  fail_each_allocation(prepare_empty, try_add_by_priority, verify_nothing);
}

static void try_add_unique(attempt *a) {
  multicast_options options = multicast_options_default();
  int i;
  options.flags = MULTICAST_UNIQUE;
  for (i = 0; i < 20 && a->result >= 0; ++i) {
    a->result = multicast_add(a->m, counter(&calls), &options, NULL);
    if (i > 0 || a->result == MULTICAST_OK) CHECK_EQ(multicast_count(a->m), 1);
  }
}

TEST(out_of_memory_in_add_unique_keeps_the_old_one) {
  fail_each_allocation(prepare_empty, try_add_unique, verify_nothing);
}

static int many_releases;
static void try_add_many(attempt *a) {
  multicast_options options = with_release(count_release);
  multicast_delegate d[50];
  multicast_token tokens[50];
  int i;
  many_releases = 0;
  for (i = 0; i < 50; ++i) d[i] = counter(&many_releases);
  a->result = multicast_add_many(a->m, d, 50, &options, tokens);
  CHECK_EQ(multicast_count(a->m), a->result == MULTICAST_OK ? 50 : 0);
  CHECK_EQ(many_releases, a->result == MULTICAST_OK ? 0 : 50);
  for (i = 0; i < 50; ++i) CHECK((a->result == MULTICAST_OK) == (tokens[i].id != 0));
}

TEST(out_of_memory_in_add_many_adds_none_and_releases_all) {
  fail_each_allocation(prepare_empty, try_add_many, verify_nothing);
}

static void prepare_hundred(attempt *a) {
  int i;
  prepare_empty(a);
  for (i = 0; i < 100; ++i) add(a->m, counter(&calls));
}

static void try_removals(attempt *a) {
  int i;
  for (i = 0; i < 95; ++i) CHECK_OK(multicast_remove_at(a->m, 0));
  CHECK_EQ(multicast_count(a->m), 5);
  CHECK_EQ(multicast_remove_all(a->m), 5);
  CHECK_OK(multicast_destroy(a->m));
}

TEST(out_of_memory_never_keeps_a_removal_from_working) {
  fail_each_allocation(prepare_hundred, try_removals, verify_nothing);
}

static void *try_first_invoke(void *argument) {
  attempt *a = argument;
  a->result = multicast_invoke(a->m, 0, NULL, 0);
  return NULL;
}

TEST(out_of_memory_in_the_first_invoke_of_a_thread) {
  attempt a = {{0}, 0};
  use_test_allocator();
  prepare_hundred(&a);
  fail_after = 0;
  on_another_thread(try_first_invoke, &a);
  CHECK_STATUS(a.result, MULTICAST_ERROR_OUT_OF_MEMORY);
  on_another_thread(try_first_invoke, &a);
  CHECK_EQ(a.result, 100);
}

TEST(nothing_is_leaked_by_a_thousand_rounds_of_everything) {
  int64_t before = 0;
  int round, i;
  use_test_allocator();
  for (round = 0; round < 1000; ++round) {
    int releases = 0, count = 1 + round % 70;
    multicast_options options = with_release(count_release);
    multicast m = multicast_create();
    for (i = 0; i < count; ++i) {
      options.priority = i % 3;
      add_with(m, counter(&releases), &options);
    }
    for (i = 0; i < count / 2; ++i) CHECK_OK(multicast_remove_at(m, (size_t)(i % 2)));
    CHECK_OK(multicast_destroy(m));
    CHECK_EQ(releases, count);
    if (round == 200) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}
