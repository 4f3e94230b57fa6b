/* The multicast group: what each function does and which status it gives when. */

#include "harness.h"

static int calls;

TEST(create_gives_a_valid_handle_each_time_another) {
  multicast a = multicast_create(), b = multicast_create();
  CHECK(a.id != 0 && b.id != 0 && a.id != b.id);
  CHECK(multicast_is_valid(a));
  CHECK(multicast_is_valid(b));
}

TEST(destroy_ends_validity) {
  multicast m = multicast_create();
  CHECK_OK(multicast_destroy(m));
  CHECK(!multicast_is_valid(m));
  CHECK_STATUS(multicast_destroy(m), MULTICAST_ERROR_INVALID_HANDLE);
}

TEST(destroy_makes_the_tokens_stale) {
  multicast m = multicast_create();
  multicast_token token = add(m, counter(&calls));
  CHECK_OK(multicast_destroy(m));
  CHECK(!multicast_token_is_live(token));
}

TEST(handles_are_never_given_out_twice) {
  enum { ROUNDS = 20000 };
  multicast previous = {0};
  int i;
  for (i = 0; i < ROUNDS; ++i) {
    multicast m = multicast_create();
    CHECK(m.id != previous.id);
    previous = m;
    CHECK_OK(multicast_destroy(m));
  }
}

TEST(add_gives_a_token_before_the_delegate_can_be_called) {
  multicast m = multicast_create();
  multicast_token token = {0};
  CHECK_OK(multicast_add(m, counter(&calls), NULL, &token));
  CHECK(multicast_token_is_live(token));
  CHECK_EQ(multicast_count(m), 1);
}

TEST(add_without_options_or_token_is_fine) {
  multicast m = multicast_create();
  CHECK_OK(multicast_add(m, counter(&calls), NULL, NULL));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
}

TEST(add_accepts_a_null_context) {
  multicast m = multicast_create();
  multicast_delegate d = {count_call, NULL};
  CHECK_OK(multicast_add(m, d, NULL, NULL));
  CHECK(multicast_contains(m, d));
  CHECK_EQ(multicast_remove_context(m, NULL), 1);
}

TEST(add_of_the_same_delegate_twice_has_it_called_twice) {
  multicast m = multicast_create();
  add(m, counter(&calls));
  add(m, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK_EQ(calls, 2);
}

TEST(add_grows_to_many_delegates) {
  enum { MANY = 20000 };
  static int each[MANY];
  multicast m = multicast_create();
  int i;
  for (i = 0; i < MANY; ++i) add(m, counter(&each[i]));
  CHECK_EQ(multicast_count(m), MANY);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), MANY);
  for (i = 0; i < MANY; ++i) CHECK_EQ(each[i], 1);
}

TEST(add_many_gives_a_token_for_each) {
  multicast_delegate d[3];
  multicast_token t[3];
  int n[3] = {0}, i;
  multicast m = multicast_create();
  for (i = 0; i < 3; ++i) d[i] = counter(&n[i]);
  CHECK_OK(multicast_add_many(m, d, 3, NULL, t));
  CHECK_EQ(multicast_count(m), 3);
  CHECK_OK(multicast_token_remove(t[1]));
  multicast_invoke(m, 0, NULL, 0);
  CHECK(n[0] == 1 && n[1] == 0 && n[2] == 1);
}

TEST(add_many_of_none_is_ok) {
  multicast m = multicast_create();
  multicast_delegate d = counter(&calls);
  CHECK_OK(multicast_add_many(m, NULL, 0, NULL, NULL));
  CHECK_OK(multicast_add_many(m, &d, 0, NULL, NULL));
  CHECK_EQ(multicast_count(m), 0);
}

