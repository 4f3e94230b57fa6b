#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>

#include "callbacks.h"
#include "history.h"
#include "memory.h"
#include "operations.h"

enum { DEFAULT_CAPACITY = 1024 };

static void do_nothing(void *context, uint32_t event, const void *payload, size_t size) {}

/* Runs the queue on this thread, because a full queue never blocks invocations on the thread that
 * ran it last. If the queue blocked the target's only thread, the target would hang. Returns false
 * if there is no memory for the call that this function queues. */
static bool become_consumer(model_queue *q) {
  multicast m = multicast_create();
  multicast_delegate d = {do_nothing, NULL};
  multicast_add_options o = multicast_add_options_default();
  o.queue = q->handle;
  bool is_done = multicast_add(m, d, &o, NULL) == MULTICAST_OK &&
            multicast_invoke(m, 0, NULL, 0) == 1 && multicast_queue_run(q->handle, 1) == 1;
  if (m.id != 0) EXPECT_EQ(multicast_destroy(m), MULTICAST_OK);
  q->stats.queued = q->stats.delivered = q->stats.highest = 1;
  return is_done;
}

void perform_create_queue(const record *r) {
  static const uint32_t capacities[] = {1, 2, 3, 5, 4, 3, 2, 0};
  multicast_queue_options o = multicast_queue_options_default();
  int64_t failures = memory_failures();
  bool is_bad = r->c >= 0xF8;
  bool is_unrun = r->e >= 192; /* whether this thread is not running a call of the new queue */
  int i;
  o.capacity = capacities[r->a % 8];
  if (r->d & 1) o.thread_name = "of the queue";
  if (r->d & 2) o.stack_size = 65536;
  if ((r->d & 4) && !memory_is_failing()) o.payload_size = r->d; /* enough for some payloads */
  o.overflow = (multicast_overflow)(r->b % 3);
  if (is_unrun && o.overflow == MULTICAST_OVERFLOW_BLOCK) o.overflow = MULTICAST_OVERFLOW_REFUSE;
  if (r->f >= 128) o.wake = wake_loop;
  o.wake_context = (void *)(uintptr_t)(model.queue_count + 1);
  /* A queue that blocks needs a call to become_consumer(), which is impossible at the nesting
   * limit. */
  if (model.nesting >= NESTING) o.overflow = MULTICAST_OVERFLOW_REFUSE;
  switch (r->c) {
    case 0xF8: o.struct_size = 0; break;
    case 0xF9: o.struct_size = 8; break;
    case 0xFA: o.struct_size = 1025; break;
    case 0xFD: o.flags = 1; break;
    case 0xFE: o.reserved = 1; break;
    case 0xFB: o.overflow = (multicast_overflow)3; break;
    case 0xFC: o.overflow = (multicast_overflow)-1; break;
    case 0xFF: o.payload_size = (1 << 24) + 1; break;
    default: if (is_bad) o.capacity = (1 << 24) + 1;
  }
  NOTE("multicast_queue_create(capacity %lld, overflow %lld)", o.capacity, o.overflow);
  model_queue q = {.handle = multicast_queue_create(&o)};
  if (is_bad) {
    EXPECT_EQ(q.handle.id, 0);
    return;
  }
  if (q.handle.id == 0) {
    EXPECT(memory_failures() > failures, "a failed create without a failed allocation");
    return;
  }
  for (i = 0; i < model.queue_count; ++i)
    EXPECT(model.queues[i].handle.id != q.handle.id, "two queues with the same handle");
  NOTE("= q%lld", i);
  q.is_alive = true;
  q.has_wake = q.needs_wake = o.wake != NULL;
  q.was_run = model.nesting < NESTING && !is_unrun;
  if (q.was_run && !become_consumer(&q)) {
    EXPECT(memory_failures() > failures, "no call without a failed allocation");
    EXPECT_EQ(multicast_queue_destroy(q.handle), MULTICAST_OK);
    return;
  }
  q.capacity = o.capacity == 0 ? DEFAULT_CAPACITY : (int)o.capacity;
  q.overflow = o.overflow;
  q.calls = malloc((size_t)q.capacity * sizeof *q.calls);
  q.descriptor = -1;
  q.has_reserve = o.payload_size > 0;
  model.queues[model.queue_count++] = q;
  EXPECT_EQ(multicast_queue_run(q.handle, 0), model.nesting < NESTING ? 0 : MULTICAST_ERROR_LIMIT);
}

/* Returns whether the descriptor belongs to another queue. This can be the case after a queue has
 * been destroyed, because the system reuses the numbers of closed descriptors, and a release
 * function may have requested the descriptor of another queue. */
static bool is_of_another(int descriptor) {
  for (int i = 0; i < model.queue_count; ++i)
    if (model.queues[i].is_alive && model.queues[i].descriptor == descriptor) return true;
  return false;
}

