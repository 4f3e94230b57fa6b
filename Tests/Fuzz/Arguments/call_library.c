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

static void prepare_thread(void) {
  NOTE("multicast_thread_prepare");
  EXPECT_STATUS(multicast_thread_prepare(), MULTICAST_ERROR_OUT_OF_MEMORY);
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

static const any_call calls[] = {name_a_status,  set_allocator,        fail_memory,
                                 recover_memory, ask_for_create_error, prepare_thread,
                                 trim,           dump};
const call_table library_calls = {calls, sizeof calls / sizeof calls[0]};
