/* SPDX-License-Identifier: MIT
 *
 * 03_remove: removes delegates while another thread invokes the multicast, and immediately frees
 * the delegates' contexts.
 *
 * One thread invokes a multicast without pause. At the same time, the main thread repeatedly adds a
 * delegate with a context from malloc(), removes it, and frees the context in the next statement.
 * The program needs no lock and no reference count: when multicast_remove_every() has returned
 * MULTICAST_OK, the delegate is not running on any thread, and never will again.
 *
 * Every context contains a mark, which is overwritten before the context is freed. If a delegate is
 * called with a freed context, or its context is freed during the call, the delegate detects that
 * the mark is gone. The program then prints an error and exits with status 1.
 *
 * Usage: 03_remove [COUNT]
 *
 * Prints (the number of calls and the time vary):
 *
 *     A thread invokes without pause. Meanwhile 100000 contexts are added, removed and freed.
 *     Calls that reached them: 3506140
 *     Calls after the removal: 0
 *     One takes, from malloc() to free(): 1.3 us
 */

#define _POSIX_C_SOURCE 200809L

#include <multicast.h>

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

enum { DEFAULT_COUNT = 100000, MOST_COUNT = 1000000000, AWAIT_EVERY = 1000, AWAIT_SECONDS = 60 };

/* ---- The delegates, called on the invoking thread ------------------------------------------- */

#define MARK_ALIVE UINT64_C(0x616C697665213F00)
#define MARK_FREED UINT64_C(0x6672656564213F00)

struct context {
  /* MARK_ALIVE ^ serial while the context may be used. The field is volatile, because compilers
   * would otherwise omit a store to memory that is freed immediately afterwards. */
  volatile uint64_t mark;
  volatile uint64_t serial;
  /* Whether the main thread is waiting for the first call. */
  bool awaited;
};

/* Written by the invoking thread, and read after it has ended. */
static struct {
  uint64_t permanent_calls;
  uint64_t context_calls;
  uint64_t freed_calls;
  uint64_t counted_calls;
  multicast_status end;
} seen;

static sem_t first_call;

/* The function of a delegate that stays until the end of the program. */
static void on_permanent(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context;
  (void)event;
  (void)payload;
  (void)size;
  seen.permanent_calls += 1;
}

/* The function of the delegates that are removed soon after being added. */
static void on_context(void *pointer, uint32_t event, const void *payload, size_t size) {
  struct context *context = pointer;
  (void)event;
  (void)payload;
  (void)size;
  seen.context_calls += 1;
  const uint64_t serial = context->serial;
  if (context->mark != (MARK_ALIVE ^ serial)) {
    seen.freed_calls += 1;
    return;
  }
  if (context->awaited) {
    context->awaited = false;
    sem_post(&first_call);
    /* Gives the main thread time to remove this delegate during this call. */
    sched_yield();
  }
  if (context->mark != (MARK_ALIVE ^ serial)) seen.freed_calls += 1;
}

static void *invoke_without_pause(void *argument) {
  const multicast *target = argument;
  for (;;) {
    int64_t called = multicast_invoke(*target, 0, NULL, 0);
    if (called < 0) {
      /* The main thread ends the loop by destroying the multicast, which makes its handle stale. */
      seen.end = (multicast_status)called;
      return NULL;
    }
    seen.counted_calls += (uint64_t)called;
  }
}

/* ---- The main thread ------------------------------------------------------------------------ */

static void fail(const char *what, const char *why) {
  fprintf(stderr, "03_remove: %s: %s\n", what, why);
  exit(EXIT_FAILURE);
}

static void must(const char *what, multicast_status status) {
  if (status != MULTICAST_OK) fail(what, multicast_status_message(status));
}

