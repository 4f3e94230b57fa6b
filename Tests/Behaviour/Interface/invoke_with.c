/* Tests which delegates multicast_invoke_with() calls, which outcome it reports, and which
 * arguments it refuses. */

#include "notes.h"
#include "payloads.h"

#include <stddef.h>

/* ---- Invocations like those of multicast_invoke() -------------------------------------------- */

TEST_OF_QUEUE(invoke_with_defaults_calls_and_queues_as_invoke_does) {
  int number = 7;
  add(m, noting('a'));
  add_queued(m, noting('b'), q);
  add(m, noting('c'));
  multicast_invocation how = INVOCATION(.event = 3, .payload = &number, .size = sizeof number);
  CHECK_NOTED(multicast_invoke_with(m, &how, NULL), 3, "a7@3 c7@3");
  number = 8; /* the queue keeps its own copy */
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "a7@3 c7@3 b7@3");
}

TEST_OF_QUEUE(invoke_with_size_of_0_passes_pointer_itself_to_queued_calls) {
  seen s;
  int number = 0;
  add_queued(m, seeing(&s), q);
  multicast_invocation how = INVOCATION(.payload = &number);
  CHECK_EQ(multicast_invoke_with(m, &how, NULL), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(s.payload == &number && s.size == 0);
  how = waiting();
  how.payload = &number;
  CHECK_EQ(multicast_invoke_with(m, &how, NULL), 1);
  s.payload = NULL;
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(s.payload == &number && s.size == 0);
}

TEST_OF_MULTICAST(invoke_with_of_an_empty_multicast_is_0) {
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  memset(&out.called, 0xFF, sizeof out - offsetof(multicast_outcome, called));
  CHECK_EQ(multicast_invoke_with(m, &INVOCATION(.flags = MULTICAST_WAIT), &out), 0);
  CHECK_OUTCOME(out, 0, 0, 0, 0, 0);
}

/* ---- The outcome ----------------------------------------------------------------------------- */

TEST_OF_MULTICAST(outcome_counts_called_queued_and_refused) {
  multicast_queue one = queue_with(1, MULTICAST_OVERFLOW_REFUSE), q = default_queue();
  multicast_invocation how = MULTICAST_INVOCATION_INIT;
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  int calls = 0;
  for (int i = 0; i < 3; ++i) add(m, counter(&calls));
  for (int i = 0; i < 4; ++i) add_queued(m, counter(&calls), one);
  for (int i = 0; i < 2; ++i) add_queued(m, counter(&calls), q);
  out.flags = 77;
  CHECK_EQ(multicast_invoke_with(m, &how, &out), 6);
  CHECK_OUTCOME(out, 3, 3, 3, 0, 0);
  CHECK_EQ(out.flags, 0);
  CHECK_EQ(out.struct_size, sizeof out);
  CHECK_EQ(calls, 3);
}

TEST_OF_MULTICAST(outcome_of_each_kind_of_payload_counts_the_same) {
  multicast_queue one = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
  cargo c = {0, 0, 0};
  int calls = 0;
  add(m, counter(&calls));
  add_queued(m, counter(&calls), one);
  add_queued(m, counter(&calls), one);
  for (int kind = 0; kind < 4; ++kind) {
    multicast_invocation how = kind == 1 ? handing_over(&c) : copying(&c);
    char bytes[100] = "";
    if (kind == 0) how = multicast_invocation_default();
    if (kind == 3) {
      how = multicast_invocation_default();
      how.payload = bytes;
      how.size = sizeof bytes;
    }
    CHECK_INVOKED(m, &how, 2, 1, 1, 1, 0, 0);
    CHECK_EQ(multicast_queue_run(one, 0), 1);
  }
}

TEST_OF_QUEUE(outcome_leaves_out_a_call_of_once_that_already_waits) {
  multicast_invocation how = MULTICAST_INVOCATION_INIT;
  int calls = 0;
  add_flagged(m, counter(&calls), q, MULTICAST_ONCE);
  CHECK_INVOKED(m, &how, 1, 0, 1, 0, 0, 0);
  CHECK_INVOKED(m, &how, 0, 0, 0, 0, 0, 0);
}

/* The token of a delegate that is removed before its call can be queued. */
static multicast_token victim;

static void remove_victim(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_OK(multicast_token_remove(victim));
}

TEST_OF_QUEUE(outcome_leaves_out_a_delegate_that_is_removed_meanwhile) {
  int calls = 0;
  add(m, DELEGATE(remove_victim, NULL));
  victim = add_queued(m, counter(&calls), q);
  CHECK_INVOKED(m, &INVOCATION(.flags = MULTICAST_WAIT), 1, 1, 0, 0, 0, 0);
}

static const void *copy_and_remove_victim(const void *payload, size_t size) {
  CHECK_OK(multicast_token_remove(victim));
  return payload;
}

TEST_OF_QUEUE(outcome_leaves_out_one_removed_just_before_it_is_queued) {
  cargo c = {0, 0, 0};
  multicast_invocation how = handing_over(&c);
  int calls = 0;
  victim = add_queued(m, counter(&calls), q);
  how.copy = copy_and_remove_victim;
  CHECK_INVOKED(m, &how, 0, 0, 0, 0, 0, 0);
  CHECK_EQ(c.releases, 1);
  CHECK_TEXT(figures(q), "");
}

THREAD(hand_over_to_target, waiter *w) {
  w->result = multicast_invoke_with(w->target, &w->how, &w->out);
  gate_open(&w->returned);
}

TEST(outcome_leaves_out_one_removed_while_it_waits_for_room) {
  narrow n;
  cargo c = {0, 0, 0};
  waiter w;
  fill_narrow(&n, NULL);
  w.target = n.target;
  w.how = handing_over(&c);
  w.out = multicast_outcome_default();
  w.returned = shut;
  w.thread = start_thread(hand_over_to_target, &w);
  CHECK(!gate_opens_within(&w.returned, A_WHILE_MS));
  CHECK_EQ(c.releases, 0);
  CHECK_OK(multicast_token_remove(n.token));
  gate_wait(&w.returned);
  join_thread(w.thread);
  CHECK_EQ(w.result, 0);
  CHECK_OUTCOME(w.out, 0, 0, 0, 0, 0);
  CHECK_EQ(c.releases, 1);
}

static void expect_zero(const multicast_outcome *out) {
  CHECK_EQ(out->flags, 0);
  CHECK_OUTCOME(*out, 0, 0, 0, 0, 0);
}

static multicast_outcome dirty_outcome(void) {
  multicast_outcome out;
  memset(&out, 0x77, sizeof out);
  out.struct_size = sizeof out;
  return out;
}

typedef struct nest {
  multicast m, empty;
  multicast_invocation how;
  multicast_outcome out;
  int64_t result;
  int depth;
} nest;

FUNCTION(invoke_deeper, nest *n) {
  ++n->depth;
  if (multicast_invoke(n->m, 0, NULL, 0) == MULTICAST_ERROR_LIMIT)
    n->result = multicast_invoke_with(n->m, &n->how, &n->out);
}

TEST(outcome_is_zero_if_256_invocations_are_nested) {
  nest n;
  cargo c = {0, 0, 0};
  n.m = multicast_create();
  n.how = handing_over(&c);
  n.out = dirty_outcome();
  n.depth = 0;
  n.result = 0;
  add(n.m, DELEGATE(invoke_deeper, &n));
  CHECK_EQ(multicast_invoke(n.m, 0, NULL, 0), 1);
  CHECK_EQ(n.depth, 256);
  CHECK_ERROR(n.result, LIMIT);
  expect_zero(&n.out);
  CHECK_EQ(c.releases, 1);
}

/* Invokes an empty multicast at the maximum depth of nesting. */
FUNCTION(invoke_empty_at_the_limit, nest *n) {
  if (++n->depth == 256) n->result = multicast_invoke(n->empty, 0, NULL, 0);
  else CHECK_EQ(multicast_invoke(n->m, 0, NULL, 0), 1);
}

TEST(empty_multicast_inside_256_invocations_is_limit) {
  nest n = {.m = multicast_create(), .empty = multicast_create()};
  CHECK_EQ(multicast_invoke(n.empty, 0, NULL, 0), 0);
  add(n.m, DELEGATE(invoke_empty_at_the_limit, &n));
  CHECK_EQ(multicast_invoke(n.m, 0, NULL, 0), 1);
  CHECK_ERROR(n.result, LIMIT);
  CHECK_OK(multicast_destroy(n.empty));
}

TEST_OF_QUEUE(outcome_is_zero_for_a_handle_that_is_not_valid) {
  uint64_t handles[4] = {0, 12345, 0, 0};
  CHECK_OK(multicast_destroy(m));
  handles[2] = m.id; /* a stale handle */
  handles[3] = q.id; /* a handle of another kind */
  for (size_t i = 0; i < 4; ++i) {
    cargo c = {0, 0, 0}, copied = {0, 0, 0};
    multicast_invocation how = handing_over(&c), with_copy = copying(&copied);
    multicast_outcome out = dirty_outcome();
    m.id = handles[i];
    CHECK_ERROR(multicast_invoke_with(m, &how, &out), INVALID_HANDLE);
    expect_zero(&out);
    CHECK_EQ(c.releases, 1);
    CHECK_EQ(c.size, sizeof c);
    out = dirty_outcome();
    CHECK_ERROR(multicast_invoke_with(m, &with_copy, &out), INVALID_HANDLE);
    expect_zero(&out);
    CHECK_EQ(copied.releases, 0); /* `release` applies only to copies, and no copy has been made */
    CHECK_EQ(copy_count, 0);
  }
}

/* ---- Invalid invocations --------------------------------------------------------------------- */

static int calls_of_refused;

/* Expects the library to refuse the invocation and not to write to the outcome. */
static void expect_refused(const multicast_invocation *how) {
  multicast m = multicast_create();
  multicast_outcome out = dirty_outcome(), before = dirty_outcome();
  add(m, counter(&calls_of_refused));
  CHECK_ERROR(multicast_invoke_with(m, how, &out), INVALID_ARGUMENT);
  CHECK(memcmp(&out, &before, sizeof out) == 0);
  CHECK_EQ(calls_of_refused, 0);
  CHECK_OK(multicast_destroy(m));
}

/* bad_input_options.c tests structs of other sizes, and structs from callers with a newer
 * header. */
TEST(invocation_that_cannot_be_read_releases_nothing) {
  cargo c = {0, 0, 0};
  multicast_invocation how = handing_over(&c);
  expect_refused(NULL);
  how.struct_size = sizeof how - 1;
  expect_refused(&how);
  for (int bit = 0; bit < 32; ++bit) {
    how = handing_over(&c);
    how.reserved = UINT32_C(1) << bit;
    expect_refused(&how);
    how = handing_over(&c);
    if (bit > 0) {
      how.flags = UINT32_C(1) << bit;
      expect_refused(&how);
    }
  }
  CHECK_EQ(c.releases, 0);
}

TEST(invocation_with_a_size_without_payload_is_refused) {
  multicast_invocation how = INVOCATION(.size = 1);
  expect_refused(&how);
  how.flags = MULTICAST_WAIT;
  expect_refused(&how);
}

static int null_releases;
static size_t null_size;

static void release_null(const void *payload, size_t size) {
  CHECK(payload == NULL);
  null_size = size;
  ++null_releases;
}

FUNCTION(see_pointer, seen *s) {
  s->event = event;
  s->payload = payload;
  s->size = size;
}

/* Returns a delegate that stores its arguments without reading the payload, which need not be a
 * cargo. */
static multicast_delegate seeing_null(seen *s) {
  return (multicast_delegate){see_pointer, s};
}

TEST_OF_QUEUE(payload_of_null_with_a_size_is_handed_over_like_any_other) {
  seen direct, queued;
  add(m, seeing_null(&direct));
  add_queued(m, seeing_null(&queued), q);
  CHECK_EQ(multicast_invoke_with(m, &INVOCATION(.size = 9, .release = release_null), NULL), 2);
  CHECK(direct.payload == NULL && direct.size == 9);
  CHECK_EQ(null_releases, 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(queued.payload == NULL && queued.size == 9);
  CHECK_EQ(null_releases, 1);
  CHECK_EQ(null_size, 9);
}

static const void *copy_null(const void *payload, size_t size) {
  static const char copy[] = "copy";
  CHECK(payload == NULL);
  CHECK_EQ(size, 5);
  return copy;
}

TEST_OF_QUEUE(copy_is_passed_a_payload_of_null_with_its_size) {
  seen direct, queued;
  add(m, seeing_null(&direct));
  add_queued(m, seeing_null(&queued), q);
  CHECK_EQ(multicast_invoke_with(m, &INVOCATION(.size = 5, .copy = copy_null), NULL), 2);
  CHECK(direct.payload == NULL && direct.size == 5);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_TEXT((const char *)queued.payload, "copy");
  CHECK_EQ(queued.size, 5);
}

TEST_OF_MULTICAST(outcome_of_a_bad_struct_size_is_refused_and_releases) {
  uint32_t sizes[] = {0, 4, 47, 1025, UINT32_MAX};
  add(m, counter(&calls_of_refused));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    cargo c = {0, 0, 0};
    multicast_invocation how = handing_over(&c);
    multicast_outcome out = dirty_outcome(), before;
    out.struct_size = sizes[i];
    before = out;
    CHECK_ERROR(multicast_invoke_with(m, &how, &out), INVALID_ARGUMENT);
    CHECK(memcmp(&out, &before, sizeof out) == 0);
    CHECK_EQ(c.releases, 1);
  }
  CHECK_EQ(calls_of_refused, 0);
}

/* ---- Invocations by name --------------------------------------------------------------------- */

TEST(notify_with_hands_over_waits_and_reports) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  multicast_queue q = default_queue();
  multicast_add_options options = ADD_OPTIONS(.queue = q);
  cargo c = {0, 0, 0};
  multicast_invocation how = handing_over(&c);
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  seen direct, queued;
  CHECK_OK(multicast_broadcaster_register(b, "name", seeing(&direct), NULL, NULL));
  CHECK_OK(multicast_broadcaster_register(b, "name", seeing(&queued), &options, NULL));
  how.event = 4;
  CHECK_EQ(multicast_broadcaster_notify_with(b, "name", &how, &out), 2);
  CHECK_OUTCOME(out, 1, 1, 0, 0, 0);
  CHECK(direct.payload == &c && direct.event == 4);
  CHECK_EQ(c.releases, 0);
  CHECK_OK(multicast_queue_start(q));
  EVENTUALLY(LOAD(c.releases) == 1);
  CHECK(queued.payload == &c);
  how = waiting();
  CHECK_EQ(multicast_broadcaster_notify_with(b, "name", &how, &out), 2);
  CHECK_OUTCOME(out, 1, 1, 0, 1, 0);
}

