// Measures costs at the scale of a large server. Each measurement runs in a separate process. See
// ../scale.

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "multicast.h"

#define CHECK(expression) ((expression) ? (void)0 : fail(__LINE__, #expression))
static void fail(int line, const char *expression) {
  fprintf(stderr, "scale.c:%d: %s is false\n", line, expression);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void increment(void *counter, uint32_t event, const void *payload, size_t size) {
  (void)event, (void)payload, (void)size;
  ++*(uint64_t *)counter;
}
static uint64_t counters[64];
static multicast_delegate delegate(size_t i) {
  return (multicast_delegate){increment, &counters[i % 64]};
}

enum { MOST_THREADS = 8192, MOST = 1000000 };
static pthread_t threads[MOST_THREADS];

static pthread_t start(void *(*body)(void *), void *argument) {
  pthread_t thread;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  CHECK(pthread_create(&thread, &small, body, argument) == 0);
  pthread_attr_destroy(&small);
  return thread;
}
static void join(pthread_t thread) { CHECK(pthread_join(thread, NULL) == 0); }
static void wait_for(sem_t *semaphore) {
  while (sem_wait(semaphore) != 0) continue;
}

// Returns the best of several runs, in seconds.
static double best(double (*once)(void)) {
  double least = 1e9;
  for (int i = 0; i < 5; i++) {
    const double time = once();
    if (time < least) least = time;
  }
  return least;
}

// ---- After threads have ended -------------------------------------------------------------------

static multicast target;
static sem_t has_begun, may_end;

static void *invoke_and_wait(void *unused) {
  multicast_invoke(target, 0, NULL, 0);
  sem_post(&has_begun);
  wait_for(&may_end);
  return unused;
}
static void *invoke(void *unused) {
  CHECK(multicast_invoke(target, 0, NULL, 0) >= 0);
  return unused;
}

// Starts threads that invoke and then stay alive, so that all of them exist at the same time.
static void begin_threads(size_t count) {
  for (size_t i = 0; i < count; i++) threads[i] = start(invoke_and_wait, NULL);
  for (size_t i = 0; i < count; i++) wait_for(&has_begun);
}
static void begin_and_end(size_t count) {
  begin_threads(count);
  for (size_t i = 0; i < count; i++) sem_post(&may_end);
  for (size_t i = 0; i < count; i++) join(threads[i]);
}
static void end_threads(size_t count) {
  target = multicast_create();
  begin_and_end(count);
}

static double add_and_remove_once(void) {
  enum { TIMES = 500 };
  const double begin = now();
  for (size_t i = 0; i < TIMES; i++) {
    multicast_token token;
    CHECK(multicast_add(target, delegate(i), NULL, &token) == MULTICAST_OK);
    CHECK(multicast_token_remove(token) == MULTICAST_OK);
  }
  return (now() - begin) / TIMES;
}
static double add_and_remove(size_t count) {
  end_threads(count);
  join(start(invoke, NULL));
  invoke(NULL);
  return best(add_and_remove_once) * 1e6;
}

static double remove_queued_once(void) {
  enum { COUNT = 1000 };
  const multicast m = multicast_create();
  multicast_add_options options = multicast_add_options_default();
  options.queue = multicast_queue_create(NULL);
  for (size_t i = 0; i < COUNT; i++)
    CHECK(multicast_add(m, delegate(i), &options, NULL) == MULTICAST_OK);
  const double begin = now();
  CHECK(multicast_remove_all(m) == COUNT);
  const double time = (now() - begin) / COUNT;
  CHECK(multicast_queue_destroy(options.queue) == MULTICAST_OK);
  CHECK(multicast_destroy(m) == MULTICAST_OK);
  return time;
}
static double remove_queued(size_t count) {
  end_threads(count);
  return best(remove_queued_once) * 1e6;
}

static double destroy_names_once(void) {
  enum { COUNT = 1000 };
  const multicast_broadcaster b = multicast_broadcaster_create(NULL);
  for (size_t i = 0; i < COUNT; i++) {
    char name[32];
    snprintf(name, sizeof name, "name %zu", i);
    CHECK(multicast_broadcaster_register(b, name, delegate(i), NULL, NULL) == MULTICAST_OK);
  }
  const double begin = now();
  CHECK(multicast_broadcaster_destroy(b) == MULTICAST_OK);
  return (now() - begin) / COUNT;
}
static double destroy_names(size_t count) {
  end_threads(count);
  return best(destroy_names_once) * 1e6;
}

static double first_invocation_once(void) {
  enum { TIMES = 50 };
  const double begin = now();
  for (size_t i = 0; i < TIMES; i++) join(start(invoke, NULL));
  return (now() - begin) / TIMES;
}
static double first_invocation(size_t count) {
  end_threads(count);
  return best(first_invocation_once) * 1e6;
}

static double fork_once(void) {
  const double begin = now();
  const pid_t child = fork();
  if (child == 0) _exit(0);
  CHECK(waitpid(child, NULL, 0) == child);
  return now() - begin;
}
static double fork_and_exit(size_t count) {
  end_threads(count);
  return best(fork_once) * 1e6;
}

// ---- While threads that have invoked are waiting ------------------------------------------------

static void begin_invokers(size_t count) {
  target = multicast_create();
  begin_threads(count);
}
static double add_and_remove_beside(size_t count) {
  begin_invokers(count);
  return best(add_and_remove_once) * 1e6;
}
static double fork_beside(size_t count) {
  begin_invokers(count);
  return best(fork_once) * 1e6;
}

// ---- Blocked producers --------------------------------------------------------------------------

static int has_to_end;
static multicast_queue queue;

static void *produce(void *unused) {
  while (!__atomic_load_n(&has_to_end, __ATOMIC_RELAXED)) multicast_invoke(target, 1, NULL, 0);
  return unused;
}
static double produce_blocked(size_t count) {
  multicast_queue_options options = multicast_queue_options_default();
  multicast_add_options add = multicast_add_options_default();
  uint64_t calls = 0;
  options.capacity = 16;
  options.overflow = MULTICAST_OVERFLOW_BLOCK;
  target = multicast_create();
  add.queue = queue = multicast_queue_create(&options);
  CHECK(multicast_add(target, delegate(0), &add, NULL) == MULTICAST_OK);
  for (size_t i = 0; i < count; i++) threads[i] = start(produce, NULL);
  usleep(100000);
  const double begin = now();
  double time;
  do {
    CHECK(multicast_queue_wait(queue, MULTICAST_FOREVER) > 0);
    calls += (uint64_t)multicast_queue_run(queue, 0);
    time = now() - begin;
  } while (time < 0.5);
  has_to_end = 1;
  CHECK(multicast_queue_destroy(queue) == MULTICAST_OK);
  for (size_t i = 0; i < count; i++) join(threads[i]);
  return (double)calls / time / 1000;
}

// The functions below do the same work as produce_blocked(), but with a ring, a mutex and two
// condition variables instead of a queue.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_room = PTHREAD_COND_INITIALIZER, has_calls = PTHREAD_COND_INITIALIZER;
static multicast_delegate ring[16];
static uint64_t in, out;

static void *produce_by_conditions(void *unused) {
  while (!__atomic_load_n(&has_to_end, __ATOMIC_RELAXED)) {
    pthread_mutex_lock(&mutex);
    while (in - out == 16 && !has_to_end) pthread_cond_wait(&has_room, &mutex);
    if (in - out < 16) ring[in++ % 16] = delegate(0);
    pthread_cond_signal(&has_calls);
    pthread_mutex_unlock(&mutex);
  }
  return unused;
}
static double produce_conditions(size_t count) {
  uint64_t calls = 0;
  for (size_t i = 0; i < count; i++) threads[i] = start(produce_by_conditions, NULL);
  usleep(100000);
  const double begin = now();
  double time;
  do {
    pthread_mutex_lock(&mutex);
    while (in == out) pthread_cond_wait(&has_calls, &mutex);
    const multicast_delegate taken = ring[out++ % 16];
    pthread_cond_signal(&has_room);
    pthread_mutex_unlock(&mutex);
    taken.function(taken.context, 1, NULL, 0);
    calls++;
    time = now() - begin;
  } while (time < 0.5);
  pthread_mutex_lock(&mutex);
  has_to_end = 1;
  pthread_cond_broadcast(&has_room);
  pthread_mutex_unlock(&mutex);
  for (size_t i = 0; i < count; i++) join(threads[i]);
  return (double)calls / time / 1000;
}

// ---- During a long call -------------------------------------------------------------------------

static void wait_inside(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)event, (void)payload, (void)size;
  sem_post(&has_begun);
  wait_for(&may_end);
}

