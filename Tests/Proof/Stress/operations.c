#define _GNU_SOURCE
#include "operations.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "actor.h"
#include "atomics.h"
#include "borrowed.h"
#include "carrier.h"
#include "failure.h"
#include "replays.h"
#include "sessions.h"
#include "statuses.h"
#include "waker.h"
#include "world.h"

/* More contexts would only make invocations slower. */
enum { MOST_CONTEXTS = 500 };

/* How many operations may be nested inside one operation. Without a limit, an operation might never
 * end. */
enum { BUDGET = 30 };

void remember(multicast_token token) {
  STORE(world_tokens[random_below(TOKEN_COUNT)], token.id);
}

static void nap(uint32_t microseconds) {
  struct timespec t = {0, (long)microseconds * 1000};
  nanosleep(&t, NULL);
}

static void finished_if_ok(multicast_status status, multicast_token token) {
  if (status == MULTICAST_OK) token_is_finished(token);
}

/* ---- Invocation ------------------------------------------------------------------------------ */

order *order_begins(order *o) {
  actor *a = actor_current();
  order *outer = a->order;
  o->number = ++a->invocations;
  o->priority = INT_MAX;
  a->order = o;
  if (outer == NULL && a->calls == 0 && a->releases == 0) a->has_deferred = false;
  return outer;
}

void order_ends(order *outer, int64_t count) {
  actor *a = actor_current();
  a->order = outer;
  if (count == 0 && (outer != NULL || a->calls > 0 || a->releases > 0)) a->has_deferred = true;
}

static void invoke_one(multicast m) {
  uint32_t event = random_event();
  size_t size = random_size();
  order own, *outer = order_begins(&own);
  int64_t count = multicast_invoke(m, event, payload_of(event, size), size);
  EXPECT_COUNT(count, OK | INVALID_HANDLE | STATE);
  order_ends(outer, count);
}

OPERATION("multicast_invoke", 160) { invoke_one(random_multicast()); }

OPERATION("multicast_broadcaster_notify", 30) {
  uint32_t event = random_event();
  size_t size = random_size();
  order own, *outer = order_begins(&own);
  int64_t count = multicast_broadcaster_notify(random_broadcaster(), random_name(), event,
                                               payload_of(event, size), size);
  EXPECT_COUNT(count, OK | INVALID_HANDLE);
  actor_current()->order = outer;
}

OPERATION("multicast_broadcaster_deliver", 10) {
  uint32_t event = random_event();
  size_t size = random_size();
  order own, *outer = order_begins(&own);
  int64_t count = multicast_broadcaster_deliver(random_broadcaster(), random_name(), event,
                                                payload_of(event, size), size);
  EXPECT_COUNT(count, OK | INVALID_HANDLE);
  actor_current()->order = outer;
}

static bool pass_on(void *left, const multicast_delegate *d) {
  d->function(d->context, VISITED, NULL, 0);
  return --*(int *)left != 0;
}

void visit_one(multicast m) {
  int left = one_in(2) ? -1 : 1 + (int)random_below(5), limit = left;
  order own, *outer = order_begins(&own);
  int64_t count = multicast_visit(m, pass_on, &left);
  EXPECT_COUNT(count, OK | INVALID_HANDLE);
  MUST(limit < 0 || count <= limit, "%lld visited, limit %d", (long long)count, limit);
  actor_current()->order = outer;
}

static bool look_at(void *context, const multicast_registration *r) {
  MUST(r->token.id == multicast_token_current().id, "a token that is not the current one");
  return --*(int *)context != 0;
}

OPERATION("multicast_enumerate", 15) {
  int left = (int)random_below(20);
  EXPECT_COUNT(multicast_enumerate(random_multicast(), look_at, &left), OK | INVALID_HANDLE);
}

static bool look_at_line(void *left, const char *line, size_t size) {
  MUST(size > 0 && line[size - 1] == '\n', "a line without its end");
  return --*(int *)left != 0;
}

OPERATION("multicast_dump", 1) {
  int left = one_in(4) ? -1 : (int)random_below(200);
  EXPECT(multicast_dump(look_at_line, &left), OK);
}

OPERATION("multicast_describe", 8) {
  int left = -1;
  EXPECT(multicast_describe(random_multicast(), look_at_line, &left), OK | INVALID_HANDLE);
}

