/* Queue handles that are null, stale, forged or of another kind. */

#include "notes.h"
#include "queues.h"

/* ---- Adds that fail -------------------------------------------------------------------------- */

TEST_OF_MULTICAST(queue_that_is_gone_keeps_unique_from_removing_the_old_one) {
  multicast_queue q = default_queue(), gone = default_queue();
  multicast_token token = {77};
  CHECK_OK(multicast_queue_destroy(gone));
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  multicast_add_options options = ADD_OPTIONS(.queue = gone, .flags = MULTICAST_UNIQUE,
                                              .release = count_release_of);
  CHECK_ERROR(multicast_add(m, noting('a'), &options, &token), INVALID_HANDLE);
  CHECK_EQ(token.id, 0);
  CHECK_EQ(releases['a'], 1);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
}

TEST_OF_MULTICAST(queue_that_is_gone_fails_an_add_many_and_releases_each) {
  multicast_queue gone = default_queue();
  multicast_delegate d[2];
  multicast_token tokens[2] = {{7}, {8}};
  d[0] = noting('a');
  d[1] = d[0];
  CHECK_OK(multicast_queue_destroy(gone));
  multicast_add_options options = ADD_OPTIONS(.queue = gone, .release = count_release_of);
  CHECK_ERROR(multicast_add_many(m, d, 2, &options, tokens), INVALID_HANDLE);
  CHECK(tokens[0].id == 0 && tokens[1].id == 0);
  CHECK_EQ(releases['a'], 2);
  CHECK_EQ(multicast_count(m), 0);
}

TEST_OF_QUEUE(queue_and_a_lifetime_that_has_ended_fail_an_add) {
  multicast_add_options options = ADD_OPTIONS(.queue = q, .lifetime = multicast_lifetime_create(),
                                              .release = count_release_of);
  CHECK_OK(multicast_lifetime_end(options.lifetime));
  CHECK_ERROR(multicast_add(m, noting('a'), &options, NULL), INVALID_HANDLE);
  CHECK_EQ(releases['a'], 1);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_EQ(releases['a'], 1);
}

TEST_OF_MULTICAST(queue_and_lifetime_both_refer_to_registration_until_one_goes) {
  for (int round = 0; round < 2; ++round) {
    multicast_queue q = default_queue();
    multicast_lifetime lifetime = multicast_lifetime_create();
    multicast_add_options options = ADD_OPTIONS(.queue = q, .lifetime = lifetime,
                                                .release = count_release_of);
    add_with(m, noting('a'), &options);
    CHECK_EQ(multicast_lifetime_count(lifetime), 1);
    invoke_number(m, 1);
    CHECK_OK(round == 0 ? multicast_queue_destroy(q) : multicast_lifetime_end(lifetime));
    CHECK_EQ(multicast_count(m), 0);
    CHECK_EQ(releases['a'], round + 1);
    if (round == 0) CHECK_EQ(multicast_lifetime_count(lifetime), 0);
    CHECK_OK(round == 1 ? multicast_queue_destroy(q) : multicast_lifetime_end(lifetime));
    CHECK_EQ(releases['a'], round + 1);
  }
}

/* ---- Handles --------------------------------------------------------------------------------- */

