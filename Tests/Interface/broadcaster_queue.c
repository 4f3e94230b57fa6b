/* The options of a broadcaster, and its queue for observers that name none. */

#include "broadcasters.h"

/* ---- Options --------------------------------------------------------------------------------- */

static void expect_none_created(const multicast_broadcaster_options *options) {
  CHECK_EQ(multicast_broadcaster_create(options).id, 0);
}

TEST(broadcaster_options_of_a_bad_struct_size_create_none) {
  multicast_broadcaster_options options = multicast_broadcaster_options_default();
  for (uint32_t size = 0; size < sizeof options; ++size) {
    options.struct_size = size;
    expect_none_created(&options);
  }
  options.struct_size = 1025;
  expect_none_created(&options);
  options.struct_size = UINT32_MAX;
  expect_none_created(&options);
}

TEST(broadcaster_options_of_newer_caller_are_fine_if_rest_is_zero) {
  struct {
    multicast_broadcaster_options known;
    uint64_t unknown[20];
  } newer;
  multicast_queue q = create_queue();
  memset(&newer, 0, sizeof newer);
  newer.known.struct_size = sizeof newer;
  newer.known.queue = q;
  multicast_broadcaster b = multicast_broadcaster_create(&newer.known);
  CHECK(b.id != 0);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  newer.unknown[19] = UINT64_C(1) << 56;
  expect_none_created(&newer.known);
}

TEST(broadcaster_options_with_flags_create_none) {
  for (int bit = 0; bit < 32; ++bit) {
    expect_none_created(&BROADCASTER_OPTIONS(.flags = 1u << bit));
  }
}

TEST(broadcaster_options_with_a_queue_that_is_none_create_none) {
  multicast_queue gone = create_queue(), kept = create_queue();
  CHECK_OK(multicast_queue_destroy(gone));
  multicast_broadcaster_options options = BROADCASTER_OPTIONS(.queue = gone);
  expect_none_created(&options);
  for (int bit = 0; bit < 64; ++bit) {
    options.queue.id = kept.id ^ (UINT64_C(1) << bit);
    expect_none_created(&options);
  }
  options.queue.id = multicast_create().id;
  expect_none_created(&options);
  options.queue.id = multicast_lifetime_create().id;
  expect_none_created(&options);
  options.queue.id = create().id;
  expect_none_created(&options);
  options.queue = kept;
  CHECK(multicast_broadcaster_create(&options).id != 0);
}

TEST(broadcaster_options_are_read_during_the_call_only) {
  multicast_queue q = create_queue();
  multicast_broadcaster_options options = BROADCASTER_OPTIONS(.queue = q);
  multicast_broadcaster b = multicast_broadcaster_create(&options);
  memset(&options, 0xFF, sizeof options);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
}

/* ---- The queue ------------------------------------------------------------------------------- */

TEST(broadcaster_queue_gets_the_calls_of_observers_that_name_none) {
  multicast_queue q = create_queue(), own = create_queue();
  multicast_broadcaster b = create_on(q);
  multicast_add_options options = multicast_add_options_default();
  int with_defaults = 0, with_options = 0, with_queue = 0;
  observe(b, NAME, counter(&with_defaults));
  observe_with(b, NAME, counter(&with_options), &options);
  options.queue = own;
  observe_with(b, NAME, counter(&with_queue), &options);
  CHECK_EQ(notify(b, NAME), 3);
  CHECK(with_defaults == 0 && with_options == 0 && with_queue == 0);
  CHECK_EQ(multicast_queue_run(own, 0), 1);
  CHECK(with_defaults == 0 && with_options == 0 && with_queue == 1);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK(with_defaults == 1 && with_options == 1 && with_queue == 1);
}

TEST(broadcaster_without_queue_queues_for_observers_with_one) {
  multicast_queue own = create_queue();
  multicast_broadcaster b = create();
  int direct = 0, queued = 0;
  observe(b, NAME, counter(&direct));
  observe_with(b, NAME, counter(&queued), &ADD_OPTIONS(.queue = own));
  CHECK_EQ(notify(b, NAME), 2);
  CHECK(direct == 1 && queued == 0);
  CHECK_EQ(multicast_queue_run(own, 0), 1);
  CHECK_EQ(queued, 1);
}

