/* SPDX-License-Identifier: MIT
 *
 * 11_trace: a watch whose functions are called after each call, and after each slow call.
 *
 * The rest of the program does not have to know about the watch. While no watch is set, invocations
 * take no extra time. To draw a timeline of a program that sets no watch, see multicast-trace in
 * TRACE.md.
 *
 * Prints the text in expected/11_trace.txt.
 */

#define _POSIX_C_SOURCE 200809L

#include <multicast.h>

#include <stdio.h>
#include <time.h>

static void store(void *context, uint32_t event, const void *payload, size_t size) {
  const struct timespec disk = {0, 30000000};
  (void)context, (void)event, (void)payload, (void)size;
  nanosleep(&disk, NULL);
}

/* The watch's functions tell_slow() and tell_call() run on the thread that has made the call, after
 * the call has returned. A removal that waits for the call also waits for these functions. */
static void tell_slow(void *context, multicast_token token, const char *label, uint64_t took_ns) {
  (void)context, (void)token;
  printf("%s took 20 ms or more: %s\n", label, took_ns >= 20000000 ? "yes" : "no");
}

static void tell_call(void *context, multicast_token token, uint32_t event, uint64_t took_ns) {
  (void)token, (void)took_ns;
  printf("call %d, of event %u, has returned\n", ++*(int *)context, (unsigned)event);
}

int main(void) {
  const multicast all = {0};
  const multicast readings = multicast_create();
  const multicast_delegate archive = {store, NULL};
  multicast_add_options options = multicast_add_options_default();
  multicast_watch watch = multicast_watch_default();
  int calls = 0;

  options.label = "archive";
  if (multicast_add(readings, archive, &options, NULL) != MULTICAST_OK) return 1;

  watch.context = &calls;
  watch.slow_ns = 20000000;
  watch.slow = tell_slow;
  watch.called = tell_call;
  if (multicast_set_watch(all, &watch) != MULTICAST_OK) return 1;
  multicast_invoke(readings, 1, NULL, 0);
  multicast_invoke(readings, 2, NULL, 0);

  /* From here on, none of the watch's functions will run, so their context may be freed. */
  if (multicast_set_watch(all, NULL) != MULTICAST_OK) return 1;
  multicast_invoke(readings, 3, NULL, 0);
  printf("calls that the watch was told of: %d\n", calls);
  return multicast_destroy(readings) == MULTICAST_OK && fflush(stdout) == 0 ? 0 : 1;
}
