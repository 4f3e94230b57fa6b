#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "callees.h"
#include "expect.h"
#include "history.h"
#include "memory.h"
#include "values.h"

static void name_a_status(void) {
  int64_t s = any_byte() & 1 ? (int32_t)any_uint32() : (int64_t)any_uint64();
  NOTE("multicast_status_name, _message(%lld)", s);
  EXPECT(strlen(multicast_status_name(s)) > 0, "a status without a name");
  EXPECT(strlen(multicast_status_message(s)) > 0, "a status without a message");
  EXPECT_EQ(multicast_version(), MULTICAST_VERSION);
}

static void trim(void) {
  NOTE("multicast_trim");
  EXPECT(multicast_trim() >= 0, "bytes are not a negative number");
}

static void set_allocator(void) {
  multicast_allocator *a = any_struct(sizeof *a);
  NOTE("multicast_set_allocator");
  EXPECT(multicast_set_allocator(a) != MULTICAST_OK, "memory from elsewhere, once some is taken");
}

typedef multicast_status (*initializer)(void *, size_t);

static void init(const char *name, initializer function, size_t oldest_size, size_t known_size) {
  size_t size = any_byte() & 1 ? known_size : any_uint32() % 1100, i;
  bool is_null = any_byte() < 16, is_good = !is_null && size >= oldest_size && size <= 1024;
  unsigned char *block = is_null ? NULL : any_bytes(is_good ? size : 1), first;
  (void)name;
  NOTE("an initializer(is NULL: %lld, %lld)", is_null, size);
  first = is_null ? 0 : block[0];
  EXPECT_EQ(function(block, size), is_good ? MULTICAST_OK : MULTICAST_ERROR_INVALID_ARGUMENT);
  if (is_good) {
    uint32_t said;
    memcpy(&said, block, sizeof said);
    EXPECT_EQ(said, size);
    for (i = sizeof said; i < size; ++i) EXPECT_EQ(block[i], 0);
  } else if (!is_null) {
    EXPECT_EQ(block[0], first);
  }
}

#define INITIALIZER(STRUCT, OLDEST)                                            \
  static multicast_status init_##STRUCT(void *block, size_t size) {            \
    return multicast_##STRUCT##_init(block, size);                             \
  }                                                                            \
  static void init_any_##STRUCT(void) {                                        \
    init(#STRUCT, init_##STRUCT, OLDEST, sizeof(multicast_##STRUCT));          \
  }
INITIALIZER(add_options, 64)
INITIALIZER(allocator, sizeof(multicast_allocator))
INITIALIZER(queue_options, 40)
INITIALIZER(queue_stats, sizeof(multicast_queue_stats))
INITIALIZER(broadcaster_options, sizeof(multicast_broadcaster_options))
INITIALIZER(registration, sizeof(multicast_registration))
INITIALIZER(invocation, sizeof(multicast_invocation))
INITIALIZER(outcome, sizeof(multicast_outcome))
INITIALIZER(watch, sizeof(multicast_watch))
INITIALIZER(token_stats, sizeof(multicast_token_stats))
INITIALIZER(transport, sizeof(multicast_transport))

/* Memory fails at most until the next call outside all delegates. */
static void fail_memory(void) {
  int allocations = any_byte() % 8;
  NOTE("memory: %lld allocations, then no more", allocations);
  memory_fail_after(allocations);
}

static void ask_for_create_error(void) {
  EXPECT_STATUS(multicast_create_error(), MULTICAST_ERROR_INVALID_ARGUMENT,
                MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_OUT_OF_MEMORY,
                MULTICAST_ERROR_LIMIT);
}

static void dump(void) {
  NOTE("multicast_dump");
  EXPECT_STATUS(multicast_dump(callee_write, (void *)&callee_functions), MULTICAST_OK);
}

static void recover_memory(void) { memory_recover(); }

static const any_call calls[] = {name_a_status,      set_allocator,          init_any_add_options,
                                 init_any_allocator, init_any_queue_options, init_any_queue_stats,
                                 init_any_broadcaster_options, fail_memory,  recover_memory,
                                 init_any_registration, ask_for_create_error,
                                 init_any_invocation, init_any_outcome, init_any_watch,
                                 init_any_token_stats, trim, dump, init_any_transport};
const call_table library_calls = {calls, sizeof calls / sizeof calls[0]};
