/* SPDX-License-Identifier: MIT
 *
 * 09_request: a worker thread asks the delegates of the main loop, and waits for the answer.
 *
 * Two stores belong to the main thread. They answer requests on that thread, through the main
 * loop's queue. A worker thread asks how many units of an article they have in stock. The worker
 * uses MULTICAST_WAIT, so the invocation returns when both stores have answered or the time is up.
 *
 * When the time is up, the request may still be waiting in the queue, or a store may be using it.
 * The request must therefore not be on the worker's stack. The program allocates it with malloc()
 * and counts the references to it:
 *
 *     the worker    has one reference, and drops it when it no longer needs the answer
 *     the library   receives one from `copy`, and drops it in `release` after the last queued call
 *
 * Dropping the last reference frees the request. The `copy` function does not copy the request, but
 * returns it. The worker reads the answer only if all calls have been made, so that no store is
 * still writing to it. The answer is a part of the request, not a variable of the worker.
 *
 * The second request is made while the main loop is busy. The worker's wait times out, and the
 * worker continues. Later, the stores handle the request although nobody is waiting for it any
 * more, and the request is freed.
 *
 * Prints the text in expected/09_request.txt.
 */

#define _POSIX_C_SOURCE 200809L

#include <multicast.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MILLISECOND UINT64_C(1000000)
#define MINUTE (UINT64_C(60000) * MILLISECOND)

static void fail(const char *what, const char *why) {
  fprintf(stderr, "09_request: %s: %s\n", what, why);
  exit(EXIT_FAILURE);
}

static void must(const char *what, multicast_status status) {
  if (status != MULTICAST_OK) fail(what, multicast_status_message(status));
}

/* ---- The protocols -------------------------------------------------------------------------- */

/* The protocol of the stores. */
enum { COUNT_ARTICLE }; /* The payload is a request. */

/* The protocol of the main loop. Its events have no payload. */
enum { COMMAND_BE_BUSY, COMMAND_QUIT };

/* ---- The request ---------------------------------------------------------------------------- */

struct request {
  int references;
  char article[16];
  /* The answer, to which each store adds. Only the main thread writes to it. */
  uint64_t found;
};

static struct {
  int made;
  int freed;
} requests;

static struct request *request_create(const char *article) {
  struct request *request = calloc(1, sizeof *request);
  if (request == NULL) fail("request", strerror(errno));
  request->references = 1;
  snprintf(request->article, sizeof request->article, "%s", article);
  __atomic_add_fetch(&requests.made, 1, __ATOMIC_RELAXED);
  return request;
}

/* The `copy` function of the invocation. The worker calls it before the first call is queued. */
static const void *request_retain(const void *payload, size_t size) {
  struct request *request = (struct request *)payload;
  (void)size;
  __atomic_add_fetch(&request->references, 1, __ATOMIC_RELAXED);
  return request;
}

/* The `release` function of the invocation. It runs on the thread on which the last call has
 * returned. */
static void request_drop(const void *payload, size_t size) {
  struct request *request = (struct request *)payload;
  (void)size;
  if (__atomic_sub_fetch(&request->references, 1, __ATOMIC_ACQ_REL) == 0) {
    free(request);
    __atomic_add_fetch(&requests.freed, 1, __ATOMIC_RELAXED);
  }
}

/* ---- The stores, called on the main thread -------------------------------------------------- */

struct store {
  const char *name;
  uint64_t apples;
  uint64_t pears;
};

static void store_count(void *context, uint32_t event, const void *payload, size_t size) {
  const struct store *store = context;
  struct request *request = (struct request *)payload;
  (void)event;
  (void)size;
  const uint64_t here = strcmp(request->article, "apples") == 0 ? store->apples : store->pears;
  request->found += here;
  printf("  %s: %" PRIu64 " %s\n", store->name, here, request->article);
}

/* ---- The main loop -------------------------------------------------------------------------- */

struct program {
  multicast_queue queue;
  multicast stores;
  multicast commands;
  sem_t work_has_begun;
  sem_t work_may_end;
  bool is_over;
};

static void await(sem_t *semaphore) {
  while (sem_wait(semaphore) != 0) {
    if (errno != EINTR) fail("sem_wait", strerror(errno));
  }
}

static void program_obey(void *context, uint32_t event, const void *payload, size_t size) {
  struct program *program = context;
  (void)payload;
  (void)size;
  switch (event) {
    case COMMAND_BE_BUSY:
      puts("The main loop is busy.");
      sem_post(&program->work_has_begun);
      await(&program->work_may_end);
      puts("The main loop goes on.");
      break;
    case COMMAND_QUIT: program->is_over = true; break;
    default: break;
  }
}

