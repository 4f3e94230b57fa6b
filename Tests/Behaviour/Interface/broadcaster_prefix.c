/* An observer of a prefix receives the notifications of all names that begin with the prefix. */

#include "handles.h"
#include "notes.h"
#include "queues.h"
#include "reports.h"
#include "transports.h"

/* ---- Observers that record the name ---------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards `named` */
static char named[1 << 12];

static void note_name(void *context, uint32_t event, const void *payload, size_t size) {
  const char *name = multicast_current_name();
  pthread_mutex_lock(&mutex);
  const size_t at = strlen(named);
  snprintf(named + at, sizeof named - at, "%s%s:%s", at == 0 ? "" : " ", (const char *)context,
           name == NULL ? "-" : name);
  pthread_mutex_unlock(&mutex);
}

static multicast_delegate naming(const char *mark) {
  return DELEGATE(note_name, (void *)(uintptr_t)mark);
}

static void expect_named(const char *text) {
  pthread_mutex_lock(&mutex);
  CHECK_TEXT(named, text);
  named[0] = 0;
  pthread_mutex_unlock(&mutex);
}

static multicast_token observe_prefix_with(multicast_broadcaster b, const char *prefix,
                                           multicast_delegate d,
                                           const multicast_add_options *options) {
  multicast_token token = {0};
  CHECK_OK(multicast_broadcaster_register_prefix(b, prefix, d, options, &token));
  CHECK(token.id != 0);
  return token;
}

static multicast_token observe_prefix(multicast_broadcaster b, const char *prefix,
                                      multicast_delegate d) {
  return observe_prefix_with(b, prefix, d, NULL);
}

/* ---- Names with a prefix --------------------------------------------------------------------- */

TEST_OF_BROADCASTER(prefix_observer_is_notified_of_names_that_begin_with_it) {
  observe(b, "door/front", counter(&calls));
  observe_prefix(b, "door/", naming("d"));
  CHECK_EQ(notify(b, "door/front"), 2);
  CHECK_EQ(notify(b, "door/new"), 1);
  CHECK_EQ(notify(b, "door/"), 1);
  CHECK_EQ(notify(b, "door"), 0);
  CHECK_EQ(notify(b, "doors/1"), 0);
  CHECK_EQ(notify(b, "window"), 0);
  expect_named("d:door/front d:door/new d:door/");
  CHECK_EQ(calls, 1);
}

TEST_OF_BROADCASTER(prefix_that_is_empty_stands_for_all_names) {
  observe_prefix(b, "", naming("all"));
  CHECK_EQ(notify(b, "a"), 1);
  CHECK_EQ(notify(b, "Other"), 1);
  expect_named("all:a all:Other");
}

TEST_OF_BROADCASTER(prefix_has_no_byte_with_a_special_meaning) {
  observe_prefix(b, "a*", naming("x"));
  CHECK_EQ(notify(b, "ab"), 0);
  CHECK_EQ(notify(b, "a*b"), 1);
  expect_named("x:a*b");
}

TEST_OF_BROADCASTER(prefix_of_each_length_is_found) {
  char text[LONGEST + 2];
  memset(text, 'n', sizeof text);
  for (int length = 0; length < LONGEST; ++length) {
    text[length] = 0;
    observe_prefix(b, text, counter(&calls));
    text[length] = 'n';
  }
  text[LONGEST] = 0;
  CHECK_EQ(notify(b, text), LONGEST);
  text[100] = 'x';
  CHECK_EQ(notify(b, text), 101);
  text[0] = 'x';
  CHECK_EQ(notify(b, text), 1);
}

TEST_OF_BROADCASTER(prefix_that_is_not_valid_is_refused_and_released) {
  char too_long[LONGEST + 1];
  observer o = {0, 0};
  multicast_add_options options = ADD_OPTIONS(.release = release_observer);
  multicast_broadcaster none = {0};
  multicast_token token = {77};
  memset(too_long, 'x', LONGEST);
  too_long[LONGEST] = 0;
  CHECK_ERROR(multicast_broadcaster_register_prefix(b, too_long, observing(&o), &options, &token),
              INVALID_ARGUMENT);
  CHECK_EQ(token.id, 0);
  CHECK_ERROR(multicast_broadcaster_register_prefix(b, NULL, observing(&o), &options, NULL),
              INVALID_ARGUMENT);
  CHECK_ERROR(multicast_broadcaster_register_prefix(none, "", observing(&o), &options, NULL),
              INVALID_HANDLE);
  CHECK_ERROR(multicast_broadcaster_register_prefix(b, "", DELEGATE(NULL, &o), &options, NULL),
              INVALID_ARGUMENT);
  CHECK_EQ(o.releases, 4);
  CHECK_EQ(notify(b, NAME), 0);
}

