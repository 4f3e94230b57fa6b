#include "functions.h"

static void unlock_world(void *strong) { CHECK(strong != NULL); }

static const char *new_name(world *w, char *text, size_t size) {
  snprintf(text, size, "a name so long that it is not kept in place, number %d", w->names++);
  return text;
}

/* Lets allocations succeed while a test prepares its objects. Returns the previous setting, which
 * the caller restores before it calls the function under test. */
static int spare_memory(void) {
  int after = fail_after;
  fail_after = -1;
  return after;
}

int64_t keep(world *w, uint64_t handle) {
  if (handle == 0) return multicast_create_error();
  CHECK_OK(multicast_create_error());
  CHECK(w->made_count < (int)(sizeof w->made / sizeof *w->made));
  w->made[w->made_count++] = handle;
  return 0;
}

/* Adds a delegate that the test will remove. */
static multicast_token add_one(world *w) {
  multicast_add_options options = ADD_OPTIONS(.release = be_released);
  int after = spare_memory();
  multicast_token token = add_with(w->m, other_delegate_of(w), &options);
  ++w->owed;
  fail_after = after;
  return token;
}

static void add_observer(world *w) {
  int after = spare_memory();
  CHECK_OK(multicast_broadcaster_register(w->broadcaster, known_name, other_delegate_of(w),
                                          &ADD_OPTIONS(.release = be_released), NULL));
  ++w->owed;
  fail_after = after;
}

/* ---- Library --------------------------------------------------------------------------------- */

CALL(multicast_trim, "", TAKES_NONE, 1) {
  multicast_destroy(multicast_create());
  CHECK_EQ(multicast_trim(), 0); /* the test's allocator keeps the memory */
  CHECK_EQ(multicast_count(w->m) >= 0, true);
  return 0;
}

static void *never_allocate(void *context, size_t size, size_t alignment) {
  abort();
}

static void never_deallocate(void *context, void *block, size_t size, size_t alignment) {
  abort();
}

CALL(multicast_set_allocator, "", TAKES_NONE, 1) {
  multicast_allocator allocator = multicast_allocator_default();
  allocator.allocate = never_allocate;
  allocator.deallocate = never_deallocate;
  CHECK_ERROR(multicast_set_allocator(&allocator), STATE); /* the library is already in use */
  return 0;
}

/* ---- Multicast ------------------------------------------------------------------------------- */

/* Each failed creation stores the reason for the failure. */
CALL(multicast_create_error, "", TAKES_NONE, 2) {
  int after = spare_memory();
  multicast m = multicast_create();
  CHECK_OK(multicast_create_error());
  CHECK_OK(multicast_destroy(m));
  CHECK_EQ(multicast_broadcaster_multicast(w->broadcaster, "").id, 0);
  fail_after = after;
  CHECK_ERROR(multicast_create_error(), INVALID_ARGUMENT);
  return 0;
}

static void hear_of_listeners(void *context, multicast target, bool wanted) {
  CHECK(context != NULL && target.id != 0);
}

const multicast_create_options *create_options_of(world *w) {
  static __thread multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  options.reentry = MULTICAST_REENTRY_DEFER;
  options.label = "a world";
  options.lock_context = lock_same;
  options.unlock_context = unlock_world;
  options.release_context = be_released;
  options.context = w;
  options.listeners_changed = hear_of_listeners;
  return &options;
}

const multicast_broadcaster_options *broadcaster_options_of(world *w) {
  static __thread multicast_broadcaster_options options = MULTICAST_BROADCASTER_OPTIONS_INIT;
  options.queue = w->queue;
  return &options;
}

multicast multicast_to_end(world *w) {
  int after = spare_memory();
  multicast m = multicast_create();
  add_with(m, delegate_of(w), &ADD_OPTIONS(.release = be_released));
  ++w->owed;
  fail_after = after;
  return m;
}

static int64_t add_as(world *w, const multicast_add_options *options) {
  multicast_delegate d = other_delegate_of(w);
  bool is_replaced = (options->flags & MULTICAST_UNIQUE) != 0 && multicast_contains(w->m, d);
  int64_t count = multicast_count(w->m);
  int releases = LOAD(w->releases);
  multicast_token token = {77};
  multicast_status status = multicast_add(w->m, d, options, &token);
  bool is_added = status == MULTICAST_OK;
  CHECK_EQ(is_added, token.id != 0);
  CHECK_EQ(multicast_count(w->m), is_added && !is_replaced ? count + 1 : count);
  if (options->release != NULL) {
    ++w->owed;
    CHECK_EQ(LOAD(w->releases) - releases, is_added && !is_replaced ? 0 : 1);
  }
  return status;
}

CALL(multicast_add, "", FAILS, 40) {
  multicast_add_options options = multicast_add_options_default();
  return add_as(w, &options);
}