/* The context of a watch. It is freed once the library can no longer call the watch's functions. */
typedef struct watcher {
  bool is_set;
} watcher;

static watcher always = {true};

static void look(void *context, multicast_token token) {
  multicast_token_stats stats = MULTICAST_TOKEN_STATS_INIT;
  MUST(LOAD(((watcher *)context)->is_set), "a watch that was taken away");
  EXPECT(multicast_token_get_stats(token, &stats), OK | INVALID_HANDLE);
  if (one_in(100)) {
    usleep(300);
    MUST(LOAD(((watcher *)context)->is_set), "a watch that was taken away meanwhile");
  }
}

static void be_notified(void *context, multicast_token token, uint32_t event, uint64_t elapsed_ns) {
  look(context, token);
}

static void be_notified_slow(void *context, multicast_token token, const char *label, uint64_t ns) {
  MUST(label == NULL || strlen(label) < 64, "a label");
  look(context, token);
}

static void be_notified_of_crowd(void *context, multicast target, uint64_t count, const char *label,
                             multicast_function function, uint64_t most) {
  multicast_token none = {0};
  MUST((label != NULL) + (function != NULL) == (most != 0), "the label or the function of most");
  MUST(target.id != 0 && count >= 2 && most <= count, "a listener warning");
  MUST(label == NULL || strlen(label) < 64, "a label");
  look(context, none);
}

static multicast_watch watch_with(watcher *w) {
  multicast_watch watch = MULTICAST_WATCH_INIT;
  watch.context = w;
  watch.slow_ns = 1 + random_below(100000);
  watch.slow = watch.stuck = be_notified_slow;
  if (one_in(2)) watch.called = be_notified;
  if (one_in(2)) watch.listener_warning = be_notified_of_crowd;
  watch.listener_warning_count = random_below(6);
  return watch;
}

OPERATION("multicast_set_watch", 20) {
  multicast m = random_multicast();
  multicast_watch watch = watch_with(&always);
  if (m.id == 0) return;
  EXPECT(multicast_set_watch(m, one_in(2) ? NULL : &watch), OK | INVALID_HANDLE);
}

/* Only one thread at a time performs this operation, so that the thread knows whether the watch's
 * functions may still be running. */
OPERATION("multicast_set_watch of all", 6) {
  static bool is_busy;
  multicast all = {0};
  watcher *w;
  if (SWAP(is_busy, true)) return;
  w = malloc(sizeof *w);
  MUST(w != NULL, "no memory");
  STORE(w->is_set, true);
  multicast_watch watch = watch_with(w);
  EXPECT(multicast_set_watch(all, &watch), OK);
  if (one_in(2)) usleep((unsigned)random_below(500));
  EXPECT(multicast_set_watch(all, NULL), OK);
  STORE(w->is_set, false);
  free(w);
  STORE(is_busy, false);
}

/* The numbers of visits that multicast_visit_undo() has made and undone. */
typedef struct trial {
  int left, visited, undone;
} trial;

static bool try_visit(void *context, const multicast_delegate *d) {
  trial *t = context;
  if (t->left-- == 0) return false;
  ++t->visited;
  return true;
}

static bool undo_visit(void *context, const multicast_delegate *d) {
  ++((trial *)context)->undone;
  return true;
}

OPERATION("multicast_visit_undo", 15) {
  trial t = {.left = one_in(2) ? -1 : (int)random_below(20)};
  int64_t count = multicast_visit_undo(random_multicast(), try_visit, undo_visit, &t);
  EXPECT_COUNT(count, OK | INVALID_HANDLE);
  if (count < 0) return;
  MUST(t.undone <= t.visited, "%d undone of %d visited", t.undone, t.visited);
  MUST(count == 0 || (count == t.visited && t.undone == 0), "%lld stand visited of %d, %d undone",
       (long long)count, t.visited, t.undone);
}

OPERATION("multicast_visit", 20) { visit_one(random_multicast()); }

/* ---- Adding ---------------------------------------------------------------------------------- */

static void choose_place(context *c) {
  if (one_in(3)) c->options.queue = random_queue();
  if (one_in(3)) c->options.lifetime = random_lifetime();
}

/* The add hands the context over to the library, which may already have released the context when
 * the call returns. */
