// Times one operation in two builds of the library alternately, in one process. See ../compare.

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "work.h"

#define CHECK(expression) ((expression) ? (void)0 : fail(__LINE__, #expression))
static void fail(int line, const char *expression) {
  fprintf(stderr, "compare.c:%d: %s is false\n", line, expression);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

// The functions to look up in each library. Since version 1.0, their names have never changed, so
// any two releases can be compared.
#define EACH_FUNCTION(X)                                                                       \
  X(create) X(destroy) X(add) X(invoke) X(remove) X(token_remove) X(queue_create)              \
  X(queue_destroy) X(queue_run) X(queue_wait) X(set_allocator)

enum { MOST = 1000000, MOST_THREADS = 4 };

// One build of the library, and the objects that the current row of the table has created with it.
typedef struct {
#define X(verb) __typeof__(multicast_##verb) *verb;
  EACH_FUNCTION(X)
#undef X
  size_t size;  // the number of delegates, or of threads, of the row
  multicast target;
  multicast_queue queue;
  multicast_delegate delegates[MOST];
  multicast_token tokens[MOST];
  uint64_t counters[MOST];  // one per delegate
  uint64_t calls;           // the expected sum of the counters
} library;

static void load(library *l, const char *path) {
  void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
#define X(verb)                                                            \
  *(void **)&l->verb = dlsym(handle, "multicast_" #verb);              \
  if (l->verb == NULL) {                                               \
    fprintf(stderr, "%s has no function multicast_%s\n", path, #verb); \
    exit(1);                                                           \
  }
  EACH_FUNCTION(X)
#undef X
}

// The function of delegates that several threads share. It reads the counter without writing to it;
// work.h explains why.
static void read_only(void *context, uint32_t event, const void *payload, size_t size) {
  (void)payload;
  const uint64_t sum = *(const uint64_t *)context + event + size;
  __asm__ volatile("" : : "r"(sum));
}

// ---- Set-up, not timed -------------------------------------------------------------------------

static void make_delegates(library *l, size_t count, multicast_function function) {
  for (size_t i = 0; i < count; i++)
    l->delegates[i] = (multicast_delegate){function, &l->counters[i]};
}

static void add_all(library *l, size_t count, multicast_function function) {
  make_delegates(l, count, function);
  l->target = l->create();
  for (size_t i = 0; i < count; i++)
    CHECK(l->add(l->target, l->delegates[i], NULL, &l->tokens[i]) == MULTICAST_OK);
  CHECK(l->invoke(l->target, 1, NULL, 0) == (int64_t)count);
  l->calls = count;
}
static void fill(library *l) { add_all(l, l->size, work_in_executable); }
static void fill_for_readers(library *l) { add_all(l, l->size, read_only); }

static void fill_queue(library *l) {
  multicast_queue_options options = multicast_queue_options_default();
  multicast_add_options add = multicast_add_options_default();
  options.capacity = 1024;
  options.overflow = MULTICAST_OVERFLOW_BLOCK;
  make_delegates(l, 1, work_in_executable);
  add.queue = l->queue = l->queue_create(&options);
  l->target = l->create();
  CHECK(l->add(l->target, l->delegates[0], &add, NULL) == MULTICAST_OK);
}

// ---- On one thread -----------------------------------------------------------------------------
// Each function measures a slice: it repeats an operation `times` times and returns the nanoseconds
// per repetition.

static double invoke(library *l, size_t times) {
  const double begin = now();
  for (size_t i = 0; i < times; i++) l->invoke(l->target, 1, NULL, 0);
  const double end = now();
  l->calls += times * l->size;
  return (end - begin) / (double)times;
}

static double create_destroy(library *l, size_t times) {
  const double begin = now();
  for (size_t i = 0; i < times; i++) CHECK(l->destroy(l->create()) == MULTICAST_OK);
  return (now() - begin) / (double)times;
}

static double create_add_destroy(library *l, size_t times) {
  const double begin = now();
  for (size_t i = 0; i < times; i++) {
    const multicast target = l->create();
    CHECK(l->add(target, l->delegates[0], NULL, NULL) == MULTICAST_OK);
    CHECK(l->destroy(target) == MULTICAST_OK);
  }
  return (now() - begin) / (double)times;
}

static double add_remove(library *l, size_t times) {
  multicast_token token;
  const double begin = now();
  for (size_t i = 0; i < times; i++) {
    CHECK(l->add(l->target, l->delegates[i % l->size], NULL, &token) == MULTICAST_OK);
    CHECK(l->token_remove(token) == MULTICAST_OK);
  }
  return (now() - begin) / (double)times;
}

// Because 37 and 100 have no common divisor, every delegate is replaced in turn.
static double replace_by_token(library *l, size_t times) {
  const double begin = now();
  for (size_t i = 0; i < times; i++) {
    const size_t place = i * 37 % l->size;
    CHECK(l->token_remove(l->tokens[place]) == MULTICAST_OK);
    CHECK(l->add(l->target, l->delegates[place], NULL, &l->tokens[place]) == MULTICAST_OK);
  }
  return (now() - begin) / (double)times;
}

static double replace_by_delegate(library *l, size_t times) {
  const double begin = now();
  for (size_t i = 0; i < times; i++) {
    const multicast_delegate delegate = l->delegates[i * 37 % l->size];
    CHECK(l->remove(l->target, delegate) == MULTICAST_OK);
    CHECK(l->add(l->target, delegate, NULL, NULL) == MULTICAST_OK);
  }
  return (now() - begin) / (double)times;
}

static double queue_and_run(library *l, size_t times) {
  const double begin = now();
  for (size_t i = 0; i < times; i++) {
    l->invoke(l->target, 1, NULL, 0);
    CHECK(l->queue_run(l->queue, 0) == 1);
  }
  const double end = now();
  l->calls += times;
  return (end - begin) / (double)times;
}

// ---- With other threads ------------------------------------------------------------------------

// A thread that repeats a function during a slice, and counts the repetitions.
typedef struct {
  library *l;
  void (*repeated)(library *);
  uint64_t rounds;
  int has_to_end;
  pthread_t thread;
} helper;

static void *repeat(void *argument) {
  helper *const h = argument;
  while (!__atomic_load_n(&h->has_to_end, __ATOMIC_RELAXED)) {
    h->repeated(h->l);
    __atomic_store_n(&h->rounds, h->rounds + 1, __ATOMIC_RELAXED);
  }
  return NULL;
}
static uint64_t rounds(const helper *h) { return __atomic_load_n(&h->rounds, __ATOMIC_RELAXED); }

// Runs a slice while a helper thread is running. `*meanwhile` receives the number of times that the
// helper has repeated its function.
static double beside(library *l, void (*repeated)(library *), size_t times,
                     double (*slice)(library *, size_t), uint64_t *meanwhile) {
  helper h = {.l = l, .repeated = repeated};
  CHECK(pthread_create(&h.thread, NULL, repeat, &h) == 0);
  while (rounds(&h) < 10) continue;
  const uint64_t before = rounds(&h);
  const double time = slice(l, times);
  *meanwhile = rounds(&h) - before;
  __atomic_store_n(&h.has_to_end, 1, __ATOMIC_RELAXED);
  CHECK(pthread_join(h.thread, NULL) == 0);
  return time;
}

static void invoke_once(library *l) { CHECK(l->invoke(l->target, 1, NULL, 0) >= 0); }
static void add_remove_once(library *l) { add_remove(l, 1); }

static double add_remove_while_invoked(library *l, size_t times) {
  uint64_t meanwhile;
  return beside(l, invoke_once, times, add_remove, &meanwhile);
}
static double invoke_while_changed(library *l, size_t times) {
  uint64_t meanwhile;
  return beside(l, add_remove_once, times, invoke, &meanwhile);
}
// Returns the time of a slice divided by the number of invocations that both threads have made.
static double invoke_together(library *l, size_t times) {
  uint64_t meanwhile;
  const double time = beside(l, invoke_once, times, invoke, &meanwhile);
  return time * (double)times / (double)(times + meanwhile);
}

typedef struct {
  library *l;
  size_t count;
  pthread_barrier_t *barrier;
} producer;

static void *produce(void *argument) {
  const producer *const p = argument;
  pthread_barrier_wait(p->barrier);
  for (size_t i = 0; i < p->count; i++) CHECK(p->l->invoke(p->l->target, 1, NULL, 0) == 1);
  return NULL;
}

// Measures the time from the queueing of the first call to the end of the last call. A full queue
// blocks the producers.
static double producers(library *l, size_t times) {
  pthread_t threads[MOST_THREADS];
  pthread_barrier_t barrier;
  producer each = {l, times / l->size + 1, &barrier};
  const uint64_t total = each.count * l->size, until = l->counters[0] + total;
  CHECK(pthread_barrier_init(&barrier, NULL, (unsigned)l->size + 1) == 0);
  for (size_t i = 0; i < l->size; i++)
    CHECK(pthread_create(&threads[i], NULL, produce, &each) == 0);
  pthread_barrier_wait(&barrier);
  const double begin = now();
  while (l->counters[0] < until) {
    CHECK(l->queue_wait(l->queue, MULTICAST_FOREVER) > 0);
    CHECK(l->queue_run(l->queue, 0) > 0);
  }
  const double end = now();
  for (size_t i = 0; i < l->size; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  pthread_barrier_destroy(&barrier);
  l->calls += total;
  return (end - begin) / (double)total;
}

// ---- Memory ------------------------------------------------------------------------------------

static uint64_t allocated;

static void *allocate_counted(void *context, size_t size, size_t alignment) {
  void *block;
  (void)context;
  if (posix_memalign(&block, alignment < 16 ? 16 : alignment, size) != 0) return NULL;
  allocated += size;
  return block;
}
static void deallocate_counted(void *context, void *block, size_t size, size_t alignment) {
  (void)context, (void)alignment;
  allocated -= size;
  free(block);
}

// Creates TOTAL multicasts without delegates, or one multicast with TOTAL delegates, and returns
// the number of bytes per multicast or per delegate.
enum { TOTAL = 100000 };
static double bytes_of_each(library *l) {
  multicast_allocator allocator = multicast_allocator_default();
  allocator.allocate = allocate_counted;
  allocator.deallocate = deallocate_counted;
  CHECK(l->set_allocator(&allocator) == MULTICAST_OK);
  make_delegates(l, 1, work_in_executable);
  allocated = 0;
  for (size_t i = 0; i < TOTAL; i++) {
    if (i == 0 || l->size == 0) l->target = l->create();
    if (l->size > 0) CHECK(l->add(l->target, l->delegates[0], NULL, NULL) == MULTICAST_OK);
  }
  return (double)allocated / TOTAL;
}

// ---- The table ---------------------------------------------------------------------------------

typedef double slice(library *l, size_t times);

static const struct row {
  const char *name;
  size_t size;
  void (*set_up)(library *l);
  slice *slice;
  double slice_ns;         // minimum duration of a slice; 0: the row counts bytes instead
  const char *statistic;   // "median" if several threads take part
} rows[] = {
    {"invoke 0", 0, fill, invoke, 2e4, "best"},
    {"invoke 1", 1, fill, invoke, 2e4, "best"},
    {"invoke 2", 2, fill, invoke, 2e4, "best"},
    {"invoke 4", 4, fill, invoke, 2e4, "best"},
    {"invoke 8", 8, fill, invoke, 2e4, "best"},
    {"invoke 16", 16, fill, invoke, 2e4, "best"},
    {"invoke 256", 256, fill, invoke, 2e4, "best"},
    {"invoke 10,000", 10000, fill, invoke, 5e4, "best"},
    {"invoke 1,000,000", MOST, fill, invoke, 1e6, "best"},
    {"create, destroy", 1, fill, create_destroy, 2e4, "best"},
    {"create, add, destroy", 1, fill, create_add_destroy, 2e4, "best"},
    {"add to 100, remove it", 100, fill, add_remove, 2e4, "best"},
    {"remove one of 100 by token, add it", 100, fill, replace_by_token, 2e4, "best"},
    {"remove one of 100 by delegate, add it", 100, fill, replace_by_delegate, 2e4, "best"},
    {"add, remove; a thread invokes 100", 100, fill_for_readers, add_remove_while_invoked, 1e7,
     "median"},
    {"invoke 100; a thread adds, removes", 100, fill_for_readers, invoke_while_changed, 1e7,
     "median"},
    {"two threads invoke the same 16", 16, fill_for_readers, invoke_together, 1e7, "median"},
    {"queue a call, run it", 1, fill_queue, queue_and_run, 2e4, "best"},
    {"1 producer: a queued call", 1, fill_queue, producers, 1e7, "median"},
    {"2 producers: a queued call", 2, fill_queue, producers, 1e7, "median"},
    {"4 producers: a queued call", 4, fill_queue, producers, 1e7, "median"},
    // Memory that the library allocates for many objects at a time is averaged over 100,000
    // objects.
    {"memory of an empty multicast", 0, NULL, NULL, 0, "best"},
    {"memory of a delegate", TOTAL, NULL, NULL, 0, "best"},
};
enum { ROWS = sizeof rows / sizeof *rows };

// The subjects are the two libraries and, for comparison, the bare loops, which are in a separate
// library and call the same delegates.
enum { LIBRARIES = 2, SUBJECTS = LIBRARIES + BARE_LOOPS };

static double bare(size_t number, library *l, size_t times) {
  const double begin = now();
  for (size_t i = 0; i < times; i++)
    bare_loops_in_library[number](l->delegates, l->size, 1, NULL, 0);
  const double end = now();
  l->calls += times * l->size;
  return (end - begin) / (double)times;
}

static double timed(const struct row *row, library *libraries, size_t subject, size_t times) {
  return subject < LIBRARIES ? row->slice(&libraries[subject], times)
                             : bare(subject - LIBRARIES, &libraries[0], times);
}

static int is_less(const void *a, const void *b) {
  const double one = *(const double *)a, other = *(const double *)b;
  return (one > other) - (one < other);
}

// Prints each subject's figure, which is the best or the median of its slices.
static void measure(const struct row *row, library *libraries, double seconds) {
  enum { MOST_SLICES = 100000 };
  static double slices[SUBJECTS][MOST_SLICES];
  const size_t subjects = row->slice == invoke && row->size > 0 ? SUBJECTS : LIBRARIES;
  size_t count = 0, times = 1;
  for (double each; (each = row->slice(&libraries[0], times)) * (double)times < row->slice_ns;) {
    const double enough = row->slice_ns / each + 1;
    times = enough < 16 * (double)times ? (size_t)enough : 16 * times;
  }
  row->slice(&libraries[1], times);

  const double end = now() + seconds * 1e9;
  do {
    for (size_t i = 0; i < subjects; i++) {
      // Alternate the order of the subjects.
      const size_t subject = count % 2 == 0 ? i : subjects - 1 - i;
      slices[subject][count] = timed(row, libraries, subject, times);
    }
  } while (++count < MOST_SLICES && now() < end);

  double best_loop = 0;
  for (size_t i = 0; i < subjects; i++) {
    qsort(slices[i], count, sizeof *slices[i], is_less);
    const double figure = slices[i][strcmp(row->statistic, "best") == 0 ? 0 : count / 2];
    if (i < LIBRARIES) printf("%.6g ", figure);
    else if (best_loop == 0 || figure < best_loop) best_loop = figure;
  }
  if (best_loop > 0) printf("%.6g", best_loop);
  printf("\n");
}

// Checks that the delegates have been called as often as expected.
static void check_calls(const library *l) {
  uint64_t sum = 0;
  for (size_t i = 0; i < MOST; i++) sum += l->counters[i];
  CHECK(sum == l->calls || l->delegates[0].function == read_only);
}

int main(int argc, char **argv) {
  if (argc == 1) {
    for (size_t i = 0; i < ROWS; i++)
      printf("%s\t%s\t%s\n", rows[i].name, rows[i].slice_ns > 0 ? "ns" : "bytes",
             rows[i].statistic);
    return 0;
  }
  CHECK(argc == 5);
  const size_t number = strtoul(argv[1], NULL, 10);
  CHECK(number < ROWS);
  const struct row *const row = &rows[number];
  static library libraries[LIBRARIES];
  for (size_t i = 0; i < LIBRARIES; i++) {
    load(&libraries[i], argv[3 + i]);
    libraries[i].size = row->size;
    if (row->set_up != NULL) row->set_up(&libraries[i]);
  }
  if (row->slice != NULL) {
    measure(row, libraries, strtod(argv[2], NULL));
  } else {
    for (size_t i = 0; i < LIBRARIES; i++) printf("%.6g ", bytes_of_each(&libraries[i]));
    printf("\n");
  }
  for (size_t i = 0; i < LIBRARIES; i++) check_calls(&libraries[i]);
  return 0;
}
