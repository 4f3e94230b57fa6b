#include <string.h>

#include "memory.h"
#include "model.h"

frame *model_enter(frame_kind kind) {
  frame *f = &model.frames[model.depth++];
  EXPECT(model.depth < FRAMES, "the fuzz target nests too deeply for the model");
  memset(f, 0, sizeof *f);
  f->kind = kind;
  f->target = f->queue = f->current = f->ending = NONE;
  f->newest = model.registration_count;
  f->failures = memory_failures();
  if (kind != CHANGE) ++model.nesting;
  model_resume();
  return f;
}

frame *model_top(void) { return model.depth > 0 ? &model.frames[model.depth - 1] : NULL; }

void model_resume(void) { model.failures_at_resume = memory_failures(); }

static void expect_no_release_is_late(const frame *f) {
  int i;
  for (i = 0; i < model.due_count; ++i)
    EXPECT(&model.frames[model.due[i].frame] != f, "a release is missing");
}

void model_leave(void) {
  frame *f = model_top();
  EXPECT(f->phase == BETWEEN, "a call, or its unlock, is missing");
  if (f->kind != CHANGE) {
    model_advance(f);
    EXPECT(f->current == NONE, "a call is missing");
    --model.nesting;
  }
  expect_no_release_is_late(f);
  --model.depth;
}

/* ---- The next call --------------------------------------------------------------------------- */

static bool is_wanted(const registration *r, uint32_t event) {
  return event >= 64 || r->events == 0 || (r->events >> event & 1) != 0;
}

static void advance_invocation(frame *f) {
  while ((f->current = model_next(f->target, f->current, f->newest)) != NONE) {
    const registration *r = &model.registrations[f->current];
    if (f->kind == PRUNE && r->is_locked) return;
    if (f->kind == PRUNE || r->is_paused) continue;
    if (f->kind == VISIT) return;
    if (!is_wanted(r, f->call.event)) continue;
    if (r->queue == NONE) return;
    model_queue_call(f, f->current);
  }
}

void model_advance(frame *f) {
  EXPECT(f->phase == BETWEEN, "a call or an unlock is missing before this one");
  expect_no_release_is_late(f);
  if (f->is_over) return;
  if (f->kind == RUN) {
    f->current = NONE;
    if (f->budget > 0 && model_queue_take(f->queue, &f->call))
      f->current = f->call.registration;
  } else if (f->budget > 0) {
    advance_invocation(f);
  } else {
    f->current = NONE;
  }
  f->is_over = f->current == NONE;
}

/* ---- One call -------------------------------------------------------------------------------- */

void model_call_begins(frame *f) {
  registration *r = &model.registrations[f->current];
  if (!r->is_locked) ++r->in_use;
  ++r->running;
  if (r->flags & MULTICAST_ONCE) model_remove(f->current);
  ++f->made;
  --f->budget;
  f->phase = CALLING;
}

static void use_ends(int index) {
  registration *r = &model.registrations[index];
  --r->in_use;
  if (r->in_use == 0 && !r->is_live && r->release != NONE)
    model_release_is_due(r->context, r->release, index);
}

void model_call_ends(frame *f) {
  registration *r = &model.registrations[f->current];
  --r->running;
  f->phase = r->is_locked ? UNLOCK : BETWEEN;
  if (!r->is_locked) use_ends(f->current);
}

void model_use_ends(frame *f) {
  f->phase = BETWEEN;
  use_ends(f->current);
}

bool model_current(int *registration) {
  int i;
  *registration = NONE;
  for (i = model.depth - 1; i >= 0; --i) {
    const frame *f = &model.frames[i];
    if (f->phase == LOCKING || f->phase == UNLOCKING) return false;
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
