/* Labels of delegates. */

#include "harness.h"

static multicast_add_options labelled(const char *label) {
  return ADD_OPTIONS(.label = label);
}

static const char *label_of(multicast_token t) {
  multicast_registration r = MULTICAST_REGISTRATION_INIT;
  CHECK_OK(multicast_token_get_registration(t, &r));
  return r.label;
}

TEST_OF_MULTICAST(label_is_copied_and_reported) {
  char text[] = "the log";
  multicast_add_options options = labelled(text);
  multicast_token t = add_with(m, counter(&calls), &options);
  memset(text, 'x', sizeof text - 1);
  CHECK_TEXT(label_of(t), "the log");
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_OK(multicast_token_remove(t));
}

TEST_OF_MULTICAST(label_has_up_to_63_bytes) {
  char text[101];
  multicast_add_options options = labelled(text);
  memset(text, 'x', 100);
  text[100] = '\0';
  CHECK_EQ(strlen(label_of(add_with(m, counter(&calls), &options))), 63);
  text[63] = '\0';
  CHECK_EQ(strlen(label_of(add_with(m, counter(&calls), &options))), 63);
  text[62] = '\0';
  CHECK_EQ(strlen(label_of(add_with(m, counter(&calls), &options))), 62);
}

TEST_OF_MULTICAST(label_that_is_empty_is_none) {
  multicast_add_options options = labelled("");
  CHECK(label_of(add_with(m, counter(&calls), &options)) == NULL);
  CHECK(label_of(add(m, counter(&calls))) == NULL);
  options.priority = 2;
  CHECK(label_of(add_with(m, counter(&calls), &options)) == NULL);
}

/* A caller compiled with version 1.0 passes a smaller struct. The library must not read the bytes
 * after that struct, which contain an invalid pointer in this test. */
TEST_OF_MULTICAST(label_is_none_for_a_caller_of_version_1_0) {
  multicast_add_options options = labelled((const char *)(uintptr_t)1);
  options.struct_size = (uint32_t)offsetof(multicast_add_options, label);
  CHECK(label_of(add_with(m, counter(&calls), &options)) == NULL);
  options.priority = 2;
  CHECK(label_of(add_with(m, counter(&calls), &options)) == NULL);
}

static bool expect_label(void *context, const multicast_registration *registration) {
  CHECK_TEXT(registration->label, "seen");
  ++*(int *)context;
  return true;
}

TEST_OF_MULTICAST(label_is_passed_to_enumerators_and_shared_by_add_many) {
  int seen = 0;
  multicast_add_options options = labelled("seen");
  multicast_delegate d[3] = {counter(&calls), counter(&calls), counter(&calls)};
  CHECK_OK(multicast_add_many(m, d, 3, &options, NULL));
  CHECK_EQ(multicast_enumerate(m, expect_label, &seen), 3);
  CHECK_EQ(seen, 3);
}

TEST_OF_MEMORY(label_takes_memory_that_is_given_back) {
  multicast_add_options options = labelled("memory");
  CHECK_OK(multicast_token_remove(add_with(m, counter(&calls), &options)));
  int64_t bytes = allocated_bytes;
  multicast_token t = add_with(m, counter(&calls), &options);
  CHECK(allocated_bytes > bytes);
  CHECK_OK(multicast_token_remove(t));
  CHECK_EQ(allocated_bytes, bytes);
}

TEST(here_is_the_file_and_the_line) {
  char line[32];
  const char *here = MULTICAST_HERE;
  snprintf(line, sizeof line, "labels.c:%d", __LINE__ - 1);
  CHECK(strlen(here) >= strlen(line));
  CHECK_TEXT(here + strlen(here) - strlen(line), line);
}