/* ---- Order ----------------------------------------------------------------------------------- */

TEST_OF_BROADCASTER(prefix_observers_are_called_from_the_longest_prefix) {
  observe_prefix(b, "", naming("all"));
  observe_prefix_with(b, "a", naming("a"), &ADD_OPTIONS(.priority = 100));
  observe_prefix(b, "a/b", naming("ab"));
  observe_prefix_with(b, "a/b", naming("first"), &ADD_OPTIONS(.priority = 1));
  observe_with(b, "a/b/c", naming("name"), &ADD_OPTIONS(.priority = -1));
  CHECK_EQ(notify(b, "a/b/c"), 5);
  expect_named("name:- first:a/b/c ab:a/b/c a:a/b/c all:a/b/c");
}

TEST_OF_BROADCASTER(prefix_observer_gets_event_payload_and_size) {
  static parcel kept;
  observe_prefix(b, "Up", keeping(&kept));
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 7, "payload", 8), 1);
  CHECK_EQ(kept.calls, 1);
  CHECK_TEXT((const char *)kept.bytes, "payload");
}

TEST_OF_BROADCASTER(prefix_observer_is_not_called_by_the_multicast_of_a_name) {
  observe_prefix(b, "", counter(&calls));
  CHECK_EQ(multicast_invoke(find(b, NAME), 0, NULL, 0), 0);
  CHECK_EQ(multicast_broadcaster_deliver(b, NAME, 0, NULL, 0), 1);
  CHECK_EQ(calls, 1);
}

FUNCTION(register_prefix_inside, multicast_broadcaster *b) {
  observe_prefix(*b, "Update", naming("x"));
}

TEST_OF_BROADCASTER(prefix_observer_added_by_an_observer_of_the_name_is_called) {
  observe(b, NAME, DELEGATE(register_prefix_inside, &b));
  observe_prefix(b, "", counter(&calls));
  CHECK_EQ(notify(b, NAME), 3);
  expect_named("x:" NAME);
}

/* ---- One registration ------------------------------------------------------------------------ */

