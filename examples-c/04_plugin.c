/* SPDX-License-Identifier: MIT
 *
 * 04_plugin: unloads a plugin whose delegates are being called.
 *
 * One thread presses keys and saves files without pause, and invokes two multicasts for them.
 * Meanwhile the main thread repeats this: it loads a plugin, which adds five delegates with a
 * lifetime, ends the lifetime, and unloads the plugin in the next statement. The plugin has no
 * function that stops it, and nothing counts the calls inside it. When multicast_lifetime_end() or
 * multicast_ended_within() has returned MULTICAST_OK, no delegate with that lifetime runs on any
 * thread, and none ever will again, so their code can be unloaded. Sometimes the plugin ends its
 * lifetime itself, inside one of its delegates.
 *
 * The program checks each time that the plugin is no longer mapped. A later call of a delegate, or
 * one that still runs, would crash the program.
 *
 * Usage: 04_plugin [COUNT] [PLUGIN]
 *
 * Prints (only the number of calls varies):
 *
 *     1000 plugins loaded, used and unloaded; 806925 calls reached them; all 5000 contexts released
 */

#define _XOPEN_SOURCE 700

#include "04_plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PLUGIN_FILE "04_plugin_module.so"

enum { DEFAULT_COUNT = 1000, MOST_COUNT = 1000000, AWAIT_EVERY = 50, AWAIT_SECONDS = 60 };

static void fail(const char *what, const char *why) {
  fprintf(stderr, "04_plugin: %s: %s\n", what, why);
  exit(EXIT_FAILURE);
}

static void must(const char *what, multicast_status status) {
  if (status != MULTICAST_OK) fail(what, multicast_status_message(status));
}

static multicast create(void) {
  multicast created = multicast_create();
  if (created.id == 0) must("create", multicast_create_error());
  return created;
}

/* ---- Functions that the plugin calls -------------------------------------------------------- */

/* Written by the editing thread; read after that thread has ended. */
static struct {
  uint64_t own_calls;
  uint64_t plugin_calls;
  uint64_t counted_calls;
  multicast_status end;
} seen;

/* Whether the main thread waits for the first call. The main thread writes it while no plugin is
 * loaded, then the editing thread does. */
static bool is_awaited;
static sem_t first_call;

static void plugin_called(void) {
  seen.plugin_calls += 1;
  if (is_awaited) {
    is_awaited = false;
    sem_post(&first_call);
    /* Gives the main thread time to end the lifetime during this call. */
    sched_yield();
  }
}

static pthread_mutex_t release_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t released; /* Guarded by release_lock. */

/* Runs on the main thread or, after a call of a MULTICAST_ONCE delegate, on the editing thread. */
static void plugin_release(void *context) {
  free(context);
  pthread_mutex_lock(&release_lock);
  released += 1;
  pthread_mutex_unlock(&release_lock);
}

/* ---- The editing thread --------------------------------------------------------------------- */

struct editor {
  multicast keys;
  multicast files;
};

/* The host's own delegate. It stays until the end of the program. */
static void on_own(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context;
  (void)event;
  (void)payload;
  (void)size;
  seen.own_calls += 1;
}

/* Returns false once the multicast is destroyed. */
static bool tell(multicast target, uint32_t event, const char *payload, size_t size) {
  int64_t called = multicast_invoke(target, event, payload, size);
  if (called < 0) {
    /* The main thread ends this thread by destroying the multicasts: their handles are stale. */
    seen.end = (multicast_status)called;
    return false;
  }
  seen.counted_calls += (uint64_t)called;
  return true;
}

static void *edit_without_pause(void *argument) {
  static const char name[] = "letter.txt", text[] = "Dear Ada, ";
  const struct editor *editor = argument;
  for (;;) {
    if (!tell(editor->files, FILE_OPENED, name, strlen(name))) return NULL;
    for (const char *key = text; *key != '\0'; key++) {
      if (!tell(editor->keys, KEY_PRESSED, key, 1)) return NULL;
    }
    if (!tell(editor->files, FILE_SAVED, name, strlen(name))) return NULL;
  }
}

/* ---- The main thread ------------------------------------------------------------------------ */

static void await_first_call(void) {
  struct timespec limit;
  if (clock_gettime(CLOCK_REALTIME, &limit) != 0) fail("clock_gettime", strerror(errno));
  limit.tv_sec += AWAIT_SECONDS;
  while (sem_timedwait(&first_call, &limit) != 0) {
    if (errno == ETIMEDOUT) fail("add", "no delegate was called within a minute");
    if (errno != EINTR) fail("sem_timedwait", strerror(errno));
  }
}