static void program_run(struct program *program) {
  while (!program->is_over) {
    int64_t waiting = multicast_queue_wait(program->queue, MULTICAST_FOREVER);
    if (waiting < 0) fail("queue_wait", multicast_status_message(waiting));
    int64_t made = multicast_queue_run(program->queue, 0);
    if (made < 0) fail("queue_run", multicast_status_message(made));
  }
}

/* ---- The worker ----------------------------------------------------------------------------- */

/* Returns whether all stores have answered in time. */
static bool ask(multicast stores, struct request *request, uint64_t timeout_ns) {
  multicast_invocation invocation = multicast_invocation_default();
  invocation.flags = MULTICAST_WAIT;
  invocation.event = COUNT_ARTICLE;
  invocation.payload = request;
  invocation.size = sizeof *request;
  invocation.copy = request_retain;
  invocation.release = request_drop;
  invocation.timeout_ns = timeout_ns;
  multicast_outcome outcome = multicast_outcome_default();
  int64_t asked = multicast_invoke_with(stores, &invocation, &outcome);
  if (asked == MULTICAST_ERROR_TIMEOUT) return false;
  if (asked < 0) fail("invoke_with", multicast_status_message(asked));
  /* Calls may be missing even if the time is not up: the queue may have refused them or been
   * cleared or destroyed, or a store may have been removed. */
  return outcome.refused == 0 && outcome.finished == outcome.queued;
}

static void find_out(multicast stores, const char *article, uint64_t timeout_ns) {
  struct request *request = request_create(article);
  printf("The worker asks for %s.\n", article);
  if (ask(stores, request, timeout_ns)) {
    printf("The worker was told: %" PRIu64 " %s.\n", request->found, article);
  } else {
    /* The answer must not be read, since a store may be writing to it. */
    printf("The worker got no answer about %s in time.\n", article);
  }
  request_drop(request, sizeof *request);
}

static void command(const struct program *program, uint32_t event) {
  int64_t told = multicast_invoke(program->commands, event, NULL, 0);
  if (told < 0) fail("invoke", multicast_status_message(told));
}

static void *work(void *argument) {
  struct program *program = argument;
  find_out(program->stores, "apples", MINUTE);
  command(program, COMMAND_BE_BUSY);
  await(&program->work_has_begun);
  find_out(program->stores, "pears", 50 * MILLISECOND);
  sem_post(&program->work_may_end);
  command(program, COMMAND_QUIT);
  return NULL;
}

/* ---- Main program --------------------------------------------------------------------------- */

static multicast create_on(multicast_queue queue, multicast_function function,
                           void *const *contexts, int count) {
  multicast created = multicast_create();
  if (created.id == 0) must("create", multicast_create_error());
  multicast_add_options options = multicast_add_options_default();
  options.queue = queue;
  for (int i = 0; i < count; i++) {
    multicast_delegate delegate = {function, contexts[i]};
    must("add", multicast_add(created, delegate, &options, NULL));
  }
  return created;
}

int main(void) {
  struct program program = {.is_over = false};
  struct store cellar = {"cellar", 30, 4};
  struct store shelf = {"shelf", 12, 1};
  if (sem_init(&program.work_has_begun, 0, 0) != 0 || sem_init(&program.work_may_end, 0, 0) != 0) {
    fail("sem_init", strerror(errno));
  }
  program.queue = multicast_queue_create(NULL);
  if (program.queue.id == 0) must("queue_create", multicast_create_error());
  program.stores = create_on(program.queue, store_count, (void *[]){&cellar, &shelf}, 2);
  program.commands = create_on(program.queue, program_obey, (void *[]){&program}, 1);

  pthread_t worker;
  int error = pthread_create(&worker, NULL, work, &program);
  if (error != 0) fail("pthread_create", strerror(error));
  program_run(&program);
  error = pthread_join(worker, NULL);
  if (error != 0) fail("pthread_join", strerror(error));

  must("destroy", multicast_destroy(program.stores));
  must("destroy", multicast_destroy(program.commands));
  must("queue_destroy", multicast_queue_destroy(program.queue));
  sem_destroy(&program.work_has_begun);
  sem_destroy(&program.work_may_end);
  printf("requests: %d; freed: %d\n", requests.made, requests.freed);
  if (fflush(stdout) != 0 || ferror(stdout)) fail("standard output", strerror(errno));
  return EXIT_SUCCESS;
}
