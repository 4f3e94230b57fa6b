/* Lifetimes end while other threads invoke multicasts and add and remove delegates. Millions of
 * lifetimes leak nothing. */

#include "removals.h"

#include <sched.h>

static bool is_over;
static multicast busy[16];

THREAD(invoke_busy, void *unused) {
  while (!LOAD(is_over)) {
    for (int i = 0; i < 16; ++i) CHECK(multicast_invoke(busy[i], 0, NULL, 0) >= 0);
  }
}

THREAD(add_and_remove_busy, void *unused) {
  for (int i = 0; !LOAD(is_over); ++i) {
    guarded *g = malloc(sizeof *g);
    CHECK(g != NULL);
    multicast_delegate d = begin_guarded(g);
    add(busy[i % 16], d);
    CHECK_OK(multicast_remove(busy[i % 16], d));
    end_guarded(g);
    free(g);
  }
}

THREAD(remove_some, void *unused) {
  for (int i = 0; !LOAD(is_over); ++i) multicast_remove_at(busy[i % 16], 1);
}

TEST(lifetime_end_while_threads_invoke_add_and_remove) {
  enum { ROUNDS = 150, EACH = 64 };
  pthread_t threads[4];
  for (int i = 0; i < 16; ++i) busy[i] = multicast_create();
  threads[0] = start_thread(invoke_busy, NULL);
  threads[1] = start_thread(invoke_busy, NULL);
  threads[2] = start_thread(invoke_busy, NULL);
  threads[3] = start_thread(add_and_remove_busy, NULL);
  for (int round = 0; round < ROUNDS; ++round) {
    guarded *members = malloc(EACH * sizeof *members);
    multicast_lifetime l = multicast_lifetime_create();
    multicast_add_options options = ADD_OPTIONS(.lifetime = l);
    CHECK(members != NULL);
    for (int i = 0; i < EACH; ++i) {
      options.priority = i % 3;
      add_with(busy[i % 16], begin_guarded(&members[i]), &options);
    }
    CHECK_EQ(multicast_lifetime_count(l), EACH);
    CHECK_OK(multicast_lifetime_end(l));
    for (int i = 0; i < EACH; ++i) end_guarded(&members[i]);
    free(members);
  }
  STORE(is_over, true);
  for (int i = 0; i < 4; ++i) join_thread(threads[i]);
}

TEST(lifetime_end_while_others_remove_the_same_registrations) {
  enum { ROUNDS = 200, EACH = 64 };
  static int releases[ROUNDS][EACH];
  for (int i = 0; i < 16; ++i) {
    busy[i] = multicast_create();
    add(busy[i], counter(&calls));
  }
  pthread_t remover = start_thread(remove_some, NULL);
  pthread_t invoking = start_thread(invoke_busy, NULL);
  for (int round = 0; round < ROUNDS; ++round) {
    multicast_lifetime l = multicast_lifetime_create();
    multicast_delegate d;
    multicast_add_options options = ADD_OPTIONS(.lifetime = l, .release = count_release);
    d.function = count_call;
    for (int i = 0; i < EACH; ++i) {
      d.context = &releases[round][i];
      options.events = 2; /* the delegates are never called, so the counter counts only releases */
      add_with(busy[i % 16], d, &options);
    }
    CHECK_OK(multicast_lifetime_end(l));
    for (int i = 0; i < 16; ++i) CHECK(multicast_count(busy[i]) <= 1);
  }
  STORE(is_over, true);
  join_thread(remover);
  join_thread(invoking);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < EACH; ++i) CHECK_EQ(LOAD(releases[round][i]), 1);
  }
}

TEST_OF_MEMORY(lifetimes_by_the_million_take_no_more_memory) {
  enum { ROUNDS = 1000000 };
  int64_t before = 0;
  for (int i = 0; i < ROUNDS; ++i) {
    multicast_lifetime l = multicast_lifetime_create();
    CHECK_OK(multicast_add(m, counter(&calls), &ADD_OPTIONS(.lifetime = l), NULL));
    CHECK_OK(multicast_lifetime_end(l));
    if (i == 1000) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
  CHECK_EQ(multicast_count(m), 0);
}

enum { ROUNDS = 3000 };