OPERATION("multicast_add", 100) {
  context *c = context_make();
  bool is_retained = one_in(2);
  choose_place(c);
  if (is_retained) context_retain(c);
  EXPECT(multicast_add(random_multicast(), context_delegate(c), &c->options, &c->token),
         OK | INVALID_HANDLE);
  if (is_retained) {
    remember(c->token);
    context_release(c);
  }
}

OPERATION("multicast_broadcaster_register", 20) {
  context *c = context_make();
  bool is_retained = one_in(2);
  choose_place(c);
  if (is_retained) context_retain(c);
  EXPECT(multicast_broadcaster_register(random_broadcaster(), random_name(), context_delegate(c),
                                        &c->options, &c->token),
         OK | INVALID_HANDLE);
  if (is_retained) {
    remember(c->token);
    context_release(c);
  }
}

/* Observers of a prefix are called after the observers of the name, so this observer has the lowest
 * priority. If an observer of the name registers this observer during a notification, the
 * notification still calls it. */
OPERATION("multicast_broadcaster_register_prefix", 6) {
  context *c = context_make();
  char prefix[64];
  choose_place(c);
  c->prefixed = random_name();
  c->prefix_size = random_below((uint32_t)strlen(c->prefixed) + 1);
  c->options.priority = -1;
  c->adder = 0;
  snprintf(prefix, sizeof prefix, "%.*s", (int)c->prefix_size, c->prefixed);
  context_retain(c);
  EXPECT(multicast_broadcaster_register_prefix(random_broadcaster(), prefix, context_delegate(c),
                                               &c->options, &c->token),
         OK | INVALID_HANDLE);
  remember(c->token);
  context_release(c);
}

static void add_several(bool is_by_name) {
  multicast_delegate delegates[8];
  multicast_token tokens[8];
  uint32_t i, count = 1 + random_below(8);
  context *first = context_make();
  choose_place(first);
  multicast_add_options options = first->options;
  for (i = 0; i < count; ++i) {
    context *c = i == 0 ? first : context_make();
    c->options = options;
    c->is_weak = options.lock != NULL;
    c->has_token = false;
    delegates[i] = context_delegate(c);
  }
  EXPECT(is_by_name ? multicast_broadcaster_register_many(random_broadcaster(), random_name(),
                                                          delegates, count, &options, tokens)
                    : multicast_add_many(random_multicast(), delegates, count, &options, tokens),
         OK | INVALID_HANDLE);
  for (i = 0; i < count; ++i) {
    MUST((tokens[i].id != 0) == (tokens[0].id != 0), "some of %u delegates added, not all", count);
    if (one_in(4)) remember(tokens[i]);
  }
}

OPERATION("multicast_add_many", 15) { add_several(false); }
OPERATION("multicast_broadcaster_register_many", 5) { add_several(true); }

/* Adds equal delegates. All the registrations share one context. */
OPERATION("multicast_add of equal delegates", 10) {
  context *c = context_make();
  multicast m = random_multicast();
  multicast_delegate delegates[3];
  multicast_token token;
  uint32_t i, count = 1 + random_below(3);
  c->is_shared = true;
  c->has_token = false;
  c->options.flags = random_below(4) * 2; /* UNIQUE and LATEST */
  choose_place(c);
  for (i = 0; i < count; ++i) {
    context_retain(c);
    EXPECT(multicast_add(m, context_delegate(c), &c->options, &token), OK | INVALID_HANDLE);
    if (one_in(2)) remember(token);
  }
  for (i = 0; i < 3; ++i) {
    context_retain(c);
    delegates[i] = context_delegate(c);
  }
  EXPECT(multicast_add_many(m, delegates, 3, &c->options, NULL), OK | INVALID_HANDLE);
  context_release(c);
}

/* Many removals in quick succession switch the multicast to the fenced mode, in which its
 * invocations execute full fences. */
OPERATION("additions and removals in a row", 8) {
  multicast m = random_multicast();
  uint32_t i, count = 15 + random_below(15);
  for (i = 0; i < count; ++i) {
    context *c = context_make();
    context_retain(c);
    EXPECT(multicast_add(m, context_delegate(c), &c->options, &c->token), OK | INVALID_HANDLE);
    multicast_token token = c->token;
    context_release(c);
    if (one_in(4)) invoke_one(m);
    multicast_status status = multicast_token_remove(token);
    EXPECT(status, OK | INVALID_HANDLE | (waits_for_certain() ? 0 : PENDING));
    finished_if_ok(status, token);
  }
}

