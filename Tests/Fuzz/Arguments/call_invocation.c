/* Invocations with options, and calls of one registration. */

#include "calls.h"
#include "callees.h"
#include "expect.h"
#include "history.h"
#include "payloads.h"
#include "values.h"

enum { FEW = 4 };

static bool is_writable(const multicast_outcome *o) {
  return o != NULL && o->struct_size >= sizeof *o && o->struct_size <= 1024;
}

static void expect_outcome(const multicast_invocation *how, const multicast_outcome *o,
                           int64_t result) {
  EXPECT_EQ(o->flags, 0);
  /* One that is deferred returns 0. */
  if (result == 0 && o->called == 0) EXPECT(o->queued <= 1, "more than one that is deferred");
  else if (result >= 0) EXPECT_EQ(o->called + o->queued, result);
  else if (result != MULTICAST_ERROR_TIMEOUT) EXPECT_EQ(o->called + o->queued + o->refused, 0);
  EXPECT(o->finished + o->unfinished <= o->queued, "more calls than were queued");
  if (!(how->flags & MULTICAST_WAIT)) EXPECT_EQ(o->finished + o->unfinished, 0);
}

static void check(const multicast_invocation *how, const multicast_outcome *o, int64_t result) {
  bool is_known = how != NULL && is_readable(how);
  EXPECT_COUNT(result, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
               MULTICAST_ERROR_LIMIT, MULTICAST_ERROR_OUT_OF_MEMORY, MULTICAST_ERROR_TIMEOUT,
               MULTICAST_ERROR_STATE);
  if (!is_known || (o != NULL && !is_writable(o))) {
    EXPECT(result == MULTICAST_ERROR_INVALID_ARGUMENT || (is_known && result < 0),
           "an invocation with a struct that cannot be read");
  } else if (o != NULL && result != MULTICAST_ERROR_INVALID_ARGUMENT) {
    expect_outcome(how, o, result);
  }
  /* Only these have the fields; and only a payload of its own is taken back. */
  if (is_known || how == NULL || how->struct_size < sizeof *how || how->struct_size > 1024) return;
  if (how->release != NULL && how->copy == NULL) payload_take_back(how->payload);
}

static void invoke_with(void) {
  multicast m = {any_handle()};
  multicast_invocation *how = any_invocation();
  multicast_outcome *o = any_output(sizeof *o);
  NOTE("multicast_invoke_with(%llx)", (long long)m.id);
  check(how, o, multicast_invoke_with(m, how, o));
}

static void notify_with(void) {
  multicast_broadcaster b = {any_handle()};
  const char *name;
  multicast_invocation *how;
  multicast_outcome *o;
  if (any_byte() < 64) b = multicast_broadcaster_default();
  name = any_name(b);
  how = any_invocation();
  o = any_output(sizeof *o);
  NOTE("multicast_broadcaster_notify_with(%llx)", (long long)b.id);
  check(how, o, multicast_broadcaster_notify_with(b, name, how, o));
}

static multicast_token any_token(void) {
  multicast_token t = {any_handle()};
  if (any_byte() < 32) t = multicast_token_current();
  return t;
}

static void expect_one(int64_t result) {
  EXPECT_COUNT(result, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
               MULTICAST_ERROR_LIMIT, MULTICAST_ERROR_STATE);
  EXPECT(result <= 1, "more than one call");
}

static void invoke_token(void) {
  multicast_token t = any_token();
  size_t size = any_byte() % 80;
  void *payload = any_byte() < 16 ? NULL : any_bytes(size);
  NOTE("multicast_token_invoke(%llx, size %lld)", (long long)t.id, (long long)size);
  expect_one(multicast_token_invoke(t, any_uint32(), payload, size));
}

static void visit_token(void) {
  multicast_token t = any_token();
  multicast_visitor visitor = any_byte() < 16 ? NULL : callee_visit;
  NOTE("multicast_token_visit(%llx)", (long long)t.id);
  expect_one(multicast_token_visit(t, visitor, (void *)&callee_functions));
}

static void read_call_stack(void) {
  size_t capacity = any_size(), room = capacity > FEW ? FEW : capacity;
  multicast_token *out = any_byte() < 16 ? NULL : any_bytes(room * sizeof *out);
  int64_t depth = multicast_call_stack(NULL, 0), result;
  EXPECT(depth >= 0, "the depth of the calls");
  if (capacity > FEW && depth > FEW) capacity = FEW;
  NOTE("multicast_call_stack(%lld)", (long long)capacity);
  result = multicast_call_stack(out, capacity);
  if (out == NULL && capacity > 0) EXPECT_EQ(result, MULTICAST_ERROR_INVALID_ARGUMENT);
  else EXPECT_EQ(result, depth);
  if (out != NULL && depth > 0 && (size_t)depth <= room)
    EXPECT_EQ(out[depth - 1].id, multicast_token_current().id);
}

static const any_call calls[] = {invoke_with,  invoke_with, notify_with,
                                 invoke_token, visit_token, read_call_stack};
const call_table invocation_calls = {calls, sizeof calls / sizeof calls[0]};
