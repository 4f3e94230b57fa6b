#define _GNU_SOURCE
#include "waker.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "actor.h"
#include "atomics.h"
#include "failure.h"
#include "kept.h"

enum { ALIVE = 0x600D3A4E, ENDED = 0x0DEAD3A4 };

struct waker {
  uint32_t state;
  uint32_t word; /* not atomic, so that the thread sanitizer detects races */
  int32_t running, calls;
  uint64_t queue;
  bool is_quiet;
  waker *next; /* of `first` */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static waker *first;
static void (*wake_body)(void);

void set_wake_body(void (*body)(void)) { wake_body = body; }

static void check_alive(waker *w, const char *when) {
  MUST(LOAD(w->state) == ALIVE, "waker %s, state 0x%x", when, w->state);
  MUST(w->word == (uint32_t)(uintptr_t)w, "waker overwritten %s", when);
}

static void on_wake(void *argument) {
  waker *w = argument;
  check_alive(w, "at wake");
  ADD(w->running, 1);
  ADD(w->calls, 1);
  ++actor_current()->releases; /* the thread must not end here */
  if (!w->is_quiet && one_in(20)) sched_yield();
  if (!w->is_quiet) wake_body();
  --actor_current()->releases;
  check_alive(w, "at the end of wake");
  ADD(w->running, -1);
}

waker *waker_make(multicast_queue_options *options) {
  waker *w = calloc(1, sizeof *w);
  MUST(w != NULL, "memory");
  w->state = ALIVE;
  w->word = (uint32_t)(uintptr_t)w;
  options->wake = on_wake;
  options->wake_context = w;
  return w;
}

void waker_make_quiet(waker *w) { w->is_quiet = true; }

void waker_belongs_to(waker *w, multicast_queue queue) {
  STORE(w->queue, queue.id);
  pthread_mutex_lock(&mutex);
  w->next = first;
  first = w;
  pthread_mutex_unlock(&mutex);
}

int32_t waker_calls(const waker *w) { return LOAD(w->calls); }

static void end(waker *w) {
  uint32_t was = ALIVE;
  MUST(LOAD(w->running) == 0, "wakes at the end of a queue: %d", w->running);
  MUST(CHANGE(w->state, &was, ENDED), "waker ends twice, state 0x%x", was);
  w->word = ENDED;
  keep_for_a_while(w, sizeof *w);
}

/* Removes the waker of a queue, or any waker if `queue` is 0, from the list and returns it. */
static waker *take(uint64_t queue) {
  waker **place, *found = NULL;
  pthread_mutex_lock(&mutex);
  for (place = &first; *place != NULL; place = &(*place)->next) {
    if (queue != 0 && LOAD((*place)->queue) != queue) continue;
    found = *place;
    *place = found->next;
    break;
  }
  pthread_mutex_unlock(&mutex);
  return found;
}

void queue_is_finished(multicast_queue queue) {
  waker *w = queue.id != 0 ? take(queue.id) : NULL;
  if (w != NULL) end(w);
}

void wakers_end(void) {
  waker *w;
  while ((w = take(0)) != NULL) end(w);
}
