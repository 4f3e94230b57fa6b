#include "callbacks.h"

#include <stdlib.h>

#include "history.h"
#include "operations.h"

/* Two objects for each context, namely the weak context and the strong context that `lock`
 * returns. */
static struct {
  char weak, strong;
} objects[CONTEXTS];

void *context_pointer(int context) {
  return context == CONTEXTS - 1 ? NULL : (void *)&objects[context].weak;
}

static int context_number(const void *pointer) {
  for (int i = 0; i < CONTEXTS; ++i)
    if (pointer == context_pointer(i)) return i;
  EXPECT(false, "a context that was never added");
  return NONE;
}

multicast_delegate delegate_of(int function, int context) {
  multicast_delegate d;
  d.function = function == NONE ? NULL : delegate_functions[function];
  d.context = context_pointer(context);
  return d;
}

unsigned char payload_byte(int seed, size_t i) {
  return (unsigned char)((size_t)seed * 31 + i * 7 + (i >> 8));
}

static void perform_inside(void) {
  record r;
  history_indent();
  while (records_next_inside(&r) && perform(&r)) continue;
  history_outdent();
}

/* ---- The call to a delegate ------------------------------------------------------------------ */

static void *expected_context(const registration *r) {
  return r->is_locked ? (void *)&objects[r->context].strong : context_pointer(r->context);
}

/* Expects the next call to use the given function and context, and returns the call's
 * registration. */
static registration *begin_call(frame *f, multicast_function function, const void *context) {
  model_settle(f);
  if (f->phase == BETWEEN) {
    model_advance(f);
    EXPECT(f->current != NONE, "a call too many");
    EXPECT(!model.registrations[f->current].is_locked, "a call before its lock");
  } else {
    EXPECT(f->phase == LOCKED, "a call out of turn");
  }
  registration *r = &model.registrations[f->current];
  EXPECT(function == delegate_functions[r->function], "a call of the wrong delegate");
  EXPECT(context == expected_context(r), "a call with the wrong context");
  model_call_begins(f);
  if (r->token.id == 0) r->token = multicast_token_current();
  EXPECT_EQ(multicast_token_current().id, r->token.id);
  EXPECT_EQ(multicast_token_is_valid(r->token), r->is_live);
  return r;
}

static void expect_payload(const frame *f, const void *payload, size_t size) {
  const unsigned char *bytes = payload;
  EXPECT_EQ(size, f->call.size);
  if (size == 0 || f->kind == INVOKE)
    EXPECT(payload == f->call.payload, "a call with the wrong payload");
  if (f->kind == RUN && f->call.cargo != NONE && model.cargos[f->call.cargo].has_payload)
    EXPECT(payload == f->call.payload, "a call with the wrong payload");
  else if (size > 0 && f->kind == RUN)
    EXPECT((uintptr_t)payload % 16 == 0, "a copied payload that is not aligned");
  for (size_t i = 0; i < size; ++i) EXPECT_EQ(bytes[i], payload_byte(f->call.seed, i));
}

static void on_call(int function, void *context, uint32_t event, const void *payload,
                    size_t size) {
  frame *f = model_top();
  NOTE("<- call: function %lld", function);
  EXPECT(f != NULL && (f->kind == INVOKE || f->kind == RUN), "a call outside all invocations");
  registration *r = begin_call(f, delegate_functions[function], context);
  NOTE("   which is r%lld", r - model.registrations);
  EXPECT_EQ(event, f->call.event);
  expect_payload(f, payload, size);
  if (model.recursions > 0) {
    --model.recursions;
    history_indent();
    invoke_again(r->target);
    history_outdent();
  }
  perform_inside();
  expect_payload(f, payload, size); /* the payload is valid until the call returns */
  model_call_ends(f);
  NOTE("-> of r%lld", r - model.registrations);
  model_resume();
}

#define DELEGATE(NUMBER)                                                       \
  static void call_##NUMBER(void *context, uint32_t event, const void *payload, size_t size) { \
    on_call(NUMBER, context, event, payload, size);                            \
  }
DELEGATE(0)
DELEGATE(1)
DELEGATE(2)
const multicast_function delegate_functions[FUNCTIONS] = {call_0, call_1, call_2};

bool visit_delegate(void *context, const multicast_delegate *delegate) {
  frame *f = model_top();
  NOTE("<- visit");
  EXPECT(f != NULL && f->kind == VISIT, "a visit outside all multicast_visit");
  EXPECT(context == f, "a visit with the wrong context");
  registration *r = begin_call(f, delegate->function, delegate->context);
  NOTE("   of r%lld", r - model.registrations);
  perform_inside();
  bool goes_on = f->budget > 0;
  model_call_ends(f);
  model_resume();
  return goes_on;
}

bool enumerate_registration(void *context, const multicast_registration *passed) {
  frame *f = model_top();
  NOTE("<- enumerate");
  EXPECT(f != NULL && f->kind == ENUMERATE, "a registration outside all multicast_enumerate");
  EXPECT(context == f, "a registration with the wrong context");
  registration *r = begin_call(f, passed->delegate.function,
                 passed->strong != NULL ? passed->strong : passed->delegate.context);
  NOTE("   of r%lld", r - model.registrations);
  EXPECT(passed->delegate.context == context_pointer(r->context), "another context");
  EXPECT_EQ(passed->token.id, r->token.id);
  EXPECT_EQ(passed->is_paused, r->is_paused);
  EXPECT_EQ(passed->priority, r->priority);
  perform_inside();
  bool goes_on = f->budget > 0;
  model_call_ends(f);
  model_resume();
  return goes_on;
}

