#include "world.h"

enum { QUEUE_CAPACITY = 16 };
const char payload[100] = "larger than what a queue keeps in place";

static void be_called(void *context, uint32_t event, const void *bytes, size_t size) {
  world *w = context;
  CHECK(multicast_token_current().id != 0);
  CHECK(size == 0 || memcmp(bytes, payload, size) == 0);
  ADD(w->calls, 1);
}

static void be_called_too(void *context, uint32_t event, const void *bytes, size_t size) {
  be_called(context, event, bytes, size);
}

void be_released(void *context) { ADD(((world *)context)->releases, 1); }

multicast_delegate delegate_of(world *w) {
  return (multicast_delegate){be_called, w};
}

multicast_delegate other_delegate_of(world *w) {
  return (multicast_delegate){be_called_too, w};
}

const char *const known_name = "known";

void world_begin(world *w) {
  multicast_add_options options = ADD_OPTIONS(.release = be_released);
  memset(w, 0, sizeof *w);
  w->m = multicast_create();
  w->lifetime = multicast_lifetime_create();
  w->queue = queue_with(QUEUE_CAPACITY, MULTICAST_OVERFLOW_REFUSE);
  w->broadcaster = multicast_broadcaster_create(NULL);
  CHECK(w->m.id != 0 && w->lifetime.id != 0 && w->broadcaster.id != 0);
  w->token = add_with(w->m, delegate_of(w), &options);
  options.queue = w->queue;
  add_with(w->m, delegate_of(w), &options);
  options = ADD_OPTIONS(.release = be_released);
  options.lifetime = w->lifetime;
  add_with(w->m, delegate_of(w), &options);
  options = ADD_OPTIONS(.release = be_released);
  add_with(w->m, delegate_of(w), &options);
  CHECK_OK(multicast_broadcaster_register(w->broadcaster, known_name, delegate_of(w), &options,
                                          NULL));
  w->known = multicast_broadcaster_multicast(w->broadcaster, known_name);
  CHECK(w->known.id != 0);
  w->owed = 5;
}

void world_end(world *w) {
  if (w->m.id == 0) return;
  CHECK_OK(multicast_lifetime_end(w->lifetime));
  CHECK_OK(multicast_queue_destroy(w->queue));
  CHECK_OK(multicast_destroy(w->m));
  CHECK_OK(multicast_broadcaster_destroy(w->broadcaster));
  CHECK_EQ(LOAD(w->releases), w->owed);
  CHECK_EQ(LOAD(w->payloads_released), w->payloads);
}

world_state world_look(const world *w) {
  world_state s = {.made_count = w->made_count};
  if (w->m.id == 0) return s;
  s.delegates = multicast_list(w->m, s.list, 64);
  CHECK_EQ(s.delegates, multicast_count(w->m));
  s.is_live = multicast_token_is_valid(w->token);
  s.members = multicast_lifetime_count(w->lifetime);
  s.stats = stats_of(w->queue);
  s.observers = multicast_count(w->known);
  s.calls = LOAD(w->calls);
  return s;
}

void world_expect(const world *w, const world_state *before) {
  world_state now = world_look(w);
  CHECK_EQ(now.delegates, before->delegates);
  for (int64_t i = 0; i < now.delegates; ++i) {
    CHECK(now.list[i].function == before->list[i].function);
    CHECK(now.list[i].context == before->list[i].context);
  }
  CHECK_EQ(now.is_live, before->is_live);
  CHECK_EQ(now.members, before->members);
  CHECK_EQ(now.observers, before->observers);
  CHECK_EQ(now.calls, before->calls);
  CHECK_EQ(now.made_count, before->made_count);
  CHECK_EQ(now.stats.pending, before->stats.pending);
  CHECK_EQ(now.stats.queued, before->stats.queued);
  CHECK_EQ(now.stats.delivered, before->stats.delivered);
  CHECK_EQ(now.stats.refused, before->stats.refused);
  CHECK_EQ(now.stats.dropped, before->stats.dropped);
  CHECK_EQ(now.stats.cancelled, before->stats.cancelled);
  CHECK_EQ(now.stats.coalesced, before->stats.coalesced);
  CHECK_EQ(now.stats.highest, before->stats.highest);
}
