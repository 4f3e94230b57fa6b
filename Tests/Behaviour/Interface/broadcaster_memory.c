/* Failed lookups use no memory, and broadcasters leak nothing. */

#include "broadcasters.h"

/* Creates and destroys a multicast, and returns its handle. */
static uint64_t short_lived(void) {
  multicast m = multicast_create();
  CHECK_OK(multicast_destroy(m));
  return m.id;
}

/* A lookup that fails must not create a multicast, not even for a moment, because another thread
 * could add delegates to it with a forged handle. */
TEST(broadcaster_of_a_new_name_out_of_memory_takes_no_handle) {
  enum { NAMES = 2000 };
  int failures = 0;
  use_test_allocator();
  multicast_broadcaster b = create();
  CHECK(find(b, NAME).id != 0); /* allocates what this thread needs */
  uint64_t before = short_lived();
  uint64_t step = short_lived() - before;
  for (int i = 0; i < NAMES; ++i) {
    before = short_lived();
    fail_after = 0;
    multicast made = multicast_broadcaster_multicast(b, numbered(NAME, i));
    fail_after = -1;
    if (made.id != 0) continue;
    ++failures;
    CHECK_EQ(short_lived() - before, step);
    CHECK(find(b, numbered(NAME, i)).id != 0);
  }
  /* sometimes the table cannot grow, and sometimes there is no memory for more names */
  CHECK(failures > 5);
}

static int64_t first_result;

THREAD(notify_for_the_first_time, void *unused) {
  first_result = notify(shared, NAME);
}

TEST(broadcaster_notify_out_of_memory_is_of_first_call_only) {
  use_test_allocator();
  shared = create();
  observe(shared, NAME, counter(&calls));
  fail_only_once = false;
  fail_after = 0;
  on_another_thread(notify_for_the_first_time, NULL);
  CHECK_ERROR(first_result, OUT_OF_MEMORY);
  fail_after = -1;
  on_another_thread(notify_for_the_first_time, NULL);
  CHECK_EQ(first_result, 1);
  CHECK_EQ(notify(shared, NAME), 1);
  has_failed = false;
  fail_after = 0;
  CHECK_EQ(notify(shared, NAME), 1);
  CHECK_EQ(notify(shared, "Other"), 0);
  CHECK(!has_failed);
  CHECK_EQ(calls, 3);
}

static char last_title[200];

TEST(broadcaster_rounds_of_everything_leak_nothing) {
  enum { ROUNDS = 200, NAMES = 150 };
  int64_t before = 0;
  use_test_allocator();
  for (int round = 0; round < ROUNDS; ++round) {
    observer o = {0, 0};
    multicast_add_options options = ADD_OPTIONS(.release = release_observer);
    multicast_queue q = create_queue();
    multicast_broadcaster b = round % 2 == 0 ? create() : create_on(q);
    for (int i = 0; i < NAMES; ++i) {
      const char *name = numbered(NAME, i);
      CHECK(find(b, name).id != 0);
      observe_with(b, name, observing(&o), &options);
      observe_with(b, name, observing(&o), &options);
      CHECK_EQ(multicast_broadcaster_notify(b, name, 0, last_title, sizeof last_title), 2);
    }
    CHECK(multicast_queue_run(q, 17) >= 0);
    for (int i = 0; i < NAMES; i += 3) {
      CHECK_OK(multicast_broadcaster_unregister(b, numbered(NAME, i), observing(&o)));
      CHECK_EQ(multicast_broadcaster_unregister_all(b, numbered(NAME, i + 1)), 2);
      CHECK_OK(multicast_destroy(find(b, numbered(NAME, i + 2))));
    }
    CHECK_OK(multicast_broadcaster_destroy(b));
    CHECK_EQ(o.releases, 2 * NAMES);
    CHECK_OK(multicast_queue_destroy(q));
    if (round == 20) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}
