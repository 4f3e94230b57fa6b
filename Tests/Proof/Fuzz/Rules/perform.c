#include "history.h"
#include "memory.h"
#include "operations.h"

static void compare_liveness(void) {
  for (int i = 0; i < model.multicast_count; ++i) {
    const model_multicast *m = &model.multicasts[i];
    EXPECT_EQ(multicast_is_valid(m->handle), m->is_alive);
    EXPECT_EQ(multicast_count(m->handle),
              m->is_alive ? model_count(i) : MULTICAST_ERROR_INVALID_HANDLE);
    bool is_wanted = multicast_has_listeners(multicast_listener_flag(m->handle));
    EXPECT_EQ(is_wanted, m->is_alive && model_count(i) > 0);
  }
  for (int i = 0; i < model.registration_count; ++i)
    if (model.registrations[i].token.id != 0)
      EXPECT_EQ(multicast_token_is_valid(model.registrations[i].token),
                model.registrations[i].is_live);
}

static void compare_lifetimes(void) {
  for (int i = 0; i < model.lifetime_count; ++i) {
    int count = 0;
    for (int j = 0; j < model.registration_count; ++j)
      if (model.registrations[j].lifetime == i && model.registrations[j].is_live) ++count;
    EXPECT_EQ(multicast_lifetime_is_valid(model.lifetimes[i].handle), model.lifetimes[i].is_alive);
    EXPECT_EQ(multicast_lifetime_count(model.lifetimes[i].handle),
              model.lifetimes[i].is_alive ? count : MULTICAST_ERROR_INVALID_HANDLE);
  }
}

static void compare_statistics(void) {
  for (int i = 0; i < model.queue_count; ++i) {
    const multicast_queue_stats *wanted = &model.queues[i].stats;
    multicast_queue_stats got = multicast_queue_stats_default();
    multicast_status status = multicast_queue_get_stats(model.queues[i].handle, &got);
    EXPECT_EQ(multicast_queue_is_valid(model.queues[i].handle), model.queues[i].is_alive);
    EXPECT_EQ(status, model.queues[i].is_alive ? MULTICAST_OK : MULTICAST_ERROR_INVALID_HANDLE);
    if (status != MULTICAST_OK) continue;
    EXPECT_EQ(got.pending, wanted->pending);
    EXPECT_EQ(got.queued, wanted->queued);
    EXPECT_EQ(got.delivered, wanted->delivered);
    EXPECT_EQ(got.refused, wanted->refused);
    EXPECT_EQ(got.dropped, wanted->dropped);
    EXPECT_EQ(got.cancelled, wanted->cancelled);
    EXPECT_EQ(got.coalesced, wanted->coalesced);
    EXPECT_EQ(got.highest, wanted->highest);
  }
}

static void compare_broadcasters(void) {
  for (int i = 0; i < model.broadcaster_count; ++i)
    EXPECT_EQ(multicast_broadcaster_is_valid(model.broadcasters[i].handle),
              model.broadcasters[i].is_alive);
}

void verify(void) {
  compare_broadcasters();
  compare_liveness();
  compare_lifetimes();
  compare_statistics();
  if (model.depth == 0) compare_transports();
}

operation operation_of(const record *r) { return (operation)(r->operation % OPERATIONS); }

/* Returns whether some copies of payloads may need no allocation, because a queue has a reserve.
 * The model does not know how much of a reserve is in use. */
static bool has_reserves(void) {
  for (int i = 0; i < model.queue_count; ++i)
    if (model.queues[i].is_alive && model.queues[i].has_reserve) return true;
  return false;
}

void perform_fail_memory(const record *r) {
  if (memory_is_failing()) return; /* allocations fail until the end of the operation */
  if (has_reserves()) return;
  NOTE("memory: %lld allocations, then no more", r->a % 8);
  memory_fail_after(r->a % 8);
}

void perform_context_dies(const record *r) {
  NOTE("c%lld: dead %lld", r->a % CONTEXTS, r->b & 1);
  model.context_is_dead[r->a % CONTEXTS] = r->b & 1;
}

void perform_recurse(const record *r) {
  NOTE("the next %lld calls invoke their multicast again", RECURSIONS);
  if (model.depth == 0) model.recursions = RECURSIONS;
}

void perform_trim(const record *r) {
  NOTE("multicast_trim");
  EXPECT_EQ(multicast_trim(), 0); /* 0, because the test has set the allocator */
}

#define FUNCTION_OF(NAME) perform_##NAME,

bool perform(const record *r) {
  static void (*const functions[])(const record *) = {NULL, EACH_OPERATION(FUNCTION_OF)};
  if (model.depth == 0) model.has_nested_deep = false;
  if (model.nesting >= NESTING - 1) note_deep_nesting();
  if (operation_of(r) == END_INSIDE) return false;
  functions[operation_of(r)](r);
  verify();
  return true;
}