CALL(multicast_add, "without options", FAILS, 40) {
  int64_t count = multicast_count(w->m);
  multicast_status status = multicast_add(w->m, other_delegate_of(w), NULL, NULL);
  CHECK_EQ(multicast_count(w->m), status == MULTICAST_OK ? count + 1 : count);
  return status;
}

CALL(multicast_add, "with options of every kind", FAILS, 30) {
  multicast_add_options options = ADD_OPTIONS(.release = be_released,
                                              .priority = w->names++ % 5 - 2,
                                              .flags = MULTICAST_ONCE | MULTICAST_LATEST,
                                              .events = 3, .lifetime = w->lifetime,
                                              .queue = w->queue, .lock = lock_same,
                                              .unlock = unlock_world, .label = MULTICAST_HERE);
  return add_as(w, &options);
}

CALL(multicast_add, "with MULTICAST_UNIQUE", FAILS, 10) {
  return add_as(w, &ADD_OPTIONS(.release = be_released, .flags = MULTICAST_UNIQUE));
}

CALL(multicast_add_many, "", FAILS, 8) {
  multicast_delegate d[5];
  multicast_token tokens[5];
  int64_t count = multicast_count(w->m);
  int releases = LOAD(w->releases), i;
  for (i = 0; i < 5; ++i) d[i] = other_delegate_of(w);
  w->owed += 5;
  multicast_status status = multicast_add_many(w->m, d, 5, &ADD_OPTIONS(.release = be_released,
      .lifetime = w->lifetime, .queue = w->queue), tokens);
  CHECK_EQ(multicast_count(w->m), status == MULTICAST_OK ? count + 5 : count);
  CHECK_EQ(LOAD(w->releases) - releases, status == MULTICAST_OK ? 0 : 5);
  for (i = 0; i < 5; ++i) CHECK_EQ(tokens[i].id != 0, status == MULTICAST_OK);
  return status;
}

removal removal_begin(world *w) {
  removal r;
  r.releases = LOAD(w->releases);
  r.count = multicast_count(w->m);
  r.token = add_one(w);
  return r;
}

int64_t removal_end(world *w, const removal *r) {
  CHECK(!multicast_token_is_valid(r->token));
  CHECK_EQ(multicast_count(w->m), r->count);
  CHECK_EQ(LOAD(w->releases), r->releases + 1);
  return 0;
}

static int64_t remove_two(world *w, bool is_within) {
  removal r = removal_begin(w);
  multicast_status status = MULTICAST_OK;
  multicast_delegate d[2];
  d[0] = other_delegate_of(w);
  d[1].function = count_call; /* this delegate has never been added */
  d[1].context = NULL;
  CHECK_EQ(is_within ? multicast_remove_many_within(w->m, d, 2, MULTICAST_FOREVER, &status)
                     : multicast_remove_many(w->m, d, 2), 1);
  CHECK_OK(status);
  return removal_end(w, &r);
}

CALL(multicast_remove_many, "", TAKES_NONE, 20) { return remove_two(w, false); }
CALL(multicast_remove_many_within, "", TAKES_NONE, 20) { return remove_two(w, true); }

static int64_t remove_of_context(world *w, bool is_within) {
  int64_t count = multicast_count(w->m);
  int releases = LOAD(w->releases);
  multicast_status status = MULTICAST_OK;
  add_one(w);
  CHECK_EQ(is_within ? multicast_remove_context_within(w->m, w, MULTICAST_FOREVER, &status)
                     : multicast_remove_context(w->m, w), count + 1);
  CHECK_OK(status);
  CHECK_EQ(LOAD(w->releases) - releases, count + 1);
  CHECK_EQ(multicast_lifetime_count(w->lifetime), 0);
  return 0;
}

CALL(multicast_remove_context, "", TAKES_NONE, 5) { return remove_of_context(w, false); }
CALL(multicast_remove_context_within, "", TAKES_NONE, 5) { return remove_of_context(w, true); }

static int64_t remove_all(world *w, bool is_within) {
  int64_t count = multicast_count(w->m);
  int releases = LOAD(w->releases);
  multicast_status status = MULTICAST_OK;
  add_one(w);
  CHECK_EQ(is_within ? multicast_remove_all_within(w->m, MULTICAST_FOREVER, &status)
                     : multicast_remove_all(w->m), count + 1);
  CHECK_OK(status);
  CHECK_EQ(LOAD(w->releases) - releases, count + 1);
  return 0;
}

CALL(multicast_remove_all, "", TAKES_NONE, 5) { return remove_all(w, false); }
CALL(multicast_remove_all_within, "", TAKES_NONE, 5) { return remove_all(w, true); }

