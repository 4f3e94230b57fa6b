/* If a delegate's call removes the delegate, the removal cannot wait for that call, so it returns
 * MULTICAST_PENDING and never MULTICAST_OK. */

#include "removals.h"

/* ---- Removing itself ------------------------------------------------------------------------- */

static void begin_own(own_removal *o, multicast_function function) {
  memset(o, 0, sizeof *o);
  o->r.delegate.function = function;
  o->r.delegate.context = o;
  o->r.target = multicast_create();
  o->r.token = add_with(o->r.target, o->r.delegate, &ADD_OPTIONS(.release = release_itself));
}

static void own_call(int64_t (*remove)(removal *), int64_t expected) {
  own_removal o;
  begin_own(&o, remove_itself);
  o.r.remove = remove;
  CHECK_EQ(multicast_invoke(o.r.target, 0, NULL, 0), 1);
  CHECK_STATUS(o.result, expected);
  CHECK_EQ(o.releases_inside, 0);
  CHECK_EQ(o.releases, 1);
}

TEST(remove_in_its_own_call_is_pending_until_release) { own_call(by_remove, MULTICAST_PENDING); }
TEST(token_remove_in_its_own_call_is_pending) { own_call(by_token, MULTICAST_PENDING); }
TEST(token_remove_nowait_in_its_own_call_is_pending) { own_call(by_nowait, MULTICAST_PENDING); }
TEST(token_remove_within_in_its_own_call_is_pending) {
  own_call(by_within_without_limit, MULTICAST_PENDING);
}
TEST(remove_at_in_its_own_call_is_pending) { own_call(by_place, MULTICAST_PENDING); }
TEST(destroy_in_its_own_call_is_pending) { own_call(by_destroy, MULTICAST_PENDING); }
TEST(remove_context_in_its_own_call_counts_it) { own_call(by_context, 1 - 1); }
TEST(remove_all_in_its_own_call_counts_it) { own_call(by_all, 1 - 1); }
TEST(remove_many_in_its_own_call_counts_it) { own_call(by_many, 1 - 1); }

FUNCTION(nest_and_remove, own_removal *o) {
  if (event < 3) {
    CHECK_EQ(multicast_invoke(o->r.target, event + 1, NULL, 0), 1);
    o->releases_inside += o->releases; /* the outer calls have not yet returned */
  } else {
    o->result = multicast_token_remove(o->r.token);
  }
}

TEST(remove_in_a_nested_call_is_finished_by_the_outermost) {
  own_removal o;
  begin_own(&o, nest_and_remove);
  CHECK_EQ(multicast_invoke(o.r.target, 0, NULL, 0), 1);
  CHECK_STATUS(o.result, MULTICAST_PENDING);
  CHECK_EQ(o.releases_inside, 0);
  CHECK_EQ(o.releases, 1);
}

/* ---- Destroying the multicast ---------------------------------------------------------------- */

typedef struct destruction {
  multicast target;
  bool removes_first;
  int calls;
  multicast_status destroyed;
} destruction;

static void remove_and_destroy(destruction *d) {
  ++d->calls;
  if (d->removes_first)
    CHECK_STATUS(multicast_token_remove(multicast_token_current()), MULTICAST_PENDING);
  d->destroyed = multicast_destroy(d->target);
}

static void on_call(void *context, uint32_t event, const void *payload, size_t size) {
  remove_and_destroy(context);
}

static bool on_visit(void *context, const multicast_delegate *delegate) {
  remove_and_destroy(context);
  return true;
}

/* Destroys the multicast in a call to one of its delegates, for each kind of call. With
 * `removes_first`, the call removes the delegate first. */
static void check_destroy(uint32_t flags, bool removes_first, bool has_others) {
  int others = 0;
  for (int way = 0; way < 4; ++way) {
    bool is_queued = way & 1, is_visited = way & 2;
    multicast_queue queue = multicast_queue_create(NULL);
    destruction d = {{0}, false, 0, MULTICAST_OK};
    d.target = multicast_create();
    d.removes_first = removes_first;
    multicast_add_options options = ADD_OPTIONS(.flags = flags);
    if (is_queued) options.queue = queue;
    add_with(d.target, DELEGATE(on_call, &d), &options);
    if (has_others) add(d.target, counter(&others));
    if (is_visited)
      multicast_visit(d.target, on_visit, &d);
    else
      multicast_invoke(d.target, 0, NULL, 0);
    if (is_queued && !is_visited) CHECK_EQ(multicast_queue_run(queue, 0), 1);
    CHECK_EQ(d.calls, 1);
    CHECK_STATUS(d.destroyed, MULTICAST_PENDING);
    multicast_queue_destroy(queue);
  }
}

TEST(destroy_in_a_call_of_a_delegate_to_be_called_once_is_pending) {
  check_destroy(MULTICAST_ONCE, false, false);
}

TEST(destroy_in_a_call_that_has_removed_itself_is_pending) {
  check_destroy(0, true, false);
}

FUNCTION(destroy_other, multicast *other) {
  CHECK_OK(multicast_destroy(*other));
}

TEST(destroy_of_another_multicast_in_a_call_is_ok) {
  multicast m = multicast_create(), other = multicast_create();
  multicast_token token = add(other, counter(&calls));
  add(other, counter(&calls));
  CHECK_OK(multicast_token_remove(token));
  add(m, DELEGATE(destroy_other, &other));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(!multicast_is_valid(other));
}

/* ---- A release that ends a lifetime ---------------------------------------------------------- */

static multicast_lifetime ended;
static multicast_status end_status = MULTICAST_ERROR_STATE;

static void end_the_lifetime(void *context) {
  end_status = multicast_lifetime_end(ended);
}

TEST_OF_MULTICAST(lifetime_end_in_a_release_is_ok_where_no_member_has_one) {
  ended = multicast_lifetime_create();
  add_with(m, counter(&calls), &ADD_OPTIONS(.release = end_the_lifetime));
  add_with(m, counter(&calls), &ADD_OPTIONS(.lifetime = ended));
  CHECK_EQ(multicast_remove_all(m), 2);
  CHECK_OK(end_status);
}
