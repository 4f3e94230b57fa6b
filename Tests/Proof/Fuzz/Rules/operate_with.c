#include <stdlib.h>
#include <string.h>

#include "callbacks.h"
#include "history.h"
#include "operations.h"

/* The struct of a caller that was compiled with a later header. */
typedef struct newer_invocation {
  multicast_invocation known;
  uint64_t unknown[2];
} newer_invocation;

typedef struct newer_outcome {
  multicast_outcome known;
  uint64_t unknown[2];
} newer_outcome;

typedef enum passing { PLAIN, HANDED_OVER, COPIED_BY } passing;

/* The fields of a record: a: target; b: event; c: size; d: how the payload is passed, and whether
 * to wait; e: oddity of the options; f: outcome; g: name, and whether `copy` fails or how long to
 * wait. */
typedef struct request {
  argument argument;
  passing passing;
  newer_invocation how;
  const multicast_invocation *passed_how;
  bool is_readable;
  bool copy_fails;
  newer_outcome out, out_before;
  multicast_outcome *passed_out;
  bool is_writable;
  int cargo;
} request;

/* Returns the timeout. It is short if there is a queue that no thread has run, because a wait for
 * that queue's calls would never end. */
static uint64_t timeout_of(uint8_t byte) {
  static const uint64_t timeouts[] = {0, 1, MULTICAST_FOREVER, 0};
  for (int i = 0; i < model.queue_count; ++i)
    if (model.queues[i].is_alive && !model.queues[i].was_run) return 1;
  return timeouts[byte % 4];
}

static void make_odd(request *q, uint8_t byte) {
  multicast_invocation *how = &q->how.known;
  q->is_readable = byte < 0xF0 || byte >= 0xFA;
  switch (byte) {
    case 0xF0: q->passed_how = NULL; break;
    case 0xF1: how->struct_size = 0; break;
    case 0xF2: how->struct_size = sizeof *how - 8; break;
    case 0xF3: how->struct_size = 1025; break;
    case 0xF4: how->flags |= 2; break;
    case 0xF5: how->reserved = 1; break;
    case 0xF6: case 0xF7: case 0xF8: case 0xF9:
      how->struct_size = sizeof q->how;
      q->how.unknown[1] = 1;
      break;
    default: if (!q->is_readable || byte >= 0xFA) how->struct_size = sizeof q->how;
  }
}

static void make_outcome(request *q, uint8_t byte) {
  memset(&q->out, 0xA5, sizeof q->out);
  q->passed_out = byte % 8 == 0 ? NULL : &q->out.known;
  q->is_writable = byte < 0xF8;
  q->out.known.struct_size = byte % 8 == 1 ? sizeof q->out : sizeof q->out.known;
  if (!q->is_writable) {
    static const uint32_t sizes[] = {0, 4, 40, 1025};
    q->passed_out = &q->out.known;
    q->out.known.struct_size = sizes[byte % 4];
  }
  q->out_before = q->out;
}

static void make_request(request *q, const record *r) {
  multicast_invocation *how = &q->how.known;
  memset(q, 0, sizeof *q);
  q->argument = make_argument(r->b, r->c);
  q->passing = (passing)(r->d % 3);
  q->copy_fails = (r->g & 0x1C) == 0x1C;
  if (q->passing != PLAIN) { /* in this case, NULL is a valid payload */
    q->argument.passed = q->argument.payload;
    q->argument.is_missing = false;
  }
  *how = multicast_invocation_default();
  q->passed_how = how;
  if (q->passing == HANDED_OVER && q->argument.size == 0 && !q->argument.is_missing)
    q->argument.passed = q->argument.payload = malloc(1); /* only the address matters */
  how->event = q->argument.event;
  how->size = q->argument.size;
  how->payload = q->argument.passed;
  if (r->d & 64) {
    how->flags = MULTICAST_WAIT;
    how->timeout_ns = timeout_of(r->g);
  }
  if (q->passing != PLAIN) how->release = release_payload;
  if (q->passing == COPIED_BY) how->copy = copy_payload;
  make_odd(q, r->e);
  make_outcome(q, r->f);
  q->cargo = NONE;
}

static bool is_owned(const request *q) { return q->is_readable && q->passing == HANDED_OVER; }

/* Hands the payload over to the library. If there is no payload, hands over NULL, for which the
 * library also calls `release`. */
