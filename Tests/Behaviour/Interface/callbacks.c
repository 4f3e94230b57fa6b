/* See callbacks.h. */

#include "callbacks.h"
#include "queues.h"

static void (*body)(void);

static void call(void *context, uint32_t event, const void *payload, size_t size) {
  body();
}
static void do_nothing(void *context, uint32_t event, const void *payload, size_t size) {
}
static void call_with_context(void *context) {
  body();
}
static const multicast_delegate calling = {call, NULL}, silent = {do_nothing, NULL};

static multicast with(multicast_delegate d, const multicast_add_options *options) {
  multicast m = multicast_create();
  add_with(m, d, options);
  return m;
}

/* ---- Delegates ------------------------------------------------------------------------------- */

static void invoke(void) { (void)multicast_invoke(with(calling, NULL), 0, NULL, 0); }
static void invoke_several(void) {
  multicast m = multicast_create();
  for (int i = 0; i < 3; ++i) add(m, calling);
  for (int i = 0; i < 3; ++i) (void)multicast_invoke(m, 0, NULL, 0);
}
static void invoke_once(void) {
  (void)multicast_invoke(with(calling, &ADD_OPTIONS(.flags = MULTICAST_ONCE)), 0, NULL, 0);
}
static void invoke_with(void) {
  multicast_invocation how = MULTICAST_INVOCATION_INIT;
  (void)multicast_invoke_with(with(calling, NULL), &how, NULL);
}
static void invoke_a_token(void) {
  (void)multicast_token_invoke(add(multicast_create(), calling), 0, NULL, 0);
}
static void run_a_queue(void) {
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  (void)multicast_invoke(with(calling, &ADD_OPTIONS(.queue = q)), 0, NULL, 0);
  (void)multicast_queue_run(q, 1);
}
static void notify(void) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  CHECK_OK(multicast_broadcaster_register(b, "name", calling, NULL, NULL));
  (void)multicast_broadcaster_notify(b, "name", 0, NULL, 0);
}
static void replay(void) {
  multicast m = multicast_create_with(&CREATE_OPTIONS(.replay = 1));
  (void)multicast_invoke(m, 0, NULL, 0);
  add(m, calling);
}

/* ---- Visitors -------------------------------------------------------------------------------- */

static bool visit_one(void *context, const multicast_delegate *delegate) {
  body();
  return true;
}
static void visit(void) { (void)multicast_visit(with(silent, NULL), visit_one, NULL); }
static void visit_a_token(void) {
  (void)multicast_token_visit(add(multicast_create(), silent), visit_one, NULL);
}
static bool list_one(void *context, const multicast_registration *registration) {
  body();
  return true;
}
static void enumerate(void) { (void)multicast_enumerate(with(silent, NULL), list_one, NULL); }
static bool write_text(void *context, const char *text, size_t size) {
  body();
  return true;
}
static void describe(void) { (void)multicast_describe(with(silent, NULL), write_text, NULL); }
static void dump(void) { (void)multicast_dump(write_text, NULL); }

/* ---- Contexts -------------------------------------------------------------------------------- */

static void *lock_and_call(void *context) {
  body();
  return context;
}
static multicast weak(void *(*lock)(void *), void (*unlock)(void *)) {
  static int object;
  return with(DELEGATE(do_nothing, &object), &ADD_OPTIONS(.lock = lock, .unlock = unlock));
}
static void lock(void) { (void)multicast_invoke(weak(lock_and_call, unlock_nothing), 0, NULL, 0); }
static void unlock(void) {
  (void)multicast_invoke(weak(lock_same, call_with_context), 0, NULL, 0);
}
static void remove_one(void) {
  CHECK_OK(multicast_remove(with(silent, &ADD_OPTIONS(.release = call_with_context)), silent));
}
static void destroy(void) {
  CHECK_OK(multicast_destroy(with(silent, &ADD_OPTIONS(.release = call_with_context))));
}
static void end_a_lifetime(void) {
  multicast_add_options o = ADD_OPTIONS(.release = call_with_context);
  o.lifetime = multicast_lifetime_create();
  with(silent, &o);
  CHECK_OK(multicast_lifetime_end(o.lifetime));
}

