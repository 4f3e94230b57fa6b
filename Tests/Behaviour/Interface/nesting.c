/* Delegates are removed, lists grow, and names are looked up inside up to 256 nested calls. */

#include "allocators.h"
#include "threads.h"

typedef struct descent {
  multicast target;
  int depth, levels;
  void (*at_the_bottom)(struct descent *);
  multicast_token self, other;
  int other_calls, other_releases;
} descent;

FUNCTION(descend, descent *d) {
  if (++d->depth < d->levels) {
    multicast_invoke(d->target, 0, NULL, 0);
  } else if (d->depth == d->levels) {
    d->at_the_bottom(d);
  }
}

static void count_other(void *context, uint32_t event, const void *payload, size_t size) {
  ADD(((descent *)context)->other_calls, 1);
}

static void count_other_release(void *context) { ADD(((descent *)context)->other_releases, 1); }

static void remove_both(descent *d) {
  CHECK_OK(multicast_token_remove(d->other));
  CHECK_EQ(d->other_releases, 1);
  CHECK_STATUS(multicast_token_remove(d->self), MULTICAST_PENDING);
}

TEST(remove_inside_a_hundred_nested_calls_finds_what_is_called) {
  static descent d;
  multicast_delegate self = {descend, &d}, other = {count_other, &d};
  d.target = multicast_create();
  d.self = add(d.target, self);
  d.other = add_with(d.target, other, &ADD_OPTIONS(.release = count_other_release));
  d.levels = 100;
  d.depth = d.levels; /* keeps the calls of the two threads from nesting */
  let_two_threads_invoke(d.target);
  CHECK_EQ(d.other_calls, 2);
  d.depth = 0;
  d.at_the_bottom = remove_both;
  CHECK_EQ(multicast_invoke(d.target, 0, NULL, 0), 1);
  CHECK_EQ(d.depth, d.levels);
  CHECK_EQ(d.other_calls, 2);
  CHECK_EQ(multicast_count(d.target), 0);
  CHECK_OK(multicast_destroy(d.target));
}

/* ---- Many running calls ---------------------------------------------------------------------- */

enum { STEPS = 200 };
static multicast steps[STEPS];
static int depth, bystander_releases, step_releases;
static int64_t removed;
static bool has_no_memory;

static void count_bystander(void *context) { (void)context, ++bystander_releases; }
static void count_step(void *context) { (void)context, ++step_releases; }

/* Invokes the next step. The last step removes all delegates of the middle step. */
static void step(void *context, uint32_t event, const void *payload, size_t size) {
  if (event == 0) return;
  if (++depth < STEPS) {
    multicast_invoke(steps[depth], 1, NULL, 0);
    return;
  }
  removed = multicast_remove_all(steps[STEPS / 2]);
  has_no_memory = false;
  CHECK_EQ(bystander_releases, 2); /* no call of these two delegates was running */
  CHECK_EQ(step_releases, 0);      /* this delegate is being called */
}

static void make_steps(void) {
  multicast_add_options bystander = ADD_OPTIONS(.release = count_bystander);
  multicast_delegate idle = {call_nothing, NULL}, next = {step, NULL};
  for (int i = 0; i < STEPS; ++i) {
    steps[i] = multicast_create();
    add_with(steps[i], next, i == STEPS / 2 ? &ADD_OPTIONS(.release = count_step) : NULL);
  }
  add_with(steps[STEPS / 2], idle, &bystander);
  add_with(steps[STEPS / 2], idle, &bystander);
  let_two_threads_invoke(steps[STEPS / 2]);
}

TEST(remove_all_inside_two_hundred_calls_of_different_delegates) {
  make_steps();
  CHECK_EQ(multicast_invoke(steps[0], 1, NULL, 0), 1);
  CHECK_EQ(removed, 3);
  CHECK_EQ(step_releases, 1);
}

static void *fail_if_there_is_none(void *context, size_t size, size_t alignment) {
  return has_no_memory ? NULL : allocate_aligned(size, alignment);
}

TEST(remove_all_inside_two_hundred_calls_works_without_memory) {
  use_allocator(fail_if_there_is_none, NULL);
  make_steps();
  has_no_memory = true;
  CHECK_EQ(multicast_invoke(steps[0], 1, NULL, 0), 1);
  CHECK_EQ(removed, 3);
  CHECK_EQ(step_releases, 1);
}

