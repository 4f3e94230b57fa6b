#define _GNU_SOURCE
#include "sessions.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor.h"
#include "atomics.h"
#include "context.h"
#include "failure.h"
#include "operations.h"
#include "shipment.h"
#include "statuses.h"
#include "waker.h"
#include "world.h"

void ignore_call(void *context, uint32_t event, const void *payload, size_t size) {
  failed(__FILE__, __LINE__, "never called", "a delegate that was never added was called");
}

enum { MEMBERS = 6 };

/* The contexts that a session has added. The session owns references to them, so that it can read
 * their tokens. */
typedef struct session {
  context *members[MEMBERS];
  uint32_t count;
} session;

/* Adds the members of a session to the target, or to random multicasts if `target` is 0. */
static void add_members(session *s, multicast target, multicast_lifetime lifetime,
                        multicast_queue queue, context *(*make)(void)) {
  for (s->count = 0; s->count < MEMBERS; ++s->count) {
    context *c = make();
    multicast m = target.id != 0 ? target : random_multicast();
    context_retain(c);
    c->options.lifetime = lifetime;
    c->options.queue = queue.id != 0 || one_in(2) ? queue : random_queue();
    EXPECT(multicast_add(m, context_delegate(c), &c->options, &c->token), OK | INVALID_HANDLE);
    /* The multicast's default `release` does not run if the add fails. */
    if (c->token.id == 0 && c->options.release == NULL) context_release(c);
    s->members[s->count] = c;
    STORE(world_tokens[random_below(TOKEN_COUNT)], c->token.id);
  }
}

/* Lets other threads invoke for a moment. */
static void let_others_run(void) {
  uint32_t i, times = random_below(20);
  for (i = 0; i < times; ++i) sched_yield();
}

/* Records that, from now on, a running or new call to a member is a failure. */
static void members_are_finished(session *s) {
  for (uint32_t i = 0; i < s->count; ++i) {
    context *c = s->members[i];
    if (c->token.id != 0) token_is_finished(c->token);
    MUST(LOAD(c->calls) == 0, "calls of member %u", i);
  }
}

static void members_are_released(session *s) {
  for (uint32_t i = 0; i < s->count; ++i) {
    MUST(LOAD(s->members[i]->released) == 1, "releases of member %u: %d", i,
         s->members[i]->released);
  }
}

static void release_members(session *s) {
  while (s->count > 0) context_release(s->members[--s->count]);
}

OPERATION("a session under a lifetime", 6) {
  multicast_lifetime l = multicast_lifetime_create();
  multicast any = {0};
  multicast_queue none = {0};
  session s;
  MUST(l.id != 0, "a lifetime");
  add_members(&s, any, l, none, context_make);
  let_others_run();
  multicast_status status = multicast_lifetime_end(l);
  EXPECT(status, OK | PENDING);
  if (status == MULTICAST_OK) {
    members_are_finished(&s);
    members_are_released(&s);
  }
  release_members(&s);
}

OPERATION("a session with a queue", 4) {
  multicast_queue q = make_queue();
  multicast any = {0};
  multicast_lifetime none = {0};
  bool was_outside = is_outside_of_calls();
  session s;
  multicast_queue old = {SWAP(world_queues[1 + random_below(QUEUE_COUNT - 1)], q.id)};
  EXPECT(destroy_queue(old), OK | PENDING | INVALID_HANDLE);
  add_members(&s, any, none, q, context_make);
  if (one_in(2)) (void)multicast_queue_start(q);
  let_others_run();
  multicast_status status = destroy_queue(q);
  EXPECT(status, OK | PENDING | INVALID_HANDLE);
  if (status == MULTICAST_OK && was_outside) members_are_finished(&s);
  release_members(&s);
}

