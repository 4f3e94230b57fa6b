/* SPDX-License-Identifier: MIT
 *
 * With libev, the queue's `wake` calls ev_async_send(), which is the only function of a loop that
 * any thread may call.
 *
 * libev may combine several calls to ev_async_send() into one callback. A callback makes only a few
 * of the queued calls, so that the loop's other watchers get their turn in between. The remaining
 * calls are not forgotten, because the queue calls `wake` again if a run leaves calls in the
 * queue. */

#include "worker.h"

#include <ev.h>

enum { CALLS_AT_A_TIME = 3 };

struct program {
  struct worker worker;
  multicast_queue queue;
  struct ev_loop *loop;
  ev_async async;
};

/* Runs on the worker's thread, or on the loop's thread if a run leaves calls in the queue. */
static void wake(void *context) {
  struct program *program = context;
  ev_async_send(program->loop, &program->async);
}

/* Runs on the loop's thread. */
static void on_wake(struct ev_loop *loop, ev_async *async, int events) {
  struct program *program = async->data;
  (void)events;
  must(multicast_queue_run(program->queue, CALLS_AT_A_TIME) >= 0, "multicast_queue_run");
  if (worker_is_done(&program->worker)) ev_break(loop, EVBREAK_ALL);
}

int main(void) {
  struct program program;
  program.loop = ev_loop_new(EVFLAG_AUTO);
  must(program.loop != NULL, "ev_loop_new");
  ev_async_init(&program.async, on_wake);
  program.async.data = &program;
  /* Start the watcher before creating the queue, because the first `wake` may come immediately. */
  ev_async_start(program.loop, &program.async);

  multicast_queue_options options = multicast_queue_options_default();
  options.wake = wake;
  options.wake_context = &program;
  program.queue = multicast_queue_create(&options);
  must(program.queue.id != 0, "multicast_queue_create");

  worker_start(&program.worker, program.queue);
  ev_run(program.loop, 0);

  /* The worker is still sending. Destroying the queue waits until a running `wake` has returned,
   * and no thread calls `wake` afterwards. */
  must(multicast_queue_destroy(program.queue) == MULTICAST_OK, "multicast_queue_destroy");
  /* No `wake` can run any more, so the objects that `wake` uses may be freed now. */
  ev_async_stop(program.loop, &program.async);
  ev_loop_destroy(program.loop);
  return worker_finish(&program.worker, "libev");
}
