/* multicast_describe() reports on one multicast. */

#include "linux.h"
#include "removals.h"
#include "reports.h"


static report text, other;

static multicast labelled(const char *label) {
  return multicast_create_with(&CREATE_OPTIONS(.label = label));
}

static unsigned long long number(uint64_t id) { return id; }

TEST(describe_lists_the_delegates_in_order_with_their_options) {
  multicast m = labelled("temperature");
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  multicast_token plain = add(m, counter(&calls)), first, last;
  multicast_add_options options = ADD_OPTIONS(.label = "the first", .priority = 7, .events = 0x12,
                                              .lifetime = multicast_lifetime_create(),
                                              .flags = MULTICAST_ONCE);
  first = add_with(m, counter(&calls), &options);
  options = ADD_OPTIONS(.queue = q);
  options.priority = -7;
  options.flags = MULTICAST_LATEST;
  last = add_with(m, counter(NULL), &options);
  CHECK_OK(multicast_token_pause(plain));
  described(&text, m);
  expect_line(text.text, "multicast 0x%llx \"temperature\": delegates: 3", number(m.id));
  expect_line(text.text,
              "  delegate 0x%llx \"the first\": ..., context 0x%llx, priority 7, events 0x12, "
              "once, lifetime ...",
              number(first.id), number((uintptr_t)&calls));
  expect_line(text.text, "  delegate 0x%llx: ..., context 0x%llx, paused", number(plain.id),
              number((uintptr_t)&calls));
  expect_line(text.text, "  delegate 0x%llx: ..., context 0x0, priority -7, latest, queue 0x%llx",
              number(last.id), number(q.id));
  CHECK(strstr(text.text, "the first") < strstr(text.text, "paused"));
  CHECK(strstr(text.text, "paused") < strstr(text.text, "latest"));
  CHECK_EQ(text.lines, 5); /* one of them is empty */
}

TEST(describe_says_how_many_invocations_are_kept_for_a_replay) {
  multicast m = multicast_create_with(&CREATE_OPTIONS(.label = "readings", .replay = 3));
  add(m, counter(&calls));
  for (int i = 0; i < 5; ++i) {
    expect_line(described(&text, m), "multicast 0x%llx \"readings\": delegates: 1, replay %d of 3",
                number(m.id), i < 3 ? i : 3);
    CHECK_EQ(multicast_invoke(m, 1, &i, sizeof i), 1);
  }
  expect_line(dumped(&text), "multicast 0x%llx \"readings\": delegates: 1, replay 3 of 3",
              number(m.id));
}

TEST_OF_MULTICAST(describe_has_the_symbol_of_a_function_that_a_library_exports) {
  needs_linux("places of functions");
  multicast_delegate d = {(multicast_function)(void (*)(void))qsort, NULL};
  multicast_delegate none = {(multicast_function)(uintptr_t)64, NULL};
  add(m, d);
  add(m, none);
  add(m, counter(&calls));
  described(&text, m);
  if (getauxval(AT_BASE) != 0) { /* functions of a static program have no names */
    expect_line(text.text, "  delegate ...(...qsort+0x0), context 0x0");
  }
  /* the address belongs to no library, like the address of a function in an unloaded library */
  expect_line(text.text, "  delegate ...: 0x40, context 0x0");
  expect_line(text.text, "  delegate ...: ...(...+0x...), context 0x...");
}

static void describe_a_counter(void *multicast_of_it) {
  multicast *m = multicast_of_it;
  described(&text, *m);
  expect_line(text.text, "  delegate ...: 0x%llx, context 0x...",
              (unsigned long long)(uintptr_t)count_call);
}

TEST_OF_MULTICAST(describe_in_the_child_of_a_fork_has_addresses) {
  add(m, counter(&calls));
  in_child(describe_a_counter, &m);
}

TEST_OF_MULTICAST(describe_says_which_contexts_are_weak) {
  add_with(m, counter(&calls), &ADD_OPTIONS(.lock = lock_same, .unlock = unlock_nothing));
  expect_line(described(&text, m), "  delegate ..., weak");
}

TEST(describe_replaces_what_would_end_a_line_or_a_label) {
  multicast m = labelled("a\"b\nc\x01");
  expect_line(described(&text, m), "multicast 0x%llx \"a?b?c?\": delegates: 0", number(m.id));
}

TEST_OF_MULTICAST(describe_stops_when_the_writer_returns_false) {
  for (int i = 0; i < 10; ++i) add(m, counter(&calls));
  text.most = 4;
  described(&text, m);
  CHECK_EQ(text.lines, 4);
  dumped(&text);
  CHECK_EQ(text.lines, 4);
}

TEST(describe_has_calls_of_that_multicast_and_waits_for_them) {
  blocker b = BLOCKER_INIT;
  removal r;
  multicast beside = multicast_create();
  prepare_removal(&r, labelled("shown"), &b, by_remove);
  add(r.target, r.delegate);
  begin_blocked(&b, r.target);
  described(&text, r.target);
  expect_line(text.text, "  in a call of delegate 0x... by multicast 0x%llx \"shown\"",
              number(r.target.id));
  r.thread = start_thread(remove_in_thread, &r);
  EVENTUALLY(strstr(described(&text, r.target), "waits") != NULL);
  expect_line(text.text, "  waits ... s for calls of delegate 0x... (removed): %s", some_place());
  expect_line(text.text, "    thread ... is in one");
  described(&other, beside);
  CHECK_EQ(other.lines, 2);
  CHECK_EQ(end_blocked(&b), 1);
  join_thread(r.thread);
  CHECK_OK(r.result);
}

/* The writer uses the library, which it can do because the library is not holding a lock. */
static bool change_in_writer(void *context, const char *line, size_t size) {
  multicast m = *(multicast *)context;
  add(m, counter(&calls));
  CHECK_OK(multicast_remove_at(m, 0));
  CHECK(multicast_invoke(m, 0, NULL, 0) > 0);
  CHECK_OK(multicast_describe(m, report_line, &other));
  other.length = 0;
  return ++calls < 1000;
}

TEST(describe_holds_no_lock_while_the_writer_runs) {
  multicast m = labelled("changed");
  add(m, counter(&calls));
  CHECK_OK(multicast_describe(m, change_in_writer, &m));
  CHECK_OK(multicast_dump(change_in_writer, &m));
  CHECK(calls > 4);
}

TEST_OF_MULTICAST(describe_of_a_large_multicast_has_every_delegate) {
  enum { COUNT = 600 };
  for (int i = 0; i < COUNT; ++i) add(m, counter(&calls));
  for (int i = 0; i < COUNT / 2; ++i) CHECK_OK(multicast_remove_at(m, (size_t)i));
  described(&text, m);
  CHECK_EQ(text.lines, 2 + COUNT / 2);
}
