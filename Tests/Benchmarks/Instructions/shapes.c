// Evaluates the same expression at two sizes while callgrind counts the instructions. See
// ../shapes.

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "work.h"

enum { MOST = 1 << 16, THREADS = 400 };

static uint64_t counters[MOST];
static multicast_delegate delegates[MOST];
static multicast_token tokens[MOST];
static multicast target, other;
static multicast_queue queue;
static multicast_broadcaster broadcaster;
static multicast_lifetime lifetime;
static multicast many[MOST];

#define CHECK(expression) \
  ((expression) ? (void)0 : fail(__FILE__, __LINE__, #expression))
static void fail(const char *file, int line, const char *expression) {
  fprintf(stderr, "%s:%d: %s is false\n", file, line, expression);
  exit(1);
}

// Forks, and returns only in the child. The parent waits for the child and exits with its status.
static void end_as_child(void) {
  const pid_t child = fork();
  if (child == 0) return;
  int status = 1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void add_with(size_t count, const multicast_add_options *options) {
  for (size_t i = 0; i < count; i++)
    CHECK(multicast_add(target, delegates[i], options, &tokens[i]) == MULTICAST_OK);
}
static void fill(size_t count, const multicast_add_options *options) {
  target = multicast_create();
  add_with(count, options);
}
static void destroy(size_t size) {
  CHECK(multicast_destroy(target) == MULTICAST_OK);
}
static void nothing(size_t size) { (void)size; }

// Maps the numbers below `size`, a power of two, to the same numbers in scattered order.
static size_t scattered(size_t i, size_t size) { return i * 7 % size; }

// ---- Threads ------------------------------------------------------------------------------------

static pthread_t threads[THREADS];
static sem_t has_begun, may_end;

static void start(size_t count, void *(*body)(void *)) {
  for (size_t i = 0; i < count; i++)
    CHECK(pthread_create(&threads[i], NULL, body, (void *)i) == 0);
}
static void join(size_t count) {
  for (size_t i = 0; i < count; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void wait_inside(void *context, uint32_t event, const void *payload, size_t size) {
  sem_post(&has_begun);
  while (sem_wait(&may_end) != 0) continue;
}

// Runs on a thread that stays inside a call until `end_calls` is called. Each such thread invokes
// its own multicast.
static void *invoke_own(void *index) {
  CHECK(multicast_invoke(many[(size_t)index], 0, NULL, 0) == 1);
  return NULL;
}
static void begin_calls(size_t count) {
  for (size_t i = 0; i < count; i++) {
    many[i] = multicast_create();
    const multicast_delegate waits = {wait_inside, NULL};
    CHECK(multicast_add(many[i], waits, NULL, NULL) == MULTICAST_OK);
  }
  start(count, invoke_own);
  for (size_t i = 0; i < count; i++) sem_wait(&has_begun);
}
static void end_calls(size_t count) {
  for (size_t i = 0; i < count; i++) sem_post(&may_end);
  join(count);
  for (size_t i = 0; i < count; i++) CHECK(multicast_destroy(many[i]) == MULTICAST_OK);
}

// Invokes the target on another thread, so that the target has several invokers.
static void *invoke_target(void *unused) {
  multicast_invoke(target, 0, NULL, 0);
  return unused;
}
static void invoke_elsewhere(void) {
  multicast_invoke(target, 0, NULL, 0);
  start(1, invoke_target);
  join(1);
}

// Runs on a thread that invokes and then stays alive, so that each such thread needs its own
// record.
static void *invoke_empty(void *unused) {
  const multicast empty = multicast_create();
  multicast_invoke(empty, 0, NULL, 0);
  multicast_destroy(empty);
  sem_post(&has_begun);
  while (sem_wait(&may_end) != 0) continue;
  return unused;
}
static void begin_threads(size_t count) {
  start(count, invoke_empty);
  for (size_t i = 0; i < count; i++) sem_wait(&has_begun);
}
static void go_on_and_join(size_t count) {
  for (size_t i = 0; i < count; i++) sem_post(&may_end);
  join(count);
}
static void end_threads(size_t count) {
  begin_threads(count);
  go_on_and_join(count);
}

// ---- Adding, removing ---------------------------------------------------------------------------

static void make_empty(size_t size) {
  fill(0, NULL);
}
static void make(size_t size) { fill(size, NULL); }
static void make_invoked(size_t size) {
  fill(size, NULL);
  invoke_elsewhere();
}
static void add(size_t size) { add_with(size, NULL); }
static void add_many(size_t size) {
  CHECK(multicast_add_many(target, delegates, size, NULL, tokens) == MULTICAST_OK);
}
static multicast_token added_before;
static void add_before(size_t size) {
  multicast_add_options options = multicast_add_options_default();
  options.priority = 1;
  CHECK(multicast_add(target, delegates[0], &options, &added_before) == MULTICAST_OK);
}
static void add_unique(size_t size) {
  multicast_add_options options = multicast_add_options_default();
  options.flags = MULTICAST_UNIQUE;
  CHECK(multicast_add(target, delegates[size - 1], &options, NULL) == MULTICAST_OK);
}
static void token_remove(size_t size) {
  for (size_t i = 0; i < size; i++)
    CHECK(multicast_token_remove(tokens[scattered(i, size)]) == MULTICAST_OK);
}
static void remove_last(size_t size) {
  CHECK(multicast_remove(target, delegates[size - 1]) == MULTICAST_OK);
}
static void remove_every(size_t size) {
  CHECK(multicast_remove_every(target, delegates[size - 1]) == MULTICAST_OK);
}
static void remove_many(size_t size) {
  CHECK(multicast_remove_many(target, delegates + size - 8, 8) == 8);
}
static void remove_context(size_t size) {
  CHECK(multicast_remove_context(target, delegates[size - 1].context) == 1);
}
static void remove_at(size_t size) {
  // After a removal, the library has to count delegates to find the delegate at an index.
  CHECK(multicast_token_remove(tokens[0]) == MULTICAST_OK);
  CHECK(multicast_remove_at(target, size / 2) == MULTICAST_OK);
}
static void remove_all(size_t size) { CHECK(multicast_remove_all(target) == (int64_t)size); }
static void prune(size_t size) {
  CHECK(multicast_prune(target) == 0);
}
static void contains(size_t size) { CHECK(multicast_contains(target, delegates[size - 1])); }
static void list(size_t size) {
  static multicast_delegate out[MOST];
  CHECK(multicast_list(target, out, MOST) == (int64_t)size);
}
static void count(size_t size) {
  CHECK(multicast_count(target) == (int64_t)size);
  CHECK(multicast_is_valid(target));
}
static void create(size_t size) {
  for (size_t i = 0; i < size; i++) many[i] = multicast_create();
}
static void destroy_many(size_t size) {
  for (size_t i = 0; i < size; i++) CHECK(multicast_destroy(many[i]) == MULTICAST_OK);
}
static void invoke(size_t size) {
  CHECK(multicast_invoke(target, 1, NULL, 0) == (int64_t)size);
}
static bool visit_one(void *context, const multicast_delegate *delegate) {
  return true;
}
static void visit(size_t size) {
  CHECK(multicast_visit(target, visit_one, NULL) == (int64_t)size);
}
static void invoke_with(size_t size) {
  multicast_invocation how = multicast_invocation_default();
  CHECK(multicast_invoke_with(target, &how, NULL) == (int64_t)size);
}
static bool enumerate_one(void *context, const multicast_registration *registration) {
  return true;
}
static void enumerate(size_t size) {
  CHECK(multicast_enumerate(target, enumerate_one, NULL) == (int64_t)size);
}

// Creates a multicast that replays the last `size` invocations, and invokes it `size` times.
static void make_replaying(size_t size) {
  multicast_create_options options = multicast_create_options_default();
  options.replay = (uint32_t)size;
  target = multicast_create_with(&options);
  for (size_t i = 0; i < size; i++) CHECK(multicast_invoke(target, 0, NULL, 0) == 0);
}
static void add_one(size_t size) {
  CHECK(multicast_add(target, delegates[0], NULL, NULL) == MULTICAST_OK);
}
static void invoke_64(size_t size) {
  for (int i = 0; i < 64; i++) CHECK(multicast_invoke(target, 0, NULL, 0) == 0);
}

static bool write_nothing(void *context, const char *text, size_t size) {
  return true;
}
static void describe(size_t size) {
  CHECK(multicast_describe(target, write_nothing, NULL) == MULTICAST_OK);
}
static const multicast_watch counting = MULTICAST_WATCH_INIT;
static void watch_one(size_t size) {
  for (int i = 0; i < 64; i++) {
    CHECK(multicast_set_watch(many[i], &counting) == MULTICAST_OK);
    CHECK(multicast_set_watch(many[i], NULL) == MULTICAST_OK);
  }
}
static void watch_all(size_t size) {
  const multicast all = {0};
  CHECK(multicast_set_watch(all, &counting) == MULTICAST_OK);
  CHECK(multicast_set_watch(all, NULL) == MULTICAST_OK);
}
static void make_watched(size_t size) {
  fill(size, NULL);
  CHECK(multicast_set_watch(target, &counting) == MULTICAST_OK);
  CHECK(multicast_invoke(target, 1, NULL, 0) == (int64_t)size);
}
static void read_statistics(size_t size) {
  multicast_token_stats stats = MULTICAST_TOKEN_STATS_INIT;
  for (size_t i = 0; i < size; i++) {
    CHECK(multicast_token_get_stats(tokens[i], &stats) == MULTICAST_OK);
    CHECK(stats.calls == 1);
  }
}
static void is_valid(size_t size) {
  for (int i = 0; i < 64; i++) CHECK(multicast_is_valid(target));
}

// A delegate that invokes its own multicast recursively to the given depth, and reads the call
// stack at the deepest level.
static size_t depth;
static void nest(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_token out[256];
  if (--depth > 0) {
    CHECK(multicast_invoke(target, 0, NULL, 0) == 1);
    return;
  }
  for (int i = 0; i < 64; i++) CHECK(multicast_call_stack(out, 256) > 0);
}
static void make_nesting(size_t size) {
  multicast_delegate one = {nest, NULL};
  depth = size;
  target = multicast_create();
  CHECK(multicast_add(target, one, NULL, NULL) == MULTICAST_OK);
}
static void call_stack(size_t size) {
  CHECK(multicast_invoke(target, 0, NULL, 0) == 1);
}
static void make_vacant(size_t size) {
  make(size);
  CHECK(multicast_remove_all(target) == (int64_t)size);
}
static void trim(size_t size) {
  CHECK(multicast_trim() >= 0);
}
static void pause_all(size_t size) {
  for (size_t i = 0; i < size; i++)
    CHECK(multicast_token_pause(tokens[scattered(i, size)]) == MULTICAST_OK);
}
static void resume_all(size_t size) {
  for (size_t i = 0; i < size; i++)
    CHECK(multicast_token_resume(tokens[scattered(i, size)]) == MULTICAST_OK);
}
static void ask_tokens(size_t size) {
  multicast_registration registration = multicast_registration_default();
  for (size_t i = 0; i < size; i++) {
    CHECK(multicast_token_is_valid(tokens[i]));
    CHECK(multicast_token_get_registration(tokens[i], &registration) == MULTICAST_OK);
    CHECK(multicast_token_invoke(tokens[i], 0, NULL, 0) == 1);
  }
}

// ---- While an older list is read ----------------------------------------------------------------

// Starts a thread that stays inside an invocation of the target. Then adds a delegate with a higher
// priority. This creates a new list, while the thread is still reading the old list.
static void make_older(size_t size) {
  const multicast_delegate waits = {wait_inside, NULL};
  target = multicast_create();
  multicast_add_options options = multicast_add_options_default();
  options.lifetime = lifetime = multicast_lifetime_create();
  CHECK(multicast_add(target, waits, NULL, NULL) == MULTICAST_OK);
  add_with(size, &options);
  start(1, invoke_target);
  sem_wait(&has_begun);
  add_before(0);
}
static void destroy_older(size_t size) {
  sem_post(&may_end);
  join(1);
  multicast_lifetime_end(lifetime);
  destroy(size);
}
// Pauses a delegate that the older list does not contain.
static void pause_new(size_t size) {
  CHECK(multicast_token_pause(added_before) == MULTICAST_OK);
}
static void end_lifetime(size_t size) {
  CHECK(multicast_lifetime_end(lifetime) == MULTICAST_OK);
}

// Starts `size` threads, each of which stays inside an invocation and reads a different list.
static void make_lists(size_t size) {
  const multicast_delegate waits = {wait_inside, NULL};
  fill(64, NULL);
  multicast_add_options options = multicast_add_options_default();
  options.priority = 1;
  CHECK(multicast_add(target, waits, &options, NULL) == MULTICAST_OK);
  for (size_t i = 0; i < size; i++) {
    CHECK(pthread_create(&threads[i], NULL, invoke_target, NULL) == 0);
    sem_wait(&has_begun);
    options.priority++;
    multicast_token first;
    CHECK(multicast_add(target, delegates[0], &options, &first) == MULTICAST_OK);
  }
}
static void destroy_lists(size_t size) {
  for (size_t i = 0; i < size; i++) sem_post(&may_end);
  join(size);
  destroy(size);
}
static void pause_64(size_t size) {
  pause_all(64);
}
// Adds a delegate. This replaces the list, so the library checks whether retired lists are in use.
static void replace(size_t size) { add_before(size); }

// ---- Threads that have ended, and threads inside calls ------------------------------------------

static void make_after_threads(size_t size) {
  end_threads(size);
  make_invoked(64);
}
static void make_beside_calls(size_t size) {
  make_invoked(64);
  begin_calls(size);
}
static void destroy_beside_calls(size_t size) {
  end_calls(size);
  destroy(size);
}
static void token_remove_64(size_t size) {
  token_remove(64);
}
static void remove_all_64(size_t size) {
  remove_all(64);
}

// Runs on a thread that invokes for the first time and then ends.
static void *invoke_first(void *unused) {
  CALLGRIND_TOGGLE_COLLECT;
  CHECK(multicast_invoke(other, 0, NULL, 0) == 0);
  return unused;
}
static void make_ended(size_t size) {
  other = multicast_create();
  end_threads(size);
}
static void make_living(size_t size) {
  other = multicast_create();
  begin_threads(size);
}
static void first_of_64(size_t size) {
  for (int i = 0; i < 64; i++) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, invoke_first, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
  }
}
static void destroy_other(size_t size) {
  CHECK(multicast_destroy(other) == MULTICAST_OK);
}
static void end_living(size_t size) {
  destroy_other(size);
  go_on_and_join(size);
}

// Continues in a child process, where callgrind keeps counting. This process waits for the child.
// Until fork() returns, callgrind counts the instructions of both processes.
static void go_on_in_child(size_t size) {
  end_as_child();
}

// ---- Queues -------------------------------------------------------------------------------------

static void make_queued(size_t size) {
  multicast_queue_options options = multicast_queue_options_default();
  options.capacity = size;
  queue = multicast_queue_create(&options);
  multicast_add_options add = multicast_add_options_default();
  add.queue = queue;
  fill(1, &add);
  // Run the calls once before the measurement, so that the measured run does not include the first
  // use of any memory.
  for (size_t i = 0; i < size; i++) CHECK(multicast_invoke(target, 1, NULL, 0) == 1);
  CHECK(multicast_queue_run(queue, 0) == (int64_t)size);
}
static void make_waiting(size_t size) {
  make_queued(size);
  for (size_t i = 0; i < size; i++) CHECK(multicast_invoke(target, 1, NULL, 0) == 1);
}
static void destroy_queued(size_t size) {
  CHECK(multicast_queue_destroy(queue) == MULTICAST_OK);
  destroy(size);
}
static void append(size_t size) {
  for (size_t i = 0; i < size; i++) CHECK(multicast_invoke(target, 1, NULL, 0) == 1);
}
static void run(size_t size) { CHECK(multicast_queue_run(queue, 0) == (int64_t)size); }
static void clear(size_t size) { CHECK(multicast_queue_clear(queue) == (int64_t)size); }
static void end_queue(size_t size) {
  CHECK(multicast_queue_destroy(queue) == MULTICAST_OK);
}
static void wait_and_ask(size_t size) {
  multicast_queue_stats stats = multicast_queue_stats_default();
  CHECK(multicast_queue_wait(queue, 0) == (int64_t)size);
  CHECK(multicast_queue_get_stats(queue, &stats) == MULTICAST_OK);
  CHECK(multicast_queue_is_valid(queue));
}

// Creates a queue whose worker `start_and_stop` starts and stops repeatedly.
static void make_idle(size_t size) {
  queue = multicast_queue_create(NULL);
}
static void start_and_stop(size_t size) {
  for (size_t i = 0; i < size; i++) {
    CHECK(multicast_queue_start(queue) == MULTICAST_OK);
    CHECK(multicast_queue_stop(queue) == MULTICAST_OK);
  }
}
static multicast_queue workers[THREADS];
static void make_workers(size_t size) {
  for (size_t i = 0; i < size; i++) {
    workers[i] = multicast_queue_create(NULL);
    CHECK(multicast_queue_start(workers[i]) == MULTICAST_OK);
  }
  make_idle(size);
}
static void start_and_stop_64(size_t size) {
  start_and_stop(64);
}
static void destroy_workers(size_t size) {
  end_queue(size);
  for (size_t i = 0; i < size; i++) CHECK(multicast_queue_destroy(workers[i]) == MULTICAST_OK);
}

// ---- Lifetimes and names ------------------------------------------------------------------------

static void make_members(size_t size) {
  multicast_add_options options = multicast_add_options_default();
  options.lifetime = lifetime = multicast_lifetime_create();
  fill(size, &options);
}
static void ask_lifetime(size_t size) {
  CHECK(multicast_lifetime_count(lifetime) == (int64_t)size);
  CHECK(multicast_lifetime_is_valid(lifetime));
}
static void destroy_members(size_t size) {
  end_lifetime(size);
  destroy(size);
}
static void create_lifetimes(size_t size) {
  for (size_t i = 0; i < size; i++) CHECK(multicast_lifetime_create().id != 0);
}

static const char *name(size_t i) {
  static char text[32];
  snprintf(text, sizeof text, "Name%08zu", i);
  return text;
}
static void register_names(size_t size) {
  for (size_t i = 0; i < size; i++)
    CHECK(multicast_broadcaster_register(broadcaster, name(i), delegates[i], NULL, NULL) ==
          MULTICAST_OK);
}
static void make_names(size_t size) {
  broadcaster = multicast_broadcaster_create(NULL);
  register_names(size);
}
static void make_names_after_threads(size_t size) {
  end_threads(size);
  make_names(64);
}
static void end_broadcaster(size_t size) {
  CHECK(multicast_broadcaster_destroy(broadcaster) == MULTICAST_OK);
}
static void make_broadcaster(size_t size) {
  make_names(0);
}
static multicast_status publish(void *context, const char *name, uint32_t event,
                                const void *payload, size_t size) {
  return MULTICAST_OK;
}
static void attach(size_t size) {
  multicast_transport transport = multicast_transport_default();
  transport.publish = publish;
  CHECK(multicast_broadcaster_attach(broadcaster, &transport) == MULTICAST_OK);
}
static void look_up(size_t size) {
  for (size_t i = 0; i < 1000; i++) {
    const char *one = name(scattered(i, size));
    CHECK(multicast_broadcaster_multicast(broadcaster, one).id != 0);
    CHECK(multicast_broadcaster_notify(broadcaster, one, 0, NULL, 0) == 1);
  }
}
static void unregister_names(size_t size) {
  for (size_t i = 0; i < size; i++)
    CHECK(multicast_broadcaster_unregister(broadcaster, name(i), delegates[i]) == MULTICAST_OK);
}

// ---- Blocked producers --------------------------------------------------------------------------

enum { CALLS_OF_EACH = 16 };

// Runs on a producer thread, which blocks because the queue has room for one call and is full.
static void *produce(void *unused) {
  sem_post(&has_begun);
  CALLGRIND_TOGGLE_COLLECT;
  for (int i = 0; i < CALLS_OF_EACH; i++) CHECK(multicast_invoke(target, 1, NULL, 0) == 1);
  CALLGRIND_TOGGLE_COLLECT;
  return unused;
}
static void make_full_queue(size_t size) {
  multicast_queue_options options = multicast_queue_options_default();
  options.capacity = 1;
  options.overflow = MULTICAST_OVERFLOW_BLOCK;
  queue = multicast_queue_create(&options);
  multicast_add_options add = multicast_add_options_default();
  add.queue = queue;
  fill(1, &add);
  // Run the queue once, so that the library knows which thread is expected to make room.
  CHECK(multicast_invoke(target, 1, NULL, 0) == 1);
  CHECK(multicast_queue_run(queue, 0) == 1);
  CHECK(multicast_invoke(target, 1, NULL, 0) == 1);
}
static void consume_all(size_t size) {
  start(size, produce);
  for (size_t i = 0; i < size; i++) sem_wait(&has_begun);
  size_t left = size * CALLS_OF_EACH + 1;
  while (left > 0) {
    CHECK(multicast_queue_wait(queue, MULTICAST_FOREVER) > 0);
    left -= (size_t)multicast_queue_run(queue, 0);
  }
  join(size);
}
// The function of a delegate that removes itself. The delegate has no queue, so its removal wakes
// no producer.
static void remove_itself(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK(multicast_token_remove(multicast_token_current()) == MULTICAST_PENDING);
}
static void *produce_one(void *unused) {
  sem_post(&has_begun);
  CHECK(multicast_invoke(target, 1, NULL, 0) == 1);
  return unused;
}
static void make_blocked(size_t size) {
  make_full_queue(size);
  start(size, produce_one);
  for (size_t i = 0; i < size; i++) sem_wait(&has_begun);
  // The producers are about to sleep. Because Valgrind runs one thread at a time, all producers
  // fall asleep while this thread yields.
  for (int i = 0; i < 1000; i++) sched_yield();
  other = multicast_create();
}
static void remove_beside_blocked(size_t size) {
  for (int i = 0; i < 16; i++) {
    CHECK(multicast_add(other, (multicast_delegate){remove_itself, NULL}, NULL, NULL) ==
          MULTICAST_OK);
    CHECK(multicast_invoke(other, 0, NULL, 0) == 1);
  }
}
static void destroy_blocked(size_t size) {
  CHECK(multicast_destroy(other) == MULTICAST_OK);
  size_t left = size + 1;
  while (left > 0) {
    CHECK(multicast_queue_wait(queue, MULTICAST_FOREVER) > 0);
    left -= (size_t)multicast_queue_run(queue, 0);
  }
  join(size);
  destroy_queued(size);
}

// ---- The table ----------------------------------------------------------------------------------

enum unit { CONSTANT, SIZE, EACH_16, EACH_64 };

static const struct shape {
  const char *name;
  void (*before)(size_t size), (*evaluate)(size_t size), (*after)(size_t size);
  size_t small, large;
  enum unit unit;  // the counts are divided by this before they are compared
  double bound;    // upper limit of the ratio
} shapes[] = {
#include "shapes.inc"
};

static double units(const struct shape *shape, size_t size) {
  switch (shape->unit) {
    case SIZE: return (double)size;
    case EACH_16: return 16 * (double)size;
    case EACH_64: return 64 * (double)size;
    default: return 1;
  }
}

static void evaluate(const struct shape *shape, size_t size, const char *which) {
  char text[200];
  shape->before(size);
  CALLGRIND_TOGGLE_COLLECT;
  shape->evaluate(size);
  CALLGRIND_TOGGLE_COLLECT;
  shape->after(size);
  snprintf(text, sizeof text, "%s\t%s\t%zu\t%g\t%g", shape->name, which, size, units(shape, size),
           shape->bound);
  CALLGRIND_DUMP_STATS_AT(text);
}

// Runs a shape in a child process, so that objects that other shapes leave behind, such as thread
// records, do not affect it.
static void in_a_process_of_its_own(const struct shape *shape) {
  const pid_t child = fork();
  int status = 1;
  if (child != 0) {
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return;
  }
  // The first evaluation is not counted, because it binds functions and allocates slabs.
  const size_t first = shape->unit == CONSTANT ? shape->small : shape->large;
  shape->before(first);
  shape->evaluate(first);
  shape->after(first);
  CALLGRIND_ZERO_STATS;
  evaluate(shape, shape->small, "small");
  evaluate(shape, shape->large, "large");
  exit(0);
}

int main(int argc, char **argv) {
  sem_init(&has_begun, 0, 0);
  sem_init(&may_end, 0, 0);
  for (size_t i = 0; i < MOST; i++)
    delegates[i] = (multicast_delegate){work_in_executable, &counters[i]};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const struct shape *shape = &shapes[i];
    int is_wanted = argc < 2;
    for (int k = 1; k < argc; k++) is_wanted |= strcmp(argv[k], shape->name) == 0;
    if (is_wanted) in_a_process_of_its_own(shape);
  }
  return 0;
}
