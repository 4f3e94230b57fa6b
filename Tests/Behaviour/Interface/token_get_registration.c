/* multicast_token_get_registration() returns the properties of a registration. */

#include "broadcasters.h"

static int called;

static multicast_registration get(multicast_token token) {
  multicast_registration r;
  memset(&r, 0xAB, sizeof r); /* the function must write every byte */
  r.struct_size = sizeof r;
  CHECK_OK(multicast_token_get_registration(token, &r));
  CHECK_EQ(r.struct_size, sizeof r);
  CHECK_EQ(r.token.id, token.id);
  CHECK(r.strong == NULL);
  return r;
}

TEST_OF_MULTICAST(token_get_of_a_plain_registration_has_the_defaults) {
  add(m, counter(&called));
  multicast_token token = add(m, counter(&called));
  add(m, counter(&called));
  multicast_registration r = get(token);
  CHECK_EQ(r.flags, 0);
  CHECK(r.label == NULL);
  CHECK_EQ(r.target.id, m.id);
  CHECK(r.delegate.function == count_call && r.delegate.context == &called);
  CHECK_EQ(r.priority, 0);
  CHECK(!r.is_paused);
  CHECK_EQ(r.events, 0);
  CHECK_EQ(r.lifetime.id, 0);
  CHECK_EQ(r.queue.id, 0);
}

/* Tests each option separately, because a registration stores only the options that differ from
 * their defaults. */
TEST_OF_MULTICAST(token_get_has_each_option_on_its_own) {
  multicast_lifetime lifetime = multicast_lifetime_create();
  multicast_queue queue = create_queue();
  for (int which = 0; which < 9; ++which) {
    multicast_add_options options = MULTICAST_ADD_OPTIONS_INIT;
    switch (which) {
      case 0: options.priority = INT32_MIN; break;
      case 1: options.priority = INT32_MAX; break;
      case 2: options.events = UINT64_C(1) << 63 | 5; break;
      case 3: options.lifetime = lifetime; break;
      case 4: options.queue = queue; break;
      case 5: options.flags = MULTICAST_ONCE; break;
      case 6: options.flags = MULTICAST_LATEST; break;
      case 7: options.flags = MULTICAST_UNIQUE; break;
      default:
        options.lock = lock_same;
        options.unlock = unlock_nothing;
    }
    uint32_t flags = options.flags & ~MULTICAST_UNIQUE;
    multicast_registration r = get(add_with(m, counter(&called), &options));
    CHECK_EQ(r.flags, flags);
    CHECK_EQ(r.target.id, m.id);
    CHECK(r.delegate.function == count_call && r.delegate.context == &called);
    CHECK_EQ(r.priority, options.priority);
    CHECK(!r.is_paused);
    CHECK_EQ(r.events, options.events);
    CHECK_EQ(r.lifetime.id, options.lifetime.id);
    CHECK_EQ(r.queue.id, options.queue.id);
  }
}

TEST_OF_MULTICAST(token_get_has_all_options_together) {
  multicast_add_options options = ADD_OPTIONS(.release = count_release, .label = "all");
  options.flags = MULTICAST_ONCE | MULTICAST_LATEST | MULTICAST_UNIQUE;
  options.priority = -12345;
  options.events = UINT64_MAX;
  options.lifetime = multicast_lifetime_create();
  options.queue = create_queue();
  options.lock = lock_same;
  options.unlock = unlock_nothing;
  multicast_token token = add_with(m, counter(&called), &options);
  CHECK_OK(multicast_token_pause(token));
  multicast_registration r = get(token);
  CHECK_EQ(r.flags, MULTICAST_ONCE | MULTICAST_LATEST);
  CHECK_EQ(r.target.id, m.id);
  CHECK(r.delegate.function == count_call && r.delegate.context == &called);
  CHECK_TEXT(r.label, "all");
  CHECK_EQ(r.priority, -12345);
  CHECK(r.is_paused);
  CHECK(r.events == UINT64_MAX);
  CHECK_EQ(r.lifetime.id, options.lifetime.id);
  CHECK_EQ(r.queue.id, options.queue.id);
  CHECK_OK(multicast_token_resume(token));
  CHECK(!get(token).is_paused);
}

