/* Tests options and other structs that are invalid, or that come from a caller with a newer
 * header. */

#include "harness.h"

#include <sys/mman.h>
#include <unistd.h>

/* ---- Options --------------------------------------------------------------------------------- */

static void expect_refused(const multicast_add_options *options) {
  multicast m = multicast_create();
  multicast_token t = {77};
  CHECK_ERROR(multicast_add(m, counter(&calls), options, &t), INVALID_ARGUMENT);
  CHECK_EQ(t.id, 0);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_OK(multicast_destroy(m));
}

/* The library must not read past the end of a struct that is too small, since the bytes beyond it
 * are not part of the struct. In this test, reading these bytes causes a crash. */
TEST(struct_size_too_small_is_noticed_before_all_else) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  multicast m = multicast_create();
  CHECK(pages != MAP_FAILED);
  CHECK_EQ(mprotect(pages + page, page, PROT_NONE), 0);
  for (uint32_t size = 8; size < offsetof(multicast_add_options, label); size += 4) {
    char *end = pages + page - size;
    memset(end, 0, size);
    memcpy(end, &size, sizeof size);
    CHECK_ERROR(multicast_add(m, counter(&calls), (multicast_add_options *)(void *)end, NULL),
                INVALID_ARGUMENT);
  }
  CHECK_EQ(munmap(pages, 2 * page), 0);
}

TEST(unknown_flags_are_invalid_argument) {
  for (int bit = 4; bit < 32; ++bit) {
    expect_refused(&ADD_OPTIONS(.flags = 1u << bit));
  }
}

TEST(reserved_fields_that_are_not_zero_are_invalid_argument) {
  expect_refused(&ADD_OPTIONS(.reserved = 1));
}

TEST_OF_MULTICAST(add_many_of_2_to_the_26_is_not_beyond_the_limit) {
  CHECK_ERROR(multicast_add_many(m, NULL, (size_t)1 << 26, NULL, NULL), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_add_many(m, NULL, ((size_t)1 << 26) + 1, NULL, NULL), LIMIT);
  CHECK_EQ(multicast_count(m), 0);
}

TEST_OF_MULTICAST(add_many_of_none_refuses_options_that_contradict_themselves) {
  multicast_delegate none = {NULL, NULL};
  multicast_add_options options = multicast_add_options_default();
  options.lock = lock_same; /* there is no `unlock` */
  CHECK_ERROR(multicast_add_many(m, NULL, 0, &options, NULL), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_add_many(m, &none, 0, &options, NULL), INVALID_ARGUMENT);
}

/* ---- Structs of newer callers ---------------------------------------------------------------- */

enum { LARGEST_STRUCT = 1024 };

/* A struct type, and a function that passes a struct of that type to the library. */
typedef struct taker {
  const char *name;
  size_t known;
  size_t smallest; /* the size in version 1.0, if the struct has grown since then */
  bool (*takes)(void *given);
  bool is_output; /* the library fills it, so bytes beyond the known size are ignored */
} taker;

static multicast_queue asked_queue;
static multicast_token asked_token;
static multicast asked_target;

static bool takes_options(void *given) {
  multicast m = multicast_create();
  multicast_status status = multicast_add(m, counter(&calls), given, NULL);
  if (status != MULTICAST_OK) CHECK_ERROR(status, INVALID_ARGUMENT);
  CHECK_OK(multicast_destroy(m));
  return status == MULTICAST_OK;
}

static bool takes_queue_options(void *given) {
  ((multicast_queue_options *)given)->capacity = 1;
  multicast_queue q = multicast_queue_create(given);
  if (q.id != 0) CHECK_OK(multicast_queue_destroy(q));
  return q.id != 0;
}

static bool takes_create_options(void *given) {
  multicast m = multicast_create_with(given);
  if (m.id != 0) CHECK_OK(multicast_destroy(m));
  return m.id != 0;
}

static bool takes_broadcaster_options(void *given) {
  multicast_broadcaster b = multicast_broadcaster_create(given);
  if (b.id != 0) CHECK_OK(multicast_broadcaster_destroy(b));
  return b.id != 0;
}

static bool takes_stats(void *given) {
  multicast_status status = multicast_queue_get_stats(asked_queue, given);
  if (status != MULTICAST_OK) CHECK_ERROR(status, INVALID_ARGUMENT);
  return status == MULTICAST_OK;
}

static bool takes_registration(void *given) {
  multicast_status status = multicast_token_get_registration(asked_token, given);
  if (status != MULTICAST_OK) CHECK_ERROR(status, INVALID_ARGUMENT);
  return status == MULTICAST_OK;
}

/* Valid options result in MULTICAST_ERROR_STATE, because a multicast already exists. */
static bool takes_allocator(void *given) {
  multicast_allocator *allocator = given;
  allocator->allocate = (void *(*)(void *, size_t, size_t))(uintptr_t)1;
  allocator->deallocate = (void (*)(void *, void *, size_t, size_t))(uintptr_t)1;
  multicast_status status = multicast_set_allocator(allocator);
  if (status != MULTICAST_ERROR_STATE) CHECK_ERROR(status, INVALID_ARGUMENT);
  return status == MULTICAST_ERROR_STATE;
}

static bool takes_invocation(void *given) {
  int64_t count = multicast_invoke_with(asked_target, given, NULL);
  if (count != 1) CHECK_ERROR(count, INVALID_ARGUMENT);
  return count == 1;
}

static bool takes_outcome(void *given) {
  multicast_invocation how = MULTICAST_INVOCATION_INIT;
  int64_t count = multicast_invoke_with(asked_target, &how, given);
  if (count != 1) CHECK_ERROR(count, INVALID_ARGUMENT);
  if (count == 1) {
    CHECK_EQ(((multicast_outcome *)given)->called, 1);
    ((multicast_outcome *)given)->called = 0;
  }
  return count == 1;
}

