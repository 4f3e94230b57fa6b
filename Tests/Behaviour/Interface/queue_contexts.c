/* Contexts are locked on the thread that runs their queued calls, and the library holds no lock
 * while `release` runs. */

#include "notes.h"
#include "queues.h"

/* ---- lock and unlock ------------------------------------------------------------------------- */

typedef struct counted {
  int references;
  int locks, unlocks, calls, releases;
  pthread_t locked_on;
  multicast_token remove_in_call;
} counted;

static void *lock_counted(void *context) {
  counted *c = context;
  ++c->locks;
  c->locked_on = pthread_self();
  return c->references > 0 ? c : NULL;
}

static void unlock_counted(void *strong) { ++((counted *)strong)->unlocks; }
static void release_counted(void *context) { ++((counted *)context)->releases; }

FUNCTION(call_counted, counted *c) {
  CHECK_EQ(c->locks, c->unlocks + 1);
  ++c->calls;
  if (c->remove_in_call.id != 0)
    CHECK_STATUS(multicast_token_remove(c->remove_in_call), MULTICAST_PENDING);
}

static multicast_token add_counted_with(counted *c, multicast m, multicast_queue q,
                                        void *(*lock)(void *), uint32_t flags) {
  memset(c, 0, sizeof *c);
  c->references = 1;
  multicast_delegate d = {call_counted, c};
  return add_with(m, d, &ADD_OPTIONS(.queue = q, .lock = lock, .unlock = unlock_counted,
                                     .release = release_counted, .flags = flags));
}

static multicast_token add_counted(counted *c, multicast m, multicast_queue q) {
  return add_counted_with(c, m, q, lock_counted, 0);
}

typedef struct another {
  multicast target;
  int calls;
} another;

FUNCTION(invoke_more, another *more) {
  if (more->calls++ == 0) invoke_number(more->target, 2);
}

static multicast_delegate invoking_again(another *more) {
  return (multicast_delegate){invoke_more, more};
}

static pthread_t runs_on;

static void *run_and_say_where(void *argument) {
  runs_on = pthread_self();
  return run_on_a_new_thread(argument);
}

TEST_OF_MULTICAST(queue_locks_contexts_as_calls_run_and_where_they_run) {
  counted c;
  runner r;
  r.queue = default_queue();
  add_counted(&c, m, r.queue);
  invoke_number(m, 1);
  invoke_number(m, 2);
  CHECK_EQ(c.locks, 0);
  on_another_thread(run_and_say_where, &r);
  CHECK_EQ(r.result, 2);
  CHECK(c.locks == 2 && c.unlocks == 2 && c.calls == 2 && c.releases == 0);
  CHECK(pthread_equal(c.locked_on, runs_on));
}

TEST_OF_QUEUE(queue_cancels_the_calls_of_a_context_found_dead) {
  counted c;
  add_counted(&c, m, q);
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  invoke_number(m, 2);
  invoke_number(m, 3);
  c.references = 0;
  CHECK_NOTED(multicast_queue_run(q, SIZE_MAX), 3, "a1 a2 a3");
  CHECK(c.locks == 1 && c.unlocks == 0 && c.calls == 0 && c.releases == 1);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_TEXT(figures(q), "queued 6, delivered 3, cancelled 3");
}

/* With a `max` of 0, a run makes the number of calls that were waiting when it began. One of those
 * calls is not made, because its context is dead. In its place, the run makes a call that was
 * queued during the run. */
TEST(queue_run_of_all_that_wait_makes_another_for_one_found_dead) {
  counted dying;
  another more = {multicast_create(), 0};
  multicast_queue q = default_queue();
  multicast m = more.target;
  add_counted(&dying, m, q);
  add_queued(m, noting('a'), q);
  add_queued(m, invoking_again(&more), q);
  invoke_number(m, 1);
  dying.references = 0;
  CHECK_NOTED(multicast_queue_run(q, 0), 3, "a1 a2");
  CHECK_EQ(more.calls, 1);
  CHECK_TEXT(figures(q), "pending 1, queued 5, delivered 3, cancelled 1");
}

TEST_OF_QUEUE(queue_unlocks_a_context_whose_call_removed_itself) {
  counted c;
  multicast_token token = add_counted(&c, m, q);
  c.remove_in_call = token;
  invoke_number(m, 1);
  invoke_number(m, 2);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(c.locks == 1 && c.unlocks == 1 && c.calls == 1 && c.releases == 1);
  CHECK_TEXT(figures(q), "queued 2, delivered 1, cancelled 1");
}

