/* Tests how multicasts with policies are created, and checks that they behave like other multicasts
 * wherever their policy does not matter. */

#include "handles.h"
#include "policies.h"
#include "queues.h"

static void expect_refused(const multicast_create_options *options, multicast_status status) {
  CHECK_EQ(multicast_create_with(options).id, 0);
  CHECK_STATUS(multicast_create_error(), status);
}

static void release_it(void *context) { (void)context; }

TEST(create_with_defaults_or_null_is_as_create) {
  multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  multicast m = multicast_create_with(NULL), n = multicast_create_with(&options);
  CHECK(multicast_is_valid(m) && multicast_is_valid(n));
  add(m, counter(&calls));
  add(n, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(n, 0, NULL, 0), 1);
  CHECK_OK(multicast_destroy(m));
  CHECK_OK(multicast_destroy(n));
}

TEST(create_with_invalid_options_is_invalid_argument) {
  multicast_create_options options;
  for (int bit = 1; bit < 32; ++bit) {
    options = multicast_create_options_default();
    options.flags = 1u << bit;
    expect_refused(&options, MULTICAST_ERROR_INVALID_ARGUMENT);
  }
  options = multicast_create_options_default();
  options.reentry = MULTICAST_REENTRY_LATEST + 1;
  expect_refused(&options, MULTICAST_ERROR_INVALID_ARGUMENT);
  options.reentry = UINT32_MAX;
  expect_refused(&options, MULTICAST_ERROR_INVALID_ARGUMENT);
  options = multicast_create_options_default();
  options.lock_context = lock_same;
  expect_refused(&options, MULTICAST_ERROR_INVALID_ARGUMENT);
  options.lock_context = NULL;
  options.unlock_context = unlock_nothing;
  expect_refused(&options, MULTICAST_ERROR_INVALID_ARGUMENT);
}

TEST(create_with_a_label_of_any_length) {
  multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  char label[256];
  for (size_t length = 0; length < sizeof label; length += 51) {
    memset(label, 'x', length);
    label[length] = '\0';
    options.label = label;
    multicast m = multicast_create_with(&options);
    memset(label, 'y', sizeof label); /* the label has been copied */
    add(m, counter(&calls));
    CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
    CHECK_OK(multicast_destroy(m));
  }
  CHECK_EQ(calls, 6);
}

/* Returns options with only one policy. Each policy is tested separately. */
static multicast_create_options policy(int which) {
  multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  if (which == 0) options.reentry = MULTICAST_REENTRY_REFUSE;
  if (which == 1) options.reentry = MULTICAST_REENTRY_DEFER;
  if (which == 2) options.reentry = MULTICAST_REENTRY_LATEST;
  if (which == 3) options.label = "";
  if (which == 4) options.release_context = release_it;
  if (which == 5) {
    options.lock_context = lock_same;
    options.unlock_context = unlock_nothing;
  }
  return options;
}
enum { POLICIES = 6 };

TEST(multicast_with_policies_is_like_any_other) {
  for (int which = 0; which < POLICIES; ++which) {
    multicast_create_options options = policy(which);
    multicast m = multicast_create_with(&options), stale = m;
    multicast_delegate delegates[3], listed[4];
    multicast_token tokens[3];
    multicast_queue q = default_queue();
    multicast_registration r = MULTICAST_REGISTRATION_INIT;
    noted_length = 0;
    noted[0] = '\0';
    CHECK(multicast_is_valid(m));
    CHECK_EQ(multicast_count(m), 0);
    CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
    delegates[0] = noting('a');
    delegates[1] = noting('b');
    delegates[2] = noting('c');
    CHECK_OK(multicast_add_many(m, delegates, 3, NULL, tokens));
    add_with(m, noting('p'), &ADD_OPTIONS(.priority = 1));
    add_queued(m, noting('q'), q);
    CHECK_EQ(multicast_count(m), 5);
    CHECK(multicast_contains(m, delegates[2]));
    CHECK_EQ(multicast_list(m, listed, 4), 5);
    CHECK_OK(multicast_token_get_registration(tokens[1], &r));
    CHECK_EQ(r.target.id, m.id);
    CHECK_NOTED(multicast_invoke(m, 1, NULL, 0), 5, "p@1 a@1 b@1 c@1");
    CHECK_EQ(multicast_queue_run(q, 0), 1);
    CHECK_OK(multicast_token_pause(tokens[0]));
    CHECK_OK(multicast_remove(m, delegates[1]));
    CHECK_NOTED(multicast_invoke(m, 2, NULL, 0), 3, "p@1 a@1 b@1 c@1 q@1 p@2 c@2");
    CHECK_EQ(multicast_token_invoke(tokens[2], 3, NULL, 0), 1);
    CHECK_TEXT(noted, "p@1 a@1 b@1 c@1 q@1 p@2 c@2 c@3");
    CHECK_EQ(multicast_invoke(m, 0, NULL, 1), MULTICAST_ERROR_INVALID_ARGUMENT);
    CHECK_OK(multicast_queue_destroy(q));
    CHECK_EQ(multicast_remove_all(m), 3);
    CHECK_OK(multicast_destroy(m));
    expect_nothing(stale.id);
    expect_nothing(tokens[0].id);
  }
}

/* A multicast without policies can reuse the slot of a multicast with policies, and vice versa. */
TEST(slots_are_reused_with_and_without_policies) {
  for (int i = 0; i < 4000; ++i) {
    multicast_create_options options = policy(i % POLICIES);
    multicast m = i % 3 == 0 ? multicast_create() : multicast_create_with(&options);
    add(m, counter(&calls));
    CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
    CHECK_OK(multicast_destroy(m));
  }
  CHECK_EQ(calls, 4000);
}
