/* Calls one function of the library as a thread with deadlines does, under RealtimeSanitizer, which
 * ends the program at a lock, at an allocation and at a system call. */

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

/* ---- The calls: what the header says "yes" or "prepared" of ---------------------------------- */

static const char payload[32];

static void call_invoke(void) { must(multicast_invoke(target, 1, payload, 32) == 2, "invoke"); }
static void call_visit(void) { must(multicast_visit(target, visit, NULL) == 2, "visit"); }
static void call_notify(void) {
  must(multicast_broadcaster_notify(broadcaster, "name", 1, payload, 32) == 1, "notify");
}
static void call_deliver(void) {
  must(multicast_broadcaster_deliver(broadcaster, "name", 1, payload, 32) == 1, "deliver");
}
static void call_run(void) {
  must(multicast_invoke(target, 1, payload, 32) == 2, "invoke");
  must(multicast_queue_run(queue, 0) >= 1, "run");
}
static void call_is_valid(void) { must(multicast_is_valid(target), "is_valid"); }
static void call_create_error(void) { must(multicast_create_error() == 0, "create_error"); }
static void call_is_live(void) { must(multicast_token_is_live(token), "is_live"); }
static void call_current(void) { must(multicast_token_current().id == 0, "current"); }
static void call_call_stack(void) { must(multicast_call_stack(NULL, 0) == 0, "call_stack"); }
static void call_lifetime(void) { must(multicast_lifetime_is_valid(lifetime), "lifetime"); }
static void call_queue(void) { must(multicast_queue_is_valid(queue), "queue"); }
static void call_broadcaster(void) { must(multicast_broadcaster_is_valid(broadcaster), "valid"); }
static void call_version(void) { must(multicast_version() != 0, "version"); }
static void call_name(void) { must(multicast_status_name(0) != NULL, "name"); }
static void call_message(void) { must(multicast_status_message(0) != NULL, "message"); }

/* One that says "no": so this finds what it is to find. */
static void call_pause(void) { must(multicast_token_pause(token) == 0, "pause"); }

static const struct {
  const char *name;
  void (*call)(void);
} calls[] = {{"multicast_invoke", call_invoke},
             {"multicast_visit", call_visit},
             {"multicast_broadcaster_notify", call_notify},
             {"multicast_broadcaster_deliver", call_deliver},
             {"multicast_queue_run", call_run},
             {"multicast_is_valid", call_is_valid},
             {"multicast_create_error", call_create_error},
             {"multicast_token_is_live", call_is_live},
             {"multicast_token_current", call_current},
             {"multicast_call_stack", call_call_stack},
             {"multicast_lifetime_is_valid", call_lifetime},
             {"multicast_queue_is_valid", call_queue},
             {"multicast_broadcaster_is_valid", call_broadcaster},
             {"multicast_version", call_version},
             {"multicast_status_name", call_name},
             {"multicast_status_message", call_message},
             {"multicast_token_pause", call_pause}};

static void prepare(void) {
  const multicast_delegate delegate = {ignore, NULL};
  multicast_add_options options = multicast_add_options_default();
  target = multicast_create();
  queue = multicast_queue_create(NULL);
  lifetime = multicast_lifetime_create();
  broadcaster = multicast_broadcaster_create(NULL);
  must(multicast_add(target, delegate, NULL, NULL) == MULTICAST_OK, "add");
  options.queue = queue;
  must(multicast_add(target, delegate, &options, &token) == MULTICAST_OK, "add");
  must(multicast_broadcaster_register(broadcaster, "name", delegate, NULL, NULL) == MULTICAST_OK,
       "register");
  must(multicast_thread_prepare() == MULTICAST_OK, "thread_prepare");
  call_invoke();
  call_notify();
  must(multicast_queue_run(queue, 0) == 1, "run");
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