TEST(add_many_with_one_bad_delegate_adds_none) {
  multicast m = multicast_create();
  multicast_delegate d[2];
  d[0] = counter(&calls);
  d[1] = counter(&calls);
  d[1].function = NULL;
  CHECK_STATUS(multicast_add_many(m, d, 2, NULL, NULL), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(multicast_count(m), 0);
}

/* ---- Removing -------------------------------------------------------------------------------- */

TEST(remove_takes_the_first_equal_one) {
  char text[8] = "";
  letter a = {text, 'a'}, b = {text, 'b'};
  multicast m = multicast_create();
  add(m, writer(&a));
  add(m, writer(&b));
  add(m, writer(&a));
  CHECK_OK(multicast_remove(m, writer(&a)));
  multicast_invoke(m, 0, NULL, 0);
  CHECK_TEXT(text, "ba");
}

TEST(remove_tells_function_and_context_apart) {
  int other = 0;
  multicast m = multicast_create();
  multicast_delegate d;
  add(m, counter(&calls));
  d.function = count_call_too;
  d.context = &calls;
  CHECK_STATUS(multicast_remove(m, d), MULTICAST_ERROR_NOT_FOUND);
  CHECK_STATUS(multicast_remove(m, counter(&other)), MULTICAST_ERROR_NOT_FOUND);
  CHECK_OK(multicast_remove(m, counter(&calls)));
  CHECK_STATUS(multicast_remove(m, counter(&calls)), MULTICAST_ERROR_NOT_FOUND);
}

TEST(remove_many_counts_what_was_there) {
  int n[4] = {0}, i;
  multicast_delegate d[4];
  multicast m = multicast_create();
  for (i = 0; i < 4; ++i) d[i] = counter(&n[i]);
  add(m, d[0]);
  add(m, d[0]);
  add(m, d[2]);
  CHECK_EQ(multicast_remove_many(m, d, 4), 2);
  CHECK_EQ(multicast_count(m), 1);
  CHECK(multicast_contains(m, d[0]));
  CHECK_EQ(multicast_remove_many(m, NULL, 0), 0);
  CHECK_EQ(multicast_remove_many(m, d, 4), 1);
  CHECK_EQ(multicast_remove_many(m, d, 4), 0);
}

TEST(remove_context_takes_all_that_have_it) {
  int other = 0;
  multicast m = multicast_create();
  multicast_delegate d;
  d.function = count_call_too;
  d.context = &calls;
  add(m, counter(&calls));
  add(m, counter(&other));
  add(m, d);
  CHECK_EQ(multicast_remove_context(m, &calls), 2);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_remove_context(m, &calls), 0);
}

TEST(remove_at_counts_live_delegates_in_order) {
  char text[8] = "";
  letter a = {text, 'a'}, b = {text, 'b'}, c = {text, 'c'}, d = {text, 'd'};
  multicast m = multicast_create();
  multicast_token first;
  first = add(m, writer(&a));
  add(m, writer(&b));
  add(m, writer(&c));
  add(m, writer(&d));
  CHECK_OK(multicast_token_remove(first));
  CHECK_OK(multicast_remove_at(m, 1));
  multicast_invoke(m, 0, NULL, 0);
  CHECK_TEXT(text, "bd");
  CHECK_STATUS(multicast_remove_at(m, 2), MULTICAST_ERROR_NOT_FOUND);
  CHECK_OK(multicast_remove_at(m, 1));
  CHECK_OK(multicast_remove_at(m, 0));
  CHECK_STATUS(multicast_remove_at(m, 0), MULTICAST_ERROR_NOT_FOUND);
}

