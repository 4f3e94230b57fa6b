/* The library works with a malloc() that never aligns blocks to more than 16 bytes. */

#include "../Interface/harness.h"
#include "functions.h"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* This process already uses libc's malloc(), so the body runs in a new process that preloads
 * least_malloc. */
static void with_least_malloc(const char *name, void (*body)(void)) {
  char *arguments[] = {"fault_tests", "--in-process", (char *)(uintptr_t)name, NULL};
  pid_t child;
  if (dlsym(RTLD_DEFAULT, "least_malloc_is_loaded") != NULL) {
    for (size_t size = 1; size < 100; ++size) {
      char *block = malloc(size);
      CHECK(block != NULL);
      *block = 0;
      CHECK_EQ((uintptr_t)block % 32, 16);
      free(block);
    }
    body();
    return;
  }
  CHECK(getenv("LD_PRELOAD") == NULL);
  /* Use a relative path, because LD_PRELOAD cannot contain a path with a space. */
  CHECK_EQ(chdir(LEAST_MALLOC_DIRECTORY), 0);
  CHECK_EQ(setenv("LD_PRELOAD", "./" LEAST_MALLOC, 1), 0);
  CHECK_EQ(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
  CHECK_EQ(end_of_child(child), 0);
}

static void use_it(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) threads[i] = start_thread(use_every_function_there, NULL);
  for (int i = 0; i < 4; ++i) join_thread(threads[i]);
}

/* Adds so many delegates and names that lists, slabs and name tables grow, and then frees
 * everything. */
static void grow(void) {
  enum { MANY = 20000 };
  static multicast_token tokens[MANY];
  multicast m = multicast_create();
  multicast_broadcaster names = multicast_broadcaster_create(NULL);
  int calls = 0;
  char name[32];
  for (int i = 0; i < MANY; ++i) {
    tokens[i] = add(m, counter(&calls));
    snprintf(name, sizeof name, "name %d", i);
    CHECK_OK(multicast_broadcaster_register(names, name, counter(&calls), NULL, NULL));
  }
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), MANY);
  for (int i = 0; i < MANY; i += 2) CHECK_OK(multicast_token_remove(tokens[i]));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), MANY / 2);
  CHECK_OK(multicast_destroy(m));
  CHECK_OK(multicast_broadcaster_destroy(names));
  CHECK(multicast_trim() >= 0);
}

static void use_and_grow(void) {
  use_it();
  grow();
}

TEST(least_alignment_that_malloc_may_have_is_enough) {
  with_least_malloc("least_alignment_that_malloc_may_have_is_enough", use_and_grow);
}
