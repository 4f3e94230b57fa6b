/* Rule 4: where a delegate is added again while a call of it still runs, removing it waits for that
 * call too: the context is the same. */

#include "harness.h"

typedef struct twice {
  multicast m;
  blocker b;
  multicast_status status;
  gate removed;
} twice;

static const twice begin = {{0}, BLOCKER_INIT, MULTICAST_OK, GATE_INIT};

static void *remove_it(void *argument) {
  twice *t = argument;
  t->status = multicast_remove(t->m, blocking(&t->b));
  gate_open(&t->removed);
  return NULL;
}

/* Adds it, has it called, adds it again, removes it on another thread. */
static void remove_after(twice *t, uint32_t flags) {
  multicast_options options = multicast_options_default();
  invoker i;
  pthread_t remover;
  *t = begin;
  options.flags = flags;
  t->m = multicast_create();
  add_with(t->m, blocking(&t->b), &options);
  invoke_in_background(&i, t->m);
  gate_wait(&t->b.entered);
  add_with(t->m, blocking(&t->b), &options);
  remover = start_thread(remove_it, t);
  CHECK(!gate_opens_within(&t->removed, A_WHILE_MS));
  gate_open(&t->b.let_go);
  gate_wait(&t->removed);
  CHECK(t->b.has_left);
  CHECK_OK(t->status);
  join_thread(remover);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(multicast_count(t->m), 0);
}

TEST(remove_waits_for_the_call_of_the_one_that_a_unique_add_has_replaced) {
  static twice t;
  remove_after(&t, MULTICAST_UNIQUE);
}

TEST(remove_waits_for_the_call_of_an_equal_one_that_was_called_once) {
  static twice t;
  remove_after(&t, MULTICAST_ONCE);
}

static multicast own;
static int calls;

static void add_again_and_remove(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_delegate d = {add_again_and_remove, context};
  (void)event, (void)payload, (void)size;
  ++*(int *)context;
  add(own, d);
  CHECK_STATUS(multicast_remove(own, d), MULTICAST_PENDING);
  CHECK_EQ(multicast_count(own), 0);
}

TEST(remove_of_one_that_was_added_again_inside_its_own_call_is_pending) {
  multicast_options options = multicast_options_default();
  multicast_delegate d = {add_again_and_remove, NULL};
  d.context = &calls;
  options.flags = MULTICAST_ONCE;
  own = multicast_create();
  add_with(own, d, &options);
  CHECK_EQ(multicast_invoke(own, 0, NULL, 0), 1);
  CHECK_EQ(calls, 1);
  CHECK_STATUS(multicast_remove(own, d), MULTICAST_ERROR_NOT_FOUND);
}