/* ---- Weak contexts --------------------------------------------------------------------------- */

void *lock_context(void *context) {
  frame *f = model_top();
  NOTE("<- lock: context %lld", context_number(context));
  EXPECT(f != NULL && f->kind != CHANGE, "a lock outside all invocations");
  model_advance(f);
  EXPECT(f->current != NONE, "a lock too many");
  int index = f->current;
  registration *r = &model.registrations[index];
  EXPECT(r->is_locked, "a lock of a delegate without `lock`");
  EXPECT(context == context_pointer(r->context), "a lock of the wrong context");
  ++r->in_use;
  f->phase = LOCKING;
  perform_inside();
  if (model.context_is_dead[r->context]) {
    NOTE("-> dead: r%lld", index);
    if (r->is_live) {
      model_remove(index);
      if (f->kind == PRUNE) ++f->made;
    }
    if (f->kind == RUN) model_queue_call_is_dead(f->queue);
    model_use_ends(f);
    model_resume();
    return NULL;
  }
  NOTE("-> alive: r%lld", index);
  f->phase = r->is_live && f->kind != PRUNE ? LOCKED : UNLOCK;
  if (!r->is_live && f->kind == RUN) model_queue_call_is_dead(f->queue);
  model_resume();
  return &objects[r->context].strong;
}

void unlock_context(void *strong) {
  frame *f = model_top();
  NOTE("<- unlock");
  EXPECT(f != NULL && f->kind != CHANGE, "an unlock outside all invocations");
  registration *r = &model.registrations[f->current];
  /* If a delegate is paused inside its own `lock`, the header leaves open whether its call has
   * begun. */
  EXPECT(f->phase == UNLOCK || (f->phase == LOCKED && r->is_paused && f->kind != RUN),
         "an unlock out of turn");
  EXPECT(f->phase == UNLOCK || f->kind != ENUMERATE, "a registration that was not passed");
  EXPECT(strong == &objects[r->context].strong, "an unlock of the wrong context");
  f->phase = UNLOCKING;
  perform_inside();
  model_use_ends(f);
  NOTE("-> of r%lld", r - model.registrations);
  model_resume();
}

/* ---- Releases -------------------------------------------------------------------------------- */

static void on_release(int release, void *context) {
  int index, current;
  NOTE("<- release %lld of context %lld", release, context_number(context));
  EXPECT(model.depth > 0, "a release outside all functions of the library");
  model_follow_adding(model_top());
  model_follow_ending(model_top());
  model_settle(model_top());
  EXPECT(model_take_release(context_number(context), release, &index),
         "a release too many, or too early");
  if (model_current(&current))
    EXPECT_EQ(multicast_token_current().id,
              current == NONE ? 0 : model.registrations[current].token.id);
  ++model.releases_inside;
  perform_inside();
  --model.releases_inside;
  if (index != NONE) model.registrations[index].has_been_released = true;
  NOTE("-> of r%lld", index);
  model_resume();
}

static void release_0(void *context) { on_release(0, context); }
static void release_1(void *context) { on_release(1, context); }
void (*const release_functions[RELEASES])(void *) = {release_0, release_1};

/* ---- Payloads and wakes ---------------------------------------------------------------------- */

const void *copy_payload(const void *payload, size_t size) {
  frame *f = model_top();
  unsigned char *block = NULL;
  NOTE("<- copy");
  EXPECT(f != NULL, "a copy outside all functions of the library");
  int cargo = model_follow_copy(f);
  EXPECT(payload == f->call.payload && size == f->call.size, "a copy of something else");
  perform_inside();
  f->copy = NOT_COPYABLE;
  if (!f->copy_fails) {
    block = malloc(size > 0 ? size : 1);
    for (size_t i = 0; i < size; ++i) block[i] = payload_byte(f->call.seed, i);
    model_give_payload(cargo, block);
    f->copy = COPIED;
  }
  NOTE("-> p%lld, failed %lld", cargo, block == NULL);
  model_resume();
  return block;
}

static bool is_there(const model_cargo *c, const void *payload) {
  return c->has_payload && !c->is_released && c->payload == payload;
}

void release_payload(const void *payload, size_t size) {
  frame *f = model_top();
  int i = model.cargo_count - 1;
  NOTE("<- release of a payload");
  while (i >= 0 && !is_there(&model.cargos[i], payload)) --i;
  EXPECT(i >= 0, "a release of a payload that the library does not have");
  EXPECT(f != NULL, "a release outside all functions of the library");
  model_cargo *c = &model.cargos[i];
  NOTE("   which is p%lld", i);
  EXPECT_EQ(size, c->size);
  model_follow_cargo(f, i);
  c->due = NONE;
  c->is_released = true;
  free(c->payload);
  ++model.releases_inside;
  perform_inside();
  --model.releases_inside;
  NOTE("-> of p%lld", i);
  model_resume();
}

void wake_loop(void *context) {
  int queue = (int)(uintptr_t)context - 1;
  frame *f = model_top();
  if (queue >= model.queue_count) return; /* the queue is still being created */
  NOTE("<- wake of q%lld", queue);
  EXPECT(f != NULL, "a wake outside all functions of the library");
  EXPECT_EQ(model_follow_wake(f), queue);
  EXPECT(model.queues[queue].is_alive, "a wake of a destroyed queue");
  ++model.queues[queue].waking;
  perform_inside();
  --model.queues[queue].waking;
  NOTE("-> of q%lld", queue);
  model_resume();
}
