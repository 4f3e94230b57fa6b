#include "model.h"

int model_new_cargo(size_t size, bool is_waiting) {
  model_cargo *c = &model.cargos[model.cargo_count];
  EXPECT(model.cargo_count < CARGOS, "too many invocations for the model");
  c->size = size;
  c->is_waiting = is_waiting;
  c->due = NONE;
  return model.cargo_count++;
}

void model_give_payload(int cargo, void *payload) {
  model_cargo *c = &model.cargos[cargo];
  c->payload = payload;
  c->has_payload = true;
  ++c->references;
}

/* Returns whether the payload, if there is one, has to be released now. */
bool model_cargo_unref(int cargo) {
  model_cargo *c = &model.cargos[cargo];
  if (--c->references > 0 || !c->has_payload) return false;
  EXPECT(c->due == NONE && !c->is_released, "the model releases a payload twice");
  c->due = model.depth - 1;
  return true;
}

bool model_cargos_are_late(const frame *f) {
  for (int i = 0; i < model.cargo_count; ++i)
    if (model.cargos[i].due != NONE && &model.frames[model.cargos[i].due] == f) return true;
  return false;
}

/* A delegate with MULTICAST_ONCE is removed just before its call. If the delegate also has a queued
 * call, that removal releases the queued call's payload. */
static void follow_removal(frame *f) {
  if (f->kind == VISIT && f->phase == BETWEEN && !f->is_over) model_find_next(f);
  else if (f->phase != LOCKED || f->kind == ENUMERATE) return;
  if (f->current == NONE) return;
  registration *r = &model.registrations[f->current];
  if (!(r->flags & MULTICAST_ONCE) || !r->is_live || (f->phase == BETWEEN && r->is_locked)) return;
  if (f->phase == BETWEEN) {
    ++r->in_use;
    f->next = UNKNOWN;
    f->phase = LOCKED;
  }
  model_remove(f->current);
}

void model_follow_cargo(frame *f, int cargo) {
  const model_cargo *c = &model.cargos[cargo];
  model_follow_adding(f);
  model_follow_ending(f);
  if (c->due == NONE) follow_removal(f);
  while (c->due == NONE && f->kind == INVOKE && f->phase == BETWEEN) {
    if (model_queue_next(f)) continue;
    EXPECT(f->cargo == cargo && !f->has_ended, "a payload is released too early");
    EXPECT(f->is_over || f->next == AT_END, "a payload is released before the last call");
    EXPECT(f->woken == NONE, "a wake is missing");
    f->is_over = true;
    f->current = NONE;
    model_end_invocation(f);
    EXPECT(c->due != NONE, "a payload is released too early");
  }
  EXPECT(c->due == model.depth - 1, "a payload is released too early");
}

int model_follow_wake(frame *f) {
  if (f->kind == RUN) {
    model_advance(f);
    EXPECT(f->is_over && !f->has_woken && model_wakes_at_end(f), "a wake out of turn");
    f->has_woken = true;
    model.queues[f->queue].needs_wake = false;
    return f->queue;
  }
  EXPECT(f->kind == INVOKE && f->phase == BETWEEN, "a wake out of turn");
  while (f->woken == NONE) {
    EXPECT(!model_cargos_are_late(f), "the release of a payload is missing");
    EXPECT(model_queue_next(f), "a wake too many");
  }
  int queue = f->woken;
  f->woken = NONE;
  return queue;
}

int model_follow_copy(frame *f) {
  EXPECT(f->kind == INVOKE && f->phase == BETWEEN && f->has_copier, "a copy out of turn");
  for (;;) {
    EXPECT(!model_cargos_are_late(f) && f->woken == NONE, "a release or a wake is missing");
    model_find_next(f);
    EXPECT(f->next == TO_QUEUE && f->copy == NOT_COPIED, "a copy too many");
    if (model_take_memory()) return f->cargo;
    model_queue_next(f); /* the call is refused */
  }
}

bool model_wakes_at_end(const frame *f) {
  const model_queue *q = &model.queues[f->queue];
  return q->is_alive && q->needs_wake && q->stats.pending > 0 && !f->is_inner;
}

static void note_outcome(frame *f) {
  const model_cargo *c = &model.cargos[f->cargo];
  if (!c->is_waiting) return;
  f->finished = c->made;
  f->unfinished = c->queued;
  for (int i = 0; i < model.queue_count; ++i) {
    const model_queue *q = &model.queues[i];
    for (int j = 0; q->is_alive && j < (int)q->stats.pending; ++j)
      if (q->calls[j].cargo == f->cargo && !q->was_run) f->is_timeout = true;
  }
}

void model_end_invocation(frame *f) {
  if (f->has_ended) return;
  f->has_ended = true;
  --model.nesting;
  if (f->cargo == NONE) return;
  note_outcome(f);
  if (model.cargos[f->cargo].has_payload) (void)model_cargo_unref(f->cargo);
}
