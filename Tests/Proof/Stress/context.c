#define _GNU_SOURCE
#include "context.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "actor.h"
#include "atomics.h"
#include "failure.h"
#include "kept.h"
#include "parcel.h"

enum { ALIVE = 0x600D600D, ENDED = 0x0DEADBAD };

/* A hash table of the tokens whose removal is complete. */
enum { FINISHED = 1 << 16 };
static uint64_t finished[FINISHED];

static int64_t alive;
static uint64_t calls, releases;
static void (*call_body)(context *);

int64_t context_count(void) { return LOAD(alive); }
uint64_t context_calls(void) { return LOAD(calls); }
uint64_t context_releases(void) { return LOAD(releases); }
void set_call_body(void (*body)(context *)) { call_body = body; }

/* ---- Payloads -------------------------------------------------------------------------------- */

/* A payload's bytes depend on the event and the offset, so that calls detect a copy from the wrong
 * offset or of the wrong size. */
enum { EVENT_COUNT = 70 };
static unsigned char payloads[EVENT_COUNT][PAYLOAD_LIMIT];

__attribute__((constructor)) static void fill_payloads(void) {
  for (int event = 0; event < EVENT_COUNT; ++event) {
    for (int i = 0; i < PAYLOAD_LIMIT; ++i) payloads[event][i] = (unsigned char)(i * 3 + event);
  }
}

const void *payload_of(uint32_t event, size_t size) {
  (void)size;
  return payloads[event % PARCELS % EVENT_COUNT];
}

uint32_t random_event(void) { return random_below(EVENT_COUNT); }

/* Returns a random payload size. The payload is empty, or small enough for a queue to store it in
 * the call, or so large that queued calls share one copy. */
size_t random_size(void) {
  switch (random_below(3)) {
    case 0: return 0;
    case 1: return 1 + random_below(32);
    default: return 33 + random_below(PAYLOAD_LIMIT - 33);
  }
}

static void check_payload(uint32_t event, const void *payload, size_t size) {
  const unsigned char *bytes = payload_of(event, size);
  if (event == VISITED) return;
  MUST(event % PARCELS < EVENT_COUNT, "event %u", event);
  MUST(size <= PAYLOAD_LIMIT, "size %zu", size);
  MUST(memcmp(payload, bytes, size) == 0, "payload of event %u, %zu bytes", event, size);
  if (event < PARCELS) MUST(size > 0 || payload == bytes, "payload of event %u", event);
}

static bool is_parcel(uint32_t event) { return event >= PARCELS && event != VISITED; }

/* ---- The state ------------------------------------------------------------------------------- */

static void check_alive(const context *c, const char *when) {
  uint32_t state = LOAD(c->state);
  MUST(state == ALIVE, "context %s, state 0x%x, token 0x%llx", when, state,
       (unsigned long long)c->token.id);
}

static uint64_t *finished_place(multicast_token token) {
  return &finished[(token.id ^ token.id >> 30) % FINISHED];
}

void token_is_finished(multicast_token token) { STORE(*finished_place(token), token.id); }

static void check_not_finished(const context *c, const char *when) {
  if (!c->has_token) return;
  MUST(LOAD(*finished_place(c->token)) != c->token.id,
       "a call %s after a removal has returned OK, token 0x%llx", when,
       (unsigned long long)c->token.id);
}

/* Checks that the innermost invocation of this thread makes its calls in order, and that it does
 * not call delegates that this thread has added since the invocation began. */
static void check_order(const context *c) {
  order *o = actor_current()->order;
  if (o == NULL || actor_current()->has_deferred || c->is_shared) return;
  MUST(c->options.priority <= o->priority, "priority %d after %d", c->options.priority,
       o->priority);
  o->priority = c->options.priority;
  MUST(c->adder != LOAD(actor_current()->id) || c->added < o->number,
       "called by invocation %llu of the thread, but added after %llu had begun",
       (unsigned long long)o->number, (unsigned long long)c->added);
}

/* Checks the current name, which is NULL in calls made by token. */
static void check_name(const context *c) {
  const char *name = multicast_current_name();
  if (c->prefixed == NULL) MUST(name == NULL || c->is_shared, "a name outside of a prefix");
  else if (name != NULL)
    MUST(strncmp(name, c->prefixed, c->prefix_size) == 0, "%s does not begin as %s", name,
         c->prefixed);
}

/* Expects the innermost call on the call stack to be the current call. */
static void check_stack(multicast_token token) {
  multicast_token stack[16];
  int64_t depth = multicast_call_stack(stack, 16);
  MUST(depth > 0, "%lld calls inside a call", (long long)depth);
  if (depth > 16) return;
  MUST(stack[depth - 1].id == token.id, "call %lld is of 0x%llx, not 0x%llx", (long long)depth,
       (unsigned long long)stack[depth - 1].id, (unsigned long long)token.id);
}

static void call_begins(context *c, uint32_t event, const void *payload, size_t size) {
  ADD(c->calls, 1);
  check_alive(c, "at the begin of a call");
  check_name(c);
  MUST(c->word == (uint32_t)(uintptr_t)c, "context overwritten at the begin of a call");
  if (c->has_token) {
    MUST(c->token.id != 0, "token of a registration that is called");
    MUST(multicast_token_current().id == c->token.id, "current 0x%llx, called 0x%llx",
         (unsigned long long)multicast_token_current().id, (unsigned long long)c->token.id);
    check_stack(c->token);
  }
  if (!c->is_shared) {
    MUST(LOAD(c->released) == 0, "a call begins after the release");
    if (c->options.flags & MULTICAST_ONCE) {
      MUST(ADD(c->begun, 1) == 1, "called once: call %d", c->begun);
    }
    if (event < 64 && c->options.events != 0) {
      MUST(c->options.events >> event & 1, "event %u of 0x%llx", event,
           (unsigned long long)c->options.events);
    }
  }
  check_not_finished(c, "begins");
  check_order(c);
  check_payload(event, payload, size);
  if (is_parcel(event)) parcel_call_begins(event, payload, size);
}

