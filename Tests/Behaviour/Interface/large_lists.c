/* The library builds an index when a large multicast is searched repeatedly. With the index,
 * searches find the same delegates as without it. */

#include "numbers.h"

enum { MANY = 3000, MOST = 2 * MANY, FEW = 700, OFTEN = 300 };

static int contexts[MANY];

static multicast_delegate delegate(unsigned which) {
  return (multicast_delegate){call_nothing, &contexts[which]};
}

/* A multicast, together with the delegates that it must contain, in order. */
typedef struct model {
  multicast m;
  unsigned count;
  struct {
    unsigned which;
    int32_t priority;
  } delegates[MOST];
} model;

static void model_add(model *all, unsigned which, int32_t priority) {
  unsigned place = all->count;
  CHECK_OK(multicast_add(all->m, delegate(which), &ADD_OPTIONS(.priority = priority), NULL));
  while (place > 0 && all->delegates[place - 1].priority < priority) {
    all->delegates[place] = all->delegates[place - 1];
    --place;
  }
  all->delegates[place].which = which;
  all->delegates[place].priority = priority;
  ++all->count;
  CHECK(all->count < MOST);
}

/* Returns the position of the first delegate whose `which` has this value, or `count` if there is
 * none. */
static unsigned model_find(const model *all, unsigned which) {
  unsigned place = 0;
  while (place < all->count && all->delegates[place].which != which) ++place;
  return place;
}

static void model_take_out(model *all, unsigned place) {
  --all->count;
  memmove(&all->delegates[place], &all->delegates[place + 1],
          (all->count - place) * sizeof all->delegates[0]);
}

static void model_remove(model *all, unsigned which) {
  unsigned place = model_find(all, which);
  CHECK_EQ(multicast_contains(all->m, delegate(which)), place < all->count);
  CHECK_STATUS(multicast_remove(all->m, delegate(which)),
               place < all->count ? MULTICAST_OK : MULTICAST_ERROR_NOT_FOUND);
  if (place < all->count) model_take_out(all, place);
}

static void model_add_unique(model *all, unsigned which) {
  unsigned place;
  CHECK_OK(multicast_add(all->m, delegate(which), &ADD_OPTIONS(.flags = MULTICAST_UNIQUE), NULL));
  while ((place = model_find(all, which)) < all->count) model_take_out(all, place);
  place = all->count++;
  while (place > 0 && all->delegates[place - 1].priority < 0) {
    all->delegates[place] = all->delegates[place - 1];
    --place;
  }
  all->delegates[place].which = which;
  all->delegates[place].priority = 0;
}

static void expect_model(const model *all) {
  static multicast_delegate found[MOST];
  unsigned i;
  CHECK_EQ(multicast_list(all->m, found, MOST), all->count);
  for (i = 0; i < all->count; ++i) CHECK(found[i].context == &contexts[all->delegates[i].which]);
}

enum { KEPT = 10 };

/* Searches for the last delegates, which the tests never remove. Without an index, these searches
 * take the longest. */
static void search_often(multicast m) {
  for (unsigned i = 0; i < OFTEN; ++i) CHECK(multicast_contains(m, delegate(MANY - 1 - i % KEPT)));
}

static unsigned not_kept(unsigned *seed) { return next(seed) % (MANY - KEPT); }

static void fill(model *all) {
  all->m = multicast_create();
  all->count = 0;
  for (unsigned i = 0; i < MANY; ++i) model_add(all, i, 0);
  search_often(all->m);
}

static model all;

TEST(large_multicast_finds_each_delegate_once) {
  fill(&all);
  for (unsigned i = 0; i < MANY; ++i) CHECK_OK(multicast_remove(all.m, delegate(i * 7 % MANY)));
  for (unsigned i = 0; i < MANY; ++i)
    CHECK_ERROR(multicast_remove(all.m, delegate(i)), NOT_FOUND);
  CHECK_EQ(multicast_count(all.m), 0);
}

TEST(large_multicast_of_equal_delegates_only_is_searched) {
  all.m = multicast_create();
  all.count = 0;
  for (unsigned i = 0; i < MANY; ++i) model_add(&all, i < MANY - 10 ? 1 : i, 0);
  search_often(all.m);
  for (unsigned i = 0; i < MANY - 10; ++i) model_remove(&all, 1);
  CHECK(!multicast_contains(all.m, delegate(1)));
  expect_model(&all);
}

/* Each round removes and adds enough delegates for the library to replace the list, and for the
 * index to become too small. */
TEST(large_multicast_agrees_with_a_list_while_it_changes) {
  unsigned seed = 1;
  fill(&all);
  for (unsigned round = 0; round < 12; ++round) {
    for (unsigned i = 0; i < 2 * FEW; ++i) {
      unsigned which = next(&seed) % MANY;
      switch (next(&seed) % 4) {
        case 0: model_add(&all, which, 0); break;
        case 1: model_add_unique(&all, which); break;
        default: model_remove(&all, which);
      }
    }
    expect_model(&all);
    if (round % 4 == 3) {
      for (unsigned i = 0; i < MANY; ++i) {
        if (all.count < MANY) model_add(&all, i, round > 6 ? -1 : 0);
      }
    }
    for (unsigned i = 0; i < OFTEN; ++i) CHECK(!multicast_contains(all.m, counter(NULL)));
  }
}

TEST(large_multicast_agrees_with_a_list_beside_priorities) {
  unsigned seed = 2, j;
  fill(&all);
  for (unsigned i = 0; i < 20; ++i) {
    for (j = 0; j < 5; ++j) model_add(&all, not_kept(&seed), (int32_t)(next(&seed) % 3) - 1);
    for (j = 0; j < 20; ++j) model_remove(&all, not_kept(&seed));
    if (i % 5 == 0) search_often(all.m);
    for (j = 0; j < 20; ++j) model_remove(&all, not_kept(&seed));
    expect_model(&all);
  }
}

/* The index keeps entries of removed delegates until it is full. */
TEST(large_multicast_is_searched_while_one_comes_and_goes) {
  unsigned seed = 3;
  fill(&all);
  for (unsigned i = 0; i < 8 * MANY; ++i) {
    model_add(&all, MANY - 1, i % 100 == 0);
    CHECK(multicast_contains(all.m, delegate(MANY - 1)));
    model_remove(&all, MANY - 1);
  }
  expect_model(&all);
  for (unsigned i = 0; i < FEW; ++i) model_remove(&all, not_kept(&seed));
  expect_model(&all);
}

TEST(large_multicast_that_is_destroyed_leaves_nothing_behind) {
  use_test_allocator();
  fill(&all);
  CHECK_OK(multicast_destroy(all.m));
  int64_t bytes = allocated_bytes;
  for (int64_t round = 0; round < 3; ++round) {
    fill(&all);
    CHECK(allocated_bytes > bytes);
    CHECK_OK(multicast_destroy(all.m));
    CHECK_EQ(allocated_bytes, bytes);
  }
}

TEST(large_multicast_needs_no_memory_to_find_a_delegate) {
  use_test_allocator();
  fill(&all);
  for (unsigned i = 0; i < 200; ++i) model_add(&all, MANY - 1, 1); 
  fail_after = 0;
  for (unsigned i = 0; i < OFTEN; ++i) model_remove(&all, MANY - 2 - i);
  fail_after = -1;
  expect_model(&all);
}
