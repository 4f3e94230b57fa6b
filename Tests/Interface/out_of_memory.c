/* Each allocation fails in turn: a function that fails changes nothing, and nothing leaks. */

#include "harness.h"

/* Runs an operation with the first allocation failing, then the second, until none is left: once
 * with that allocation only, once also with all that follow. */
typedef struct attempt {
  multicast m;
  int64_t result;
} attempt;

static void fail_each_allocation(void (*prepare)(attempt *), void (*operate)(attempt *)) {
  use_test_allocator();
  for (int mode = 0; mode < 2; ++mode) {
    fail_only_once = mode == 0;
    for (int which = 0;; ++which) {
      attempt a = {{0}, 0};
      CHECK(which < 10000);
      prepare(&a);
      has_failed = false;
      fail_after = which;
      operate(&a);
      fail_after = -1;
      if (a.result < 0) CHECK_ERROR(a.result, OUT_OF_MEMORY);
      if (multicast_is_valid(a.m)) multicast_destroy(a.m);
      if (!has_failed) {
        CHECK(a.result >= 0);
        break;
      }
    }
  }
}

static void prepare_nothing(attempt *a) { (void)a; }
static void prepare_empty(attempt *a) {
  a->m = multicast_create();
  CHECK(a->m.id != 0);
}

static void try_create(attempt *a) {
  a->m = multicast_create();
  a->result = a->m.id != 0 ? 0 : MULTICAST_ERROR_OUT_OF_MEMORY;
}

TEST(out_of_memory_in_create_gives_the_null_handle) {
  fail_each_allocation(prepare_nothing, try_create);
}

static int add_releases;
static void try_add(attempt *a) {
  multicast_add_options options = ADD_OPTIONS(.release = count_release);
  add_releases = 0;
  for (int i = 0; i < 40 && a->result >= 0; ++i) {
    multicast_token token = {1};
    a->result = multicast_add(a->m, counter(&add_releases), &options, &token);
    CHECK((a->result == MULTICAST_OK) == (token.id != 0));
    CHECK_EQ(add_releases, a->result == MULTICAST_OK ? 0 : 1);
    CHECK_EQ(multicast_count(a->m), a->result == MULTICAST_OK ? i + 1 : i);
  }
}

TEST(out_of_memory_in_add_changes_nothing_and_releases) {
  fail_each_allocation(prepare_empty, try_add);
}

TEST_OF_MEMORY(out_of_memory_in_add_again_and_again_leaks_nothing) {
  add(m, counter(&calls)); /* the next add needs a larger list */
  int64_t before = allocated_bytes;
  for (int i = 0; i < 5000; ++i) {
    fail_after = 0;
    CHECK_ERROR(multicast_add(m, counter(&calls), NULL, NULL), OUT_OF_MEMORY);
  }
  fail_after = -1;
  CHECK_EQ(allocated_bytes, before);
  CHECK_EQ(multicast_count(m), 1);
}

TEST(out_of_memory_in_add_reclaims_what_it_had_taken) {
  /* Multicasts that are this far apart share the slabs of registrations. */
  multicast m[129];
  int releases = 0;
  multicast_add_options options = ADD_OPTIONS(.release = count_release);
  use_test_allocator();
  for (int i = 0; i < 129; ++i) m[i] = multicast_create();
  for (int i = 32; i < 129; i += 32) {
    add(m[i], counter(&calls));
    add(m[i], counter(&calls)); /* has room for one more */
  }
  add(m[0], counter(&calls)); /* has no room */
  for (int i = 0; i < 200; ++i) {
    fail_after = 0; /* the allocation of the larger list fails */
    CHECK_ERROR(multicast_add(m[0], counter(&calls), NULL, NULL), OUT_OF_MEMORY);
  }
  for (int i = 32; i < 129; i += 32) {
    fail_after = 0; /* needs no memory */
    CHECK_OK(multicast_add(m[i], counter(&calls), NULL, NULL));
  }
  fail_after = -1;
  int64_t before = allocated_bytes;
  for (int i = 0; i < 200; ++i) {
    multicast_token token = {1};
    fail_after = 0;
    CHECK_ERROR(multicast_add(m[0], counter(&releases), &options, &token), OUT_OF_MEMORY);
    CHECK_EQ(token.id, 0);
  }
  fail_after = -1;
  CHECK_EQ(releases, 200);
  CHECK_EQ(allocated_bytes, before);
  options.events = 1; /* an option that needs memory of its own */
  for (int i = 0; i < 200; ++i) {
    fail_after = 1; /* the registration details are allocated, the list is not */
    CHECK_ERROR(multicast_add(m[0], counter(&releases), &options, NULL), OUT_OF_MEMORY);
  }
  fail_after = -1;
  CHECK_EQ(releases, 400);
  CHECK_EQ(allocated_bytes, before);
  multicast_lifetime ended = multicast_lifetime_create();
  CHECK_OK(multicast_lifetime_end(ended));
  options.lifetime = ended;
  before = allocated_bytes;
  for (int i = 0; i < 200; ++i) {
    CHECK_ERROR(multicast_add(m[0], counter(&releases), &options, NULL), INVALID_HANDLE);
  }
  CHECK_EQ(allocated_bytes, before);
}

