/* SPDX-License-Identifier: MIT
 *
 * With libuv, the queue's `wake` calls uv_async_send(), which is the only function of a loop that
 * any thread may call.
 *
 * libuv may combine several calls to uv_async_send() into one callback. A callback makes only a few
 * of the queued calls, so that the loop's timers and sockets get their turn in between. The
 * remaining calls are not forgotten, because the queue calls `wake` again if a run leaves calls in
 * the queue. */

#include "worker.h"

#include <uv.h>

enum { CALLS_AT_A_TIME = 3 };

struct program {
  struct worker worker;
  multicast_queue queue;
  uv_async_t async;
};

/* Runs on the worker's thread, or on the loop's thread if a run leaves calls in the queue. */
static void wake(void *context) {
  uv_async_send(context);
}

/* Runs on the loop's thread. */
static void on_wake(uv_async_t *async) {
  struct program *program = async->data;
  must(multicast_queue_run(program->queue, CALLS_AT_A_TIME) >= 0, "multicast_queue_run");
  if (!worker_is_done(&program->worker)) return;

  /* The worker is still sending. Destroying the queue waits until a running `wake` has returned,
   * and no thread calls `wake` afterwards. */
  must(multicast_queue_destroy(program->queue) == MULTICAST_OK, "multicast_queue_destroy");
  /* No `wake` can run any more, so the handle may be closed now. Closing the loop's last handle
   * makes uv_run() return. */
  uv_close((uv_handle_t *)async, NULL);
}

int main(void) {
  struct program program;
  uv_loop_t loop;
  must(uv_loop_init(&loop) == 0, "uv_loop_init");
  /* Initialize the handle before creating the queue, because the first `wake` may come
   * immediately. */
  must(uv_async_init(&loop, &program.async, on_wake) == 0, "uv_async_init");
  program.async.data = &program;

  multicast_queue_options options = multicast_queue_options_default();
  options.wake = wake;
  options.wake_context = &program.async;
  program.queue = multicast_queue_create(&options);
  must(program.queue.id != 0, "multicast_queue_create");

  worker_start(&program.worker, program.queue);
  must(uv_run(&loop, UV_RUN_DEFAULT) == 0, "uv_run");
  must(uv_loop_close(&loop) == 0, "uv_loop_close");
  return worker_finish(&program.worker, "libuv");
}