/* Returns the number of delegates that the plugin has added, each with a context to release. */
static uint64_t load_use_unload(const struct editor *editor, const char *path, uint64_t round) {
  void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (module == NULL) fail("dlopen", dlerror());
  const struct plugin *plugin = dlsym(module, PLUGIN_SYMBOL);
  if (plugin == NULL) fail(path, "not a plugin: it has no " PLUGIN_SYMBOL);

  struct plugin_host host = {editor->keys, editor->files, multicast_lifetime_create(),
                             plugin_called, plugin_release};
  if (host.lifetime.id == 0) must("lifetime_create", multicast_create_error());
  const bool awaits = round % AWAIT_EVERY == 0;
  is_awaited = awaits;
  int64_t added = plugin->start(&host);
  if (added < 0) fail("start", multicast_status_message(added));

  /* By chance, there may be no call before the lifetime ends; in some rounds, wait for one. */
  if (awaits) await_first_call();

  /* The plugin may have ended the lifetime itself, in a delegate that still runs. Then this end
   * fails. In any case the host asks whether all of it is over. */
  (void)multicast_lifetime_end(host.lifetime);
  must("ended_within", multicast_ended_within(host.lifetime.id, MULTICAST_FOREVER));
  if (dlclose(module) != 0) fail("dlclose", dlerror());

  if (dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL) fail(path, "mapped still after dlclose()");
  return (uint64_t)added;
}

/* ---- Command line --------------------------------------------------------------------------- */

/* Parses a whole number from 1 to MOST_COUNT. Returns 0 for anything else. */
static uint64_t parse_count(const char *text) {
  uint64_t count = 0;
  for (; *text != '\0'; text++) {
    if (*text < '0' || *text > '9') return 0;
    count = count * 10 + (uint64_t)(*text - '0');
    if (count > MOST_COUNT) return 0;
  }
  return count;
}

/* Returns the path of the plugin, from malloc(). Without an argument it is in the directory of this
 * program. The path has a slash, because dlopen() searches other directories for names without. */
static char *find_plugin(const char *argument) {
  if (argument != NULL) {
    char *path = realpath(argument, NULL);
    if (path == NULL) fail(argument, strerror(errno));
    return path;
  }
  enum { CAPACITY = 4096 };
  char *path = malloc(CAPACITY + sizeof PLUGIN_FILE);
  if (path == NULL) fail("malloc", strerror(errno));
  ssize_t length = readlink("/proc/self/exe", path, CAPACITY);
  if (length < 0) fail("/proc/self/exe", strerror(errno));
  while (length > 0 && path[length - 1] != '/') length--;
  strcpy(path + length, PLUGIN_FILE);
  return path;
}

static void finish_output(void) {
  if (fflush(stdout) != 0 || ferror(stdout)) fail("standard output", strerror(errno));
}

int main(int argc, char **argv) {
  uint64_t count = DEFAULT_COUNT;
  if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    printf("Usage: 04_plugin [COUNT] [PLUGIN]\n\n"
           "Loads, uses and unloads a plugin COUNT times (1 to %d, default: %d) while another\n"
           "thread invokes its delegates without pause, and checks that all of it is gone each\n"
           "time. PLUGIN is a shared object (default: %s beside this program).\n",
           MOST_COUNT, DEFAULT_COUNT, PLUGIN_FILE);
    finish_output();
    return EXIT_SUCCESS;
  }
  if (argc > 3) fail(argv[3], "one argument too many; see --help");
  if (argc > 1) count = parse_count(argv[1]);
  if (count == 0) fail(argv[1], "not a number from 1 to 1000000; see --help");
  char *path = find_plugin(argc > 2 ? argv[2] : NULL);

  if (sem_init(&first_call, 0, 0) != 0) fail("sem_init", strerror(errno));
  struct editor editor = {create(), create()};
  multicast_delegate own = {on_own, NULL};
  must("add", multicast_add(editor.keys, own, NULL, NULL));
  must("add", multicast_add(editor.files, own, NULL, NULL));

  pthread_t editing;
  int error = pthread_create(&editing, NULL, edit_without_pause, &editor);
  if (error != 0) fail("pthread_create", strerror(error));

  uint64_t added = 0;
  for (uint64_t round = 0; round < count; round++) added += load_use_unload(&editor, path, round);
  free(path);

  must("destroy", multicast_destroy(editor.keys));
  must("destroy", multicast_destroy(editor.files));
  error = pthread_join(editing, NULL);
  if (error != 0) fail("pthread_join", strerror(error));
  sem_destroy(&first_call);

  if (seen.end != MULTICAST_ERROR_INVALID_HANDLE) {
    fail("invoke", multicast_status_message(seen.end));
  }
  if (seen.counted_calls != seen.own_calls + seen.plugin_calls) {
    fail("invoke", "it counted other calls than the delegates did");
  }
  if (released != added) {
    fprintf(stderr, "04_plugin: %" PRIu64 " contexts were added, and %" PRIu64 " released\n", added,
            released);
    return EXIT_FAILURE;
  }
  printf("%" PRIu64 " plugins loaded, used and unloaded; %" PRIu64
         " calls reached them; all %" PRIu64 " contexts released\n",
         count, seen.plugin_calls, released);
  finish_output();
  return EXIT_SUCCESS;
}