TEST(broadcaster_queue_is_not_for_adds_to_the_multicast) {
  multicast_queue q = create_queue();
  multicast_broadcaster b = create_on(q);
  int added = 0, registered = 0;
  add(find(b, NAME), counter(&added));
  observe(b, NAME, counter(&registered));
  CHECK_EQ(multicast_invoke(find(b, NAME), 0, NULL, 0), 2);
  CHECK(added == 1 && registered == 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(registered, 1);
}

TEST(broadcaster_queue_does_not_call_who_has_unregistered) {
  multicast_queue q = create_queue();
  multicast_broadcaster b = create_on(q);
  observer o = {0, 0};
  observe_with(b, NAME, observing(&o), &ADD_OPTIONS(.release = release_observer));
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 2);
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, observing(&o)));
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(o.calls == 0 && calls == 1);
}

static char payload_sent[] = "a payload";

TEST(broadcaster_queue_stays_and_makes_no_call_after_destroy) {
  multicast_queue q = create_queue();
  multicast_broadcaster b = create_on(q), next;
  observer o = {0, 0};
  observe_with(b, NAME, observing(&o), &ADD_OPTIONS(.release = release_observer));
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 0, payload_sent, sizeof payload_sent), 1);
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK(o.calls == 0 && o.releases == 1);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  next = create_on(q);
  observe(next, NAME, counter(&calls));
  CHECK_EQ(notify(next, NAME), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(o.calls == 0 && calls == 1);
}

static uint32_t last_event;
static char last_title[200];
static size_t last_size;

static void keep_title(void *context, uint32_t event, const void *payload, size_t size) {
  ADD(*(int *)context, 1);
  last_event = event;
  last_size = size;
  CHECK(size <= sizeof last_title);
  memcpy(last_title, payload, size);
}

TEST(broadcaster_queue_copies_the_payload) {
  multicast_queue q = create_queue();
  multicast_broadcaster b = create_on(q);
  char title[200], sent[200];
  memset(title, 't', sizeof title);
  memcpy(sent, title, sizeof title);
  observe(b, NAME, DELEGATE(keep_title, &calls));
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 7, title, sizeof title), 1);
  memset(title, 0, sizeof title);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(last_event == 7 && last_size == sizeof sent);
  CHECK(memcmp(last_title, sent, sizeof sent) == 0);
}

TEST(broadcaster_queue_keeps_newest_call_of_latest_observer) {
  multicast_queue q = create_queue();
  multicast_broadcaster b = create_on(q);
  observe_with(b, NAME, DELEGATE(keep_title, &calls), &ADD_OPTIONS(.flags = MULTICAST_LATEST));
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 1, "first", 6), 1);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 2, "second", 7), 1);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 3, "last", 5), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(calls, 1);
  CHECK_EQ(last_event, 3);
  CHECK_TEXT(last_title, "last");
}

TEST(broadcaster_with_a_destroyed_queue_needs_own_queues) {
  multicast_queue q = create_queue(), own = create_queue();
  multicast_broadcaster b = create_on(q);
  observer before = {0, 0}, after = {0, 0}, elsewhere = {0, 0};
  multicast_add_options options = ADD_OPTIONS(.release = release_observer);
  multicast_token token = {77};
  observe_with(b, NAME, observing(&before), &options);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK(before.calls == 0 && before.releases == 1);
  CHECK_EQ(notify(b, NAME), 0);
  CHECK_ERROR(multicast_broadcaster_register(b, NAME, observing(&after), &options, &token),
              INVALID_HANDLE);
  CHECK_EQ(token.id, 0);
  CHECK(after.calls == 0 && after.releases == 1);
  CHECK_ERROR(multicast_broadcaster_register(b, NAME, counter(&calls), NULL, NULL), INVALID_HANDLE);
  CHECK_ERROR(multicast_broadcaster_register(b, "New", counter(&calls), NULL, NULL),
              INVALID_HANDLE);
  options.queue = own;
  observe_with(b, NAME, observing(&elsewhere), &options);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(multicast_queue_run(own, 0), 1);
  CHECK_EQ(elsewhere.calls, 1);
  add(find(b, NAME), counter(&calls));
  CHECK_EQ(notify(b, NAME), 2);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK_EQ(elsewhere.releases, 1);
}

TEST(broadcaster_registers_none_with_a_destroyed_queue) {
  multicast_queue q = create_queue(), own = create_queue();
  multicast_broadcaster b = create_on(q);
  observer o = {0, 0};
  multicast_token token = {77};
  CHECK_OK(multicast_queue_destroy(own));
  multicast_add_options options = ADD_OPTIONS(.release = release_observer, .queue = own);
  CHECK_ERROR(multicast_broadcaster_register(b, NAME, observing(&o), &options, &token),
              INVALID_HANDLE);
  CHECK_EQ(token.id, 0);
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(notify(b, NAME), 0);
}