/* ---- Queues, payloads, policies, transports, watches ----------------------------------------- */

static void wake(void) {
  multicast_add_options o = MULTICAST_ADD_OPTIONS_INIT;
  o.queue = multicast_queue_create(&QUEUE_OPTIONS(.wake = call_with_context));
  (void)multicast_invoke(with(calling, &o), 0, NULL, 0);
}
static const void *copy_nothing(const void *payload, size_t size) {
  return payload;
}
static const void *copy_and_call(const void *payload, size_t size) {
  body();
  return payload;
}
static void release_nothing(const void *payload, size_t size) { (void)payload, (void)size; }
static void release_and_call(const void *payload, size_t size) {
  body();
}
static void queue_a_copy(const void *(*copy)(const void *, size_t),
                         void (*release)(const void *, size_t)) {
  static const int payload = 1;
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  multicast_add_options o = ADD_OPTIONS(.queue = q);
  (void)multicast_invoke_with(with(silent, &o), &INVOCATION(.payload = &payload,
      .size = sizeof payload, .copy = copy, .release = release), NULL);
  (void)multicast_queue_run(q, 1);
}
static void copy_a_payload(void) { queue_a_copy(copy_and_call, release_nothing); }
static void release_a_payload(void) { queue_a_copy(copy_nothing, release_and_call); }

static void want(void *context, multicast target, bool wanted) {
  body();
}
static void listeners_changed(void) {
  add(multicast_create_with(&CREATE_OPTIONS(.listeners_changed = want)), silent);
}

static multicast_status publish_text(void *context, const char *name, uint32_t event,
                                     const void *payload, size_t size) {
  body();
  return MULTICAST_OK;
}
static multicast_status subscribe_and_call(void *context, const char *name) {
  body();
  return MULTICAST_OK;
}
static multicast_broadcaster attached(multicast_transport t) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  CHECK_OK(multicast_broadcaster_attach(b, &t));
  return b;
}
static void publish(void) {
  multicast_transport t = TRANSPORT_WITH(.publish = publish_text);
  (void)multicast_broadcaster_notify(attached(t), "name", 0, NULL, 0);
}
static void subscribe(void) {
  multicast_transport t = TRANSPORT_WITH(.publish = publish_text, .subscribe = subscribe_and_call);
  CHECK_OK(multicast_broadcaster_register(attached(t), "name", silent, NULL, NULL));
}

static void tell(void *context, multicast_token token, uint32_t event, uint64_t elapsed_ns) {
  body();
}
static void watch(void) {
  multicast m = with(silent, NULL);
  CHECK_OK(multicast_set_watch(m, &WATCH_WITH(.called = tell)));
  (void)multicast_invoke(m, 0, NULL, 0);
}

/* ---- The list -------------------------------------------------------------------------------- */

#define CALLBACK(NAME)                    \
  static void run_##NAME(void (*b)(void)) { \
    body = b;                             \
    NAME();                               \
  }
#define EACH(DO)                                                                              \
  DO(invoke) DO(invoke_several) DO(invoke_once) DO(invoke_with) DO(invoke_a_token)            \
  DO(run_a_queue) DO(notify) DO(replay) DO(visit) DO(visit_a_token) DO(enumerate)             \
  DO(describe) DO(dump) DO(lock) DO(unlock) DO(remove_one) DO(destroy) DO(end_a_lifetime)     \
  DO(wake) DO(copy_a_payload) DO(release_a_payload) DO(listeners_changed) DO(publish)         \
  DO(subscribe) DO(watch)
EACH(CALLBACK)

#define ENTRY(NAME) {#NAME, run_##NAME},
const callback callbacks[] = {EACH(ENTRY)};
const size_t callback_count = sizeof callbacks / sizeof *callbacks;
