/* SPDX-License-Identifier: MIT
 *
 * With GLib and GTK, a GSource runs a queue. The queue's `wake` calls g_main_context_wakeup(),
 * which may be called on any thread.
 *
 * Before and after each poll(), GLib asks a GSource whether it is ready. The source then asks the
 * queue whether calls are queued, so it needs no separate state, which could be out of date. `wake`
 * could also call g_idle_add(), but this would allocate memory each time. */

#include "worker.h"

#include <glib.h>

typedef struct {
  GSource base;
  multicast_queue queue;
} QueueSource;

static gboolean queue_source_check(GSource *source) {
  /* With the time limit 0, multicast_queue_wait() returns the number of queued calls and does not
   * wait. */
  return multicast_queue_wait(((QueueSource *)source)->queue, 0) > 0;
}

static gboolean queue_source_prepare(GSource *source, gint *timeout) {
  *timeout = -1; /* poll() may sleep until g_main_context_wakeup() ends it. */
  return queue_source_check(source);
}

static gboolean queue_source_dispatch(GSource *source, GSourceFunc callback, gpointer data) {
  /* Make only the calls that are queued now, so that the loop's other sources get their turn. */
  must(multicast_queue_run(((QueueSource *)source)->queue, 0) >= 0, "multicast_queue_run");
  return callback(data);
}

static GSourceFuncs queue_source_functions = {
    .prepare = queue_source_prepare,
    .check = queue_source_check,
    .dispatch = queue_source_dispatch,
};

/* Runs on the worker's thread, or on the loop's thread if a run leaves calls in the queue. */
static void wake(void *context) {
  g_main_context_wakeup(context);
}

struct program {
  struct worker worker;
  GMainLoop *loop;
};

/* Called after each run of the queue. */
static gboolean calls_were_made(gpointer data) {
  struct program *program = data;
  if (worker_is_done(&program->worker)) g_main_loop_quit(program->loop);
  return G_SOURCE_CONTINUE;
}

int main(void) {
  struct program program;
  GMainContext *context = g_main_context_new(); /* NULL would be the main thread's context. */
  program.loop = g_main_loop_new(context, FALSE);

  multicast_queue_options options = multicast_queue_options_default();
  options.wake = wake;
  options.wake_context = context;
  multicast_queue queue = multicast_queue_create(&options);
  must(queue.id != 0, "multicast_queue_create");

  GSource *source = g_source_new(&queue_source_functions, sizeof(QueueSource));
  ((QueueSource *)source)->queue = queue;
  g_source_set_callback(source, calls_were_made, &program, NULL);
  g_source_attach(source, context);

  worker_start(&program.worker, queue);
  g_main_loop_run(program.loop);

  g_source_destroy(source);
  g_source_unref(source);
  /* The worker is still sending. Destroying the queue waits until a running `wake` has returned,
   * and no thread calls `wake` afterwards. */
  must(multicast_queue_destroy(queue) == MULTICAST_OK, "multicast_queue_destroy");
  /* No `wake` can run any more, so the objects that `wake` uses may be freed now. */
  g_main_loop_unref(program.loop);
  g_main_context_unref(context);
  return worker_finish(&program.worker, "GLib");
}