/* Adds two delegates with weak contexts. One context is alive, and the other is dead. */
CALL(multicast_prune, "", FAILS, 5) {
  int64_t count = multicast_count(w->m), result;
  int releases = LOAD(w->releases), after = spare_memory();
  multicast_add_options options = ADD_OPTIONS(.release = be_released, .unlock = unlock_world,
                                              .lock = lock_same);
  multicast_token token = add_with(w->m, other_delegate_of(w), &options);
  options.lock = lock_dead;
  add_with(w->m, other_delegate_of(w), &options);
  w->owed += 2;
  fail_after = after;
  result = multicast_prune(w->m);
  after = spare_memory();
  if (result < 0) { /* no delegate was checked */
    CHECK_EQ(multicast_count(w->m), count + 2);
    CHECK_EQ(multicast_prune(w->m), 1);
  } else {
    CHECK_EQ(result, 1);
  }
  CHECK_EQ(LOAD(w->releases), releases + 1);
  CHECK(multicast_token_is_valid(token));
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(multicast_count(w->m), count);
  fail_after = after;
  return result < 0 ? result : 0;
}

CALL(multicast_list, "", TAKES_NONE, 1) {
  multicast_delegate listed[2];
  CHECK_EQ(multicast_list(w->m, listed, 2), 4);
  CHECK(listed[1].context == w);
  return 0;
}

/* The invocation calls three delegates. The fourth call is queued, or refused and counted. */
static int64_t invoke_with(world *w, size_t size) {
  int calls = LOAD(w->calls);
  uint64_t refused = stats_of(w->queue).refused;
  int64_t result = multicast_invoke(w->m, 1, size > 0 ? payload : NULL, size);
  if (result < 0) return result;
  refused = stats_of(w->queue).refused - refused;
  CHECK(refused <= 1);
  CHECK_EQ(result + (int64_t)refused, 4);
  CHECK_EQ(LOAD(w->calls) - calls, 3);
  return 0;
}

CALL(multicast_invoke, "", FAILS, 2) { return invoke_with(w, 0); }
CALL(multicast_invoke, "with a payload to copy", MAY_COPE, 1) {
  return invoke_with(w, sizeof payload);
}

CALL(multicast_invoke, "not for the first time", MAY_COPE, 10) {
  int after = spare_memory();
  CHECK_EQ(multicast_invoke(w->known, 0, NULL, 0), 1);
  fail_after = after;
  return invoke_with(w, sizeof payload);
}

/* A payload that is handed over to the library. It consists of the bytes that the delegates expect,
 * followed by data for `release`. */
typedef struct package {
  char bytes[sizeof payload];
  world *w;
} package;

static package *new_package(world *w) {
  package *p = malloc(sizeof *p);
  CHECK(p != NULL);
  memcpy(p->bytes, payload, sizeof payload);
  p->w = w;
  ++w->payloads;
  return p;
}

static void release_package(const void *bytes, size_t size) {
  package *p = (package *)(uintptr_t)bytes;
  CHECK_EQ(size, sizeof payload);
  ADD(p->w->payloads_released, 1);
  free(p);
}

static __thread world *copied_for;

static const void *copy_package(const void *bytes, size_t size) {
  CHECK(bytes == payload && size == sizeof payload);
  return new_package(copied_for);
}

typedef enum hand_over { BORROWED, OWNED, COPIED } hand_over;

static multicast_invocation invocation_of(world *w, hand_over kind) {
  multicast_invocation how = INVOCATION(.event = 1, .payload = payload, .size = sizeof payload);
  if (kind == OWNED) how.payload = new_package(w);
  if (kind == COPIED) how.copy = copy_package;
  if (kind != BORROWED) how.release = release_package;
  copied_for = w;
  return how;
}

/* The invocation calls three delegates. The fourth call is queued, or refused and counted. */
static int64_t invoke_as(world *w, const multicast_invocation *how) {
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  int calls = LOAD(w->calls), payloads = w->payloads;
  uint64_t refused = stats_of(w->queue).refused;
  int64_t result = multicast_invoke_with(w->m, how, &out);
  CHECK(w->payloads - payloads <= 1); /* the payload was copied at most once */
  CHECK_EQ(out.queued + out.refused, result < 0 ? 0 : 1);
  CHECK_EQ(out.called, result < 0 ? 0 : 3);
  CHECK_EQ(out.unfinished, 0);
  if (result < 0) return result;
  CHECK_EQ(stats_of(w->queue).refused - refused, out.refused);
  CHECK_EQ(result, 3 + (int64_t)out.queued);
  CHECK_EQ(out.finished, how->flags == MULTICAST_WAIT ? out.queued : 0);
  CHECK_EQ(LOAD(w->calls) - calls, 3 + (int)out.finished);
  return 0;
}

static int64_t invoke_handing_over(world *w, hand_over kind) {
  multicast_invocation how = invocation_of(w, kind);
  return invoke_as(w, &how);
}

CALL(multicast_invoke_with, "", FAILS, 2) {
  multicast_invocation how = MULTICAST_INVOCATION_INIT;
  return invoke_as(w, &how);
}

