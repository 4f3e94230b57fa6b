/* Rules 4, 6 and 9 where several things come together: what is removed and still called, lifetimes
 * that end meanwhile, and forks. */

#include "harness.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

static void *invoke_it(void *target) {
  multicast_invoke(*(multicast *)target, 0, NULL, 0);
  return NULL;
}

static void let_two_threads_invoke(multicast m) {
  invoke_it(&m);
  on_another_thread(invoke_it, &m);
}

/* ---- Removing ------------------------------------------------------------------------------ */

TEST(a_multicast_that_never_had_a_delegate_lists_none_and_removes_none) {
  int calls = 0;
  multicast_delegate d = counter(&calls), listed = d;
  multicast m = multicast_create();
  CHECK_EQ(multicast_list(m, &listed, 1), 0);
  CHECK(listed.context == &calls);
  CHECK_EQ(multicast_remove_many(m, &d, 1), 0);
  CHECK_OK(multicast_destroy(m));
}

TEST(remove_many_of_what_is_not_there_does_not_wait_for_what_was_removed) {
  static blocker b = BLOCKER_INIT;
  int calls[4] = {0};
  multicast_delegate absent[2];
  multicast m = multicast_create();
  multicast_token token = add(m, blocking(&b));
  invoker i;
  absent[0] = counter(&calls[2]);
  absent[1] = counter(&calls[3]);
  add(m, counter(&calls[0]));
  add(m, counter(&calls[1]));
  invoke_in_background(&i, m);
  gate_wait(&b.entered);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  CHECK_EQ(multicast_remove_many(m, absent, 2), 0); /* it would wait for ever */
  CHECK(!LOAD(b.has_left));
  gate_open(&b.let_go);
  CHECK_EQ(invoke_finished(&i), 3);
  CHECK_OK(multicast_destroy(m));
}

static void *run_it(void *queue) {
  CHECK_EQ(multicast_queue_run(*(multicast_queue *)queue, 0), 1);
  return NULL;
}

TEST(remove_does_not_wait_for_a_queued_call_of_another_multicast) {
  static blocker b = BLOCKER_INIT;
  int calls = 0;
  multicast m = multicast_create(), other = multicast_create();
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  multicast_token token = add_queued(other, blocking(&b), q);
  pthread_t runner;
  CHECK_EQ(multicast_invoke(other, 0, NULL, 0), 1);
  runner = start_thread(run_it, &q);
  gate_wait(&b.entered);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  CHECK_STATUS(multicast_remove(m, blocking(&b)), MULTICAST_ERROR_NOT_FOUND);
  CHECK_STATUS(multicast_remove(m, counter(&calls)), MULTICAST_ERROR_NOT_FOUND);
  CHECK(!LOAD(b.has_left));
  gate_open(&b.let_go);
  join_thread(runner);
  CHECK_OK(multicast_destroy(m));
  CHECK_OK(multicast_destroy(other));
  CHECK_OK(multicast_queue_destroy(q));
}

/* ---- Deep stacks --------------------------------------------------------------------------- */

typedef struct descent {
  multicast target;
  int depth, levels;
  void (*at_the_bottom)(struct descent *);
  multicast_token self, other;
  int other_calls, other_releases;
} descent;

static void descend(void *context, uint32_t event, const void *payload, size_t size) {
  descent *d = context;
  (void)event, (void)payload, (void)size;
  if (++d->depth < d->levels) {
    multicast_invoke(d->target, 0, NULL, 0);
  } else if (d->depth == d->levels) {
    d->at_the_bottom(d);
  }
}

static void count_other(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event, (void)payload, (void)size;
  ADD(((descent *)context)->other_calls, 1);
}

static void count_other_release(void *context) { ADD(((descent *)context)->other_releases, 1); }

static void remove_both(descent *d) {
  CHECK_OK(multicast_token_remove(d->other));
  CHECK_EQ(d->other_releases, 1);
  CHECK_STATUS(multicast_token_remove(d->self), MULTICAST_PENDING);
}