// Fills the target. If `is_read` is true, also starts a thread that stays inside a call and is
// still reading an older list than the current one.
static multicast_token tokens[MOST];
static void fill(size_t count, multicast_lifetime lifetime, int is_read) {
  multicast_add_options options = multicast_add_options_default();
  target = multicast_create();
  CHECK(multicast_add(target, (multicast_delegate){wait_inside, NULL}, NULL, NULL) == 0);
  options.lifetime = lifetime;
  for (size_t i = 0; i < count; i++)
    CHECK(multicast_add(target, delegate(i), &options, &tokens[i]) == MULTICAST_OK);
  if (is_read) {
    start(invoke, NULL);
    wait_for(&has_begun);
  }
  options = multicast_add_options_default();
  options.priority = 1;
  CHECK(multicast_add(target, delegate(0), &options, NULL) == MULTICAST_OK);
}

static double pause_beside_call(size_t count) {
  enum { TIMES = 1000 };
  fill(count, (multicast_lifetime){0}, 1);
  const double begin = now();
  for (size_t i = 0; i < TIMES; i++)
    CHECK(multicast_token_pause(tokens[i * 7919 % count]) == MULTICAST_OK);
  return (now() - begin) / TIMES * 1e6;
}
static double end_lifetime(size_t count, int is_read) {
  const multicast_lifetime lifetime = multicast_lifetime_create();
  fill(count, lifetime, is_read);
  const double begin = now();
  CHECK(multicast_lifetime_end(lifetime) == MULTICAST_OK);
  return (now() - begin) * 1e3;
}
static double end_beside_call(size_t count) { return end_lifetime(count, 1); }
static double end_alone(size_t count) { return end_lifetime(count, 0); }