static void expect_no_queue(uint64_t id) {
  multicast m = multicast_create();
  multicast_queue_stats s = multicast_queue_stats_default();
  multicast_add_options options;
  multicast_broadcaster_options to_all = multicast_broadcaster_options_default();
  multicast_token token = {77};
  multicast_queue q = {id};
  CHECK_ERROR(multicast_queue_run(q, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_queue_run(q, 1), INVALID_HANDLE);
  CHECK_ERROR(multicast_queue_wait(q, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_queue_wait(q, UINT64_MAX), INVALID_HANDLE);
  CHECK_EQ(multicast_queue_fd(q), -1);
  CHECK_ERROR(multicast_queue_start(q), INVALID_HANDLE);
  CHECK_ERROR(multicast_queue_stop(q), INVALID_HANDLE);
  CHECK_ERROR(multicast_queue_get_stats(q, &s), INVALID_HANDLE);
  CHECK(multicast_queue_get_stats(q, NULL) < 0);
  CHECK_ERROR(multicast_queue_destroy(q), INVALID_HANDLE);
  if (id != 0) { /* 0 means no queue, and is valid */
    releases['r'] = 0;
    options = ADD_OPTIONS(.queue = q);
    options.release = count_release_of;
    CHECK_ERROR(multicast_add(m, noting('r'), &options, &token), INVALID_HANDLE);
    CHECK_EQ(token.id, 0);
    CHECK_EQ(releases['r'], 1);
    CHECK_EQ(multicast_count(m), 0);
    to_all.queue = q;
    CHECK_EQ(multicast_broadcaster_create(&to_all).id, 0);
  }
  CHECK_OK(multicast_destroy(m));
}

TEST(queue_handle_of_0_is_invalid_before_anything_exists) {
  multicast_queue none = {0};
  multicast_queue_stats s = multicast_queue_stats_default();
  CHECK_EQ(multicast_queue_fd(none), -1);
  CHECK_ERROR(multicast_queue_run(none, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_queue_wait(none, UINT64_MAX), INVALID_HANDLE);
  CHECK_ERROR(multicast_queue_start(none), INVALID_HANDLE);
  CHECK_ERROR(multicast_queue_stop(none), INVALID_HANDLE);
  CHECK_ERROR(multicast_queue_get_stats(none, &s), INVALID_HANDLE);
  CHECK_ERROR(multicast_queue_destroy(none), INVALID_HANDLE);
}

TEST(queue_handle_of_0_is_invalid) {
  default_queue();
  expect_no_queue(0);
}

TEST_OF_MULTICAST(queue_handle_is_invalid_though_its_slot_is_used_again) {
  multicast_queue old = default_queue(), fresh;
  multicast_token token = add_queued(m, noting('a'), old);
  CHECK_OK(multicast_queue_destroy(old));
  expect_no_queue(old.id);
  CHECK(!multicast_token_is_live(token));
  fresh = default_queue();
  CHECK(fresh.id != old.id);
  add_queued(m, noting('b'), fresh);
  invoke_number(m, 1);
  expect_no_queue(old.id);
  CHECK_NOTED(multicast_queue_run(fresh, 0), 1, "b1");
}

TEST_OF_QUEUE(queue_handles_of_another_kind_are_invalid) {
  multicast_token token = add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  expect_no_queue(m.id);
  expect_no_queue(token.id);
  expect_no_queue(multicast_lifetime_create().id);
  expect_no_queue(multicast_broadcaster_create(NULL).id);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
}

TEST_OF_MULTICAST(queue_handles_that_are_forged_are_invalid) {
  multicast_queue gone = default_queue(), q = default_queue();
  uint64_t random = UINT64_C(0x9E3779B97F4A7C15);
  CHECK_OK(multicast_queue_destroy(gone)); /* leaves a vacant slot */
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  expect_no_queue(UINT64_MAX);
  for (int bit = 0; bit < 64; ++bit) {
    expect_no_queue(q.id ^ UINT64_C(1) << bit);
    if ((gone.id ^ UINT64_C(1) << bit) != q.id) expect_no_queue(gone.id ^ UINT64_C(1) << bit);
    expect_no_queue(UINT64_C(1) << bit);
  }
  for (int i = 0; i < 2000; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    if (random != q.id) expect_no_queue(random);
    if ((random & ~UINT64_C(0xFFF)) + (uint64_t)i != q.id)
      expect_no_queue((random & ~UINT64_C(0xFFF)) + (uint64_t)i);
  }
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "a1");
}

/* Calls every function of the other groups. */
static void expect_nothing_but_a_queue(uint64_t id) {
  multicast m, out_of = multicast_create();
  multicast_token token, out;
  multicast_lifetime lifetime;
  multicast_broadcaster broadcaster;
  multicast_delegate d = noting('r'), listed[1];
  int number = 1;
  m.id = token.id = lifetime.id = broadcaster.id = id;
  CHECK(!multicast_is_valid(m));
  CHECK(!multicast_contains(m, d));
  CHECK_ERROR(multicast_destroy(m), INVALID_HANDLE);
  CHECK_ERROR(multicast_add(m, d, NULL, &out), INVALID_HANDLE);
  CHECK_ERROR(multicast_add_many(m, &d, 1, NULL, &out), INVALID_HANDLE);
  CHECK_ERROR(multicast_remove(m, d), INVALID_HANDLE);
  CHECK_ERROR(multicast_remove_many(m, &d, 1), INVALID_HANDLE);
  CHECK_ERROR(multicast_remove_context(m, NULL), INVALID_HANDLE);
  CHECK_ERROR(multicast_remove_at(m, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_remove_all(m), INVALID_HANDLE);
  CHECK_ERROR(multicast_count(m), INVALID_HANDLE);
  CHECK_ERROR(multicast_list(m, listed, 1), INVALID_HANDLE);
  CHECK_ERROR(multicast_invoke(m, 0, NULL, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_visit(m, visit_all, &number), INVALID_HANDLE);
  CHECK(!multicast_token_is_live(token));
  CHECK_ERROR(multicast_token_remove(token), INVALID_HANDLE);
  CHECK_ERROR(multicast_token_remove_nowait(token), INVALID_HANDLE);
  CHECK_ERROR(multicast_token_remove_within(token, UINT64_MAX), INVALID_HANDLE);
  CHECK_ERROR(multicast_token_pause(token), INVALID_HANDLE);
  CHECK_ERROR(multicast_token_resume(token), INVALID_HANDLE);
  CHECK_ERROR(multicast_lifetime_count(lifetime), INVALID_HANDLE);
  CHECK_ERROR(multicast_lifetime_end(lifetime), INVALID_HANDLE);
  CHECK_ERROR(multicast_broadcaster_notify(broadcaster, "x", 0, NULL, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_broadcaster_register(broadcaster, "x", d, NULL, &out), INVALID_HANDLE);
  CHECK_ERROR(multicast_broadcaster_unregister(broadcaster, "x", d), INVALID_HANDLE);
  CHECK_ERROR(multicast_broadcaster_unregister_all(broadcaster, "x"), INVALID_HANDLE);
  CHECK_EQ(multicast_broadcaster_multicast(broadcaster, "x").id, 0);
  CHECK_ERROR(multicast_broadcaster_destroy(broadcaster), INVALID_HANDLE);
  releases['r'] = 0;
  multicast_add_options options = ADD_OPTIONS(.release = count_release_of, .lifetime = lifetime);
  CHECK_ERROR(multicast_add(out_of, d, &options, NULL), INVALID_HANDLE);
  CHECK_EQ(releases['r'], 1);
  CHECK_OK(multicast_destroy(out_of));
}

TEST_OF_QUEUE(queue_handles_are_invalid_as_handles_of_another_kind) {
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  expect_nothing_but_a_queue(q.id);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_OK(multicast_queue_destroy(q));
  expect_nothing_but_a_queue(q.id);
}

TEST_OF_QUEUE(queue_has_nothing_that_a_forged_handle_could_lead_to) {
  /* Nothing that the library keeps for a queue can be reached: tries every kind in every slot. */
  multicast_token token = add_queued(m, noting('a'), q);
  uint64_t id;
  invoke_number(m, 1);
  for (uint64_t kind = 0; kind < 16; ++kind) {
    for (uint64_t index = 0; index < 64; ++index) {
      for (uint64_t generation = 0; generation < 8; ++generation) {
        id = (generation << 30) | kind << 26 | index;
        if (id == 0 || id == q.id || id == m.id || id == token.id) continue;
        expect_nothing_but_a_queue(id);
        expect_no_queue(id);
      }
    }
  }
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "a1");
}
