/* This operation creates a multicast that replays invocations, uses it and destroys it. The
 * operation has a separate model, which stores the numbers of the buffered invocations and the
 * calls that must come next. */

#include <string.h>

#include "history.h"
#include "memory.h"
#include "operations.h"

enum { LISTENERS = 8, KEPT = 5, EXPECTED = 256, STEPS = 24 };

typedef struct listener {
  multicast_token token;
  bool is_live, is_once, is_queued, wants_one_event;
} listener;

/* An invocation, or one of its calls. */
typedef struct item {
  int listener, number;
  uint32_t event;
} item;

static struct {
  multicast target;
  multicast_queue queue;
  int replay, number, kept_count;
  item kept[KEPT];
  listener listeners[LISTENERS];
  int listener_count;
  item direct[EXPECTED], queued[EXPECTED]; /* the expected calls */
  int direct_first, direct_count, queued_first, queued_count;
  unsigned random;
} it;

static unsigned random_below(unsigned limit) {
  it.random = it.random * 1103515245u + 12345u;
  return (it.random >> 16) % limit;
}

static void be_called(void *context, uint32_t event, const void *payload, size_t size) {
  listener *l = context;
  bool is_queued = l->is_queued;
  const item *next = is_queued ? &it.queued[it.queued_first] : &it.direct[it.direct_first];
  int number = 0;
  EXPECT(is_queued ? it.queued_first++ < it.queued_count : it.direct_first++ < it.direct_count,
         "a call that does not have to come");
  EXPECT(size >= sizeof number, "a payload that is too small");
  memcpy(&number, payload, sizeof number);
  EXPECT_EQ(l - it.listeners, next->listener);
  EXPECT_EQ(number, next->number);
  EXPECT_EQ(event, next->event);
  if (l->is_once) EXPECT(!multicast_token_is_valid(l->token), "called once, and live in its call");
}

/* Records that the invocation is expected to call the listener. Returns false if the invocation
 * makes no new call to the listener. */
static bool expect_call(int index, const item *invocation) {
  listener *l = &it.listeners[index];
  item call = *invocation;
  call.listener = index;
  if (!l->is_live || (l->wants_one_event && invocation->event != 1)) return false;
  if (l->is_queued) {
    if (l->is_once && it.queued_count > it.queued_first) {
      for (int i = it.queued_first; i < it.queued_count; ++i) {
        if (it.queued[i].listener == index) return false;
      }
    }
    it.queued[it.queued_count++] = call;
  } else {
    it.direct[it.direct_count++] = call;
    if (l->is_once) l->is_live = false;
  }
  return true;
}

static void expect_no_more(void) {
  EXPECT_EQ(it.direct_first, it.direct_count);
  it.direct_first = it.direct_count = 0;
}

static void invoke(void) {
  unsigned char bytes[100] = {0};
  size_t size = random_below(2) ? sizeof(int) : sizeof bytes;
  int64_t failures = memory_failures(), result;
  item now = {0, it.number + 1, random_below(3)};
  memcpy(bytes, &now.number, sizeof now.number);
  NOTE("  invoke with %lld, event %lld", now.number, now.event);
  if (random_below(4) == 0) {
    result = multicast_invoke(it.target, now.event, NULL, 1);
    EXPECT_EQ(result, MULTICAST_ERROR_INVALID_ARGUMENT);
    memory_fail_after(0);
    result = multicast_invoke(it.target, now.event, bytes, size);
    memory_recover();
    EXPECT(memory_failures() > failures, "an invocation that is kept without memory");
    EXPECT_EQ(result, MULTICAST_ERROR_OUT_OF_MEMORY);
    expect_no_more();
    return;
  }
  it.number = now.number;
  if (it.kept_count == it.replay) {
    memmove(it.kept, it.kept + 1, (size_t)--it.kept_count * sizeof *it.kept);
  }
  it.kept[it.kept_count++] = now;
  {
    int count = 0;
    for (int i = 0; i < it.listener_count; ++i) count += expect_call(i, &now);
    result = multicast_invoke(it.target, now.event, bytes, size);
    EXPECT_EQ(result, count);
  }
  expect_no_more();
}

