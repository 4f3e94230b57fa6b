/* multicast_listener_flag() and multicast_has_listeners() report whether a multicast has any
 * listeners. */

#include <sched.h>

#include "harness.h"

static bool is_wanted(multicast m) { return multicast_has_listeners(multicast_listener_flag(m)); }

TEST_OF_MULTICAST(listener_flag_is_set_while_there_are_delegates) {
  int calls = 0;
  const uint32_t *flag = multicast_listener_flag(m);
  CHECK(!multicast_has_listeners(flag));
  multicast_token a = add(m, counter(&calls)), b = add(m, counter(&calls));
  CHECK(multicast_has_listeners(flag));
  CHECK_OK(multicast_token_remove(b));
  CHECK(multicast_has_listeners(flag));
  CHECK_OK(multicast_token_remove(a));
  CHECK(!multicast_has_listeners(flag));
  add(m, counter(&calls));
  CHECK(multicast_has_listeners(flag));
  CHECK_EQ(multicast_remove_all(m), 1);
  CHECK(!multicast_has_listeners(flag));
  CHECK(multicast_listener_flag(m) == flag);
}

/* A removal inside an invocation does not take the fast path, so the dead entry stays in the list,
 * behind the live entries. */
static void remove_inside(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event, (void)payload, (void)size;
  CHECK_OK(multicast_token_remove(*(multicast_token *)context));
}

TEST_OF_MULTICAST(listener_flag_ends_before_dead_delegates_are_dropped) {
  int calls = 0;
  multicast_token last;
  multicast_delegate remover = {remove_inside, &last};
  multicast_token first = add(m, remover);
  last = add(m, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(is_wanted(m));
  CHECK_OK(multicast_token_remove(first));
  CHECK(!is_wanted(m));
}

TEST_OF_MULTICAST(listener_flag_counts_paused_delegates) {
  int calls = 0;
  CHECK_OK(multicast_token_pause(add(m, counter(&calls))));
  CHECK(is_wanted(m));
}

TEST_OF_MULTICAST(listener_flag_ends_with_a_delegate_called_once) {
  int calls = 0;
  multicast_add_options options = multicast_add_options_default();
  options.flags = MULTICAST_ONCE;
  CHECK_OK(multicast_add(m, counter(&calls), &options, NULL));
  CHECK(is_wanted(m));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(!is_wanted(m));
}

TEST_OF_MULTICAST(listener_flag_ends_with_a_lifetime_and_a_queue) {
  int calls = 0;
  multicast_add_options options = multicast_add_options_default();
  options.lifetime = multicast_lifetime_create();
  CHECK_OK(multicast_add(m, counter(&calls), &options, NULL));
  CHECK(is_wanted(m));
  CHECK_OK(multicast_lifetime_end(options.lifetime));
  CHECK(!is_wanted(m));
  options = multicast_add_options_default();
  options.queue = multicast_queue_create(NULL);
  CHECK_OK(multicast_add(m, counter(&calls), &options, NULL));
  CHECK(is_wanted(m));
  CHECK_OK(multicast_queue_destroy(options.queue));
  CHECK(!is_wanted(m));
}

TEST_OF_MULTICAST(listener_flag_ends_when_a_dead_context_is_found) {
  int context = 0;
  multicast_add_options options = multicast_add_options_default();
  options.lock = lock_dead;
  options.unlock = unlock_nothing;
  CHECK_OK(multicast_add(m, counter(&context), &options, NULL));
  CHECK(is_wanted(m));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK(!is_wanted(m));
}

TEST_OF_MULTICAST(listener_flag_stays_when_a_unique_one_is_replaced) {
  int calls = 0;
  multicast_add_options options = multicast_add_options_default();
  options.flags = MULTICAST_UNIQUE;
  for (int i = 0; i < 3; ++i) {
    CHECK_OK(multicast_add(m, counter(&calls), &options, NULL));
    CHECK(is_wanted(m));
  }
  CHECK_OK(multicast_remove(m, counter(&calls)));
  CHECK(!is_wanted(m));
}

TEST_OF_MULTICAST(listener_flag_survives_growth_and_priorities) {
  enum { MANY = 3000 };
  static int each[MANY];
  static multicast_token tokens[MANY];
  const uint32_t *flag = multicast_listener_flag(m);
  multicast_add_options options = multicast_add_options_default();
  for (int i = 0; i < MANY; ++i) {
    options.priority = i % 3;
    CHECK_OK(multicast_add(m, counter(&each[i]), &options, &tokens[i]));
  }
  for (int i = 0; i < MANY; ++i) {
    CHECK(multicast_has_listeners(flag));
    CHECK_OK(multicast_token_remove(tokens[i]));
  }
  CHECK(!multicast_has_listeners(flag));
}

static multicast make(multicast_reentry reentry, uint32_t replay) {
  multicast_create_options options = multicast_create_options_default();
  options.reentry = reentry;
  options.replay = replay;
  return multicast_create_with(&options);
}

TEST(listener_flag_is_set_if_invocations_are_kept) {
  multicast kept[] = {make(MULTICAST_REENTRY_RECURSE, 1), make(MULTICAST_REENTRY_DEFER, 0),
                      make(MULTICAST_REENTRY_LATEST, 0)};
  multicast refusing = make(MULTICAST_REENTRY_REFUSE, 0);
  int calls = 0;
  for (int i = 0; i < 3; ++i) {
    CHECK(is_wanted(kept[i]));
    add(kept[i], counter(&calls));
    CHECK(is_wanted(kept[i]));
    CHECK_EQ(multicast_remove_all(kept[i]), 1);
    CHECK(is_wanted(kept[i]));
  }
  CHECK(!is_wanted(refusing));
  add(refusing, counter(&calls));
  CHECK(is_wanted(refusing));
  CHECK_EQ(multicast_remove_all(refusing), 1);
  CHECK(!is_wanted(refusing));
}

TEST(listener_flag_of_no_multicast_is_none) {
  const uint64_t ids[] = {0, 1, UINT64_MAX, multicast_lifetime_create().id};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; ++i) CHECK(!is_wanted((multicast){ids[i]}));
  multicast m = multicast_create();
  int calls = 0;
  add(m, counter(&calls));
  CHECK_OK(multicast_destroy(m));
  CHECK(!is_wanted(m));
}

