/* Tests which notifications transports publish, and to which names they subscribe. */

#include "handles.h"
#include "notes.h"
#include "queues.h"
#include "transports.h"

static wire it;

/* ---- Publishing ------------------------------------------------------------------------------ */

static void expect_observer_called(wire *w) {
  CHECK_EQ(calls, 1);
}

TEST_OF_BROADCASTER(transport_publishes_when_the_observers_were_notified) {
  static const char payload[] = "six bytes";
  attach(b, &it);
  observe(b, NAME, counter(&calls));
  expect_notified(&it, "+" NAME);
  it.inside = expect_observer_called;
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 77, payload, 3), 1);
  expect_notified(&it, "!" NAME);
  CHECK_EQ(it.event, 77);
  CHECK(it.payload == payload && it.size == 3);
  CHECK(pthread_equal(it.thread, pthread_self()));
}

TEST_OF_BROADCASTER(transport_publishes_names_that_have_no_observers) {
  attach(b, &it);
  CHECK_EQ(notify(b, NAME), 0);
  expect_notified(&it, "!" NAME);
  CHECK_OK(multicast_token_remove(observe(b, NAME, counter(&calls))));
  expect_notified(&it, "+" NAME " -" NAME);
  CHECK_EQ(notify(b, NAME), 0);
  expect_notified(&it, "!" NAME);
  CHECK_OK(multicast_destroy(find(b, NAME)));
  CHECK_EQ(notify(b, NAME), 0);
  expect_notified(&it, "!" NAME);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 1, NULL, 0), 0);
  CHECK(it.payload == NULL && it.size == 0);
}

TEST_OF_BROADCASTER(transport_failure_is_the_result_of_notify) {
  attach(b, &it);
  observe(b, NAME, counter(&calls));
  it.status = MULTICAST_ERROR_QUEUE_FULL;
  CHECK_ERROR(notify(b, NAME), QUEUE_FULL);
  CHECK_ERROR(notify(b, "Other"), QUEUE_FULL);
  it.status = MULTICAST_ERROR_INVALID_HANDLE;
  CHECK_ERROR(notify(b, NAME), INVALID_HANDLE);
  it.status = MULTICAST_PENDING;
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(calls, 3);
}

TEST(transport_publishes_nothing_that_is_not_valid) {
  multicast_broadcaster b = create(), none = {0};
  char too_long[LONGEST + 2];
  multicast_invocation how = multicast_invocation_default();
  attach(b, &it);
  memset(too_long, 'x', sizeof too_long - 1);
  too_long[LONGEST + 1] = 0;
  CHECK_ERROR(notify(none, NAME), INVALID_HANDLE);
  CHECK_ERROR(notify(b, NULL), INVALID_ARGUMENT);
  CHECK_ERROR(notify(b, ""), INVALID_ARGUMENT);
  CHECK_ERROR(notify(b, too_long), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_broadcaster_notify(b, NAME, 1, NULL, 2), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_broadcaster_notify_with(b, NAME, NULL, NULL), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_broadcaster_notify_with(b, "", &how, NULL), INVALID_ARGUMENT);
  how.size = 1;
  CHECK_ERROR(multicast_broadcaster_notify_with(b, NAME, &how, NULL), INVALID_ARGUMENT);
  expect_notified(&it, "");
  too_long[LONGEST] = 0;
  CHECK_EQ(notify(b, too_long), 0);
  CHECK_EQ(it.length, LONGEST + 1);
}

static multicast_broadcaster nested;
static int64_t innermost;
static void notify_again(wire *w) {
  int64_t result = notify(nested, NAME);
  if (result < 0) innermost = result;
}

TEST(transport_that_notifies_inside_is_called_until_the_limit) {
  nested = create();
  attach(nested, &it);
  it.inside = notify_again;
  CHECK_EQ(notify(nested, NAME), 0);
  CHECK_ERROR(innermost, LIMIT);
}

