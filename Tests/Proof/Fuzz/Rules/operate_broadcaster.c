#include <string.h>

#include "callbacks.h"
#include "history.h"
#include "memory.h"
#include "operations.h"

enum { DEFAULT = 0 }; /* index of the default broadcaster */

static int new_broadcaster(multicast_broadcaster handle, int queue) {
  model_broadcaster *b = &model.broadcasters[model.broadcaster_count];
  for (int i = 0; i < model.broadcaster_count; ++i)
    EXPECT(model.broadcasters[i].handle.id != handle.id,
           "two broadcasters with the same handle");
  b->handle = handle;
  b->is_alive = true;
  b->queue = queue;
  b->transport = NONE;
  for (int i = 0; i < NAMES; ++i) b->targets[i] = NONE;
  return model.broadcaster_count++;
}

void perform_create_broadcaster(const record *r) {
  multicast_broadcaster_options o = multicast_broadcaster_options_default();
  choice queue = {NONE, 0, false};
  int64_t failures = memory_failures();
  bool is_bad = false;
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
  multicast_broadcaster b = multicast_broadcaster_create(&o);
  if (is_bad) {
    EXPECT_EQ(b.id, 0);
  } else if (b.id == 0) {
    EXPECT(memory_failures() > failures, "a failed create without a failed allocation");
  } else {
    NOTE("= b%lld", new_broadcaster(b, queue.is_alive ? queue.index : NONE));
  }
}

/* ---- Transports ------------------------------------------------------------------------------ */

/* The new and the old transport while multicast_broadcaster_attach() is running, or NULL. */
static model_transport *attaching, *replaced;

static model_transport *transport_of(void *context) {
  model_transport *t = context;
  EXPECT(t >= model.transports && t < model.transports + model.transport_count,
         "a transport with the wrong context");
  /* The old transport may still be called while it is being replaced. */
  EXPECT(t->is_attached || t == replaced, "a call of a transport that was detached");
  EXPECT(!t->is_released, "a call of a transport that was released");
  return t;
}

static multicast_status publish(void *context, const char *name, uint32_t event,
                                const void *payload, size_t size) {
  NOTE("publish");
  ++transport_of(context)->published;
  return MULTICAST_OK;
}

static void note(void *context, const char *name, bool is_wanted) {
  model_transport *t = transport_of(context);
  int i = 0;
  while (i < NAMES && strcmp(name, broadcaster_names[i]) != 0) ++i;
  EXPECT(i < NAMES, "a transport is told of an unknown name");
  if (i == NAMES) return;
  EXPECT(t->is_attached || !is_wanted, "a transport that is detached is told of observers");
  NOTE("transport: n%lld is wanted: %lld", i, is_wanted);
  EXPECT_EQ(t->is_notified[i], !is_wanted);
  t->is_notified[i] = is_wanted;
}

static multicast_status subscribe(void *context, const char *name) {
  note(context, name, true);
  return MULTICAST_OK;
}

static void unsubscribe(void *context, const char *name) { note(context, name, false); }

static void release_transport(void *context) {
  model_transport *t = context;
  NOTE("transport: released");
  /* If attaching the transport fails, the library releases that transport. */
  if (t == attaching && memory_failures() > model_top()->failures) t->is_attached = false;
  EXPECT(!t->is_attached && !t->is_released, "a release of a transport that was not due");
  t->is_released = true;
}

static void detach(int broadcaster) {
  int *old = &model.broadcasters[broadcaster].transport;
  if (*old != NONE) model.transports[*old].is_attached = false;
  *old = NONE;
}