static void try_add_by_priority(attempt *a) {
  multicast_add_options options = multicast_add_options_default();
  for (int i = 0; i < 20 && a->result >= 0; ++i) {
    options.priority = i;
    a->result = multicast_add(a->m, counter(&calls), &options, NULL);
    CHECK_EQ(multicast_count(a->m), a->result == MULTICAST_OK ? i + 1 : i);
  }
}

TEST(out_of_memory_in_add_by_priority_changes_nothing) {
  fail_each_allocation(prepare_empty, try_add_by_priority);
}

static void try_add_unique(attempt *a) {
  for (int i = 0; i < 20 && a->result >= 0; ++i) {
    a->result = multicast_add(a->m, counter(&calls), &ADD_OPTIONS(.flags = MULTICAST_UNIQUE), NULL);
    if (i > 0 || a->result == MULTICAST_OK) CHECK_EQ(multicast_count(a->m), 1);
  }
}

TEST(out_of_memory_in_add_unique_keeps_the_old_one) {
  fail_each_allocation(prepare_empty, try_add_unique);
}

static int many_releases;
static void try_add_many(attempt *a) {
  multicast_delegate d[50];
  multicast_token tokens[50];
  many_releases = 0;
  for (int i = 0; i < 50; ++i) d[i] = counter(&many_releases);
  a->result = multicast_add_many(a->m, d, 50, &ADD_OPTIONS(.release = count_release), tokens);
  CHECK_EQ(multicast_count(a->m), a->result == MULTICAST_OK ? 50 : 0);
  CHECK_EQ(many_releases, a->result == MULTICAST_OK ? 0 : 50);
  for (int i = 0; i < 50; ++i) CHECK((a->result == MULTICAST_OK) == (tokens[i].id != 0));
}

TEST(out_of_memory_in_add_many_adds_none_and_releases_all) {
  fail_each_allocation(prepare_empty, try_add_many);
}

static void prepare_hundred(attempt *a) {
  prepare_empty(a);
  for (int i = 0; i < 100; ++i) add(a->m, counter(&calls));
}

static void try_removals(attempt *a) {
  for (int i = 0; i < 95; ++i) CHECK_OK(multicast_remove_at(a->m, 0));
  CHECK_EQ(multicast_count(a->m), 5);
  CHECK_EQ(multicast_remove_all(a->m), 5);
  CHECK_OK(multicast_destroy(a->m));
}

TEST(out_of_memory_never_keeps_a_removal_from_working) {
  fail_each_allocation(prepare_hundred, try_removals);
}

THREAD(try_first_invoke, attempt *a) {
  a->result = multicast_invoke(a->m, 0, NULL, 0);
}

TEST(out_of_memory_in_the_first_invoke_of_a_thread) {
  attempt a = {{0}, 0};
  use_test_allocator();
  prepare_hundred(&a);
  fail_after = 0;
  on_another_thread(try_first_invoke, &a);
  CHECK_ERROR(a.result, OUT_OF_MEMORY);
  on_another_thread(try_first_invoke, &a);
  CHECK_EQ(a.result, 100);
}

TEST(nothing_is_leaked_by_a_thousand_rounds_of_everything) {
  int64_t before = 0;
  use_test_allocator();
  for (int round = 0; round < 1000; ++round) {
    int releases = 0, count = 1 + round % 70;
    multicast_add_options options = ADD_OPTIONS(.release = count_release);
    multicast m = multicast_create();
    for (int i = 0; i < count; ++i) {
      options.priority = i % 3;
      add_with(m, counter(&releases), &options);
    }
    for (int i = 0; i < count / 2; ++i) CHECK_OK(multicast_remove_at(m, (size_t)(i % 2)));
    CHECK_OK(multicast_destroy(m));
    CHECK_EQ(releases, count);
    if (round == 200) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}

TEST_OF_MEMORY(out_of_memory_in_lifetime_create_and_in_adding_under_one) {
  multicast_lifetime l = {0};
  int which, releases = 0, failures = 0;
  for (which = 0; l.id == 0; ++which) {
    fail_after = which;
    l = multicast_lifetime_create();
    fail_after = -1;
  }
  CHECK(which == 2);
  for (which = 0;; ++which) {
    multicast_add_options options = ADD_OPTIONS(.lifetime = l, .release = count_release);
    has_failed = false;
    fail_after = which;
    multicast_status status = multicast_add(m, counter(&releases), &options, NULL);
    fail_after = -1;
    if (!has_failed) {
      CHECK_OK(status);
      break;
    }
    CHECK_ERROR(status, OUT_OF_MEMORY);
    CHECK_EQ(releases, ++failures);
    CHECK_EQ(multicast_lifetime_count(l), 0);
  }
  CHECK_EQ(multicast_lifetime_count(l), 1);
  CHECK_OK(multicast_lifetime_end(l));
  CHECK_EQ(releases, failures + 1);
}