TEST(notify_with_of_a_name_without_observers_releases_and_is_0) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  cargo c = {0, 0, 0};
  multicast_invocation how = handing_over(&c);
  multicast_outcome out = dirty_outcome();
  CHECK_EQ(multicast_broadcaster_notify_with(b, "never registered", &how, &out), 0);
  CHECK_EQ(c.releases, 1);
  expect_zero(&out);
  CHECK(multicast_broadcaster_multicast(b, "known").id != 0);
  CHECK_EQ(multicast_broadcaster_notify_with(b, "known", &how, &out), 0);
  CHECK_EQ(c.releases, 2);
  CHECK_OK(multicast_destroy(multicast_broadcaster_multicast(b, "known")));
  out = dirty_outcome();
  CHECK_EQ(multicast_broadcaster_notify_with(b, "known", &how, &out), 0);
  CHECK_EQ(c.releases, 3);
  expect_zero(&out);
}

TEST(notify_with_of_what_is_not_a_name_or_a_broadcaster_releases) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  char text[300];
  const char *names[3];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  names[0] = NULL;
  names[1] = "";
  names[2] = text;
  for (size_t i = 0; i < 3; ++i) {
    cargo c = {0, 0, 0};
    multicast_invocation how = handing_over(&c);
    multicast_outcome out = dirty_outcome(), before = dirty_outcome();
    CHECK_ERROR(multicast_broadcaster_notify_with(b, names[i], &how, &out), INVALID_ARGUMENT);
    CHECK_EQ(c.releases, 1);
    CHECK(memcmp(&out, &before, sizeof out) == 0);
  }
  CHECK_OK(multicast_broadcaster_destroy(b));
  {
    cargo c = {0, 0, 0};
    multicast_invocation how = handing_over(&c);
    multicast_outcome out = dirty_outcome();
    CHECK_ERROR(multicast_broadcaster_notify_with(b, "name", &how, &out), INVALID_HANDLE);
    CHECK_EQ(c.releases, 1);
    expect_zero(&out);
    how.struct_size = 3;
    CHECK_ERROR(multicast_broadcaster_notify_with(b, "name", &how, &out), INVALID_ARGUMENT);
    CHECK_ERROR(multicast_broadcaster_notify_with(b, "name", NULL, &out), INVALID_ARGUMENT);
    CHECK_EQ(c.releases, 1);
  }
}

/* Compares the whole struct, including the fields that this version of the library does not
 * know. */
TEST(outcome_of_a_newer_caller_is_not_written_if_the_name_is_none) {
  union {
    multicast_outcome known;
    unsigned char bytes[96];
  } newer, before;
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  multicast_invocation how = MULTICAST_INVOCATION_INIT;
  memset(&newer, 0x77, sizeof newer);
  newer.known.struct_size = sizeof newer;
  before = newer;
  CHECK_ERROR(multicast_broadcaster_notify_with(b, "", &how, &newer.known), INVALID_ARGUMENT);
  CHECK(memcmp(newer.bytes, before.bytes, sizeof newer.bytes) == 0);
}