OPERATION("multicast_add with invalid options", 4) {
  context *c = context_make();
  multicast_delegate d = context_delegate(c);
  bool is_released = false;
  switch (random_below(5)) {
    case 0: c->options.struct_size = random_below(60); break;
    case 1: c->options.flags = 16u << random_below(20); break;
    case 2: c->options.reserved = 1; break;
    case 3: /* the library can read `release` here, so it calls it */
      d.function = NULL;
      is_released = true;
      break;
    default:
      c->options.lock = NULL;
      c->options.unlock = free;
      is_released = true;
  }
  EXPECT(multicast_add(random_multicast(), d, &c->options, &c->token), INVALID_ARGUMENT);
  if (!is_released) context_release(c);
}

OPERATION("multicast_add without release", 40) {
  borrowed_add(random_multicast(), random_queue(), random_lifetime());
}
OPERATION("removal without release", 40) { borrowed_remove(); }
OPERATION("taking over a context without release", 4) { borrowed_take_over(false); }

/* ---- Removal --------------------------------------------------------------------------------- */

OPERATION("multicast_token_remove", 60) {
  multicast_token t = random_token();
  multicast_status status = multicast_token_remove(t);
  EXPECT(status, OK | INVALID_HANDLE | (waits_for_certain() ? 0 : PENDING));
  finished_if_ok(status, t);
}

OPERATION("multicast_token_remove_nowait", 20) {
  multicast_token t = random_token();
  multicast_status status = multicast_token_remove_nowait(t);
  EXPECT(status, OK | PENDING | INVALID_HANDLE);
  finished_if_ok(status, t);
}

OPERATION("multicast_token_remove_within", 20) {
  multicast_token t = random_token();
  multicast_status status = multicast_token_remove_within(t, random_below(200000));
  EXPECT(status, OK | PENDING | INVALID_HANDLE | TIMEOUT);
  finished_if_ok(status, t);
}

static void remove_listed(void) {
  multicast m = random_multicast();
  multicast_delegate listed[8];
  uint32_t capacity = 1 + random_below(8);
  int64_t count = multicast_list(m, listed, capacity);
  EXPECT_COUNT(count, OK | INVALID_HANDLE);
  if (count <= 0) return;
  if (count > capacity) count = capacity;
  uint32_t number = random_below((uint32_t)count);
  switch (random_below(3)) {
    case 0:
      EXPECT(multicast_remove(m, listed[number]), OK | PENDING | INVALID_HANDLE | NOT_FOUND);
      break;
    case 1: {
      int64_t removed = multicast_remove_many(m, listed, (size_t)count);
      EXPECT_COUNT(removed, OK | INVALID_HANDLE);
      MUST(removed <= count, "%lld of %lld", (long long)removed, (long long)count);
      break;
    }
    default:
      EXPECT_COUNT(multicast_remove_context(m, listed[number].context), OK | INVALID_HANDLE);
  }
}
OPERATION("multicast_remove", 30) { remove_listed(); }

/* Removes all equal delegates, or several different delegates, either with a time limit or without
 * waiting. */
OPERATION("removals with a time limit", 25) {
  multicast m = random_multicast();
  multicast_delegate listed[4];
  multicast_status status = MULTICAST_ERROR_STATE;
  multicast_status *out = one_in(4) ? NULL : &status;
  uint64_t timeout = one_in(2) ? 0 : random_below(100000);
  int64_t count = multicast_list(m, listed, 4);
  if (count <= 0) return;
  if (count > 4) count = 4;
  switch (random_below(4)) {
    case 0:
      EXPECT(multicast_remove_every(m, listed[0]), OK | PENDING | INVALID_HANDLE | NOT_FOUND);
      return;
    case 1:
      EXPECT(multicast_remove_every_within(m, listed[0], timeout),
             OK | PENDING | INVALID_HANDLE | NOT_FOUND | TIMEOUT);
      return;
    case 2: count = multicast_remove_many_within(m, listed, (size_t)count, timeout, out); break;
    default: count = multicast_remove_context_within(m, listed[0].context, timeout, out);
  }
  EXPECT_COUNT(count, OK | INVALID_HANDLE);
  if (out != NULL) EXPECT(status, count < 0 ? INVALID_HANDLE : OK | PENDING | TIMEOUT);
}