TEST(remove_inside_a_hundred_nested_calls_tells_what_is_called_from_what_is_not) {
  static descent d;
  multicast_options options = with_release(count_other_release);
  multicast_delegate self = {descend, &d}, other = {count_other, &d};
  d.target = multicast_create();
  d.self = add(d.target, self);
  d.other = add_with(d.target, other, &options);
  d.levels = 100;
  d.depth = d.levels; /* so that these two do not descend */
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

static multicast_broadcaster names;
static multicast of_the_name;
static bool is_over;

static void look_names_up(descent *d) {
  (void)d;
  while (!LOAD(is_over)) {
    CHECK_EQ(multicast_broadcaster_multicast(names, "name").id, of_the_name.id);
  }
}

/* The look-up has a frame above the innermost one. */
TEST(names_are_looked_up_inside_256_nested_calls_while_others_remove) {
  static descent d;
  int calls = 0, round;
  multicast m = multicast_create();
  multicast_delegate self = {descend, &d};
  invoker i;
  names = multicast_broadcaster_create(NULL);
  of_the_name = multicast_broadcaster_multicast(names, "name");
  CHECK(of_the_name.id != 0);
  add(m, counter(&calls));
  let_two_threads_invoke(m);
  d.target = multicast_create();
  d.levels = 256;
  d.at_the_bottom = look_names_up;
  add(d.target, self);
  invoke_in_background(&i, d.target);
  for (round = 0; round < 20000; ++round) {
    CHECK_OK(multicast_token_remove(add(m, counter(&calls))));
  }
  STORE(is_over, true);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_OK(multicast_broadcaster_destroy(names));
}

/* What the innermost of 256 invocations calls: 255 are around it. */
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
  multicast_delegate self = {descend, NULL};
  self.context = &i->around;
  i->target = multicast_create();
  add(i->target, counter(&i->calls));
  i->token = add(i->target, d);
  add(i->target, counter(&i->calls));
  i->around.target = multicast_create();
  i->around.levels = 255;
  i->around.at_the_bottom = call_the_innermost;
  add(i->around.target, self);
}

static void remove_the_innermost(void *context, uint32_t event, const void *payload, size_t size) {
  innermost *i = context;
  (void)event, (void)payload, (void)size;
  CHECK_EQ(i->around.depth, 255);
  CHECK_EQ(multicast_token_current().id, i->token.id);
  CHECK_STATUS(multicast_token_remove(i->token), MULTICAST_PENDING);
  CHECK_EQ(multicast_remove_all(i->around.target), 1);
}

TEST(remove_in_the_innermost_of_256_nested_calls_is_pending) {
  static innermost i;
  multicast_delegate d = {remove_the_innermost, &i};
  begin_innermost(&i, d);
  CHECK_EQ(multicast_invoke(i.around.target, 0, NULL, 0), 1);
  CHECK_EQ(i.calls, 2);
  CHECK_EQ(multicast_count(i.target), 2);
}

/* The threads that invoked before keep the library from knowing who invokes. */
TEST(removal_and_growth_wait_for_the_innermost_of_256_nested_calls) {
  static innermost i = {{{0}, 0, 0, NULL, {0}, {0}, 0, 0}, {0}, {0}, BLOCKER_INIT, 0};
  invoker outermost;
  int later = 0, round;
  use_test_allocator();
  begin_innermost(&i, blocking(&i.b));
  CHECK_OK(multicast_token_pause(i.token));
  let_two_threads_invoke(i.target);
  CHECK_OK(multicast_token_resume(i.token));
  CHECK_EQ(i.calls, 4);
  invoke_in_background(&outermost, i.around.target);
  gate_wait(&i.b.entered);
  /* The list that is being read is replaced by larger ones, again and again. */
  for (round = 0; round < 100; ++round) add(i.target, counter(&later));
  CHECK_STATUS(multicast_token_remove_within(i.token, 0), MULTICAST_ERROR_TIMEOUT);
  CHECK_STATUS(multicast_token_remove_within(i.token, 1000000), MULTICAST_ERROR_TIMEOUT);
  CHECK(!LOAD(i.b.has_left));
  gate_open(&i.b.let_go);
  CHECK_EQ(invoke_finished(&outermost), 1);
  CHECK_EQ(i.calls, 6);
  CHECK_EQ(later, 0);
  CHECK_EQ(multicast_invoke(i.target, 0, NULL, 0), 102);
  CHECK_OK(multicast_destroy(i.target));
}

/* ---- The end of a lifetime ----------------------------------------------------------------- */

typedef struct stay {
  multicast_lifetime lifetime;
  multicast m;
  multicast_token token;
  blocker call, release;
} stay;
#define STAY_INIT {{0}, {0}, {0}, BLOCKER_INIT, BLOCKER_INIT}

static void stay_in_release(void *context) {
  block_call(&((stay *)context)->release, 0, NULL, 0);
}

static void stay_in_call(void *context, uint32_t event, const void *payload, size_t size) {
  block_call(&((stay *)context)->call, event, payload, size);
}

