/* SPDX-License-Identifier: MIT
 *
 * The common part of the programs in this folder. A worker thread sends numbers, and a delegate
 * receives them on the loop's thread. This file does not depend on the loop.
 *
 * The worker sends until the queue is destroyed, like a thread that knows nothing about
 * the loop. Therefore, `wake` may be running when the program finally destroys the queue.
 * */

#ifndef WORKER_H
#define WORKER_H

#include <multicast.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CALLS = 10000, BURST = 100, MOST_SECONDS = 60 };

struct worker {
  multicast numbers;
  pthread_t thread;
  pthread_t loop;   /* The thread that must make the calls. */
  uint32_t arrived; /* The number of calls. Used only on the thread of the loop. */
  uint32_t wrong;   /* The number of calls that were out of order or on another thread. */
};

static inline void must(bool is_done, const char *what) {
  if (is_done) return;
  fprintf(stderr, "failed: %s\n", what);
  exit(EXIT_FAILURE);
}

/* The delegate. Ignores numbers beyond the last expected number, because the worker continues to
 * send until the queue is destroyed. */
static inline void worker_receive(void *context, uint32_t event, const void *payload, size_t size) {
  struct worker *worker = (struct worker *)context;
  (void)event, (void)size;
  if (worker->arrived == CALLS) return;
  const bool is_next = *(const uint32_t *)payload == worker->arrived;
  if (!is_next || !pthread_equal(pthread_self(), worker->loop)) worker->wrong += 1;
  worker->arrived += 1;
}

static inline bool worker_is_done(const struct worker *worker) {
  return worker->arrived == CALLS;
}

/* Runs on the worker thread. After each burst, waits until all calls have been made. The queue is
 * then empty, so the first call of the next burst must wake the loop. The other calls in a burst
 * need not wake the loop. */
static inline void *worker_send(void *context) {
  const struct worker *worker = (const struct worker *)context;
  uint32_t number = 0;
  multicast_invocation how = multicast_invocation_default();
  how.payload = &number; /* The queue copies it. */
  how.size = sizeof number;
  /* Destroying the queue removes the delegate, so invocations then return 0. */
  while (multicast_invoke_with(worker->numbers, &how, NULL) == 1) {
    number += 1;
    how.flags = number % BURST == BURST - 1 ? MULTICAST_WAIT : 0;
  }
  return NULL;
}

/* Starts the worker. Must be called on the loop's thread. */
static inline void worker_start(struct worker *worker, multicast_queue queue) {
  alarm(MOST_SECONDS); /* Ends a program that hangs. */
  worker->arrived = worker->wrong = 0;
  worker->loop = pthread_self();
  worker->numbers = multicast_create();
  must(worker->numbers.id != 0, "multicast_create");
  multicast_delegate receiver = {worker_receive, worker};
  multicast_add_options options = multicast_add_options_default();
  options.queue = queue; /* Holds the calls until the loop's thread runs the queue. */
  must(multicast_add(worker->numbers, receiver, &options, NULL) == MULTICAST_OK, "multicast_add");
  must(pthread_create(&worker->thread, NULL, worker_send, worker) == 0, "pthread_create");
}

/* Must be called after the queue has been destroyed. Returns the program's exit status. */
static inline int worker_finish(struct worker *worker, const char *loop) {
  must(pthread_join(worker->thread, NULL) == 0, "pthread_join");
  must(multicast_destroy(worker->numbers) == MULTICAST_OK, "multicast_destroy");
  const bool is_right = worker->arrived == CALLS && worker->wrong == 0;
  if (is_right) {
    printf("%s: %u calls arrived in order on the loop's thread\n", loop, worker->arrived);
  } else {
    printf("%s: %u calls arrived, %u of them wrong\n", loop, worker->arrived, worker->wrong);
  }
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