OPERATION("multicast_remove_all_within", 2) {
  multicast_status status = MULTICAST_ERROR_STATE;
  int64_t count = multicast_remove_all_within(random_multicast(), random_below(1000), &status);
  EXPECT_COUNT(count, OK | INVALID_HANDLE);
  EXPECT(status, count < 0 ? INVALID_HANDLE : OK | PENDING | TIMEOUT);
}

OPERATION("multicast_thread_prepare", 2) { EXPECT(multicast_thread_prepare(), OK); }

OPERATION("multicast_trim", 2) { EXPECT_COUNT(multicast_trim(), OK); }

OPERATION("multicast_prune", 8) {
  EXPECT_COUNT(multicast_prune(random_multicast()), OK | INVALID_HANDLE);
}

OPERATION("multicast_remove_at", 15) {
  EXPECT(multicast_remove_at(random_multicast(), random_below(30)),
         OK | PENDING | INVALID_HANDLE | NOT_FOUND);
}

OPERATION("multicast_remove_all", 3) {
  EXPECT_COUNT(multicast_remove_all(random_multicast()), OK | INVALID_HANDLE);
}

OPERATION("multicast_broadcaster_unregister", 5) {
  multicast_delegate d = {ignore_call, NULL};
  EXPECT(multicast_broadcaster_unregister(random_broadcaster(), random_name(), d),
         OK | PENDING | INVALID_HANDLE | NOT_FOUND);
}

OPERATION("multicast_broadcaster_unregister_all", 3) {
  EXPECT_COUNT(multicast_broadcaster_unregister_all(random_broadcaster(), random_name()),
               OK | INVALID_HANDLE);
}

OPERATION("multicast_broadcaster_unregister_context", 2) {
  EXPECT_COUNT(multicast_broadcaster_unregister_context(random_broadcaster(), random_name(), NULL),
               OK | INVALID_HANDLE);
}

/* ---- Queries --------------------------------------------------------------------------------- */

OPERATION("a query", 40) {
  multicast_queue_stats s = multicast_queue_stats_default();
  multicast_delegate d = {ignore_call, NULL};
  multicast m = random_multicast();
  multicast_status status;
  switch (random_below(9)) {
    case 0: EXPECT_COUNT(multicast_count(m), OK | INVALID_HANDLE); break;
    case 1: (void)!multicast_is_valid(m); break;
    case 2: MUST(!multicast_contains(m, d), "a delegate that was never added"); break;
    case 3: (void)!multicast_token_is_valid(random_token()); break;
    case 4: EXPECT_COUNT(multicast_lifetime_count(random_lifetime()), OK | INVALID_HANDLE); break;
    case 5: MUST(multicast_queue_fd(random_queue()) >= -1, "a descriptor"); break;
    case 6: EXPECT_COUNT(multicast_list(m, NULL, 0), OK | INVALID_HANDLE); break;
    case 7: (void)!multicast_has_listeners(multicast_listener_flag(m)); break;
    default:
      status = multicast_queue_get_stats(random_queue(), &s);
      EXPECT(status, OK | INVALID_HANDLE);
      MUST(s.queued == s.pending + s.delivered + s.dropped + s.cancelled + s.coalesced,
           "%llu queued, %llu pending", (unsigned long long)s.queued,
           (unsigned long long)s.pending);
  }
}

OPERATION("multicast_token_get_registration", 20) {
  multicast_registration r = MULTICAST_REGISTRATION_INIT;
  multicast_token t = random_token();
  multicast_status status = multicast_token_get_registration(t, &r);
  EXPECT(status, OK | INVALID_HANDLE);
  if (status != MULTICAST_OK) return;
  MUST(r.token.id == t.id && r.target.id != 0 && r.delegate.function != NULL,
       "what was read of 0x%llx", (unsigned long long)t.id);
  MUST(r.priority >= -1 && r.priority <= 2, "priority %d", r.priority);
}

OPERATION("multicast_token_pause or resume", 30) {
  multicast_token t = random_token();
  EXPECT(one_in(3) ? multicast_token_pause(t) : multicast_token_resume(t), OK | INVALID_HANDLE);
}