static void begin_stay(stay *s) {
  multicast_options options = with_release(stay_in_release);
  multicast_delegate d = {stay_in_call, NULL};
  d.context = s;
  s->lifetime = multicast_lifetime_create();
  options.lifetime = s->lifetime;
  s->m = multicast_create();
  s->token = add_with(s->m, d, &options);
}

static void *remove_it(void *token) {
  CHECK_OK(multicast_token_remove(*(multicast_token *)token));
  return NULL;
}

static void end_at_once(void *lifetime) {
  CHECK_OK(multicast_lifetime_end(*(multicast_lifetime *)lifetime));
}

TEST(lifetime_end_in_the_child_of_a_fork_does_not_wait_for_a_release_on_the_parents_thread) {
  static stay s = STAY_INIT;
  pthread_t remover;
  begin_stay(&s);
  remover = start_thread(remove_it, &s.token);
  gate_wait(&s.release.entered);
  in_child(end_at_once, &s.lifetime);
  gate_open(&s.release.let_go);
  join_thread(remover);
  CHECK_OK(multicast_lifetime_end(s.lifetime));
}

static int64_t queued;

static void *queue_one_more(void *target) {
  queued = multicast_invoke(*(multicast *)target, 0, NULL, 0);
  return NULL;
}

TEST(lifetime_end_does_not_wait_for_a_release_while_a_thread_waits_for_room_that_it_is_to_make) {
  static stay s = STAY_INIT;
  int calls = 0;
  multicast m = multicast_create();
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  pthread_t remover, producer;
  begin_stay(&s);
  add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  remover = start_thread(remove_it, &s.token);
  gate_wait(&s.release.entered);
  producer = start_thread(queue_one_more, &m);
  pause_ms(A_WHILE_MS); /* it waits for room */
  CHECK_STATUS(multicast_lifetime_end(s.lifetime), MULTICAST_PENDING);
  CHECK(!LOAD(s.release.has_left));
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  join_thread(producer);
  CHECK_EQ(queued, 1);
  gate_open(&s.release.let_go);
  join_thread(remover);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_EQ(calls, 2);
}

static void *let_it_go_later(void *of) {
  pause_ms(2);
  gate_open(&((stay *)of)->call.let_go);
  return NULL;
}

static multicast_status ended;

/* The call that it waits for has its release afterwards; that may have run by then, or not. */
static void end_inside_a_call(void *context, uint32_t event, const void *payload, size_t size) {
  stay *s = context;
  pthread_t opener = start_thread(let_it_go_later, s);
  (void)event, (void)payload, (void)size;
  ended = multicast_lifetime_end(s->lifetime);
  CHECK(ended == MULTICAST_OK || ended == MULTICAST_PENDING);
  CHECK(LOAD(s->call.has_left));
  if (ended == MULTICAST_OK) CHECK(LOAD(s->release.has_left));
  join_thread(opener);
}

TEST(lifetime_end_inside_a_call_waits_for_calls_and_tells_whether_releases_have_run) {
  int round;
  for (round = 0; round < 50; ++round) {
    static const stay fresh = STAY_INIT;
    stay s = fresh;
    multicast m = multicast_create();
    multicast_delegate ending = {end_inside_a_call, NULL};
    invoker i;
    ending.context = &s;
    begin_stay(&s);
    gate_open(&s.release.let_go);
    add(m, ending);
    invoke_in_background(&i, s.m);
    gate_wait(&s.call.entered);
    CHECK_STATUS(multicast_token_remove_nowait(s.token), MULTICAST_PENDING);
    CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
    CHECK_EQ(invoke_finished(&i), 1);
    CHECK_EQ(s.release.calls, 1);
    CHECK_OK(multicast_destroy(m));
    CHECK_OK(multicast_destroy(s.m));
  }
}

/* Two threads that do something to the same registration at the same time, again and again. */
typedef struct duel {
  multicast_token token;
  multicast_lifetime lifetime;
  int round, finished; /* the other thread has been told to begin, and has done it, so often */
  int releases;
} duel;

enum { ROUNDS = 3000 };

static void *remove_in_each_round(void *of) {
  duel *d = of;
  int round;
  for (round = 1; round <= ROUNDS; ++round) {
    multicast_status status;
    while (LOAD(d->round) < round) sched_yield();
    status = multicast_token_remove(d->token);
    CHECK(status == MULTICAST_OK || status == MULTICAST_ERROR_INVALID_HANDLE);
    STORE(d->finished, round);
  }
  return NULL;
}

