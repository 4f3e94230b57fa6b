#include "model.h"

#include <stdlib.h>
#include <string.h>

model_state model;

void model_begin(void) { memset(&model, 0, sizeof model); }

void model_end(void) {
  for (int i = 0; i < model.queue_count; ++i) free(model.queues[i].calls);
}

int model_new_multicast(multicast handle, int broadcaster) {
  int i;
  for (i = 0; i < model.multicast_count; ++i)
    EXPECT(model.multicasts[i].handle.id != handle.id, "two multicasts with the same handle");
  model.multicasts[i].handle = handle;
  model.multicasts[i].is_alive = true;
  model.multicasts[i].broadcaster = broadcaster;
  return model.multicast_count++;
}

/* ---- Order ----------------------------------------------------------------------------------- */

static bool comes_before(int a, int b) {
  int32_t first = model.registrations[a].priority, second = model.registrations[b].priority;
  return first != second ? first > second : a < b;
}

int model_next(int target, int after, int newest) {
  int best = NONE;
  for (int i = 0; i < newest; ++i) {
    const registration *r = &model.registrations[i];
    if (r->target != target || !r->is_live) continue;
    if (after != NONE && !comes_before(after, i)) continue;
    if (best == NONE || comes_before(i, best)) best = i;
  }
  return best;
}

int model_first_equal(int target, int function, int context) {
  int i = NONE;
  while ((i = model_next(target, i, model.registration_count)) != NONE)
    if (model.registrations[i].function == function && model.registrations[i].context == context)
      return i;
  return NONE;
}

int model_count(int target) {
  int count = 0;
  for (int i = 0; i < model.registration_count; ++i)
    if (model.registrations[i].target == target && model.registrations[i].is_live) ++count;
  return count;
}

/* ---- Removal --------------------------------------------------------------------------------- */

void model_remove(int index) {
  registration *r = &model.registrations[index];
  r->is_live = false;
  if (r->queue != NONE) model_queue_cancel(r->queue, index);
  if (r->in_use == 0 && r->release != NONE) model_release_is_due(r->context, r->release, index);
}

int model_remove_all(int target) {
  int i, count = 0;
  while ((i = model_next(target, NONE, model.registration_count)) != NONE) {
    model_remove(i);
    ++count;
  }
  return count;
}

void model_destroy(int target) {
  model_remove_all(target);
  model.multicasts[target].is_alive = false;
}

static bool is_selected(const registration *r, const selection *s) {
  return r->target == s->target && (s->function == NONE || r->function == s->function) &&
         (s->context == NONE || r->context == s->context);
}

int model_remove_selected(const selection *s) {
  int count = 0;
  for (int i = 0; i < model.registration_count; ++i) {
    if (!model.registrations[i].is_live || !is_selected(&model.registrations[i], s)) continue;
    model_remove(i);
    ++count;
  }
  return count;
}

pending_calls model_pending(const selection *s) {
  pending_calls p = {false, false};
  for (int i = 0; i < model.registration_count; ++i) {
    const registration *r = &model.registrations[i];
    if (r->is_live || !is_selected(r, s)) continue;
    p.must = p.must || r->running > 0;
    p.may = p.may || r->in_use > 0;
  }
  return p;
}

void allow_pending(outcomes *o, const pending_calls *before, const pending_calls *after) {
  if (!before->must) allow(o, MULTICAST_OK);
  if (before->may || after->may) allow(o, MULTICAST_PENDING);
}

outcomes model_removal_of(int index) {
  const registration *r = &model.registrations[index];
  outcomes o = {{0}, 0};
  if (r->running == 0) allow(&o, MULTICAST_OK);
  /* The header leaves open whether a call is already running during `lock`, and still running
   * during `unlock`. */
  if (r->in_use > 0) allow(&o, MULTICAST_PENDING);
  return o;
}

outcomes model_removal_by_value(int index) {
  const registration *r = &model.registrations[index];
  outcomes o = {{0}, 0};
  bool is_in_use = false, is_running = false;
  for (int i = 0; i < model.registration_count; ++i) {
    const registration *x = &model.registrations[i];
    if (x->target != r->target || x->function != r->function || x->context != r->context) continue;
    /* A release that runs during the removal may also remove this registration. */
    if (x->is_live && i != index && r->release == NONE && r->queue == NONE) continue;
    is_in_use = is_in_use || x->in_use > 0;
    if (x->is_live && i != index) continue;
    is_running = is_running || x->running > 0;
  }
  if (!is_running) allow(&o, MULTICAST_OK);
  if (is_in_use) allow(&o, MULTICAST_PENDING);
  return o;
}
