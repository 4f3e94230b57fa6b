#include "history.h"
#include "memory.h"
#include "operations.h"

static void compare_liveness(void) {
  for (int i = 0; i < model.multicast_count; ++i) {
    const model_multicast *m = &model.multicasts[i];
    EXPECT_EQ(multicast_is_valid(m->handle), m->is_alive);
    EXPECT_EQ(multicast_count(m->handle),
              m->is_alive ? model_count(i) : MULTICAST_ERROR_INVALID_HANDLE);
    bool is_wanted = multicast_is_wanted(multicast_interest(m->handle));
    EXPECT_EQ(is_wanted, m->is_alive && model_count(i) > 0);
  }
  for (int i = 0; i < model.registration_count; ++i)
    if (model.registrations[i].token.id != 0)
      EXPECT_EQ(multicast_token_is_live(model.registrations[i].token),
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

bool perform(const record *r) {
  if (model.depth == 0) model.has_nested_deep = false;
  if (model.nesting >= NESTING - 1) note_deep_nesting();
  switch (operation_of(r)) {
    case CREATE: perform_create(r); break;
    case DESTROY: perform_destroy(r); break;
    case ADD: perform_add(r, false); break;
    case ADD_WITH: perform_add(r, true); break;
    case ADD_MANY: perform_add_many(r); break;
    case REMOVE: perform_remove(r); break;
    case REMOVE_MANY: perform_remove_many(r); break;
    case REMOVE_CONTEXT: perform_remove_context(r); break;
    case REMOVE_AT: perform_remove_at(r); break;
    case REMOVE_ALL: perform_remove_all(r); break;
    case LOOK: perform_look(r); break;
    case INVOKE_IT: perform_invoke(r); break;
    case VISIT_IT: perform_visit(r); break;
    case REMOVE_TOKEN: perform_token(r); break;
    case REMOVE_CURRENT: perform_current(r); break;
    case PAUSE: perform_pause(r); break;
    case CREATE_LIFETIME: perform_create_lifetime(); break;
    case END_LIFETIME: perform_end_lifetime(r); break;
    case CREATE_QUEUE: perform_create_queue(r); break;
    case DESTROY_QUEUE: perform_destroy_queue(r); break;
    case RUN_QUEUE: perform_run(r); break;
    case WATCH_QUEUE: perform_watch(r); break;
    case CREATE_BROADCASTER: perform_create_broadcaster(r); break;
    case DESTROY_BROADCASTER: perform_destroy_broadcaster(r); break;
    case REGISTER: perform_register(r); break;
    case UNREGISTER: perform_unregister(r); break;
    case UNREGISTER_ALL: perform_unregister_all(r); break;
    case NOTIFY: perform_notify(r); break;
    case LOOK_UP: perform_look_up(r); break;
    case FAIL_MEMORY:
      if (memory_is_failing()) break; /* until the end of the operation */
      NOTE("memory: %lld allocations, then no more", r->a % 8);
      memory_fail_after(r->a % 8);
      break;
    case CONTEXT_DIES:
      NOTE("c%lld: dead %lld", r->a % CONTEXTS, r->b & 1);
      model.context_is_dead[r->a % CONTEXTS] = r->b & 1;
      break;
    case RECURSE:
      NOTE("the next %lld calls invoke their multicast again", RECURSIONS);
      if (model.depth == 0) model.recursions = RECURSIONS;
      break;
    case REMOVE_EVERY: perform_remove_every(r); break;
    case REMOVE_SEVERAL_WITHIN: perform_remove_several_within(r); break;
    case PRUNE_IT: perform_prune(r); break;
    case GET_TOKEN: perform_get(r); break;
    case CLEAR_QUEUE: perform_clear(r); break;
    case UNREGISTER_CONTEXT: perform_unregister_context(r); break;
    case INVOKE_WITH: perform_invoke_with(r); break;
    case NOTIFY_WITH: perform_notify_with(r); break;
    case INVOKE_TOKEN: perform_invoke_token(r); break;
    case VISIT_TOKEN: perform_visit_token(r); break;
    case CALL_STACK: perform_call_stack(r); break;
    case REPLAY: perform_replay(r); break;
    case ENUMERATE_IT: perform_enumerate(r); break;
    case TRIM:
      NOTE("multicast_trim");
      EXPECT_EQ(multicast_trim(), 0); /* the memory is the test's */
      break;
    case ATTACH: perform_attach(r); break;
    case DELIVER: perform_deliver(r); break;
    case END_INSIDE:
    case OPERATIONS: return false;
  }
  verify();
  return true;
}
