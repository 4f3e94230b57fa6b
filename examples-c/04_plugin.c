/* SPDX-License-Identifier: MIT
 *
 * 04_plugin: unloads a plugin whose delegate is being called.
 *
 * One thread presses keys without pause. At the same time, the main thread loads a plugin, which
 * adds a delegate with a lifetime. The main thread waits until a hundred keys have reached the
 * plugin, ends the lifetime, and unloads the plugin in the next statement. The program need not
 * count the calls inside the plugin: after multicast_lifetime_end() has returned MULTICAST_OK, none
 * of the plugin's delegates is running on any thread, and none ever will again. A later call would
 * crash the program, because the plugin's code is unmapped.
 *
 * Usage: 04_plugin [COUNT]
 *
 * Prints (the numbers of calls vary):
 *
 *     Keys are pressed on another thread. Meanwhile:
 *     plugin 1: loaded, called 775014 times, unloaded
 *     plugin 2: loaded, called 2032 times, unloaded
 *     plugin 3: loaded, called 1141 times, unloaded
 *     ...
 *     1000 plugins loaded, called and unloaded; 14247911 calls reached them
 */

#define _POSIX_C_SOURCE 200809L

#include "04_plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_COUNT = 1000, MOST_COUNT = 1000000, SHOWN = 3 };

static void fail(const char *what, const char *why) {
  fprintf(stderr, "04_plugin: %s: %s\n", what, why);
  exit(EXIT_FAILURE);
}

static void must(const char *what, multicast_status status) {
  if (status != MULTICAST_OK) fail(what, multicast_status_message(status));
}

/* ---- Functions that the plugin calls -------------------------------------------------------- */

static sem_t hundred;
static void plugin_hundred(void) { sem_post(&hundred); }

/* The plugin's `release` function calls this function, on the main thread, which ends the
 * lifetime. */
static uint64_t keys_of_plugin;
static void plugin_counted(uint64_t keys) { keys_of_plugin = keys; }

/* ---- Load, use, unload ---------------------------------------------------------------------- */

static void load_use_unload(multicast keys, const char *path) {
  void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (module == NULL) fail("dlopen", dlerror());
  const struct plugin *plugin = dlsym(module, PLUGIN_SYMBOL);
  if (plugin == NULL) fail(path, "not a plugin: it has no " PLUGIN_SYMBOL);

  struct plugin_host host = {keys, multicast_lifetime_create(), plugin_hundred, plugin_counted};
  if (host.lifetime.id == 0) must("lifetime_create", multicast_create_error());
  must("start", plugin->start(&host));
  while (sem_wait(&hundred) != 0) {
    if (errno != EINTR) fail("sem_wait", strerror(errno));
  }

  must("lifetime_end", multicast_lifetime_end(host.lifetime));
  if (dlclose(module) != 0) fail("dlclose", dlerror());
  if (dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL) fail(path, "mapped still after dlclose()");
}

/* ---- The other thread ----------------------------------------------------------------------- */

/* Presses keys until the multicast is destroyed, which makes its handle stale. */
static void *press_keys(void *argument) {
  static const char text[] = "Dear Ada, ";
  const multicast *keys = argument;
  for (size_t next = 0;; next = (next + 1) % strlen(text)) {
    int64_t called = multicast_invoke(*keys, 0, &text[next], 1);
    if (called == MULTICAST_ERROR_INVALID_HANDLE) return NULL;
    if (called < 0) fail("invoke", multicast_status_message(called));
  }
}

/* ---- Main program --------------------------------------------------------------------------- */

int main(int argc, char **argv) {
  char path[4096], *end = NULL;
  long count = argc > 1 ? strtol(argv[1], &end, 10) : DEFAULT_COUNT;
  if (argc > 2 || count < 1 || count > MOST_COUNT || (end != NULL && *end != '\0')) {
    fprintf(stderr, "Usage: 04_plugin [COUNT], from 1 to %d (default: %d)\n", MOST_COUNT,
            DEFAULT_COUNT);
    return EXIT_FAILURE;
  }
  /* The plugin is in the same directory as this program. */
  const char *slash = strrchr(argv[0], '/');
  int folder = slash == NULL ? 0 : (int)(slash - argv[0]) + 1;
  snprintf(path, sizeof path, "%.*s04_plugin_module.so", folder, argv[0]);

  multicast keys = multicast_create();
  if (keys.id == 0) must("create", multicast_create_error());
  if (sem_init(&hundred, 0, 0) != 0) fail("sem_init", strerror(errno));
  pthread_t pressing;
  int error = pthread_create(&pressing, NULL, press_keys, &keys);
  if (error != 0) fail("pthread_create", strerror(error));

  puts("Keys are pressed on another thread. Meanwhile:");
  uint64_t calls = 0;
  for (long number = 1; number <= count; number++) {
    load_use_unload(keys, path);
    calls += keys_of_plugin;
    if (number <= SHOWN) {
      printf("plugin %ld: loaded, called %" PRIu64 " times, unloaded\n", number, keys_of_plugin);
    }
  }
  if (count > SHOWN) puts("...");
  printf("%ld plugins loaded, called and unloaded; %" PRIu64 " calls reached them\n", count, calls);

  must("destroy", multicast_destroy(keys));
  pthread_join(pressing, NULL);
  sem_destroy(&hundred);
  return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
