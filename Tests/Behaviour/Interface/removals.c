#include "removals.h"
#include "notes.h"

/* ---- Ways to remove -------------------------------------------------------------------------- */

int64_t by_remove(removal *r) { return multicast_remove(r->target, r->delegate); }
int64_t by_token(removal *r) { return multicast_token_remove(r->token); }
int64_t by_nowait(removal *r) { return multicast_token_remove_nowait(r->token); }
int64_t by_within(removal *r) {
  return multicast_token_remove_within(r->token, UINT64_C(20000000000));
}
int64_t by_within_without_limit(removal *r) {
  return multicast_token_remove_within(r->token, UINT64_MAX);
}
int64_t by_context(removal *r) {
  return multicast_remove_context(r->target, r->delegate.context) - 1;
}
int64_t by_place(removal *r) { return multicast_remove_at(r->target, 0); }
int64_t by_all(removal *r) { return multicast_remove_all(r->target) - 1; }
int64_t by_many(removal *r) {
  return multicast_remove_many(r->target, &r->delegate, 1) - 1;
}
int64_t by_destroy(removal *r) { return multicast_destroy(r->target); }
int64_t by_lifetime(removal *r) { return multicast_lifetime_end(r->lifetime); }
int64_t by_queue(removal *r) { return multicast_queue_destroy(r->queue); }
int64_t by_unique(removal *r) {
  multicast_add_options options = ADD_OPTIONS(.queue = r->queue, .flags = MULTICAST_UNIQUE);
  return multicast_add(r->target, r->delegate, &options, &r->token);
}

void add_removable(removal *r, multicast_delegate d, multicast_queue q, void (*release)(void *)) {
  memset(r, 0, sizeof *r);
  r->queue = q;
  r->delegate = d;
  r->target = multicast_create();
  r->lifetime = multicast_lifetime_create();
  r->returned = shut;
  r->result = INT64_MIN;
  multicast_add_options options = ADD_OPTIONS(.queue = q, .lifetime = r->lifetime,
                                              .release = release);
  r->token = add_with(r->target, d, &options);
}

/* ---- On another thread ----------------------------------------------------------------------- */

void prepare_removal(removal *r, multicast target, blocker *b, int64_t (*remove)(removal *)) {
  memset(r, 0, sizeof *r);
  r->remove = remove;
  r->target = target;
  r->delegate = blocking(b);
  r->b = b;
  r->returned = shut;
  r->result = INT64_MIN;
}

void *remove_in_thread(void *argument) {
  removal *r = argument;
  r->result = r->remove(r);
  r->had_left = LOAD(r->b->has_left);
  gate_open(&r->returned);
  return NULL;
}

void expect_to_wait(removal *r, int64_t result) {
  r->thread = start_thread(remove_in_thread, r);
  EVENTUALLY(!multicast_token_is_valid(r->token));
  CHECK(!gate_opens_within(&r->returned, A_WHILE_MS));
  CHECK_EQ(LOAD(r->b->releases), 0);
  gate_open(&r->b->let_go);
  join_thread(r->thread);
  CHECK_STATUS(r->result, result);
  CHECK(r->had_left);
}

/* ---- While another thread is inside a call --------------------------------------------------- */

static const blocker fresh_blocker = BLOCKER_INIT;

void begin_running_call(running_call *c, int64_t (*remove)(removal *)) {
  c->b = fresh_blocker;
  prepare_removal(&c->r, multicast_create(), &c->b, remove);
  c->r.token = add_with(c->r.target, c->r.delegate, &ADD_OPTIONS(.release = release_blocker));
  invoke_in_background(&c->i, c->r.target);
  gate_wait(&c->b.entered);
}

void begin_queued_call(queued_call *c, int64_t (*remove)(removal *)) {
  c->b = fresh_blocker;
  add_removable(&c->r, blocking(&c->b), default_queue(), release_blocker);
  c->r.remove = remove;
  c->r.b = &c->b;
  for (int i = 1; i <= 3; ++i) CHECK_EQ(invoke_number(c->r.target, i), 1);
  run_in_background(&c->run, c->r.queue, 0);
  gate_wait(&c->b.entered);
}

/* ---- Inside the delegate's own call ---------------------------------------------------------- */

void remove_itself(void *context, uint32_t event, const void *payload, size_t size) {
  own_removal *o = context;
  ++o->calls;
  o->result = o->r.remove(&o->r);
  o->releases_inside = LOAD(o->releases);
}

void release_itself(void *context) { ADD(((own_removal *)context)->releases, 1); }

/* ---- Contexts that are freed after the removal ----------------------------------------------- */

enum { IS_ALIVE = 0xA11CE };

static void call_guarded(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_EQ(((guarded *)context)->alive, IS_ALIVE);
}

multicast_delegate begin_guarded(guarded *g) {
  g->alive = IS_ALIVE;
  return (multicast_delegate){call_guarded, g};
}

void end_guarded(guarded *g) { g->alive = 0; }
