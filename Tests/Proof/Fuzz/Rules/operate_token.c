#include "callbacks.h"
#include "history.h"
#include "operations.h"

static multicast_status remove_by(multicast_token t, uint8_t how) {
  switch (how % 5) {
    case 0: return multicast_token_remove(t);
    case 1: return multicast_token_remove_nowait(t);
    case 2: return multicast_token_remove_within(t, 0);
    case 3: return multicast_token_remove_within(t, 1000);
    default: return multicast_token_remove_within(t, UINT64_MAX);
  }
}

static void remove_token(const choice *c, uint8_t how) {
  multicast_token t = {c->id};
  outcomes allowed = {{0}, 0};
  NOTE("multicast_token_remove(r%lld), way %lld", c->index, how % 5);
  model_enter(CHANGE);
  allow_handle_error(&allowed, c);
  if (c->index != NONE && !c->is_alive) { /* already removed, but a call may still run */
    const registration *x = &model.registrations[c->index];
    if (x->in_use > 0) allow(&allowed, MULTICAST_PENDING);
    if (x->running > 0) allowed.values[0] = MULTICAST_PENDING;
  }
  if (c->is_alive) {
    allowed = model_removal_of(c->index);
    model_remove(c->index);
  }
  finish(remove_by(t, how), &allowed);
}

void perform_token(const record *r) {
  choice c = choose_registration(r->a);
  remove_token(&c, r->b);
}

void perform_current(const record *r) {
  choice c = {NONE, 0, false};
  multicast_token t = multicast_token_current();
  int current;
  if (!model_current(&current)) return;
  c.index = current;
  if (current != NONE) {
    c.id = model.registrations[current].token.id;
    c.is_alive = model.registrations[current].is_live;
  }
  EXPECT_EQ(t.id, c.id);
  remove_token(&c, r->b);
}

void perform_pause(const record *r) {
  choice c = choose_registration(r->a);
  multicast_token t = {c.id};
  bool is_resume = r->b & 1;
  NOTE(is_resume ? "multicast_token_resume(r%lld)" : "multicast_token_pause(r%lld)", c.index);
  EXPECT_EQ(is_resume ? multicast_token_resume(t) : multicast_token_pause(t),
            c.is_alive ? MULTICAST_OK : MULTICAST_ERROR_INVALID_HANDLE);
  if (c.is_alive) model.registrations[c.index].is_paused = !is_resume;
}

void perform_get(const record *r) {
  choice c = choose_registration(r->a);
  multicast_token t = {c.id};
  multicast_registration got = MULTICAST_REGISTRATION_INIT;
  const registration *x = c.is_alive ? &model.registrations[c.index] : NULL;
  NOTE("multicast_token_get_registration(r%lld)", c.index);
  EXPECT_EQ(multicast_token_get_registration(t, &got),
            x != NULL ? MULTICAST_OK : MULTICAST_ERROR_INVALID_HANDLE);
  if (x == NULL) return;
  EXPECT_EQ(got.flags, x->flags & (MULTICAST_ONCE | MULTICAST_LATEST));
  EXPECT_EQ(got.token.id, c.id);
  EXPECT_EQ(got.target.id, model.multicasts[x->target].handle.id);
  EXPECT(got.delegate.function == delegate_functions[x->function] &&
             got.delegate.context == context_pointer(x->context),
         "a registration with the wrong delegate");
  EXPECT_EQ(got.priority, x->priority);
  EXPECT_EQ(got.is_paused, x->is_paused);
  EXPECT_EQ(got.events, x->events);
  EXPECT_EQ(got.lifetime.id, x->lifetime == NONE ? 0 : model.lifetimes[x->lifetime].handle.id);
  EXPECT_EQ(got.queue.id, x->queue == NONE || !model.queues[x->queue].is_alive
                              ? 0 : model.queues[x->queue].handle.id);
  EXPECT(got.strong == NULL && got.label == NULL, "a reserved field that is not NULL");
}
