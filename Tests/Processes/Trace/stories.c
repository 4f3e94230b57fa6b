#define _GNU_SOURCE
#include "stories.h"

#include <errno.h>
#include <fcntl.h>
#include <multicast.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      exit(99);                                                                \
    }                                                                          \
  } while (0)

static const multicast all = {0};

static void sleep_ms(int milliseconds) {
  struct timespec time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
  nanosleep(&time, NULL);
}

// ---- Delegates ----------------------------------------------------------------------------------

static void quick(void *context, uint32_t event, const void *payload, size_t size) {
}

static void takes_30_ms(void *context, uint32_t event, const void *payload, size_t size) {
  sleep_ms(30);
}

// Invokes the multicast to which its context points.
static void invokes(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_invoke(*(multicast *)context, event, payload, size);
}

static void exits(void *context, uint32_t event, const void *payload, size_t size) {
  exit((int)event);
}

__attribute__((visibility("default"))) void visible_function(void *context, uint32_t event,
                                                             const void *payload, size_t size);
void visible_function(void *context, uint32_t event, const void *payload, size_t size) {
  quick(context, event, payload, size);
}

static multicast_token add_to(multicast target, multicast_function function, void *context,
                              const char *label) {
  multicast_add_options options = multicast_add_options_default();
  const multicast_delegate delegate = {function, context};
  multicast_token token;
  options.label = label;
  CHECK(multicast_add(target, delegate, &options, &token) == MULTICAST_OK);
  return token;
}

static void invoke(multicast target, int count) {
  for (int i = 0; i < count; ++i) CHECK(multicast_invoke(target, (uint32_t)i, NULL, 0) >= 0);
}

// Creates a multicast with one delegate.
static multicast one(multicast_function function, const char *label) {
  const multicast target = multicast_create();
  add_to(target, function, NULL, label);
  return target;
}

// ---- Threads ------------------------------------------------------------------------------------

static multicast inner, outer;

static void *invoke_outer(void *unused) {
  invoke(outer, 2000);
  return unused;
}

// Each of 4 threads makes 2000 calls, each of which makes 2 more calls.
static void threads(void) {
  pthread_t thread[4];
  inner = one(quick, "inner");
  add_to(inner, quick, NULL, "inner");
  outer = multicast_create();
  add_to(outer, invokes, &inner, "outer");
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&thread[i], NULL, invoke_outer, NULL) == 0);
  for (int i = 0; i < 4; ++i) pthread_join(thread[i], NULL);
  CHECK(multicast_destroy(outer) == MULTICAST_OK);
  CHECK(multicast_destroy(inner) == MULTICAST_OK);
}

static void *invoke_cancelled(void *unused) {
  pthread_cancel(pthread_self());
  invoke(outer, 2000);
  for (;;) pthread_testcancel();
  return unused;
}

// A thread that has been cancelled still makes its calls until it reaches a cancellation point.
static void cancelled(void) {
  pthread_t thread;
  void *result;
  outer = one(quick, "called");
  CHECK(pthread_create(&thread, NULL, invoke_cancelled, NULL) == 0);
  pthread_join(thread, &result);
  CHECK(result == PTHREAD_CANCELED);
  invoke(outer, 1);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_in_call;

static void takes_long(void *context, uint32_t event, const void *payload, size_t size) {
  pthread_mutex_lock(&mutex);
  is_in_call = true;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&mutex);
  sleep_ms(300);
}

static void *invoke_one(void *unused) {
  invoke(outer, 1);
  return unused;
}

static void waits(void) {
  pthread_t thread;
  outer = multicast_create();
  const multicast_token token = add_to(outer, takes_long, NULL, "waited for");
  CHECK(pthread_create(&thread, NULL, invoke_one, NULL) == 0);
  pthread_mutex_lock(&mutex);
  while (!is_in_call) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
  CHECK(multicast_token_remove(token) == MULTICAST_OK);
  pthread_join(thread, NULL);
}

// ---- Watches ------------------------------------------------------------------------------------

static int called, slow, crowds;

static void count_call(void *context, multicast_token token, uint32_t event, uint64_t elapsed_ns) {
  CHECK(context == &called);
  ++called;
}

static void count_slow(void *context, multicast_token token, const char *label,
                       uint64_t elapsed_ns) {
  CHECK(context == &called && strcmp(label, "watched") == 0 && elapsed_ns >= 5000000);
  ++slow;
}