OPERATION("a session with a multicast", 6) {
  multicast m = multicast_create();
  multicast_lifetime none = {0};
  multicast_queue any = {0};
  multicast_status status;
  bool was_outside = is_outside_of_calls();
  session s;
  multicast old = {SWAP(world_multicasts[random_below(MULTICAST_COUNT)], m.id)};
  MUST(m.id != 0, "a multicast");
  EXPECT(multicast_destroy(old), OK | PENDING | INVALID_HANDLE);
  add_members(&s, m, none, any, context_make);
  let_others_run();
  if (one_in(2)) {
    bool was_certain = waits_for_certain();
    int64_t count = multicast_remove_all_within(m, UINT64_MAX, &status);
    EXPECT_COUNT(count, OK | INVALID_HANDLE);
    EXPECT(status, OK | INVALID_HANDLE | PENDING);
    MUST(status != MULTICAST_PENDING || !was_certain, "a removal outside all calls waits");
    if (status == MULTICAST_OK) members_are_finished(&s);
  }
  status = multicast_destroy(m);
  EXPECT(status, OK | PENDING | INVALID_HANDLE);
  if (status == MULTICAST_OK && was_outside) members_are_finished(&s);
  release_members(&s);
}

/* The most recent report of a multicast's `listeners_changed` function. The multicast's `release`
 * function frees this report. */
typedef struct listeners {
  int32_t is_wanted;
  int32_t is_notifying;
  int32_t references;
} listeners;

static void hear(void *context, multicast target, bool wanted) {
  listeners *l = context;
  MUST(ADD(l->is_notifying, 1) == 1, "two threads tell at once");
  MUST(LOAD(l->is_wanted) == !wanted, "told twice: %d", wanted);
  STORE(l->is_wanted, wanted);
  ADD(l->is_notifying, -1);
}

static void leave_listeners(void *context) {
  listeners *l = context;
  if (__atomic_sub_fetch(&l->references, 1, __ATOMIC_ACQ_REL) == 0) free(l);
}

static void release_listeners(void *context) {
  listeners *l = context;
  /* The notifying thread does not exist in the child of a fork. */
  MUST(actor_current()->is_plain || (LOAD(l->is_notifying) == 0 && LOAD(l->is_wanted) == 0),
       "released while it is wanted");
  leave_listeners(l);
}

/* The multicast has functions that lock and release the contexts. Other threads know only the
 * tokens of the multicast's members. */
OPERATION("a session with contexts of one kind", 8) {
  multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  listeners *heard = calloc(1, sizeof *heard);
  multicast_lifetime none = {0};
  multicast_queue any = {0};
  bool was_outside = is_outside_of_calls();
  session s;
  MUST(heard != NULL, "memory");
  heard->references = 2;
  options.context = heard;
  options.listeners_changed = one_in(2) ? hear : NULL;
  options.release = release_listeners;
  multicast m = make_multicast_of_contexts(&options);
  MUST(m.id != 0, "a multicast");
  add_members(&s, m, none, any, context_make_shared);
  for (uint32_t i = random_below(4); i > 0; --i) {
    order own, *outer = order_begins(&own);
    EXPECT_COUNT(multicast_invoke(m, 1, payload_of(1, 8), 8), OK | STATE | INVALID_HANDLE);
    order_ends(outer, 0);
    visit_one(m);
    EXPECT_COUNT(multicast_prune(m), OK | INVALID_HANDLE);
    let_others_run();
  }
  multicast_status status = multicast_destroy(m);
  EXPECT(status, OK | PENDING | INVALID_HANDLE);
  if (status == MULTICAST_OK && was_outside) members_are_finished(&s);
  leave_listeners(heard);
  release_members(&s);
}

/* ---- Waiting for queued calls ---------------------------------------------------------------- */

/* A multicast and a queue for its calls. The delegates and the copy, release and wake functions
 * perform no operations, because operations could use the token of the current call. */
typedef struct line {
  multicast target;
  multicast_queue queue;
  waker *waker;
} line;

