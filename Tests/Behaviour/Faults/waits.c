#include "waits.h"

#include "system.h"

static const uint64_t long_ns = UINT64_C(60000000000);

static const char *name = "name";

/* ---- Awaited calls and releases -------------------------------------------------------------- */

static void release_slowly(void *context) {
  scene *s = context;
  ADD(s->b.releases, 1);
  if (s->release_blocks) {
    gate_open(&s->b.entered);
    gate_wait(&s->release_may_return);
  }
}

static void call_slowly(void *context, uint32_t event, const void *payload, size_t size) {
  block_call(&((scene *)context)->b, event, payload, size);
}

static void *invoke_it(void *argument) {
  scene *s = argument;
  CHECK_EQ(multicast_invoke(s->m, 0, NULL, 0), 1);
  return NULL;
}

static void start_other(scene *s, void *(*body)(void *)) {
  s->other = start_thread(body, s);
  s->has_other = true;
}

/* Starts a thread, and returns once the thread is in a call to the delegate. */
static void begin_called(scene *s) {
  multicast_add_options options = ADD_OPTIONS(.release = release_slowly, .lifetime = s->lifetime);
  CHECK_OK(multicast_broadcaster_register(s->broadcaster, name, s->delegate, &options, &s->token));
  s->m = multicast_broadcaster_multicast(s->broadcaster, name);
  start_other(s, invoke_it);
  gate_wait(&s->b.entered);
}

/* Like begin_called(), but then also removes the delegate without waiting for the call. */
static void begin_removed(scene *s) {
  begin_called(s);
  CHECK_STATUS(multicast_token_remove_nowait(s->token), MULTICAST_PENDING);
}


static void *remove_it(void *argument) {
  CHECK_OK(multicast_token_remove(((scene *)argument)->token));
  return NULL;
}

/* Starts a thread, and returns once the thread is in the delegate's `release`. */
static void begin_released(scene *s) {
  multicast_add_options options = ADD_OPTIONS(.release = release_slowly, .lifetime = s->lifetime);
  s->release_blocks = true;
  CHECK_OK(multicast_broadcaster_register(s->broadcaster, name, s->delegate, &options, &s->token));
  s->m = multicast_broadcaster_multicast(s->broadcaster, name);
  start_other(s, remove_it);
  gate_wait(&s->b.entered);
}

/* Starts a worker, and returns once the worker is in a call to the delegate. */
static void begin_run(scene *s) {
  s->queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  multicast_add_options options = ADD_OPTIONS(.release = release_slowly, .queue = s->queue,
                                              .lifetime = s->lifetime);
  CHECK_OK(multicast_broadcaster_register(s->broadcaster, name, s->delegate, &options, &s->token));
  s->m = multicast_broadcaster_multicast(s->broadcaster, name);
  CHECK_OK(multicast_queue_start(s->queue));
  CHECK_EQ(multicast_invoke(s->m, 0, NULL, 0), 1);
  gate_wait(&s->b.entered);
}

static void begin_queue(scene *s) {
  s->queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  s->m = multicast_create();
  add_queued(s->m, counter(&s->queued_calls), s->queue);
}

static void begin_full(scene *s) {
  begin_queue(s);
  CHECK_EQ(multicast_invoke(s->m, 0, NULL, 0), 1);
}

static gate thread_begins;

static void begin_slow_thread(scene *s) {
  static const gate shut = GATE_INIT;
  begin_queue(s);
  thread_begins = shut;
  thread_may_begin = &thread_begins;
}

/* ---- Functions that end a wait --------------------------------------------------------------- */

static void unblock_call(scene *s) { gate_open(&s->b.let_go); }
static void unblock_release(scene *s) { gate_open(&s->release_may_return); }
static void queue_a_call(scene *s) { CHECK_EQ(multicast_invoke(s->m, 0, NULL, 0), 1); }
static void make_room(scene *s) { CHECK_EQ(multicast_queue_run(s->queue, 1), 1); }
static void let_thread_begin(scene *s) {
  gate_open(&thread_begins);
}

