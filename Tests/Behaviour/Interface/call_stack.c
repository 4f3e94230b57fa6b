/* multicast_call_stack() lists the registrations that this thread is calling. */

#include "queues.h"

typedef struct looked {
  multicast_token tokens[256];
  int64_t count;
  uint64_t current;
} looked;

static void look(looked *l) {
  memset(l, 0, sizeof *l);
  l->count = multicast_call_stack(l->tokens, 256);
  l->current = multicast_token_current().id;
  CHECK_EQ(l->count == 0 ? 0 : l->tokens[l->count - 1].id, l->current);
}

typedef struct level {
  looked l;
  multicast inner; /* a multicast that is invoked after the stack has been read */
  bool visits;
} level;

static bool visit_level(void *context, const multicast_delegate *delegate) {
  delegate->function(delegate->context, 0, NULL, 0);
  return true;
}

FUNCTION(look_and_go_deeper, level *v) {
  look(&v->l);
  if (v->inner.id == 0) return;
  if (v->visits) {
    CHECK_EQ(multicast_visit(v->inner, visit_level, NULL), 1);
  } else {
    CHECK_EQ(multicast_invoke(v->inner, 0, NULL, 0), 1);
  }
}

static multicast_delegate looking(level *v) {
  memset(v, 0, sizeof *v);
  return (multicast_delegate){look_and_go_deeper, v};
}

TEST_OF_MULTICAST(call_stack_is_empty_outside_of_all_calls) {
  multicast_token t = {77};
  CHECK_EQ(multicast_call_stack(NULL, 0), 0); /* this thread has no record yet */
  CHECK_EQ(multicast_call_stack(&t, 1), 0);
  add(m, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_call_stack(&t, 1), 0);
  CHECK_EQ(t.id, 77);
}

TEST(call_stack_has_the_outermost_call_first) {
  level a, b, c;
  multicast m = multicast_create(), n = multicast_create(), o = multicast_create();
  multicast_token ta = add(m, looking(&a)), tb = add(n, looking(&b)), tc = add(o, looking(&c));
  a.inner = n;
  b.inner = o;
  b.visits = true;
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(a.l.count, 1);
  CHECK_EQ(a.l.tokens[0].id, ta.id);
  CHECK_EQ(b.l.count, 2);
  CHECK(b.l.tokens[0].id == ta.id && b.l.tokens[1].id == tb.id);
  CHECK_EQ(c.l.count, 3); /* the visited delegate is also on the stack */
  CHECK(c.l.tokens[0].id == ta.id && c.l.tokens[1].id == tb.id && c.l.tokens[2].id == tc.id);
}

TEST_OF_MULTICAST(call_stack_in_token_invoke_and_token_visit) {
  level a, b;
  multicast_token ta = add(m, looking(&a)), tb = add(multicast_create(), looking(&b));
  CHECK_EQ(multicast_token_invoke(ta, 0, NULL, 0), 1);
  CHECK(a.l.count == 1 && a.l.tokens[0].id == ta.id);
  CHECK_EQ(multicast_token_visit(tb, visit_level, NULL), 1);
  CHECK(b.l.count == 1 && b.l.tokens[0].id == tb.id);
}

TEST(call_stack_in_queued_call_is_that_of_thread_that_runs_it) {
  level a, b;
  multicast_queue q = default_queue();
  multicast m = multicast_create(), n = multicast_create();
  multicast_token ta = add_queued(m, looking(&a), q), tb = add(n, looking(&b));
  a.inner = n;
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(a.l.count == 1 && a.l.tokens[0].id == ta.id);
  CHECK(b.l.count == 2 && b.l.tokens[0].id == ta.id && b.l.tokens[1].id == tb.id);
}

/* The queue that a delegate runs inside its call, before it reads the call stack. */
static multicast_queue inner_queue;

static void run_the_queue(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_EQ(multicast_queue_run(inner_queue, 0), 1);
  look(context);
}

TEST(call_stack_of_a_queue_that_is_run_inside_a_call) {
  level a;
  looked after;
  multicast m = multicast_create(), n = multicast_create();
  inner_queue = default_queue();
  multicast_token outer = add(m, DELEGATE(run_the_queue, &after));
  multicast_token inner = add_queued(n, looking(&a), inner_queue);
  CHECK_EQ(multicast_invoke(n, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(a.l.count == 2 && a.l.tokens[0].id == outer.id && a.l.tokens[1].id == inner.id);
  CHECK(after.count == 1 && after.tokens[0].id == outer.id);
}

static multicast_token of_room[3];
static int64_t counts_of_room[4];

static void look_with_little_room(void *context, uint32_t event, const void *payload,
                                  size_t size) {
  if (event < 2) {
    CHECK_EQ(multicast_invoke(*(multicast *)context, event + 1, NULL, 0), 1);
    return;
  }
  counts_of_room[0] = multicast_call_stack(NULL, 0);
  counts_of_room[1] = multicast_call_stack(of_room, 0);
  counts_of_room[2] = multicast_call_stack(of_room, 2);
  CHECK(of_room[1].id != 0 && of_room[2].id == 0);
  counts_of_room[3] = multicast_call_stack(of_room, SIZE_MAX);
}

TEST_OF_MULTICAST(call_stack_returns_the_number_and_fills_what_has_room) {
  multicast_token t = add(m, DELEGATE(look_with_little_room, &m));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  for (int i = 0; i < 4; ++i) CHECK_EQ(counts_of_room[i], 3);
  for (int i = 0; i < 3; ++i) CHECK_EQ(of_room[i].id, t.id);
}

typedef struct removed {
  looked l;
  multicast_token token;
} removed;

FUNCTION(look_after_removal, removed *r) {
  CHECK_STATUS(multicast_token_remove(r->token), MULTICAST_PENDING);
  look(&r->l);
}

TEST_OF_MULTICAST(call_stack_has_registrations_that_are_removed_already) {
  static removed r;
  r.token = add(m, DELEGATE(look_after_removal, &r));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(r.l.count == 1 && r.l.tokens[0].id == r.token.id);
}

static int64_t deepest;
static multicast deep_target;

static void go_deep(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_token tokens[256];
  if (multicast_invoke(deep_target, 0, NULL, 0) == MULTICAST_ERROR_LIMIT)
    deepest = multicast_call_stack(tokens, 256);
}

TEST(call_stack_never_has_more_than_256_registrations) {
  deep_target = multicast_create();
  add(deep_target, DELEGATE(go_deep, NULL));
  CHECK_EQ(multicast_invoke(deep_target, 0, NULL, 0), 1);
  CHECK_EQ(deepest, 256);
}

THREAD(look_on_thread, void *argument) {
  look(argument);
}

static void look_on_another_thread(void *context, uint32_t event, const void *payload,
                                   size_t size) {
  on_another_thread(look_on_thread, context);
}

TEST_OF_MULTICAST(call_stack_describes_the_calling_thread) {
  looked l;
  l.count = -1;
  add(m, DELEGATE(look_on_another_thread, &l));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(l.count, 0);
}