TEST_OF_BROADCASTER(prefix_observer_is_removed_by_its_token_from_all_names) {
  observer o = {0, 0};
  multicast_token token =
      observe_prefix_with(b, "a", observing(&o), &ADD_OPTIONS(.release = release_observer));
  CHECK_EQ(notify(b, "a"), 1);
  CHECK_EQ(notify(b, "ab"), 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(notify(b, "a"), 0);
  CHECK_EQ(notify(b, "abc"), 0);
  CHECK_ERROR(multicast_token_remove(token), INVALID_HANDLE);
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(o.calls, 2);
}

TEST_OF_BROADCASTER(prefix_observer_keeps_the_options_of_an_add) {
  multicast_lifetime lifetime = multicast_lifetime_create();
  multicast_token token = observe_prefix(b, "a", naming("x"));
  CHECK_OK(multicast_token_pause(token));
  CHECK_EQ(notify(b, "a1"), 0);
  CHECK_OK(multicast_token_resume(token));
  CHECK_EQ(notify(b, "a2"), 1);
  observe_prefix_with(b, "a", naming("x"), &ADD_OPTIONS(.flags = MULTICAST_UNIQUE));
  CHECK(!multicast_token_is_valid(token));
  observe_prefix_with(b, "", naming("x"), &ADD_OPTIONS(.flags = MULTICAST_UNIQUE));
  CHECK_EQ(notify(b, "a3"), 2);
  observe_prefix_with(b, "b", naming("once"), &ADD_OPTIONS(.flags = MULTICAST_ONCE));
  observe_prefix_with(b, "b", naming("life"), &ADD_OPTIONS(.lifetime = lifetime));
  observe_prefix_with(b, "b", naming("event"), &ADD_OPTIONS(.events = 1 << 5));
  observe_prefix_with(b, "b", naming("dead"),
                      &ADD_OPTIONS(.lock = lock_dead, .unlock = unlock_nothing));
  named[0] = 0;
  CHECK_EQ(notify(b, "b1"), 3);
  expect_named("once:b1 life:b1 x:b1");
  CHECK_OK(multicast_lifetime_end(lifetime));
  CHECK_EQ(multicast_broadcaster_notify(b, "b2", 5, NULL, 0), 2);
  expect_named("event:b2 x:b2");
}

static multicast_token own;
static gate is_called = GATE_INIT, may_return = GATE_INIT;

static void wait_inside(void *context, uint32_t event, const void *payload, size_t size) {
  gate_open(&is_called);
  gate_wait(&may_return);
  CHECK_TEXT(multicast_current_name(), NAME);
  ADD(*(int *)context, 1);
}

THREAD(notify_the_shared, void *unused) { CHECK_EQ(notify(shared, NAME), 1); }

TEST(prefix_removal_waits_for_a_call_on_another_thread) {
  shared = create();
  own = observe_prefix(shared, "", DELEGATE(wait_inside, &calls));
  pthread_t caller = start_thread(notify_the_shared, NULL);
  gate_wait(&is_called);
  pthread_t opener = start_thread(open_after_a_while, &may_return);
  CHECK_OK(multicast_token_remove(own));
  CHECK_EQ(LOAD(calls), 1);
  join_thread(caller);
  join_thread(opener);
}

FUNCTION(remove_itself, observer *o) {
  CHECK_STATUS(multicast_token_remove(own), MULTICAST_PENDING);
  CHECK_EQ(o->releases, 0);
}

TEST_OF_BROADCASTER(prefix_observer_removes_itself) {
  observer o = {0, 0};
  own = observe_prefix_with(b, "", DELEGATE(remove_itself, &o),
                            &ADD_OPTIONS(.release = release_observer));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(notify(b, NAME), 0);
}

/* ---- The name -------------------------------------------------------------------------------- */

FUNCTION(notify_inside, multicast_broadcaster *other) {
  const char *name = multicast_current_name();
  CHECK(notify(*other, "inner") == 1);
  CHECK(multicast_current_name() == name);
  multicast m = multicast_create();
  CHECK_OK(multicast_add(m, naming("plain"), NULL, NULL));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  multicast_invocation how = MULTICAST_INVOCATION_INIT;
  CHECK_EQ(multicast_invoke_with(m, &how, NULL), 1);
  CHECK_OK(multicast_destroy(m));
  CHECK(multicast_current_name() == name);
}

TEST_OF_BROADCASTER(current_name_is_that_of_the_innermost_call) {
  multicast_broadcaster other = create();
  CHECK(multicast_current_name() == NULL);
  observe_prefix(other, "", naming("inner"));
  observe_prefix(b, "", DELEGATE(notify_inside, &other));
  observe_prefix(b, "", naming("outer"));
  CHECK_EQ(notify(b, "outer"), 2);
  CHECK(multicast_current_name() == NULL);
  expect_named("inner:inner plain:- plain:- outer:outer");
}

FUNCTION(end_thread_inside, int *count) {
  ++*count;
  pthread_exit(NULL);
}

THREAD(notify_and_end, void *unused) { notify(shared, NAME); }
THREAD(notify_plainly, void *unused) {
  multicast m = multicast_create();
  CHECK_OK(multicast_add(m, naming("plain"), NULL, NULL));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
}

TEST(current_name_ends_with_a_thread_that_ends_inside_the_call) {
  shared = create();
  own = observe_prefix(shared, "", DELEGATE(end_thread_inside, &calls));
  join_thread(start_thread(notify_and_end, NULL));
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_token_remove(own));
  on_another_thread(notify_plainly, NULL); /* reuses the ended thread's record */
  expect_named("plain:-");
}

/* ---- Queues ---------------------------------------------------------------------------------- */

