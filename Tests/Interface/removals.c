#include "removals.h"
#include "notes.h"

int64_t by_remove(removal *r) { return multicast_remove(r->target, r->delegate); }
int64_t by_token(removal *r) { return multicast_token_remove(r->token); }
int64_t by_nowait(removal *r) { return multicast_token_remove_nowait(r->token); }
int64_t by_within(removal *r) {
  return multicast_token_remove_within(r->token, UINT64_C(20000000000));
}
int64_t by_within_for_ever(removal *r) {
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
  multicast_options options = to_queue(r->queue);
  options.flags = MULTICAST_UNIQUE;
  return multicast_add(r->target, r->delegate, &options, &r->token);
}

void add_removable(removal *r, multicast_delegate d, multicast_queue q, void (*release)(void *)) {
  multicast_options options = to_queue(q);
  r->queue = q;
  r->delegate = d;
  r->target = multicast_create();
  r->lifetime = multicast_lifetime_create();
  r->returned = shut;
  r->result = INT64_MIN;
  r->had_left = false;
  options.lifetime = r->lifetime;
  options.release = release;
  r->token = add_with(r->target, d, &options);
}

static const blocker fresh_blocker = BLOCKER_INIT;

void begin_call(removal *r, blocker *b, runner *run, int64_t (*remove)(removal *)) {
  *b = fresh_blocker;
  add_removable(r, blocking(b), default_queue(), release_blocker);
  r->remove = remove;
  r->b = b;
  CHECK_EQ(invoke_number(r->target, 1), 1);
  CHECK_EQ(invoke_number(r->target, 2), 1);
  CHECK_EQ(invoke_number(r->target, 3), 1);
  run_in_background(run, r->queue, 0);
  gate_wait(&b->entered);
}

void *remove_in_thread(void *argument) {
  removal *r = argument;
  r->result = r->remove(r);
  r->had_left = LOAD(r->b->has_left);
  gate_open(&r->returned);
  return NULL;
}