void perform_attach(const record *r) {
  choice c = choose_broadcaster(r->a);
  multicast_broadcaster b = {c.id};
  multicast_transport t = multicast_transport_default();
  int own = NONE, old = c.is_alive ? model.broadcasters[c.index].transport : NONE;
  outcomes allowed = {{0}, 0};
  frame *f = model_enter(CHANGE);
  NOTE("multicast_broadcaster_attach(b%lld, t%lld)", c.index,
       r->b % 4 == 0 ? NONE : model.transport_count);
  allow_handle_error(&allowed, &c);
  if (r->b % 4 != 0) {
    own = model.transport_count++;
    t.context = &model.transports[own];
    model.transports[own].is_notified_late = model.has_nested_deep;
    t.publish = r->b % 64 == 1 ? NULL : publish;
    t.subscribe = subscribe;
    t.unsubscribe = unsubscribe;
    t.release = release_transport;
    if (t.publish == NULL) {
      allowed.count = 0;
      allow(&allowed, MULTICAST_ERROR_INVALID_ARGUMENT);
    }
  }
  if (allowed.count == 0) {
    allow(&allowed, MULTICAST_OK);
    detach(c.index);
    if (own != NONE) model.transports[own].is_attached = true;
    model.broadcasters[c.index].transport = own;
  }
  /* No operations are nested inside this call, because the functions that the library may call
   * during it do not call the library. */
  attaching = own == NONE ? NULL : &model.transports[own];
  replaced = old == NONE ? NULL : &model.transports[old];
  multicast_status status = multicast_broadcaster_attach(b, own == NONE ? NULL : &t);
  attaching = replaced = NULL;
  if (status == MULTICAST_ERROR_OUT_OF_MEMORY && own != NONE) {
    if (allowed.values[0] == MULTICAST_OK) {
      model.broadcasters[c.index].transport = old;
      if (old != NONE) model.transports[old].is_attached = true;
    }
    allow_memory_error(&allowed, f);
  }
  finish(status, &allowed);
}

void note_deep_nesting(void) {
  model.has_nested_deep = true;
  for (int i = 0; i < model.transport_count; ++i) model.transports[i].is_notified_late = true;
}

void compare_transports(void) {
  for (int i = 0; i < model.transport_count; ++i)
    EXPECT_EQ(model.transports[i].is_released, !model.transports[i].is_attached);
  for (int i = 0; i < model.broadcaster_count; ++i) {
    const model_broadcaster *b = &model.broadcasters[i];
    if (b->transport == NONE || model.transports[b->transport].is_notified_late) continue;
    for (int j = 0; j < NAMES; ++j) {
      int target = b->targets[j];
      EXPECT_EQ(model.transports[b->transport].is_notified[j],
                target != NONE && model.multicasts[target].is_alive && model_count(target) > 0);
    }
  }
}

publication begin_publication(const choice *c) {
  publication p = {c->index, NONE, 0};
  if (c->is_alive) p.transport = model.broadcasters[c->index].transport;
  if (p.transport != NONE) p.before = model.transports[p.transport].published;
  return p;
}

void expect_published(const publication *p) {
  if (p->transport == NONE || model.broadcasters[p->broadcaster].transport != p->transport) return;
  EXPECT(model.transports[p->transport].published > p->before || model.has_nested_deep,
         "a notification that was not published");
}

/* Adds the allowed results of destroying a broadcaster. As with multicast_destroy(), they depend on
 * running calls to its observers. */
static void allow_end(outcomes *allowed, int broadcaster) {
  allow(allowed, MULTICAST_OK);
  for (int i = 0; i < model.registration_count; ++i) {
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
    detach(c.index);
  }
  status = within.is_limited ? multicast_broadcaster_destroy_within(handle, within.timeout_ns)
                             : multicast_broadcaster_destroy(handle);
  model_follow_ending(f);
  finish(status, &allowed);
}

/* Returns a name's multicast, adds the errors that the arguments may cause to `errors`, and stores
 * in `is_destroyed` whether a caller has destroyed that multicast. */
static int find_target(const choice *c, const name_choice *name, outcomes *errors,
                       bool *is_destroyed) {
  int target = NONE;
  allow_handle_error(errors, c);
  if (name->name == NONE) allow(errors, MULTICAST_ERROR_INVALID_ARGUMENT);
  if (errors->count == 0) target = model.broadcasters[c->index].targets[name->name];
  *is_destroyed = target != NONE && !model.multicasts[target].is_alive;
  /* The header leaves open whether a name whose multicast is destroyed counts as a name without
   * observers or as a stale handle. */
  if (*is_destroyed) allow(errors, MULTICAST_ERROR_INVALID_HANDLE);
  return target;
}