CALL(multicast_invoke_with, "a payload to copy", MAY_COPE, 1) {
  return invoke_handing_over(w, BORROWED);
}
CALL(multicast_invoke_with, "a payload handed over", FAILS, 3) {
  return invoke_handing_over(w, OWNED);
}
CALL(multicast_invoke_with, "a payload copied by copy", MAY_COPE, 3) {
  return invoke_handing_over(w, COPIED);
}

static int64_t invoke_waiting(world *w, hand_over kind) {
  multicast_invocation how = invocation_of(w, kind);
  int after = spare_memory();
  CHECK_OK(multicast_queue_start(w->queue));
  fail_after = after;
  how.flags = MULTICAST_WAIT;
  int64_t result = invoke_as(w, &how);
  after = spare_memory();
  CHECK_OK(multicast_queue_stop(w->queue));
  fail_after = after;
  return result;
}

CALL(multicast_invoke_with, "WAIT", MAY_COPE, 2) { return invoke_waiting(w, BORROWED); }
CALL(multicast_invoke_with, "WAIT, handed over", MAY_COPE, 2) { return invoke_waiting(w, OWNED); }
CALL(multicast_invoke_with, "WAIT, copied by copy", MAY_COPE, 2) {
  return invoke_waiting(w, COPIED);
}

bool count_visit(void *context, const multicast_delegate *delegate) {
  CHECK(delegate->context == context);
  ADD(((world *)context)->calls, 1);
  return true;
}

bool count_registration(void *context, const multicast_registration *registration) {
  CHECK(registration->delegate.context == context);
  ADD(((world *)context)->calls, 1);
  return true;
}

bool count_line(void *context, const char *line, size_t size) {
  CHECK_EQ(line[size - 1], '\n');
  return true;
}

static void count_watched(void *context, multicast_token token, uint32_t event, uint64_t ns) {
  ADD(*(int *)context, 1);
}

static void see_listener_warning(void *context, multicast target, uint64_t count, const char *label,
                      multicast_function function, uint64_t most) {
  CHECK(target.id != 0 && count >= 2 && most <= count);
  CHECK_EQ((label != NULL) + (function != NULL), most != 0);
}

/* Sets a watch, visits the delegates of the world's multicast, and removes the watch. */
static int64_t set_watch(world *w, multicast target) {
  static int calls; /* static, because the watch remains set in the child of a fork */
  int before = LOAD(calls);
  multicast_watch watch = WATCH_WITH(.context = &calls, .called = count_watched,
                                     .listener_warning_count = 2,
                                     .listener_warning = see_listener_warning);
  int64_t result = multicast_set_watch(target, &watch);
  if (result != MULTICAST_OK) return result;
  result = multicast_visit(w->m, count_visit, w);
  CHECK_OK(multicast_set_watch(target, NULL));
  if (result < 0) return result;
  CHECK_EQ(result, 4);
  /* Check the count only for a watch of one multicast, because another thread may have removed a
   * watch of all multicasts. */
  if (target.id != 0) CHECK(LOAD(calls) - before >= 4);
  return 0;
}

CALL(multicast_set_watch, "", MAY_COPE, 3) { return set_watch(w, w->m); }

CALL(multicast_set_watch, "of all, and an invocation", MAY_COPE, 4) {
  multicast all = {0};
  return set_watch(w, all);
}

/* The visitor accepts the first delegate and refuses the second, so that the first visit is
 * undone. */
typedef struct trial {
  world *world;
  int accepted;
} trial;

static bool accept_visits(void *context, const multicast_delegate *delegate) {
  trial *t = context;
  count_visit(t->world, delegate);
  return t->accepted-- > 0;
}

static bool undo_visit(void *context, const multicast_delegate *delegate) {
  return count_visit(((trial *)context)->world, delegate);
}

static int64_t visit_undo(world *w, int accepted) {
  int calls = LOAD(w->calls);
  trial t = {.world = w, .accepted = accepted};
  int64_t result = multicast_visit_undo(w->m, accept_visits, undo_visit, &t);
  if (result < 0) return result;
  CHECK_EQ(result, accepted < 4 ? 0 : 4);
  CHECK_EQ(LOAD(w->calls) - calls, accepted < 4 ? 3 : 4);
  return 0;
}

CALL(multicast_visit_undo, "", FAILS, 2) { return visit_undo(w, 4); }
CALL(multicast_visit_undo, "refused", FAILS, 2) { return visit_undo(w, 1); }

/* ---- Policies -------------------------------------------------------------------------------- */

/* The context of a delegate that invokes a multicast inside its first call. */
typedef struct inner {
  world *world;
  multicast target;
  int calls;
  int64_t result;
} inner;

static void invoke_inside(void *context, uint32_t event, const void *bytes, size_t size) {
  inner *i = context;
  if (++i->calls == 1) i->result = multicast_invoke(i->target, 1, payload, sizeof payload);
}

