/* Each producer's calls keep their order, and none of them is lost. */

#include "producers.h"
#include "queues.h"

#include <poll.h>

/* ---- Order ----------------------------------------------------------------------------------- */

static void sleep_until_readable(int descriptor) {
  struct pollfd polled = {0, POLLIN, 0};
  polled.fd = descriptor;
  CHECK_EQ(poll(&polled, 1, 20000), 1); /* a timeout means that a wake-up was lost */
}

typedef enum consumption { BY_RUN, BY_WORKER, BY_POLL, BY_TURNS } consumption;

enum { SECOND = 1000000000 };

static void consume(multicast_queue q, const inbox *in, uint32_t expected, consumption how) {
  int fd = how == BY_POLL ? multicast_queue_fd(q) : -1;
  uint32_t round = 0;
  while (LOAD(in->received) < expected) {
    switch (how) {
      case BY_RUN:
        CHECK(multicast_queue_wait(q, UINT64_C(20) * SECOND) > 0);
        CHECK(multicast_queue_run(q, ++round % 5) >= 0);
        break;
      case BY_POLL:
        sleep_until_readable(fd);
        CHECK(multicast_queue_run(q, 0) > 0);
        break;
      case BY_TURNS: /* alternate between this thread and a worker */
        CHECK_OK(multicast_queue_start(q));
        while (round % 3 == 0 && stats_of(q).delivered < expected / 2) sched_yield();
        CHECK_OK(multicast_queue_stop(q));
        CHECK(multicast_queue_run(q, ++round % 50) >= 0);
        break;
      default: pause_ms(1); break;
    }
  }
}

static void keeps_order(uint32_t producers, uint32_t count, uint32_t capacity, consumption how) {
  producer p[MOST_PRODUCERS];
  inbox in;
  multicast_queue q = queue_with(capacity, MULTICAST_OVERFLOW_BLOCK);
  multicast m = multicast_create();
  add_queued(m, receiving(&in), q);
  if (how == BY_WORKER) CHECK_OK(multicast_queue_start(q));
  start_producers(p, producers, m, count);
  consume(q, &in, producers * count, how);
  CHECK_EQ(join_producers(p, producers), producers * count);
  if (how == BY_WORKER) CHECK_OK(multicast_queue_stop(q));
  for (uint32_t i = 0; i < producers; ++i) CHECK_EQ(in.last[i], count);
  multicast_queue_stats s = stats_of(q);
  CHECK(s.delivered == (uint64_t)producers * count && s.queued == s.delivered && s.refused == 0);
  CHECK(s.highest <= capacity);
  if (how == BY_POLL) CHECK(!is_readable(multicast_queue_fd(q)));
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_OK(multicast_destroy(m));
}

static void keeps_order_of_1_to_4(uint32_t count, consumption how) {
  for (uint32_t producers = 1; producers <= MOST_PRODUCERS; ++producers) {
    keeps_order(producers, count, 64, how);
    keeps_order(producers, count / 10, 1, how);
  }
}

TEST(queue_keeps_the_order_of_each_producer_when_run) { keeps_order_of_1_to_4(3000, BY_RUN); }
TEST(queue_keeps_the_order_of_each_producer_on_its_worker) {
  keeps_order_of_1_to_4(3000, BY_WORKER);
}
TEST(queue_keeps_the_order_of_each_producer_when_polled) { keeps_order_of_1_to_4(3000, BY_POLL); }
TEST(queue_keeps_order_of_each_producer_when_runner_changes) {
  keeps_order(1, 2000, 64, BY_TURNS);
  keeps_order(3, 2000, 64, BY_TURNS);
}

/* ---- Calls passed from worker to worker ------------------------------------------------------ */

/* The context of a delegate whose calls append a call to the next queue, which has a different
 * worker. */
typedef struct relay {
  multicast next;
  uint32_t passed;
} relay;

FUNCTION(pass_on, relay *r) {
  ++r->passed;
  if (r->next.id != 0) CHECK_EQ(multicast_invoke(r->next, event, payload, size), 1);
}

