/* Tests the registration options `once`, `unique` and `events`. */

#include "harness.h"

TEST_OF_MULTICAST(once_is_called_once_and_is_gone_as_its_call_begins) {
  multicast_token token = add_with(m, counter(&calls), &ADD_OPTIONS(.flags = MULTICAST_ONCE));
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK_EQ(calls, 1);
  CHECK_EQ(multicast_count(m), 0);
  CHECK(!multicast_token_is_valid(token));
  CHECK_ERROR(multicast_token_remove(token), INVALID_HANDLE);
}

static void invoke_and_count(void *context, uint32_t event, const void *payload, size_t size) {
  multicast m = *(multicast *)context;
  ADD(calls, 1);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
}

TEST_OF_MULTICAST(once_is_not_called_by_a_nested_invocation) {
  add_with(m, DELEGATE(invoke_and_count, &m), &ADD_OPTIONS(.flags = MULTICAST_ONCE));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(calls, 1);
}

static multicast contested;
static gate start = GATE_INIT;

THREAD(invoke_at_start, void *unused) {
  gate_wait(&start);
  multicast_invoke(contested, 0, NULL, 0);
}

TEST(once_is_called_by_one_of_several_threads) {
  pthread_t threads[4];
  multicast_add_options options = ADD_OPTIONS(.flags = MULTICAST_ONCE);
  contested = multicast_create();
  for (int i = 0; i < 500; ++i) add_with(contested, counter(&calls), &options);
  for (int i = 0; i < 4; ++i) threads[i] = start_thread(invoke_at_start, NULL);
  gate_open(&start);
  for (int i = 0; i < 4; ++i) join_thread(threads[i]);
  CHECK_EQ(LOAD(calls), 500);
  CHECK_EQ(multicast_count(contested), 0);
}

TEST_OF_MULTICAST(unique_replaces_the_equal_one_and_goes_last) {
  char text[8] = "";
  letter a = {text, 'a'}, b = {text, 'b'};
  multicast_add_options options = ADD_OPTIONS(.flags = MULTICAST_UNIQUE);
  multicast_token first = add_with(m, writer(&a), &options);
  add_with(m, writer(&b), &options);
  multicast_token second = add_with(m, writer(&a), &options);
  CHECK_EQ(multicast_count(m), 2);
  CHECK(!multicast_token_is_valid(first));
  CHECK(multicast_token_is_valid(second));
  multicast_invoke(m, 0, NULL, 0);
  CHECK_TEXT(text, "ba");
}

TEST_OF_MULTICAST(unique_replaces_all_equal_ones) {
  add(m, counter(&calls));
  add(m, counter(&calls));
  add_with(m, counter(&calls), &ADD_OPTIONS(.flags = MULTICAST_UNIQUE));
  CHECK_EQ(multicast_count(m), 1);
}

TEST_OF_MULTICAST(unique_among_many_keeps_the_last_of_each) {
  char text[8] = "";
  letter a = {text, 'a'}, b = {text, 'b'};
  multicast_delegate d[3];
  multicast_token t[3];
  d[0] = d[2] = writer(&a);
  d[1] = writer(&b);
  CHECK_OK(multicast_add_many(m, d, 3, &ADD_OPTIONS(.flags = MULTICAST_UNIQUE), t));
  CHECK_EQ(multicast_count(m), 2);
  CHECK(!multicast_token_is_valid(t[0]));
  CHECK(multicast_token_is_valid(t[1]) && multicast_token_is_valid(t[2]));
  multicast_invoke(m, 0, NULL, 0);
  CHECK_TEXT(text, "ba");
}

TEST_OF_MULTICAST(unique_does_not_wait_for_the_call_of_what_it_replaces) {
  blocker b = BLOCKER_INIT;
  multicast_add_options options = ADD_OPTIONS(.release = release_blocker);
  options.flags = MULTICAST_UNIQUE;
  add_with(m, blocking(&b), &options);
  begin_blocked(&b, m);
  add_with(m, blocking(&b), &options);
  CHECK(!LOAD(b.has_left));
  CHECK_EQ(LOAD(b.releases), 0);
  end_blocked(&b);
  CHECK_EQ(LOAD(b.releases), 1);
  CHECK_EQ(multicast_count(m), 1);
}

TEST_OF_MEMORY(unique_again_and_again_takes_no_more_memory) {
  int64_t before = 0;
  for (int i = 0; i < 1000; ++i) {
    add_with(m, counter(&calls), &ADD_OPTIONS(.flags = MULTICAST_UNIQUE));
    if (i == 10) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}

TEST(events_of_one_bit_alone_select_that_event_alone_below_64) {
  multicast_queue q = queue_with(16, MULTICAST_OVERFLOW_REFUSE);
  for (uint32_t bit = 0; bit < 64; ++bit) {
    multicast m = multicast_create();
    int direct = 0, queued = 0;
    multicast_add_options options = ADD_OPTIONS(.events = UINT64_C(1) << bit);
    add_with(m, counter(&direct), &options);
    options.queue = q;
    add_with(m, counter(&queued), &options);
    for (uint32_t event = 0; event < 67; ++event) {
      int is_wanted = event == bit || event >= 64;
      CHECK_EQ(multicast_invoke(m, event, NULL, 0), 2 * is_wanted);
      CHECK_EQ(multicast_queue_run(q, 0), is_wanted);
    }
    CHECK_EQ(direct, 4);
    CHECK_EQ(queued, 4);
    CHECK_OK(multicast_destroy(m));
  }
  CHECK_OK(multicast_queue_destroy(q));
}

TEST_OF_MULTICAST(events_do_not_use_up_a_delegate_called_once) {
  add_with(m, counter(&calls), &ADD_OPTIONS(.events = 2, .flags = MULTICAST_ONCE));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(multicast_count(m), 0);
}

TEST_OF_MULTICAST(add_many_of_none_checks_the_handles_in_its_options) {
  multicast_add_options options = multicast_add_options_default();
  CHECK_OK(multicast_add_many(m, NULL, 0, &options, NULL));
  options.lifetime = multicast_lifetime_create();
  CHECK_OK(multicast_add_many(m, NULL, 0, &options, NULL));
  CHECK_OK(multicast_lifetime_end(options.lifetime));
  CHECK_ERROR(multicast_add_many(m, NULL, 0, &options, NULL), INVALID_HANDLE);
  options = multicast_add_options_default();
  options.queue = multicast_queue_create(NULL);
  CHECK_OK(multicast_add_many(m, NULL, 0, &options, NULL));
  CHECK_OK(multicast_queue_destroy(options.queue));
  CHECK_ERROR(multicast_add_many(m, NULL, 0, &options, NULL), INVALID_HANDLE);
}