static void *invoke_own(void *unused) {
  CHECK(multicast_invoke(target, 0, NULL, 0) >= 0);
  return unused;
}
// Creates `count` threads, each of which is reading a different list of the target.
static double pause_beside_lists(size_t count) {
  enum { TIMES = 200 };
  multicast_token token;
  multicast_add_options options = multicast_add_options_default();
  target = multicast_create();
  CHECK(multicast_add(target, delegate(0), NULL, &token) == MULTICAST_OK);
  options.priority = 1;
  CHECK(multicast_add(target, (multicast_delegate){wait_inside, NULL}, &options, NULL) == 0);
  for (size_t i = 0; i < count; i++) {
    start(invoke_own, NULL);
    wait_for(&has_begun);
    options.priority++;
    CHECK(multicast_add(target, delegate(i), &options, NULL) == MULTICAST_OK);
  }
  const double begin = now();
  for (size_t i = 0; i < TIMES; i++) {
    CHECK(multicast_token_pause(token) == MULTICAST_OK);
    CHECK(multicast_token_resume(token) == MULTICAST_OK);
  }
  return (now() - begin) / TIMES / 2 * 1e6;
}

// ---- Memory -------------------------------------------------------------------------------------

static double resident(void) {
  long pages = 0, present = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%ld %ld", &pages, &present) == 2);
  fclose(file);
  return (double)present * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}
static void trim(void) {
  int64_t (*function)(void);
  *(void **)&function = dlsym(RTLD_DEFAULT, "multicast_trim");
  if (function != NULL) function();
}

// Fills `count` multicasts with a million delegates each and empties them, one multicast after
// another. Returns the number of multicasts that could be filled.
static double fill_and_empty(size_t count) {
  static multicast_delegate some[4096];
  for (size_t i = 0; i < 4096; i++) some[i] = delegate(i);
  for (size_t i = 0; i < count; i++) {
    const multicast m = multicast_create();
    for (size_t k = 0; k < 256; k++) {
      if (multicast_add_many(m, some, 4096, NULL, NULL) != MULTICAST_OK) return (double)i;
    }
    CHECK(multicast_remove_all(m) == (int64_t)256 * 4096);
  }
  return (double)count;
}
static double fill_and_trim(size_t count) {
  const double before = resident();
  fill_and_empty(count);
  trim();
  return resident() - before;
}

