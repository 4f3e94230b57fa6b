/* SPDX-License-Identifier: MIT
 *
 * 10_on_demand: a source that runs only while someone listens.
 *
 * A clock ticks on its own thread. The thread uses resources, so it exists only while the clock has
 * listeners: `listeners_changed` starts it when the first listener is added, and stops it when the
 * last one has been removed. It does not matter how a listener is removed. In this program, the
 * first listener is removed explicitly, the second by the end of its window's lifetime, and the
 * last by the destruction of the clock.
 *
 * The library calls `listeners_changed` without holding a lock. The function may therefore wait for
 * the clock's thread, even if that thread is calling a listener. If a listener removes itself
 * during such a call, `listeners_changed` is called on the clock's thread, which must not wait for
 * itself.
 *
 * Prints the text in expected/10_on_demand.txt.
 */

#include <multicast.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static void must(const char *what, multicast_status status) {
  if (status == MULTICAST_OK) return;
  fprintf(stderr, "10_on_demand: %s: %s\n", what, multicast_status_message(status));
  exit(EXIT_FAILURE);
}

/* ---- The clock ------------------------------------------------------------------------------ */

enum { TICKS = 3 }; /* The clock pauses after this many ticks. */

struct clock {
  multicast listeners;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool is_stopping;
  int ticks; /* The number of ticks since the thread was started; the main thread waits for them. */
};

/* The function of the thread. A real clock would sleep between two ticks. */
static void *clock_run(void *context) {
  struct clock *clock = context;
  pthread_mutex_lock(&clock->mutex);
  while (!clock->is_stopping) {
    int tick = clock->ticks + 1;
    pthread_mutex_unlock(&clock->mutex);
    multicast_invoke(clock->listeners, 0, &tick, sizeof tick);
    pthread_mutex_lock(&clock->mutex);
    clock->ticks = tick;
    pthread_cond_broadcast(&clock->changed);
    while (clock->ticks == TICKS && !clock->is_stopping) {
      pthread_cond_wait(&clock->changed, &clock->mutex);
    }
  }
  pthread_mutex_unlock(&clock->mutex);
  return NULL;
}

/* Called when the first listener has been added or the last one has been removed. */
static void clock_listeners_changed(void *context, multicast target, bool has_listeners) {
  struct clock *clock = context;
  (void)target;
  if (has_listeners) {
    puts("  the clock starts");
    clock->is_stopping = false;
    clock->ticks = 0;
    if (pthread_create(&clock->thread, NULL, clock_run, clock) != 0) abort();
    return;
  }
  puts("  the clock stops");
  pthread_mutex_lock(&clock->mutex);
  clock->is_stopping = true;
  pthread_cond_broadcast(&clock->changed);
  pthread_mutex_unlock(&clock->mutex);
  if (pthread_equal(pthread_self(), clock->thread)) {
    pthread_detach(clock->thread);
  } else {
    pthread_join(clock->thread, NULL);
  }
}

static void clock_wait_for_ticks(struct clock *clock) {
  pthread_mutex_lock(&clock->mutex);
  while (clock->ticks < TICKS) pthread_cond_wait(&clock->changed, &clock->mutex);
  pthread_mutex_unlock(&clock->mutex);
}

/* ---- Listeners ------------------------------------------------------------------------------ */

struct listener {
  const char *name;
  int heard;
};

static void listener_tick(void *context, uint32_t event, const void *payload, size_t size) {
  struct listener *listener = context;
  (void)event, (void)payload, (void)size;
  listener->heard += 1;
}

static void clock_add(struct clock *clock, struct listener *listener,
                      const multicast_add_options *options) {
  multicast_delegate delegate = {listener_tick, listener};
  printf("%s listens\n", listener->name);
  must("add", multicast_add(clock->listeners, delegate, options, NULL));
}

/* ---- Main program --------------------------------------------------------------------------- */

int main(void) {
  static struct clock clock = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                               .changed = PTHREAD_COND_INITIALIZER};
  static struct listener display = {"the display", 0}, window = {"the window", 0};
  multicast_create_options options = multicast_create_options_default();
  options.label = "clock";
  options.context = &clock;
  options.listeners_changed = clock_listeners_changed;
  clock.listeners = multicast_create_with(&options);
  if (clock.listeners.id == 0) must("create", multicast_create_error());
  puts("a clock without listeners");

  clock_add(&clock, &display, NULL);
  clock_wait_for_ticks(&clock);
  multicast_lifetime lifetime = multicast_lifetime_create();
  multicast_add_options of_window = multicast_add_options_default();
  of_window.lifetime = lifetime;
  clock_add(&clock, &window, &of_window);

  puts("the display is removed");
  multicast_delegate delegate = {listener_tick, &display};
  must("remove", multicast_remove_every(clock.listeners, delegate));
  printf("  it has heard %d ticks\n", display.heard);

  puts("the window is closed");
  must("end", multicast_lifetime_end(lifetime));
  printf("  it has heard %d ticks\n", window.heard);

  display.heard = 0;
  clock_add(&clock, &display, NULL);
  clock_wait_for_ticks(&clock);
  puts("the clock is destroyed");
  must("destroy", multicast_destroy(clock.listeners));
  printf("the display has heard %d ticks more\n", display.heard);
  if (fflush(stdout) != 0 || ferror(stdout)) {
    perror("10_on_demand: standard output");
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