static void hand_over(request *q) {
  bool is_waiting = q->how.known.flags & MULTICAST_WAIT;
  q->cargo = model_new_cargo(q->argument.size, is_waiting);
  if (!is_owned(q)) return;
  model_give_payload(q->cargo, (void *)(uintptr_t)q->argument.passed);
  if (!q->argument.is_missing) q->argument.payload = NULL;
}

static frame *enter(request *q, int target) {
  frame *f = enter_invocation(target, &q->argument);
  hand_over(q);
  f->cargo = q->cargo;
  f->has_copier = q->passing == COPIED_BY;
  f->copy_fails = q->copy_fails;
  if (!is_owned(q)) return f;
  f->copy = COPIED;
  if (model_take_memory()) return f;
  NOTE("  without memory for the payload");
  f->is_over = f->has_failed = true;
  f->next = AT_END;
  model_end_invocation(f);
  return f;
}

static void expect_not_written(const request *q) {
  EXPECT(memcmp(&q->out, &q->out_before, sizeof q->out) == 0, "an outcome that was written");
}

static void expect_outcome(const request *q, const frame *f) {
  const multicast_outcome *o = &q->out.known;
  bool has_failed = f == NULL || f->has_failed;
  if (q->passed_out == NULL) return;
  if (!q->is_writable) {
    expect_not_written(q);
    return;
  }
  EXPECT_EQ(o->flags, 0);
  EXPECT_EQ(o->called, has_failed ? 0 : f->made - f->queued);
  EXPECT_EQ(o->queued, has_failed ? 0 : f->queued);
  EXPECT_EQ(o->refused, has_failed ? 0 : f->refused);
  EXPECT_EQ(o->finished, has_failed ? 0 : f->finished);
  EXPECT_EQ(o->unfinished, has_failed ? 0 : f->unfinished);
  if (o->struct_size == sizeof q->out) EXPECT_EQ(q->out.unknown[0] | q->out.unknown[1], 0);
}

/* Makes an invocation with wrong arguments, which must not call any function. */
static void finish_without_calls(request *q, int64_t (*send)(const request *, const choice *,
                                                             const char *),
                                 const choice *c, const char *name, outcomes *allowed) {
  model_enter(CHANGE);
  if (q->is_readable) hand_over(q);
  if (is_owned(q)) {
    if (!model_take_memory()) allow(allowed, MULTICAST_ERROR_OUT_OF_MEMORY);
    if (model.cargos[q->cargo].has_payload) (void)model_cargo_unref(q->cargo);
  }
  int64_t result = send(q, c, name);
  finish(result, allowed);
  if (result == MULTICAST_ERROR_INVALID_ARGUMENT) expect_not_written(q);
  else expect_outcome(q, NULL);
}

static void finish_with_calls(request *q, frame *f, int64_t result) {
  model_leave();
  NOTE("= %lld", result);
  if (f->has_failed) EXPECT_EQ(result, MULTICAST_ERROR_OUT_OF_MEMORY);
  else EXPECT_EQ(result, f->is_timeout ? MULTICAST_ERROR_TIMEOUT : f->made);
  expect_outcome(q, f);
}

static void add_errors(const request *q, outcomes *errors) {
  if (!q->is_readable) errors->count = 0; /* the library checks nothing else */
  if (!q->is_readable || !q->is_writable) allow(errors, MULTICAST_ERROR_INVALID_ARGUMENT);
}

static int64_t send_to_multicast(const request *q, const choice *c, const char *name) {
  multicast m = {c->id};
  return multicast_invoke_with(m, q->passed_how, q->passed_out);
}

static int64_t send_to_name(const request *q, const choice *c, const char *name) {
  multicast_broadcaster b = {c->id};
  return multicast_broadcaster_notify_with(b, name, q->passed_how, q->passed_out);
}

void perform_invoke_with(const record *r) {
  choice c = choose_multicast(r->a);
  request q;
  if (is_place_open(&c)) return;
  make_request(&q, r);
  outcomes errors = errors_of(&c, q.argument.is_missing);
  add_refusal(&c, &errors);
  add_errors(&q, &errors);
  NOTE("multicast_invoke_with(m%lld, event %lld, size %lld, passing %lld, flags %lld) p%lld",
       c.index, q.argument.event, q.argument.size, q.passing, q.how.known.flags,
       model.cargo_count);
  if (errors.count > 0) {
    finish_without_calls(&q, send_to_multicast, &c, NULL, &errors);
  } else {
    frame *f = enter(&q, c.index);
    finish_with_calls(&q, f, send_to_multicast(&q, &c, NULL));
  }
  free(q.argument.payload);
}