/* ---- Functions that wait --------------------------------------------------------------------- */

static int64_t by_remove(scene *s) { return multicast_remove(s->m, s->delegate); }
static int64_t by_remove_many(scene *s) { return multicast_remove_many(s->m, &s->delegate, 1); }
static int64_t by_remove_context(scene *s) { return multicast_remove_context(s->m, s); }
static int64_t by_remove_at(scene *s) { return multicast_remove_at(s->m, 0); }
static int64_t by_remove_all(scene *s) { return multicast_remove_all(s->m); }
static int64_t by_destroy(scene *s) { return multicast_destroy(s->m); }
static int64_t by_token(scene *s) { return multicast_token_remove(s->token); }
static int64_t by_token_without_limit(scene *s) {
  return multicast_token_remove_within(s->token, UINT64_MAX);
}
static int64_t by_token_for_long(scene *s) {
  return multicast_token_remove_within(s->token, long_ns);
}
static int64_t by_token_briefly(scene *s) {
  return multicast_token_remove_within(s->token, SHORT_NS);
}
static int64_t by_lifetime(scene *s) { return multicast_lifetime_end(s->lifetime); }
static int64_t by_unregister(scene *s) {
  return multicast_broadcaster_unregister(s->broadcaster, name, s->delegate);
}
static int64_t by_unregister_all(scene *s) {
  return multicast_broadcaster_unregister_all(s->broadcaster, name);
}
static int64_t by_broadcaster(scene *s) { return multicast_broadcaster_destroy(s->broadcaster); }
static int64_t by_queue_destroy(scene *s) { return multicast_queue_destroy(s->queue); }
static int64_t by_queue_stop(scene *s) { return multicast_queue_stop(s->queue); }
static int64_t by_queue_wait(scene *s) { return multicast_queue_wait(s->queue, UINT64_MAX); }
static int64_t by_queue_wait_for_long(scene *s) { return multicast_queue_wait(s->queue, long_ns); }
static int64_t by_queue_wait_briefly(scene *s) {
  return multicast_queue_wait(s->queue, SHORT_NS);
}
static int64_t by_invoke(scene *s) { return multicast_invoke(s->m, 0, NULL, 0); }
static int64_t invoke_waiting(scene *s, uint64_t timeout_ns) {
  multicast_invocation how = INVOCATION(.flags = MULTICAST_WAIT, .timeout_ns = timeout_ns);
  return multicast_invoke_with(s->m, &how, NULL);
}
static int64_t by_waiting(scene *s) { return invoke_waiting(s, 0); }
static int64_t by_waiting_for_long(scene *s) { return invoke_waiting(s, long_ns); }
static int64_t by_waiting_briefly(scene *s) { return invoke_waiting(s, SHORT_NS); }
static int64_t by_queue_start(scene *s) { return multicast_queue_start(s->queue); }

