/* Broadcasters without memory: a function that fails changes nothing, and nothing leaks. */

#include "broadcasters.h"

/* Makes the attempt with each allocation failing in turn: first that one only, then also all that
 * follow. */
static void fail_each_allocation(void (*attempt)(void)) {
  use_test_allocator();
  for (int mode = 0; mode < 2; ++mode) {
    fail_only_once = mode == 0;
    has_failed = true;
    for (int which = 0; has_failed; ++which) {
      CHECK(which < 10000);
      has_failed = false;
      fail_after = which;
      attempt();
      fail_after = -1;
    }
  }
}

/* Has allocations succeed for a while, so that a test can prepare or check something. Returns what
 * to set `fail_after` to again. */
static int put_off(void) {
  int after = fail_after;
  fail_after = -1;
  return after;
}

static void try_create(void) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  put_off();
  CHECK((b.id != 0) == !has_failed);
  if (b.id != 0) CHECK_OK(multicast_broadcaster_destroy(b));
}

TEST(broadcaster_create_out_of_memory_is_the_null_handle) {
  fail_each_allocation(try_create);
}

static void try_register(void) {
  enum { NAMES = 40 };
  static observer each[NAMES];
  multicast_add_options options = ADD_OPTIONS(.release = release_observer);
  multicast_status status = MULTICAST_OK;
  int after = put_off(), i;
  multicast_broadcaster b = create();
  memset(each, 0, sizeof each);
  for (i = 0; i < NAMES && status == MULTICAST_OK; ++i) {
    multicast_token token = {77};
    fail_after = after;
    status = multicast_broadcaster_register(b, numbered(NAME, i), observing(&each[i]),
                                            &options, &token);
    after = put_off();
    if (status != MULTICAST_OK) {
      CHECK_ERROR(status, OUT_OF_MEMORY);
      CHECK_EQ(token.id, 0);
      CHECK_EQ(each[i].releases, 1);
      CHECK_EQ(notify(b, numbered(NAME, i)), 0);
      observe_with(b, numbered(NAME, i), observing(&each[i]), &options);
    }
    CHECK_EQ(notify(b, numbered(NAME, i)), 1);
    CHECK_EQ(each[i].calls, 1);
  }
  if (!has_failed) CHECK_OK(status);
  CHECK_OK(multicast_broadcaster_destroy(b));
  if (status != MULTICAST_OK) CHECK_EQ(each[i - 1].releases, 2);
}

TEST(broadcaster_register_out_of_memory_only_releases) {
  fail_each_allocation(try_register);
}

static void try_multicast(void) {
  enum { NAMES = 40 };
  int after = put_off(), i;
  multicast_broadcaster b = create();
  for (i = 0; i < NAMES; ++i) {
    fail_after = after;
    multicast m = multicast_broadcaster_multicast(b, numbered(NAME, i));
    after = put_off();
    if (m.id == 0) {
      CHECK(has_failed);
      CHECK_EQ(notify(b, numbered(NAME, i)), 0);
      m = find(b, numbered(NAME, i));
    }
    CHECK(multicast_is_valid(m));
    CHECK_EQ(find(b, numbered(NAME, i)).id, m.id);
  }
  CHECK_OK(multicast_broadcaster_destroy(b));
}

TEST(broadcaster_multicast_out_of_memory_is_the_null_handle) {
  fail_each_allocation(try_multicast);
}

/* The handle of a multicast that is destroyed at once. */
static uint64_t short_lived(void) {
  multicast m = multicast_create();
  CHECK_OK(multicast_destroy(m));
  return m.id;
}

/* A look-up that fails creates no multicast, not even for a moment: another thread could add to it
 * with a forged handle. */
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
  CHECK(failures > 5); /* for tables, and in between for chunks of names */
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

TEST(broadcaster_unregister_and_destroy_need_no_memory) {
  enum { NAMES = 100 };
  observer o = {0, 0};
  multicast_add_options options = ADD_OPTIONS(.release = release_observer);
  use_test_allocator();
  multicast_broadcaster b = create();
  for (int i = 0; i < NAMES; ++i) {
    observe_with(b, numbered(NAME, i), observing(&o), &options);
    observe_with(b, numbered(NAME, i), observing(&o), &options);
    observe_with(b, numbered(NAME, i), observing(&o), &options);
  }
  fail_only_once = false;
  fail_after = 0;
  for (int i = 0; i < NAMES; ++i) {
    CHECK_OK(multicast_broadcaster_unregister(b, numbered(NAME, i), observing(&o)));
    if (i % 2 == 0) {
      CHECK_EQ(multicast_broadcaster_unregister_all(b, numbered(NAME, i)), 2);
    }
  }
  CHECK_OK(multicast_broadcaster_destroy(b));
  fail_after = -1;
  CHECK_EQ(o.releases, 3 * NAMES);
}

TEST(broadcaster_register_out_of_memory_leaks_nothing) {
  use_test_allocator();
  multicast_broadcaster b = create();
  for (int after = 0; after < 12; ++after) {
    int64_t before = 0;
    for (int i = 0; i < 500; ++i) {
      observer o = {0, 0};
      multicast_status status;
      fail_after = after;
      status = multicast_broadcaster_register(b, numbered(NAME, after), observing(&o),
                                              &ADD_OPTIONS(.release = release_observer), NULL);
      fail_after = -1;
      if (status == MULTICAST_OK) {
        CHECK_OK(multicast_broadcaster_unregister(b, numbered(NAME, after), observing(&o)));
      } else {
        CHECK_ERROR(status, OUT_OF_MEMORY);
      }
      CHECK_EQ(o.releases, 1);
      if (i == 100) before = allocated_bytes;
    }
    CHECK_EQ(allocated_bytes, before);
  }
}

TEST(broadcaster_of_a_new_name_out_of_memory_leaks_nothing) {
  enum { ATTEMPTS = 20000, LAST = 15000 };
  int64_t before = 0;
  int failures = 0;
  use_test_allocator();
  multicast_broadcaster b = create();
  fail_only_once = false;
  fail_after = 0;
  for (int i = 0; i < ATTEMPTS; ++i) { /* the first attempts may use memory that is kept */
    if (multicast_broadcaster_multicast(b, numbered(NAME, i)).id == 0) ++failures;
    if (i == LAST) {
      before = allocated_bytes;
      failures = 0;
    }
  }
  fail_after = -1;
  CHECK_EQ(allocated_bytes, before);
  CHECK_EQ(failures, ATTEMPTS - LAST - 1);
  CHECK(find(b, NAME).id != 0);
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

TEST(broadcaster_create_takes_memory_from_the_allocator) {
  multicast_allocator allocator = multicast_allocator_default();
  create();
  allocator.allocate = (void *(*)(void *, size_t, size_t))(uintptr_t)1;
  allocator.deallocate = (void (*)(void *, void *, size_t, size_t))(uintptr_t)1;
  CHECK_ERROR(multicast_set_allocator(&allocator), STATE);
}
