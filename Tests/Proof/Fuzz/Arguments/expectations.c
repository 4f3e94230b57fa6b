/* Expectations that go beyond the status, and calls that need more than arbitrary arguments. */

#include <string.h>

#include "calls.h"
#include "callees.h"
#include "expect.h"
#include "history.h"
#include "memory.h"
#include "options.h"
#include "values.h"

/* ---- Multicasts and tokens ------------------------------------------------------------------- */

void after_multicast_count(multicast target, int64_t result) {
  EXPECT_EQ(result >= 0, multicast_is_valid(target));
}

void after_multicast_contains(multicast target, multicast_delegate delegate, bool result) {
  EXPECT(multicast_is_valid(target) || !result, "what does not exist contains something");
}

void call_multicast_listener_flag(void) {
  multicast m = {any_handle()};
  NOTE("multicast_listener_flag(%llx)", (long long)m.id);
  const uint32_t *flag = multicast_listener_flag(m);
  EXPECT(flag != NULL, "no flag");
  if (multicast_count(m) > 0)
    EXPECT(multicast_has_listeners(flag), "delegates, and the flag is not set");
  if (!multicast_is_valid(m))
    EXPECT(!multicast_has_listeners(flag), "the flag of no multicast is set");
}

/* After an error, `*out` is that error. After a success, `*out` says whether a call is still
 * running. */
static void expect_status_beside(int64_t count, const multicast_status *out) {
  if (out == NULL) return;
  if (count < 0) EXPECT_EQ(*out, count);
  else EXPECT_STATUS(*out, MULTICAST_PENDING, MULTICAST_ERROR_TIMEOUT);
}

void after_multicast_remove_many_within(multicast target, const multicast_delegate *delegates,
                                        size_t count, uint64_t timeout_ns, multicast_status *out,
                                        int64_t result) {
  expect_status_beside(result, out);
}

void after_multicast_remove_context_within(multicast target, void *context, uint64_t timeout_ns,
                                           multicast_status *out, int64_t result) {
  expect_status_beside(result, out);
}

void after_multicast_remove_all_within(multicast target, uint64_t timeout_ns,
                                       multicast_status *out, int64_t result) {
  expect_status_beside(result, out);
}

/* Returns a count that exceeds the maximum number of delegates. The library must refuse a call with
 * such a count, and must not use any other argument. */
static size_t too_many(void) { return ((size_t)1 << 26) + 1 + any_size() / 2; }

static void expect_tokens(const multicast_token *tokens, size_t count, multicast_status status) {
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(tokens[i].id != 0, status == MULTICAST_OK);
    keep_handle(tokens[i].id);
  }
}

void call_multicast_process_memory(void) {
  const uint32_t index = any_byte() % 10;
  const size_t size = any_byte() < 128 ? (size_t)any_byte() * 64 : any_size();
  NOTE("multicast_process_memory(%lld, %lld)", (long long)index, (long long)size);
  unsigned char *memory = multicast_process_memory(index, size);
  EXPECT((memory != NULL) == (index < 8 && size <= 8192), "memory of any size and index");
  EXPECT(memory == multicast_process_memory(index, size), "other memory for the same index");
  for (size_t i = 0; memory != NULL && i < size; ++i) EXPECT(memory[i] == 0, "not zero at first");
}

void call_multicast_add_many(void) {
  multicast m = {any_handle()};
  size_t count;
  multicast_delegate *delegates = any_delegates(&count);
  multicast_add_options *o = any_options();
  multicast_token tokens[FEW] = {{1}};
  bool is_large = delegates == NULL || any_byte() < 8;
  if (is_large) count = too_many();
  NOTE("multicast_add_many(%llx, %lld)", (long long)m.id, (long long)count);
  multicast_status status = multicast_add_many(m, delegates, count, o, is_large ? NULL : tokens);
  EXPECT_STATUS(status, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
                MULTICAST_ERROR_OUT_OF_MEMORY, MULTICAST_ERROR_LIMIT);
  if (is_large) EXPECT(status != MULTICAST_OK, "more delegates than can be");
  else expect_tokens(tokens, count, status);
}

void call_multicast_broadcaster_register_many(void) {
  multicast_broadcaster b = any_broadcaster();
  const char *name = any_name(b);
  size_t count;
  multicast_delegate *d = any_delegates(&count);
  multicast_add_options *o = any_options();
  multicast_token tokens[FEW] = {{1}};
  bool is_large = d == NULL || any_byte() < 8;
  if (is_large) count = too_many();
  NOTE("multicast_broadcaster_register_many(%llx, %lld)", (long long)b.id, (long long)count);
  multicast_status status = multicast_broadcaster_register_many(b, name, d, count, o, tokens);
  EXPECT_STATUS(status, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
                MULTICAST_ERROR_OUT_OF_MEMORY, MULTICAST_ERROR_LIMIT);
  if (is_large) EXPECT_EQ(status, MULTICAST_ERROR_LIMIT);
  if (is_large) EXPECT_EQ(tokens[0].id, 1);
  else expect_tokens(tokens, count, status);
}

