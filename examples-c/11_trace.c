/* SPDX-License-Identifier: MIT
 *
 * 11_trace: a timeline of all calls, to look at in Perfetto or chrome://tracing.
 *
 * A watch of all multicasts writes each call to a file, as an event of the Chrome trace format: its
 * name, its thread, when it began and how long it took. Calls inside of calls lie below them, and
 * calls that waited in a queue are on the thread that runs the queue. A removal that has to wait
 * for long is an event, too.
 *
 * Nothing else in the program knows of this. Without a watch no invocation takes longer.
 *
 *     example_11_trace trace.json
 *
 * Prints the text in expected/11_trace.txt. TRACE.md has a picture of the timeline.
 */

#define _POSIX_C_SOURCE 200809L

#include <multicast.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MILLISECOND UINT64_C(1000000)

static void fail(const char *what, const char *why) {
  fprintf(stderr, "11_trace: %s: %s\n", what, why);
  exit(EXIT_FAILURE);
}

static void must(const char *what, multicast_status status) {
  if (status != MULTICAST_OK) fail(what, multicast_status_message(status));
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 * MILLISECOND + (uint64_t)now.tv_nsec;
}

static void sleep_ms(unsigned milliseconds) {
  struct timespec time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
  nanosleep(&time, NULL);
}

/* ---- The program that is watched ------------------------------------------------------------ */

/* Of the readings. No payload. */
enum { READING, FLUSH };

enum { DISPLAY, ALARM, CHART, ARCHIVE, PARTS };
static const char *const names[PARTS] = {"display", "alarm", "chart", "archive"};
static multicast_token tokens[PARTS];

static multicast readings, alarms;

/* The disk does not answer until that was noticed. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_flushing, is_noticed;

static void set(int *flag) {
  pthread_mutex_lock(&mutex);
  *flag = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

static void wait_for(const int *flag) {
  pthread_mutex_lock(&mutex);
  while (!*flag) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

static void show(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)payload, (void)size;
  sleep_ms(1);
  if (event == READING) multicast_invoke(alarms, READING, NULL, 0);
}

static void ring(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)event, (void)payload, (void)size;
  sleep_ms(2);
}

static void draw(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)event, (void)payload, (void)size;
  sleep_ms(5);
}

static void store(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)payload, (void)size;
  sleep_ms(3);
  if (event != FLUSH) return;
  set(&is_flushing);
  wait_for(&is_noticed);
}

static void *flush(void *unused) {
  multicast_invoke(readings, FLUSH, NULL, 0);
  return unused;
}

/* ---- The trace ------------------------------------------------------------------------------ */

/* Of all calls, whatever thread they are on. `called` may run on several at once. */
struct trace {
  pthread_mutex_t mutex;
  FILE *file;
  uint64_t start_ns;
  int events, calls;
  pthread_t threads[8]; /* in the order in which they come; the file has numbers */
  int thread_count;
};

/* The mutex is held. */
static int number_of_this_thread(struct trace *trace) {
  int i;
  for (i = 0; i < trace->thread_count; ++i) {
    if (pthread_equal(trace->threads[i], pthread_self())) return i + 1;
  }
  if (i == sizeof trace->threads / sizeof *trace->threads) return i + 1;
  trace->threads[trace->thread_count++] = pthread_self();
  return i + 1;
}

static const char *name_of(multicast_token token) {
  int i;
  for (i = 0; i < PARTS; ++i) {
    if (tokens[i].id == token.id) return names[i];
  }
  return "?";
}

/* An event that has just ended. */
static void add(struct trace *trace, const char *kind, multicast_token token, uint32_t event,
                uint64_t elapsed_ns) {
  uint64_t begin_ns = now_ns() - elapsed_ns - trace->start_ns;
  pthread_mutex_lock(&trace->mutex);
  fprintf(trace->file,
          "%s\n{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"ts\": %.3f, \"dur\": %.3f, "
          "\"pid\": 1, \"tid\": %d, \"args\": {\"event\": %" PRIu32 "}}",
          trace->events++ == 0 ? "" : ",", name_of(token), kind, (double)begin_ns / 1e3,
          (double)elapsed_ns / 1e3, number_of_this_thread(trace), event);
  pthread_mutex_unlock(&trace->mutex);
}

