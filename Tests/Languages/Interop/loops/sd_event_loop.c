/* SPDX-License-Identifier: MIT
 *
 * With sd-event, systemd's event loop, the loop watches the queue's descriptor. `wake` cannot be
 * used, because other threads must not call any function of a loop.
 *
 * The descriptor is readable exactly while calls are queued, and sd-event checks it in each
 * iteration, so a run may leave calls in the queue.
 */

#include "worker.h"

#include <sys/epoll.h>
#include <systemd/sd-event.h>

enum { CALLS_AT_A_TIME = 3 };

struct program {
  struct worker worker;
  multicast_queue queue;
};

static int on_readable(sd_event_source *source, int descriptor, uint32_t events, void *context) {
  struct program *program = context;
  (void)descriptor, (void)events; /* The descriptor need not be read. */
  must(multicast_queue_run(program->queue, CALLS_AT_A_TIME) >= 0, "multicast_queue_run");
  if (!worker_is_done(&program->worker)) return 0;
  return sd_event_exit(sd_event_source_get_event(source), 0);
}

int main(void) {
  struct program program;
  sd_event *loop = NULL;
  must(sd_event_new(&loop) >= 0, "sd_event_new");

  program.queue = multicast_queue_create(NULL);
  must(program.queue.id != 0, "multicast_queue_create");
  const int descriptor = multicast_queue_fd(program.queue);
  must(descriptor >= 0, "multicast_queue_fd");
  sd_event_source *source = NULL;
  must(sd_event_add_io(loop, &source, descriptor, EPOLLIN, on_readable, &program) >= 0,
       "sd_event_add_io");

  worker_start(&program.worker, program.queue);
  must(sd_event_loop(loop) >= 0, "sd_event_loop");

  /* Stop watching before destroying the queue, which closes the descriptor. The system may then
   * reuse the same descriptor for another file. */
  sd_event_source_unref(source);
  /* The worker is still sending, but it does not use the loop. */
  must(multicast_queue_destroy(program.queue) == MULTICAST_OK, "multicast_queue_destroy");
  sd_event_unref(loop);
  return worker_finish(&program.worker, "sd-event");
}