/* ---- Create and destroy ---------------------------------------------------------------------- */

OPERATION("multicast_destroy and create", 8) {
  multicast old = {SWAP(world_multicasts[random_below(MULTICAST_COUNT)], make_multicast().id)};
  EXPECT(multicast_destroy(old), OK | PENDING | INVALID_HANDLE);
}

/* The handle of the destroyed multicast stays in the table of multicasts, so that threads use stale
 * handles. */
OPERATION("multicast_destroy", 2) {
  EXPECT(multicast_destroy(random_multicast()), OK | PENDING | INVALID_HANDLE);
}

OPERATION("multicast_lifetime_end", 8) {
  multicast_lifetime fresh = multicast_lifetime_create();
  multicast_lifetime old = {SWAP(world_lifetimes[random_below(LIFETIME_COUNT)], fresh.id)};
  EXPECT(multicast_lifetime_end(old), OK | PENDING | INVALID_HANDLE);
}

/* Returns a timeout for ending an object that another thread may be ending at the same time. */
static uint64_t random_timeout(void) {
  return one_in(2) ? 0 : one_in(4) ? MULTICAST_FOREVER : random_below(100000);
}

OPERATION("multicast_destroy_within", 3) {
  EXPECT(multicast_destroy_within(random_multicast(), random_timeout()),
         OK | PENDING | INVALID_HANDLE | TIMEOUT);
}

OPERATION("multicast_lifetime_end_within", 3) {
  multicast_lifetime l = random_lifetime();
  EXPECT(multicast_lifetime_end_within(l, random_timeout()),
         OK | PENDING | INVALID_HANDLE | TIMEOUT);
  MUST(!multicast_lifetime_is_valid(l), "a lifetime that has ended is valid");
}

/* Another thread may end any of these objects at any moment. */
OPERATION("multicast_ended_within", 10) {
  const uint64_t handles[] = {random_token().id, random_multicast().id, random_lifetime().id,
                              random_queue().id};
  const uint64_t handle = handles[random_below(4)];
  const multicast_status found = multicast_ended_within(handle, random_timeout());
  MUST(found == MULTICAST_OK || found == MULTICAST_PENDING || found == MULTICAST_ERROR_TIMEOUT ||
           found == MULTICAST_ERROR_STATE || found == MULTICAST_ERROR_INVALID_HANDLE,
       "whether 0x%llx has ended is %d", (unsigned long long)handle, found);
  if (found == MULTICAST_OK)
    MUST(multicast_ended_within(handle, 0) == MULTICAST_OK, "0x%llx has ended no more",
         (unsigned long long)handle);
}

OPERATION("multicast_broadcaster_destroy_within", 2) {
  multicast_broadcaster b = random_broadcaster();
  EXPECT(multicast_broadcaster_destroy_within(b, random_timeout()),
         OK | PENDING | INVALID_HANDLE | TIMEOUT);
  MUST(!multicast_broadcaster_is_valid(b), "a destroyed broadcaster is valid");
}

OPERATION("multicast_queue_destroy", 5) {
  multicast_queue fresh = make_queue();
  multicast_queue old = {SWAP(world_queues[1 + random_below(QUEUE_COUNT - 1)], fresh.id)};
  EXPECT(destroy_queue(old), OK | PENDING | INVALID_HANDLE);
}

OPERATION("multicast_broadcaster_destroy", 3) {
  multicast_broadcaster_options options = multicast_broadcaster_options_default();
  multicast_broadcaster old;
  if (one_in(2)) options.queue.id = LOAD(world_queues[0]);
  multicast_broadcaster fresh = multicast_broadcaster_create(&options);
  MUST(fresh.id != 0, "a broadcaster");
  old.id = SWAP(world_broadcasters[random_below(BROADCASTER_COUNT)], fresh.id);
  EXPECT(multicast_broadcaster_destroy(old), OK | PENDING | INVALID_HANDLE);
}

OPERATION("multicast_broadcaster_attach", 6) {
  multicast_broadcaster b = random_broadcaster();
  multicast_transport transport;
  bool is_none = one_in(4);
  if (!is_none) transport = carrier_make(b);
  EXPECT(multicast_broadcaster_attach(b, is_none ? NULL : &transport),
         OK | PENDING | INVALID_HANDLE);
}