void perform_destroy_queue(const record *r) {
  limit within = choose_limit(r->b);
  BEGIN_CHANGE(multicast_queue handle, choose_queue(r->a), "multicast_queue_destroy(q%lld)",
               c.index);
  model_queue *q = c.is_alive ? &model.queues[c.index] : NULL;
  if (q != NULL) {
    q->is_alive = false;
    (void)model_queue_clear(c.index);
    for (int i = 0; i < model.registration_count; ++i)
      if (model.registrations[i].queue == c.index && model.registrations[i].is_live)
        model_remove(i);
  }
  multicast_status status = within.is_limited
                                ? multicast_queue_destroy_within(handle, within.timeout_ns)
                                : multicast_queue_destroy(handle);
  if (q != NULL) {
    allow(&allowed, MULTICAST_OK);
    if (model.releases_inside > 0) allow(&allowed, MULTICAST_PENDING);
    for (int i = 0; i < model.registration_count; ++i) {
      const registration *x = &model.registrations[i];
      if (x->queue != c.index) continue;
      if (x->in_use > 0) allow(&allowed, MULTICAST_PENDING);
      if (x->running > 0 || (x->release != NONE && x->in_use == 0 && !x->has_been_released))
        allowed.values[0] = MULTICAST_PENDING;
    }
    if (q->waking > 0) allowed.values[0] = MULTICAST_PENDING;
    if (q->descriptor >= 0 && !is_of_another(q->descriptor))
      EXPECT(fcntl(q->descriptor, F_GETFD) == -1 && errno == EBADF,
             "the descriptor of a destroyed queue is still open");
  }
  finish(status, &allowed);
}

/* Returns whether the stack contains an unfinished run of the queue. */
static bool is_running(int queue) {
  for (int i = 0; i < model.depth - 1; ++i)
    if (model.frames[i].kind == RUN && model.frames[i].queue == queue && !model.frames[i].has_woken)
      return true;
  return false;
}

void perform_run(const record *r) {
  static const size_t counts[] = {0, 0, 0, 1, 2, 3, 5, SIZE_MAX};
  choice c = choose_queue(r->a);
  multicast_queue q = {c.id};
  size_t max = counts[r->b % 8];
  outcomes errors = errors_of(&c, false);
  NOTE("multicast_queue_run(q%lld, %lld)", c.index, (long long)max);
  if (c.is_alive) model.queues[c.index].needs_wake = model.queues[c.index].has_wake;
  frame *f = model_enter(errors.count > 0 ? CHANGE : RUN);
  if (errors.count == 0) {
    f->queue = c.index;
    f->is_inner = is_running(c.index);
    f->budget = max == 0 ? (int64_t)model.queues[c.index].stats.pending
                         : max > INT64_MAX ? INT64_MAX : (int64_t)max;
  }
  end_calls(f, multicast_queue_run(q, max), &errors);
}

void perform_clear(const record *r) {
  BEGIN_CHANGE(multicast_queue q, choose_queue(r->a), "multicast_queue_clear(q%lld)", c.index);
  if (c.is_alive) allow(&allowed, model_queue_clear(c.index));
  finish(multicast_queue_clear(q), &allowed);
}

static bool is_readable(int descriptor) {
  struct pollfd p = {descriptor, POLLIN, 0};
  int ready = poll(&p, 1, 0);
  EXPECT(ready >= 0 && (p.revents & POLLNVAL) == 0, "an invalid descriptor");
  return ready == 1;
}

/* Calls all functions that query a queue, as well as multicast_queue_stop(), which must fail
 * because the queue has no thread. */
void perform_watch(const record *r) {
  choice c = choose_queue(r->a);
  multicast_queue handle = {c.id};
  model_queue *q = c.is_alive ? &model.queues[c.index] : NULL;
  multicast_queue_stats stats = multicast_queue_stats_default();
  int64_t pending = q == NULL ? 0 : (int64_t)q->stats.pending;
  NOTE("multicast_queue_wait, _fd, _stop(q%lld)", c.index);
  EXPECT_EQ(multicast_queue_wait(handle, pending > 0 ? UINT64_MAX : 0),
            q == NULL ? MULTICAST_ERROR_INVALID_HANDLE
            : pending > 0 ? pending : MULTICAST_ERROR_TIMEOUT);
  EXPECT_EQ(multicast_queue_stop(handle),
            q == NULL ? MULTICAST_ERROR_INVALID_HANDLE : MULTICAST_ERROR_STATE);
  stats.struct_size = 71;
  EXPECT(multicast_queue_get_stats(handle, &stats) ==
                 (q == NULL ? MULTICAST_ERROR_INVALID_HANDLE : MULTICAST_ERROR_INVALID_ARGUMENT) ||
             q == NULL,
         "statistics with an invalid struct_size");
  if (r->b & 1) return;
  int descriptor = multicast_queue_fd(handle);
  if (q == NULL) {
    EXPECT_EQ(descriptor, -1);
    return;
  }
  EXPECT(descriptor >= 0, "a queue without a descriptor");
  if (q->descriptor >= 0) EXPECT_EQ(descriptor, q->descriptor);
  q->descriptor = descriptor;
  EXPECT_EQ(is_readable(descriptor), pending > 0);
}