const wait waits[] = {
    {"remove", begin_called, by_remove, unblock_call, MULTICAST_OK},
    {"remove_many", begin_called, by_remove_many, unblock_call, 1},
    {"remove_context", begin_called, by_remove_context, unblock_call, 1},
    {"remove_at", begin_called, by_remove_at, unblock_call, MULTICAST_OK},
    {"remove_all", begin_called, by_remove_all, unblock_call, 1},
    {"destroy", begin_called, by_destroy, unblock_call, MULTICAST_OK},
    {"token_remove", begin_called, by_token, unblock_call, MULTICAST_OK},
    {"token_remove_within without limit", begin_called, by_token_without_limit, unblock_call,
     MULTICAST_OK},
    {"token_remove_within for long", begin_called, by_token_for_long, unblock_call, MULTICAST_OK},
    {"token_remove_within", begin_called, by_token_briefly, NULL, MULTICAST_ERROR_TIMEOUT},
    {"lifetime_end", begin_called, by_lifetime, unblock_call, MULTICAST_OK},
    {"broadcaster_unregister", begin_called, by_unregister, unblock_call, MULTICAST_OK},
    {"broadcaster_unregister_all", begin_called, by_unregister_all, unblock_call, 1},
    {"broadcaster_destroy", begin_called, by_broadcaster, unblock_call, MULTICAST_OK},

    {"remove, removed", begin_removed, by_remove, unblock_call, MULTICAST_ERROR_NOT_FOUND},
    {"token_remove, removed", begin_removed, by_token, unblock_call,
     MULTICAST_ERROR_INVALID_HANDLE},
    {"remove_all, removed", begin_removed, by_remove_all, unblock_call, 0},
    {"destroy, removed", begin_removed, by_destroy, unblock_call, MULTICAST_OK},
    {"lifetime_end, removed", begin_removed, by_lifetime, unblock_call, MULTICAST_OK},
    {"token_remove_within, removed", begin_removed, by_token_briefly, NULL,
     MULTICAST_ERROR_TIMEOUT},
    {"lifetime_end, release", begin_released, by_lifetime, unblock_release, MULTICAST_OK},

    {"token_remove, queued", begin_run, by_token, unblock_call, MULTICAST_OK},
    {"remove_all, queued", begin_run, by_remove_all, unblock_call, 1},
    {"lifetime_end, queued", begin_run, by_lifetime, unblock_call, MULTICAST_OK},
    {"queue_destroy", begin_run, by_queue_destroy, unblock_call, MULTICAST_OK},
    {"queue_stop", begin_run, by_queue_stop, unblock_call, MULTICAST_OK},
    {"queue_wait", begin_queue, by_queue_wait, queue_a_call, 1},
    {"queue_wait for long", begin_queue, by_queue_wait_for_long, queue_a_call, 1},
    {"queue_wait briefly", begin_queue, by_queue_wait_briefly, NULL, MULTICAST_ERROR_TIMEOUT},
    {"invoke", begin_full, by_invoke, make_room, 1},
    {"invoke_with, WAIT", begin_queue, by_waiting, make_room, 1},
    {"invoke_with, WAIT for long", begin_queue, by_waiting_for_long, make_room, 1},
    {"invoke_with, WAIT briefly", begin_queue, by_waiting_briefly, NULL, MULTICAST_ERROR_TIMEOUT},
    {"queue_start", begin_slow_thread, by_queue_start, let_thread_begin, MULTICAST_OK},
};
const int wait_count = (int)(sizeof waits / sizeof *waits);

/* ---- Scenes ---------------------------------------------------------------------------------- */

void scene_begin(scene *s, const wait *w) {
  static const blocker fresh = BLOCKER_INIT;
  static const gate shut = GATE_INIT;
  memset(s, 0, sizeof *s);
  s->b = fresh;
  s->release_may_return = shut;
  s->delegate.function = call_slowly;
  s->delegate.context = s;
  s->lifetime = multicast_lifetime_create();
  s->broadcaster = multicast_broadcaster_create(NULL);
  w->begin(s);
}

/* Lets all calls return and destroys everything, so that nothing is running afterwards. */
void scene_end(scene *s) {
  gate_open(&s->b.let_go);
  gate_open(&s->release_may_return);
  if (s->has_other) join_thread(s->other);
  multicast_lifetime_end(s->lifetime);
  multicast_broadcaster_destroy(s->broadcaster);
  multicast_destroy(s->m);
  if (s->queue.id != 0) multicast_queue_destroy(s->queue);
  if (s->token.id != 0) CHECK_EQ(LOAD(s->b.releases), 1);
  CHECK_EQ(LOAD(s->b.calls), s->token.id != 0 && !s->release_blocks ? 1 : 0);
  CHECK_EQ(LOAD(s->b.has_left), LOAD(s->b.calls) == 1);
}