static void trace_call(void *context, multicast_token token, uint32_t event, uint64_t elapsed_ns) {
  struct trace *trace = context;
  add(trace, "call", token, event, elapsed_ns);
  pthread_mutex_lock(&trace->mutex);
  ++trace->calls;
  pthread_mutex_unlock(&trace->mutex);
}

static void trace_wait(void *context, multicast_token token, const char *label,
                       uint64_t elapsed_ns) {
  add(context, "wait", token, 0, elapsed_ns);
  /* On a busy machine it may be the invocation that waits for the chart. */
  if (token.id != tokens[ARCHIVE].id) return;
  printf("a removal waits for a call of %s\n", label);
  set(&is_noticed);
}

static void begin_trace(struct trace *trace, const char *path) {
  const multicast all = {0};
  multicast_watch watch = multicast_watch_default();
  pthread_mutex_init(&trace->mutex, NULL);
  trace->file = fopen(path, "w");
  if (trace->file == NULL) fail(path, "cannot be written");
  fputs("[", trace->file);
  trace->start_ns = now_ns();
  watch.context = trace;
  watch.called = trace_call;
  watch.slow_ns = 20 * MILLISECOND;
  watch.stuck = trace_wait;
  must("setting the watch", multicast_set_watch(all, &watch));
}

/* When the watch was taken away, none of its functions runs. So the file can be closed. */
static void end_trace(struct trace *trace, const char *path) {
  const multicast all = {0};
  must("taking the watch away", multicast_set_watch(all, NULL));
  fputs("\n]\n", trace->file);
  if (fclose(trace->file) != 0) fail(path, "cannot be written");
  printf("calls in the trace: %d\n", trace->calls);
}

/* ---- The story ------------------------------------------------------------------------------ */

static void add_part(multicast target, int part, multicast_function function,
                     multicast_queue queue) {
  multicast_add_options options = multicast_add_options_default();
  const multicast_delegate delegate = {function, NULL};
  options.label = names[part];
  if (part == CHART) options.events = 1u << READING;
  options.queue = queue;
  must("adding", multicast_add(target, delegate, &options, &tokens[part]));
}

static void report(int part) {
  multicast_token_stats stats = multicast_token_stats_default();
  must("reading statistics", multicast_token_statistics(tokens[part], &stats));
  printf("%s: calls: %" PRIu64 ", queued: %" PRIu64 ", took some time: %s\n", names[part],
         stats.calls, stats.queued, stats.total_ns >= stats.calls * MILLISECOND ? "yes" : "no");
}

int main(int count, char **arguments) {
  const char *path = count > 1 ? arguments[1] : "/dev/null";
  const multicast_queue direct = {0};
  static struct trace trace;
  multicast_invocation waiting = multicast_invocation_default();
  multicast_queue queue = multicast_queue_create(NULL);
  pthread_t thread;
  int i;

  readings = multicast_create();
  alarms = multicast_create();
  add_part(readings, DISPLAY, show, direct);
  add_part(alarms, ALARM, ring, direct);
  add_part(readings, CHART, draw, queue);
  add_part(readings, ARCHIVE, store, direct);
  must("starting the queue", multicast_queue_start(queue));

  begin_trace(&trace, path);
  waiting.event = READING;
  waiting.flags = MULTICAST_WAIT;
  for (i = 0; i < 3; ++i) {
    if (multicast_invoke(readings, READING, NULL, 0) != 3) fail("invoking", "not 3 calls");
  }
  if (multicast_invoke_with(readings, &waiting, NULL) != 3) fail("invoking", "not 3 calls");
  for (i = 0; i < PARTS; ++i) report(i);

  /* Another thread flushes the archive, which hangs. This one removes it. */
  if (pthread_create(&thread, NULL, flush, NULL) != 0) fail("pthread_create", "no thread");
  wait_for(&is_flushing);
  must("removing", multicast_token_remove(tokens[ARCHIVE]));
  puts("the archive is removed");
  pthread_join(thread, NULL);

  must("destroying", multicast_queue_destroy(queue));
  end_trace(&trace, path);
  must("destroying", multicast_destroy(readings));
  must("destroying", multicast_destroy(alarms));
  if (fflush(stdout) != 0) {
    perror("11_trace: standard output");
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