TEST(prefix_observer_with_a_queue_gets_the_name_and_the_payload) {
  static parcel kept;
  static char large[4000];
  use_test_allocator();
  multicast_queue q = create_queue();
  multicast_broadcaster b = create_on(q);
  int64_t before;
  observe_prefix(b, "a", naming("x"));
  observe_prefix(b, "a", naming("y"));
  observe(b, "a/2", naming("name"));
  observe_prefix(b, "a/3", keeping(&kept));
  char name[] = "a/1";
  CHECK_EQ(notify(b, name), 2);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  expect_named("x:a/1 y:a/1");
  before = allocated_bytes;
  CHECK_EQ(notify(b, name), 2);
  strcpy(name, "???"); /* the name has been copied */
  CHECK_EQ(notify(b, "a/2"), 3);
  CHECK_EQ(multicast_queue_run(q, 0), 5);
  expect_named("x:a/1 y:a/1 name:- x:a/2 y:a/2");
  strcpy(large, "large");
  CHECK_EQ(multicast_broadcaster_notify(b, "a/3", 1, large, sizeof large), 3);
  memset(large, 0, sizeof large);
  CHECK_EQ(multicast_queue_run(q, 0), 3);
  CHECK_TEXT((const char *)kept.bytes, "large");
  CHECK_EQ(multicast_broadcaster_notify(b, "a/3", 1, "small", 6), 3);
  CHECK_EQ(multicast_queue_run(q, 0), 3);
  CHECK_TEXT((const char *)kept.bytes, "small");
  CHECK_EQ(multicast_broadcaster_notify(b, "a/3", 1, large, 0), 3);
  CHECK_EQ(multicast_queue_run(q, 0), 3);
  CHECK(kept.payload == large); /* a payload of size 0 is not copied */
  CHECK_EQ(notify(b, "a/4"), 2);
  CHECK_EQ(multicast_queue_clear(q), 2);
  CHECK_EQ(allocated_bytes, before);
}

TEST(prefix_observer_with_a_queue_is_refused_without_memory) {
  use_test_allocator();
  multicast_queue q = create_queue();
  multicast_broadcaster b = create();
  observe_prefix_with(b, "", naming("queued"), &ADD_OPTIONS(.queue = q));
  observe_prefix(b, "", naming("now"));
  CHECK_EQ(notify(b, "a"), 2);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  for (int after = 0; after < 2; ++after) {
    int64_t before = allocated_bytes;
    fail_after = after;
    CHECK_EQ(notify(b, "b"), 1);
    fail_after = -1;
    CHECK_EQ(multicast_queue_run(q, 0), 0);
    CHECK_EQ(allocated_bytes, before);
  }
  expect_named("now:a queued:a now:b now:b");
}

static void *run_the_queue(void *q) {
  multicast_queue queue = {*(uint64_t *)q};
  int left = 4;
  while (left > 0) {
    int64_t made = multicast_queue_run(queue, 0);
    CHECK(made >= 0);
    left -= (int)made;
    pause_ms(1);
  }
  return NULL;
}

static int owned_releases;
static void release_owned(const void *payload, size_t size) { ADD(owned_releases, 1); }

TEST(prefix_observers_share_a_payload_and_are_waited_for) {
  use_test_allocator();
  multicast_queue q = create_queue(), second = create_queue();
  multicast_broadcaster b = create();
  multicast_invocation how = MULTICAST_INVOCATION_INIT;
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  int64_t before = 0;
  observe_with(b, "a", naming("name"), &ADD_OPTIONS(.queue = q));
  observe_prefix_with(b, "a", naming("long"), &ADD_OPTIONS(.queue = q));
  observe_prefix_with(b, "", naming("short"), &ADD_OPTIONS(.queue = q));
  observe_prefix_with(b, "", naming("last"), &ADD_OPTIONS(.queue = q));
  observe_prefix(b, "", naming("now"));
  how.payload = "owned";
  how.size = 6;
  how.release = release_owned;
  how.flags = MULTICAST_WAIT;
  for (int round = 0; round < 3; ++round) {
    pthread_t thread = start_thread(run_the_queue, &q.id);
    CHECK_EQ(multicast_broadcaster_notify_with(b, "a", &how, &out), 5);
    join_thread(thread);
    CHECK_EQ(owned_releases, round + 1);
    CHECK_EQ(out.called, 1);
    CHECK_EQ(out.queued, 4);
    CHECK_EQ(out.finished, 4);
    CHECK_EQ(out.unfinished + out.refused, 0);
    if (round > 0) CHECK_EQ(allocated_bytes, before);
    before = allocated_bytes;
  }
  named[0] = 0;
  how.timeout_ns = 1;
  observe_prefix_with(b, "", naming("second"), &ADD_OPTIONS(.queue = second));
  before = allocated_bytes;
  CHECK_ERROR(multicast_broadcaster_notify_with(b, "a", &how, &out), TIMEOUT);
  CHECK_EQ(out.unfinished, 5);
  CHECK_EQ(multicast_queue_run(q, 0), 4);
  CHECK_EQ(multicast_queue_run(second, 0), 1);
  expect_named("now:a name:- long:a short:a last:a second:a");
  CHECK_EQ(owned_releases, 4);
  CHECK_EQ(allocated_bytes, before);
}