static void make_line(line *l) {
  multicast_queue_options options = multicast_queue_options_default();
  uint32_t i, count = 1 + random_below(MEMBERS);
  l->target = multicast_create();
  l->waker = waker_make(&options);
  waker_make_quiet(l->waker);
  options.capacity = 1 + random_below(8);
  options.overflow = (multicast_overflow)random_below(2); /* it never blocks */
  l->queue = multicast_queue_create(&options);
  MUST(l->target.id != 0 && l->queue.id != 0, "a multicast and a queue");
  waker_belongs_to(l->waker, l->queue);
  for (i = 0; i < count; ++i) {
    context *c = context_make();
    c->is_quiet = true;
    c->options.queue = l->queue;
    EXPECT(multicast_add(l->target, context_delegate(c), &c->options, &c->token), OK);
  }
}

/* Returns whether this thread must not wait for queued calls. In a calm round, waiting inside a
 * delegate could make that delegate's removal return early. */
static bool is_in_calm_call(void) { return LOAD(world_is_calm) && !is_outside_of_calls(); }

static int64_t to_line(const shipment *s, multicast_outcome *o) {
  return multicast_invoke_with(s->target, &s->how, o);
}

static int64_t send_to(const line *l, uint64_t timeout_ns, multicast_outcome *o) {
  shipment s;
  shipment_make(&s, (shipping)random_below(3));
  s.receipts->is_quiet = true;
  s.target = l->target;
  s.how.flags = MULTICAST_WAIT;
  s.how.timeout_ns = timeout_ns;
  return shipment_send(&s, o, to_line);
}

static multicast_queue_stats stats_of(const line *l) {
  multicast_queue_stats s = multicast_queue_stats_default();
  EXPECT(multicast_queue_get_stats(l->queue, &s), OK);
  return s;
}

/* No other operation uses this queue, so the outcome of each invocation is known. */
OPERATION("a session that waits for the thread of a queue", 3) {
  line l;
  multicast_outcome o;
  if (is_in_calm_call()) return;
  make_line(&l);
  EXPECT(multicast_queue_start(l.queue), OK);
  for (uint32_t left = 1 + random_below(6); left > 0; --left) {
    EXPECT_COUNT(send_to(&l, 0, &o), OK);
    MUST(o.unfinished == 0, "%llu unfinished", (unsigned long long)o.unfinished);
  }
  /* The result may be MULTICAST_PENDING, because the queue's thread may still be releasing a
   * delegate with MULTICAST_ONCE. */
  multicast_status status = destroy_queue(l.queue);
  EXPECT(status, OK | PENDING);
  status = multicast_destroy(l.target);
  EXPECT(status, OK | PENDING);
}

/* This thread is expected to run the queue, so its invocations must not wait. */
OPERATION("a session that waits for itself", 6) {
  line l;
  multicast_outcome o;
  int32_t wakes;
  if (is_in_calm_call()) return;
  make_line(&l);
  int64_t count = send_to(&l, 1, &o);
  uint64_t pending = stats_of(&l).pending;
  /* The invocation returns MULTICAST_OK instead of timing out if another thread that might run the
   * queue is waiting for this thread or for releases. */
  EXPECT_COUNT(count, pending > 0 ? OK | TIMEOUT : OK);
  MUST(o.unfinished == pending && o.finished == 0, "%llu unfinished, %llu pending",
       (unsigned long long)o.unfinished, (unsigned long long)pending);
  MUST(waker_calls(l.waker) == (pending > 0), "wakes: %d", waker_calls(l.waker));
  if (pending > 0) {
    order *outer = actor_current()->order;
    actor_current()->order = NULL;
    count = multicast_queue_run(l.queue, 1);
    EXPECT_COUNT(count, OK);
    actor_current()->order = outer;
    wakes = stats_of(&l).pending > 0 ? 2 : 1;
    MUST(waker_calls(l.waker) == wakes, "wakes after a run: %d", waker_calls(l.waker));
    EXPECT_COUNT(multicast_queue_clear(l.queue), OK);
    /* This thread counts as the queue's consumer only if its run has made a call. If all calls had
     * been cancelled, the run has made none. */
    if (count > 0) EXPECT_COUNT(send_to(&l, 0, &o), OK);
    else EXPECT_COUNT(send_to(&l, 1, &o), OK | TIMEOUT);
    pending = stats_of(&l).pending;
    MUST(o.unfinished == pending && o.finished == 0, "%llu unfinished, %llu pending",
         (unsigned long long)o.unfinished, (unsigned long long)pending);
    if (pending > 0 && wakes == 1) ++wakes; /* otherwise no run since the last wake */
    MUST(waker_calls(l.waker) == wakes, "wakes at the end: %d", waker_calls(l.waker));
  }
  EXPECT(destroy_queue(l.queue), OK);
  EXPECT(multicast_destroy(l.target), OK);
}

