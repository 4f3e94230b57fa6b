/* Queues are destroyed, started and stopped while other threads are using them. */

#include "producers.h"
#include "queues.h"

static int guests_released;

static void release_counted(void *context) {
  STORE(((guest *)context)->magic, DEAD);
  ADD(guests_released, 1);
}

static void destroys_in_use(multicast_overflow overflow, bool has_worker) {
  for (int round = 0; round < 25; ++round) {
    producer p[2];
    guest g = {ALIVE, 0, {0}, {0}, false};
    multicast_queue q = queue_with(4, overflow);
    multicast m = multicast_create();
    guests_released = 0;
    add_with(m, DELEGATE(call_guest, &g), &ADD_OPTIONS(.queue = q, .release = release_counted));
    if (has_worker) CHECK_OK(multicast_queue_start(q));
    sleeper w = {.queue = q, .returned = shut};
    w.thread = start_thread(wait_in_queue, &w);
    start_producers(p, 2, m, 500);
    if (round % 5 > 0) pause_ms(round % 5);
    if (!has_worker && round % 2 == 0) CHECK(multicast_queue_run(q, 0) >= 0);
    CHECK_OK(multicast_queue_destroy(q));
    /* each call checks this value, so any call from now on would fail the test */
    CHECK_EQ(LOAD(g.magic), DEAD);
    CHECK_EQ(LOAD(guests_released), 1);
    CHECK_EQ(multicast_count(m), 0);
    CHECK_ERROR(multicast_queue_run(q, 0), INVALID_HANDLE);
    join_producers(p, 2); /* no producer stays blocked */
    join_thread(w.thread);
    CHECK(w.result > 0 || w.result == MULTICAST_ERROR_INVALID_HANDLE);
    CHECK_OK(multicast_destroy(m));
  }
}

TEST(queue_destroyed_while_producers_and_a_worker_use_it) {
  destroys_in_use(MULTICAST_OVERFLOW_REFUSE, true);
}
TEST(queue_destroyed_while_producers_are_blocked_and_worker_runs) {
  destroys_in_use(MULTICAST_OVERFLOW_BLOCK, true);
}
TEST(queue_destroyed_while_producers_are_blocked) {
  destroys_in_use(MULTICAST_OVERFLOW_BLOCK, false);
}
TEST(queue_destroyed_while_producers_drop_the_oldest) {
  destroys_in_use(MULTICAST_OVERFLOW_DROP_OLDEST, true);
}

static void *start_queue(void *argument) {
  return (void *)(intptr_t)multicast_queue_start(*(multicast_queue *)argument);
}

static void *stop_queue(void *argument) {
  return (void *)(intptr_t)multicast_queue_stop(*(multicast_queue *)argument);
}

/* Runs the body on four threads at the same time, and returns how many of them received
 * MULTICAST_OK. The other threads must receive MULTICAST_ERROR_STATE. */
static int at_once(void *(*body)(void *), multicast_queue *q) {
  pthread_t threads[4];
  int successes = 0;
  for (int i = 0; i < 4; ++i) threads[i] = start_thread(body, q);
  for (int i = 0; i < 4; ++i) {
    void *status;
    CHECK_EQ(pthread_join(threads[i], &status), 0);
    if ((intptr_t)status == MULTICAST_OK) {
      ++successes;
    } else {
      CHECK_ERROR((intptr_t)status, STATE);
    }
  }
  return successes;
}

TEST(queue_started_by_several_threads_at_once_has_one_worker) {
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create();
  add_queued(m, counter(&calls), q);
  for (int round = 1; round <= 30; ++round) {
    CHECK_EQ(at_once(start_queue, &q), 1);
    CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
    EVENTUALLY(LOAD(calls) == round);
    CHECK(at_once(stop_queue, &q) >= 1);
    CHECK_ERROR(multicast_queue_stop(q), STATE);
  }
}

static multicast_queue passing;
static bool is_over;

THREAD(create_and_destroy, void *unused) {
  for (int i = 0; i < 3000; ++i) {
    multicast_queue queue = queue_with(2, MULTICAST_OVERFLOW_REFUSE);
    STORE(passing.id, queue.id);
    CHECK_OK(multicast_queue_destroy(queue));
  }
  STORE(is_over, true);
}

TEST_OF_MULTICAST(queue_that_ends_as_others_add_leaves_lifetimes_empty) {
  multicast_lifetime lifetime = multicast_lifetime_create();
  int releases = 0, added = 0;
  pthread_t thread = start_thread(create_and_destroy, NULL);
  multicast_add_options options = ADD_OPTIONS(.release = count_release, .lifetime = lifetime);
  while (!LOAD(is_over)) {
    options.queue.id = LOAD(passing.id);
    if (options.queue.id == 0) continue;
    multicast_status status = multicast_add(m, counter(&releases), &options, NULL);
    if (status != MULTICAST_OK) CHECK_ERROR(status, INVALID_HANDLE);
    ++added;
    multicast_invoke(m, 0, NULL, 0);
  }
  join_thread(thread);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(multicast_lifetime_count(lifetime), 0);
  CHECK_OK(multicast_lifetime_end(lifetime));
  CHECK_EQ(LOAD(releases), added);
}

THREAD(stop_all_the_time, multicast_queue *argument) {
  while (!LOAD(is_over)) {
    multicast_status status = multicast_queue_stop(*argument);
    if (status != MULTICAST_OK) CHECK_ERROR(status, STATE);
  }
}

TEST(queue_stop_waits_for_worker_that_it_stops_and_not_for_next) {
  multicast_queue queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  pthread_t stopper = start_thread(stop_all_the_time, &queue);
  int started = 0;
  while (started < 200) {
    multicast_status status = multicast_queue_start(queue);
    if (status == MULTICAST_OK) {
      ++started;
    } else {
      CHECK_ERROR(status, STATE);
    }
  }
  STORE(is_over, true);
  join_thread(stopper);
  CHECK_OK(multicast_queue_destroy(queue));
}