void perform_unregister(const record *r) {
  choice c = choose_broadcaster(r->a);
  name_choice name = choose_name(r->d);
  multicast_broadcaster b = {c.id};
  int function = r->b % FUNCTIONS, context = r->c % CONTEXTS, target;
  outcomes allowed = {{0}, 0};
  bool is_destroyed;
  NOTE("multicast_broadcaster_unregister(b%lld, n%lld, f%lld c%lld)", c.index, name.name, function,
       context);
  model_enter(CHANGE);
  target = find_target(&c, &name, &allowed, &is_destroyed);
  if (allowed.count == 0 || is_destroyed) {
    if (target == NONE) allow(&allowed, MULTICAST_ERROR_NOT_FOUND);
    else remove_of(&allowed, target, function, context);
  }
  finish(multicast_broadcaster_unregister(b, name.text, delegate_of(function, context)), &allowed);
}

void perform_unregister_all(const record *r) {
  choice c = choose_broadcaster(r->a);
  name_choice name = choose_name(r->d);
  multicast_broadcaster b = {c.id};
  outcomes allowed = {{0}, 0};
  bool is_destroyed;
  NOTE("multicast_broadcaster_unregister_all(b%lld, n%lld)", c.index, name.name);
  model_enter(CHANGE);
  int target = find_target(&c, &name, &allowed, &is_destroyed);
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
  NOTE("multicast_broadcaster_multicast(b%lld, n%lld)", c.index, name.name);
  multicast found = multicast_broadcaster_multicast(b, name.text);
  if (!c.is_alive || name.name == NONE) {
    EXPECT_EQ(found.id, 0);
    return;
  }
  int *target = &model.broadcasters[c.index].targets[name.name];
  if (found.id == 0) {
    EXPECT(memory_failures() > failures, "a failed create without a failed allocation");
  } else if (*target != NONE) {
    EXPECT_EQ(found.id, model.multicasts[*target].handle.id);
  } else {
    *target = model_new_multicast(found, c.index);
    NOTE("= m%lld", *target);
  }
}

/* ---- The default broadcaster ----------------------------------------------------------------- */

void begin_default_broadcaster(void) {
  multicast_broadcaster b = multicast_broadcaster_default();
  EXPECT(b.id != 0, "no default broadcaster");
  EXPECT_EQ(new_broadcaster(b, NONE), DEFAULT);
  for (int i = 0; i < NAMES; ++i)
    model.broadcasters[DEFAULT].targets[i] =
        model_new_multicast(multicast_broadcaster_multicast(b, broadcaster_names[i]), DEFAULT);
}

void end_default_broadcaster(void) {
  multicast_broadcaster b = model.broadcasters[DEFAULT].handle;
  multicast_delegate d = delegate_of(0, 0);
  multicast_transport t = multicast_transport_default();
  /* Attach a transport once. From then on, each name's multicast reports to the broadcaster's
   * transport whether it has observers. */
  t.publish = publish;
  detach(DEFAULT);
  EXPECT_EQ(multicast_broadcaster_attach(b, &t), MULTICAST_OK);
  EXPECT_EQ(multicast_broadcaster_attach(b, NULL), MULTICAST_OK);
  compare_transports();
  for (int i = 0; i < NAMES; ++i) {
    const char *name = broadcaster_names[i];
    EXPECT(multicast_broadcaster_unregister_all(b, name) >= MULTICAST_ERROR_INVALID_HANDLE,
           "observers were not unregistered");
    /* If an input has destroyed the multicast of the name, this call creates a new multicast for
     * the next input. */
    EXPECT_EQ(multicast_broadcaster_register(b, name, d, NULL, NULL), MULTICAST_OK);
    EXPECT_EQ(multicast_broadcaster_unregister(b, name, d), MULTICAST_OK);
  }
}
