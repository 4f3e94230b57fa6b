#include <string.h>

#include "memory.h"
#include "model.h"

frame *model_enter(frame_kind kind) {
  frame *f = &model.frames[model.depth++];
  EXPECT(model.depth < FRAMES, "the fuzz target nests too deeply for the model");
  memset(f, 0, sizeof *f);
  f->kind = kind;
  f->target = f->queue = f->current = f->ending = f->only = NONE;
  f->cargo = f->row = f->woken = f->call.cargo = NONE;
  f->newest = model.registration_count;
  f->failures = memory_failures();
  if (kind != CHANGE) ++model.nesting;
  model_resume();
  return f;
}

frame *model_top(void) { return model.depth > 0 ? &model.frames[model.depth - 1] : NULL; }

void model_resume(void) { model.successes = memory_successes_left(); }

bool model_take_memory(void) {
  if (model.successes == 0) return false;
  if (model.successes > 0) --model.successes;
  return true;
}

static void expect_nothing_is_late(const frame *f) {
  EXPECT(!model_cargos_are_late(f), "the release of a payload is missing");
  EXPECT(f->woken == NONE, "a wake is missing");
  for (int i = 0; i < model.due_count; ++i)
    EXPECT(&model.frames[model.due[i].frame] != f, "a release is missing");
}

void model_leave(void) {
  frame *f = model_top();
  model_settle(f);
  EXPECT(f->phase == BETWEEN, "a call, or its unlock, is missing");
  if (f->kind != CHANGE) {
    model_advance(f);
    EXPECT(f->current == NONE, "a call is missing");
    if (f->kind == RUN) EXPECT(f->has_woken || !model_wakes_at_end(f), "a wake is missing");
    model_end_invocation(f);
  }
  expect_nothing_is_late(f);
  --model.depth;
}

static void use_ends(int index) {
  registration *r = &model.registrations[index];
  --r->in_use;
  if (r->in_use == 0 && !r->is_live && r->release != NONE)
    model_release_is_due(r->context, r->release, index);
}

/* ---- The next call --------------------------------------------------------------------------- */

static int next_of(const frame *f) {
  if (f->only == NONE) return model_next(f->target, f->current, f->newest);
  return f->current == NONE && model.registrations[f->only].is_live ? f->only : NONE;
}

static bool is_wanted(const registration *r, uint32_t event) {
  return event >= 64 || r->events == 0 || (r->events >> event & 1) != 0;
}

void model_find_next(frame *f) {
  if (f->next != UNKNOWN) return;
  f->next = TO_CALL;
  while (f->budget > 0 && (f->current = next_of(f)) != NONE) {
    const registration *r = &model.registrations[f->current];
    if (f->kind == PRUNE && r->is_locked) return;
    if (f->kind == PRUNE) continue;
    if (f->kind == ENUMERATE) return;
    if (r->is_paused) continue;
    if (f->kind == VISIT) return;
    if (!is_wanted(r, f->call.event)) continue;
    if (r->queue != NONE) f->next = TO_QUEUE;
    return;
  }
  f->current = NONE;
  f->next = AT_END;
}

void model_settle(frame *f) {
  if (f->phase != RELEASING) return;
  expect_nothing_is_late(f);
  f->phase = BETWEEN;
  use_ends(f->current);
}

void model_advance(frame *f) {
  model_settle(f);
  EXPECT(f->phase == BETWEEN, "a call or an unlock is missing before this one");
  expect_nothing_is_late(f);
  if (f->is_over) return;
  if (f->kind == RUN) {
    f->current = NONE;
    if (f->budget > 0 && model_queue_take(f->queue, &f->call))
      f->current = f->call.registration;
  } else {
    while (model_queue_next(f)) expect_nothing_is_late(f);
    if (f->next == TO_CALL) f->next = UNKNOWN;
  }
  f->is_over = f->current == NONE;
}

/* ---- One call -------------------------------------------------------------------------------- */

void model_call_begins(frame *f) {
  registration *r = &model.registrations[f->current];
  if (f->phase == BETWEEN) ++r->in_use;
  ++r->running;
  if ((r->flags & MULTICAST_ONCE) && r->is_live && f->kind != ENUMERATE) model_remove(f->current);
  ++f->made;
  --f->budget;
  f->phase = CALLING;
}

/* A queued call has returned, and its payload is released. The header leaves open whether the call
 * is still running at this point and during the context's `unlock`. */
static void call_is_over(frame *f) {
  f->phase = RELEASING;
  if (f->kind != RUN || f->call.cargo == NONE || !model_cargo_unref(f->call.cargo)) {
    f->phase = BETWEEN;
    use_ends(f->current);
  }
}

void model_call_ends(frame *f) {
  registration *r = &model.registrations[f->current];
  --r->running;
  if (f->kind == RUN && f->call.cargo != NONE) ++model.cargos[f->call.cargo].made;
  f->phase = UNLOCK;
  if (!r->is_locked) call_is_over(f);
}

void model_use_ends(frame *f) { call_is_over(f); }

bool model_current(int *registration) {
  *registration = NONE;
  for (int i = model.depth - 1; i >= 0; --i) {
    const frame *f = &model.frames[i];
    if (f->phase == LOCKING || f->phase == LOCKED) return false;
    if (f->phase == UNLOCKING || f->phase == RELEASING) return false;
    if (f->phase != CALLING) continue;
    *registration = f->current;
    return true;
  }
  return true;
}

/* ---- Releases -------------------------------------------------------------------------------- */

void model_release_is_due(int context, int release, int registration) {
  due_release *d = &model.due[model.due_count++];
  d->context = context;
  d->release = release;
  d->registration = registration;
  d->frame = model.depth - 1;
}

bool model_take_release(int context, int release, int *registration) {
  int i;
  for (i = model.due_count - 1; i >= 0; --i)
    if (model.due[i].context == context && model.due[i].release == release) break;
  if (i < 0) return false;
  *registration = model.due[i].registration;
  --model.due_count;
  memmove(&model.due[i], &model.due[i + 1], (size_t)(model.due_count - i) * sizeof model.due[0]);
  return true;
}