/* ---- Names ----------------------------------------------------------------------------------- */

static multicast_broadcaster names;
static multicast of_the_name;
static bool is_over;

static void look_names_up(descent *d) {
  while (!LOAD(is_over)) {
    CHECK_EQ(multicast_broadcaster_multicast(names, "name").id, of_the_name.id);
  }
}

/* A thread record contains a frame for each nested call. The lookup needs one more frame than the
 * 256 calls. */
TEST_OF_MULTICAST(names_are_looked_up_in_256_nested_calls_beside_removals) {
  static descent d;
  invoker i;
  names = multicast_broadcaster_create(NULL);
  of_the_name = multicast_broadcaster_multicast(names, "name");
  CHECK(of_the_name.id != 0);
  add(m, counter(&calls));
  let_two_threads_invoke(m);
  d.target = multicast_create();
  d.levels = 256;
  d.at_the_bottom = look_names_up;
  add(d.target, DELEGATE(descend, &d));
  invoke_in_background(&i, d.target);
  for (int round = 0; round < 20000; ++round) {
    CHECK_OK(multicast_token_remove(add(m, counter(&calls))));
  }
  STORE(is_over, true);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_OK(multicast_broadcaster_destroy(names));
}

/* The context of a delegate called by the innermost of 256 nested invocations. */
typedef struct innermost {
  descent around;
  multicast target;
  multicast_token token;
  blocker b;
  int calls;
} innermost;

static void call_the_innermost(descent *d) {
  CHECK_EQ(multicast_invoke(((innermost *)(void *)d)->target, 0, NULL, 0), 3);
}

static void begin_innermost(innermost *i, multicast_delegate d) {
  i->target = multicast_create();
  add(i->target, counter(&i->calls));
  i->token = add(i->target, d);
  add(i->target, counter(&i->calls));
  i->around.target = multicast_create();
  i->around.levels = 255;
  i->around.at_the_bottom = call_the_innermost;
  add(i->around.target, DELEGATE(descend, &i->around));
}

FUNCTION(remove_the_innermost, innermost *i) {
  CHECK_EQ(i->around.depth, 255);
  CHECK_EQ(multicast_token_current().id, i->token.id);
  CHECK_STATUS(multicast_token_remove(i->token), MULTICAST_PENDING);
  CHECK_EQ(multicast_remove_all(i->around.target), 1);
}

TEST(remove_in_the_innermost_of_256_nested_calls_is_pending) {
  static innermost i;
  begin_innermost(&i, DELEGATE(remove_the_innermost, &i));
  CHECK_EQ(multicast_invoke(i.around.target, 0, NULL, 0), 1);
  CHECK_EQ(i.calls, 2);
  CHECK_EQ(multicast_count(i.target), 2);
}

/* Several threads have invoked the multicast, so a removal needs the kernel's memory barrier. */
TEST(removal_and_growth_wait_for_innermost_of_256_nested_calls) {
  static innermost i = {{{0}, 0, 0, NULL, {0}, {0}, 0, 0}, {0}, {0}, BLOCKER_INIT, 0};
  invoker outermost;
  int later = 0;
  use_test_allocator();
  begin_innermost(&i, blocking(&i.b));
  CHECK_OK(multicast_token_pause(i.token));
  let_two_threads_invoke(i.target);
  CHECK_OK(multicast_token_resume(i.token));
  CHECK_EQ(i.calls, 4);
  invoke_in_background(&outermost, i.around.target);
  gate_wait(&i.b.entered);
  /* These adds replace the list that the invocation is reading with larger and larger lists. */
  for (int round = 0; round < 100; ++round) add(i.target, counter(&later));
  CHECK_ERROR(multicast_token_remove_within(i.token, 0), TIMEOUT);
  CHECK_ERROR(multicast_token_remove_within(i.token, 1000000), TIMEOUT);
  CHECK(!LOAD(i.b.has_left));
  gate_open(&i.b.let_go);
  CHECK_EQ(invoke_finished(&outermost), 1);
  CHECK_EQ(i.calls, 6);
  CHECK_EQ(later, 0);
  CHECK_EQ(multicast_invoke(i.target, 0, NULL, 0), 102);
  CHECK_OK(multicast_destroy(i.target));
}
