/* The default broadcaster exists without being created. */

#include "broadcasters.h"

TEST(broadcaster_default_is_same_each_time_and_needs_no_set_up) {
  multicast_broadcaster b = multicast_broadcaster_default(), other;
  CHECK(b.id != 0);
  observe(b, NAME, counter(&calls));
  other = create();
  CHECK(other.id != b.id);
  CHECK_EQ(multicast_broadcaster_default().id, b.id);
  CHECK_EQ(notify(multicast_broadcaster_default(), NAME), 1);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_broadcaster_destroy(other));
  CHECK_EQ(multicast_broadcaster_default().id, b.id);
}

TEST(broadcaster_default_cannot_be_destroyed_and_goes_on_working) {
  multicast_broadcaster b = multicast_broadcaster_default();
  multicast m = find(b, NAME);
  observe(b, NAME, counter(&calls));
  CHECK_ERROR(multicast_broadcaster_destroy(b), STATE);
  CHECK_ERROR(multicast_broadcaster_destroy(b), STATE);
  CHECK_EQ(multicast_broadcaster_default().id, b.id);
  CHECK_EQ(find(b, NAME).id, m.id);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&calls)));
  CHECK_EQ(multicast_broadcaster_unregister_all(b, NAME), 0);
}

static gate all_ready = GATE_INIT;

THREAD(get_default, void *id) {
  gate_wait(&all_ready);
  *(uint64_t *)id = multicast_broadcaster_default().id;
  CHECK_OK(multicast_broadcaster_register(multicast_broadcaster_default(), NAME, counter(&calls),
                                          NULL, NULL));
}

static void get_default_from_several_threads(void *unused) {
  enum { THREADS = 8 };
  pthread_t threads[THREADS];
  uint64_t ids[THREADS] = {0};
  for (int i = 0; i < THREADS; ++i) threads[i] = start_thread(get_default, &ids[i]);
  pause_ms(1);
  gate_open(&all_ready);
  for (int i = 0; i < THREADS; ++i) join_thread(threads[i]);
  CHECK(ids[0] != 0);
  for (int i = 1; i < THREADS; ++i) CHECK_EQ(ids[i], ids[0]);
  CHECK_EQ(notify(multicast_broadcaster_default(), NAME), THREADS);
}

TEST(broadcaster_default_is_the_same_for_threads_at_once) {
  for (int i = 0; i < 25; ++i) in_child(get_default_from_several_threads, NULL);
}
