/* Rule 4, from inside: what ends that a call on this thread is a part of is PENDING, never OK. */

#include "harness.h"

typedef struct scene {
  multicast target;
  bool removes_first;
  int calls;
  multicast_status destroyed;
} scene;

static void remove_and_destroy(scene *s) {
  ++s->calls;
  if (s->removes_first)
    CHECK_STATUS(multicast_token_remove(multicast_token_current()), MULTICAST_PENDING);
  s->destroyed = multicast_destroy(s->target);
}

static void on_call(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event, (void)payload, (void)size;
  remove_and_destroy(context);
}

static bool on_visit(void *context, const multicast_delegate *delegate) {
  (void)delegate;
  remove_and_destroy(context);
  return true;
}

/* Destroys the multicast in a call of a delegate that is removed already, in each way of
 * calling. */
static void check_destroy(uint32_t flags, bool removes_first, bool has_others) {
  int way, others = 0;
  for (way = 0; way < 4; ++way) {
    bool is_queued = way & 1, is_visited = way & 2;
    multicast_options options = multicast_options_default();
    multicast_queue queue = multicast_queue_create(NULL);
    multicast_delegate delegate;
    scene s = {{0}, false, 0, MULTICAST_OK};
    s.target = multicast_create();
    s.removes_first = removes_first;
    delegate.function = on_call;
    delegate.context = &s;
    options.flags = flags;
    if (is_queued) options.queue = queue;
    add_with(s.target, delegate, &options);
    if (has_others) add(s.target, counter(&others));
    if (is_visited)
      multicast_visit(s.target, on_visit, &s);
    else
      multicast_invoke(s.target, 0, NULL, 0);
    if (is_queued && !is_visited) CHECK_EQ(multicast_queue_run(queue, 0), 1);
    CHECK_EQ(s.calls, 1);
    CHECK_STATUS(s.destroyed, MULTICAST_PENDING);
    multicast_queue_destroy(queue);
  }
}

TEST(destroy_in_a_call_of_a_delegate_that_was_to_be_called_once_is_pending) {
  check_destroy(MULTICAST_ONCE, false, false);
}

TEST(destroy_in_a_call_of_a_delegate_that_has_removed_itself_is_pending) {
  check_destroy(0, true, false);
}

static void destroy_other(void *context, uint32_t event, const void *payload, size_t size) {
  multicast *other = context;
  (void)event, (void)payload, (void)size;
  CHECK_OK(multicast_destroy(*other));
}

TEST(destroy_of_another_multicast_in_a_call_is_ok) {
  multicast m = multicast_create(), other = multicast_create();
  multicast_delegate delegate = {destroy_other, NULL};
  int calls = 0;
  multicast_token token = add(other, counter(&calls));
  add(other, counter(&calls));
  CHECK_OK(multicast_token_remove(token));
  delegate.context = &other;
  add(m, delegate);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(!multicast_is_valid(other));
}

/* ---- A release that ends a lifetime ---------------------------------------------------------- */

static multicast_lifetime ended;
static multicast_status end_status = MULTICAST_ERROR_STATE;

static void end_the_lifetime(void *context) {
  (void)context;
  end_status = multicast_lifetime_end(ended);
}

TEST(lifetime_end_in_a_release_is_ok_where_no_member_has_one) {
  multicast m = multicast_create();
  multicast_options first = with_release(end_the_lifetime), second = multicast_options_default();
  int calls = 0;
  ended = multicast_lifetime_create();
  second.lifetime = ended;
  add_with(m, counter(&calls), &first);
  add_with(m, counter(&calls), &second);
  CHECK_EQ(multicast_remove_all(m), 2);
  CHECK_OK(end_status);
}
