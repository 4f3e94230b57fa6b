#include "calls.h"
#include "callees.h"
#include "expect.h"
#include "history.h"
#include "options.h"
#include "values.h"

enum { FEW = 4 };

static multicast any_multicast(void) {
  multicast m = {any_handle()};
  return m;
}

static multicast_delegate any_delegate(void) {
  multicast_delegate d;
  d.function = any_function();
  d.context = any_context();
  return d;
}

/* Returns FEW delegates. `count` may be larger only if the library then reads none of them. */
static multicast_delegate *any_delegates(size_t *count, bool none_is_read_beyond) {
  multicast_delegate *delegates = any_bytes(FEW * sizeof *delegates);
  int i;
  *count = any_size();
  if (*count > FEW && !none_is_read_beyond) *count = FEW;
  for (i = 0; i < FEW; ++i) delegates[i] = any_delegate();
  if (any_byte() >= 16) return delegates;
  *count = any_size();
  return NULL;
}

static void create(void) {
  multicast m = multicast_create();
  NOTE("multicast_create() = %llx", (long long)m.id);
  keep_handle(m.id);
}

static void create_with(void) {
  multicast_create_options *o = any_create_options();
  multicast m;
  NOTE("multicast_create_with()");
  m = multicast_create_with(o);
  NOTE("multicast_create_with() = %llx", (long long)m.id);
  if (m.id == 0) {
    EXPECT_STATUS(multicast_create_error(), MULTICAST_ERROR_INVALID_ARGUMENT,
                  MULTICAST_ERROR_OUT_OF_MEMORY);
  }
  keep_handle(m.id);
}

static void destroy(void) {
  multicast m = any_multicast();
  NOTE("multicast_destroy(%llx)", (long long)m.id);
  EXPECT_STATUS(multicast_destroy(m), MULTICAST_PENDING, MULTICAST_ERROR_INVALID_HANDLE);
  EXPECT(!multicast_is_valid(m), "a multicast that is destroyed and valid");
}

static void add(void) {
  multicast m = any_multicast();
  multicast_delegate d = any_delegate();
  multicast_add_options *o = any_options();
  multicast_token token = {1}, *out = any_byte() < 16 ? NULL : &token;
  multicast_status status;
  NOTE("multicast_add(%llx)", (long long)m.id);
  status = multicast_add(m, d, o, out);
  EXPECT_STATUS(status, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
                MULTICAST_ERROR_OUT_OF_MEMORY);
  if (out != NULL) EXPECT_EQ(token.id != 0, status == MULTICAST_OK);
  keep_handle(token.id);
}

static void add_many(void) {
  multicast m = any_multicast();
  size_t count, i;
  multicast_delegate *delegates = any_delegates(&count, false);
  multicast_add_options *o = any_options();
  multicast_token tokens[FEW] = {{0}};
  multicast_status status;
  bool is_large = delegates == NULL || any_byte() < 8;
  if (is_large) count = ((size_t)1 << 26) + 1 + any_size() / 2;
  NOTE("multicast_add_many(%llx, %lld)", (long long)m.id, (long long)count);
  status = multicast_add_many(m, delegates, count, o, is_large ? NULL : tokens);
  EXPECT_STATUS(status, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
                MULTICAST_ERROR_OUT_OF_MEMORY, MULTICAST_ERROR_LIMIT);
  if (is_large) EXPECT(status != MULTICAST_OK, "more delegates than can be");
  for (i = 0; i < count && i < FEW; ++i) keep_handle(tokens[i].id);
}

static void remove_one(void) {
  multicast m = any_multicast();
  NOTE("multicast_remove(%llx)", (long long)m.id);
  EXPECT_STATUS(multicast_remove(m, any_delegate()), MULTICAST_PENDING,
                MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_NOT_FOUND);
}