TEST_OF_QUEUE(queue_does_not_lock_what_was_removed) {
  counted c;
  multicast_token token = add_counted(&c, m, q);
  invoke_number(m, 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK(c.locks == 0 && c.unlocks == 0 && c.calls == 0 && c.releases == 1);
}

static multicast_token removed_by_lock;

static void *lock_and_remove(void *context) {
  CHECK_STATUS(multicast_token_remove(removed_by_lock), MULTICAST_PENDING);
  return lock_counted(context);
}

TEST_OF_QUEUE(queue_makes_no_call_that_was_removed_by_its_lock) {
  counted c;
  removed_by_lock = add_counted_with(&c, m, q, lock_and_remove, 0);
  invoke_number(m, 1);
  invoke_number(m, 2);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK(c.locks == 1 && c.unlocks == 1 && c.calls == 0 && c.releases == 1);
  CHECK_TEXT(figures(q), "queued 2, cancelled 2");
}

TEST_OF_QUEUE(queue_locks_a_once_context_and_calls_it_once) {
  counted c;
  add_counted_with(&c, m, q, lock_counted, MULTICAST_ONCE);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_EQ(invoke_number(m, 2), 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(c.locks == 1 && c.unlocks == 1 && c.calls == 1 && c.releases == 1);
}

TEST_OF_QUEUE(queue_fd_is_not_readable_when_the_last_call_is_found_dead) {
  counted c;
  int fd = multicast_queue_fd(q);
  add_counted(&c, m, q);
  invoke_number(m, 1);
  invoke_number(m, 2);
  c.references = 0;
  CHECK_EQ(multicast_queue_run(q, 1), 0);
  CHECK(!is_readable(fd));
}

/* ---- Dead contexts --------------------------------------------------------------------------- */

TEST(queue_run_makes_as_many_as_asked_for_beside_dead_contexts) {
  for (size_t max = 0; max < 3; ++max) {
    multicast m = multicast_create();
    multicast_queue q = default_queue();
    int calls = 0, never = 0;
    add_with(m, counter(&never), &ADD_OPTIONS(.queue = q, .lock = lock_dead,
                                              .unlock = unlock_nothing));
    add_queued(m, counter(&calls), q);
    CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
    CHECK_EQ(multicast_queue_run(q, max), 1);
    CHECK_EQ(calls, 1);
    CHECK_EQ(never, 0);
    CHECK_EQ(stats_of(q).pending, 0);
  }
}

/* ---- The library holds no lock --------------------------------------------------------------- */

static multicast_queue used_there;
static multicast used_target;
static int64_t run_there;

/* Uses the queue on another thread, which would hang if this thread were holding one of the
 * library's locks. */
static void use_queue_there(void) {
  CHECK_EQ(invoke_number(used_target, 5), 1);
  CHECK(stats_of(used_there).pending > 0);
  CHECK(multicast_queue_wait(used_there, 0) > 0);
  CHECK(multicast_queue_fd(used_there) >= 0);
  run_there = multicast_queue_run(used_there, 0);
}

static void release_and_use(void *context) {
  count_release_of(context);
  use_queue_there();
}

static void *lock_and_use(void *context) {
  use_queue_there();
  return context;
}

static void unlock_and_use(void *strong) {
  use_queue_there();
}

static multicast_token add_using(multicast m, multicast_delegate d, bool locks) {
  used_there = default_queue();
  used_target = multicast_create();
  add_queued(used_target, noting('u'), used_there);
  multicast_add_options options = ADD_OPTIONS(.queue = used_there, .release = release_and_use);
  if (locks) options.lock = lock_and_use;
  if (locks) options.unlock = unlock_and_use;
  return add_with(m, d, &options);
}

TEST_OF_MULTICAST(queue_may_be_used_inside_a_release) {
  multicast_token token = add_using(m, noting('a'), false);
  invoke_number(m, 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(run_there, 1);
  CHECK_TEXT(noted, "u5");
}

static void remove_current(void *context, uint32_t event, const void *payload, size_t size) {
  note_call(context, event, payload, size);
  CHECK_STATUS(multicast_token_remove(multicast_token_current()), MULTICAST_PENDING);
}

TEST_OF_MULTICAST(queue_may_be_used_inside_a_release_of_its_own_call) {
  multicast_delegate d = noting('a');
  d.function = remove_current;
  add_using(m, d, false);
  invoke_number(m, 1);
  CHECK_EQ(multicast_queue_run(used_there, 0), 1);
  CHECK_EQ(run_there, 1); /* this run was nested in the outer run */
  CHECK_TEXT(noted, "a1 u5");
  CHECK_EQ(releases['a'], 1);
}

TEST_OF_MULTICAST(queue_may_be_used_inside_lock_and_unlock) {
  add_using(m, noting('a'), true);
  invoke_number(m, 1);
  CHECK_NOTED(multicast_queue_run(used_there, 0), 1, "u5 a1 u5");
}

static void release_and_destroy(void *context) {
  count_release_of(context);
  CHECK(multicast_queue_destroy(used_there) >= 0);
}

TEST_OF_MULTICAST(queue_may_be_destroyed_inside_a_release_of_its_own_call) {
  multicast_delegate d = noting('a');
  used_there = default_queue();
  d.function = remove_current;
  add_with(m, d, &ADD_OPTIONS(.queue = used_there, .release = release_and_destroy));
  add_queued(m, noting('b'), used_there);
  invoke_number(m, 1);
  CHECK_NOTED(multicast_queue_run(used_there, 0), 1, "a1");
  CHECK_EQ(releases['a'], 1);
  CHECK_EQ(multicast_count(m), 0);
}