/* ---- Queues ---------------------------------------------------------------------------------- */

static void run_queue(multicast_queue q) {
  actor *a = actor_current();
  order *outer = a->order;
  a->order = NULL;
  EXPECT_COUNT(multicast_queue_run(q, random_below(3)), OK | INVALID_HANDLE | STATE);
  a->order = outer;
}

OPERATION("multicast_queue_run", 40) { run_queue(random_queue()); }

OPERATION("multicast_queue_wait", 10) {
  int64_t count = multicast_queue_wait(random_queue(), random_below(50000));
  EXPECT_COUNT(count, OK | INVALID_HANDLE | TIMEOUT);
  MUST(count != 0, "the wait ended without a queued call");
}

/* Returns any queue except for the first, which only run_queues() may run. */
static multicast_queue random_other_queue(void) {
  return (multicast_queue){LOAD(world_queues[1 + random_below(QUEUE_COUNT - 1)])};
}

OPERATION("multicast_queue_clear", 4) {
  EXPECT_COUNT(multicast_queue_clear(random_queue()), OK | INVALID_HANDLE);
}

/* Destroys any queue except for the first. */
OPERATION("multicast_queue_destroy_within", 3) {
  multicast_queue q = random_other_queue();
  multicast_status status = multicast_queue_destroy_within(q, random_timeout());
  EXPECT(status, OK | PENDING | INVALID_HANDLE | TIMEOUT);
  if (status == MULTICAST_OK) queue_is_finished(q);
  MUST(!multicast_queue_is_valid(q), "a destroyed queue is valid");
}

OPERATION("multicast_queue_start", 6) {
  EXPECT(multicast_queue_start(random_other_queue()), OK | INVALID_HANDLE | STATE);
}

OPERATION("multicast_queue_stop", 4) {
  if (LOAD(world_is_calm) && !is_outside_of_calls()) return;
  EXPECT(multicast_queue_stop(random_other_queue()), OK | PENDING | INVALID_HANDLE | STATE);
}

void run_queues(void) {
  multicast_queue q = {LOAD(world_queues[0])};
  struct pollfd polled = {multicast_queue_fd(q), POLLIN, 0};
  if (poll(&polled, 1, 1) == 1) run_queue(q);
  for (int i = 1; i < QUEUE_COUNT; ++i) {
    multicast_queue other = {LOAD(world_queues[i])};
    run_queue(other);
  }
  end_abandoned();
}

/* ---- Choosing -------------------------------------------------------------------------------- */

static operation operations[100];
static int operation_count;

void operation_register(operation o) {
  MUST(operation_count < (int)(sizeof operations / sizeof *operations), "too many operations");
  operations[operation_count++] = o;
}

static const operation *choose(void) {
  uint32_t sum = 0, number;
  int i;
  for (i = 0; i < operation_count; ++i) sum += operations[i].weight;
  number = random_below(sum);
  for (i = 0; number >= operations[i].weight; ++i) number -= operations[i].weight;
  return &operations[i];
}

void operate(void) {
  static const operation make_room = {"multicast_remove: too many contexts", 0, remove_listed};
  actor *a = actor_current();
  bool is_full = context_count() - borrowed_in_doubt() > MOST_CONTEXTS;
  const operation *o = is_full ? &make_room : choose();
  if (LOAD(a->doing_count) == 0) a->budget = BUDGET;
  doing(o->name);
  o->perform();
  doing_end();
}

void operate_inside_function(void) { operate_inside(NULL); }

void operate_inside(context *c) {
  actor *a = actor_current();
  if (a->is_plain) return;
  /* The outermost call on a queue's thread, or on an ending thread, receives a new budget. */
  if (a->calls + a->releases == 1 && LOAD(a->doing_count) == 0) a->budget = BUDGET;
  if (c != NULL && one_in(100)) {
    if (one_in(2)) sched_yield(); else nap(random_below(50));
  }
  if (LOAD(a->doing_count) < DEEPEST && a->budget > 0 && one_in(4)) {
    --a->budget;
    operate();
  }
  if (c != NULL && a->releases == 0 && a->weak_calls == 0 && one_in(3000)) pthread_exit(NULL);
}
