/* Calls one function of the library the way a real-time thread would. RealtimeSanitizer ends the
 * program if the function takes a lock, allocates memory or makes a system call. */

#include <multicast.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void __rtsan_ensure_initialized(void);
void __rtsan_realtime_enter(void);
void __rtsan_realtime_exit(void);

static multicast target;
static multicast_queue queue;
static multicast_token token;
static multicast_lifetime lifetime;
static multicast_broadcaster broadcaster;

static void ignore(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)event, (void)payload, (void)size;
}

static bool visit(void *context, const multicast_delegate *delegate) {
  (void)context, (void)delegate;
  return true;
}

static void must(bool is_so, const char *what) {
  if (is_so) return;
  fprintf(stderr, "%s\n", what);
  exit(2);
}

/* ---- Functions that the header marks "yes" or "prepared" ------------------------------------- */

static const char payload[256];

/* calls.py generates `calls.inc`, which contains a ROW(name, expression) for each such function. An
 * additional row calls a function that frees memory, which the sanitizer must
 * detect. */
#define ROW(name, expression) \
  static void call_##name(void) { must((expression), #expression); }
#include "calls.inc"
#undef ROW

#define ROW(name, expression) {#name, call_##name},
static const struct {
  const char *name;
  void (*call)(void);
} calls[] = {
#include "calls.inc"
};

static void prepare(void) {
  const multicast_delegate delegate = {ignore, NULL};
  multicast_add_options options = multicast_add_options_default();
  multicast_queue_options reserving = multicast_queue_options_default();
  reserving.payload_size = sizeof payload;
  target = multicast_create();
  queue = multicast_queue_create(&reserving);
  lifetime = multicast_lifetime_create();
  broadcaster = multicast_broadcaster_create(NULL);
  must(multicast_add(target, delegate, NULL, NULL) == MULTICAST_OK, "add");
  options.queue = queue;
  must(multicast_add(target, delegate, &options, &token) == MULTICAST_OK, "add");
  must(multicast_broadcaster_register(broadcaster, "name", delegate, NULL, NULL) == MULTICAST_OK,
       "register");
  must(multicast_thread_prepare() == MULTICAST_OK, "thread_prepare");
  must(multicast_invoke(target, 1, payload, sizeof payload) == 2, "invoke");
  must(multicast_broadcaster_notify(broadcaster, "name", 1, payload, 32) == 1, "notify");
  must(multicast_queue_run(queue, 0) == 1, "run");
  must(multicast_invoke(target, 1, payload, sizeof payload) == 2, "invoke again");
}

int main(int argc, char **argv) {
  size_t i;
  const size_t count = sizeof calls / sizeof *calls;
  __rtsan_ensure_initialized();
  if (argc != 2) {
    for (i = 0; i < count; ++i) puts(calls[i].name);
    return 0;
  }
  prepare();
  for (i = 0; i < count && strcmp(calls[i].name, argv[1]) != 0; ++i) continue;
  if (i == count) {
    fprintf(stderr, "%s: no such call\n", argv[1]);
    return 2;
  }
  __rtsan_realtime_enter();
  calls[i].call();
  __rtsan_realtime_exit();
  return 0;
}
