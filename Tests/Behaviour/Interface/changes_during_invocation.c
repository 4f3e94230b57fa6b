/* While an invocation runs, delegates are added and removed, and the multicast is invoked again or
 * destroyed. */

#include "harness.h"

/* The context of a delegate that changes its multicast. */
typedef struct actor {
  multicast target;
  multicast_delegate other;
  multicast_token token;
  int calls;
  int64_t result;
} actor;

static multicast_delegate acting(multicast_function function, actor *a) {
  return (multicast_delegate){function, a};
}

#define CALLBACK(NAME)                                                         \
  static void NAME(void *context, uint32_t event, const void *payload, size_t size)

CALLBACK(add_other) {
  actor *a = context;
  ++a->calls;
  a->result = multicast_add(a->target, a->other, NULL, NULL);
}

TEST(added_during_invoke_is_called_by_later_ones_only) {
  actor a = {{0}, {NULL, NULL}, {0}, 0, 0};
  a.target = multicast_create();
  a.other = counter(&calls);
  add(a.target, acting(add_other, &a));
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 1);
  CHECK_OK(a.result);
  CHECK_EQ(calls, 0);
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 2);
  CHECK_EQ(calls, 1);
}

TEST(added_during_invoke_many_times_grows_the_list_under_it) {
  actor a = {{0}, {NULL, NULL}, {0}, 0, 0};
  a.target = multicast_create();
  a.other = counter(&calls);
  for (int i = 0; i < 50; ++i) add(a.target, acting(add_other, &a));
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 50);
  CHECK_EQ(calls, 0);
  CHECK_EQ(multicast_count(a.target), 100);
}

TEST_OF_MULTICAST(added_by_another_thread_during_invoke_is_not_called_by_it) {
  blocker b = BLOCKER_INIT;
  add(m, blocking(&b));
  begin_blocked(&b, m);
  add(m, counter(&calls));
  CHECK_EQ(end_blocked(&b), 1);
  CHECK_EQ(LOAD(calls), 0);
}

CALLBACK(remove_other) {
  actor *a = context;
  ++a->calls;
  a->result = multicast_remove(a->target, a->other);
}

TEST(removed_during_invoke_is_not_called) {
  actor a = {{0}, {NULL, NULL}, {0}, 0, 0};
  a.target = multicast_create();
  a.other = counter(&calls);
  add(a.target, acting(remove_other, &a));
  add(a.target, a.other);
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 1);
  CHECK_OK(a.result);
  CHECK_EQ(calls, 0);
}

TEST_OF_MULTICAST(removed_by_another_thread_during_invoke_is_not_called) {
  blocker b = BLOCKER_INIT;
  add(m, blocking(&b));
  add(m, counter(&calls));
  begin_blocked(&b, m);
  CHECK_OK(multicast_remove(m, counter(&calls)));
  CHECK_EQ(end_blocked(&b), 1);
  CHECK_EQ(LOAD(calls), 0);
}

CALLBACK(grow_then_remove_other) {
  actor *a = context;
  static int ignored;
  ++a->calls;
  for (int i = 0; i < 100; ++i) CHECK_OK(multicast_add(a->target, counter(&ignored), NULL, NULL));
  a->result = multicast_token_remove(a->token);
}

#define TEST_OF_ACTOR(NAME) TEST_OF(NAME, (actor a), ((actor){.target = multicast_create()}))

TEST_OF_ACTOR(removed_after_growth_during_invoke_is_not_called) {
  add(a.target, acting(grow_then_remove_other, &a));
  a.token = add(a.target, counter(&calls));
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 1);
  CHECK_OK(a.result);
  CHECK_EQ(calls, 0);
}

CALLBACK(reorder_then_remove_other) {
  actor *a = context;
  static int ignored;
  multicast_add_options options = multicast_add_options_default();
  ++a->calls;
  options.priority = 7; /* the delegate is inserted before the others, which move */
  CHECK_OK(multicast_add(a->target, counter(&ignored), &options, NULL));
  a->result = multicast_token_remove(a->token);
}

TEST_OF_ACTOR(removed_after_insertion_during_invoke_is_not_called) {
  add(a.target, acting(reorder_then_remove_other, &a));
  a.token = add(a.target, counter(&calls));
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 1);
  CHECK_OK(a.result);
  CHECK_EQ(calls, 0);
}

/* Two nested invocations call this delegate, and each reads a different list. When the inner
 * invocation ends, its list is freed, while the outer invocation is still reading an older list. */
CALLBACK(reorder_inside_then_remove_other) {
  actor *a = context;
  static int ignored;
  multicast_add_options options = ADD_OPTIONS(.priority = ++a->calls);
  CHECK_OK(multicast_add(a->target, counter(&ignored), &options, NULL));
  if (a->calls == 2) return;
  CHECK(multicast_invoke(a->target, 0, NULL, 0) > 0);
  a->result = multicast_token_remove(a->token);
}