static int copies;
static const void *copy_payload(const void *payload, size_t size) {
  ++copies;
  return payload;
}

TEST_OF_BROADCASTER(prefix_observers_share_one_copy_of_the_payload) {
  multicast_queue q = create_queue();
  multicast_invocation how = MULTICAST_INVOCATION_INIT;
  observe_prefix_with(b, "a", naming("x"), &ADD_OPTIONS(.queue = q));
  observe_prefix_with(b, "", naming("y"), &ADD_OPTIONS(.queue = q));
  how.payload = "copied";
  how.copy = copy_payload;
  how.release = release_owned;
  CHECK_EQ(multicast_broadcaster_notify_with(b, "ab", &how, NULL), 2);
  CHECK_EQ(copies, 1);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_EQ(owned_releases, 1);
  expect_named("x:ab y:ab");
}

static const void *fail_to_copy(const void *payload, size_t size) {
  ++copies;
  return NULL;
}

TEST_OF_BROADCASTER(prefix_observers_do_not_call_a_copy_that_has_failed) {
  multicast_queue q = create_queue();
  multicast_invocation how = MULTICAST_INVOCATION_INIT;
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  observe_with(b, "a", naming("name"), &ADD_OPTIONS(.queue = q));
  observe_prefix_with(b, "", naming("x"), &ADD_OPTIONS(.queue = q));
  how.copy = fail_to_copy;
  CHECK_EQ(multicast_broadcaster_notify_with(b, "a", &how, &out), 0);
  CHECK_EQ(copies, 1);
  CHECK_EQ(out.refused, 2);
}

/* ---- Destroyed broadcasters ------------------------------------------------------------------ */

