/* Operations that create or destroy a multicast, or remove or list delegates. The other operations
 * on multicasts are in operate_add.c and operate_invoke.c. */

#include "callbacks.h"
#include "history.h"
#include "memory.h"
#include "operations.h"

void perform_create(const record *r) {
  int64_t failures = memory_failures();
  multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  bool refuses = r->g % 8 == 6, is_visit_only = r->g % 8 == 7;
  if (refuses) options.reentry = MULTICAST_REENTRY_REFUSE;
  if (is_visit_only) options.flags = MULTICAST_VISIT_ONLY;
  NOTE("multicast_create(), refuses: %lld, visits only: %lld", refuses, is_visit_only);
  multicast m = refuses || is_visit_only ? multicast_create_with(&options) : multicast_create();
  if (m.id == 0) {
    EXPECT(memory_failures() > failures, "a failed create without a failed allocation");
    return;
  }
  int index = model_new_multicast(m, NONE);
  model.multicasts[index].refuses = refuses;
  model.multicasts[index].is_visit_only = is_visit_only;
  NOTE("= m%lld", index);
}

/* Adds the allowed results of ending a multicast, which depend on running calls to its delegates,
 * including delegates that have already been removed. */
static void allow_end(outcomes *allowed, int target) {
  allow(allowed, MULTICAST_OK);
  for (int i = 0; i < model.registration_count; ++i) {
    const registration *x = &model.registrations[i];
    if (x->target != target || x->in_use == 0) continue;
    allow(allowed, MULTICAST_PENDING);
    if (x->running > 0) allowed->values[0] = MULTICAST_PENDING;
  }
}

void perform_destroy(const record *r) {
  limit within = choose_limit(r->b);
  BEGIN_CHANGE(multicast m, choose_multicast(r->a), "multicast_destroy(m%lld)", c.index);
  if (c.is_alive) {
    allow_end(&allowed, c.index);
    model_destroy(c.index);
  }
  finish(within.is_limited ? multicast_destroy_within(m, within.timeout_ns) : multicast_destroy(m),
         &allowed);
}

/* ---- Removal --------------------------------------------------------------------------------- */

void remove_of(outcomes *allowed, int target, int function, int context) {
  int index = model_first_equal(target, function, context);
  if (index == NONE) {
    allow(allowed, MULTICAST_ERROR_NOT_FOUND);
  } else {
    *allowed = model_removal_by_value(index);
    model_remove(index);
  }
}

void perform_remove(const record *r) {
  int function = r->b % FUNCTIONS, context = r->c % CONTEXTS;
  BEGIN_CHANGE(multicast m, choose_multicast(r->a), "multicast_remove(m%lld, f%lld c%lld)", c.index,
               function, context);
  if (c.is_alive) remove_of(&allowed, c.index, function, context);
  finish(multicast_remove(m, delegate_of(function, context)), &allowed);
}

void perform_remove_every(const record *r) {
  int function = r->b % FUNCTIONS, context = r->c % CONTEXTS;
  multicast_delegate d = delegate_of(function, context);
  limit within = choose_limit(r->d);
  pending_calls before = {false, false}, after;
  bool is_found = false;
  BEGIN_CHANGE(multicast m, choose_multicast(r->a), "multicast_remove_every(m%lld, f%lld c%lld)",
               c.index, function, context);
  selection s = {c.index, function, context};
  if (c.is_alive) {
    is_found = model_remove_selected(&s) > 0;
    if (!is_found) allow(&allowed, MULTICAST_ERROR_NOT_FOUND);
    before = model_pending(&s);
  }
  multicast_status status = within.is_limited
                                ? multicast_remove_every_within(m, d, within.timeout_ns)
                                : multicast_remove_every(m, d);
  if (is_found) {
    after = model_pending(&s);
    allow_pending(&allowed, &before, &after);
  }
  finish(status, &allowed);
}

/* Removes several delegates, the delegates of a context, or all delegates, and compares both the
 * count and the status. */
void perform_remove_several_within(const record *r) {
  int what = r->d % 3;
  limit within = choose_limit(r->e);
  multicast_status status = MULTICAST_ERROR_STATE, *out = r->e & 64 ? NULL : &status;
  pending_calls before = {false, false}, after;
  outcomes statuses = {{0}, 0};
  int64_t result;
  BEGIN_CHANGE(multicast m, choose_multicast(r->a), "multicast_remove_..._within(m%lld), way %lld",
               c.index, what);
  selection s = {c.index, what == 0 ? r->b % FUNCTIONS : NONE, what < 2 ? r->c % CONTEXTS : NONE};
  multicast_delegate d = delegate_of(s.function, what < 2 ? s.context : 0);
  if (c.is_alive) {
    if (what == 0) {
      int index = model_first_equal(c.index, s.function, s.context);
      if (index != NONE) model_remove(index);
      allow(&allowed, index != NONE);
    } else {
      allow(&allowed, model_remove_selected(&s));
    }
    before = model_pending(&s);
  }
  switch (what) {
    case 0: result = multicast_remove_many_within(m, &d, 1, within.timeout_ns, out); break;
    case 1: result = multicast_remove_context_within(m, d.context, within.timeout_ns, out); break;
    default: result = multicast_remove_all_within(m, within.timeout_ns, out);
  }
  after = model_pending(&s);
  if (c.is_alive) allow_pending(&statuses, &before, &after);
  else allow(&statuses, MULTICAST_ERROR_INVALID_HANDLE);
  finish(result, &allowed);
  if (out != NULL) EXPECT_ALLOWED(status, &statuses);
}

