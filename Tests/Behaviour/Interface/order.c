/* Delegates are called by priority, and in the order of addition among equal priorities. */

#include "harness.h"

static multicast_add_options at_priority(int32_t priority) {
  return ADD_OPTIONS(.priority = priority);
}

static void add_letter(multicast m, letter *l, int32_t priority) {
  multicast_add_options options = at_priority(priority);
  add_with(m, writer(l), &options);
}

TEST_OF_MULTICAST(order_is_that_of_addition) {
  char text[16] = "";
  letter a = {text, 'a'}, b = {text, 'b'}, c = {text, 'c'};
  add(m, writer(&b));
  add(m, writer(&a));
  add(m, writer(&c));
  add(m, writer(&a));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 4);
  CHECK_TEXT(text, "baca");
}

TEST_OF_MULTICAST(order_is_by_priority_first) {
  char text[16] = "";
  letter a = {text, 'a'}, b = {text, 'b'}, c = {text, 'c'}, d = {text, 'd'}, e = {text, 'e'};
  add_letter(m, &a, 0);
  add_letter(m, &b, 5);
  add_letter(m, &c, -5);
  add_letter(m, &d, INT32_MAX);
  add_letter(m, &e, INT32_MIN);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 5);
  CHECK_TEXT(text, "dbace");
}

TEST_OF_MULTICAST(order_survives_removals_and_growth) {
  /* Compares the multicast with a plain array after each of 2,000 random adds and removals at five
   * priorities. */
  enum { MOST = 600 };
  static struct {
    int priority, id;
    multicast_token token;
  } model[MOST];
  static int ids[4000];
  static multicast_delegate listed[MOST];
  int count = 0;
  unsigned random = 12345;
  for (int step = 0; step < 4000; ++step) {
    random = random * 1103515245u + 12345u;
    if (count == 0 || (count < MOST && (random >> 16) % 5 < 3)) {
      int priority = (int)((random >> 20) % 5) - 2, place = count;
      multicast_add_options options = at_priority(priority);
      multicast_token token = add_with(m, counter(&ids[step]), &options);
      while (place > 0 && model[place - 1].priority < priority) {
        model[place] = model[place - 1];
        --place;
      }
      model[place].priority = priority;
      model[place].id = step;
      model[place].token = token;
      ++count;
    } else {
      int place = (int)((random >> 16) % (unsigned)count);
      CHECK_OK(multicast_token_remove(model[place].token));
      --count;
      for (int i = place; i < count; ++i) model[i] = model[i + 1];
    }
    if (step % 7 == 0) {
      CHECK_EQ(multicast_list(m, listed, MOST), count);
      for (int i = 0; i < count; ++i) CHECK(listed[i].context == &ids[model[i].id]);
    }
  }
}

TEST(order_of_add_many_is_that_of_the_array) {
  char text[16] = "";
  letter a = {text, 'a'}, b = {text, 'b'}, c = {text, 'c'}, z = {text, 'z'};
  multicast_delegate three[3];
  multicast_add_options options = at_priority(3);
  multicast m = multicast_create();
  three[0] = writer(&a);
  three[1] = writer(&b);
  three[2] = writer(&c);
  add(m, writer(&z));
  CHECK_OK(multicast_add_many(m, three, 3, &options, NULL));
  multicast_invoke(m, 0, NULL, 0);
  CHECK_TEXT(text, "abcz");
}