CALL(multicast_invoke, "deferred", MAY_COPE, 2) {
  int after = spare_memory();
  multicast_create_options options = CREATE_OPTIONS(.reentry = MULTICAST_REENTRY_DEFER);
  inner i = {.world = w, .target = multicast_create_with(&options)};
  add(i.target, DELEGATE(invoke_inside, &i));
  fail_after = after;
  int64_t result = multicast_invoke(i.target, 0, NULL, 0);
  after = spare_memory();
  CHECK_OK(multicast_destroy(i.target));
  fail_after = after;
  if (result < 0) return result;
  CHECK_EQ(result, 1);
  CHECK_EQ(i.calls, i.result == 0 ? 2 : 1);
  return i.result;
}

/* Creates a replaying multicast, which has buffered one invocation with a payload. */
static multicast make_replaying(world *w, int *after) {
  *after = spare_memory();
  multicast m = multicast_create_with(&CREATE_OPTIONS(.replay = 2));
  CHECK_EQ(multicast_invoke(m, 0, payload, sizeof payload), 0);
  return m;
}

CALL(multicast_invoke, "kept for replays", FAILS, 2) {
  int after, calls = 0;
  multicast m = make_replaying(w, &after);
  fail_after = after;
  int64_t result = multicast_invoke(m, 0, payload, sizeof payload);
  after = spare_memory();
  add(m, counter(&calls));
  CHECK_EQ(calls, result < 0 ? 1 : 2);
  CHECK_OK(multicast_destroy(m));
  fail_after = after;
  return result;
}

CALL(multicast_add_many, "with a replay", FAILS, 8) {
  int after, calls = 0;
  multicast m = make_replaying(w, &after);
  multicast_delegate delegates[2] = {counter(&calls), counter(&calls)};
  fail_after = after;
  multicast_status status = multicast_add_many(m, delegates, 2, NULL, NULL);
  after = spare_memory();
  CHECK_EQ(calls, status == MULTICAST_OK ? 2 : 0);
  CHECK_EQ(multicast_count(m), status == MULTICAST_OK ? 2 : 0);
  CHECK_OK(multicast_destroy(m));
  fail_after = after;
  return status;
}

/* ---- Token ----------------------------------------------------------------------------------- */

/* The tests' delegates also check this function inside their calls. */
CALL(multicast_token_current, "", TAKES_NONE, 1) {
  CHECK(multicast_token_current().id == 0 || multicast_token_is_valid(multicast_token_current()));
  return 0;
}

/* The queue either stores the call, or refuses it and counts the refusal. */
CALL(multicast_token_invoke, "of a queued delegate", MAY_COPE, 2) {
  int releases = LOAD(w->releases), after = spare_memory();
  multicast m = multicast_create();
  uint64_t refused = stats_of(w->queue).refused;
  multicast_add_options options = ADD_OPTIONS(.release = be_released, .queue = w->queue);
  multicast_token token = add_with(m, other_delegate_of(w), &options);
  ++w->owed;
  fail_after = after;
  int64_t result = multicast_token_invoke(token, 1, payload, sizeof payload);
  if (result >= 0) CHECK_EQ(result + (int64_t)(stats_of(w->queue).refused - refused), 1);
  CHECK_OK(multicast_destroy(m));
  CHECK_EQ(LOAD(w->releases), releases + 1);
  return result < 0 ? result : 0;
}

/* The tests' delegates also check this function inside their calls. */
CALL(multicast_call_stack, "", TAKES_NONE, 1) {
  multicast_token tokens[256];
  int64_t count = multicast_call_stack(tokens, 256);
  CHECK_EQ(count == 0 ? 0 : tokens[count - 1].id, multicast_token_current().id);
  return 0;
}

/* ---- Lifetime -------------------------------------------------------------------------------- */

multicast_lifetime lifetime_to_end(world *w) {
  multicast_add_options options = ADD_OPTIONS(.release = be_released);
  int after = spare_memory();
  options.lifetime = multicast_lifetime_create();
  add_with(w->m, other_delegate_of(w), &options);
  ++w->owed;
  fail_after = after;
  return options.lifetime;
}

CALL(multicast_ended_within, "", TAKES_NONE, 5) {
  multicast_lifetime l = multicast_lifetime_create();
  CHECK_ERROR(multicast_ended_within(w->m.id, 0), STATE);
  CHECK_OK(multicast_lifetime_end(l));
  CHECK_OK(multicast_ended_within(l.id, MULTICAST_FOREVER));
  return 0;
}

/* ---- Queue ----------------------------------------------------------------------------------- */

CALL(multicast_queue_create, "with payload_size", FAILS, 80) {
  multicast_queue q = multicast_queue_create(&QUEUE_OPTIONS(.capacity = 4, .payload_size = 256));
  if (q.id == 0) return multicast_create_error();
  CHECK_OK(multicast_queue_destroy(q));
  return 0;
}