TEST(lifetime_end_and_a_removal_of_its_member_at_once_release_it_once) {
  static duel d;
  multicast m = multicast_create();
  pthread_t remover = start_thread(remove_in_each_round, &d);
  int round;
  for (round = 1; round <= ROUNDS; ++round) {
    multicast_options options = with_release(count_release);
    options.lifetime = d.lifetime = multicast_lifetime_create();
    d.token = add_with(m, counter(&d.releases), &options);
    STORE(d.round, round);
    CHECK_OK(multicast_lifetime_end(d.lifetime));
    CHECK_EQ(LOAD(d.releases), round);
    while (LOAD(d.finished) < round) sched_yield();
    CHECK_EQ(LOAD(d.releases), round);
  }
  join_thread(remover);
  CHECK_OK(multicast_destroy(m));
}

/* ---- fork ---------------------------------------------------------------------------------- */

enum { MANY = 200 };

static multicast_queue many[MANY];
static multicast all_of_them;
static int many_calls;

static void find_all_empty(void *unused) {
  int i;
  (void)unused;
  for (i = 0; i < MANY; ++i) CHECK_EQ(stats_of(many[i]).pending, 0);
  CHECK_EQ(multicast_invoke(all_of_them, 0, NULL, 0), MANY);
  for (i = 0; i < MANY; ++i) CHECK_EQ(multicast_queue_run(many[i], 0), 1);
  CHECK_EQ(many_calls, MANY);
}

TEST(fork_child_finds_each_of_many_queues_empty_and_the_parent_finds_them_full) {
  int i;
  all_of_them = multicast_create();
  for (i = 0; i < MANY; ++i) {
    many[i] = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
    add_queued(all_of_them, counter(&many_calls), many[i]);
  }
  CHECK_EQ(multicast_invoke(all_of_them, 0, NULL, 0), MANY);
  in_child(find_all_empty, NULL);
  CHECK_EQ(many_calls, 0);
  for (i = 0; i < MANY; ++i) CHECK_EQ(multicast_queue_run(many[i], 0), 1);
  CHECK_EQ(many_calls, MANY);
  for (i = 0; i < MANY; ++i) CHECK_OK(multicast_queue_destroy(many[i]));
}

typedef struct watched {
  multicast_queue queue;
  multicast m;
  int descriptor;
} watched;

static void find_it_closed_on_exec(void *context) {
  watched *w = context;
  int flags = fcntl(w->descriptor, F_GETFD);
  CHECK_EQ(multicast_queue_fd(w->queue), w->descriptor);
  CHECK(flags >= 0);
  CHECK_EQ(flags & FD_CLOEXEC, FD_CLOEXEC);
}

/* With a lower one free the child's own is opened as another one first. */
TEST(queue_fd_of_the_child_of_a_fork_is_not_passed_on_to_other_programs) {
  int lower = open("/dev/null", O_RDONLY);
  watched w;
  CHECK(lower >= 0);
  w.queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  w.descriptor = multicast_queue_fd(w.queue);
  CHECK(w.descriptor > lower);
  in_child(find_it_closed_on_exec, &w);
  CHECK_EQ(close(lower), 0);
  in_child(find_it_closed_on_exec, &w);
  CHECK_OK(multicast_queue_destroy(w.queue));
}

static void find_it_readable(void *context) {
  watched *w = context;
  CHECK_EQ(multicast_queue_fd(w->queue), w->descriptor);
  CHECK(!is_readable(w->descriptor));
  CHECK_EQ(multicast_invoke(w->m, 0, NULL, 0), 1);
  CHECK(is_readable(w->descriptor));
  CHECK_EQ(multicast_queue_run(w->queue, 0), 1);
  CHECK(!is_readable(w->descriptor));
}

/* The child's own is opened as another one first. */
TEST(queue_fd_keeps_its_number_in_the_child_of_a_fork_where_a_lower_one_is_free) {
  int calls = 0, lower = open("/dev/null", O_RDONLY);
  watched w;
  CHECK(lower >= 0);
  w.m = multicast_create();
  w.queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  add_queued(w.m, counter(&calls), w.queue);
  w.descriptor = multicast_queue_fd(w.queue);
  CHECK(w.descriptor > lower);
  CHECK_EQ(close(lower), 0);
  in_child(find_it_readable, &w);
  CHECK(!is_readable(w.descriptor)); /* what the child did there is not seen here */
  find_it_readable(&w);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_queue_destroy(w.queue));
}