/* A program may read the flag after the multicast has been destroyed, even if its memory has been
 * returned to the system. */
TEST(listener_flag_stays_readable_after_its_multicast) {
  enum { MANY = 4096 };
  static multicast all[MANY];
  static const uint32_t *interests[MANY];
  int calls = 0;
  for (int i = 0; i < MANY; ++i) {
    all[i] = multicast_create();
    interests[i] = multicast_listener_flag(all[i]);
    add(all[i], counter(&calls));
  }
  for (int i = 0; i < MANY; ++i) CHECK_OK(multicast_destroy(all[i]));
  for (int i = 0; i < MANY; ++i) (void)!multicast_has_listeners(interests[i]);
  CHECK(multicast_trim() > 0 || is_posix());
  for (int i = 0; i < MANY; ++i) (void)!multicast_has_listeners(interests[i]);
}

/* Each new multicast reuses a slot, from the thread's cache or from the pool. The flag of the
 * previous multicast in the slot must not remain set. */
TEST(listener_flag_of_a_new_multicast_is_none) {
  enum { MANY = 100 };
  static multicast all[MANY];
  int calls = 0;
  CHECK_EQ(multicast_invoke(multicast_create(), 0, NULL, 0), 0);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < MANY; ++i) {
      all[i] = multicast_create();
      CHECK(!is_wanted(all[i]));
      add(all[i], counter(&calls));
    }
    for (int i = 0; i < MANY; ++i) CHECK_OK(multicast_destroy(all[i]));
  }
}

typedef struct handover {
  multicast m;
  multicast_token token;
  int turn;
} handover;

static void *add_and_remove(void *argument) {
  handover *h = argument;
  int calls = 0;
  for (int i = 0; i < 2000; ++i) {
    h->token = add(h->m, counter(&calls));
    STORE(h->turn, 1);
    while (LOAD(h->turn) == 1) sched_yield();
    CHECK_OK(multicast_token_remove(h->token));
    STORE(h->turn, 3);
    while (LOAD(h->turn) == 3) sched_yield();
  }
  STORE(h->turn, 4);
  return NULL;
}

/* Once a thread has learned from another thread that an add or a removal is complete, it sees that
 * change in the flag. */
TEST_OF_MULTICAST(listener_flag_is_seen_by_threads_that_know_of_an_add) {
  handover h = {m, {0}, 0};
  const uint32_t *flag = multicast_listener_flag(m);
  pthread_t thread = start_thread(add_and_remove, &h);
  for (int turn; (turn = LOAD(h.turn)) != 4;) {
    if (turn == 1) CHECK(multicast_has_listeners(flag));
    if (turn == 3) CHECK(!multicast_has_listeners(flag));
    if (turn == 1 || turn == 3) STORE(h.turn, turn - 1);
    sched_yield();
  }
  join_thread(thread);
}