/* Returns a queue in which calls with a payload are waiting. */
static multicast_queue queue_with_a_call(world *w, int calls) {
  int after = spare_memory();
  multicast_queue q = queue_with((uint32_t)calls, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create();
  CHECK(m.id != 0);
  add_with(m, other_delegate_of(w), &ADD_OPTIONS(.queue = q, .release = be_released));
  ++w->owed;
  for (int i = 0; i < calls; ++i) CHECK_EQ(multicast_invoke(m, 0, payload, sizeof payload), 1);
  w->made[w->made_count++] = m.id;
  fail_after = after;
  return q;
}

multicast_queue queue_to_end(world *w) { return queue_with_a_call(w, 3); }

CALL(multicast_queue_clear, "", TAKES_NONE, 3) {
  int calls = LOAD(w->calls);
  multicast_queue q = queue_with_a_call(w, 3);
  CHECK_EQ(multicast_queue_clear(q), 3);
  CHECK_EQ(stats_of(q).dropped, 3);
  CHECK_EQ(LOAD(w->calls), calls);
  CHECK_OK(multicast_queue_destroy(q));
  return 0;
}

/* The world's queue is empty. The calling thread may have no record yet. */
CALL(multicast_queue_run, "of nothing", FAILS, 2) {
  int64_t result = multicast_queue_run(w->queue, 0);
  if (result < 0) return result;
  CHECK_EQ(result, 0);
  return 0;
}

CALL(multicast_queue_run, "", TAKES_NONE, 3) {
  int calls = LOAD(w->calls);
  multicast_queue q = queue_with_a_call(w, 3);
  CHECK_EQ(multicast_queue_run(q, 2), 2);
  CHECK_EQ(LOAD(w->calls) - calls, 2);
  CHECK_OK(multicast_queue_destroy(q));
  return 0;
}

CALL(multicast_queue_wait, "", TAKES_NONE, 3) {
  multicast_queue q = queue_with_a_call(w, 3);
  CHECK_EQ(multicast_queue_wait(q, UINT64_MAX), 3);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_ERROR(multicast_queue_wait(w->queue, 1000), TIMEOUT);
  return 0;
}

CALL(multicast_queue_start, "", FAILS, 3) {
  multicast_status status = multicast_queue_start(w->queue);
  if (status == MULTICAST_OK) CHECK_OK(multicast_queue_stop(w->queue));
  if (status != MULTICAST_OK)
    CHECK_ERROR(multicast_queue_stop(w->queue), STATE);
  return status;
}

CALL(multicast_queue_stop, "", TAKES_NONE, 3) {
  int after = spare_memory();
  CHECK_OK(multicast_queue_start(w->queue));
  fail_after = after;
  return multicast_queue_stop(w->queue);
}

/* ---- Broadcaster ----------------------------------------------------------------------------- */

multicast_broadcaster broadcaster_to_end(world *w) {
  multicast_add_options options = ADD_OPTIONS(.release = be_released);
  int after = spare_memory();
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  CHECK_OK(multicast_broadcaster_register(b, known_name, delegate_of(w), &options, NULL));
  ++w->owed;
  fail_after = after;
  return b;
}

/* A thread without a record allocates one. If the allocation fails, the function works without a
 * record. */
CALL(multicast_broadcaster_destroy_within, "at first", MAY_COPE, 2) {
  int after = spare_memory();
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  fail_after = after;
  CHECK_OK(multicast_broadcaster_destroy_within(b, 0));
  CHECK(!multicast_broadcaster_is_valid(b));
  return 0;
}

CALL_FIRST(multicast_broadcaster_default, "", FAILS, 2) {
  return multicast_broadcaster_default().id != 0 ? 0 : multicast_create_error();
}

typedef multicast_status registers(multicast_broadcaster broadcaster, const char *name,
                                   multicast_delegate observer,
                                   const multicast_add_options *options, multicast_token *out);

static int64_t register_by(registers *function, world *w, const char *name) {
  multicast_token token = {77};
  int releases = LOAD(w->releases);
  multicast_status status;
  multicast_add_options options = ADD_OPTIONS(.release = be_released, .lifetime = w->lifetime);
  ++w->owed;
  status = function(w->broadcaster, name, other_delegate_of(w), &options, &token);
  CHECK_EQ(status == MULTICAST_OK, token.id != 0);
  CHECK_EQ(LOAD(w->releases) - releases, status == MULTICAST_OK ? 0 : 1);
  return status;
}

CALL(multicast_broadcaster_register, "", MAY_COPE, 10) {
  return register_by(multicast_broadcaster_register, w, known_name);
}

/* The prefix does not match any name that other calls use. */
CALL(multicast_broadcaster_register_prefix, "", MAY_COPE, 40) {
  char prefix[80];
  new_name(w, prefix, sizeof prefix);
  prefix[0] = '-';
  return register_by(multicast_broadcaster_register_prefix, w, prefix);
}

static void expect_known_name(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_TEXT(multicast_current_name(), known_name);
  ADD(*(int *)context, 1);
}

/* Queueing a call allocates memory for the name. */
CALL(multicast_current_name, "", MAY_COPE, 4) {
  int count = 0, after = spare_memory();
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  multicast_queue q = multicast_queue_create(NULL);
  multicast_delegate d = {expect_known_name, &count};
  CHECK(multicast_current_name() == NULL);
  CHECK_OK(multicast_broadcaster_register_prefix(b, "", d, NULL, NULL));
  CHECK_OK(multicast_broadcaster_register_prefix(b, "", d, &ADD_OPTIONS(.queue = q), NULL));
  fail_after = after;
  int64_t result = multicast_broadcaster_notify(b, known_name, 0, "payload", 7);
  after = spare_memory();
  CHECK_EQ(count, result < 0 ? 0 : 1);
  CHECK_EQ(multicast_queue_run(q, 0), result == 2 ? 1 : 0);
  if (result == 2) CHECK_EQ(count, 2);
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK_OK(multicast_queue_destroy(q));
  fail_after = after;
  return result < 0 ? result : result == 2 ? 0 : MULTICAST_ERROR_OUT_OF_MEMORY;
}

CALL(multicast_broadcaster_register, "under new names", MAY_COPE, 40) {
  char name[80];
  int64_t result = register_by(multicast_broadcaster_register, w, new_name(w, name, sizeof name));
  int after = spare_memory();
  CHECK_EQ(multicast_broadcaster_notify(w->broadcaster, name, 0, NULL, 0), result == 0 ? 1 : 0);
  fail_after = after;
  return result;
}

static int64_t register_several_under(world *w, const char *name) {
  multicast_delegate d[3];
  multicast_token tokens[3];
  int releases = LOAD(w->releases), i;
  multicast_status status;
  for (i = 0; i < 3; ++i) d[i] = other_delegate_of(w);
  multicast_add_options options = ADD_OPTIONS(.release = be_released, .lifetime = w->lifetime,
                                              .queue = w->queue);
  w->owed += 3;
  status = multicast_broadcaster_register_many(w->broadcaster, name, d, 3, &options, tokens);
  for (i = 0; i < 3; ++i) CHECK_EQ(status == MULTICAST_OK, tokens[i].id != 0);
  CHECK_EQ(LOAD(w->releases) - releases, status == MULTICAST_OK ? 0 : 3);
  return status;
}

CALL(multicast_broadcaster_register_many, "", MAY_COPE, 5) {
  return register_several_under(w, known_name);
}

CALL(multicast_broadcaster_register_many, "under new names", MAY_COPE, 20) {
  char name[80];
  return register_several_under(w, new_name(w, name, sizeof name));
}

CALL(multicast_broadcaster_unregister, "", TAKES_NONE, 5) {
  int releases = LOAD(w->releases);
  add_observer(w);
  CHECK_OK(multicast_broadcaster_unregister(w->broadcaster, known_name, other_delegate_of(w)));
  CHECK_EQ(LOAD(w->releases), releases + 1);
  return 0;
}

CALL(multicast_broadcaster_unregister_context, "", TAKES_NONE, 5) {
  int releases = LOAD(w->releases);
  int64_t count = multicast_count(w->known);
  add_observer(w);
  CHECK_EQ(multicast_broadcaster_unregister_context(w->broadcaster, known_name, w), count + 1);
  CHECK_EQ(LOAD(w->releases) - releases, count + 1);
  return 0;
}

CALL(multicast_broadcaster_unregister_context, "of an unknown name", MAY_COPE, 1) {
  CHECK_EQ(multicast_broadcaster_unregister_context(w->broadcaster, "unknown", w), 0);
  return 0;
}

CALL(multicast_broadcaster_unregister_all, "", TAKES_NONE, 5) {
  int releases = LOAD(w->releases);
  int64_t count = multicast_count(w->known);
  add_observer(w);
  CHECK_EQ(multicast_broadcaster_unregister_all(w->broadcaster, known_name), count + 1);
  CHECK_EQ(LOAD(w->releases) - releases, count + 1);
  return 0;
}

/* On a thread without a record, a lookup allocates one, or uses a lock if that fails. */
CALL(multicast_broadcaster_unregister, "of an unknown delegate", MAY_COPE, 1) {
  CHECK_ERROR(multicast_broadcaster_unregister(w->broadcaster, known_name, other_delegate_of(w)),
              NOT_FOUND);
  return 0;
}

CALL(multicast_broadcaster_unregister_all, "of an unknown name", MAY_COPE, 1) {
  CHECK_EQ(multicast_broadcaster_unregister_all(w->broadcaster, "unknown"), 0);
  return 0;
}

static int64_t notify_handing_over(world *w, hand_over kind) {
  multicast_invocation how = invocation_of(w, kind);
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  int calls = LOAD(w->calls), released = LOAD(w->payloads_released);
  int64_t result = multicast_broadcaster_notify_with(w->broadcaster, known_name, &how, &out);
  CHECK_EQ(LOAD(w->payloads_released) - released, kind == OWNED ? 1 : 0);
  CHECK_EQ(out.called, result < 0 ? 0 : 1);
  if (result < 0) return result;
  CHECK_EQ(result, 1);
  CHECK_EQ(LOAD(w->calls) - calls, 1);
  return 0;
}

CALL(multicast_broadcaster_notify_with, "", MAY_COPE, 2) {
  return notify_handing_over(w, BORROWED);
}
CALL(multicast_broadcaster_notify_with, "a payload handed over", MAY_COPE, 2) {
  return notify_handing_over(w, OWNED);
}
CALL(multicast_broadcaster_notify_with, "a payload copied by copy", MAY_COPE, 2) {
  return notify_handing_over(w, COPIED);
}

/* The transports' functions. Each call below attaches a transport and then replaces it with another
 * transport. */
static multicast_status publish_nothing(void *context, const char *name, uint32_t event,
                                        const void *bytes, size_t size) {
  return MULTICAST_OK;
}
static multicast_status subscribe_nothing(void *context, const char *name) {
  return MULTICAST_OK;
}
static void unsubscribe_nothing(void *context, const char *name) {}
static void count_transport(void *context) { ADD(*(int *)context, 1); }

static multicast_transport transport_counting(int *releases) {
  return TRANSPORT_WITH(.context = releases, .publish = publish_nothing,
                        .subscribe = subscribe_nothing, .unsubscribe = unsubscribe_nothing,
                        .release = count_transport);
}

CALL(multicast_broadcaster_attach, "", MAY_COPE, 10) {
  int releases = 0;
  multicast_transport transport = transport_counting(&releases);
  int after = spare_memory();
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  CHECK_OK(multicast_broadcaster_register(b, known_name, counter(&w->calls), NULL, NULL));
  fail_after = after;
  int64_t result = multicast_broadcaster_attach(b, &transport);
  CHECK_EQ(LOAD(releases), result < 0 ? 1 : 0);
  after = spare_memory();
  CHECK_OK(multicast_broadcaster_attach(b, NULL));
  CHECK_EQ(LOAD(releases), 1);
  CHECK_OK(multicast_broadcaster_destroy(b));
  fail_after = after;
  return result;
}

/* Because the name has an observer, the transport subscribes to the name. The transport also
 * publishes the name's notifications. */
CALL(multicast_broadcaster_register, "with a transport", MAY_COPE, 10) {
  int releases = 0;
  multicast_transport transport = transport_counting(&releases);
  int after = spare_memory();
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  CHECK_OK(multicast_broadcaster_attach(b, &transport));
  fail_after = after;
  int64_t result = multicast_broadcaster_register(b, known_name, counter(&w->calls), NULL, NULL);
  after = spare_memory();
  CHECK_EQ(multicast_broadcaster_notify(b, known_name, 0, NULL, 0), result == 0 ? 1 : 0);
  CHECK_OK(multicast_broadcaster_destroy(b));
  fail_after = after;
  return result;
}

CALL(multicast_broadcaster_multicast, "", MAY_COPE, 40) {
  char name[80];
  multicast m =
      multicast_broadcaster_multicast(w->broadcaster, new_name(w, name, sizeof name));
  if (m.id == 0) return multicast_create_error();
  CHECK_EQ(multicast_count(m), 0);
  return 0;
}

/* ---- The table ------------------------------------------------------------------------------- */

enum { MOST = 300 };
function functions[MOST];
int function_count;

void function_register(const function *f) {
  if (function_count == MOST) abort();
  functions[function_count++] = *f;
}

/* The list does not record the kind of each handle, so try every kind. A handle is valid in the
 * functions of only one kind of object. */
void unmake_all(world *w) {
  while (w->made_count > 0) {
    const uint64_t id = w->made[--w->made_count];
    const multicast m = {id};
    const multicast_lifetime l = {id};
    const multicast_queue q = {id};
    const multicast_broadcaster b = {id};
    const int made = multicast_is_valid(m) + multicast_lifetime_is_valid(l) +
                     multicast_queue_is_valid(q) + multicast_broadcaster_is_valid(b);
    CHECK_EQ(made, 1);
    CHECK_EQ((multicast_destroy(m) == MULTICAST_OK) + (multicast_lifetime_end(l) == MULTICAST_OK) +
                 (multicast_queue_destroy(q) == MULTICAST_OK) +
                 (multicast_broadcaster_destroy(b) == MULTICAST_OK), 1);
  }
}

void use_every_function(void) {
  for (int i = 0; i < function_count; ++i) {
    world w;
    world_begin(&w);
    CHECK_EQ(functions[i].call(&w), 0);
    unmake_all(&w);
    world_end(&w);
  }
}

void *use_every_function_there(void *unused) {
  use_every_function();
  return NULL;
}
