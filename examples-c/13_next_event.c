/* SPDX-License-Identifier: MIT
 *
 * 13_next_event: waits for the next event of a multicast, with a timeout.
 *
 * The main thread wants an answer from a worker. It starts a job, and the worker invokes a
 * multicast when the job is done. The answer must not be missed if it arrives before the main
 * thread begins to wait, so the steps are in this order:
 *
 *     1. Add a delegate with a queue and MULTICAST_ONCE. From here on, no event is missed.
 *     2. Start the job.
 *     3. Call multicast_queue_wait(), which sleeps until a call is queued or the time is up.
 *     4. Call multicast_queue_run(), which calls the delegate. The delegate copies the payload.
 *     5. Destroy the queue, which also removes the delegate if it is still there.
 *
 * Each wait has its own queue, with room for one call. MULTICAST_ONCE ensures that no second event
 * is queued while the first one waits, and that the call removes the delegate. The payload is the
 * queue's copy, which is valid only during the call in step 4.
 *
 * An event that arrives after a timeout in step 3 but before step 5 is lost, as if it had arrived
 * later.
 *
 * Prints the text in expected/13_next_event.txt.
 */

#define _POSIX_C_SOURCE 200809L

#include <multicast.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MILLISECOND UINT64_C(1000000)
#define MINUTE (UINT64_C(60000) * MILLISECOND)

static void fail(const char *what, const char *why) {
  fprintf(stderr, "13_next_event: %s: %s\n", what, why);
  exit(EXIT_FAILURE);
}

static void must(const char *what, multicast_status status) {
  if (status != MULTICAST_OK) fail(what, multicast_status_message(status));
}

/* ---- The protocol --------------------------------------------------------------------------- */

/* The events of a download. */
enum { DOWNLOAD_PROGRESS, DOWNLOAD_DONE };

/* The payload of both events. */
struct report {
  uint32_t file;
  uint64_t bytes;
};

/* ---- The next event ------------------------------------------------------------------------- */

struct next_event {
  multicast_queue queue;
  bool has_come;
  struct report report;
};

/* Called by multicast_queue_run(), on the thread that waits. */
static void next_event_keep(void *context, uint32_t event, const void *payload, size_t size) {
  struct next_event *next = context;
  (void)event;
  if (size != sizeof next->report) fail("payload", "wrong size");
  memcpy(&next->report, payload, size);
  next->has_come = true;
}

/* Begins to wait for `event`. */
static void next_event_begin(struct next_event *next, multicast source, uint32_t event) {
  multicast_queue_options room = multicast_queue_options_default();
  room.capacity = 1;
  next->queue = multicast_queue_create(&room);
  if (next->queue.id == 0) must("queue_create", multicast_create_error());
  next->has_come = false;

  multicast_delegate delegate = {next_event_keep, next};
  multicast_add_options options = multicast_add_options_default();
  options.queue = next->queue;
  options.flags = MULTICAST_ONCE;
  options.events = UINT64_C(1) << event;
  must("add", multicast_add(source, delegate, &options, NULL));
}

/* Ends the wait. Returns whether the event arrived in time. */
static bool next_event_end(struct next_event *next, uint64_t timeout_ns) {
  int64_t waiting = multicast_queue_wait(next->queue, timeout_ns);
  if (waiting < 0 && waiting != MULTICAST_ERROR_TIMEOUT) {
    fail("queue_wait", multicast_status_message(waiting));
  }
  if (waiting > 0 && multicast_queue_run(next->queue, 1) != 1) fail("queue_run", "no call");
  must("queue_destroy", multicast_queue_destroy(next->queue));
  return next->has_come;
}

/* ---- The worker ----------------------------------------------------------------------------- */

struct download {
  multicast told;
  uint32_t file;
  uint64_t bytes;
};

static void download_tell(const struct download *download, uint32_t event, uint64_t bytes) {
  struct report report = {download->file, bytes};
  int64_t told = multicast_invoke(download->told, event, &report, sizeof report);
  if (told < 0) fail("invoke", multicast_status_message(told));
}

static void *download_work(void *argument) {
  const struct download *download = argument;
  for (int part = 1; part <= 4; part++) {
    download_tell(download, DOWNLOAD_PROGRESS, download->bytes * (uint64_t)part / 4);
  }
  download_tell(download, DOWNLOAD_DONE, download->bytes);
  return NULL;
}

/* ---- Main program --------------------------------------------------------------------------- */

int main(void) {
  multicast told = multicast_create();
  if (told.id == 0) must("create", multicast_create_error());
  struct next_event first, done, in_vain;
  next_event_begin(&first, told, DOWNLOAD_PROGRESS);
  next_event_begin(&done, told, DOWNLOAD_DONE);

  struct download download = {told, 7, 4096};
  pthread_t worker;
  int error = pthread_create(&worker, NULL, download_work, &download);
  if (error != 0) fail("pthread_create", strerror(error));
  if (!next_event_end(&first, MINUTE)) fail("progress", "did not come");
  printf("The first progress: %" PRIu64 " bytes of file %" PRIu32 ".\n", first.report.bytes,
         first.report.file);
  if (!next_event_end(&done, MINUTE)) fail("end", "did not come");
  printf("Done: %" PRIu64 " bytes.\n", done.report.bytes);
  error = pthread_join(worker, NULL);
  if (error != 0) fail("pthread_join", strerror(error));

  next_event_begin(&in_vain, told, DOWNLOAD_DONE);
  printf("Another one: %s.\n", next_event_end(&in_vain, 20 * MILLISECOND) ? "came" : "not in time");
  printf("Delegates that are left: %" PRId64 ".\n", multicast_count(told));
  must("destroy", multicast_destroy(told));
  if (fflush(stdout) != 0 || ferror(stdout)) fail("standard output", strerror(errno));
  return EXIT_SUCCESS;
}
