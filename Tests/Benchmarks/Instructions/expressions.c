// Evaluates expressions while callgrind counts the instructions of each. See ../instructions.

#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "work.h"

extern bare_loop plain_loop;

enum { MOST = 1000, ROUNDS = 20 };

static uint64_t counters[MOST];
static multicast_delegate delegates[MOST];
static multicast target;
static multicast_token tokens[MOST];
static multicast_queue queue;
static multicast_broadcaster broadcaster;
static multicast_lifetime lifetime;

#define CHECK(expression) \
  ((expression) ? (void)0 : fail(__FILE__, __LINE__, #expression))
static void fail(const char *file, int line, const char *expression) {
  fprintf(stderr, "%s:%d: %s is false\n", file, line, expression);
  exit(1);
}

// ---- Set-up and tear-down, not counted ----------------------------------------------------------

// Creates a target that only this thread invokes, which is the usual case.
static void fill(size_t count, const multicast_add_options *options) {
  target = multicast_create();
  for (size_t i = 0; i < count; i++)
    CHECK(multicast_add(target, delegates[i], options, &tokens[i]) == MULTICAST_OK);
  CHECK(multicast_invoke(target, 1, NULL, 0) == (int64_t)count);
}
static void make_empty(void) { fill(0, NULL); }
static void make_1(void) { fill(1, NULL); }
static void make_new(void) {
  target = multicast_create();
  CHECK(multicast_add(target, delegates[0], NULL, NULL) == MULTICAST_OK);
}
static void make_16(void) { fill(16, NULL); }
static void make_100(void) { fill(100, NULL); }
static void make_full(void) { fill(MOST, NULL); }
static void make_watched_by(void (*called)(void *, multicast_token, uint32_t, uint64_t)) {
  multicast_watch watch = multicast_watch_default();
  watch.called = called;
  make_16();
  CHECK(multicast_set_watch(target, &watch) == MULTICAST_OK);
}
static void be_notified(void *context, multicast_token token, uint32_t event, uint64_t elapsed_ns) {
  (void)context, (void)token, (void)event, (void)elapsed_ns;
}
static void make_watched(void) { make_watched_by(NULL); }
static void make_notified(void) { make_watched_by(be_notified); }
static void *lock_context(void *context) { return context; }
static void unlock_context(void *strong) { (void)strong; }
static bool call_visited(void *context, const multicast_delegate *delegate) {
  (void)context;
  delegate->function(delegate->context, 1, NULL, 0);
  return true;
}
static void visit(void) { multicast_visit(target, call_visited, NULL); }
// Creates a multicast with the options that MulticastSwift uses for weak delegates.
static void make_weak(void) {
  multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  options.flags = MULTICAST_VISIT_ONLY;
  options.lock_context = lock_context;
  options.unlock_context = unlock_context;
  target = multicast_create_with(&options);
  CHECK(multicast_add(target, delegates[0], NULL, NULL) == MULTICAST_OK);
  CHECK(multicast_visit(target, call_visited, NULL) == 1);
}
// Creates a multicast and searches it so often that the library builds an index.
static void make_searched(void) {
  make_full();
  for (size_t i = 0; i < MOST; i++) CHECK(multicast_contains(target, delegates[MOST - 1]));
}
static void make_members(void) {
  multicast_add_options options = multicast_add_options_default();
  options.lifetime = lifetime = multicast_lifetime_create();
  fill(64, &options);
}
static void make_queued(void) {
  multicast_add_options options = multicast_add_options_default();
  options.queue = queue = multicast_queue_create(NULL);
  fill(1, &options);
  for (int i = 0; i < 99; i++) CHECK(multicast_invoke(target, 1, NULL, 0) == 1);
  CHECK(multicast_queue_run(queue, 0) == 100);
}
static void make_named(void) {
  broadcaster = multicast_broadcaster_create(NULL);
  CHECK(multicast_broadcaster_register(broadcaster, "org.example.Name", delegates[0], NULL, NULL) ==
        MULTICAST_OK);
  CHECK(multicast_broadcaster_notify(broadcaster, "org.example.Name", 1, NULL, 0) == 1);
}
static multicast_status publish(void *context, const char *name, uint32_t event,
                                const void *payload, size_t size) {
  (void)context, (void)name, (void)payload;
  counters[0] += event + size;
  return MULTICAST_OK;
}
static void make_attached(void) {
  multicast_transport transport = multicast_transport_default();
  make_named();
  transport.publish = publish;
  CHECK(multicast_broadcaster_attach(broadcaster, &transport) == MULTICAST_OK);
  CHECK(multicast_broadcaster_notify(broadcaster, "org.example.Name", 1, NULL, 0) == 1);
}

static void make_nothing(void) {}
static void make_created(void) { target = multicast_create(); }
static void destroy(void) { CHECK(multicast_destroy(target) == MULTICAST_OK); }
static void destroy_queued(void) {
  CHECK(multicast_queue_destroy(queue) == MULTICAST_OK);
  destroy();
}
static void destroy_named(void) {
  CHECK(multicast_broadcaster_destroy(broadcaster) == MULTICAST_OK);
}

// ---- Counted ------------------------------------------------------------------------------------

static void loop_0(void) { plain_loop(delegates, 0, 1, NULL, 0); }
static void loop_1(void) { plain_loop(delegates, 1, 1, NULL, 0); }
static void loop_16(void) { plain_loop(delegates, 16, 1, NULL, 0); }
static void invoke(void) { multicast_invoke(target, 1, NULL, 0); }
static void add(void) {
  for (size_t i = 0; i < MOST; i++)
    CHECK(multicast_add(target, delegates[i], NULL, &tokens[i]) == MULTICAST_OK);
}
// Removes delegates in scattered order. Because 7 and 1,000 have no common divisor, each delegate
// is removed once.
static void token_remove(void) {
  for (size_t i = 0; i < MOST; i++)
    CHECK(multicast_token_remove(tokens[i * 7 % MOST]) == MULTICAST_OK);
}
static void create_and_destroy(void) {
  CHECK(multicast_destroy(multicast_create()) == MULTICAST_OK);
}
static void create_add_and_destroy(void) {
  const multicast one = multicast_create();
  CHECK(multicast_add(one, delegates[0], NULL, NULL) == MULTICAST_OK);
  CHECK(multicast_destroy(one) == MULTICAST_OK);
}
static void create_add_100_and_destroy(void) {
  const multicast one = multicast_create();
  for (size_t i = 0; i < 100; i++)
    CHECK(multicast_add(one, delegates[i], NULL, NULL) == MULTICAST_OK);
  CHECK(multicast_destroy(one) == MULTICAST_OK);
}
static void end_lifetime(void) { CHECK(multicast_lifetime_end(lifetime) == MULTICAST_OK); }
static void remove_all(void) { CHECK(multicast_remove_all(target) == 100); }
static void remove_last(void) {
  CHECK(multicast_remove(target, delegates[99]) == MULTICAST_OK);
}
static void remove_each(void) {
  for (size_t i = 0; i < MOST; i++)
    CHECK(multicast_remove(target, delegates[i * 7 % MOST]) == MULTICAST_OK);
}
static void connect(void) {
  for (size_t i = 0; i < 64; i++)
    CHECK(multicast_add(target, delegates[i], NULL, NULL) == MULTICAST_OK);
}
static void add_and_remove_with(const multicast_add_options *options) {
  multicast_token token;
  CHECK(multicast_add(target, delegates[MOST - 1], options, &token) == MULTICAST_OK);
  CHECK(multicast_token_remove(token) == MULTICAST_OK);
}
static void add_and_remove(void) { add_and_remove_with(NULL); }
static void release(void *context) { (void)context; }
static void add_and_remove_released(void) {
  multicast_add_options options = multicast_add_options_default();
  options.release = release;
  add_and_remove_with(&options);
}
static void notify(void) {
  multicast_broadcaster_notify(broadcaster, "org.example.Name", 1, NULL, 0);
}
static void deliver(void) {
  multicast_broadcaster_deliver(broadcaster, "org.example.Name", 1, NULL, 0);
}
static void queue_and_run(void) {
  multicast_invoke(target, 1, "0123456789abcde", 16);
  multicast_queue_run(queue, 1);
}
static void queue_and_run_100(void) {
  for (size_t i = 0; i < 100; i++) multicast_invoke(target, 1, "0123456789abcde", 16);
  CHECK(multicast_queue_run(queue, 0) == 100);
}

static const struct expression {
  const char *name;
  unsigned count;  // operations per evaluation
  void (*before)(void), (*evaluate)(void), (*after)(void);
  uint64_t sum;  // sum of event and size over all calls in one evaluation
} expressions[] = {
    {"bare loop, 0 delegates", 1, make_nothing, loop_0, make_nothing, 0},
    {"bare loop, 1 delegate", 1, make_nothing, loop_1, make_nothing, 1},
    {"bare loop, 16 delegates", 1, make_nothing, loop_16, make_nothing, 16},
    {"multicast_invoke, 0 delegates", 1, make_empty, invoke, destroy, 0},
    {"multicast_invoke, 1 delegate", 1, make_1, invoke, destroy, 1},
    {"multicast_invoke, 16 delegates", 1, make_16, invoke, destroy, 16},
    {"multicast_invoke, the first, 1 delegate", 1, make_new, invoke, destroy, 1},
    {"multicast_invoke, each of 16 delegates, counted by a watch", 16, make_watched, invoke,
     destroy, 16},
    {"multicast_invoke, each of 16 delegates, a watch notified", 16, make_notified, invoke, destroy,
     16},
    // This row comes before the removals, to check that a multicast with locked delegates does not
    // make later removals slower.
    {"multicast_visit, 1 delegate that is locked", 1, make_weak, visit, destroy, 1},
    {"multicast_add, 1000 to an empty one", MOST, make_empty, add, destroy, 0},
    {"multicast_token_remove, 1000 until it is empty", MOST, make_full, token_remove, destroy, 0},
    {"multicast_destroy, 0 delegates", 1, make_created, destroy, make_nothing, 0},
    {"multicast_create, multicast_destroy", 1, make_nothing, create_and_destroy, make_nothing, 0},
    {"multicast_create, multicast_add, multicast_destroy", 1, make_nothing,
     create_add_and_destroy, make_nothing, 0},
    {"multicast_add, 64 to an empty one", 64, make_empty, connect, destroy, 0},
    {"multicast_add, multicast_token_remove", 1, make_16, add_and_remove, destroy, 0},
    {"multicast_add, multicast_token_remove, release", 1, make_16, add_and_remove_released,
     destroy, 0},
    {"multicast_add, multicast_token_remove, beside 100", 1, make_100, add_and_remove, destroy, 0},
    {"multicast_create, 100 of multicast_add, multicast_destroy", 100, make_nothing,
     create_add_100_and_destroy, make_nothing, 0},
    {"multicast_remove, the last of 100", 1, make_100, remove_last, destroy, 0},
    {"multicast_remove, each of 1000, after many searches", MOST, make_searched, remove_each,
     destroy, 0},
    {"multicast_remove_all, each of 100", 100, make_100, remove_all, destroy, 0},
    {"multicast_lifetime_end, each of 64", 64, make_members, end_lifetime, destroy, 0},
    {"multicast_broadcaster_notify, 1 delegate", 1, make_named, notify, destroy_named, 1},
    {"multicast_broadcaster_notify, 1 delegate, a transport", 1, make_attached, notify,
     destroy_named, 2},
    {"multicast_broadcaster_deliver, 1 delegate", 1, make_attached, deliver, destroy_named, 1},
    {"multicast_invoke with a queue, multicast_queue_run", 1, make_queued, queue_and_run,
     destroy_queued, 1 + 16},
    {"100 invocations with a queue, multicast_queue_run, each", 100, make_queued,
     queue_and_run_100, destroy_queued, 1700},
};

static uint64_t sum(void) {
  uint64_t sum = 0;
  for (size_t i = 0; i < MOST; i++) sum += counters[i];
  return sum;
}

static void count(const struct expression *each) {
  char name[100];
  for (int round = 0; round <= ROUNDS; round++) {
    each->before();
    const uint64_t before = sum();
    // The first evaluation is not counted, because it allocates memory and binds functions.
    if (round > 0) CALLGRIND_TOGGLE_COLLECT;
    each->evaluate();
    if (round > 0) CALLGRIND_TOGGLE_COLLECT;
    CHECK(sum() - before == each->sum);
    each->after();
  }
  snprintf(name, sizeof name, "%u %s", each->count * ROUNDS, each->name);
  CALLGRIND_DUMP_STATS_AT(name);
}

// Returns whether this process has registered for the expedited barrier. To find out, executes the
// barrier, which the kernel refuses to a process that has not registered.
static int is_registered(void) {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

int main(void) {
  CHECK(RUNNING_ON_VALGRIND);
  for (size_t i = 0; i < MOST; i++)
    delegates[i] = (multicast_delegate){work_in_executable, &counters[i]};

  // The library registers for the barrier when it is first used. If registration fails, the library
  // executes fence instructions, which the bounds do not include.
  CHECK(!is_registered());
  create_and_destroy();
  if (!is_registered()) return 77;

  for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) count(&expressions[i]);
  return 0;
}