TEST(queue_calls_pass_from_worker_to_worker) {
  enum { STAGES = 4, COUNT = 2000 };
  multicast_queue q[STAGES];
  multicast m[STAGES];
  relay relays[STAGES];
  producer p[1];
  for (int i = STAGES - 1; i >= 0; --i) {
    q[i] = queue_with(8, MULTICAST_OVERFLOW_BLOCK);
    m[i] = multicast_create();
    relays[i].next.id = i + 1 < STAGES ? m[i + 1].id : 0;
    relays[i].passed = 0;
    add_queued(m[i], DELEGATE(pass_on, &relays[i]), q[i]);
    CHECK_OK(multicast_queue_start(q[i]));
  }
  start_producers(p, 1, m[0], COUNT);
  CHECK_EQ(join_producers(p, 1), COUNT);
  EVENTUALLY(stats_of(q[STAGES - 1]).delivered == COUNT);
  for (int i = 0; i < STAGES; ++i) CHECK_OK(multicast_queue_stop(q[i]));
  for (int i = 0; i < STAGES; ++i) CHECK_EQ(relays[i].passed, COUNT);
}

/* The context of a delegate in one of two blocking queues. The worker of each queue appends calls
 * to the other queue. If both queues were full, the workers would wait for each other, so one of
 * the calls must be refused. */
typedef struct pingpong {
  multicast other;
  uint32_t made, accepted;
} pingpong;

FUNCTION(answer, pingpong *p) {
  ++p->made;
  for (int i = 0; event > 0 && i < 2; ++i)
    p->accepted += (uint32_t)multicast_invoke(p->other, event - 1, payload, size);
}

TEST(queue_workers_that_fill_each_others_queues_do_not_hang) {
  static pingpong p[2]; /* a worker may still be inside a call when the test returns */
  multicast_queue q[2];
  multicast m[2];
  memset(p, 0, sizeof p);
  for (int i = 0; i < 2; ++i) {
    q[i] = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
    m[i] = multicast_create();
    add_queued(m[i], DELEGATE(answer, &p[i]), q[i]);
  }
  p[0].other = m[1];
  p[1].other = m[0];
  for (int i = 0; i < 2; ++i) CHECK_OK(multicast_queue_start(q[i]));
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 2; ++i) CHECK(multicast_invoke(m[i], 4, &round, sizeof round) >= 0);
  }
  /* The other worker may be waiting for room in the queue that is stopped first, so stopping that
   * queue may return MULTICAST_PENDING. */
  for (int i = 0; i < 2; ++i) {
    multicast_status status = multicast_queue_stop(q[i]);
    if (status != MULTICAST_PENDING) CHECK_OK(status);
  }
  for (int i = 0; i < 2; ++i) {
    multicast_status status = multicast_queue_destroy(q[i]);
    if (status != MULTICAST_PENDING) CHECK_OK(status);
  }
}

/* ---- Calls do not overlap -------------------------------------------------------------------- */

typedef struct rivals {
  multicast target;
  multicast_queue queue;
  int inside; /* the number of threads that are inside a call */
  int together; /* how many times more than one thread was inside a call */
  int calls;
} rivals;

enum { RIVAL_CALLS = 6000 };

FUNCTION(count_rivals, rivals *r) {
  if (ADD(r->inside, 1) != 1) ADD(r->together, 1);
  ADD(r->calls, 1);
  sched_yield();
  ADD(r->inside, -1);
}

THREAD(run_as_rival, rivals *r) {
  while (LOAD(r->calls) < RIVAL_CALLS) {
    int64_t made = multicast_queue_run(r->queue, 1);
    CHECK(made == 0 || made == 1 || made == MULTICAST_ERROR_STATE);
  }
}

TEST(queue_run_by_several_threads_is_run_by_one_at_a_time) {
  rivals r = {0};
  pthread_t threads[3];
  r.target = multicast_create();
  r.queue = default_queue();
  add_queued(r.target, DELEGATE(count_rivals, &r), r.queue);
  for (int i = 0; i < 3; ++i) threads[i] = start_thread(run_as_rival, &r);
  while (LOAD(r.calls) < RIVAL_CALLS)
    if (multicast_invoke(r.target, 0, NULL, 0) == 0) sched_yield();
  for (int i = 0; i < 3; ++i) join_thread(threads[i]);
  CHECK_EQ(r.together, 0);
}
