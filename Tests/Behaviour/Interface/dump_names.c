/* multicast_dump() shows the names of multicasts and the functions of delegates that have been
 * removed. */

#include "broadcasters.h"
#include "queues.h"
#include "removals.h"
#include "reports.h"

static report text;

static unsigned long long number(uint64_t id) { return id; }

/* ---- Names ----------------------------------------------------------------------------------- */

static multicast named(multicast_broadcaster b, const char *name, multicast_delegate d) {
  CHECK_OK(multicast_broadcaster_register(b, name, d, NULL, NULL));
  return multicast_broadcaster_multicast(b, name);
}

TEST(dump_has_the_name_of_a_multicast_of_a_broadcaster) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  multicast_broadcaster other = multicast_broadcaster_create(NULL);
  multicast title = named(b, "UpdateTitle", counter(&calls));
  multicast close = named(other, "Close", counter(&calls)), plain = multicast_create();
  dumped(&text);
  expect_line(text.text, "multicast 0x%llx \"UpdateTitle\": delegates: 1", number(title.id));
  expect_line(text.text, "multicast 0x%llx \"Close\": delegates: 1", number(close.id));
  expect_line(text.text, "multicast 0x%llx: delegates: 0", number(plain.id));
  described(&text, title);
  expect_line(text.text, "multicast 0x%llx \"UpdateTitle\": delegates: 1", number(title.id));
}

TEST(dump_has_63_bytes_of_a_name_and_no_quotes_of_it) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  char name[256], wanted[64];
  multicast m, quoted = named(b, "a\"b\nc", counter(&calls));
  memset(name, 'n', 255);
  name[255] = '\0';
  memset(wanted, 'n', 63);
  wanted[63] = '\0';
  m = named(b, name, counter(&calls));
  dumped(&text);
  expect_line(text.text, "multicast 0x%llx \"%s\": delegates: 1", number(m.id), wanted);
  expect_line(text.text, "multicast 0x%llx \"a?b?c\": delegates: 1", number(quoted.id));
}

TEST(dump_has_no_name_of_a_multicast_that_has_replaced_one) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  multicast m = named(b, "gone", counter(&calls)), next;
  CHECK_OK(multicast_destroy(m));
  next = multicast_create(); /* may reuse the slot */
  dumped(&text);
  expect_line(text.text, "multicast 0x%llx: delegates: 0", number(next.id));
  CHECK(strstr(text.text, "gone") == NULL);
  m = named(b, "gone", counter(&calls));
  dumped(&text);
  expect_line(text.text, "multicast 0x%llx \"gone\": delegates: 1", number(m.id));
  CHECK_OK(multicast_broadcaster_destroy(b));
  dumped(&text);
  CHECK(strstr(text.text, "gone") == NULL);
}

TEST(dump_has_the_name_in_the_line_of_a_call) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  blocker blocks = BLOCKER_INIT;
  multicast m = named(b, "UpdateTitle", blocking(&blocks));
  begin_blocked(&blocks, m);
  dumped(&text);
  expect_line(text.text, "  in a call of delegate 0x... by multicast 0x%llx \"UpdateTitle\"",
              number(m.id));
  CHECK_EQ(end_blocked(&blocks), 1);
}

/* ---- Functions of removed delegates ---------------------------------------------------------- */

/* Returns the part of a live delegate's line that names its function, such as ": program(+0x1234)".
 * If the library uses only POSIX, this part is an address. */
static const char *place_of(multicast m) {
  static char place[64];
  described(&text, m);
  const char *begin = strstr(text.text, "  delegate ");
  CHECK(begin != NULL);
  begin = strchr(begin, ':');
  CHECK(begin != NULL);
  const char *end = strstr(begin, ", context");
  CHECK(end != NULL && (size_t)(end - begin) < sizeof place);
  snprintf(place, sizeof place, "%.*s", (int)(end - begin), begin);
  CHECK(strstr(place, is_posix() ? ": 0x" : "(+0x") != NULL);
  return place;
}

static void expect_function(multicast_token token, const char *place, const char *by) {
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  dumped(&text);
  expect_line(text.text, "  in a call of delegate 0x%llx (removed)%s %s", number(token.id), place,
              by);
}

static void expect_function_with(const multicast_add_options *options, int more) {
  blocker b = BLOCKER_INIT;
  multicast m = multicast_create();
  multicast_token token = add_with(m, blocking(&b), options);
  const char *place = place_of(m);
  begin_blocked(&b, m);
  while (more-- > 0) add(m, counter(&calls)); /* replaces the list while the call runs */
  expect_function(token, place, "by multicast ...");
  CHECK_EQ(end_blocked(&b), 1);
}

TEST(dump_has_the_function_of_a_removed_delegate) { expect_function_with(NULL, 0); }

TEST(dump_has_the_function_of_one_in_a_list_that_was_replaced) { expect_function_with(NULL, 500); }

TEST(dump_has_the_function_of_a_removed_delegate_with_options) {
  multicast_add_options options = ADD_OPTIONS(.priority = 3);
  expect_function_with(&options, 0);
  options = ADD_OPTIONS(.release = release_blocker);
  expect_function_with(&options, 100);
}

TEST_OF_MULTICAST(dump_has_the_function_of_a_delegate_of_a_destroyed_multicast) {
  blocker b = BLOCKER_INIT;
  multicast_token token = add(m, blocking(&b));
  const char *place = place_of(m);
  begin_blocked(&b, m);
  CHECK_ERROR(multicast_destroy_within(m, 0), TIMEOUT);
  dumped(&text);
  expect_line(text.text, "  in a call of delegate 0x%llx (removed)%s by multicast ...",
              number(token.id), place);
  CHECK_EQ(end_blocked(&b), 1);
}

TEST_OF_MULTICAST(dump_has_the_function_of_a_removed_delegate_in_a_queue) {
  blocker b = BLOCKER_INIT;
  multicast_queue q = queue_with(2, MULTICAST_OVERFLOW_REFUSE);
  multicast_token token = add_queued(m, blocking(&b), q);
  const char *place = place_of(m);
  CHECK_OK(multicast_queue_start(q));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  gate_wait(&b.entered);
  expect_function(token, place, "from queue ...");
  gate_open(&b.let_go);
  CHECK_OK(multicast_queue_stop(q));
}

TEST_OF_MULTICAST(dump_has_the_label_of_a_removed_delegate_and_no_function) {
  blocker b = BLOCKER_INIT;
  multicast_token token = add_with(m, blocking(&b), &ADD_OPTIONS(.label = "labelled"));
  begin_blocked(&b, m);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  dumped(&text);
  expect_line(text.text, "  in a call of delegate 0x%llx \"labelled\" (removed) by multicast ...",
              number(token.id));
  CHECK_EQ(end_blocked(&b), 1);
}