static bool takes_watch(void *given) {
  multicast_status status = multicast_set_watch(asked_target, given);
  if (status != MULTICAST_OK) CHECK_ERROR(status, INVALID_ARGUMENT);
  return status == MULTICAST_OK;
}

static bool takes_token_stats(void *given) {
  multicast_status status = multicast_token_get_stats(asked_token, given);
  if (status != MULTICAST_OK) CHECK_ERROR(status, INVALID_ARGUMENT);
  return status == MULTICAST_OK;
}

/* The size of a struct that contains `fixed` bytes of fixed-size integers, and `pointers`
 * pointers. */
#define BYTES(fixed, pointers) ((fixed) + (pointers) * sizeof(void *))
#define TAKER(TYPE, SMALLEST, ...) {#TYPE, sizeof(TYPE), SMALLEST, __VA_ARGS__}
#define SAME(TYPE, ...) TAKER(TYPE, sizeof(TYPE), __VA_ARGS__)
static const taker takers[] = {
    TAKER(multicast_add_options, BYTES(40, 3), takes_options, false),
    TAKER(multicast_queue_options, BYTES(16, 3), takes_queue_options, false),
    SAME(multicast_broadcaster_options, takes_broadcaster_options, false),
    SAME(multicast_create_options, takes_create_options, false),
    SAME(multicast_queue_stats, takes_stats, true),
    SAME(multicast_registration, takes_registration, true),
    SAME(multicast_allocator, takes_allocator, false),
    SAME(multicast_invocation, takes_invocation, false),
    SAME(multicast_outcome, takes_outcome, true),
    TAKER(multicast_watch, BYTES(16, 4), takes_watch, false),
    SAME(multicast_token_stats, takes_token_stats, true),
};
enum { TAKERS = sizeof takers / sizeof *takers };

typedef union given {
  uint64_t aligned;
  unsigned char bytes[LARGEST_STRUCT + 8];
} given;

/* Makes a struct of the given size that is all zeros except for its size field, and is followed by
 * nonzero bytes. */
static void initialize(given *g, size_t size) {
  const uint32_t told = (uint32_t)size;
  memset(g, 0xFF, sizeof *g);
  memset(g, 0, size);
  memcpy(g, &told, sizeof told);
}

/* Expects the library to accept the struct if `byte` is SIZE_MAX, and otherwise to refuse it
 * because the byte at offset `byte` is not zero. */
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

/* Creates objects for testing the functions that store an object's properties in a struct. */
static void begin_asking(void) {
  asked_queue = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
  asked_target = multicast_create();
  asked_token = add(asked_target, counter(&calls));
}

TEST(struct_of_newer_caller_is_refused_for_any_unknown_byte) {
  static const size_t sizes[] = {96, 257, LARGEST_STRUCT};
  begin_asking();
  for (size_t i = 0; i < TAKERS; ++i) {
    for (size_t which = 0; which < sizeof sizes / sizeof *sizes; ++which) {
      given g;
      initialize(&g, sizes[which]);
      expect_taken(&takers[i], &g, sizes[which], SIZE_MAX);
      for (size_t byte = takers[i].known; byte < sizes[which]; ++byte) {
        g.bytes[byte] = 1;
        expect_taken(&takers[i], &g, sizes[which], takers[i].is_output ? SIZE_MAX : byte);
        if (takers[i].is_output) CHECK_EQ(g.bytes[byte], 0);
        g.bytes[byte] = 0;
      }
      expect_taken(&takers[i], &g, sizes[which], SIZE_MAX);
      CHECK_EQ(g.bytes[sizes[which]], 0xFF); /* this byte is outside the struct */
    }
  }
}

/* The library refuses a struct of the wrong size and does not write to it. The last of these
 * structs has the largest possible `struct_size`. */
TEST(struct_of_any_size_from_what_is_known_to_1024_is_taken) {
  begin_asking();
  for (size_t i = 0; i < TAKERS; ++i) {
    for (size_t size = 0; size <= LARGEST_STRUCT + 2; ++size) {
      const bool is_right = size >= takers[i].smallest && size <= LARGEST_STRUCT;
      given g, before;
      initialize(&g, size);
      if (size > LARGEST_STRUCT + 1) memset(&g, 0xFF, sizeof(uint32_t));
      before = g;
      expect_taken(&takers[i], &g, size, is_right ? SIZE_MAX : 0);
      if (!is_right && takers[i].is_output)
        CHECK(memcmp(g.bytes, before.bytes, sizeof g.bytes) == 0);
    }
  }
}

/* ---- Counts that are too large --------------------------------------------------------------- */

TEST(add_many_above_2_to_the_26_uses_no_argument) {
  const size_t counts[] = {((size_t)1 << 26) + 1, ABOVE_32_BITS(0), SIZE_MAX};
  const multicast_add_options *options = (const multicast_add_options *)(uintptr_t)8;
  const multicast_delegate *delegates = (const multicast_delegate *)(uintptr_t)8;
  multicast_token *tokens = (multicast_token *)(uintptr_t)8;
  const char *name = (const char *)(uintptr_t)8;
  const multicast none = {0};
  const multicast_broadcaster nobody = {0};
  for (row = 0; row < 3; ++row) {
    const size_t count = counts[row];
    CHECK_ERROR(multicast_add_many(none, delegates, count, options, tokens), LIMIT);
    CHECK_ERROR(
        multicast_broadcaster_register_many(nobody, name, delegates, count, options, tokens),
        LIMIT);
  }
}