/* Prunes a multicast. To the model, this is an invocation that makes no calls. */
void perform_prune(const record *r) {
  choice c = choose_multicast(r->a);
  outcomes errors = errors_of(&c, false);
  NOTE("multicast_prune(m%lld)", c.index);
  frame *f = begin_calls(&errors, PRUNE, c.index, INT64_MAX);
  end_calls(f, multicast_prune((multicast){c.id}), &errors);
}

void perform_remove_many(const record *r) {
  const uint8_t *bytes = &r->b;
  choice c = choose_multicast(r->a);
  multicast m = {c.id};
  multicast_delegate delegates[MANY];
  int count = r->g % (MANY + 1), removed = 0, i, index;
  bool is_null = r->g >= 0xF0 && count > 0;
  outcomes allowed = {{0}, 0};
  NOTE("multicast_remove_many(m%lld, %lld, is NULL: %lld)", c.index, count, is_null);
  model_enter(CHANGE);
  for (i = 0; i < count; ++i) {
    int function = bytes[i] % FUNCTIONS, context = (bytes[i] >> 4) % CONTEXTS;
    delegates[i] = delegate_of(function, context);
    if (!c.is_alive || is_null) continue;
    NOTE("  f%lld c%lld", function, context);
    index = model_first_equal(c.index, function, context);
    if (index == NONE) continue;
    model_remove(index);
    ++removed;
  }
  allow_handle_error(&allowed, &c);
  if (is_null) allow(&allowed, MULTICAST_ERROR_INVALID_ARGUMENT);
  if (allowed.count == 0) allow(&allowed, removed);
  finish(multicast_remove_many(m, is_null ? NULL : delegates, (size_t)count), &allowed);
}

void perform_remove_context(const record *r) {
  int context = r->b % CONTEXTS;
  BEGIN_CHANGE(multicast m, choose_multicast(r->a), "multicast_remove_context(m%lld, c%lld)",
               c.index, context);
  selection s = {c.index, NONE, context};
  if (c.is_alive) allow(&allowed, model_remove_selected(&s));
  finish(multicast_remove_context(m, context_pointer(context)), &allowed);
}

void perform_remove_at(const record *r) {
  size_t place = r->b == 0xFF ? SIZE_MAX : r->b % 12;
  int index = NONE;
  BEGIN_CHANGE(multicast m, choose_multicast(r->a), "multicast_remove_at(m%lld, %lld)", c.index,
               place);
  if (c.is_alive) {
    for (size_t i = 0; i <= place; ++i) {
      index = model_next(c.index, index, model.registration_count);
      if (index == NONE) break;
    }
    if (index == NONE) {
      allow(&allowed, MULTICAST_ERROR_NOT_FOUND);
    } else {
      allowed = model_removal_of(index);
      model_remove(index);
    }
  }
  finish(multicast_remove_at(m, place), &allowed);
}

void perform_remove_all(const record *r) {
  BEGIN_CHANGE(multicast m, choose_multicast(r->a), "multicast_remove_all(m%lld)", c.index);
  if (c.is_alive) allow(&allowed, model_remove_all(c.index));
  finish(multicast_remove_all(m), &allowed);
}

/* ---- Contents -------------------------------------------------------------------------------- */

static void look_at_contents(const choice *c, multicast m, size_t capacity) {
  enum { ROOM = 6 };
  multicast_delegate found[ROOM];
  int64_t total = multicast_list(m, found, capacity > ROOM ? ROOM : capacity);
  int index = NONE;
  EXPECT_EQ(total, model_count(c->index));
  for (size_t i = 0; i < capacity && i < ROOM && (int64_t)i < total; ++i) {
    index = model_next(c->index, index, model.registration_count);
    const registration *x = &model.registrations[index];
    EXPECT(found[i].function == delegate_functions[x->function] &&
               found[i].context == context_pointer(x->context),
           "a wrong delegate in the list");
  }
}

void perform_look(const record *r) {
  choice c = choose_multicast(r->a);
  multicast m = {c.id};
  NOTE("multicast_list(m%lld, %lld), multicast_contains of all", c.index, r->b % 8);
  EXPECT_EQ(multicast_is_valid(m), c.is_alive);
  if (c.is_alive) {
    look_at_contents(&c, m, r->b % 8);
    EXPECT_EQ(multicast_list(m, NULL, 0), model_count(c.index));
    EXPECT_EQ(multicast_list(m, NULL, 1), MULTICAST_ERROR_INVALID_ARGUMENT);
  } else {
    EXPECT_EQ(multicast_count(m), MULTICAST_ERROR_INVALID_HANDLE);
    EXPECT_EQ(multicast_list(m, NULL, 0), MULTICAST_ERROR_INVALID_HANDLE);
  }
  for (int function = NONE; function < FUNCTIONS; ++function)
    for (int context = 0; context < CONTEXTS; ++context)
      EXPECT_EQ(multicast_contains(m, delegate_of(function, context)),
                c.is_alive && model_first_equal(c.index, function, context) != NONE);
}