TEST_OF_MULTICAST(token_get_follows_a_delegate_that_changes_its_place) {
  enum { COUNT = 100 };
  multicast_token tokens[COUNT];
  for (int32_t i = 0; i < COUNT; ++i) {
    tokens[i] = add_with(m, counter(&called), &ADD_OPTIONS(.priority = i * 37 % COUNT,
                                                           .events = (uint64_t)i + 1));
  }
  for (int32_t i = 0; i < COUNT; i += 3) CHECK_OK(multicast_token_remove(tokens[i]));
  for (int32_t i = 0; i < COUNT; ++i) {
    multicast_registration r = MULTICAST_REGISTRATION_INIT;
    if (i % 3 == 0) {
      CHECK_ERROR(multicast_token_get_registration(tokens[i], &r), INVALID_HANDLE);
    } else {
      r = get(tokens[i]);
      CHECK_EQ(r.priority, i * 37 % COUNT);
      CHECK_EQ(r.events, i + 1);
    }
  }
}

TEST(token_get_has_the_queue_of_the_broadcaster_if_used) {
  multicast_queue queue = create_queue(), other = create_queue();
  multicast_broadcaster b = create_on(queue);
  multicast_add_options options = ADD_OPTIONS(.queue = other);
  multicast_registration r = get(observe(b, NAME, counter(&called)));
  CHECK_EQ(r.queue.id, queue.id);
  CHECK_EQ(r.target.id, find(b, NAME).id);
  CHECK_EQ(get(observe_with(b, NAME, counter(&called), &options)).queue.id, other.id);
  CHECK_EQ(get(add(find(b, NAME), counter(&called))).queue.id, 0);
}

/* ---- Registrations that are not live --------------------------------------------------------- */

static void expect_not_read(multicast_token token) {
  multicast_registration r;
  unsigned char before[sizeof r];
  memset(&r, 0xAB, sizeof r);
  r.struct_size = (uint32_t)sizeof r;
  memcpy(before, &r, sizeof r);
  CHECK_ERROR(multicast_token_get_registration(token, &r), INVALID_HANDLE);
  CHECK(memcmp(&r, before, sizeof r) == 0);
}

static void get_in_its_call(void *context, uint32_t event, const void *payload, size_t size) {
  if (event == 0) {
    CHECK_EQ(get(multicast_token_current()).token.id, multicast_token_current().id);
  } else {
    CHECK_STATUS(multicast_token_remove(multicast_token_current()), MULTICAST_PENDING);
    expect_not_read(multicast_token_current());
  }
}

TEST_OF_MULTICAST(token_get_of_tokens_not_live_writes_nothing) {
  multicast_token none = MULTICAST_NONE, token = add(m, DELEGATE(get_in_its_call, NULL));
  expect_not_read(none);
  multicast_token kind = {m.id};
  expect_not_read(kind);
  kind.id = token.id ^ UINT64_C(1) << 63;
  expect_not_read(kind);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 1);
  expect_not_read(token);
  token = add(m, counter(&called));
  CHECK_OK(multicast_destroy(m));
  expect_not_read(token);
}

/* ---- While other threads change the registration --------------------------------------------- */

static bool is_done;
static multicast changing;
static multicast_token changing_token;

THREAD(change_all_the_time, void *unused) {
  while (!LOAD(is_done)) {
    multicast_add_options options = ADD_OPTIONS(.priority = 1, .events = 1,
                                                .queue = create_queue());
    multicast_token token = add_with(changing, counter(&called), &options);
    STORE(changing_token.id, token.id);
    CHECK_OK(multicast_token_pause(token));
    CHECK_OK(multicast_queue_destroy(options.queue));
  }
}

TEST(token_get_on_another_thread_reads_one_registration_or_none) {
  int read = 0;
  changing = multicast_create();
  pthread_t thread = start_thread(change_all_the_time, NULL);
  for (int i = 0; i < 20000 || read < 100; ++i) {
    multicast_registration r = MULTICAST_REGISTRATION_INIT;
    multicast_token token = {LOAD(changing_token.id)};
    if (multicast_token_get_registration(token, &r) != MULTICAST_OK) continue;
    ++read;
    CHECK_EQ(r.token.id, token.id);
    CHECK_EQ(r.target.id, changing.id);
    CHECK_EQ(r.priority, 1);
    CHECK_EQ(r.events, 1);
    CHECK(r.delegate.context == &called);
    if (i > 2000000) break;
  }
  STORE(is_done, true);
  join_thread(thread);
}