/* ---- Delivering ------------------------------------------------------------------------------ */

TEST_OF_BROADCASTER(deliver_notifies_the_observers_and_publishes_nothing) {
  parcel p = {0};
  attach(b, &it);
  CHECK_EQ(multicast_broadcaster_deliver(b, NAME, 0, NULL, 0), 0);
  observe(b, NAME, keeping(&p));
  observe(b, NAME, counter(&calls));
  expect_notified(&it, "+" NAME);
  CHECK_EQ(multicast_broadcaster_deliver(b, NAME, 9, "abc", 3), 2);
  CHECK(p.calls == 1 && p.size == 3 && memcmp(p.bytes, "abc", 3) == 0);
  expect_notified(&it, "");
  detach(b);
  CHECK_EQ(multicast_broadcaster_deliver(b, NAME, 9, "abc", 3), 2);
}

TEST(deliver_queues_calls_as_notify_does) {
  multicast_queue q = create_queue();
  multicast_broadcaster b = create_on(q);
  parcel p = {0};
  char large[100] = "copied";
  observe(b, NAME, keeping(&p));
  CHECK_EQ(multicast_broadcaster_deliver(b, NAME, 9, large, sizeof large), 1);
  large[0] = 'X';
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(p.size == sizeof large && memcmp(p.bytes, "copied", 6) == 0);
}