static void remove_every(void) {
  multicast m = any_multicast();
  multicast_delegate d = any_delegate();
  multicast_status status;
  NOTE("multicast_remove_every(%llx)", (long long)m.id);
  status = multicast_remove_every(m, d);
  EXPECT_STATUS(status, MULTICAST_PENDING, MULTICAST_ERROR_INVALID_HANDLE,
                MULTICAST_ERROR_NOT_FOUND);
}

static void remove_within(void) {
  multicast m = any_multicast();
  NOTE("multicast_remove_within(%llx)", (long long)m.id);
  EXPECT_STATUS(multicast_remove_within(m, any_delegate(), any_timeout()), MULTICAST_PENDING,
                MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_NOT_FOUND,
                MULTICAST_ERROR_TIMEOUT);
}

static void destroy_within(void) {
  multicast m = any_multicast();
  NOTE("multicast_destroy_within(%llx)", (long long)m.id);
  EXPECT_STATUS(multicast_destroy_within(m, any_timeout()), MULTICAST_PENDING,
                MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_TIMEOUT);
  EXPECT(!multicast_is_valid(m), "a multicast that is destroyed and valid");
}

/* The status beside the count is that of the failure, or says whether a call still runs. */
static void remove_several_within(void) {
  multicast m = any_multicast();
  multicast_status status = MULTICAST_ERROR_STATE;
  multicast_status *out = any_byte() < 32 ? NULL : &status;
  uint64_t timeout = any_timeout();
  int64_t result;
  size_t count;
  multicast_delegate *delegates = any_delegates(&count, false);
  NOTE("multicast_remove_..._within(%llx)", (long long)m.id);
  switch (any_byte() % 3) {
    case 0: result = multicast_remove_many_within(m, delegates, count, timeout, out); break;
    case 1: result = multicast_remove_context_within(m, any_context(), timeout, out); break;
    default: result = multicast_remove_all_within(m, timeout, out);
  }
  EXPECT_COUNT(result, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT);
  if (out == NULL) return;
  if (result < 0) EXPECT_EQ(status, result);
  else EXPECT_STATUS(status, MULTICAST_PENDING, MULTICAST_ERROR_TIMEOUT);
}

static void prune(void) {
  multicast m = any_multicast();
  NOTE("multicast_prune(%llx)", (long long)m.id);
  EXPECT_COUNT(multicast_prune(m), MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_LIMIT,
               MULTICAST_ERROR_OUT_OF_MEMORY);
}

static void remove_many(void) {
  multicast m = any_multicast();
  size_t count;
  multicast_delegate *delegates = any_delegates(&count, false);
  NOTE("multicast_remove_many(%llx, %lld)", (long long)m.id, (long long)count);
  EXPECT_COUNT(multicast_remove_many(m, delegates, count), MULTICAST_ERROR_INVALID_HANDLE,
               MULTICAST_ERROR_INVALID_ARGUMENT);
}

static void remove_context(void) {
  multicast m = any_multicast();
  NOTE("multicast_remove_context(%llx)", (long long)m.id);
  EXPECT_COUNT(multicast_remove_context(m, any_context()), MULTICAST_ERROR_INVALID_HANDLE);
}

static void remove_at(void) {
  multicast m = any_multicast();
  NOTE("multicast_remove_at(%llx)", (long long)m.id);
  EXPECT_STATUS(multicast_remove_at(m, any_size()), MULTICAST_PENDING,
                MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_NOT_FOUND);
}

static void remove_all(void) {
  multicast m = any_multicast();
  NOTE("multicast_remove_all(%llx)", (long long)m.id);
  EXPECT_COUNT(multicast_remove_all(m), MULTICAST_ERROR_INVALID_HANDLE);
}