static void count_crowd(void *context, multicast target, uint64_t count, const char *label,
                        multicast_function function, uint64_t most) {
  CHECK(context == &called && count == 2);
  ++crowds;
}

// The program sets its own watch of all multicasts. The watch works as it would without the trace.
static void own_watch(void) {
  multicast_watch watch = multicast_watch_default();
  const multicast target = one(takes_30_ms, "watched"), crowd = one(quick, "one of two");
  const multicast_delegate second = {quick, NULL};
  watch.context = &called;
  watch.called = count_call;
  watch.slow = count_slow;
  watch.listener_warning = count_crowd;
  watch.listener_warning_count = 2;
  CHECK(multicast_set_watch(all, &watch) == MULTICAST_OK);
  CHECK(multicast_add(crowd, second, NULL, NULL) == MULTICAST_OK);
  CHECK(crowds == 1);
  invoke(target, 2);
  CHECK(called == 2 && slow == 0); // slow_ns is not set
  watch.slow_ns = 5000000;
  CHECK(multicast_set_watch(all, &watch) == MULTICAST_OK);
  invoke(target, 1);
  CHECK(called == 3 && slow == 1);
  watch.reserved = 1;
  CHECK(multicast_set_watch(all, &watch) == MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK(multicast_set_watch(all, NULL) == MULTICAST_OK);
  invoke(target, 1);
  CHECK(called == 3 && slow == 1);
}

static void own_watch_of_one(void) {
  multicast_watch watch = multicast_watch_default();
  const multicast target = one(quick, "watched"), other = one(quick, "other");
  watch.context = &called;
  watch.called = count_call;
  CHECK(multicast_set_watch(target, &watch) == MULTICAST_OK);
  invoke(target, 3);
  invoke(other, 4);
  CHECK(called == 3);
}

// Defined in refuse.c, so its address is NULL unless that library is preloaded.
extern int refuses_malloc __attribute__((weak));

static void watch_without_memory(void) {
  multicast_watch watch = multicast_watch_default();
  const multicast target = one(quick, "watched");
  watch.context = &called;
  watch.called = count_call;
  CHECK(&refuses_malloc != NULL);
  refuses_malloc = 1;
  CHECK(multicast_set_watch(all, &watch) == MULTICAST_OK);
  refuses_malloc = 0;
  invoke(target, 3);
  CHECK(called == 3);
}

// ---- Leftovers ----------------------------------------------------------------------------------

static multicast late;

static void remove_late(void) { CHECK(multicast_destroy(late) == MULTICAST_OK); }

static void kept(void) {
  multicast_create_options options = multicast_create_options_default();
  options.label = "readings";
  const multicast readings = multicast_create_with(&options);
  for (int i = 0; i < 3; ++i) add_to(readings, quick, &options, "left behind");
  CHECK(multicast_token_remove(add_to(readings, quick, NULL, "removed")) == MULTICAST_OK);
  add_to(multicast_create(), visible_function, NULL, NULL);
  late = one(quick, "removed at exit");
  CHECK(atexit(remove_late) == 0);
}

// ---- Names --------------------------------------------------------------------------------------

static void labels(void) {
  static const char *const names[] = {"a \"quote\" and \\", "line\nfeed", "gr\xC3\xB6\303\237e",
                                      "no text: \xFF\xC3", "\xED\xA0\x80", "\xF0\x9F\x98\x80"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) invoke(one(quick, names[i]), 1);
  invoke(one(visible_function, NULL), 1);
}

static void once(void) {
  const multicast target = multicast_create();
  multicast_add_options options = multicast_add_options_default();
  const multicast_delegate delegate = {takes_30_ms, NULL};
  options.flags = MULTICAST_ONCE;
  options.label = "only once";
  CHECK(multicast_add(target, delegate, &options, NULL) == MULTICAST_OK);
  invoke(target, 2);
}

static void queued(void) {
  const multicast target = multicast_create();
  multicast_add_options options = multicast_add_options_default();
  const multicast_delegate delegate = {quick, NULL};
  options.queue = multicast_queue_create(NULL);
  options.label = "in a queue";
  CHECK(multicast_add(target, delegate, &options, NULL) == MULTICAST_OK);
  invoke(target, 5);
  CHECK(multicast_queue_run(options.queue, 0) == 5);
}

// ---- Processes ----------------------------------------------------------------------------------

static void wait_for(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void forks(int count) {
  const multicast target = one(quick, "called");
  invoke(target, 5);
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      invoke(target, 10);
      exit(0);
    }
    wait_for(child);
  }
  invoke(target, 5);
}

