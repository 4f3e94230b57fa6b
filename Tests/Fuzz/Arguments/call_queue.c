#include "callees.h"
#include "calls.h"
#include "expect.h"
#include "history.h"
#include "values.h"

static multicast_queue any_queue(void) {
  multicast_queue q = {any_handle()};
  return q;
}

static void ignore_call(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)event, (void)payload, (void)size;
}

/* An invocation never blocks the thread that ran a call of the queue last. If this thread cannot
 * run one, it drops the queue. */
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

static void create(void) {
  multicast_queue_options *o = any_older_struct(SIZE_OF_1_0, sizeof *o);
  multicast_queue q;
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
    if (b & 4) o->wake = callee_wake, o->wake_context = (void *)&callee_functions;
  }
  q = multicast_queue_create(o);
  NOTE("multicast_queue_create() = %llx", (long long)q.id);
  keep_handle(q.id);
  if (q.id != 0) become_consumer(q);
}

static void destroy(void) {
  multicast_queue q = any_queue();
  NOTE("multicast_queue_destroy(%llx)", (long long)q.id);
  EXPECT_STATUS(multicast_queue_destroy(q), MULTICAST_PENDING, MULTICAST_ERROR_INVALID_HANDLE);
  EXPECT_EQ(multicast_queue_fd(q), -1);
}

static void run(void) {
  multicast_queue q = any_queue();
  size_t max = any_size();
  NOTE("multicast_queue_run(%llx, %lld)", (long long)q.id, (long long)max);
  EXPECT_COUNT(multicast_queue_run(q, max), MULTICAST_ERROR_INVALID_HANDLE,
               MULTICAST_ERROR_STATE, MULTICAST_ERROR_LIMIT);
}

/* Up to 255 ns: no other thread would end a longer wait. */
static void wait(void) {
  multicast_queue q = any_queue();
  NOTE("multicast_queue_wait(%llx)", (long long)q.id);
  EXPECT_COUNT(multicast_queue_wait(q, any_byte()), MULTICAST_ERROR_INVALID_HANDLE,
               MULTICAST_ERROR_TIMEOUT);
}

static void watch(void) {
  multicast_queue q = any_queue();
  int descriptor = multicast_queue_fd(q);
  NOTE("multicast_queue_fd(%llx) = %lld", (long long)q.id, descriptor);
  EXPECT_EQ(multicast_queue_fd(q), descriptor);
}

/* Starting a thread is slow, so the handle is mostly made invalid. */
static void start(void) {
  multicast_queue q = any_queue();
  if (any_byte() >= 16) q.id = q.id ^ 1;
  NOTE("multicast_queue_start(%llx)", (long long)q.id);
  EXPECT_STATUS(multicast_queue_start(q), MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_STATE,
                MULTICAST_ERROR_SYSTEM, MULTICAST_ERROR_OUT_OF_MEMORY);
}

static void stop(void) {
  multicast_queue q = any_queue();
  multicast_status status;
  NOTE("multicast_queue_stop(%llx)", (long long)q.id);
  status = multicast_queue_stop(q);
  EXPECT_STATUS(status, MULTICAST_PENDING, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_STATE);
  if (status >= 0) become_consumer(q); /* as in `create` */
}

static void read_statistics(void) {
  multicast_queue q = any_queue();
  multicast_queue_stats *s = any_output(sizeof *s);
  multicast_status status;
  NOTE("multicast_queue_get_stats(%llx)", (long long)q.id);
  status = multicast_queue_get_stats(q, s);
  EXPECT_STATUS(status, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT);
  if (status == MULTICAST_OK)
    EXPECT_EQ(s->queued, s->pending + s->delivered + s->dropped + s->retracted + s->coalesced);
}

static void destroy_within(void) {
  multicast_queue q = any_queue();
  NOTE("multicast_queue_destroy_within(%llx)", (long long)q.id);
  EXPECT_STATUS(multicast_queue_destroy_within(q, any_timeout()), MULTICAST_PENDING,
                MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_TIMEOUT);
  EXPECT(!multicast_queue_is_valid(q), "a queue that is destroyed and valid");
}

static void clear(void) {
  multicast_queue q = any_queue();
  int64_t result;
  NOTE("multicast_queue_clear(%llx)", (long long)q.id);
  result = multicast_queue_clear(q);
  EXPECT_COUNT(result, MULTICAST_ERROR_INVALID_HANDLE);
  EXPECT_EQ(result >= 0, multicast_queue_is_valid(q));
}

static const any_call calls[] = {create, create, destroy, run,             run,           wait,
                                 watch,  start,  stop,    read_statistics, destroy_within, clear};
const call_table queue_calls = {calls, sizeof calls / sizeof calls[0]};
