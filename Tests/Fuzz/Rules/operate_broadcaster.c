#include "callbacks.h"
#include "history.h"
#include "memory.h"
#include "operations.h"

enum { DEFAULT = 0 }; /* index of the default broadcaster */

static int new_broadcaster(multicast_broadcaster handle, int queue) {
  model_broadcaster *b = &model.broadcasters[model.broadcaster_count];
  int i;
  for (i = 0; i < model.broadcaster_count; ++i)
    EXPECT(model.broadcasters[i].handle.id != handle.id,
           "two broadcasters with the same handle");
  b->handle = handle;
  b->is_alive = true;
  b->queue = queue;
  for (i = 0; i < NAMES; ++i) b->targets[i] = NONE;
  return model.broadcaster_count++;
}

void perform_create_broadcaster(const record *r) {
  multicast_broadcaster_options o = multicast_broadcaster_options_default();
  choice queue = {NONE, 0, false};
  int64_t failures = memory_failures();
  bool is_bad = false;
  multicast_broadcaster b;
  if (r->a & 1) {
    queue = choose_queue(r->a);
    o.queue.id = queue.id;
    is_bad = queue.id != 0 && !queue.is_alive;
  }
  if (r->b >= 0xF8) {
    is_bad = true;
    if (r->b < 0xFC) o.flags = 1;
    else o.struct_size = 12;
  }
  NOTE("multicast_broadcaster_create(q%lld)", queue.index);
  b = multicast_broadcaster_create(&o);
  if (is_bad) {
    EXPECT_EQ(b.id, 0);
  } else if (b.id == 0) {
    EXPECT(memory_failures() > failures, "a failed create without a failed allocation");
  } else {
    NOTE("= b%lld", new_broadcaster(b, queue.is_alive ? queue.index : NONE));
  }
}

/* The result depends on running calls of its observers, as that of multicast_destroy() does. */
static void allow_end(outcomes *allowed, int broadcaster) {
  int i;
  allow(allowed, MULTICAST_OK);
  for (i = 0; i < model.registration_count; ++i) {
    const registration *x = &model.registrations[i];
    if (model.multicasts[x->target].broadcaster != broadcaster || x->in_use == 0) continue;
    allow(allowed, MULTICAST_PENDING);
    if (x->running > 0) allowed->values[0] = MULTICAST_PENDING;
  }
}

void perform_destroy_broadcaster(const record *r) {
  choice c = choose_broadcaster(r->a);
  multicast_broadcaster handle = {c.id};
  multicast_status status;
  limit within = choose_limit(r->b);
  outcomes allowed = {{0}, 0};
  frame *f = model_enter(CHANGE);
  NOTE("multicast_broadcaster_destroy(b%lld)", c.index);
  allow_handle_error(&allowed, &c);
  if (c.index == DEFAULT) {
    allow(&allowed, MULTICAST_ERROR_STATE);
  } else if (c.is_alive) {
    allow_end(&allowed, c.index);
    model.broadcasters[c.index].is_alive = false;
    f->ending = c.index;
  }
  status = within.is_limited ? multicast_broadcaster_destroy_within(handle, within.timeout_ns)
                             : multicast_broadcaster_destroy(handle);
  model_follow_ending(f);
  finish(status, &allowed);
}

/* Returns the multicast of a name, and the errors that the arguments allow. `is_destroyed`: a
 * caller has destroyed that multicast. */
static int find_target(const choice *c, const name_choice *name, outcomes *errors,
                       bool *is_destroyed) {
  int target = NONE;
  allow_handle_error(errors, c);
  if (name->name == NONE) allow(errors, MULTICAST_ERROR_INVALID_ARGUMENT);
  if (errors->count == 0) target = model.broadcasters[c->index].targets[name->name];
  *is_destroyed = target != NONE && !model.multicasts[target].is_alive;
  /* The header leaves open whether that is a name without observers or a stale handle. */
  if (*is_destroyed) allow(errors, MULTICAST_ERROR_INVALID_HANDLE);
  return target;
}