// Creates multicasts with one delegate each, registers names, and destroys everything.
static double burst(size_t count) {
  static multicast all[MOST];
  const multicast_broadcaster b = multicast_broadcaster_create(NULL);
  memset(all, 0, count * sizeof *all);
  const double before = resident();
  for (size_t i = 0; i < count; i++) {
    char name[32];
    all[i] = multicast_create();
    snprintf(name, sizeof name, "name %zu", i);
    CHECK(multicast_add(all[i], delegate(i), NULL, NULL) == MULTICAST_OK);
    CHECK(multicast_broadcaster_register(b, name, delegate(i), NULL, NULL) == MULTICAST_OK);
  }
  for (size_t i = 0; i < count; i++) CHECK(multicast_destroy(all[i]) == MULTICAST_OK);
  CHECK(multicast_broadcaster_destroy(b) == MULTICAST_OK);
  trim();
  return resident() - before;
}
// Measures how much memory remains after the threads have ended. This does not include memory that
// libc keeps even for threads that have not used the library.
static double threads_gone(size_t count) {
  begin_and_end(count);
  const double before = resident();
  end_threads(count);
  trim();
  return resident() - before;
}

// ---- The table ----------------------------------------------------------------------------------

static const struct measure {
  const char *name, *unit;
  double (*measure)(size_t size);
  size_t sizes[5];
} measures[] = {
    {"after N threads: add, token_remove", "us", add_and_remove, {2, 128, 512, 2048, 8192}},
    {"after N threads: remove_all, queued, each", "us", remove_queued, {2, 128, 512, 2048, 8192}},
    {"after N threads: destroy names, each", "us", destroy_names, {2, 128, 512, 2048, 8192}},
    {"after N threads: thread that invokes", "us", first_invocation, {2, 128, 512, 2048, 8192}},
    {"after N threads: fork, and its child's end", "us", fork_and_exit, {2, 128, 512, 2048, 8192}},
    {"beside N threads: add, token_remove", "us", add_and_remove_beside, {2, 128, 512, 2048, 8192}},
    {"beside N threads: fork, and its child's end", "us", fork_beside, {2, 128, 512, 2048, 8192}},
    {"N blocked producers", "k/s", produce_blocked, {1, 16, 64, 256, 1024}},
    {"the same, a mutex and two conditions", "k/s", produce_conditions, {1, 16, 64, 256, 1024}},
    {"beside a long call: pause, of N", "us", pause_beside_call, {1000, 16000, 64000}},
    {"beside N lists that are read: pause", "us", pause_beside_lists, {1, 64, 256, 1024}},
    {"beside a long call: lifetime_end of N", "ms", end_beside_call, {1000, 16000, 64000}},
    {"without one: lifetime_end of N", "ms", end_alone, {1000, 16000, 64000}},
    {"N times another is filled, emptied: times", "", fill_and_empty, {2, 16, 100}},
    {"what stays then, of N times 32 MB", "MB", fill_and_trim, {2, 16, 100}},
    {"what stays of N multicasts, names", "MB", burst, {10000, 100000, 1000000}},
    {"what stays of N threads", "MB", threads_gone, {128, 2048, 8192}},
};
enum { MEASURES = sizeof measures / sizeof *measures };

int main(int argc, char **argv) {
  sem_init(&has_begun, 0, 0);
  sem_init(&may_end, 0, 0);
  for (size_t i = 0; argc == 1 && i < MEASURES; i++) {
    for (size_t k = 0; k < 5 && measures[i].sizes[k] > 0; k++)
      printf("%zu\t%zu\t%s\t%s\n", i, measures[i].sizes[k], measures[i].name, measures[i].unit);
  }
  if (argc == 3) {
    const size_t i = strtoul(argv[1], NULL, 10), size = strtoul(argv[2], NULL, 10);
    CHECK(i < MEASURES && size > 0);
    printf("%.4g\n", measures[i].measure(size));
    fflush(NULL);
    _exit(0);  // threads may still be inside calls
  }
  return 0;
}
