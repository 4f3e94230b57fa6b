#include <stdlib.h>

#include "callbacks.h"
#include "history.h"
#include "operations.h"

argument make_argument(uint8_t event, uint8_t size) {
  static const uint32_t events[] = {0, 1, 2, 63, 64, 65, UINT32_MAX, 0};
  static const size_t sizes[] = {0, 0, 1, 16, 32, 33, 100, 1000};
  static int serial;
  argument a;
  a.event = events[event % 8];
  a.size = sizes[size % 8];
  a.is_missing = size == 0xFF;
  a.seed = ++serial;
  a.payload = a.size > 0 ? malloc(a.size) : NULL;
  for (size_t i = 0; i < a.size; ++i) a.payload[i] = payload_byte(a.seed, i);
  a.passed = a.is_missing ? NULL : a.payload;
  if (size % 8 == 1) a.passed = &sizes; /* a payload of size 0 is not copied */
  return a;
}

frame *enter_invocation(int target, const argument *a) {
  frame *f = model_enter(INVOKE);
  f->target = target;
  f->budget = INT64_MAX;
  f->call.event = a->event;
  f->call.payload = a->passed;
  f->call.size = a->size;
  f->call.seed = a->seed;
  f->call.cargo = NONE;
  return f;
}

outcomes errors_of(const choice *c, bool is_missing) {
  outcomes o = {{0}, 0};
  allow_handle_error(&o, c);
  if (is_missing) allow(&o, MULTICAST_ERROR_INVALID_ARGUMENT);
  if (model.nesting >= NESTING) allow(&o, MULTICAST_ERROR_LIMIT);
  return o;
}

void add_refusal(const choice *c, outcomes *errors) {
  if (!c->is_alive) return;
  const model_multicast *m = &model.multicasts[c->index];
  for (int i = 0; i < model.depth; ++i) {
    const frame *f = &model.frames[i];
    if (!m->refuses || f->target != c->index || f->phase != CALLING) continue;
    allow(errors, MULTICAST_ERROR_STATE);
    return;
  }
  if (m->is_visit_only) allow(errors, MULTICAST_ERROR_STATE);
}

bool is_place_open(const choice *c) {
  bool is_open = false;
  for (int i = 0; i < model.depth; ++i) {
    const frame *f = &model.frames[i];
    if (f->kind == CHANGE || f->target != c->index) continue;
    if (f->phase == CALLING) return false;
    is_open = true;
  }
  return is_open && c->is_alive && model.multicasts[c->index].refuses;
}

frame *begin_calls(const outcomes *errors, frame_kind kind, int target, int64_t budget) {
  frame *f = model_enter(errors->count > 0 ? CHANGE : kind);
  if (errors->count == 0) f->target = target, f->budget = budget;
  return f;
}

void finish_calls(frame *f, int64_t result) {
  model_leave();
  NOTE("= %lld", result);
  EXPECT_EQ(result, f->made);
}

void end_calls(frame *f, int64_t result, const outcomes *errors) {
  if (errors->count > 0) finish(result, errors);
  else finish_calls(f, result);
}

static void invoke(const choice *c, const argument *a) {
  multicast m = {c->id};
  outcomes errors = errors_of(c, a->is_missing);
  add_refusal(c, &errors);
  NOTE("multicast_invoke(m%lld, event %lld, size %lld)", c->index, a->event, a->size);
  frame *f = errors.count > 0 ? model_enter(CHANGE) : enter_invocation(c->index, a);
  end_calls(f, multicast_invoke(m, a->event, a->passed, a->size), &errors);
  free(a->payload);
}

void perform_invoke(const record *r) {
  choice c = choose_multicast(r->a);
  if (is_place_open(&c)) return;
  argument a = make_argument(r->b, r->c);
  invoke(&c, &a);
}

void invoke_again(int target) {
  enum { FEW = 6 }; /* more calls would take too long */
  choice c = {target, model.multicasts[target].handle.id, model.multicasts[target].is_alive};
  if (model_count(target) > FEW) return;
  argument a = make_argument(0, 0);
  invoke(&c, &a);
}

static void notify_by(int64_t (*notify)(multicast_broadcaster, const char *, uint32_t, const void *,
                                        size_t),
                      bool is_published, const record *r) {
  choice c = choose_broadcaster(r->a);
  name_choice name = choose_name(r->d);
  argument a = make_argument(r->b, r->c);
  multicast_broadcaster b = {c.id};
  outcomes errors = errors_of(&c, a.is_missing);
  int target = NONE;
  publication p = begin_publication(&c);
  NOTE("multicast_broadcaster_notify(b%lld, n%lld, event %lld, size %lld)", c.index, name.name,
       a.event, a.size);
  if (name.name == NONE) allow(&errors, MULTICAST_ERROR_INVALID_ARGUMENT);
  else if (c.is_alive) target = model.broadcasters[c.index].targets[name.name];
  if (errors.count == 0 && target != NONE && model.multicasts[target].is_alive) {
    frame *f = enter_invocation(target, &a);
    finish_calls(f, notify(b, name.text, a.event, a.passed, a.size));
    if (is_published) expect_published(&p);
  } else {
    /* For a name without observers, the result is 0. If a caller has destroyed the multicast of the
     * name, the header leaves two things open: whether the result is 0 or the error of a stale
     * handle, and whether the nesting limit applies. */
    if (c.is_alive && name.name != NONE && !a.is_missing) {
      if (target == NONE || !model.multicasts[target].is_alive) allow(&errors, 0);
      if (target != NONE) allow(&errors, MULTICAST_ERROR_INVALID_HANDLE);
    }
    model_enter(CHANGE);
    if (is_published && p.transport != NONE && model.nesting >= NESTING)
      allow(&errors, MULTICAST_ERROR_LIMIT);
    finish(notify(b, name.text, a.event, a.passed, a.size), &errors);
    if (is_published && name.name != NONE && !a.is_missing) expect_published(&p);
  }
  free(a.payload);
}

void perform_notify(const record *r) { notify_by(multicast_broadcaster_notify, true, r); }

void perform_deliver(const record *r) { notify_by(multicast_broadcaster_deliver, false, r); }

void perform_visit(const record *r) {
  choice c = choose_multicast(r->a);
  multicast m = {c.id};
  bool is_null = r->c == 0xFF;
  outcomes errors = errors_of(&c, is_null);
  int64_t at_most = r->b % 8 == 0 ? INT64_MAX : r->b % 8;
  NOTE("multicast_visit(m%lld, stopping after %lld)", c.index, at_most);
  frame *f = begin_calls(&errors, VISIT, c.index, at_most);
  end_calls(f, multicast_visit(m, is_null ? NULL : visit_delegate, f), &errors);
}

void perform_enumerate(const record *r) {
  choice c = choose_multicast(r->a);
  multicast m = {c.id};
  bool is_null = r->c == 0xFF;
  outcomes errors = errors_of(&c, is_null);
  int64_t at_most = r->b % 8 == 0 ? INT64_MAX : r->b % 8;
  NOTE("multicast_enumerate(m%lld, stopping after %lld)", c.index, at_most);
  frame *f = begin_calls(&errors, ENUMERATE, c.index, at_most);
  end_calls(f, multicast_enumerate(m, is_null ? NULL : enumerate_registration, f), &errors);
}