TEST_OF_ACTOR(removed_after_a_list_in_between_was_freed_is_not_called) {
  add(a.target, acting(reorder_inside_then_remove_other, &a));
  add(a.target, counter(&calls));
  a.token = add(a.target, counter(&calls));
  add(a.target, counter(&calls));
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 3);
  CHECK_OK(a.result);
  CHECK_EQ(calls, 3 + 2);
}

/* Like reorder_inside_then_remove_other(), but pauses two delegates, one of which is not in any
 * older list. */
CALLBACK(reorder_inside_then_pause_other) {
  actor *a = context;
  static int ignored;
  multicast_token added;
  multicast_add_options options = ADD_OPTIONS(.priority = ++a->calls);
  CHECK_OK(multicast_add(a->target, counter(&ignored), &options, &added));
  if (a->calls == 2) return;
  CHECK(multicast_invoke(a->target, 0, NULL, 0) > 0);
  CHECK_OK(multicast_token_pause(added));
  a->result = multicast_token_pause(a->token);
}

TEST_OF_ACTOR(paused_after_a_list_in_between_was_freed_is_not_called) {
  add(a.target, acting(reorder_inside_then_pause_other, &a));
  a.token = add(a.target, counter(&calls));
  add(a.target, counter(&calls));
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 2);
  CHECK_OK(a.result);
  CHECK_EQ(calls, 2 + 1);
}

/* The number of threads, each of which reads a different list of one multicast. The library
 * examines lists in batches, and the threads read more lists than fit into one batch. */
enum { READERS = 152 };

typedef struct reader {
  gate entered, let_go;
  multicast target;
  pthread_t thread;
} reader;

CALLBACK(block_reader) {
  reader *r = (reader *)(uintptr_t)payload;
  gate_open(&r->entered);
  gate_wait(&r->let_go);
}

THREAD(read_a_list, reader *r) {
  multicast_invoke(r->target, 0, r, sizeof *r);
}

TEST_OF_MEMORY(removed_while_threads_read_many_lists_is_called_by_none) {
  static reader readers[READERS];
  static const multicast_delegate blocks = {block_reader, NULL};
  static int kept, removed[4];
  multicast_token tokens[4];
  multicast_add_options options = ADD_OPTIONS(.priority = 1);
  CHECK_OK(multicast_add(m, blocks, &options, NULL));
  for (int i = 0; i < 4; ++i) {
    tokens[i] = add(m, counter(&removed[i]));
    add(m, counter(&kept));
  }
  for (int i = 0; i < READERS; ++i) {
    static int ignored;
    const gate fresh = GATE_INIT;
    readers[i].entered = readers[i].let_go = fresh;
    readers[i].target = m;
    readers[i].thread = start_thread(read_a_list, &readers[i]);
    gate_wait(&readers[i].entered);
    ++options.priority;
    add_with(m, counter(&ignored), &options); /* this makes the next thread read a new list */
    CHECK_EQ(multicast_remove_context(m, &ignored), 1);
  }
  int64_t bytes = LOAD(allocated_bytes);
  /* In each step, a quarter of the threads return, and their lists are freed. Each step except the
   * first begins by removing one delegate, which the remaining invocations must no longer call. */
  for (int step = 0; step < 4; ++step) {
    if (step > 0) CHECK_OK(multicast_token_remove(tokens[step - 1]));
    for (int i = step; i < READERS; i += 4) {
      gate_open(&readers[i].let_go);
      join_thread(readers[i].thread);
    }
    CHECK_EQ(removed[step], (step + 1) * (READERS / 4));
  }
  for (int i = 0; i < 4; ++i) CHECK_EQ(removed[i], (i + 1) * (READERS / 4));
  CHECK_EQ(kept, 4 * READERS);
  CHECK(LOAD(allocated_bytes) < bytes);
  CHECK_OK(multicast_destroy(m));
}

CALLBACK(remove_self) {
  actor *a = context;
  ++a->calls;
  a->result = multicast_token_remove(multicast_token_current());
}

TEST_OF_ACTOR(removed_by_itself_finishes_its_call_and_is_not_called_again) {
  add(a.target, acting(remove_self, &a));
  add(a.target, counter(&calls));
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 2);
  CHECK_STATUS(a.result, MULTICAST_PENDING);
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 1);
  CHECK_EQ(a.calls, 1);
  CHECK_EQ(calls, 2);
}

TEST_OF_MULTICAST(removed_by_themselves_all_are_called_once) {
  enum { COUNT = 100 };
  static actor actors[COUNT];
  for (int i = 0; i < COUNT; ++i) add(m, acting(remove_self, &actors[i]));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), COUNT);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  for (int i = 0; i < COUNT; ++i) CHECK_EQ(actors[i].calls, 1);
}

