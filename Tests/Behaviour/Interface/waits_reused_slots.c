/* A new queue or multicast reuses the slot of a destroyed queue or multicast, one of whose calls is
 * still running. */

#include "harness.h"

/* ---- Queues ---------------------------------------------------------------------------------- */

typedef struct successor {
  multicast_queue old, new;
  multicast target;
  int calls;
  blocker *other; /* its call runs in the new queue, unless it is NULL */
  pthread_t runner;
} successor;

THREAD(run_the_new, successor *s) {
  CHECK_EQ(multicast_queue_run(s->new, 1), 1);
}

FUNCTION(destroy_and_create, successor *s) {
  multicast_queue taken[64];
  int count = 0;
  ++s->calls;
  CHECK_STATUS(multicast_queue_destroy(s->old), MULTICAST_PENDING);
  /* Create queues until one of them reuses the slot, whose index is in the low bits of the
   * handle. */
  do {
    s->new = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
    if (((s->new.id ^ s->old.id) & 0x3FFFFFF) == 0) break;
    taken[count++] = s->new;
  } while (count < 64);
  CHECK(count < 64);
  while (count > 0) CHECK_OK(multicast_queue_destroy(taken[--count]));
  multicast_add_options options = ADD_OPTIONS(.queue = s->new);
  if (s->other != NULL) {
    add_with(s->target, blocking(s->other), &options);
    CHECK_EQ(multicast_invoke(s->target, 0, NULL, 0), 1);
    s->runner = start_thread(run_the_new, s);
    gate_wait(&s->other->entered);
  } else {
    add_with(s->target, counter(&s->calls), &options);
    CHECK_EQ(multicast_invoke(s->target, 0, NULL, 0), 1);
  }
}

static void destroy_inside_its_call(successor *s) {
  multicast m = multicast_create();
  s->old = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  s->target = multicast_create();
  add_queued(m, DELEGATE(destroy_and_create, s), s->old);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(s->old, 100), 1);
}

TEST(queue_run_makes_no_call_of_the_next_queue_in_its_slot) {
  successor s = {{0}, {0}, {0}, 0, NULL, 0};
  destroy_inside_its_call(&s);
  CHECK_EQ(s.calls, 1);
  CHECK_EQ(stats_of(s.new).pending, 1);
  CHECK_EQ(multicast_queue_run(s.new, 0), 1);
  CHECK_EQ(s.calls, 2);
}

TEST(queue_run_that_ends_late_leaves_next_queue_in_slot_alone) {
  static blocker b = BLOCKER_INIT;
  successor s = {{0}, {0}, {0}, 0, &b, 0};
  destroy_inside_its_call(&s);
  CHECK_ERROR(multicast_queue_run(s.new, 1), STATE);
  gate_open(&b.let_go);
  join_thread(s.runner);
}

/* ---- Multicasts ------------------------------------------------------------------------------ */

typedef struct heir {
  multicast old, new;
  gate entered, may_return;
} heir;

FUNCTION(destroy_and_inherit, heir *h) {
  int count = 0;
  CHECK_STATUS(multicast_destroy(h->old), MULTICAST_PENDING);
  do {
    CHECK(++count < 64);
    h->new = multicast_create();
  } while (((h->new.id ^ h->old.id) & 0x3FFFFFF) != 0);
  gate_open(&h->entered);
  gate_wait(&h->may_return);
}

TEST(remove_all_waits_for_no_call_of_last_multicast_in_slot) {
  static heir h = {{0}, {0}, GATE_INIT, GATE_INIT};
  multicast_queue queue = queue_with(10, MULTICAST_OVERFLOW_REFUSE);
  h.old = multicast_create();
  add_with(h.old, DELEGATE(destroy_and_inherit, &h), &ADD_OPTIONS(.queue = queue));
  CHECK_OK(multicast_queue_start(queue));
  CHECK_EQ(multicast_invoke(h.old, 0, NULL, 0), 1);
  gate_wait(&h.entered);
  CHECK_EQ(multicast_remove_all(h.new), 0); /* this removal would hang if it waited */
  gate_open(&h.may_return);
  CHECK_OK(multicast_queue_destroy(queue));
}