TEST(remove_all_empties_and_keeps_the_multicast) {
  multicast m = multicast_create();
  int i;
  for (i = 0; i < 100; ++i) add(m, counter(&calls));
  CHECK_EQ(multicast_remove_all(m), 100);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(multicast_remove_all(m), 0);
  add(m, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
}

TEST(removal_in_any_order_keeps_the_rest_in_order) {
  enum { MANY = 2000 };
  static int each[MANY];
  static multicast_token tokens[MANY];
  static multicast_delegate listed[MANY];
  int i, left = MANY, step = 7;
  multicast m = multicast_create();
  for (i = 0; i < MANY; ++i) tokens[i] = add(m, counter(&each[i]));
  multicast_invoke(m, 0, NULL, 0);
  for (i = 0; i < MANY - 10; ++i) {
    int which = (int)((unsigned)i * (unsigned)step % MANY);
    CHECK_OK(multicast_token_remove(tokens[which]));
    --left;
    CHECK_EQ(multicast_count(m), left);
  }
  CHECK_EQ(multicast_list(m, listed, MANY), 10);
  for (i = 1; i < 10; ++i) CHECK((char *)listed[i].context > (char *)listed[i - 1].context);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 10);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

TEST(count_counts_live_ones_and_paused_ones) {
  multicast m = multicast_create();
  multicast_token token;
  CHECK_EQ(multicast_count(m), 0);
  token = add(m, counter(&calls));
  CHECK_EQ(multicast_count(m), 1);
  CHECK_OK(multicast_token_pause(token));
  CHECK_EQ(multicast_count(m), 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(multicast_count(m), 0);
}

TEST(contains_compares_function_and_context) {
  multicast m = multicast_create();
  multicast_delegate d;
  multicast_token token = add(m, counter(&calls));
  d.function = count_call_too;
  d.context = &calls;
  CHECK(multicast_contains(m, counter(&calls)));
  CHECK(!multicast_contains(m, d));
  CHECK_OK(multicast_token_pause(token));
  CHECK(multicast_contains(m, counter(&calls)));
  CHECK_OK(multicast_token_remove(token));
  CHECK(!multicast_contains(m, counter(&calls)));
}

TEST(list_writes_at_most_its_capacity_and_returns_the_total) {
  int n[3], i;
  multicast_delegate out[3];
  multicast m = multicast_create();
  multicast_token paused;
  for (i = 0; i < 2; ++i) add(m, counter(&n[i]));
  paused = add(m, counter(&n[2]));
  CHECK_OK(multicast_token_pause(paused));
  CHECK_EQ(multicast_list(m, NULL, 0), 3);
  memset(out, 0, sizeof out);
  CHECK_EQ(multicast_list(m, out, 2), 3);
  CHECK(out[0].context == &n[0] && out[1].context == &n[1] && out[2].context == NULL);
  CHECK_EQ(multicast_list(m, out, SIZE_MAX), 3);
  CHECK(out[2].context == &n[2]);
}

/* ---- Invoking -------------------------------------------------------------------------------- */

typedef struct seen {
  uint32_t event;
  const void *payload;
  size_t size;
} seen;

static void see(void *context, uint32_t event, const void *payload, size_t size) {
  seen *s = context;
  s->event = event;
  s->payload = payload;
  s->size = size;
}

TEST(invoke_passes_event_payload_and_size_on) {
  seen s = {0, NULL, 0};
  multicast_delegate d;
  multicast m = multicast_create();
  d.function = see;
  d.context = &s;
  add(m, d);
  CHECK_EQ(multicast_invoke(m, UINT32_MAX, "text", 4), 1);
  CHECK(s.event == UINT32_MAX && s.size == 4);
  CHECK(memcmp(s.payload, "text", 4) == 0);
  CHECK_EQ(multicast_invoke(m, 3, &s, 0), 1); /* size 0 passes the pointer as it is */
  CHECK(s.payload == &s && s.size == 0);
  CHECK_EQ(multicast_invoke(m, 3, NULL, 0), 1);
  CHECK(s.payload == NULL);
}

TEST(invoke_of_an_empty_multicast_calls_none) {
  multicast m = multicast_create();
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  add(m, counter(&calls));
  CHECK_EQ(multicast_remove_all(m), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
}

static multicast doomed;

static void destroy_doomed(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context;
  (void)event;
  (void)payload;
  (void)size;
  CHECK_STATUS(multicast_destroy(doomed), MULTICAST_PENDING);
}

TEST(invoke_returns_its_count_though_the_multicast_was_destroyed) {
  multicast_delegate d = {destroy_doomed, NULL};
  doomed = multicast_create();
  add(doomed, counter(&calls));
  add(doomed, d);
  add(doomed, counter(&calls));
  CHECK_EQ(multicast_invoke(doomed, 0, NULL, 0), 2);
  CHECK_EQ(calls, 1);
}

/* ---- Visiting -------------------------------------------------------------------------------- */

typedef struct visit {
  int visited, stop_after;
  void *contexts[8];
} visit;

static bool note_visit(void *context, const multicast_delegate *delegate) {
  visit *v = context;
  v->contexts[v->visited++] = delegate->context;
  return v->visited != v->stop_after;
}

TEST(visit_passes_each_delegate_in_order) {
  int n[3];
  visit v = {0, 0, {NULL}};
  int i;
  multicast m = multicast_create();
  for (i = 0; i < 3; ++i) add(m, counter(&n[i]));
  CHECK_EQ(multicast_visit(m, note_visit, &v), 3);
  for (i = 0; i < 3; ++i) CHECK(v.contexts[i] == &n[i]);
}

TEST(visit_stops_when_the_visitor_returns_false) {
  visit v = {0, 2, {NULL}};
  int i;
  multicast m = multicast_create();
  for (i = 0; i < 5; ++i) add(m, counter(&calls));
  CHECK_EQ(multicast_visit(m, note_visit, &v), 2);
  CHECK_EQ(v.visited, 2);
}

TEST(visit_leaves_paused_delegates_out_and_ignores_events) {
  visit v = {0, 0, {NULL}};
  multicast_options options = multicast_options_default();
  multicast m = multicast_create();
  multicast_token paused = add(m, counter(&calls));
  options.events = 1;
  add_with(m, counter(&calls), &options);
  CHECK_OK(multicast_token_pause(paused));
  CHECK_EQ(multicast_visit(m, note_visit, &v), 1);
}

TEST(visit_removes_a_delegate_added_once) {
  visit v = {0, 0, {NULL}};
  multicast_options options = multicast_options_default();
  multicast m = multicast_create();
  options.flags = MULTICAST_ONCE;
  add_with(m, counter(&calls), &options);
  CHECK_EQ(multicast_visit(m, note_visit, &v), 1);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(multicast_visit(m, note_visit, &v), 0);
}

static bool visit_again(void *context, const multicast_delegate *delegate) {
  multicast *m = context;
  int64_t result = multicast_visit(*m, visit_again, m);
  (void)delegate;
  if (result < 0) CHECK_STATUS(result, MULTICAST_ERROR_LIMIT);
  return true;
}

TEST(visit_nested_too_deep_is_limit) {
  multicast m = multicast_create();
  add(m, counter(&calls));
  CHECK_EQ(multicast_visit(m, visit_again, &m), 1);
}

/* ---- Options --------------------------------------------------------------------------------- */

TEST(once_is_called_once_and_is_gone_as_its_call_begins) {
  multicast_options options = multicast_options_default();
  multicast m = multicast_create();
  multicast_token token;
  options.flags = MULTICAST_ONCE;
  token = add_with(m, counter(&calls), &options);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK_EQ(calls, 1);
  CHECK_EQ(multicast_count(m), 0);
  CHECK(!multicast_token_is_live(token));
  CHECK_STATUS(multicast_token_remove(token), MULTICAST_ERROR_INVALID_HANDLE);
}

static void invoke_and_count(void *context, uint32_t event, const void *payload, size_t size) {
  multicast m = *(multicast *)context;
  (void)event;
  (void)payload;
  (void)size;
  ADD(calls, 1);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
}

TEST(once_is_not_called_by_a_nested_invocation) {
  multicast_options options = multicast_options_default();
  multicast m = multicast_create();
  multicast_delegate d;
  d.function = invoke_and_count;
  d.context = &m;
  options.flags = MULTICAST_ONCE;
  add_with(m, d, &options);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(calls, 1);
}

static multicast contested;
static gate start = GATE_INIT;

static void *invoke_at_start(void *unused) {
  (void)unused;
  gate_wait(&start);
  multicast_invoke(contested, 0, NULL, 0);
  return NULL;
}

TEST(once_is_called_by_one_of_several_threads) {
  multicast_options options = multicast_options_default();
  pthread_t threads[4];
  int i;
  options.flags = MULTICAST_ONCE;
  contested = multicast_create();
  for (i = 0; i < 500; ++i) add_with(contested, counter(&calls), &options);
  for (i = 0; i < 4; ++i) threads[i] = start_thread(invoke_at_start, NULL);
  gate_open(&start);
  for (i = 0; i < 4; ++i) join_thread(threads[i]);
  CHECK_EQ(LOAD(calls), 500);
  CHECK_EQ(multicast_count(contested), 0);
}

TEST(unique_replaces_the_equal_one_and_goes_last) {
  char text[8] = "";
  letter a = {text, 'a'}, b = {text, 'b'};
  multicast_options options = multicast_options_default();
  multicast_token first, second;
  multicast m = multicast_create();
  options.flags = MULTICAST_UNIQUE;
  first = add_with(m, writer(&a), &options);
  add_with(m, writer(&b), &options);
  second = add_with(m, writer(&a), &options);
  CHECK_EQ(multicast_count(m), 2);
  CHECK(!multicast_token_is_live(first));
  CHECK(multicast_token_is_live(second));
  multicast_invoke(m, 0, NULL, 0);
  CHECK_TEXT(text, "ba");
}

TEST(unique_replaces_all_equal_ones) {
  multicast_options options = multicast_options_default();
  multicast m = multicast_create();
  add(m, counter(&calls));
  add(m, counter(&calls));
  options.flags = MULTICAST_UNIQUE;
  add_with(m, counter(&calls), &options);
  CHECK_EQ(multicast_count(m), 1);
}

TEST(unique_among_many_keeps_the_last_of_each) {
  char text[8] = "";
  letter a = {text, 'a'}, b = {text, 'b'};
  multicast_delegate d[3];
  multicast_token t[3];
  multicast_options options = multicast_options_default();
  multicast m = multicast_create();
  options.flags = MULTICAST_UNIQUE;
  d[0] = d[2] = writer(&a);
  d[1] = writer(&b);
  CHECK_OK(multicast_add_many(m, d, 3, &options, t));
  CHECK_EQ(multicast_count(m), 2);
  CHECK(!multicast_token_is_live(t[0]));
  CHECK(multicast_token_is_live(t[1]) && multicast_token_is_live(t[2]));
  multicast_invoke(m, 0, NULL, 0);
  CHECK_TEXT(text, "ba");
}

TEST(unique_does_not_wait_for_the_call_of_what_it_replaces) {
  blocker b = BLOCKER_INIT;
  invoker i;
  multicast_options options = with_release(release_blocker);
  multicast m = multicast_create();
  options.flags = MULTICAST_UNIQUE;
  add_with(m, blocking(&b), &options);
  invoke_in_background(&i, m);
  gate_wait(&b.entered);
  add_with(m, blocking(&b), &options);
  CHECK(!LOAD(b.has_left));
  CHECK_EQ(LOAD(b.releases), 0);
  gate_open(&b.let_go);
  invoke_finished(&i);
  CHECK_EQ(LOAD(b.releases), 1);
  CHECK_EQ(multicast_count(m), 1);
}

TEST(unique_again_and_again_takes_no_more_memory) {
  multicast_options options = multicast_options_default();
  multicast m;
  int i;
  int64_t before = 0;
  use_test_allocator();
  m = multicast_create();
  options.flags = MULTICAST_UNIQUE;
  for (i = 0; i < 1000; ++i) {
    add_with(m, counter(&calls), &options);
    if (i == 10) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}

TEST(events_select_which_events_a_delegate_gets) {
  multicast_options options = multicast_options_default();
  multicast m = multicast_create();
  int all = 0, some = 0;
  uint32_t event;
  options.events = (UINT64_C(1) << 3) | (UINT64_C(1) << 63);
  add(m, counter(&all));
  add_with(m, counter(&some), &options);
  for (event = 0; event < 64; ++event) {
    CHECK_EQ(multicast_invoke(m, event, NULL, 0), event == 3 || event == 63 ? 2 : 1);
  }
  CHECK_EQ(all, 64);
  CHECK_EQ(some, 2);
}

TEST(events_of_one_bit_alone_select_that_event_alone_below_64) {
  multicast_queue q = queue_with(16, MULTICAST_OVERFLOW_REFUSE);
  uint32_t bit, event;
  for (bit = 0; bit < 64; ++bit) {
    multicast_options options = multicast_options_default();
    multicast m = multicast_create();
    int direct = 0, queued = 0;
    options.events = UINT64_C(1) << bit;
    add_with(m, counter(&direct), &options);
    options.queue = q;
    add_with(m, counter(&queued), &options);
    for (event = 0; event < 67; ++event) {
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

TEST(events_from_64_on_are_always_delivered) {
  multicast_options options = multicast_options_default();
  multicast m = multicast_create();
  options.events = 1;
  add_with(m, counter(&calls), &options);
  CHECK_EQ(multicast_invoke(m, 64, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, UINT32_MAX, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 0);
}

TEST(events_do_not_use_up_a_delegate_called_once) {
  multicast_options options = multicast_options_default();
  multicast m = multicast_create();
  options.events = 2;
  options.flags = MULTICAST_ONCE;
  add_with(m, counter(&calls), &options);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  CHECK_EQ(multicast_count(m), 0);
}

TEST(add_many_of_none_checks_the_handles_in_its_options) {
  multicast m = multicast_create();
  multicast_options options = multicast_options_default();
  CHECK_OK(multicast_add_many(m, NULL, 0, &options, NULL));
  options.lifetime = multicast_lifetime_create();
  CHECK_OK(multicast_add_many(m, NULL, 0, &options, NULL));
  CHECK_OK(multicast_lifetime_end(options.lifetime));
  CHECK_STATUS(multicast_add_many(m, NULL, 0, &options, NULL), MULTICAST_ERROR_INVALID_HANDLE);
  options = multicast_options_default();
  options.queue = multicast_queue_create(NULL);
  CHECK_OK(multicast_add_many(m, NULL, 0, &options, NULL));
  CHECK_OK(multicast_queue_destroy(options.queue));
  CHECK_STATUS(multicast_add_many(m, NULL, 0, &options, NULL), MULTICAST_ERROR_INVALID_HANDLE);
}
