/* Rule 7 meets rule 4: who waits for whom where queues are full, end, or begin anew. */

#include "harness.h"

static multicast_queue create_queue(uint32_t capacity, multicast_overflow overflow) {
  multicast_queue_options options = multicast_queue_options_default();
  multicast_queue queue;
  options.capacity = capacity;
  options.overflow = overflow;
  queue = multicast_queue_create(&options);
  CHECK(queue.id != 0);
  return queue;
}

static multicast_options delivered_to(multicast_queue queue) {
  multicast_options options = multicast_options_default();
  options.queue = queue;
  return options;
}

static uint64_t pending(multicast_queue queue) {
  multicast_queue_stats stats = multicast_queue_stats_default();
  CHECK_OK(multicast_queue_statistics(queue, &stats));
  return stats.pending;
}

/* ---- The next queue in a slot ------------------------------------------------------------------ */

typedef struct successor {
  multicast_queue old, new;
  multicast target;
  int calls;
  blocker *other; /* runs in the new queue meanwhile, if there is one */
} successor;

static void *run_the_new(void *argument) {
  successor *s = argument;
  CHECK_EQ(multicast_queue_run(s->new, 1), 1);
  return NULL;
}

static void destroy_and_create(void *context, uint32_t event, const void *payload, size_t size) {
  successor *s = context;
  multicast_options options;
  multicast_queue taken[64];
  int count = 0;
  (void)event, (void)payload, (void)size;
  ++s->calls;
  CHECK_STATUS(multicast_queue_destroy(s->old), MULTICAST_PENDING);
  /* Until it is the one that has the old one's slot: the low bits are its index. */
  do {
    s->new = create_queue(4, MULTICAST_OVERFLOW_REFUSE);
    if (((s->new.id ^ s->old.id) & 0x3FFFFFF) == 0) break;
    taken[count++] = s->new;
  } while (count < 64);
  CHECK(count < 64);
  while (count > 0) CHECK_OK(multicast_queue_destroy(taken[--count]));
  options = delivered_to(s->new);
  if (s->other != NULL) {
    add_with(s->target, blocking(s->other), &options);
    CHECK_EQ(multicast_invoke(s->target, 0, NULL, 0), 1);
    start_thread(run_the_new, s);
    gate_wait(&s->other->entered);
  } else {
    add_with(s->target, counter(&s->calls), &options);
    CHECK_EQ(multicast_invoke(s->target, 0, NULL, 0), 1);
  }
}

TEST(queue_run_makes_no_call_of_the_next_queue_in_its_slot) {
  successor s = {{0}, {0}, {0}, 0, NULL};
  multicast m = multicast_create();
  multicast_delegate d = {destroy_and_create, &s};
  multicast_options options;
  s.old = create_queue(4, MULTICAST_OVERFLOW_REFUSE);
  s.target = multicast_create();
  options = delivered_to(s.old);
  add_with(m, d, &options);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(s.old, 100), 1);
  CHECK_EQ(s.calls, 1);
  CHECK_EQ(pending(s.new), 1);
  CHECK_EQ(multicast_queue_run(s.new, 0), 1);
  CHECK_EQ(s.calls, 2);
}

TEST(queue_run_that_ends_late_leaves_the_next_queue_in_its_slot_to_its_runner) {
  static blocker b = BLOCKER_INIT;
  successor s = {{0}, {0}, {0}, 0, &b};
  multicast m = multicast_create();
  multicast_delegate d = {destroy_and_create, &s};
  multicast_options options;
  s.old = create_queue(4, MULTICAST_OVERFLOW_REFUSE);
  s.target = multicast_create();
  options = delivered_to(s.old);
  add_with(m, d, &options);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(s.old, 100), 1);
  CHECK_STATUS(multicast_queue_run(s.new, 1), MULTICAST_ERROR_STATE);
  gate_open(&b.let_go);
}

/* ---- What is not waited for -------------------------------------------------------------------- */

static void *run_one(void *argument) {
  multicast_queue_run(*(multicast_queue *)argument, 1);
  return NULL;
}

TEST(queue_call_that_was_removed_is_not_waited_for_by_the_removal_of_others) {
  static blocker b = BLOCKER_INIT;
  int calls = 0;
  multicast m = multicast_create();
  multicast_queue queue = create_queue(4, MULTICAST_OVERFLOW_REFUSE);
  multicast_options options = delivered_to(queue);
  multicast_token token = add_with(m, blocking(&b), &options);
  pthread_t runner;
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  runner = start_thread(run_one, &queue);
  gate_wait(&b.entered);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  CHECK_STATUS(multicast_remove(m, counter(&calls)), MULTICAST_ERROR_NOT_FOUND);
  CHECK_EQ(multicast_remove_context(m, &calls), 0);
  gate_open(&b.let_go);
  join_thread(runner);
}

/* ---- Ends of lifetimes, and threads that wait for room ------------------------------------------ */

typedef struct cycle {
  multicast target; /* its delegate's calls wait in a queue that is full */
  gate entered, go_on, has_left;
  int64_t queued;
  int releases;
} cycle;

static void invoke_into_the_full_queue(void *context, uint32_t event, const void *payload,
                                       size_t size) {
  cycle *c = context;
  (void)event, (void)payload, (void)size;
  gate_open(&c->entered);
  gate_wait(&c->go_on);
  c->queued = multicast_invoke(c->target, 0, NULL, 0);
  gate_open(&c->has_left);
}