// This process creates a child that outlives it.
static void outlived(void) {
  const multicast target = one(quick, "called");
  invoke(target, 5);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child != 0) return;
  invoke(target, 10);
  sleep_ms(500);
  invoke(target, 5000);
  puts("done");
}

static void closes_all(void) {
  const multicast target = one(quick, "called");
  for (int i = 3; i < 1000; ++i) close(i);
  for (int i = 3; i < 300; ++i) CHECK(open("own", O_WRONLY | O_CREAT, 0666) == i);
  invoke(target, 3000);
}

// Checks the environment that child programs would inherit.
static void environment(void) {
  const char *preloaded = getenv("LD_PRELOAD"), *expected = getenv("EXPECTED_LD_PRELOAD");
  CHECK(getenv("MULTICAST_TRACE") == NULL);
  CHECK(expected == NULL ? preloaded == NULL
                         : preloaded != NULL && strcmp(preloaded, expected) == 0);
}

static void *allocate(void *context, size_t size, size_t alignment) {
  void *block = NULL;
  return posix_memalign(&block, alignment < sizeof block ? sizeof block : alignment, size) == 0
             ? block
             : NULL;
}

static void deallocate(void *context, void *block, size_t size, size_t alignment) {
  free(block);
}

// The program can still set an allocator if it has not created any object yet.
static void allocator(void) {
  multicast_allocator given = multicast_allocator_default();
  given.allocate = allocate;
  given.deallocate = deallocate;
  CHECK(multicast_set_allocator(&given) == MULTICAST_OK);
  invoke(one(quick, "called"), 3);
}

static void sets_errno(void *context, uint32_t event, const void *payload, size_t size) {
  errno = EDOM;
}

static void keeps_errno(void) {
  const multicast target = one(sets_errno, "called");
  for (int i = 0; i < 2000; ++i) {
    invoke(target, 1);
    CHECK(errno == EDOM);
  }
}

static volatile sig_atomic_t has_signal;
static void note_signal(int number) { has_signal = number; }

static void waits_for_signal(void) {
  signal(SIGTERM, note_signal);
  printf("ready %d\n", (int)getpid());
  fflush(stdout);
  while (has_signal == 0) sleep_ms(1);
  invoke(one(quick, "called"), 3);
}

int tell(const char *name, char **arguments) {
  static const struct {
    const char *name;
    void (*tell)(void);
  } stories[] = {{"threads", threads}, {"cancelled", cancelled}, {"waits", waits},
                 {"own_watch", own_watch}, {"own_watch_of_one", own_watch_of_one},
                 {"watch_without_memory", watch_without_memory}, {"kept", kept},
                 {"labels", labels}, {"once", once}, {"queued", queued},
                 {"outlived", outlived}, {"closes_all", closes_all},
                 {"environment", environment}, {"allocator", allocator},
                 {"keeps_errno", keeps_errno}, {"waits_for_signal", waits_for_signal}};
  for (size_t i = 0; i < sizeof stories / sizeof *stories; ++i) {
    if (strcmp(name, stories[i].name) != 0) continue;
    stories[i].tell();
    return 0;
  }
  if (strcmp(name, "fork") == 0) return forks(1), 0;
  if (strcmp(name, "forks") == 0) return forks(130), 0;
  const multicast target = one(quick, "called");
  invoke(target, 3);
  if (strcmp(name, "calls") == 0) return 0;
  if (strcmp(name, "status") == 0) return 7;
  if (strcmp(name, "_exit") == 0) _exit(5);
  if (strcmp(name, "abort") == 0) abort();
  if (strcmp(name, "killed") == 0) kill(getpid(), SIGKILL);
  if (strcmp(name, "exit_in_call") == 0) {
    add_to(target, exits, NULL, "exits");
    multicast_invoke(target, 6, NULL, 0);
  }
  if (strcmp(name, "exec") == 0) execl("/proc/self/exe", arguments[0], "calls", (char *)NULL);
  return 98;
}