static void look(void) {
  multicast m = any_multicast();
  size_t capacity = any_size();
  multicast_delegate *out;
  if (capacity > FEW) capacity = FEW;
  out = any_byte() < 16 ? NULL : any_bytes(capacity * sizeof *out);
  NOTE("multicast_list, _count, _contains(%llx, %lld)", (long long)m.id, (long long)capacity);
  EXPECT_COUNT(multicast_list(m, out, capacity), MULTICAST_ERROR_INVALID_HANDLE,
               MULTICAST_ERROR_INVALID_ARGUMENT);
  EXPECT_COUNT(multicast_count(m), MULTICAST_ERROR_INVALID_HANDLE);
  EXPECT_EQ(multicast_count(m) >= 0, multicast_is_valid(m));
  EXPECT(multicast_is_valid(m) || !multicast_contains(m, any_delegate()),
         "what does not exist contains something");
}

static void invoke(void) {
  multicast m = any_multicast();
  size_t size = any_byte() % 80;
  void *payload = any_byte() < 16 ? NULL : any_bytes(size);
  NOTE("multicast_invoke(%llx, size %lld)", (long long)m.id, (long long)size);
  EXPECT_COUNT(multicast_invoke(m, any_uint32(), payload, size), MULTICAST_ERROR_INVALID_HANDLE,
               MULTICAST_ERROR_INVALID_ARGUMENT, MULTICAST_ERROR_LIMIT, MULTICAST_ERROR_STATE,
               MULTICAST_ERROR_OUT_OF_MEMORY);
}

static void visit(void) {
  multicast m = any_multicast();
  multicast_visitor visitor = any_byte() < 16 ? NULL : callee_visit;
  NOTE("multicast_visit(%llx)", (long long)m.id);
  EXPECT_COUNT(multicast_visit(m, visitor, (void *)&callee_functions),
               MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
               MULTICAST_ERROR_LIMIT);
}

static void visit_undo(void) {
  multicast m = any_multicast();
  multicast_visitor visitor = any_byte() < 16 ? NULL : callee_visit;
  multicast_visitor undo = any_byte() < 16 ? NULL : callee_visit;
  NOTE("multicast_visit_undo(%llx)", (long long)m.id);
  EXPECT_COUNT(multicast_visit_undo(m, visitor, undo, (void *)&callee_functions),
               MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
               MULTICAST_ERROR_LIMIT, MULTICAST_ERROR_OUT_OF_MEMORY);
}

static void enumerate(void) {
  multicast m = any_multicast();
  multicast_enumerator enumerator = any_byte() < 16 ? NULL : callee_enumerate;
  NOTE("multicast_enumerate(%llx)", (long long)m.id);
  EXPECT_COUNT(multicast_enumerate(m, enumerator, (void *)&callee_functions),
               MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
               MULTICAST_ERROR_LIMIT);
}

static void describe(void) {
  multicast m = any_multicast();
  NOTE("multicast_describe(%llx)", (long long)m.id);
  EXPECT_STATUS(multicast_describe(m, callee_write, (void *)&callee_functions),
                MULTICAST_ERROR_INVALID_HANDLE);
}

static void set_watch(void) {
  multicast m = any_multicast();
  multicast_watch *w;
  if (any_byte() < 64) m.id = 0;
  w = any_watch();
  NOTE("multicast_set_watch(%llx, is NULL: %lld)", (long long)m.id, w == NULL);
  EXPECT_STATUS(multicast_set_watch(m, w), MULTICAST_PENDING, MULTICAST_ERROR_INVALID_HANDLE,
                MULTICAST_ERROR_INVALID_ARGUMENT, MULTICAST_ERROR_OUT_OF_MEMORY);
}

static const any_call calls[] = {create,     destroy,   add,    add,    add_many, remove_one,
                                 remove_many, remove_context, remove_at, remove_all, look,
                                 invoke,     invoke,    visit,  remove_every, remove_within,
                                 destroy_within, remove_several_within, prune, create_with,
                                 create_with, visit_undo, enumerate, describe, set_watch};
const call_table multicast_calls = {calls, sizeof calls / sizeof calls[0]};
