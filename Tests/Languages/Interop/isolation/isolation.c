/* Uses libmulticast in unusual processes, which open the library with dlopen, contain several
 * copies of the library, or contain a Swift runtime. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <multicast.h>

#define CHECK(expression) ((expression) ? (void)0 : check_failed(__LINE__, #expression))
static void check_failed(int line, const char *expression) {
  fprintf(stderr, "%s:%d: %s is false\n", __FILE__, line, expression);
  exit(1);
}
#define CHECK_EQ(a, b) check_equal(__LINE__, #a, #b, (long long)(a), (long long)(b))
static void check_equal(int line, const char *left, const char *right, long long a, long long b) {
  if (a == b) return;
  fprintf(stderr, "%s:%d: %s is %lld, but %s is %lld\n", __FILE__, line, left, a, right, b);
  exit(1);
}

/* ---- The functions of one copy --------------------------------------------------------------- */

#define FUNCTIONS(X)                                                                      \
  X(create) X(destroy) X(add) X(invoke) X(count)                                          \
  X(token_remove) X(lifetime_create) X(lifetime_end)                                      \
  X(queue_create) X(queue_run) X(queue_start) X(queue_stop) X(queue_fd) X(queue_destroy)  \
  X(broadcaster_default) X(broadcaster_register) X(broadcaster_notify) X(version)

typedef struct api {
#define FIELD(name) __typeof__(&multicast_##name) name;
  FUNCTIONS(FIELD)
} api;

static api linked = {
#define LINKED(name) .name = multicast_##name,
    FUNCTIONS(LINKED)};

static void *open_library(const char *path, int flags) {
  void *library = dlopen(path, flags);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(library != NULL);
  return library;
}

static api api_of(void *library) {
  api found;
#define FIND(name)                                          \
  *(void **)&found.name = dlsym(library, "multicast_" #name); \
  CHECK(found.name != NULL);
  FUNCTIONS(FIND)
  return found;
}

static api api_of_file(const char *path, int flags) { return api_of(open_library(path, flags)); }

/* ---- Using a copy ---------------------------------------------------------------------------- */

static void count_call(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event, (void)payload, (void)size;
  __atomic_add_fetch((int *)context, 1, __ATOMIC_SEQ_CST);
}

static void count_release(void *context) {
  __atomic_add_fetch((int *)context, 1000, __ATOMIC_SEQ_CST);
}

static void *invoke_often(void *argument) {
  const api *m = ((void **)argument)[0];
  const multicast *target = ((void **)argument)[1];
  for (int i = 0; i < 1000; ++i) CHECK(m->invoke(*target, 0, "0123456789abcdef", 16) >= 0);
  return NULL;
}

/* Uses all kinds of objects on two threads, and destroys them. */
static void use(const api *m) {
  int direct = 0, queued = 0, named = 0;
  multicast target = m->create();
  multicast_lifetime life = m->lifetime_create();
  multicast_queue queue = m->queue_create(NULL);
  multicast_add_options options = multicast_add_options_default();
  multicast_delegate d = {count_call, &direct};
  void *arguments[2] = {(void *)(uintptr_t)m, &target};
  pthread_t thread;
  CHECK(target.id != 0 && life.id != 0 && queue.id != 0);
  options.lifetime = life;
  options.release = count_release;
  CHECK_EQ(m->add(target, d, &options, NULL), MULTICAST_OK);
  options.queue = queue;
  d.context = &queued;
  CHECK_EQ(m->add(target, d, &options, NULL), MULTICAST_OK);
  CHECK(m->queue_fd(queue) >= 0);
  CHECK_EQ(pthread_create(&thread, NULL, invoke_often, arguments), 0);
  CHECK_EQ(m->invoke(target, 0, NULL, 0), 2);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_EQ(direct, 1001);
  CHECK_EQ(m->queue_run(queue, 5), 5);
  CHECK_EQ(m->queue_start(queue), MULTICAST_OK);
  while (__atomic_load_n(&queued, __ATOMIC_SEQ_CST) < 1001) usleep(100);
  CHECK_EQ(m->queue_stop(queue), MULTICAST_OK);
  CHECK_EQ(m->lifetime_end(life), MULTICAST_OK);
  CHECK_EQ(direct, 2001);
  CHECK_EQ(queued, 2001);
  CHECK_EQ(m->queue_destroy(queue), MULTICAST_OK);
  CHECK_EQ(m->destroy(target), MULTICAST_OK);

  multicast_token token;
  d.context = &named;
  CHECK_EQ(m->broadcaster_register(m->broadcaster_default(), "name", d, NULL, &token),
           MULTICAST_OK);
  CHECK_EQ(m->broadcaster_notify(m->broadcaster_default(), "name", 0, NULL, 0), 1);
  CHECK_EQ(m->token_remove(token), MULTICAST_OK);
  CHECK_EQ(named, 1);
}

/* ---- Hosts ----------------------------------------------------------------------------------- */

static void two_copies(const char *library) {
  api opened = api_of_file(library, RTLD_NOW | RTLD_LOCAL);
  CHECK(opened.create != linked.create);
  use(&linked);
  use(&opened);
  /* A handle of one copy of the library is invalid in the other copy. */
  multicast theirs = {0};
  for (int i = 0; i < 1000; ++i) theirs = opened.create();
  CHECK_EQ(linked.count(theirs), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(opened.count(theirs), 0);
  use(&linked);
}

static void rounds(const char *library) {
  for (int i = 0; i < 1000; ++i) {
    void *handle = open_library(library, i % 2 ? RTLD_LAZY : RTLD_NOW);
    api opened = api_of(handle);
    if (i % 10 == 0) use(&opened);
    multicast m = opened.create();
    CHECK_EQ(opened.invoke(m, 0, NULL, 0), 0);
    CHECK_EQ(opened.destroy(m), MULTICAST_OK);
    CHECK_EQ(dlclose(handle), 0);
  }
}

static void with_flags(const char *library, int flags) {
  api opened = api_of_file(library, flags);
  use(&opened);
}

static api kept;

static void *open_and_end(void *library) {
  kept = api_of_file(library, RTLD_NOW);
  use(&kept);
  return NULL;
}

static void from_a_thread_that_ends(char *library) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, open_and_end, library), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  use(&kept);
}

