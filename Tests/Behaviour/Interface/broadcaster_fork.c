/* The child of a fork inherits broadcasters with their names and observers. */

#include "broadcasters.h"
#include "handles.h"

static void use_inherited(void *unused) {
  observer o = {0, 0};
  multicast_add_options options = ADD_OPTIONS(.release = release_observer);
  int known = LOAD(growing_count), i;
  CHECK_EQ(notify(shared, NAME), 1);
  observe_with(shared, NAME, observing(&o), &options);
  observe_with(shared, "OfTheChild", observing(&o), &options);
  CHECK_EQ(notify(shared, NAME), 2);
  CHECK_EQ(notify(shared, "OfTheChild"), 1);
  CHECK_EQ(o.calls, 2);
  for (i = 0; i < known; i += 1 + known / 50) {
    CHECK_EQ(find(shared, numbered(NAME, i)).id, growing_ids[i]);
  }
  for (i = 0; i < 100; ++i) CHECK(find(shared, numbered("OfTheChild", i)).id != 0);
  CHECK_OK(multicast_broadcaster_unregister(shared, NAME, observing(&o)));
  CHECK_EQ(o.releases, 1);
  multicast_broadcaster b = create();
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK_OK(multicast_broadcaster_unregister(shared, "OfTheChild", observing(&o)));
  CHECK_EQ(o.releases, 2);
}

static void use_and_destroy_inherited(void *unused) {
  use_inherited(unused);
  CHECK_OK(multicast_broadcaster_destroy(shared));
  expect_no(OF_BROADCASTER, shared.id);
}

TEST(broadcaster_in_the_child_of_a_fork) {
  shared = create();
  observe(shared, NAME, counter(&calls));
  in_child(use_and_destroy_inherited, NULL);
  CHECK_EQ(calls, 0);
  CHECK_EQ(notify(shared, "OfTheChild"), 0);
  use_and_destroy_inherited(NULL);
}

static void use_default_in_child(void *id) {
  multicast_broadcaster b = multicast_broadcaster_default();
  CHECK_EQ(b.id, *(uint64_t *)id);
  CHECK_EQ(notify(b, NAME), 1);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 2);
  CHECK_ERROR(multicast_broadcaster_destroy(b), STATE);
}

TEST(broadcaster_default_in_the_child_of_a_fork) {
  multicast_broadcaster b = multicast_broadcaster_default();
  observe(b, NAME, counter(&calls));
  in_child(use_default_in_child, &b.id);
  CHECK_EQ(calls, 0);
}

static void run_queue_in_child(void *queue) {
  multicast_queue q = *(multicast_queue *)queue;
  CHECK_EQ(multicast_queue_run(q, 0), 0); /* queued calls stay in the parent */
  CHECK_EQ(notify(shared, NAME), 1);
  observe(shared, "OfTheChild", counter(&calls));
  CHECK_EQ(notify(shared, "OfTheChild"), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_EQ(calls, 2);
}

TEST(broadcaster_queue_in_the_child_of_a_fork) {
  multicast_queue q = create_queue();
  shared = create_on(q);
  observe(shared, NAME, counter(&calls));
  CHECK_EQ(notify(shared, NAME), 1);
  in_child(run_queue_in_child, &q);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(calls, 1);
}

THREAD(register_new_names, void *unused) {
  for (int i = 0; !LOAD(is_over); ++i) {
    if (i < GROWING) {
      observe(shared, numbered(NAME, i), counter(&calls));
      growing_ids[i] = find(shared, numbered(NAME, i)).id;
      STORE(growing_count, i + 1);
    } else {
      pause_ms(1);
    }
  }
}

THREAD(create_and_destroy, void *unused) {
  while (!LOAD(is_over)) {
    multicast_broadcaster b = create();
    for (int i = 0; i < 40; ++i) observe(b, numbered(NAME, i), counter(&calls));
    CHECK_OK(multicast_broadcaster_destroy(b));
  }
}

TEST(broadcaster_in_the_child_while_the_parents_threads_register) {
  pthread_t threads[2];
  shared = create();
  observe(shared, NAME, counter(&calls));
  threads[0] = start_thread(register_new_names, NULL);
  threads[1] = start_thread(create_and_destroy, NULL);
  for (int i = 0; i < 60; ++i) {
    in_child(i % 2 == 0 ? use_and_destroy_inherited : use_inherited, NULL);
  }
  STORE(is_over, true);
  for (int i = 0; i < 2; ++i) join_thread(threads[i]);
  CHECK_EQ(notify(shared, "OfTheChild"), 0);
}

/* ThreadSanitizer does not protect its clocks' locks across a fork. In about one fork in ten
 * thousand, a thread of the parent is holding such a lock, and the child waits for the lock
 * forever. */
#ifdef __SANITIZE_THREAD__
enum { FORKS_DURING_LOOK_UPS = 10 };
#else
enum { FORKS_DURING_LOOK_UPS = 100 };
#endif

TEST(broadcaster_in_the_child_while_the_parents_threads_look_up) {
  pthread_t threads[2];
  name_the_shared();
  shared = create();
  observe(shared, NAME, counter(&calls));
  for (int i = 0; i < 2; ++i) threads[i] = start_thread(look_up_all_the_time, NULL);
  for (int i = 0; i < FORKS_DURING_LOOK_UPS; ++i) in_child(use_and_destroy_inherited, NULL);
  STORE(is_over, true);
  for (int i = 0; i < 2; ++i) join_thread(threads[i]);
}