static void add(void) {
  multicast_add_options options = MULTICAST_ADD_OPTIONS_INIT;
  listener *l = &it.listeners[it.listener_count];
  multicast_delegate d = {be_called, l};
  multicast_status status;
  bool is_replayed = random_below(4) != 0;
  if (it.listener_count == LISTENERS) return;
  memset(l, 0, sizeof *l);
  l->is_once = random_below(4) == 0;
  l->is_queued = random_below(3) == 0;
  l->wants_one_event = random_below(3) == 0;
  if (l->is_once) options.flags |= MULTICAST_ONCE;
  if (!is_replayed) options.flags |= MULTICAST_NO_REPLAY;
  if (l->is_queued) options.queue = it.queue;
  if (l->wants_one_event) options.events = 1u << 1;
  NOTE("  add l%lld, flags %lld, queue %lld, events %lld", it.listener_count, options.flags,
       l->is_queued, options.events);
  if (random_below(4) == 0) {
    int64_t failures = memory_failures();
    memory_fail_after(0);
    status = multicast_add(it.target, d, &options, &l->token);
    memory_recover();
    if (memory_failures() > failures) {
      EXPECT_EQ(status, MULTICAST_ERROR_OUT_OF_MEMORY);
      EXPECT_EQ(l->token.id, 0);
      expect_no_more();
      return;
    }
    EXPECT(!is_replayed, "a replay without memory");
  } else {
    l->is_live = true;
    for (int i = 0; is_replayed && i < it.kept_count; ++i) {
      (void)expect_call(it.listener_count, &it.kept[i]);
    }
    status = multicast_add(it.target, d, &options, &l->token);
  }
  EXPECT_EQ(status, MULTICAST_OK);
  if (!l->is_once) l->is_live = true;
  l->is_live = multicast_token_is_valid(l->token);
  ++it.listener_count;
  expect_no_more();
}

static void remove_any(void) {
  if (it.listener_count == 0) return;
  int i = (int)random_below((unsigned)it.listener_count);
  listener *l = &it.listeners[i];
  NOTE("  remove l%lld", i);
  EXPECT_EQ(multicast_token_remove(l->token),
            l->is_live ? MULTICAST_OK : MULTICAST_ERROR_INVALID_HANDLE);
  l->is_live = false;
  int to = it.queued_first;
  for (int from = to; from < it.queued_count; ++from) {
    if (it.queued[from].listener != i) it.queued[to++] = it.queued[from];
  }
  it.queued_count = to;
}

static void run(void) {
  int count = it.queued_count - it.queued_first;
  NOTE("  run %lld", count);
  EXPECT_EQ(multicast_queue_run(it.queue, 0), count);
  EXPECT_EQ(it.queued_first, it.queued_count);
  it.queued_first = it.queued_count = 0;
  for (int i = 0; i < it.listener_count; ++i) {
    listener *l = &it.listeners[i];
    l->is_live = multicast_token_is_valid(l->token);
  }
}

void perform_replay(const record *r) {
  multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  multicast_queue_options queue = MULTICAST_QUEUE_OPTIONS_INIT;
  /* This operation must not run where its allocations or its nesting would matter, because the main
   * model does not count them. */
  if (model.depth > 0 || memory_is_failing()) return;
  memset(&it, 0, sizeof it);
  it.random = (unsigned)(r->b | r->c << 8 | r->d << 16) + r->e * 16777216u;
  it.replay = 1 + r->a % KEPT;
  NOTE("a multicast that replays %lld, seed %lld", it.replay, it.random);
  options.replay = (uint32_t)it.replay;
  options.reentry = r->f % 4u;
  it.target = multicast_create_with(&options);
  queue.capacity = EXPECTED;
  it.queue = multicast_queue_create(&queue);
  EXPECT(it.target.id != 0 && it.queue.id != 0, "a failed creation");
  for (int step = 0; step < STEPS; ++step) {
    switch (random_below(6)) {
      case 0:
      case 1: add(); break;
      case 2: remove_any(); break;
      case 3: run(); break;
      default: invoke();
    }
  }
  EXPECT_EQ(multicast_destroy(it.target), MULTICAST_OK);
  EXPECT_EQ(multicast_queue_destroy(it.queue), MULTICAST_OK);
}