static void call_ends(void *argument) {
  context *c = argument;
  check_alive(c, "at the end of a call");
  MUST(c->word == (uint32_t)(uintptr_t)c, "context overwritten at the end of a call");
  check_not_finished(c, "ends");
  ADD(c->calls, -1);
  --actor_current()->calls;
}

static void call(context *c, uint32_t event, const void *payload, size_t size) {
  ++actor_current()->calls;
  ADD(calls, 1);
  call_begins(c, event, payload, size);
  pthread_cleanup_push(call_ends, c); /* the thread may end inside the call */
  if (!c->is_quiet) call_body(c);
  check_payload(event, payload, size);
  if (is_parcel(event)) parcel_call_ends(event, payload, size);
  pthread_cleanup_pop(true);
  if (is_parcel(event)) parcel_call_returns(payload);
}

static void call_plain(void *argument, uint32_t event, const void *payload, size_t size) {
  call(argument, event, payload, size);
}

/* A second function, so that some delegates differ only in their functions. */
static void call_other(void *argument, uint32_t event, const void *payload, size_t size) {
  call(argument, event, payload, size);
}

static void call_weak(void *argument, uint32_t event, const void *payload, size_t size) {
  context *c = ((strong *)argument)->context;
  MUST(LOAD(c->locked) > 0, "a call without a lock");
  ++actor_current()->weak_calls;
  call(c, event, payload, size);
  --actor_current()->weak_calls;
}

static void *on_lock(void *argument) {
  context *c = argument;
  check_alive(c, "at lock");
  check_not_finished(c, "locks its context");
  if (one_in(16)) return NULL;
  ADD(c->locked, 1);
  return &c->part;
}

static void on_unlock(void *argument) {
  context *c = ((strong *)argument)->context;
  check_alive(c, "at unlock");
  MUST(ADD(c->locked, -1) >= 0, "an unlock without a lock");
}

static void on_release(void *argument) {
  context *c = argument;
  if (is_in_child()) return; /* in a child, calls of the parent's other threads never end */
  ++actor_current()->releases;
  ADD(releases, 1);
  check_alive(c, "at release");
  if (!c->is_shared) {
    MUST(ADD(c->released, 1) == 1, "releases: %d", c->released);
    MUST(LOAD(c->calls) == 0, "calls during the release: %d", c->calls);
    MUST(LOAD(c->locked) == 0, "locks during the release: %d", c->locked);
  }
  if (!c->is_quiet) call_body(NULL);
  context_release(c);
  --actor_current()->releases;
}

/* ---- Create and end -------------------------------------------------------------------------- */

static context *make(void) {
  context *c = calloc(1, sizeof *c);
  MUST(c != NULL, "memory");
  c->state = ALIVE;
  c->word = (uint32_t)(uintptr_t)c;
  c->references = 1;
  c->has_token = true;
  c->options = multicast_add_options_default();
  c->options.priority = (int32_t)random_below(4) - 1;
  if (one_in(2)) c->options.priority = 0;
  c->adder = LOAD(actor_current()->id);
  c->added = actor_current()->invocations;
  c->part.context = c;
  ADD(alive, 1);
  return c;
}

context *context_make_borrowed(void) { return make(); }

context *context_make(void) {
  context *c = make();
  c->is_owned = true;
  c->options.release = on_release;
  if (one_in(8)) c->options.flags |= MULTICAST_ONCE;
  if (one_in(8)) c->options.label = MULTICAST_HERE;
  if (one_in(4)) c->options.flags |= MULTICAST_LATEST;
  if (one_in(6)) c->options.events = random_number();
  if (one_in(6)) {
    c->is_weak = true;
    c->options.lock = on_lock;
    c->options.unlock = on_unlock;
  }
  return c;
}

multicast make_multicast_of_contexts(const multicast_create_options *more) {
  multicast_create_options options = *more;
  options.reentry = random_below(4);
  options.lock_context = on_lock;
  options.unlock_context = on_unlock;
  options.release_context = on_release;
  return multicast_create_with(&options);
}

context *context_make_shared(void) {
  context *c = context_make();
  c->is_weak = true;
  c->options.lock = NULL;
  c->options.unlock = NULL;
  c->options.release = NULL;
  if (one_in(2)) c->options.flags = 0;
  if (one_in(2)) c->options.events = 0;
  return c;
}

multicast_delegate context_delegate(context *c) {
  multicast_delegate d;
  d.function = c->is_weak ? call_weak : ((uintptr_t)c >> 5) % 2 ? call_plain : call_other;
  d.context = c;
  return d;
}

void context_retain(context *c) { ADD(c->references, 1); }

void context_release(context *c) {
  int32_t left = __atomic_sub_fetch(&c->references, 1, __ATOMIC_ACQ_REL);
  MUST(left >= 0, "references left: %d", left);
  if (left == 0) context_end(c);
}

void context_end(context *c) {
  uint32_t was = ALIVE;
  MUST(CHANGE(c->state, &was, ENDED), "context ends twice, state 0x%x", was);
  MUST(LOAD(c->calls) == 0, "calls at the end of a context: %d", c->calls);
  c->word = ENDED;
  if (c->group != NULL) ADD(*c->group, -1);
  ADD(alive, -1);
  keep_for_a_while(c, sizeof *c);
}