TEST(deliver_refuses_what_notify_refuses) {
  multicast_broadcaster b = create(), none = {0};
  CHECK_ERROR(multicast_broadcaster_deliver(none, NAME, 0, NULL, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_broadcaster_deliver(b, NULL, 0, NULL, 0), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_broadcaster_deliver(b, "", 0, NULL, 0), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_broadcaster_deliver(b, NAME, 0, NULL, 1), INVALID_ARGUMENT);
  CHECK_OK(multicast_destroy(find(b, NAME)));
  CHECK_EQ(multicast_broadcaster_deliver(b, NAME, 0, NULL, 0), 0);
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK_ERROR(multicast_broadcaster_deliver(b, NAME, 0, NULL, 0), INVALID_HANDLE);
}

/* ---- Notifications of names with observers --------------------------------------------------- */

static multicast_broadcaster heard;
static multicast_lifetime life;
static multicast_queue queue;

static bool pass_registration(void *context, const multicast_registration *registration) {
  return true;
}

/* Each function come*() adds observers in a different way, and each function go*() removes all
 * observers in a different way. */
static void come(void) { observe(heard, NAME, counter(&calls)); }
static void come_directly(void) { add(find(heard, NAME), counter(&calls)); }
static void come_together(void) {
  multicast_delegate d[2];
  d[0] = d[1] = counter(&calls);
  CHECK_OK(multicast_broadcaster_register_many(heard, NAME, d, 2, NULL, NULL));
}
static void come_once(void) {
  observe_with(heard, NAME, counter(&calls), &ADD_OPTIONS(.flags = MULTICAST_ONCE));
}
static void come_dead(void) {
  multicast_add_options options = ADD_OPTIONS(.lock = lock_dead, .unlock = unlock_nothing);
  observe_with(heard, NAME, counter(&calls), &options);
}
static void come_for_life(void) {
  life = multicast_lifetime_create();
  observe_with(heard, NAME, counter(&calls), &ADD_OPTIONS(.lifetime = life));
}
static void come_queued(void) {
  queue = create_queue();
  observe_with(heard, NAME, counter(&calls), &ADD_OPTIONS(.queue = queue));
}

static void go_unregistered(void) {
  multicast_broadcaster_unregister(heard, NAME, counter(&calls));
  multicast_broadcaster_unregister(heard, NAME, counter(&calls));
}
static void go_all(void) { CHECK(multicast_broadcaster_unregister_all(heard, NAME) > 0); }
static void go_context(void) {
  CHECK(multicast_broadcaster_unregister_context(heard, NAME, &calls) > 0);
}
static void go_directly(void) {
  CHECK_OK(multicast_remove_every(find(heard, NAME), counter(&calls)));
}
static void go_at(void) {
  multicast m = find(heard, NAME);
  while (multicast_count(m) > 0) CHECK_OK(multicast_remove_at(m, 0));
}
static void go_called(void) { CHECK_EQ(multicast_invoke(find(heard, NAME), 0, NULL, 0), 1); }
static void go_found_dead(void) { CHECK_EQ(multicast_invoke(find(heard, NAME), 0, NULL, 0), 0); }
static void go_pruned(void) { CHECK_EQ(multicast_prune(find(heard, NAME)), 1); }
static void go_enumerated(void) {
  CHECK_EQ(multicast_enumerate(find(heard, NAME), pass_registration, NULL), 0);
}
static void go_with_life(void) { CHECK_OK(multicast_lifetime_end(life)); }
static void go_with_queue(void) { CHECK_OK(multicast_queue_destroy(queue)); }
static void go_with_multicast(void) { CHECK_OK(multicast_destroy(find(heard, NAME))); }

typedef struct way {
  void (*come)(void);
  void (*go)(void);
} way;

static const way ways[] = {
    {come, go_unregistered},       {come, go_all},           {come, go_context},
    {come, go_directly},           {come, go_at},            {come_directly, go_unregistered},
    {come_directly, go_directly},  {come_together, go_unregistered},
    {come_together, go_at},        {come_once, go_called},   {come_dead, go_found_dead},
    {come_dead, go_pruned},        {come_dead, go_enumerated},
    {come_for_life, go_with_life}, {come_queued, go_with_queue},
    {come, go_with_multicast},     {come_directly, go_with_multicast}};
enum { WAYS = sizeof ways / sizeof *ways };

/* Tests every pair of ways by adding and removing observers first in one way, and then in the
 * other. */
static void expect_all_notified(void) {
  for (int first = 0; first < WAYS; ++first) {
    for (int second = 0; second < WAYS; ++second) {
      /* Skip this pair, because the first way has destroyed the multicast to which the second way
       * would add a delegate. */
      if (ways[first].go == go_with_multicast && ways[second].come == come_directly) continue;
      ways[first].come();
      expect_notified(&it, "+" NAME);
      ways[first].go();
      expect_notified(&it, "-" NAME);
      ways[second].come();
      expect_notified(&it, "+" NAME);
      ways[second].go();
      expect_notified(&it, "-" NAME);
      come();
      expect_notified(&it, "+" NAME);
      go_all();
      expect_notified(&it, "-" NAME);
    }
  }
}

/* Runs the body of a test, with a broadcaster `heard` that has the transport `it`. */
static void hear(void (*body)(void)) {
  heard = create();
  attach(heard, &it);
  body();
}

#define TEST_OF_HEARD(NAME)                                                    \
  static void NAME##_of(void);                                                 \
  TEST(NAME) { hear(NAME##_of); }                                              \
  static void NAME##_of(void)

TEST_OF_HEARD(transport_is_notified_of_the_first_observer_and_of_the_last) {
  expect_all_notified();
}

TEST_OF_HEARD(transport_is_notified_of_add_to_name_without_observers) {
  come_directly();
  expect_notified(&it, "+" NAME);
}

TEST(transport_is_notified_of_names_that_are_older_than_itself) {
  heard = create();
  come();
  go_all();
  attach(heard, &it);
  expect_notified(&it, "");
  expect_all_notified();
}

TEST(transport_is_notified_of_registrations_older_than_itself) {
  for (int i = 0; i < WAYS; ++i) {
    heard = create();
    ways[i].come();
    attach(heard, &it);
    expect_notified(&it, "+" NAME);
    ways[i].go();
    expect_notified(&it, "-" NAME);
    CHECK_OK(multicast_broadcaster_destroy(heard));
    CHECK_EQ(it.releases, 1);
  }
}

TEST_OF_HEARD(transport_is_notified_of_a_removal_by_token) {
  multicast_token older = observe(heard, NAME, counter(&calls));
  multicast_token newer = observe(heard, NAME, counter(&calls));
  CHECK_OK(multicast_token_remove(older));
  expect_notified(&it, "+" NAME);
  CHECK_OK(multicast_token_remove_nowait(newer));
  expect_notified(&it, "-" NAME);
}

TEST_OF_HEARD(transport_is_notified_of_first_and_last_of_many_observers) {
  int i;
  for (i = 0; i < 100; ++i) come();
  expect_notified(&it, "+" NAME);
  for (i = 0; i < 99; ++i) CHECK_OK(multicast_broadcaster_unregister(heard, NAME, counter(&calls)));
  expect_notified(&it, "");
  go_unregistered();
  expect_notified(&it, "-" NAME);
}

TEST_OF_HEARD(transport_is_notified_on_the_thread_that_has_caused_it) {
  come();
  CHECK(pthread_equal(it.thread, pthread_self()));
}

TEST(transport_without_functions_for_names_is_not_notified) {
  multicast_transport transport = transport_of(&it);
  transport.subscribe = NULL;
  transport.unsubscribe = NULL;
  transport.release = NULL;
  heard = create();
  CHECK_OK(multicast_broadcaster_attach(heard, &transport));
  come();
  go_all();
  CHECK_EQ(notify(heard, NAME), 0);
  expect_notified(&it, "!" NAME);
  CHECK_OK(multicast_broadcaster_destroy(heard));
}

/* Expects at least one notification that the name has its first observer. There may be several such
 * notifications, because a transport that refuses a name may be notified repeatedly. */
static void expect_notified_again(void) {
  const char *again = "+" NAME " ";
  while (strncmp(it.told, again, strlen(again)) == 0) {
    memmove(it.told, it.told + strlen(again), strlen(it.told) + 1 - strlen(again));
  }
  expect_notified(&it, "+" NAME);
}

TEST(transport_that_refuses_a_name_is_notified_again) {
  heard = create();
  come();
  attach(heard, &it);
  go_all();
  expect_notified(&it, "+" NAME " -" NAME);
  it.status = MULTICAST_ERROR_OUT_OF_MEMORY;
  come();
  expect_notified_again();
  come();
  expect_notified_again();
  it.status = MULTICAST_OK;
  CHECK_OK(multicast_broadcaster_unregister(heard, NAME, counter(&calls)));
  expect_notified(&it, "+" NAME);
  go_all();
  expect_notified(&it, "-" NAME);
  it.status = MULTICAST_ERROR_STATE;
  come();
  expect_notified_again();
  go_all(); /* the refused name was never subscribed */
  expect_notified(&it, "");
}

TEST_OF_HEARD(transport_that_refuses_a_name_is_notified_of_each_observer) {
  it.status = MULTICAST_ERROR_STATE;
  come();
  expect_notified_again();
  multicast m = find(heard, NAME);
  for (int i = 0; i < 20; ++i) {
    add(m, counter(&calls));
    expect_notified_again();
  }
  it.status = MULTICAST_OK;
  add(m, counter(&calls));
  expect_notified(&it, "+" NAME);
  add(m, counter(&calls));
  expect_notified(&it, "");
}

TEST_OF_HEARD(transport_that_refuses_a_name_leaves_order_of_observers) {
  char text[8] = "";
  letter letters[] = {{text, 'a'}, {text, 'b'}, {text, 'c'}, {text, 'd'}, {text, 'e'}, {text, 'f'}};
  int priorities[] = {1, 0, 0, 2, -1, 0};
  multicast_add_options options = multicast_add_options_default();
  it.status = MULTICAST_ERROR_STATE;
  multicast m = find(heard, NAME);
  for (int i = 0; i < 6; ++i) {
    options.priority = priorities[i];
    add_with(m, writer(&letters[i]), &options);
  }
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 6);
  CHECK_TEXT(text, "dabcfe");
}

static wire taking;
static void go_at_refusal(wire *w) {
  w->inside = NULL;
  go_all();
}
static void come_to_be_taken(wire *w) {
  w->inside = NULL;
  taking.status = MULTICAST_OK;
  come();
}

TEST_OF_HEARD(transport_that_refuses_a_name_is_notified_after_another) {
  multicast_transport transport = transport_of(&taking);
  come();
  it.inside = come_to_be_taken;
  memset(&taking, 0, sizeof taking);
  taking.inside = go_at_refusal;
  taking.status = MULTICAST_ERROR_STATE;
  /* During this call, the new transport refuses the name, all observers are removed, the old
   * transport is notified of the removal, and an observer is added. */
  CHECK_OK(multicast_broadcaster_attach(heard, &transport));
  expect_notified(&it, "+" NAME " -" NAME);
  expect_notified(&taking, "+" NAME " +" NAME);
  go_all();
  expect_notified(&taking, "-" NAME);
}

/* ---- Attaching ------------------------------------------------------------------------------- */

TEST(transport_is_notified_of_names_with_observers_when_attached) {
  enum { NAMES = 300 };
  multicast_transport transport = transport_of(&it);
  int told[NAMES] = {0};
  const char *next;
  heard = create();
  for (int i = 0; i < NAMES; ++i) {
    if (i % 2 == 0) observe(heard, numbered("N", i), counter(&calls));
    if (i % 2 == 1) (void)find(heard, numbered("N", i));
  }
  CHECK_OK(multicast_broadcaster_attach(heard, &transport));
  for (next = it.told; (next = strstr(next, "+N.")) != NULL; ++next) ++told[atoi(next + 3)];
  for (int i = 0; i < NAMES; ++i) CHECK_EQ(told[i], i % 2 == 0);
  memset(&it, 0, sizeof it);
  observe(heard, "N.1", counter(&calls));
  observe(heard, "N.2", counter(&calls));
  expect_notified(&it, "+N.1");
}

static int next_name;
static void register_another(wire *w) {
  if (next_name < 200) observe(heard, numbered("N", next_name++), counter(&calls));
}

TEST(transport_is_notified_once_of_names_that_come_meanwhile) {
  multicast_transport transport = transport_of(&it);
  int told[200] = {0};
  const char *next;
  heard = create();
  register_another(&it);
  it.inside = register_another;
  CHECK_OK(multicast_broadcaster_attach(heard, &transport));
  CHECK_EQ(next_name, 200);
  for (next = it.told; (next = strstr(next, "+N.")) != NULL; ++next) ++told[atoi(next + 3)];
  for (int i = 0; i < 200; ++i) CHECK_EQ(told[i], 1);
}

TEST(transport_that_replaces_another_is_notified_of_all_names) {
  wire second;
  heard = create();
  attach(heard, &it);
  come();
  observe(heard, "Other", counter(&calls));
  go_all();
  expect_notified(&it, "+" NAME " +Other -" NAME);
  attach(heard, &second);
  CHECK_EQ(it.releases, 1);
  expect_notified(&it, ""); /* a replaced transport is not notified to unsubscribe */
  expect_notified(&second, "+Other");
  come();
  CHECK_EQ(notify(heard, "Other"), 1);
  CHECK_EQ(multicast_broadcaster_unregister_all(heard, "Other"), 1);
  expect_notified(&second, "+" NAME " !Other -Other");
  detach(heard);
  CHECK_EQ(second.releases, 1);
  expect_notified(&second, "");
  go_all();
  come();
  CHECK_EQ(notify(heard, NAME), 1);
  attach(heard, &it);
  expect_notified(&it, "+" NAME);
}

TEST(transport_that_is_detached_is_released_once_and_not_called) {
  heard = create();
  detach(heard); /* no transport is attached */
  attach(heard, &it);
  detach(heard);
  CHECK_EQ(it.releases, 1);
  detach(heard);
  CHECK_EQ(it.releases, 1);
  come();
  CHECK_EQ(notify(heard, NAME), 1);
  expect_notified(&it, "");
  CHECK_OK(multicast_broadcaster_destroy(heard));
  CHECK_EQ(it.releases, 1);
}

TEST_OF_HEARD(transport_of_destroyed_broadcaster_is_released) {
  come();
  expect_notified(&it, "+" NAME);
  CHECK_OK(multicast_broadcaster_destroy(heard));
  expect_notified(&it, "");
  CHECK_EQ(it.releases, 1);
  heard = create(); /* the new broadcaster reuses the slot */
  come();
  CHECK_EQ(notify(heard, NAME), 1);
  expect_notified(&it, "");
}

TEST_OF_HEARD(transport_stays_when_the_last_broadcaster_of_a_slot_ends) {
  multicast_broadcaster other = create();
  multicast m = find(other, NAME);
  CHECK_OK(multicast_destroy(m));
  come();
  CHECK_OK(multicast_broadcaster_destroy(other));
  expect_notified(&it, "+" NAME);
  go_with_multicast();
  expect_notified(&it, "-" NAME);
  come();
  expect_notified(&it, "+" NAME);
}

TEST(transport_of_default_broadcaster_is_attached_and_detached) {
  heard = multicast_broadcaster_default();
  attach(heard, &it);
  come();
  CHECK_EQ(notify(heard, NAME), 1);
  expect_notified(&it, "+" NAME " !" NAME);
  CHECK_ERROR(multicast_broadcaster_destroy(heard), STATE);
  CHECK_EQ(it.releases, 0);
  detach(heard);
  CHECK_EQ(it.releases, 1);
}

TEST(transport_can_be_attached_to_several_broadcasters) {
  multicast_broadcaster other = create();
  multicast_transport transport = transport_of(&it);
  heard = create();
  CHECK_OK(multicast_broadcaster_attach(heard, &transport));
  CHECK_OK(multicast_broadcaster_attach(other, &transport));
  come();
  observe(other, NAME, counter(&calls));
  expect_notified(&it, "+" NAME " +" NAME);
}

TEST(transport_that_cannot_be_attached_is_released) {
  multicast_broadcaster none = {0}, stale = create();
  multicast_transport transport = transport_of(&it);
  CHECK_OK(multicast_broadcaster_destroy(stale));
  CHECK_ERROR(multicast_broadcaster_attach(none, &transport), INVALID_HANDLE);
  CHECK_EQ(it.releases, 1);
  CHECK_ERROR(multicast_broadcaster_attach(stale, &transport), INVALID_HANDLE);
  CHECK_EQ(it.releases, 2);
  CHECK_ERROR(multicast_broadcaster_attach(none, NULL), INVALID_HANDLE);
  transport.publish = NULL;
  CHECK_ERROR(multicast_broadcaster_attach(create(), &transport), INVALID_ARGUMENT);
  CHECK_EQ(it.releases, 3);
}

TEST(transport_that_cannot_be_read_stays_the_callers) {
  struct {
    multicast_transport known;
    uint64_t unknown;
  } newer;
  wire first;
  heard = create();
  attach(heard, &first);
  memset(&newer, 0, sizeof newer);
  newer.known = transport_of(&it);
  newer.known.struct_size = 0;
  CHECK_ERROR(multicast_broadcaster_attach(heard, &newer.known), INVALID_ARGUMENT);
  newer.known.struct_size = sizeof newer.known - 1;
  CHECK_ERROR(multicast_broadcaster_attach(heard, &newer.known), INVALID_ARGUMENT);
  newer.known.struct_size = sizeof newer;
  newer.unknown = 1;
  CHECK_ERROR(multicast_broadcaster_attach(heard, &newer.known), INVALID_ARGUMENT);
  newer.known.struct_size = sizeof newer.known;
  newer.known.flags = 2;
  CHECK_ERROR(multicast_broadcaster_attach(heard, &newer.known), INVALID_ARGUMENT);
  CHECK_EQ(it.releases, 0);
  CHECK_EQ(notify(heard, NAME), 0);
  expect_notified(&first, "!" NAME); /* the attached transport is unchanged */
  newer.known.struct_size = sizeof newer;
  newer.known.flags = 0;
  newer.unknown = 0;
  CHECK_OK(multicast_broadcaster_attach(heard, &newer.known));
  CHECK_EQ(first.releases, 1);
}

/* ---- Inside the transport's functions -------------------------------------------------------- */

static void expect_calls(int64_t count, multicast_token innermost) {
  multicast_token stack[4] = {{0}};
  CHECK_EQ(multicast_token_current().id, innermost.id);
  CHECK_EQ(multicast_call_stack(stack, 4), count);
  if (count > 0) CHECK_EQ(stack[count - 1].id, innermost.id);
}

static int64_t outer_calls;
static multicast_token outer;
FUNCTION(look_as_delegate, const multicast_token *token) {
  expect_calls(outer_calls + 1, *token);
}

static void expect_calls_around(wire *w) {
  multicast m = multicast_create();
  multicast_token token;
  expect_calls(outer_calls, outer);
  CHECK_OK(multicast_add(m, DELEGATE(look_as_delegate, &token), NULL, &token));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_OK(multicast_destroy(m));
  ++calls;
}

static void use_name(void *context, uint32_t event, const void *payload, size_t size) {
  outer = multicast_token_current();
  outer_calls = 1;
  come();
  go_all();
  CHECK_EQ(notify(heard, NAME), 0);
}

TEST_OF_MULTICAST(transport_is_no_call_that_a_caller_sees) {
  const multicast_token none = {0};
  heard = create();
  attach(heard, &it);
  it.inside = expect_calls_around;
  come();
  go_all();
  CHECK_EQ(notify(heard, NAME), 0);
  CHECK_EQ(calls, 3);
  add(m, DELEGATE(use_name, NULL));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(calls, 6);
  expect_calls(0, none);
}

static multicast_token notified_token;
static void keep_token(void *context, multicast_token token, uint32_t event, uint64_t elapsed_ns) {
  notified_token = token;
}

TEST(transport_is_not_a_delegate_that_a_caller_can_invoke) {
  const multicast all = {0};
  CHECK_OK(multicast_set_watch(all, &WATCH_WITH(.called = keep_token)));
  heard = create();
  attach(heard, &it);
  CHECK_EQ(notify(heard, NAME), 0);
  CHECK(multicast_token_is_valid(notified_token));
  CHECK_ERROR(multicast_token_invoke(notified_token, 0, "x", 1), STATE);
  CHECK_OK(multicast_set_watch(all, NULL));
}

static void go_and_come(wire *w) {
  w->inside = NULL;
  go_all();
  come();
  go_all();
}

TEST_OF_HEARD(transport_is_notified_of_changes_inside_of_it_afterwards) {
  it.inside = go_and_come;
  come();
  expect_notified(&it, "+" NAME " -" NAME);
}

static void detach_inside(wire *w) {
  w->inside = NULL;
  CHECK_STATUS(multicast_broadcaster_attach(heard, NULL), MULTICAST_PENDING);
  CHECK_EQ(w->releases, 0);
}

TEST(transport_detached_inside_of_it_is_released_afterwards) {
  heard = create();
  attach(heard, &it);
  it.inside = detach_inside;
  CHECK_EQ(notify(heard, NAME), 0);
  CHECK_EQ(it.releases, 1);
  attach(heard, &it);
  it.inside = detach_inside;
  come();
  expect_notified(&it, "+" NAME);
  CHECK_EQ(it.releases, 1);
  attach(heard, &it);
  it.inside = detach_inside;
  go_all();
  expect_notified(&it, "+" NAME " -" NAME);
  CHECK_EQ(it.releases, 1);
}

static void destroy_inside(wire *w) {
  w->inside = NULL;
  CHECK_STATUS(multicast_broadcaster_destroy(heard), MULTICAST_PENDING);
  CHECK_EQ(w->releases, 0);
}

TEST(transport_may_destroy_its_broadcaster) {
  heard = create();
  attach(heard, &it);
  it.inside = destroy_inside;
  CHECK_EQ(notify(heard, NAME), 0);
  CHECK_EQ(it.releases, 1);
  expect_no(OF_BROADCASTER, heard.id);
  heard = create();
  attach(heard, &it);
  it.inside = destroy_inside;
  come();
  CHECK_EQ(it.releases, 1);
  expect_notified(&it, "+" NAME);
  heard = create();
  come();
  memset(&it, 0, sizeof it);
  multicast_transport transport = transport_of(&it);
  it.inside = destroy_inside;
  /* succeeds, because the transport is attached before it destroys the broadcaster */
  CHECK_OK(multicast_broadcaster_attach(heard, &transport));
  CHECK_EQ(it.releases, 1);
}

static wire next_one;
static void replace_inside(void *context, uint32_t event, const void *payload, size_t size) {
  attach(heard, &next_one);
}

TEST_OF_HEARD(transport_that_observer_attaches_publishes_that_notification) {
  observe(heard, NAME, DELEGATE(replace_inside, NULL));
  CHECK_EQ(notify(heard, NAME), 1);
  expect_notified(&it, "+" NAME);
  CHECK_EQ(it.releases, 1);
  expect_notified(&next_one, "+" NAME " !" NAME);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

TEST(transport_takes_no_memory_for_good) {
  int64_t blocks;
  use_test_allocator();
  for (int round = 0; round < 3; ++round) {
    blocks = allocated_blocks;
    heard = create();
    come();
    attach(heard, &it);
    observe(heard, "Other", counter(&calls));
    CHECK_OK(multicast_destroy(find(heard, "Other")));
    observe(heard, "Other", counter(&calls));
    observe(heard, "Third", counter(&calls));
    CHECK_OK(multicast_destroy(find(heard, "Third"))); /* this name is not used again */
    CHECK_EQ(notify(heard, NAME), 1);
    attach(heard, &next_one);
    CHECK_OK(multicast_broadcaster_destroy(heard));
    if (round > 0) CHECK_EQ(allocated_blocks, blocks);
  }
}

TEST(transport_without_memory_is_released_and_changes_nothing) {
  int successes;
  use_test_allocator();
  heard = create();
  observe(heard, "First", counter(&calls));
  attach(heard, &it);
  CHECK_OK(multicast_broadcaster_destroy(heard));
  for (successes = 0;; ++successes) {
    multicast_transport transport = transport_of(&it);
    heard = create();
    observe(heard, "First", counter(&calls));
    observe(heard, "Second", counter(&calls));
    memset(&it, 0, sizeof it);
    fail_after = successes;
    has_failed = false;
    multicast_status status = multicast_broadcaster_attach(heard, &transport);
    fail_after = -1;
    if (!has_failed) {
      CHECK_OK(status);
      break;
    }
    if (status == MULTICAST_OK) continue;
    CHECK_ERROR(status, OUT_OF_MEMORY);
    CHECK_EQ(it.releases, 1);
    expect_notified(&it, "");
    CHECK_EQ(notify(heard, "First"), 1);
    CHECK_EQ(multicast_broadcaster_unregister_all(heard, "First"), 1);
    CHECK_OK(multicast_broadcaster_destroy(heard));
  }
  CHECK(successes > 3);
}
