#define _GNU_SOURCE
#include "watchdog.h"

#include <pthread.h>
#include <time.h>

#include "actor.h"
#include "failure.h"

static int patience;

static void *watch(void *unused) {
  static progress known;
  const struct timespec second = {1, 0};
  for (;;) {
    nanosleep(&second, NULL);
    if (actor_that_hangs(&known, patience) >= 0) {
      actors_print(stderr);
      failed(__FILE__, __LINE__, "every thread makes progress", "one above has made none for %d s",
             patience);
    }
  }
  return unused;
}

void watchdog_start(int patience_s) {
  pthread_t thread;
  patience = patience_s;
  MUST(pthread_create(&thread, NULL, watch, NULL) == 0, "a thread");
  pthread_detach(thread);
}