/* Never uses the default broadcaster, because its prefixes would affect the next input. */
void call_multicast_broadcaster_register_prefix(void) {
  multicast_broadcaster b = any_broadcaster();
  if (b.id == multicast_broadcaster_default().id) b.id = 0;
  const char *prefix = any_name(b);
  multicast_delegate d = any_delegate();
  multicast_add_options *o = any_options();
  multicast_token token = {1};
  NOTE("multicast_broadcaster_register_prefix(%llx)", (long long)b.id);
  multicast_status status = multicast_broadcaster_register_prefix(b, prefix, d, o, &token);
  EXPECT_STATUS(status, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
                MULTICAST_ERROR_OUT_OF_MEMORY, MULTICAST_ERROR_LIMIT);
  expect_tokens(&token, 1, status);
}

void call_multicast_current_name(void) {
  NOTE("multicast_current_name()");
  const char *name = multicast_current_name();
  EXPECT(name == NULL || (name[0] != 0 && strlen(name) < 256), "a name without an end");
}

/* A quarter of the watches are set for all multicasts. */
void call_multicast_set_watch(void) {
  multicast m = {any_byte() < 64 ? 0 : any_handle()};
  multicast_watch *w = any_watch();
  NOTE("multicast_set_watch(%llx, is NULL: %lld)", (long long)m.id, w == NULL);
  EXPECT_STATUS(multicast_set_watch(m, w), MULTICAST_PENDING, MULTICAST_ERROR_INVALID_HANDLE,
                MULTICAST_ERROR_INVALID_ARGUMENT, MULTICAST_ERROR_OUT_OF_MEMORY);
}

void after_multicast_token_get_registration(multicast_token token, multicast_registration *out,
                               multicast_status result) {
  if (result != MULTICAST_OK) return;
  EXPECT_EQ(out->token.id, token.id);
  EXPECT(out->delegate.function != NULL && out->strong == NULL, "what no registration has");
  EXPECT(out->label == NULL || strlen(out->label) < 64, "a label that is too long");
  EXPECT(multicast_token_is_valid(token), "a registration that is read and not live");
  EXPECT_EQ(out->flags & ~(MULTICAST_ONCE | MULTICAST_LATEST), 0);
  keep_handle(out->target.id);
}

void after_multicast_token_get_stats(multicast_token token, multicast_token_stats *out,
                                      multicast_status result) {
  if (result != MULTICAST_OK) return;
  EXPECT_EQ(out->reserved, 0);
  EXPECT(out->longest_ns <= out->total_ns, "one call that took longer than all");
}

void after_multicast_token_invoke(multicast_token token, uint32_t event, const void *payload,
                                  size_t size, int64_t result) {
  EXPECT(result <= 1, "more than one call");
}

void after_multicast_token_visit(multicast_token token, multicast_visitor visitor, void *context,
                                 int64_t result) {
  EXPECT(result <= 1, "more than one call");
}

void after_multicast_call_stack(multicast_token *out, size_t capacity, int64_t result) {
  int64_t depth = multicast_call_stack(NULL, 0);
  if (out == NULL && capacity > 0) EXPECT_EQ(result, MULTICAST_ERROR_INVALID_ARGUMENT);
  else EXPECT_EQ(result, depth);
  if (out != NULL && depth > 0 && (size_t)depth <= capacity)
    EXPECT_EQ(out[depth - 1].id, multicast_token_current().id);
}

/* ---- Lifetimes and broadcasters -------------------------------------------------------------- */

void after_multicast_lifetime_end(multicast_lifetime lifetime, multicast_status result) {
  EXPECT_EQ(multicast_lifetime_count(lifetime), MULTICAST_ERROR_INVALID_HANDLE);
}

/* Does not keep handles of the default broadcaster's multicasts, which must outlive the input. */
void after_multicast_broadcaster_multicast(multicast_broadcaster broadcaster,
                                           const char *name, multicast result) {
  bool is_name = name != NULL && name[0] != '\0' && strlen(name) <= 255;
  EXPECT(is_name || result.id == 0, "a multicast without a name");
  if (broadcaster.id != multicast_broadcaster_default().id) keep_handle(result.id);
}