void perform_unregister(const record *r) {
  choice c = choose_broadcaster(r->a);
  name_choice name = choose_name(r->d);
  multicast_broadcaster b = {c.id};
  int function = r->b % FUNCTIONS, context = r->c % CONTEXTS, index, target;
  outcomes allowed = {{0}, 0};
  bool is_destroyed;
  NOTE("multicast_broadcaster_unregister(b%lld, n%lld, f%lld c%lld)", c.index, name.name, function,
       context);
  model_enter(CHANGE);
  target = find_target(&c, &name, &allowed, &is_destroyed);
  if (allowed.count == 0 || is_destroyed) {
    index = target == NONE ? NONE : model_first_equal(target, function, context);
    if (index == NONE) {
      allow(&allowed, MULTICAST_ERROR_NOT_FOUND);
    } else {
      allowed = model_removal_by_value(index);
      model_remove(index);
    }
  }
  finish(multicast_broadcaster_unregister(b, name.text, delegate_of(function, context)), &allowed);
}

void perform_unregister_all(const record *r) {
  choice c = choose_broadcaster(r->a);
  name_choice name = choose_name(r->d);
  multicast_broadcaster b = {c.id};
  outcomes allowed = {{0}, 0};
  bool is_destroyed;
  int target;
  NOTE("multicast_broadcaster_unregister_all(b%lld, n%lld)", c.index, name.name);
  model_enter(CHANGE);
  target = find_target(&c, &name, &allowed, &is_destroyed);
  if (allowed.count == 0 || is_destroyed)
    allow(&allowed, target == NONE ? 0 : model_remove_all(target));
  finish(multicast_broadcaster_unregister_all(b, name.text), &allowed);
}

void perform_unregister_context(const record *r) {
  choice c = choose_broadcaster(r->a);
  name_choice name = choose_name(r->d);
  multicast_broadcaster b = {c.id};
  selection s = {NONE, NONE, r->b % CONTEXTS};
  outcomes allowed = {{0}, 0};
  bool is_destroyed;
  NOTE("multicast_broadcaster_unregister_context(b%lld, n%lld, c%lld)", c.index, name.name,
       s.context);
  model_enter(CHANGE);
  s.target = find_target(&c, &name, &allowed, &is_destroyed);
  if (allowed.count == 0 || is_destroyed)
    allow(&allowed, s.target == NONE ? 0 : model_remove_selected(&s));
  finish(multicast_broadcaster_unregister_context(b, name.text, context_pointer(s.context)),
         &allowed);
}

void perform_look_up(const record *r) {
  choice c = choose_broadcaster(r->a);
  name_choice name = choose_name(r->d);
  multicast_broadcaster b = {c.id};
  int64_t failures = memory_failures();
  multicast found;
  int *target;
  NOTE("multicast_broadcaster_multicast(b%lld, n%lld)", c.index, name.name);
  found = multicast_broadcaster_multicast(b, name.text);
  if (!c.is_alive || name.name == NONE) {
    EXPECT_EQ(found.id, 0);
    return;
  }
  target = &model.broadcasters[c.index].targets[name.name];
  if (*target != NONE) {
    EXPECT_EQ(found.id, model.multicasts[*target].handle.id);
  } else if (found.id == 0) {
    EXPECT(memory_failures() > failures, "a failed create without a failed allocation");
  } else {
    *target = model_new_multicast(found, c.index);
    NOTE("= m%lld", *target);
  }
}

/* ---- The default broadcaster ----------------------------------------------------------------- */

void begin_default_broadcaster(void) {
  multicast_broadcaster b = multicast_broadcaster_default();
  int i;
  EXPECT(b.id != 0, "no default broadcaster");
  EXPECT_EQ(new_broadcaster(b, NONE), DEFAULT);
  for (i = 0; i < NAMES; ++i)
    model.broadcasters[DEFAULT].targets[i] =
        model_new_multicast(multicast_broadcaster_multicast(b, broadcaster_names[i]), DEFAULT);
}

void end_default_broadcaster(void) {
  multicast_broadcaster b = model.broadcasters[DEFAULT].handle;
  multicast_delegate d = delegate_of(0, 0);
  int i;
  for (i = 0; i < NAMES; ++i) {
    const char *name = broadcaster_names[i];
    EXPECT(multicast_broadcaster_unregister_all(b, name) >= MULTICAST_ERROR_INVALID_HANDLE,
           "observers were not unregistered");
    /* If an input has destroyed the multicast, this creates another for the next input. */
    EXPECT_EQ(multicast_broadcaster_register(b, name, d, NULL, NULL), MULTICAST_OK);
    EXPECT_EQ(multicast_broadcaster_unregister(b, name, d), MULTICAST_OK);
  }
}