void perform_notify_with(const record *r) {
  choice c = choose_broadcaster(r->a);
  name_choice name = choose_name(r->g);
  request q;
  int target = NONE;
  make_request(&q, r);
  outcomes errors = errors_of(&c, q.argument.is_missing);
  if (name.name == NONE) allow(&errors, MULTICAST_ERROR_INVALID_ARGUMENT);
  else if (c.is_alive) target = model.broadcasters[c.index].targets[name.name];
  add_errors(&q, &errors);
  NOTE("multicast_broadcaster_notify_with(b%lld, n%lld, event %lld, size %lld, passing %lld) p%lld",
       c.index, name.name, q.argument.event, q.argument.size, q.passing, model.cargo_count);
  if (errors.count == 0 && target != NONE && model.multicasts[target].is_alive) {
    frame *f = enter(&q, target);
    finish_with_calls(&q, f, send_to_name(&q, &c, name.text));
  } else {
    /* See perform_notify(). */
    if (c.is_alive && name.name != NONE && !q.argument.is_missing && q.is_readable &&
        q.is_writable) {
      if (target == NONE || !model.multicasts[target].is_alive) allow(&errors, 0);
      if (target != NONE) allow(&errors, MULTICAST_ERROR_INVALID_HANDLE);
    }
    finish_without_calls(&q, send_to_name, &c, name.text, &errors);
  }
  free(q.argument.payload);
}

/* ---- One registration ------------------------------------------------------------------------ */

/* Returns the multicast of the chosen registration, or NONE. */
static int target_of(const choice *c) {
  return c->index == NONE ? NONE : model.registrations[c->index].target;
}

void perform_invoke_token(const record *r) {
  choice c = choose_registration(r->a);
  argument a = make_argument(r->b, r->c);
  multicast_token t = {c.id};
  outcomes errors = errors_of(&c, a.is_missing);
  if (c.is_alive && model.multicasts[target_of(&c)].is_visit_only)
    allow(&errors, MULTICAST_ERROR_STATE);
  NOTE("multicast_token_invoke(r%lld, event %lld, size %lld)", c.index, a.event, a.size);
  frame *f = errors.count > 0 ? model_enter(CHANGE) : enter_invocation(target_of(&c), &a);
  if (errors.count == 0) f->only = c.index;
  end_calls(f, multicast_token_invoke(t, a.event, a.passed, a.size), &errors);
  free(a.payload);
}

void perform_visit_token(const record *r) {
  choice c = choose_registration(r->a);
  multicast_token t = {c.id};
  bool is_null = r->c == 0xFF;
  outcomes errors = errors_of(&c, is_null);
  NOTE("multicast_token_visit(r%lld)", c.index);
  /* The visitor's result does not matter. */
  frame *f = begin_calls(&errors, VISIT, target_of(&c), 1 + r->b % 2);
  if (errors.count == 0) f->only = c.index;
  end_calls(f, multicast_token_visit(t, is_null ? NULL : visit_delegate, f), &errors);
}

/* Returns whether the header determines which calls are running. For example, the header leaves
 * this open inside `lock`. */
static bool is_stack_known(void) {
  for (int i = 0; i < model.depth; ++i) {
    frame_phase phase = model.frames[i].phase;
    if (phase == LOCKING || phase == LOCKED) return false;
    if (phase == UNLOCKING || phase == RELEASING) return false;
  }
  return true;
}

void perform_call_stack(const record *r) {
  multicast_token stack[NESTING + 1];
  size_t capacity = r->a < 128 ? NESTING : r->a % 4, known = 0;
  stack[capacity].id = 1;
  int64_t depth = multicast_call_stack(stack, capacity);
  NOTE("multicast_call_stack(%lld) = %lld", (long long)capacity, depth);
  EXPECT_EQ(stack[capacity].id, 1);
  EXPECT_EQ(multicast_call_stack(NULL, 1), MULTICAST_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(multicast_call_stack(NULL, 0), depth);
  if (!is_stack_known()) return;
  for (size_t i = 0; i < (size_t)model.depth; ++i) {
    const frame *f = &model.frames[i];
    if (f->phase != CALLING) continue;
    if (known < capacity) EXPECT_EQ(stack[known].id, model.registrations[f->current].token.id);
    ++known;
  }
  EXPECT_EQ(depth, known);
}