/* Opens and uses a library that is written in ordinary Swift and needs the Swift runtime. */
static void use_swift(const char *path) {
  void *swift = open_library(path, RTLD_NOW | RTLD_GLOBAL);
  long (*work)(long);
  *(void **)&work = dlsym(swift, "ordinary_swift_work");
  CHECK(work != NULL);
  CHECK_EQ(work(1000), 1000);
}

static void swift_before(const char *library, const char *swift) {
  use_swift(swift);
  with_flags(library, RTLD_NOW | RTLD_GLOBAL);
  use_swift(swift);
}

static void swift_after(const char *library, const char *swift) {
  with_flags(library, RTLD_NOW | RTLD_GLOBAL);
  use_swift(swift);
  with_flags(library, RTLD_NOW | RTLD_GLOBAL);
}

/* ---- The cost of opening --------------------------------------------------------------------- */

/* Returns a field of /proc/self/smaps_rollup, in kilobytes. */
static long memory_kb(const char *field) {
  char line[256];
  long kb = -1;
  FILE *rollup = fopen("/proc/self/smaps_rollup", "r");
  CHECK(rollup != NULL);
  while (kb < 0 && fgets(line, sizeof line, rollup) != NULL)
    if (strncmp(line, field, strlen(field)) == 0) kb = strtol(line + strlen(field), NULL, 10);
  fclose(rollup);
  CHECK(kb >= 0);
  return kb;
}

/* Prints how much time and memory opening a library takes. The time is in nanoseconds. The resident
 * memory and the private written memory are in kilobytes. */
static void cost(const char *library) {
  struct timespec before, after;
  long resident = memory_kb("Rss:"), own = memory_kb("Private_Dirty:");
  clock_gettime(CLOCK_MONOTONIC, &before);
  open_library(library, RTLD_NOW);
  clock_gettime(CLOCK_MONOTONIC, &after);
  printf("%ld ",
         (long)((after.tv_sec - before.tv_sec) * 1000000000 + (after.tv_nsec - before.tv_nsec)));
  printf("%ld %ld\n", memory_kb("Rss:") - resident, memory_kb("Private_Dirty:") - own);
}

int main(int argc, char **argv) {
  const char *host = argc >= 3 ? argv[1] : "--help";
  char *library = argc >= 3 ? argv[2] : NULL;
  const char *swift = argc >= 4 ? argv[3] : NULL;
  alarm(120);
  if (strcmp(host, "two-copies") == 0) two_copies(library);
  else if (strcmp(host, "rounds") == 0) rounds(library);
  else if (strcmp(host, "deepbind") == 0) with_flags(library, RTLD_NOW | RTLD_DEEPBIND);
  else if (strcmp(host, "lazy") == 0) with_flags(library, RTLD_LAZY);
  else if (strcmp(host, "thread-that-ends") == 0) from_a_thread_that_ends(library);
  else if (strcmp(host, "swift-before") == 0 && swift != NULL) swift_before(library, swift);
  else if (strcmp(host, "swift-after") == 0 && swift != NULL) swift_after(library, swift);
  else if (strcmp(host, "cost") == 0) { cost(library); return 0; }
  else {
    printf("Usage: isolation HOST LIBRARY.so [SWIFT.so]\n\nHosts: two-copies rounds deepbind lazy "
           "thread-that-ends swift-before swift-after cost\n");
    return 2;
  }
  printf("%s: ok\n", host);
  return 0;
}
