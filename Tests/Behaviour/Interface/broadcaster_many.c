/* A single call registers several observers, or unregisters all observers with a given context. */

#include "broadcasters.h"
#include "queues.h"

enum { MANY = 5 };

static void prepare(observer *o, multicast_delegate *d) {
  memset(o, 0, MANY * sizeof *o);
  for (int i = 0; i < MANY; ++i) d[i] = observing(&o[i]);
}

TEST_OF_BROADCASTER(broadcaster_register_many_registers_all_in_order) {
  multicast_add_options options = ADD_OPTIONS(.release = release_observer);
  multicast_delegate d[MANY], listed[MANY];
  multicast_token tokens[MANY];
  observer o[MANY];
  prepare(o, d);
  CHECK_OK(multicast_broadcaster_register_many(b, NAME, d, MANY, &options, tokens));
  CHECK_EQ(multicast_list(find(b, NAME), listed, MANY), MANY);
  for (int i = 0; i < MANY; ++i) {
    CHECK(listed[i].context == &o[i]);
    CHECK(multicast_token_is_valid(tokens[i]));
  }
  CHECK_EQ(notify(b, NAME), MANY);
  CHECK_EQ(notify(b, "Other"), 0);
  CHECK_OK(multicast_broadcaster_register_many(b, NAME, d, MANY, NULL, NULL));
  CHECK_EQ(notify(b, NAME), 2 * MANY);
  CHECK_OK(multicast_broadcaster_register_many(b, NAME, NULL, 0, NULL, NULL));
  CHECK_OK(multicast_broadcaster_destroy(b));
  for (int i = 0; i < MANY; ++i) CHECK(o[i].calls == 3 && o[i].releases == 1);
}

TEST(broadcaster_register_many_uses_the_queue_of_the_broadcaster) {
  multicast_queue q = create_queue(), own = create_queue();
  multicast_broadcaster b = create_on(q);
  multicast_delegate d[MANY];
  observer o[MANY];
  prepare(o, d);
  CHECK_OK(multicast_broadcaster_register_many(b, NAME, d, MANY, NULL, NULL));
  CHECK_OK(multicast_broadcaster_register_many(b, NAME, d, 2, &ADD_OPTIONS(.queue = own), NULL));
  CHECK_EQ(notify(b, NAME), MANY + 2);
  CHECK_EQ(o[0].calls, 0);
  CHECK_EQ(multicast_queue_run(q, 0), MANY);
  CHECK_EQ(multicast_queue_run(own, 0), 2);
  CHECK(o[0].calls == 2 && o[MANY - 1].calls == 1);
}

static void expect_none(multicast_broadcaster b, const char *name, multicast_delegate *d,
                        multicast_add_options options, multicast_status status) {
  multicast_token tokens[MANY];
  int before[MANY];
  memset(tokens, 0xAB, sizeof tokens);
  options.release = release_observer;
  for (int i = 0; i < MANY; ++i) before[i] = ((observer *)d[i].context)->releases;
  CHECK_STATUS(multicast_broadcaster_register_many(b, name, d, MANY, &options, tokens), status);
  for (int i = 0; i < MANY; ++i) {
    CHECK_EQ(tokens[i].id, 0);
    CHECK_EQ(((observer *)d[i].context)->releases, before[i] + 1);
  }
}

TEST(broadcaster_register_many_that_fails_releases_each) {
  multicast_broadcaster b = create(), none = MULTICAST_NONE;
  multicast_queue gone = create_queue();
  multicast_add_options options = MULTICAST_ADD_OPTIONS_INIT;
  multicast_delegate d[MANY];
  observer o[MANY];
  prepare(o, d);
  expect_none(none, NAME, d, options, MULTICAST_ERROR_INVALID_HANDLE);
  expect_none(b, "", d, options, MULTICAST_ERROR_INVALID_ARGUMENT);
  expect_none(b, NULL, d, options, MULTICAST_ERROR_INVALID_ARGUMENT);
  d[3].function = NULL;
  expect_none(b, NAME, d, options, MULTICAST_ERROR_INVALID_ARGUMENT);
  prepare(o, d);
  CHECK_OK(multicast_queue_destroy(gone));
  options.queue = gone;
  expect_none(b, NAME, d, options, MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_ERROR(multicast_broadcaster_register_many(b, NAME, NULL, 1, NULL, NULL), INVALID_ARGUMENT);
  CHECK_EQ(notify(b, NAME), 0);
}

TEST_OF_BROADCASTER(broadcaster_unregister_context_takes_all_under_that_name) {
  multicast_add_options options = ADD_OPTIONS(.release = release_observer);
  observer mine = {0, 0}, other = {0, 0};
  multicast_delegate counted = {count_call, NULL};
  counted.context = &mine; /* another function with the same context */
  for (int i = 0; i < 3; ++i) observe_with(b, NAME, observing(&mine), &options);
  observe(b, NAME, counted);
  observe(b, NAME, observing(&other));
  observe(b, "Other", observing(&mine));
  CHECK_EQ(multicast_broadcaster_unregister_context(b, NAME, &mine), 4);
  CHECK_EQ(mine.releases, 3);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(notify(b, "Other"), 1);
  CHECK_EQ(multicast_broadcaster_unregister_context(b, NAME, &mine), 0);
  CHECK_EQ(multicast_broadcaster_unregister_context(b, NAME, NULL), 0);
  CHECK_EQ(multicast_broadcaster_unregister_context(b, "Unknown", &mine), 0);
  counted.context = NULL;
  CHECK_OK(multicast_token_pause(observe(b, NAME, counted)));
  CHECK_EQ(multicast_broadcaster_unregister_context(b, NAME, NULL), 1);
  CHECK_ERROR(multicast_broadcaster_unregister_context(b, "", &mine), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_broadcaster_unregister_context(b, NULL, &mine), INVALID_ARGUMENT);
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK_ERROR(multicast_broadcaster_unregister_context(b, NAME, &mine), INVALID_HANDLE);
}