/* Calls only library functions, because another thread of the parent may have been holding one of
 * the test's locks during the fork. */
static void work_in_child(const line *l) {
  alarm(60); /* ends a hanging child */
  EXPECT(multicast_queue_destroy(l->queue), OK);
  MUST(multicast_invoke(l->target, 0, NULL, 0) == 0, "a delegate of a destroyed queue");
  _exit(0);
}

/* Forks while calls are queued. The child must not release the payloads, which belong to the
 * parent. */
OPERATION("a session that forks", 1) {
  actor *a = actor_current();
  bool was_plain = a->is_plain;
  multicast_outcome o;
  int status = -1;
  line l;
  if (is_in_calm_call()) return;
  make_line(&l);
  (void)send_to(&l, 1, &o);
  a->is_plain = true; /* for releases that run inside fork() */
  pid_t child = fork();
  if (child == 0) work_in_child(&l);
  a->is_plain = was_plain;
  MUST(child > 0, "fork");
  while (waitpid(child, &status, 0) == -1 && errno == EINTR) continue;
  MUST(status == 0, "status of the child: 0x%x", status);
  EXPECT(destroy_queue(l.queue), OK);
  EXPECT(multicast_destroy(l.target), OK);
}

/* The queue and the multicast of a session whose calls another thread has to end, or 0. */
static uint64_t abandoned_queue, abandoned_target;

/* No thread runs the queue of this session. end_abandoned() ends the session's calls on another
 * thread. */
OPERATION("a session that others end", 3) {
  static uint64_t is_taken;
  uint64_t no = 0;
  multicast_outcome o;
  line l;
  if (is_in_calm_call()) return;
  if (!CHANGE(is_taken, &no, 1)) return;
  make_line(&l);
  STORE(abandoned_target, l.target.id);
  STORE(abandoned_queue, l.queue.id);
  EXPECT_COUNT(send_to(&l, 0, &o), OK);
  STORE(abandoned_queue, 0);
  EXPECT(destroy_queue(l.queue), OK | PENDING | INVALID_HANDLE);
  EXPECT(multicast_destroy(l.target), OK | PENDING);
  STORE(is_taken, 0);
}

void end_abandoned(void) {
  multicast_queue q = {LOAD(abandoned_queue)};
  multicast m = {LOAD(abandoned_target)};
  multicast_queue_stats s = multicast_queue_stats_default();
  if (multicast_queue_get_stats(q, &s) != MULTICAST_OK || s.pending == 0) return;
  switch (random_below(4)) {
    case 0: EXPECT(destroy_queue(q), OK | PENDING | INVALID_HANDLE); break;
    case 1: EXPECT_COUNT(multicast_queue_clear(q), OK | INVALID_HANDLE); break;
    case 2: EXPECT_COUNT(multicast_remove_all(m), OK | INVALID_HANDLE); break;
    default: EXPECT_COUNT(multicast_queue_run(q, 0), OK | INVALID_HANDLE);
  }
}
