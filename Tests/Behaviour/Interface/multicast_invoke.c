/* Invoking and visiting. */

#include "harness.h"

/* ---- Invoking -------------------------------------------------------------------------------- */

typedef struct seen {
  uint32_t event;
  const void *payload;
  size_t size;
} seen;

FUNCTION(see, seen *s) {
  s->event = event;
  s->payload = payload;
  s->size = size;
}

TEST_OF_MULTICAST(invoke_passes_event_payload_and_size_on) {
  seen s = {0, NULL, 0};
  add(m, DELEGATE(see, &s));
  CHECK_EQ(multicast_invoke(m, UINT32_MAX, "text", 4), 1);
  CHECK(s.event == UINT32_MAX && s.size == 4);
  CHECK(memcmp(s.payload, "text", 4) == 0);
  CHECK_EQ(multicast_invoke(m, 3, &s, 0), 1); /* if the size is 0, the pointer itself is passed */
  CHECK(s.payload == &s && s.size == 0);
  CHECK_EQ(multicast_invoke(m, 3, NULL, 0), 1);
  CHECK(s.payload == NULL);
}

/* ---- Visiting -------------------------------------------------------------------------------- */

typedef struct visit {
  int visited, stop_after;
  void *contexts[8];
} visit;

static bool note_visit(void *context, const multicast_delegate *delegate) {
  visit *v = context;
  v->contexts[v->visited++] = delegate->context;
  return v->visited != v->stop_after;
}

TEST_OF_MULTICAST(visit_passes_each_delegate_in_order) {
  int n[3];
  visit v = {0, 0, {NULL}};
  for (int i = 0; i < 3; ++i) add(m, counter(&n[i]));
  CHECK_EQ(multicast_visit(m, note_visit, &v), 3);
  for (int i = 0; i < 3; ++i) CHECK(v.contexts[i] == &n[i]);
}

TEST_OF_MULTICAST(visit_stops_when_the_visitor_returns_false) {
  visit v = {0, 2, {NULL}};
  for (int i = 0; i < 5; ++i) add(m, counter(&calls));
  CHECK_EQ(multicast_visit(m, note_visit, &v), 2);
  CHECK_EQ(v.visited, 2);
}

TEST_OF_MULTICAST(visit_leaves_paused_delegates_out_and_ignores_events) {
  visit v = {0, 0, {NULL}};
  multicast_token paused = add(m, counter(&calls));
  add_with(m, counter(&calls), &ADD_OPTIONS(.events = 1));
  CHECK_OK(multicast_token_pause(paused));
  CHECK_EQ(multicast_visit(m, note_visit, &v), 1);
}

TEST_OF_MULTICAST(visit_removes_a_delegate_added_once) {
  visit v = {0, 0, {NULL}};
  add_with(m, counter(&calls), &ADD_OPTIONS(.flags = MULTICAST_ONCE));
  CHECK_EQ(multicast_visit(m, note_visit, &v), 1);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(multicast_visit(m, note_visit, &v), 0);
}

typedef struct descent {
  multicast target;
  int levels, limits;
} descent;

static bool visit_again(void *context, const multicast_delegate *delegate) {
  descent *d = context;
  ++d->levels;
  int64_t result = multicast_visit(d->target, visit_again, d);
  if (result != 1) {
    CHECK_ERROR(result, LIMIT);
    ++d->limits;
  }
  return true;
}

static void expect_limit(multicast target) {
  descent d = {target, 0, 0};
  int calls = 0;
  add(target, counter(&calls));
  CHECK_EQ(multicast_visit(target, visit_again, &d), 1);
  CHECK_EQ(d.levels, 256);
  CHECK_EQ(d.limits, 1);
  CHECK_OK(multicast_destroy(target));
}

TEST(visit_nested_too_deep_is_limit) {
  expect_limit(multicast_create());
  expect_limit(multicast_create_with(&CREATE_OPTIONS(.reentry = MULTICAST_REENTRY_REFUSE)));
}
