/* The program closes the library or a plugin with dlclose() while calls are running. It does not
 * link the library, so nothing but the library itself can keep the library mapped. */

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin.h"

enum { THREADS = 3 };

#define LOAD(variable) __atomic_load_n(&(variable), __ATOMIC_SEQ_CST)
#define STORE(variable, value) __atomic_store_n(&(variable), (value), __ATOMIC_SEQ_CST)
#define CHECK(expression) check(__FILE__, __LINE__, #expression, (expression) ? 1 : 0, 1)
#define CHECK_EQ(a, b) check(__FILE__, __LINE__, #a " == " #b, (long long)(a), (long long)(b))

static void check(const char *file, int line, const char *expression, long long a, long long b) {
  if (a == b) return;
  fprintf(stderr, "%s:%d: check failed: %s: %lld, %lld\n", file, line, expression, a, b);
  _exit(1);
}

/* ---- The library ----------------------------------------------------------------------------- */

static struct {
  void *handle;
  multicast (*create)(void);
  multicast_status (*add)(multicast, multicast_delegate, const multicast_add_options *,
                          multicast_token *);
  int64_t (*invoke)(multicast, uint32_t, const void *, size_t);
  multicast_status (*destroy)(multicast);
  multicast_lifetime (*lifetime_create)(void);
  multicast_status (*lifetime_end)(multicast_lifetime);
  multicast_queue (*queue_create)(const multicast_queue_options *);
  multicast_status (*queue_start)(multicast_queue);
  multicast_status (*queue_destroy)(multicast_queue);
} library;

static const char *library_path;

static void *find(const char *name) {
  void *found = dlsym(library.handle, name);
  if (found == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(found != NULL);
  return found;
}

static void open_library(void) {
  library.handle = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
  if (library.handle == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(library.handle != NULL);
  *(void **)&library.create = find("multicast_create");
  *(void **)&library.add = find("multicast_add");
  *(void **)&library.invoke = find("multicast_invoke");
  *(void **)&library.destroy = find("multicast_destroy");
  *(void **)&library.lifetime_create = find("multicast_lifetime_create");
  *(void **)&library.lifetime_end = find("multicast_lifetime_end");
  *(void **)&library.queue_create = find("multicast_queue_create");
  *(void **)&library.queue_start = find("multicast_queue_start");
  *(void **)&library.queue_destroy = find("multicast_queue_destroy");
}

static bool is_mapped(const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (handle == NULL) return false;
  CHECK_EQ(dlclose(handle), 0);
  return true;
}

/* ---- Threads in the middle of calls ---------------------------------------------------------- */

static multicast target;
static bool is_over;
static int64_t invocations;

static void *invoke_on_and_on(void *unused) {
  while (!LOAD(is_over)) {
    CHECK(library.invoke(target, 0, "payload", 8) >= 0);
    __atomic_add_fetch(&invocations, 1, __ATOMIC_SEQ_CST);
  }
  return NULL;
}

static void start_threads(pthread_t *threads) {
  STORE(is_over, false);
  for (int i = 0; i < THREADS; ++i)
    CHECK_EQ(pthread_create(&threads[i], NULL, invoke_on_and_on, NULL), 0);
}

static void join_threads(const pthread_t *threads) {
  STORE(is_over, true);
  for (int i = 0; i < THREADS; ++i) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* Waits until the threads have invoked the multicast several times. */
static void let_them_invoke(void) {
  int64_t before = LOAD(invocations);
  while (LOAD(invocations) < before + INT64_C(20) * THREADS) usleep(100);
}

/* ---- The library is closed ------------------------------------------------------------------- */

static int closings;

static void close_library(void *context, uint32_t event, const void *payload, size_t size) {
  if (__atomic_add_fetch(&closings, 1, __ATOMIC_SEQ_CST) == 1)
    CHECK_EQ(dlclose(library.handle), 0); /* the running call returns into the closed library */
}

static void close_the_library(void) {
  multicast_delegate closing = {close_library, NULL};
  multicast_add_options options = multicast_add_options_default();
  pthread_t threads[THREADS];
  multicast_queue queue;
  for (int round = 0; round < 50; ++round) {
    STORE(closings, 0);
    open_library();
    target = library.create();
    CHECK(target.id != 0);
    options.queue = queue = library.queue_create(NULL);
    CHECK_EQ(library.queue_start(queue), MULTICAST_OK);
    CHECK_EQ(library.add(target, closing, NULL, NULL), MULTICAST_OK);
    CHECK_EQ(library.add(target, closing, &options, NULL), MULTICAST_OK);
    start_threads(threads);
    let_them_invoke(); /* now with a closed library */
    CHECK(is_mapped(library_path));
    let_them_invoke();
    join_threads(threads); /* the closed library releases their thread records */
    CHECK_EQ(library.queue_destroy(queue), MULTICAST_OK);
    CHECK_EQ(library.destroy(target), MULTICAST_OK);
  }
}

/* ---- A plugin is closed ---------------------------------------------------------------------- */

static void close_plugins(const char *path) {
  multicast_add_options options = multicast_add_options_default();
  pthread_t threads[THREADS];
  int i;
  open_library();
  target = library.create();
  multicast_queue queue = library.queue_create(NULL);
  CHECK_EQ(library.queue_start(queue), MULTICAST_OK);
  start_threads(threads);
  for (int round = 0; round < 200; ++round) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    counts c;
    Dl_info info;
    void *code;
    CHECK(handle != NULL);
    const plugin *p = (const plugin *)dlsym(handle, "plugin_functions");
    CHECK(p != NULL);
    memset(&c, 0, sizeof c);
    multicast_delegate d = {.function = p->be_called, .context = &c};
    memcpy(&code, &d.function, sizeof code);
    options.release = p->release;
    options.lifetime = library.lifetime_create();
    for (i = 0; i < 8; ++i) {
      options.lock = i % 2 == 0 ? p->lock : NULL;
      options.unlock = i % 2 == 0 ? p->unlock : NULL;
      options.queue.id = i % 4 < 2 ? queue.id : 0;
      CHECK_EQ(library.add(target, d, &options, NULL), MULTICAST_OK);
    }
    while (LOAD(c.calls) < 50) usleep(100);
    CHECK(dladdr(code, &info) != 0);
    CHECK_EQ(library.lifetime_end(options.lifetime), MULTICAST_OK);
    CHECK_EQ(LOAD(c.releases), 8);
    CHECK_EQ(LOAD(c.locks), 0);
    CHECK_EQ(dlclose(handle), 0);
    CHECK(!is_mapped(path) && dladdr(code, &info) == 0); /* the plugin has been unmapped */
    i = LOAD(c.calls);
    let_them_invoke(); /* a call to the plugin would crash */
    CHECK_EQ(LOAD(c.calls), i);
  }
  join_threads(threads);
  CHECK_EQ(library.queue_destroy(queue), MULTICAST_OK);
  CHECK_EQ(library.destroy(target), MULTICAST_OK);
  CHECK_EQ(dlclose(library.handle), 0);
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3 || *argv[1] == '-') {
    printf("Usage: %s LIBRARY [PLUGIN]\n\n"
           "Closes the library, or the plugin, while calls run.\n", argv[0]);
    return argc == 2 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) ? 0 : 2;
  }
  alarm(100); /* kills a hanging test */
  library_path = argv[1];
  if (argc == 3) {
    close_plugins(argv[2]);
  } else {
    close_the_library();
  }
  return 0;
}
