/* Tests the functions that create multicasts, and that add, remove, count and list delegates. */

#include "harness.h"

TEST(handles_are_never_given_out_twice) {
  enum { ROUNDS = 20000 };
  multicast previous = {0};
  for (int i = 0; i < ROUNDS; ++i) {
    multicast m = multicast_create();
    CHECK(m.id != previous.id);
    previous = m;
    CHECK_OK(multicast_destroy(m));
  }
}

TEST_OF_MULTICAST(add_gives_a_token_before_the_delegate_can_be_called) {
  multicast_token token = {0};
  CHECK_OK(multicast_add(m, counter(&calls), NULL, &token));
  CHECK(multicast_token_is_valid(token));
  CHECK_EQ(multicast_count(m), 1);
}

TEST_OF_MULTICAST(add_accepts_a_null_context) {
  multicast_delegate d = {count_call, NULL};
  CHECK_OK(multicast_add(m, d, NULL, NULL));
  CHECK(multicast_contains(m, d));
  CHECK_EQ(multicast_remove_context(m, NULL), 1);
}

TEST_OF_MULTICAST(add_many_of_none_is_ok) {
  multicast_delegate d = counter(&calls);
  CHECK_OK(multicast_add_many(m, NULL, 0, NULL, NULL));
  CHECK_OK(multicast_add_many(m, &d, 0, NULL, NULL));
  CHECK_EQ(multicast_count(m), 0);
  CHECK_OK(multicast_destroy(m));
  CHECK_ERROR(multicast_add_many(m, NULL, 0, NULL, NULL), INVALID_HANDLE);
  CHECK_ERROR(multicast_add_many(m, &d, 0, NULL, NULL), INVALID_HANDLE);
}

TEST_OF_MULTICAST(add_many_with_one_bad_delegate_adds_none) {
  multicast_delegate d[2];
  d[0] = counter(&calls);
  d[1] = counter(&calls);
  d[1].function = NULL;
  CHECK_ERROR(multicast_add_many(m, d, 2, NULL, NULL), INVALID_ARGUMENT);
  CHECK_EQ(multicast_count(m), 0);
}

/* ---- Removing -------------------------------------------------------------------------------- */

TEST_OF_MULTICAST(remove_takes_the_first_equal_one) {
  char text[8] = "";
  letter a = {text, 'a'}, b = {text, 'b'};
  add(m, writer(&a));
  add(m, writer(&b));
  add(m, writer(&a));
  CHECK_OK(multicast_remove(m, writer(&a)));
  multicast_invoke(m, 0, NULL, 0);
  CHECK_TEXT(text, "ba");
}

TEST_OF_MULTICAST(remove_distinguishes_function_and_context) {
  int other = 0;
  add(m, counter(&calls));
  CHECK_ERROR(multicast_remove(m, DELEGATE(count_call_too, &calls)), NOT_FOUND);
  CHECK_ERROR(multicast_remove(m, counter(&other)), NOT_FOUND);
  CHECK_OK(multicast_remove(m, counter(&calls)));
  CHECK_ERROR(multicast_remove(m, counter(&calls)), NOT_FOUND);
}

TEST_OF_MULTICAST(remove_many_counts_what_was_there) {
  int n[4] = {0};
  multicast_delegate d[4];
  for (int i = 0; i < 4; ++i) d[i] = counter(&n[i]);
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

TEST_OF_MULTICAST(remove_context_takes_all_that_have_it) {
  int other = 0;
  add(m, counter(&calls));
  add(m, counter(&other));
  add(m, DELEGATE(count_call_too, &calls));
  CHECK_EQ(multicast_remove_context(m, &calls), 2);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_remove_context(m, &calls), 0);
}

TEST_OF_MULTICAST(remove_at_counts_live_delegates_in_order) {
  char text[8] = "";
  letter a = {text, 'a'}, b = {text, 'b'}, c = {text, 'c'}, d = {text, 'd'};
  multicast_token first = add(m, writer(&a));
  add(m, writer(&b));
  add(m, writer(&c));
  add(m, writer(&d));
  CHECK_OK(multicast_token_remove(first));
  CHECK_OK(multicast_remove_at(m, 1));
  multicast_invoke(m, 0, NULL, 0);
  CHECK_TEXT(text, "bd");
  CHECK_ERROR(multicast_remove_at(m, 2), NOT_FOUND);
  CHECK_OK(multicast_remove_at(m, 1));
  CHECK_OK(multicast_remove_at(m, 0));
  CHECK_ERROR(multicast_remove_at(m, 0), NOT_FOUND);
}

TEST_OF_MULTICAST(remove_all_empties_and_keeps_the_multicast) {
  for (int i = 0; i < 100; ++i) add(m, counter(&calls));
  CHECK_EQ(multicast_remove_all(m), 100);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(multicast_remove_all(m), 0);
  add(m, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
}

TEST_OF_MULTICAST(removal_in_any_order_keeps_the_rest_in_order) {
  enum { MANY = 2000 };
  static int each[MANY];
  static multicast_token tokens[MANY];
  static multicast_delegate listed[MANY];
  int left = MANY, step = 7;
  for (int i = 0; i < MANY; ++i) tokens[i] = add(m, counter(&each[i]));
  multicast_invoke(m, 0, NULL, 0);
  for (int i = 0; i < MANY - 10; ++i) {
    int which = (int)((unsigned)i * (unsigned)step % MANY);
    CHECK_OK(multicast_token_remove(tokens[which]));
    --left;
    CHECK_EQ(multicast_count(m), left);
  }
  CHECK_EQ(multicast_list(m, listed, MANY), 10);
  for (int i = 1; i < 10; ++i) CHECK((char *)listed[i].context > (char *)listed[i - 1].context);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 10);
}

/* ---- Counting and listing -------------------------------------------------------------------- */

TEST_OF_MULTICAST(count_counts_live_ones_and_paused_ones) {
  CHECK_EQ(multicast_count(m), 0);
  multicast_token token = add(m, counter(&calls));
  CHECK_EQ(multicast_count(m), 1);
  CHECK_OK(multicast_token_pause(token));
  CHECK_EQ(multicast_count(m), 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(multicast_count(m), 0);
}

TEST_OF_MULTICAST(contains_compares_function_and_context) {
  multicast_token token = add(m, counter(&calls));
  CHECK(multicast_contains(m, counter(&calls)));
  CHECK(!multicast_contains(m, DELEGATE(count_call_too, &calls)));
  CHECK_OK(multicast_token_pause(token));
  CHECK(multicast_contains(m, counter(&calls)));
  CHECK_OK(multicast_token_remove(token));
  CHECK(!multicast_contains(m, counter(&calls)));
}

TEST_OF_MULTICAST(list_writes_at_most_its_capacity_and_returns_the_total) {
  int n[3];
  multicast_delegate out[3];
  for (int i = 0; i < 2; ++i) add(m, counter(&n[i]));
  multicast_token paused = add(m, counter(&n[2]));
  CHECK_OK(multicast_token_pause(paused));
  CHECK_EQ(multicast_list(m, NULL, 0), 3);
  memset(out, 0, sizeof out);
  CHECK_EQ(multicast_list(m, out, 2), 3);
  CHECK(out[0].context == &n[0] && out[1].context == &n[1] && out[2].context == NULL);
  CHECK_EQ(multicast_list(m, out, SIZE_MAX), 3);
  CHECK(out[2].context == &n[2]);
}