static void release_cycle(void *context) { ADD(((cycle *)context)->releases, 1); }

static void *open_after_a_while(void *argument) {
  pause_ms(A_WHILE_MS);
  gate_open(argument);
  return NULL;
}

/* A delegate of a lifetime that is removed, but runs still, and is about to wait for room in a queue
 * that this thread runs. */
static multicast_lifetime begin_cycle(cycle *c, invoker *i, multicast_queue queue, int *calls) {
  multicast_lifetime lifetime = multicast_lifetime_create();
  multicast_options options = delivered_to(queue);
  multicast m = multicast_create();
  multicast_delegate d = {invoke_into_the_full_queue, c};
  multicast_token token;
  c->target = multicast_create();
  add_with(c->target, counter(calls), &options);
  CHECK_EQ(multicast_invoke(c->target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(queue, 0), 1); /* it is for this thread to run */
  CHECK_EQ(multicast_invoke(c->target, 0, NULL, 0), 1); /* it is full */

  options = with_release(release_cycle);
  options.lifetime = lifetime;
  token = add_with(m, d, &options);
  invoke_in_background(i, m);
  gate_wait(&c->entered);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  return lifetime;
}

TEST(queue_that_is_full_refuses_a_thread_that_the_end_of_a_lifetime_waits_for) {
  static cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  int calls = 0;
  invoker i;
  multicast_queue queue = create_queue(1, MULTICAST_OVERFLOW_BLOCK);
  multicast_lifetime lifetime = begin_cycle(&c, &i, queue, &calls);
  pthread_t opener = start_thread(open_after_a_while, &c.go_on);
  CHECK_OK(multicast_lifetime_end(lifetime));
  CHECK_EQ(c.releases, 1);
  CHECK_EQ(c.queued, 0);
  join_thread(opener);
  CHECK_EQ(invoke_finished(&i), 1);
}

TEST(lifetime_end_is_pending_where_a_thread_waits_for_room_that_the_caller_has_to_make) {
  static cycle c = {{0}, GATE_INIT, GATE_INIT, GATE_INIT, -1, 0};
  int calls = 0;
  invoker i;
  multicast_queue queue = create_queue(1, MULTICAST_OVERFLOW_BLOCK);
  multicast_lifetime lifetime = begin_cycle(&c, &i, queue, &calls);
  gate_open(&c.go_on);
  CHECK(!gate_opens_within(&c.has_left, A_WHILE_MS)); /* it waits for room */
  CHECK_STATUS(multicast_lifetime_end(lifetime), MULTICAST_PENDING);
  CHECK_EQ(multicast_queue_run(queue, 1), 1);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(c.queued, 1);
  CHECK_EQ(c.releases, 1);
}

/* ---- Queues that end while others come ---------------------------------------------------------- */

static multicast_queue passing;
static bool is_over;

static void *create_and_destroy(void *unused) {
  int i;
  (void)unused;
  for (i = 0; i < 3000; ++i) {
    multicast_queue queue = create_queue(2, MULTICAST_OVERFLOW_REFUSE);
    STORE(passing.id, queue.id);
    CHECK_OK(multicast_queue_destroy(queue));
  }
  STORE(is_over, true);
  return NULL;
}

TEST(queue_that_ends_as_others_add_leaves_nothing_in_their_lifetimes) {
  multicast m = multicast_create();
  multicast_lifetime lifetime = multicast_lifetime_create();
  multicast_options options = with_release(count_release);
  int releases = 0, added = 0;
  pthread_t thread = start_thread(create_and_destroy, NULL);
  options.lifetime = lifetime;
  while (!LOAD(is_over)) {
    multicast_status status;
    options.queue.id = LOAD(passing.id);
    if (options.queue.id == 0) continue;
    status = multicast_add(m, counter(&releases), &options, NULL);
    if (status != MULTICAST_OK) CHECK_STATUS(status, MULTICAST_ERROR_INVALID_HANDLE);
    ++added;
    multicast_invoke(m, 0, NULL, 0);
  }
  join_thread(thread);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(multicast_lifetime_count(lifetime), 0);
  CHECK_OK(multicast_lifetime_end(lifetime));
  CHECK_EQ(LOAD(releases), added);
}

/* ---- A worker after the other ------------------------------------------------------------------ */

static void *stop_all_the_time(void *argument) {
  while (!LOAD(is_over)) {
    multicast_status status = multicast_queue_stop(*(multicast_queue *)argument);
    if (status != MULTICAST_OK) CHECK_STATUS(status, MULTICAST_ERROR_STATE);
  }
  return NULL;
}

TEST(queue_stop_waits_for_the_worker_that_it_stops_and_not_for_the_next) {
  multicast_queue queue = create_queue(4, MULTICAST_OVERFLOW_REFUSE);
  pthread_t stopper = start_thread(stop_all_the_time, &queue);
  int started = 0;
  while (started < 200) {
    multicast_status status = multicast_queue_start(queue);
    if (status == MULTICAST_OK) {
      ++started;
    } else {
      CHECK_STATUS(status, MULTICAST_ERROR_STATE);
    }
  }
  STORE(is_over, true);
  join_thread(stopper);
  CHECK_OK(multicast_queue_destroy(queue));
}