static void await_first_call(void) {
  struct timespec limit;
  if (clock_gettime(CLOCK_REALTIME, &limit) != 0) fail("clock_gettime", strerror(errno));
  limit.tv_sec += AWAIT_SECONDS;
  while (sem_timedwait(&first_call, &limit) != 0) {
    if (errno == ETIMEDOUT) fail("add", "the delegate was not called within a minute");
    if (errno != EINTR) fail("sem_timedwait", strerror(errno));
  }
}

static void add_remove_free(multicast target, uint64_t serial) {
  struct context *context = malloc(sizeof *context);
  if (context == NULL) fail("malloc", strerror(errno));
  context->mark = MARK_ALIVE ^ serial;
  context->serial = serial;
  context->awaited = serial % AWAIT_EVERY == 0;
  const bool await = context->awaited;

  multicast_delegate delegate = {on_context, context};
  must("add", multicast_add(target, delegate, NULL, NULL));
  /* The removal may come before any invocation has called the delegate. Now and then, wait for a
   * call first, so that some delegates are certain to be called. */
  if (await) await_first_call();
  must("remove", multicast_remove_every(target, delegate));

  context->mark = MARK_FREED;
  free(context);
}

/* Returns the time of the monotonic clock in seconds. */
static double now(void) {
  struct timespec time;
  if (clock_gettime(CLOCK_MONOTONIC, &time) != 0) fail("clock_gettime", strerror(errno));
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

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

static void finish_output(void) {
  if (fflush(stdout) != 0 || ferror(stdout)) fail("standard output", strerror(errno));
}

int main(int argc, char **argv) {
  uint64_t count = DEFAULT_COUNT;
  if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    printf("Usage: 03_remove [COUNT]\n\n"
           "Adds, removes and frees COUNT contexts (1 to %d, default: %d) while another thread\n"
           "invokes without pause, and checks that none is called after its removal.\n",
           MOST_COUNT, DEFAULT_COUNT);
    finish_output();
    return EXIT_SUCCESS;
  }
  if (argc > 2) fail(argv[2], "one argument too many; see --help");
  if (argc > 1) count = parse_count(argv[1]);
  if (count == 0) fail(argv[1], "not a number from 1 to 1000000000; see --help");

  if (sem_init(&first_call, 0, 0) != 0) fail("sem_init", strerror(errno));
  multicast target = multicast_create();
  if (target.id == 0) must("create", multicast_create_error());
  multicast_delegate permanent = {on_permanent, NULL};
  must("add", multicast_add(target, permanent, NULL, NULL));

  pthread_t invoker;
  int error = pthread_create(&invoker, NULL, invoke_without_pause, &target);
  if (error != 0) fail("pthread_create", strerror(error));

  printf("A thread invokes without pause. Meanwhile %" PRIu64
         " contexts are added, removed and freed.\n",
         count);
  const double begin = now();
  for (uint64_t serial = 0; serial < count; serial++) add_remove_free(target, serial);
  const double taken = now() - begin;

  must("destroy", multicast_destroy(target));
  error = pthread_join(invoker, NULL);
  if (error != 0) fail("pthread_join", strerror(error));
  sem_destroy(&first_call);

  if (seen.freed_calls != 0) {
    fprintf(stderr, "03_remove: %" PRIu64 " of %" PRIu64 " calls met a context that was freed\n",
            seen.freed_calls, seen.context_calls);
    return EXIT_FAILURE;
  }
  if (seen.end != MULTICAST_ERROR_INVALID_HANDLE) {
    fail("invoke", multicast_status_message(seen.end));
  }
  if (seen.counted_calls != seen.permanent_calls + seen.context_calls) {
    fail("invoke", "it counted other calls than the delegates did");
  }
  printf("Calls that reached them: %" PRIu64 "\n", seen.context_calls);
  printf("Calls after the removal: %" PRIu64 "\n", seen.freed_calls);
  printf("One takes, from malloc() to free(): %.1f us\n", taken * 1e6 / (double)count);
  finish_output();
  return EXIT_SUCCESS;
}