/* ---- Queues ---------------------------------------------------------------------------------- */

static void ignore_call(void *context, uint32_t event, const void *payload, size_t size) {}

/* Runs the queue on this thread. A full queue never blocks invocations on the thread that ran the
 * queue last. Destroys the queue if the run fails. */
static void become_consumer(multicast_queue q) {
  multicast m = multicast_create();
  multicast_delegate d = {ignore_call, NULL};
  multicast_add_options o = multicast_add_options_default();
  int64_t made = 0;
  o.queue = q;
  multicast_queue_clear(q);
  if (multicast_add(m, d, &o, NULL) == MULTICAST_OK && multicast_invoke(m, 0, NULL, 0) == 1)
    made = multicast_queue_run(q, 1);
  multicast_destroy(m);
  if (made != 1) multicast_queue_destroy(q);
}

enum { SIZE_OF_1_0 = 40 }; /* of multicast_queue_options */

void call_multicast_queue_create(void) {
  multicast_queue_options *o = any_older_struct(SIZE_OF_1_0, sizeof *o);
  uint8_t b = any_byte();
  if (o != NULL && o->struct_size >= sizeof *o && o->struct_size <= 1024) {
    o->capacity = b < 200 ? b % 4 : b < 240 ? any_uint32() : (size_t)any_uint64();
    b = any_byte();
    o->overflow = b < 240 ? b % 3 : any_uint32();
    if (b >= 250) o->reserved = any_byte();
    b = any_byte();
    if (b & 1) o->thread_name = any_text();
    if (b & 2) o->stack_size = b < 128 ? any_uint32() % (1u << 20) : 1u << 20;
    if (b >= 250) o->flags = any_byte();
    if (b & 8) o->payload_size = b < 240 ? b : (size_t)any_uint64();
    if (b & 16) o->label = any_text();
    if (b & 4) o->wake = callee_wake, o->wake_context = (void *)&callee_functions;
  }
  multicast_queue q = multicast_queue_create(o);
  NOTE("multicast_queue_create() = %llx", (long long)q.id);
  keep_handle(q.id);
  if (q.id != 0) become_consumer(q);
}

void after_multicast_queue_destroy(multicast_queue queue, multicast_status result) {
  EXPECT_EQ(multicast_queue_fd(queue), -1);
}

/* Waits for at most 255 ns, because no other thread would end the wait. */
void call_multicast_queue_wait(void) {
  multicast_queue q = {any_handle()};
  NOTE("multicast_queue_wait(%llx)", (long long)q.id);
  EXPECT_COUNT(multicast_queue_wait(q, any_byte()), MULTICAST_ERROR_INVALID_HANDLE,
               MULTICAST_ERROR_TIMEOUT);
}

void after_multicast_queue_fd(multicast_queue queue, int result) {
  EXPECT_EQ(multicast_queue_fd(queue), result);
}

/* Starting a thread is slow, so most calls are made with an invalid handle. */
void call_multicast_queue_start(void) {
  multicast_queue q = {any_handle()};
  if (any_byte() >= 16) q.id = q.id ^ 1;
  NOTE("multicast_queue_start(%llx)", (long long)q.id);
  EXPECT_STATUS(multicast_queue_start(q), MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_STATE,
                MULTICAST_ERROR_SYSTEM, MULTICAST_ERROR_OUT_OF_MEMORY);
}

void after_multicast_queue_stop(multicast_queue queue, multicast_status result) {
  if (result >= 0) become_consumer(queue); /* as after the queue's creation */
}

void after_multicast_queue_get_stats(multicast_queue queue, multicast_queue_stats *out,
                                     multicast_status result) {
  if (result != MULTICAST_OK) return;
  EXPECT_EQ(out->queued,
            out->pending + out->delivered + out->dropped + out->cancelled + out->coalesced);
}

void after_multicast_queue_clear(multicast_queue queue, int64_t result) {
  EXPECT_EQ(result >= 0, multicast_queue_is_valid(queue));
}

/* ---- The library ----------------------------------------------------------------------------- */

void after_multicast_version(uint32_t result) { EXPECT_EQ(result, MULTICAST_VERSION); }

void after_multicast_set_allocator(const multicast_allocator *allocator, multicast_status result) {
  EXPECT(result != MULTICAST_OK, "memory from elsewhere, once some is taken");
}

/* Lets a few allocations succeed and makes all later ones fail, until the target calls
 * memory_recover(). */
void call_memory_fail(void) {
  int allocations = any_byte() % 8;
  NOTE("memory: %lld allocations, then no more", allocations);
  memory_fail_after(allocations);
}

void call_memory_recover(void) { memory_recover(); }