TEST(prefix_observers_end_with_the_broadcaster) {
  use_test_allocator();
  int64_t before = 0;
  for (int round = 0; round < 20; ++round) {
    observer o = {0, 0};
    multicast_add_options options = ADD_OPTIONS(.release = release_observer);
    multicast_queue q = create_queue();
    multicast_broadcaster b = create();
    for (int i = 0; i < 30; ++i) observe_prefix_with(b, numbered("p", i), observing(&o), &options);
    options.queue = q;
    observe_prefix_with(b, "", observing(&o), &options);
    CHECK_EQ(notify(b, "p.1"), 2);
    CHECK_OK(multicast_broadcaster_destroy(b));
    CHECK_EQ(o.releases, 31);
    CHECK_EQ(multicast_queue_run(q, 0), 0);
    CHECK_OK(multicast_queue_destroy(q));
    if (round == 10) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
  multicast_broadcaster next = create(); /* it reuses the slot */
  CHECK_EQ(notify(next, "p.1"), 0);
}

FUNCTION(destroy_the_broadcaster, multicast_broadcaster *b) {
  CHECK_STATUS(multicast_broadcaster_destroy(*b), MULTICAST_PENDING);
}

TEST_OF_BROADCASTER(prefix_observer_destroys_the_broadcaster) {
  observe_prefix(b, "a", DELEGATE(destroy_the_broadcaster, &b));
  observe_prefix(b, "", counter(&calls));
  CHECK_EQ(notify(b, "a"), 1);
  CHECK_EQ(calls, 0);
  CHECK_ERROR(notify(b, "a"), INVALID_HANDLE);
}

TEST_OF_BROADCASTER(prefix_is_registered_again_after_its_multicast_ended) {
  multicast_registration r = MULTICAST_REGISTRATION_INIT;
  CHECK_OK(multicast_token_get_registration(observe_prefix(b, "a", counter(&calls)), &r));
  CHECK_OK(multicast_destroy(r.target));
  CHECK_EQ(notify(b, "a"), 0);
  observe_prefix(b, "a", counter(&calls));
  CHECK_EQ(notify(b, "ab"), 1);
}

static void notify_in_child(void *unused) { CHECK_EQ(notify(shared, NAME), 1); }

FUNCTION(fork_inside, int *count) {
  in_child(notify_in_child, NULL);
  CHECK_TEXT(multicast_current_name(), NAME);
}

TEST(prefix_observers_in_the_child_of_a_fork) {
  shared = create();
  observe_prefix(shared, "Up", naming("x"));
  in_child(notify_in_child, NULL);
  observe(shared, "Other", DELEGATE(fork_inside, &calls));
  own = observe_prefix(shared, "", DELEGATE(call_nothing, NULL));
  CHECK_OK(multicast_token_remove(own));
  CHECK_EQ(notify(shared, NAME), 1);
}

/* ---- Reports --------------------------------------------------------------------------------- */

FUNCTION(note_dump, report *all) { dumped(all); }

TEST_OF_BROADCASTER(prefix_is_named_in_reports) {
  static report all;
  observe_prefix(b, "door/", DELEGATE(note_dump, &all));
  CHECK_EQ(notify(b, NAME), 0);
  CHECK_EQ(notify(b, "door/1"), 1);
  expect_line(all.text, "...\"door/*\"...");
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static multicast_broadcaster nested;

/* Notifies the same name inside its call, down to the last level of nesting. */
static void nest(void *context, uint32_t event, const void *payload, size_t size) {
  ADD(*(int *)context, 1);
  const bool is_last = event == 255;
  const int64_t result = multicast_broadcaster_notify(nested, "name", event + 1, NULL, 0);
  if (is_last) {
    CHECK_ERROR(result, LIMIT);
    /* The name "other" is observed only through the prefix. */
    CHECK_ERROR(multicast_broadcaster_notify(nested, "other", 1, NULL, 0), LIMIT);
  } else {
    CHECK_EQ(result, 2);
  }
}

TEST(prefix_observers_in_calls_nested_too_deep_are_limit) {
  int calls = 0, prefix_calls = 0;
  nested = multicast_broadcaster_create(NULL);
  CHECK_OK(multicast_broadcaster_register(nested, "name", DELEGATE(nest, &calls), NULL, NULL));
  observe_prefix(nested, "", DELEGATE(count_call, &prefix_calls));
  CHECK_EQ(multicast_broadcaster_notify(nested, "name", 0, NULL, 0), 2);
  CHECK_EQ(calls, 256);
  CHECK_EQ(prefix_calls, 256);
  CHECK_OK(multicast_broadcaster_destroy(nested));
}

/* ---- Transports ------------------------------------------------------------------------------ */

static wire it;

TEST_OF_BROADCASTER(transport_is_notified_of_prefixes) {
  multicast_token all = observe_prefix(b, "", counter(&calls));
  attach(b, &it);
  expect_notified(&it, "+*");
  multicast_token first = observe_prefix(b, "a", counter(&calls));
  observe(b, "a", counter(&calls));
  multicast_token second = observe_prefix(b, "a", counter(&calls));
  expect_notified(&it, "+a* +a");
  CHECK_EQ(notify(b, "a"), 4);
  expect_notified(&it, "!a");
  CHECK_EQ(multicast_broadcaster_deliver(b, "ab", 0, NULL, 0), 3);
  CHECK_OK(multicast_token_remove(first));
  CHECK_OK(multicast_token_remove(all));
  CHECK_OK(multicast_token_remove(second));
  expect_notified(&it, "-* -a*");
  it.status = MULTICAST_ERROR_QUEUE_FULL;
  CHECK_EQ(multicast_broadcaster_deliver(b, "ab", 0, NULL, 0), 0);
  observe_prefix(b, "a", counter(&calls));
  CHECK_ERROR(notify(b, "ab"), QUEUE_FULL);
}

TEST_OF_BROADCASTER(transport_that_knows_no_prefixes) {
  multicast_transport transport = transport_of(&it);
  observe_prefix(b, "a", counter(&calls));
  transport.flags = 0;
  CHECK_OK(multicast_broadcaster_attach(b, &transport));
  observe_prefix(b, "b", counter(&calls));
  expect_notified(&it, "");
  CHECK_EQ(notify(b, "a"), 1);
  expect_notified(&it, "!a");
}
