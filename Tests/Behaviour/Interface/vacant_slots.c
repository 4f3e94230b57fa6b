/* A thread that destroys multicasts caches some of their slots for the next multicasts that it
 * creates. The cache is small, and no slot is lost when the thread ends or the process forks. */

#include "process.h"

enum {
  FILLED = 64 + 128 + 256, /* the slots of the first three slabs */
  KEPT = 32,               /* the maximum number of slots that a thread caches */
};

static multicast filled[FILLED];

static void fill(void) {
  use_test_allocator();
  for (int i = 0; i < FILLED; ++i) CHECK((filled[i] = multicast_create()).id != 0);
  fail_after = 0;
  CHECK(multicast_create().id == 0); /* every slot is in use now */
  fail_after = -1;
}

/* Creates multicasts while no memory is left, and expects that no two of them share a slot. */
static void create_without_memory(int count) {
  multicast all[FILLED];
  int calls = 0;
  fail_after = 0;
  for (int i = 0; i < count; ++i) CHECK((all[i] = multicast_create()).id != 0);
  fail_after = -1;
  for (int i = 0; i < count; ++i) add(all[i], counter(&calls));
  for (int i = 0; i < count; ++i) CHECK_EQ(multicast_invoke(all[i], 0, NULL, 0), 1);
  for (int i = 0; i < count; ++i) CHECK_OK(multicast_destroy(all[i]));
}

typedef struct destroyer {
  int count;
  gate have_destroyed, let_go;
} destroyer;

THREAD(destroy_some, destroyer *d) {
  multicast_invoke(filled[0], 0, NULL, 0); /* only threads that have invoked one cache slots */
  for (int i = 0; i < d->count; ++i) CHECK_OK(multicast_destroy(filled[i]));
  gate_open(&d->have_destroyed);
  gate_wait(&d->let_go);
}

TEST(slots_of_a_thread_that_ended_are_for_all) {
  destroyer d = {KEPT, GATE_INIT, GATE_INIT};
  fill();
  gate_open(&d.let_go);
  on_another_thread(destroy_some, &d);
  create_without_memory(KEPT);
}

TEST(slots_that_a_thread_keeps_are_few) {
  destroyer d = {FILLED, GATE_INIT, GATE_INIT};
  fill();
  pthread_t thread = start_thread(destroy_some, &d);
  gate_wait(&d.have_destroyed);
  create_without_memory(FILLED - KEPT);
  gate_open(&d.let_go);
  join_thread(thread);
}

TEST(slots_that_a_thread_keeps_need_no_memory) {
  fill();
  multicast_invoke(filled[0], 0, NULL, 0);
  for (int i = 0; i < FILLED; ++i) CHECK_OK(multicast_destroy(filled[i]));
  for (int i = 0; i < 3; ++i) create_without_memory(FILLED);
}

static void create_in_child(void *unused) {
  create_without_memory(KEPT);
}

TEST(slots_that_a_thread_of_the_parent_keeps_are_for_the_child) {
  destroyer d = {KEPT, GATE_INIT, GATE_INIT};
  fill();
  pthread_t thread = start_thread(destroy_some, &d);
  gate_wait(&d.have_destroyed);
  in_child(create_in_child, NULL);
  gate_open(&d.let_go);
  join_thread(thread);
}