CALLBACK(invoke_again) {
  actor *a = context;
  if (++a->calls < 10) a->result = multicast_invoke(a->target, 0, NULL, 0);
}

TEST_OF_ACTOR(nested_invocation_recurses) {
  add(a.target, acting(invoke_again, &a));
  add(a.target, counter(&calls));
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 2);
  CHECK_EQ(a.calls, 10);
  CHECK_EQ(calls, 10);
}

CALLBACK(invoke_for_ever) {
  actor *a = context;
  ++a->calls;
  int64_t result = multicast_invoke(a->target, 0, NULL, 0);
  if (result < 0) a->result = result;
}

TEST_OF_ACTOR(nested_too_deep_is_limit_at_256) {
  add(a.target, acting(invoke_for_ever, &a));
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 1);
  CHECK_ERROR(a.result, LIMIT);
  CHECK_EQ(a.calls, 256);
  /* The failed invocation has left nothing behind, so the same depth can be reached again. */
  a.calls = 0;
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 1);
  CHECK_EQ(a.calls, 256);
}

CALLBACK(destroy_target) {
  actor *a = context;
  ++a->calls;
  a->result = multicast_destroy(a->target);
}

TEST_OF_ACTOR(destroyed_by_a_callback_calls_no_more) {
  add(a.target, acting(destroy_target, &a));
  add(a.target, counter(&calls));
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 1);
  CHECK_STATUS(a.result, MULTICAST_PENDING);
  CHECK_EQ(calls, 0);
  CHECK(!multicast_is_valid(a.target));
  CHECK_ERROR(multicast_invoke(a.target, 0, NULL, 0), INVALID_HANDLE);
}

CALLBACK(destroy_and_create) {
  actor *a = context;
  static int ignored;
  ++a->calls;
  a->result = multicast_destroy(a->target);
  multicast reused = multicast_create(); /* most likely reuses the slot */
  for (int i = 0; i < 20; ++i) add(reused, counter(&ignored));
  a->other.context = &ignored;
  CHECK_EQ(multicast_invoke(reused, 0, NULL, 0), 20);
}

TEST_OF_ACTOR(destroyed_during_invoke_leaves_the_next_multicast_alone) {
  add(a.target, acting(destroy_and_create, &a));
  add(a.target, counter(&calls));
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 1);
  CHECK_EQ(calls, 0);
  CHECK_EQ(*(int *)a.other.context, 20);
}

CALLBACK(nest_then_destroy) {
  actor *a = context;
  if (++a->calls == 5) {
    a->result = multicast_destroy(a->target);
  } else {
    multicast_invoke(a->target, 0, NULL, 0);
  }
}

TEST_OF_ACTOR(destroyed_in_a_nested_invocation_ends_all_of_them) {
  int releases = 0;
  add(a.target, acting(nest_then_destroy, &a));
  add_with(a.target, counter(&releases), &ADD_OPTIONS(.release = count_release));
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 1);
  CHECK_EQ(a.calls, 5);
  CHECK_EQ(calls, 0);
  CHECK_EQ(releases, 1);
}

TEST(destroyed_during_invoke_leaks_nothing) {
  int64_t before = 0;
  use_test_allocator();
  for (int round = 0; round < 100; ++round) {
    int calls = 0;
    actor a = {.target = multicast_create()};
    add(a.target, acting(destroy_target, &a));
    for (int i = 0; i < 100; ++i) add(a.target, counter(&calls));
    CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 1);
    if (round == 5) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}

/* A delegate runs for a long time, like an event loop, while its multicast changes. The lists
 * replaced during that time do not pile up. */
static int64_t bytes_early, bytes_late;

static void churn(multicast m) {
  static int ignored;
  multicast_token tokens[40];
  for (int round = 0; round < 500; ++round) {
    for (int i = 0; i < 40; ++i) tokens[i] = add(m, counter(&ignored));
    for (int i = 0; i < 40; ++i) CHECK_OK(multicast_token_remove(tokens[i]));
    if (round == 20) bytes_early = LOAD(allocated_bytes);
  }
  bytes_late = LOAD(allocated_bytes);
}

CALLBACK(churn_inside) {
  churn(((actor *)context)->target);
}

TEST(changed_during_a_long_call_by_itself_takes_no_more_memory) {
  use_test_allocator();
  actor a = {.target = multicast_create()};
  add(a.target, acting(churn_inside, &a));
  CHECK_EQ(multicast_invoke(a.target, 0, NULL, 0), 1);
  CHECK(bytes_late <= bytes_early);
}

TEST_OF_MEMORY(changed_during_a_long_call_by_others_takes_no_more_memory) {
  blocker b = BLOCKER_INIT;
  add(m, blocking(&b));
  begin_blocked(&b, m);
  churn(m);
  CHECK(bytes_late <= bytes_early);
  CHECK_EQ(end_blocked(&b), 1);
}
