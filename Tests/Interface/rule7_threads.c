/* Rule 7 among many threads, across fork, and where threads end: nothing is lost, nothing is made
 * twice, each producer's calls keep their order. */

#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- What the tests share -------------------------------------------------------------------- */

static const gate shut = GATE_INIT;

static void sleep_until_readable(int descriptor) {
  struct pollfd polled = {0, POLLIN, 0};
  polled.fd = descriptor;
  CHECK_EQ(poll(&polled, 1, 20000), 1); /* the others have lost a wake-up otherwise */
}

enum { SECOND = 1000000000 };

/* ---- Producers ------------------------------------------------------------------------------- */

enum { MOST_PRODUCERS = 4 };

static size_t largest = 100; /* bytes in a message */

typedef struct message {
  uint32_t producer, sequence; /* then bytes that follow from them */
} message;

static size_t size_of_message(const message *m) {
  return sizeof *m + (m->sequence * 13u + m->producer) % (largest - sizeof *m + 1);
}

static size_t write_message(unsigned char *bytes, uint32_t producer, uint32_t sequence) {
  message m;
  size_t i, size;
  m.producer = producer;
  m.sequence = sequence;
  size = size_of_message(&m);
  memcpy(bytes, &m, sizeof m);
  for (i = sizeof m; i < size; ++i) bytes[i] = (unsigned char)(sequence + i);
  return size;
}

static message read_message(const void *payload, size_t size) {
  const unsigned char *bytes = payload;
  message m;
  size_t i;
  CHECK(size >= sizeof m);
  memcpy(&m, payload, sizeof m);
  CHECK_EQ(size, size_of_message(&m));
  for (i = sizeof m; i < size; ++i) CHECK_EQ(bytes[i], (unsigned char)(m.sequence + i));
  return m;
}

typedef struct producer {
  multicast target;
  uint32_t number, count;
  int64_t queued; /* what invoke returned, in all */
  bool may_fail;  /* the multicast may be gone */
  pthread_t thread;
} producer;

static void *produce(void *argument) {
  producer *p = argument;
  unsigned char bytes[100];
  uint32_t i;
  for (i = 1; i <= p->count; ++i) {
    size_t size = write_message(bytes, p->number, i);
    int64_t result = multicast_invoke(p->target, 0, bytes, size);
    if (p->may_fail && result == MULTICAST_ERROR_INVALID_HANDLE) break;
    CHECK(result >= 0);
    p->queued += result;
  }
  return NULL;
}

static void start_producers(producer *p, uint32_t producers, multicast m, uint32_t count) {
  uint32_t i;
  for (i = 0; i < producers; ++i) {
    p[i].target = m;
    p[i].number = i;
    p[i].count = count;
    p[i].queued = 0;
    p[i].may_fail = false;
    p[i].thread = start_thread(produce, &p[i]);
  }
}

static int64_t join_producers(producer *p, uint32_t producers) {
  int64_t queued = 0;
  uint32_t i;
  for (i = 0; i < producers; ++i) {
    join_thread(p[i].thread);
    queued += p[i].queued;
  }
  return queued;
}

/* ---- Order ----------------------------------------------------------------------------------- */

typedef struct inbox {
  uint32_t last[MOST_PRODUCERS];
  int inside;
  bool has_gaps; /* calls may be missing */
  uint32_t received;
} inbox;

static void receive(void *context, uint32_t event, const void *payload, size_t size) {
  inbox *in = context;
  message m = read_message(payload, size);
  (void)event;
  CHECK_EQ(ADD(in->inside, 1), 1); /* one call at a time */
  if (in->has_gaps) {
    CHECK(m.sequence > in->last[m.producer]);
  } else {
    CHECK_EQ(m.sequence, in->last[m.producer] + 1);
  }
  in->last[m.producer] = m.sequence;
  ADD(in->inside, -1);
  ADD(in->received, 1);
}

static multicast_delegate receiving(inbox *in) {
  multicast_delegate d;
  memset(in, 0, sizeof *in);
  d.function = receive;
  d.context = in;
  return d;
}

typedef enum consumption { BY_RUN, BY_WORKER, BY_POLL, BY_HANDING_OVER } consumption;

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
      case BY_HANDING_OVER: /* from this thread to a worker and back */
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
  multicast_queue_stats s;
  uint32_t i;
  add_queued(m, receiving(&in), q);
  if (how == BY_WORKER) CHECK_OK(multicast_queue_start(q));
  start_producers(p, producers, m, count);
  consume(q, &in, producers * count, how);
  CHECK_EQ(join_producers(p, producers), producers * count);
  if (how == BY_WORKER) CHECK_OK(multicast_queue_stop(q));
  for (i = 0; i < producers; ++i) CHECK_EQ(in.last[i], count);
  s = stats_of(q);
  CHECK(s.delivered == producers * count && s.queued == s.delivered && s.refused == 0);
  CHECK(s.highest <= capacity);
  if (how == BY_POLL) CHECK(!is_readable(multicast_queue_fd(q)));
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_OK(multicast_destroy(m));
}

static void keeps_order_of_1_to_4(uint32_t count, consumption how) {
  uint32_t producers;
  for (producers = 1; producers <= MOST_PRODUCERS; ++producers) {
    keeps_order(producers, count, 64, how);
    keeps_order(producers, count / 10, 1, how);
  }
}

TEST(queue_keeps_the_order_of_each_producer_when_run) { keeps_order_of_1_to_4(3000, BY_RUN); }
TEST(queue_keeps_the_order_of_each_producer_on_its_worker) {
  keeps_order_of_1_to_4(3000, BY_WORKER);
}
TEST(queue_keeps_the_order_of_each_producer_when_polled) { keeps_order_of_1_to_4(3000, BY_POLL); }
TEST(queue_keeps_the_order_of_each_producer_when_handed_over) {
  keeps_order(1, 2000, 64, BY_HANDING_OVER);
  keeps_order(3, 2000, 64, BY_HANDING_OVER);
}

/* Several threads try to run the queue: one does, the others are told so. */
typedef struct competitor {
  multicast_queue queue;
  inbox *in;
  uint32_t expected;
  int64_t made;
  pthread_t thread;
} competitor;

static void *compete(void *argument) {
  competitor *c = argument;
  while (LOAD(c->in->received) < c->expected) {
    int64_t result = multicast_queue_run(c->queue, 3);
    if (result >= 0) {
      c->made += result;
    } else {
      CHECK_STATUS(result, MULTICAST_ERROR_STATE);
    }
    sched_yield();
  }
  return NULL;
}

TEST(queue_that_several_threads_run_makes_each_call_once_and_in_order) {
  enum { COMPETITORS = 3, PRODUCERS = 2, COUNT = 3000 };
  producer p[PRODUCERS];
  competitor c[COMPETITORS];
  inbox in;
  multicast_queue q = queue_with(2 * PRODUCERS * COUNT, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create();
  int64_t made = 0;
  int i;
  add_queued(m, receiving(&in), q);
  start_producers(p, PRODUCERS, m, COUNT);
  for (i = 0; i < COMPETITORS; ++i) {
    c[i].queue = q;
    c[i].in = &in;
    c[i].expected = PRODUCERS * COUNT;
    c[i].made = 0;
    c[i].thread = start_thread(compete, &c[i]);
  }
  CHECK_EQ(join_producers(p, PRODUCERS), PRODUCERS * COUNT);
  for (i = 0; i < COMPETITORS; ++i) {
    join_thread(c[i].thread);
    made += c[i].made;
  }
  CHECK_EQ(made, PRODUCERS * COUNT);
  CHECK_EQ(stats_of(q).delivered, PRODUCERS * COUNT);
}

/* ---- Conservation ---------------------------------------------------------------------------- */

enum { ALIVE = 0x600DF00D, DEAD = 0x0BADF00D };

/* A context that is freed as soon as the removal has said that it may be. */
typedef struct guest {
  uint32_t magic;
  int calls;
  multicast_token token;
  multicast_lifetime lifetime;
  bool by_lifetime;
} guest;

static uint64_t calls_seen;
static bool is_over;

static void call_guest(void *context, uint32_t event, const void *payload, size_t size) {
  guest *g = context;
  (void)event;
  CHECK_EQ(LOAD(g->magic), ALIVE);
  read_message(payload, size);
  ++g->calls;
  ADD(calls_seen, 1);
  CHECK_EQ(LOAD(g->magic), ALIVE);
}

typedef struct churner {
  multicast target;
  multicast_queue queue;
  uint32_t flags;
  int rounds;
  pthread_t thread;
} churner;

static guest *add_guest(const churner *c, int round) {
  guest *g = calloc(1, sizeof *g);
  multicast_options options = to_queue(c->queue);
  multicast_delegate d;
  CHECK(g != NULL);
  g->magic = ALIVE;
  g->by_lifetime = round % 3 == 0;
  options.flags = c->flags;
  options.priority = round % 2;
  if (g->by_lifetime) options.lifetime = g->lifetime = multicast_lifetime_create();
  d.function = call_guest;
  d.context = g;
  g->token = add_with(c->target, d, &options);
  return g;
}

static void remove_guest(const churner *c, guest *g, int round) {
  multicast_delegate d;
  d.function = call_guest;
  d.context = g;
  if (g->by_lifetime) {
    CHECK_OK(multicast_lifetime_end(g->lifetime));
  } else if (round % 4 == 1) {
    CHECK_OK(multicast_remove(c->target, d));
  } else if (round % 4 == 2) {
    CHECK_EQ(multicast_remove_context(c->target, g), 1);
  } else {
    CHECK_OK(multicast_token_remove(g->token));
  }
  STORE(g->magic, DEAD);
  memset(g, 0xDD, sizeof *g);
  free(g);
}

static void *come_and_go(void *argument) {
  churner *c = argument;
  enum { GUESTS = 5 };
  guest *guests[GUESTS] = {NULL};
  int round;
  for (round = 0; round < c->rounds || !LOAD(is_over); ++round) {
    guest **g = &guests[round % GUESTS];
    if (*g != NULL) remove_guest(c, *g, round);
    *g = add_guest(c, round);
    if (round % 16 == 0) sched_yield();
  }
  for (round = 0; round < GUESTS; ++round) {
    if (guests[round] != NULL) remove_guest(c, guests[round], round);
  }
  return NULL;
}

static void *look_at_figures(void *argument) {
  const multicast_queue *q = argument;
  while (!LOAD(is_over)) {
    multicast_queue_stats s = stats_of(*q);
    CHECK(s.pending <= s.highest);
    sched_yield();
  }
  return NULL;
}

static bool no_more_calls;

static void *run_until_told(void *argument) {
  const multicast_queue *q = argument;
  while (!LOAD(no_more_calls)) {
    int64_t waiting = multicast_queue_wait(*q, SECOND / 1000);
    CHECK(waiting > 0 || waiting == MULTICAST_ERROR_TIMEOUT);
    CHECK(multicast_queue_run(*q, 7) >= 0);
  }
  return NULL;
}

static void conserves(multicast_overflow overflow, uint32_t flags, bool has_worker) {
  uint32_t producers;
  for (producers = 1; producers <= MOST_PRODUCERS; producers += 3) {
    producer p[MOST_PRODUCERS];
    churner c;
    guest stays = {ALIVE, 0, {0}, {0}, false};
    multicast_queue q = queue_with(16, overflow);
    multicast_options options = to_queue(q);
    multicast m = multicast_create();
    multicast_queue_stats s;
    multicast_delegate d;
    pthread_t consumer = 0, looker;
    int64_t queued;
    calls_seen = 0;
    is_over = no_more_calls = false;
    d.function = call_guest;
    d.context = &stays;
    options.flags = flags;
    add_with(m, d, &options);
    c.target = m;
    c.queue = q;
    c.flags = flags;
    c.rounds = 500;
    if (has_worker) {
      CHECK_OK(multicast_queue_start(q));
    } else {
      consumer = start_thread(run_until_told, &q);
    }
    looker = start_thread(look_at_figures, &q);
    c.thread = start_thread(come_and_go, &c);
    start_producers(p, producers, m, 1500);
    queued = join_producers(p, producers);
    STORE(is_over, true);
    join_thread(c.thread);
    join_thread(looker);
    STORE(no_more_calls, true);
    if (has_worker) {
      CHECK_OK(multicast_queue_stop(q));
    } else {
      join_thread(consumer);
    }
    s = stats_of(q);
    CHECK_EQ(s.queued, queued);
    CHECK_EQ(s.delivered, calls_seen);
    if (overflow != MULTICAST_OVERFLOW_REFUSE) CHECK_EQ(s.refused, 0);
    if (overflow != MULTICAST_OVERFLOW_DROP_OLDEST) CHECK_EQ(s.dropped, 0);
    if ((flags & MULTICAST_LATEST) == 0) CHECK_EQ(s.coalesced, 0);
    CHECK(s.highest <= 16);
    CHECK_EQ(multicast_queue_run(q, 0), s.pending);
    CHECK_EQ(stats_of(q).delivered, calls_seen);
    CHECK_EQ(multicast_count(m), 1);
    CHECK_OK(multicast_queue_destroy(q));
    CHECK_EQ(multicast_count(m), 0);
    CHECK_OK(multicast_destroy(m));
  }
}

TEST(queue_that_refuses_conserves_calls_while_delegates_come_and_go) {
  conserves(MULTICAST_OVERFLOW_REFUSE, 0, false);
}
TEST(queue_that_drops_conserves_calls_while_delegates_come_and_go) {
  conserves(MULTICAST_OVERFLOW_DROP_OLDEST, 0, false);
}
TEST(queue_that_blocks_conserves_calls_while_delegates_come_and_go) {
  conserves(MULTICAST_OVERFLOW_BLOCK, 0, false);
}
TEST(queue_of_latest_calls_conserves_them_while_delegates_come_and_go) {
  conserves(MULTICAST_OVERFLOW_REFUSE, MULTICAST_LATEST, false);
}
TEST(queue_of_latest_calls_that_blocks_conserves_them) {
  conserves(MULTICAST_OVERFLOW_BLOCK, MULTICAST_LATEST, true);
}
TEST(queue_with_a_worker_that_refuses_conserves_calls) {
  conserves(MULTICAST_OVERFLOW_REFUSE, 0, true);
}
TEST(queue_with_a_worker_that_drops_conserves_calls) {
  conserves(MULTICAST_OVERFLOW_DROP_OLDEST, 0, true);
}
TEST(queue_with_a_worker_that_blocks_conserves_calls) {
  conserves(MULTICAST_OVERFLOW_BLOCK, 0, true);
}

/* Calls that queue further calls, to queues of which each has a worker. */
typedef struct relay {
  multicast next;
  uint32_t passed;
} relay;

static void pass_on(void *context, uint32_t event, const void *payload, size_t size) {
  relay *r = context;
  ++r->passed;
  if (r->next.id != 0) CHECK_EQ(multicast_invoke(r->next, event, payload, size), 1);
}

TEST(queue_calls_pass_from_worker_to_worker) {
  enum { STAGES = 4, COUNT = 2000 };
  multicast_queue q[STAGES];
  multicast m[STAGES];
  relay relays[STAGES];
  producer p[1];
  int i;
  for (i = STAGES - 1; i >= 0; --i) {
    multicast_delegate d;
    q[i] = queue_with(8, MULTICAST_OVERFLOW_BLOCK);
    m[i] = multicast_create();
    relays[i].next.id = i + 1 < STAGES ? m[i + 1].id : 0;
    relays[i].passed = 0;
    d.function = pass_on;
    d.context = &relays[i];
    add_queued(m[i], d, q[i]);
    CHECK_OK(multicast_queue_start(q[i]));
  }
  start_producers(p, 1, m[0], COUNT);
  CHECK_EQ(join_producers(p, 1), COUNT);
  EVENTUALLY(stats_of(q[STAGES - 1]).delivered == COUNT);
  for (i = 0; i < STAGES; ++i) CHECK_OK(multicast_queue_stop(q[i]));
  for (i = 0; i < STAGES; ++i) CHECK_EQ(relays[i].passed, COUNT);
}

/* Two queues that block, each worker queueing into the other: a cycle, so one is refused. */
typedef struct pingpong {
  multicast other;
  uint32_t made, accepted;
} pingpong;

static void answer(void *context, uint32_t event, const void *payload, size_t size) {
  pingpong *p = context;
  int i;
  ++p->made;
  for (i = 0; event > 0 && i < 2; ++i)
    p->accepted += (uint32_t)multicast_invoke(p->other, event - 1, payload, size);
}

TEST(queue_workers_that_queue_into_each_others_full_queues_do_not_hang) {
  pingpong p[2];
  multicast_queue q[2];
  multicast m[2];
  int round, i;
  memset(p, 0, sizeof p);
  for (i = 0; i < 2; ++i) {
    multicast_delegate d;
    q[i] = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
    m[i] = multicast_create();
    d.function = answer;
    d.context = &p[i];
    add_queued(m[i], d, q[i]);
  }
  p[0].other = m[1];
  p[1].other = m[0];
  for (i = 0; i < 2; ++i) CHECK_OK(multicast_queue_start(q[i]));
  for (round = 0; round < 200; ++round) {
    for (i = 0; i < 2; ++i) CHECK(multicast_invoke(m[i], 4, &round, sizeof round) >= 0);
  }
  /* A worker may be in a call that waits for room in the queue that was stopped before. */
  for (i = 0; i < 2; ++i) {
    multicast_status status = multicast_queue_stop(q[i]);
    if (status != MULTICAST_PENDING) CHECK_OK(status);
  }
  for (i = 0; i < 2; ++i) {
    multicast_status status = multicast_queue_destroy(q[i]);
    if (status != MULTICAST_PENDING) CHECK_OK(status);
  }
}

/* ---- The descriptor -------------------------------------------------------------------------- */

TEST(queue_fd_loses_no_wake_up_in_a_storm) {
  enum { ROUNDS = 60, COUNT = 60, PRODUCERS = 3 };
  producer p[PRODUCERS];
  inbox in;
  multicast_queue q = queue_with(3, MULTICAST_OVERFLOW_BLOCK);
  multicast m = multicast_create();
  int round, fd = multicast_queue_fd(q);
  unsigned char bytes[100];
  add_queued(m, receiving(&in), q);
  for (round = 0; round < ROUNDS; ++round) {
    memset(in.last, 0, sizeof in.last);
    STORE(in.received, 0);
    start_producers(p, PRODUCERS, m, COUNT);
    while (LOAD(in.received) < PRODUCERS * COUNT) {
      sleep_until_readable(fd);
      CHECK(multicast_queue_run(q, 0) > 0);
    }
    CHECK_EQ(join_producers(p, PRODUCERS), PRODUCERS * COUNT);
    CHECK(!is_readable(fd)); /* alone now: exactly while something waits */
    CHECK_EQ(stats_of(q).pending, 0);
    in.last[3] = 0;
    CHECK_EQ(multicast_invoke(m, 0, bytes, write_message(bytes, 3, 1)), 1);
    CHECK_EQ(multicast_invoke(m, 0, bytes, write_message(bytes, 3, 2)), 1);
    CHECK(is_readable(fd));
    CHECK_EQ(multicast_queue_run(q, 1), 1);
    CHECK(is_readable(fd));
    CHECK_EQ(multicast_queue_run(q, 0), 1);
    CHECK(!is_readable(fd));
  }
}

static void *poll_until_told(void *argument) {
  const multicast_queue *q = argument;
  struct pollfd polled = {0, POLLIN, 0};
  polled.fd = multicast_queue_fd(*q);
  while (!LOAD(no_more_calls)) {
    if (poll(&polled, 1, 1) == 1) CHECK(multicast_queue_run(*q, 0) >= 0);
  }
  return NULL;
}

TEST(queue_fd_is_right_after_a_storm_of_calls_taken_back_and_dropped) {
  int round, stage;
  for (round = 0; round < 12; ++round) {
    producer p[2];
    churner c;
    multicast_queue q = queue_with(1 + (uint32_t)round % 3, round % 2 == 0
                                                                ? MULTICAST_OVERFLOW_DROP_OLDEST
                                                                : MULTICAST_OVERFLOW_REFUSE);
    multicast m = multicast_create();
    pthread_t consumer;
    int fd = multicast_queue_fd(q);
    is_over = no_more_calls = false;
    c.target = m;
    c.queue = q;
    c.flags = round % 3 == 0 ? MULTICAST_LATEST : 0;
    c.rounds = 100;
    consumer = start_thread(poll_until_told, &q);
    c.thread = start_thread(come_and_go, &c);
    start_producers(p, 2, m, 400);
    join_producers(p, 2);
    for (stage = 0; stage < 2; ++stage) {
      if (stage == 0) {
        STORE(no_more_calls, true);
        join_thread(consumer);
      } else {
        STORE(is_over, true);
        join_thread(c.thread);
        CHECK_EQ(stats_of(q).pending, 0); /* all delegates are gone */
        CHECK(!is_readable(fd));
      }
    }
    CHECK_OK(multicast_queue_destroy(q));
    CHECK_OK(multicast_destroy(m));
  }
}

/* ---- Signals and cancellation ---------------------------------------------------------------- */

static int signals_caught;

static void catch_signal(int number) {
  (void)number;
  ADD(signals_caught, 1);
}

typedef struct sleeper {
  multicast_queue queue;
  multicast target;
  int64_t result;
  gate returned;
  pthread_t thread;
} sleeper;

static void *wait_in_queue(void *argument) {
  sleeper *s = argument;
  s->result = multicast_queue_wait(s->queue, UINT64_MAX);
  gate_open(&s->returned);
  return NULL;
}

static void *invoke_into_full(void *argument) {
  sleeper *s = argument;
  s->result = multicast_invoke(s->target, 0, NULL, 0);
  gate_open(&s->returned);
  return NULL;
}

static void disturb(pthread_t thread, bool cancels) {
  struct sigaction action;
  int i;
  memset(&action, 0, sizeof action);
  action.sa_handler = catch_signal;
  CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
  pause_ms(10);
  if (cancels) CHECK_EQ(pthread_cancel(thread), 0);
  for (i = 0; !cancels && i < 10; ++i) {
    CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
    pause_ms(2);
  }
}

static void sleeps_on(bool is_blocked, bool cancels) {
  sleeper s;
  int calls = 0;
  s.queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  s.target = multicast_create();
  s.returned = shut;
  s.result = -1;
  add_queued(s.target, counter(&calls), s.queue);
  if (is_blocked) multicast_invoke(s.target, 0, NULL, 0);
  s.thread = start_thread(is_blocked ? invoke_into_full : wait_in_queue, &s);
  disturb(s.thread, cancels);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  if (is_blocked) {
    CHECK_EQ(multicast_queue_run(s.queue, 1), 1);
  } else {
    CHECK_EQ(multicast_invoke(s.target, 0, NULL, 0), 1);
  }
  CHECK_EQ(pthread_join(s.thread, NULL), 0);
  if (!cancels) CHECK_EQ(s.result, 1);
  EVENTUALLY(stats_of(s.queue).pending == 1); /* no lock was left behind */
  CHECK_EQ(multicast_queue_run(s.queue, 0), 1);
  CHECK_OK(multicast_queue_destroy(s.queue));
}

TEST(queue_wait_goes_on_through_signals) { sleeps_on(false, false); }
TEST(queue_wait_goes_on_through_cancellation) { sleeps_on(false, true); }
TEST(queue_that_blocks_goes_on_through_signals) { sleeps_on(true, false); }
TEST(queue_that_blocks_goes_on_through_cancellation) { sleeps_on(true, true); }

/* ---- Destruction ----------------------------------------------------------------------------- */

static int guests_released;

static void release_counted(void *context) {
  STORE(((guest *)context)->magic, DEAD);
  ADD(guests_released, 1);
}

static void destroys_in_use(multicast_overflow overflow, bool has_worker) {
  int round;
  for (round = 0; round < 25; ++round) {
    producer p[2];
    guest g = {ALIVE, 0, {0}, {0}, false};
    multicast_queue q = queue_with(4, overflow);
    multicast_options options = to_queue(q);
    multicast m = multicast_create();
    multicast_delegate d;
    sleeper w;
    d.function = call_guest;
    d.context = &g;
    options.release = release_counted;
    guests_released = 0;
    add_with(m, d, &options);
    if (has_worker) CHECK_OK(multicast_queue_start(q));
    w.queue = q;
    w.returned = shut;
    w.thread = start_thread(wait_in_queue, &w);
    start_producers(p, 2, m, 500);
    if (round % 5 > 0) pause_ms(round % 5);
    if (!has_worker && round % 2 == 0) CHECK(multicast_queue_run(q, 0) >= 0);
    CHECK_OK(multicast_queue_destroy(q));
    CHECK_EQ(LOAD(g.magic), DEAD); /* released, so no call is made any more: that would check */
    CHECK_EQ(LOAD(guests_released), 1);
    CHECK_EQ(multicast_count(m), 0);
    CHECK_STATUS(multicast_queue_run(q, 0), MULTICAST_ERROR_INVALID_HANDLE);
    join_producers(p, 2); /* none is blocked for ever */
    join_thread(w.thread);
    CHECK(w.result > 0 || w.result == MULTICAST_ERROR_INVALID_HANDLE);
    CHECK_OK(multicast_destroy(m));
  }
}

TEST(queue_destroyed_while_producers_and_a_worker_use_it) {
  destroys_in_use(MULTICAST_OVERFLOW_REFUSE, true);
}
TEST(queue_destroyed_while_producers_are_blocked_and_a_worker_runs) {
  destroys_in_use(MULTICAST_OVERFLOW_BLOCK, true);
}
TEST(queue_destroyed_while_producers_are_blocked) {
  destroys_in_use(MULTICAST_OVERFLOW_BLOCK, false);
}
TEST(queue_destroyed_while_producers_drop_the_oldest) {
  destroys_in_use(MULTICAST_OVERFLOW_DROP_OLDEST, true);
}

static void *destroy_queue(void *argument) {
  return (void *)(intptr_t)multicast_queue_destroy(*(multicast_queue *)argument);
}

TEST(queue_destroyed_by_two_threads_is_destroyed_by_one) {
  int round;
  for (round = 0; round < 100; ++round) {
    multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
    multicast m = multicast_create();
    pthread_t other;
    void *theirs;
    int calls = 0, releases = 0;
    int64_t ours;
    multicast_options options = to_queue(q);
    options.release = count_release;
    add_with(m, counter(&releases), &options);
    add_queued(m, counter(&calls), q);
    if (round % 2 == 0) CHECK_OK(multicast_queue_start(q));
    other = start_thread(destroy_queue, &q);
    ours = multicast_queue_destroy(q);
    CHECK_EQ(pthread_join(other, &theirs), 0);
    CHECK(((intptr_t)theirs == MULTICAST_OK && ours == MULTICAST_ERROR_INVALID_HANDLE) ||
          (ours == MULTICAST_OK && (intptr_t)theirs == MULTICAST_ERROR_INVALID_HANDLE));
    CHECK_EQ(LOAD(releases), 1);
    CHECK_OK(multicast_destroy(m));
  }
}

static void *start_queue(void *argument) {
  return (void *)(intptr_t)multicast_queue_start(*(multicast_queue *)argument);
}

static void *stop_queue(void *argument) {
  return (void *)(intptr_t)multicast_queue_stop(*(multicast_queue *)argument);
}

/* Has four threads do it at once. Returns how many got MULTICAST_OK; the others got STATE. */
static int at_once(void *(*body)(void *), multicast_queue *q) {
  pthread_t threads[4];
  int i, successes = 0;
  for (i = 0; i < 4; ++i) threads[i] = start_thread(body, q);
  for (i = 0; i < 4; ++i) {
    void *status;
    CHECK_EQ(pthread_join(threads[i], &status), 0);
    if ((intptr_t)status == MULTICAST_OK) {
      ++successes;
    } else {
      CHECK_STATUS((intptr_t)status, MULTICAST_ERROR_STATE);
    }
  }
  return successes;
}

TEST(queue_started_and_stopped_by_several_threads_at_once_has_one_worker) {
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create();
  int calls = 0, round;
  add_queued(m, counter(&calls), q);
  for (round = 1; round <= 30; ++round) {
    CHECK_EQ(at_once(start_queue, &q), 1);
    CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
    EVENTUALLY(LOAD(calls) == round);
    CHECK(at_once(stop_queue, &q) >= 1);
    CHECK_STATUS(multicast_queue_stop(q), MULTICAST_ERROR_STATE);
  }
}

/* Every function of the group on the same few queues, which come and go. */
static multicast_queue common[3];

static void *use_at_random(void *argument) {
  unsigned seed = (unsigned)(intptr_t)argument;
  multicast m = multicast_create();
  int calls = 0, i;
  multicast_options options = multicast_options_default();
  static const unsigned char payload[80];
  for (i = 0; i < 1500; ++i) {
    multicast_queue_stats s = multicast_queue_stats_default();
    multicast_queue *slot, q;
    seed = seed * 1664525u + 1013904223u;
    slot = &common[(seed >> 8) % 3];
    q.id = LOAD(slot->id);
    switch ((seed >> 16) % 14) {
      case 0:
        multicast_queue_destroy(q);
        q = queue_with(1 + (seed >> 20) % 5, (multicast_overflow)((seed >> 24) % 2));
        STORE(slot->id, q.id);
        break;
      case 1: multicast_queue_start(q); break;
      case 2: multicast_queue_stop(q); break;
      case 3: (void)!multicast_queue_fd(q); break;
      case 4: multicast_queue_wait(q, 10000); break;
      case 5: case 6: multicast_queue_run(q, (seed >> 20) % 4); break;
      case 7: multicast_queue_statistics(q, &s); break;
      case 8: case 9:
        options.queue = q;
        options.flags = (seed >> 20) % 8 & ~MULTICAST_UNIQUE;
        multicast_add(m, counter(&calls), &options, NULL);
        break;
      case 10: multicast_remove_at(m, (seed >> 20) % 4); break;
      default: CHECK(multicast_invoke(m, 0, payload, (seed >> 20) % 80 + 1) >= 0); break;
    }
    if (multicast_count(m) > 10) CHECK(multicast_remove_all(m) >= 0);
  }
  CHECK_OK(multicast_destroy(m)); /* so no call of ours runs any more */
  return NULL;
}

TEST(queue_functions_from_four_threads_at_once) {
  pthread_t threads[4];
  int i;
  for (i = 0; i < 3; ++i) common[i] = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  for (i = 0; i < 4; ++i) threads[i] = start_thread(use_at_random, (void *)(intptr_t)(i + 1));
  for (i = 0; i < 4; ++i) join_thread(threads[i]);
  for (i = 0; i < 3; ++i) CHECK_OK(multicast_queue_destroy(common[i]));
}

/* ---- fork ------------------------------------------------------------------------------------ */

static multicast_queue inherited;
static multicast inherited_target;
static int inherited_fd;
static char noted[4096];

static void note_number(void *context, uint32_t event, const void *payload, size_t size) {
  size_t used = strlen(noted);
  int number;
  (void)context;
  (void)event;
  CHECK(size >= sizeof number);
  memcpy(&number, payload, sizeof number);
  snprintf(noted + used, sizeof noted - used, "%s%d", used > 0 ? " " : "", number);
}

static multicast_delegate noting(void) {
  multicast_delegate d = {note_number, NULL};
  return d;
}

static int64_t invoke_number(multicast m, int number, size_t size) {
  static __thread unsigned char bytes[4096];
  memcpy(bytes, &number, sizeof number);
  return multicast_invoke(m, 0, bytes, size);
}

static void inherit_calls(int count) {
  int i;
  inherited = queue_with(20, MULTICAST_OVERFLOW_REFUSE);
  inherited_target = multicast_create();
  inherited_fd = multicast_queue_fd(inherited);
  add_queued(inherited_target, noting(), inherited);
  for (i = 1; i <= count; ++i)
    CHECK_EQ(invoke_number(inherited_target, i, i % 2 == 0 ? 4096 : 4), 1);
}

static void expect_empty_and_usable(void *unused) {
  multicast_queue_stats s = stats_of(inherited);
  (void)unused;
  CHECK_EQ(s.pending, 0);
  CHECK_EQ(s.dropped, 3); /* they were the parent's to make */
  CHECK_EQ(s.queued, 3);
  CHECK_EQ(multicast_queue_run(inherited, 0), 0);
  CHECK_STATUS(multicast_queue_wait(inherited, 0), MULTICAST_ERROR_TIMEOUT);
  CHECK_EQ(multicast_queue_fd(inherited), inherited_fd);
  CHECK(!is_readable(inherited_fd));
  CHECK_EQ(multicast_count(inherited_target), 1);
  CHECK_EQ(invoke_number(inherited_target, 8, 4), 1);
  CHECK(is_readable(inherited_fd));
  CHECK_EQ(invoke_number(inherited_target, 9, 4096), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  CHECK(!is_readable(inherited_fd));
  CHECK_TEXT(noted, "8 9");
#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
  CHECK_OK(multicast_queue_start(inherited));
  CHECK_EQ(invoke_number(inherited_target, 10, 4), 1);
  EVENTUALLY(stats_of(inherited).delivered == 3);
  CHECK_OK(multicast_queue_stop(inherited));
  CHECK_TEXT(noted, "8 9 10");
#endif
  CHECK_OK(multicast_queue_destroy(inherited));
}

TEST(queue_is_empty_and_usable_in_the_child_of_a_fork) {
  inherit_calls(3);
  CHECK(is_readable(inherited_fd));
  in_child(expect_empty_and_usable, NULL);
  CHECK(is_readable(inherited_fd)); /* whatever the child did with its own */
  CHECK_EQ(stats_of(inherited).pending, 3);
  CHECK_EQ(stats_of(inherited).dropped, 0);
  CHECK_EQ(multicast_queue_run(inherited, 0), 3);
  CHECK_TEXT(noted, "1 2 3");
  CHECK(!is_readable(inherited_fd));
}

static void fill_and_leave(void *unused) {
  (void)unused;
  CHECK_EQ(invoke_number(inherited_target, 9, 4), 1);
  CHECK(is_readable(inherited_fd));
}

TEST(queue_fd_of_the_parent_is_not_made_readable_by_the_child) {
  inherit_calls(1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  in_child(fill_and_leave, NULL);
  CHECK(!is_readable(inherited_fd));
  CHECK_EQ(invoke_number(inherited_target, 2, 4), 1);
  CHECK(is_readable(inherited_fd));
}

TEST(queue_fd_of_the_child_is_not_changed_by_the_parent) {
  int to_child[2], to_parent[2], status;
  char byte = 0;
  pid_t child;
  inherit_calls(2);
  CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20);
    CHECK_EQ(invoke_number(inherited_target, 7, 4), 1);
    CHECK_EQ(write(to_parent[1], &byte, 1), 1);
    CHECK_EQ(read(to_child[0], &byte, 1), 1); /* the parent has drained its own */
    CHECK(is_readable(inherited_fd));
    CHECK_EQ(multicast_queue_run(inherited, 0), 1);
    CHECK(!is_readable(inherited_fd));
    _exit(0);
  }
  CHECK_EQ(read(to_parent[0], &byte, 1), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  CHECK(!is_readable(inherited_fd)); /* though the child's is */
  CHECK_EQ(write(to_child[1], &byte, 1), 1);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
  CHECK(!is_readable(inherited_fd));
}

static void expect_grandchild_empty(void *unused) {
  (void)unused;
  CHECK_EQ(stats_of(inherited).pending, 0);
  CHECK_EQ(invoke_number(inherited_target, 5, 4), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
}

static void fork_again(void *unused) {
  (void)unused;
  CHECK_EQ(invoke_number(inherited_target, 4, 4), 1);
  in_child(expect_grandchild_empty, NULL);
  CHECK(is_readable(inherited_fd));
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  CHECK_TEXT(noted, "4");
}

TEST(queue_in_the_child_of_the_child_of_a_fork) {
  inherit_calls(2);
  in_child(fork_again, NULL);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  CHECK_TEXT(noted, "1 2");
}

static int payloads_before;

static void expect_payloads_let_go(void *unused) {
  (void)unused;
  CHECK_EQ(allocated_blocks, payloads_before);
}

TEST(queue_payloads_are_let_go_in_the_child_of_a_fork) {
  use_test_allocator();
  inherit_calls(2);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  payloads_before = (int)allocated_blocks;
  CHECK_EQ(invoke_number(inherited_target, 3, 4096), 1);
  CHECK_EQ(invoke_number(inherited_target, 4, 4096), 1);
  CHECK_EQ(allocated_blocks, payloads_before + 2);
  in_child(expect_payloads_let_go, NULL);
  CHECK_EQ(allocated_blocks, payloads_before + 2);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  CHECK_EQ(allocated_blocks, payloads_before);
}

static blocker busy = BLOCKER_INIT;
static multicast_token busy_token;

static void *run_inherited(void *result) {
  *(int64_t *)result = multicast_queue_run(inherited, 0);
  return NULL;
}

static pthread_t begin_busy_call(int64_t *result) {
  multicast_options options;
  pthread_t thread;
  inherit_calls(0);
  options = to_queue(inherited);
  options.release = release_blocker;
  busy_token = add_with(inherited_target, blocking(&busy), &options);
  CHECK_EQ(invoke_number(inherited_target, 1, 4), 2);
  CHECK_EQ(invoke_number(inherited_target, 2, 4), 2);
  thread = start_thread(run_inherited, result);
  gate_wait(&busy.entered);
  return thread;
}

static void expect_nobody_running(void *unused) {
  (void)unused;
  CHECK_OK(multicast_token_remove(busy_token)); /* of a call that does not run here */
  CHECK_EQ(busy.releases, 1);
  CHECK_EQ(invoke_number(inherited_target, 7, 4), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1); /* it is not run by a thread that is not here */
  CHECK_OK(multicast_queue_destroy(inherited));
}

TEST(queue_that_another_thread_runs_is_run_by_nobody_in_the_child_of_a_fork) {
  int64_t result = 0;
  pthread_t thread = begin_busy_call(&result);
  in_child(expect_nobody_running, NULL);
  CHECK_EQ(LOAD(busy.releases), 0);
  gate_open(&busy.let_go);
  join_thread(thread);
  CHECK_EQ(result, 4);
  CHECK_TEXT(noted, "1 2");
}

static void expect_released(void *unused) {
  (void)unused;
  CHECK_EQ(busy.releases, 1);
}

TEST(queue_call_that_was_removed_and_runs_is_released_in_the_child_of_a_fork) {
  int64_t result = 0;
  pthread_t thread = begin_busy_call(&result);
  CHECK_STATUS(multicast_token_remove_nowait(busy_token), MULTICAST_PENDING);
  in_child(expect_released, NULL);
  CHECK_EQ(LOAD(busy.releases), 0);
  gate_open(&busy.let_go);
  join_thread(thread);
  CHECK_EQ(LOAD(busy.releases), 1);
}

static void expect_room(void *unused) {
  (void)unused;
  CHECK_EQ(multicast_invoke(inherited_target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  CHECK_OK(multicast_queue_destroy(inherited));
}

TEST(queue_on_which_threads_sleep_is_usable_in_the_child_of_a_fork) {
  sleeper blocked, waiting;
  int calls = 0;
  inherited = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  inherited_target = multicast_create();
  add_queued(inherited_target, counter(&calls), inherited);
  CHECK_EQ(multicast_invoke(inherited_target, 0, NULL, 0), 1);
  blocked.target = inherited_target;
  blocked.returned = shut;
  blocked.thread = start_thread(invoke_into_full, &blocked);
  waiting.queue = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
  waiting.returned = shut;
  waiting.thread = start_thread(wait_in_queue, &waiting);
  pause_ms(A_WHILE_MS);
  in_child(expect_room, NULL);
  CHECK_EQ(multicast_queue_run(inherited, 1), 1);
  join_thread(blocked.thread);
  CHECK_EQ(blocked.result, 1);
  CHECK_OK(multicast_queue_destroy(waiting.queue));
  join_thread(waiting.thread);
  CHECK_STATUS(waiting.result, MULTICAST_ERROR_INVALID_HANDLE);
}

static inbox *inherited_inbox;

static void use_queue_in_child(void *unused) {
  unsigned char bytes[100];
  int calls = 0;
  multicast_queue q;
  multicast m;
  multicast_token token;
  (void)unused;
  CHECK_EQ(stats_of(inherited).pending, 0);
  CHECK_EQ(multicast_queue_run(inherited, 0), 0); /* its worker is not here */
  CHECK_STATUS(multicast_queue_stop(inherited), MULTICAST_ERROR_STATE);
  token = add_queued(inherited_target, counter(&calls), inherited);
  inherited_inbox->inside = 0; /* where the parent's worker is inside, nobody is here */
  inherited_inbox->has_gaps = true;
  CHECK_EQ(multicast_invoke(inherited_target, 0, bytes, write_message(bytes, 3, 1000000)), 2);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_token_remove(token));
  q = queue_with(4, MULTICAST_OVERFLOW_BLOCK);
  m = multicast_create();
  add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
  CHECK_OK(multicast_queue_start(inherited));
  CHECK_OK(multicast_queue_start(q));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  EVENTUALLY(LOAD(calls) == 3);
  CHECK_OK(multicast_queue_stop(inherited));
#endif
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_OK(multicast_queue_destroy(inherited));
  CHECK_OK(multicast_destroy(inherited_target));
}

static void forks_at_any_moment(multicast_overflow overflow) {
  enum { PRODUCERS = 2, COUNT = 4000 };
  producer p[PRODUCERS];
  inbox in;
  pthread_t looker;
  int64_t queued;
  int i;
#if defined(__SANITIZE_ADDRESS__)
  /* Its allocator does not survive a fork in the middle of an allocation: have none made. */
  largest = 32;
#endif
  inherited = queue_with(32, overflow);
  inherited_target = multicast_create();
  inherited_fd = multicast_queue_fd(inherited);
  add_queued(inherited_target, receiving(&in), inherited);
  in.has_gaps = overflow != MULTICAST_OVERFLOW_BLOCK;
  inherited_inbox = &in;
  is_over = false;
  CHECK_OK(multicast_queue_start(inherited));
  start_producers(p, PRODUCERS, inherited_target, COUNT);
  looker = start_thread(look_at_figures, &inherited);
#if defined(__SANITIZE_ADDRESS__)
  pause_ms(A_WHILE_MS); /* the threads have begun, and allocate no more */
#endif
  for (i = 0; i < 40; ++i) in_child(use_queue_in_child, NULL);
  queued = join_producers(p, PRODUCERS);
  STORE(is_over, true);
  join_thread(looker);
  EVENTUALLY(stats_of(inherited).pending == 0);
  CHECK_OK(multicast_queue_stop(inherited));
  CHECK_EQ(stats_of(inherited).queued, queued);
  CHECK_EQ(stats_of(inherited).delivered, in.received);
  if (overflow == MULTICAST_OVERFLOW_BLOCK) CHECK_EQ(in.received, PRODUCERS * COUNT);
  CHECK(!is_readable(inherited_fd));
}

TEST(queue_in_the_child_of_a_fork_at_any_moment_of_producers_and_a_worker) {
  forks_at_any_moment(MULTICAST_OVERFLOW_BLOCK);
}
TEST(queue_that_drops_in_the_child_of_a_fork_at_any_moment) {
  forks_at_any_moment(MULTICAST_OVERFLOW_DROP_OLDEST);
}

static pid_t forked = -1;

static void fork_in_call(void *context, uint32_t event, const void *payload, size_t size) {
  int number;
  memcpy(&number, payload, sizeof number);
  note_number(context, event, payload, size);
  if (number == 1) forked = fork();
  CHECK(size == 4 || size == 4096);
}

TEST(queue_call_that_forks_returns_from_the_run_and_goes_on_in_the_child) {
  multicast_delegate d = {fork_in_call, NULL};
  multicast_token token;
  int status = -1;
  int64_t made;
  inherit_calls(0);
  token = add_queued(inherited_target, d, inherited);
  CHECK_OK(multicast_remove(inherited_target, noting()));
  CHECK_EQ(invoke_number(inherited_target, 1, 4096), 1);
  CHECK_EQ(invoke_number(inherited_target, 2, 4), 1);
  CHECK_EQ(invoke_number(inherited_target, 3, 4096), 1);
  made = multicast_queue_run(inherited, 0);
  CHECK(forked >= 0);
  if (forked == 0) {
    alarm(20);
    CHECK_EQ(made, 1); /* the others are the parent's */
    CHECK_TEXT(noted, "1");
    CHECK_EQ(stats_of(inherited).delivered, 1);
    CHECK_EQ(stats_of(inherited).dropped, 2);
    CHECK_EQ(invoke_number(inherited_target, 4, 4096), 1);
    CHECK_EQ(multicast_queue_run(inherited, 0), 1);
    CHECK_TEXT(noted, "1 4");
    CHECK_OK(multicast_token_remove(token));
    CHECK_OK(multicast_queue_destroy(inherited));
    _exit(0);
  }
  CHECK_EQ(made, 3);
  CHECK_TEXT(noted, "1 2 3");
  CHECK(waitpid(forked, &status, 0) == forked);
  CHECK_EQ(status, 0);
}

static void run_in_child_of_call(void *unused) {
  (void)unused;
  CHECK_EQ(multicast_queue_run(inherited, 0), 0);
  CHECK_EQ(invoke_number(inherited_target, 7, 4), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 1);
  CHECK_STATUS(multicast_queue_destroy(inherited), MULTICAST_PENDING);
}

static void fork_and_use(void *context, uint32_t event, const void *payload, size_t size) {
  int number;
  memcpy(&number, payload, sizeof number);
  note_number(context, event, payload, size);
  if (number == 1) in_child(run_in_child_of_call, NULL);
}

TEST(queue_call_that_forks_may_run_and_destroy_the_queue_in_the_child) {
  multicast_delegate d = {fork_and_use, NULL};
  inherit_calls(0);
  add_queued(inherited_target, d, inherited);
  CHECK_OK(multicast_remove(inherited_target, noting()));
  CHECK_EQ(invoke_number(inherited_target, 1, 4), 1);
  CHECK_EQ(invoke_number(inherited_target, 2, 4), 1);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  CHECK_TEXT(noted, "1 2");
}

static gate worker_has_forked = GATE_INIT;

static void fork_in_worker(void *context, uint32_t event, const void *payload, size_t size) {
  note_number(context, event, payload, size);
  if (forked >= 0) return;
  forked = fork();
  CHECK(forked >= 0);
  if (forked == 0) {
    alarm(20);
    CHECK_STATUS(multicast_queue_stop(inherited), MULTICAST_ERROR_STATE); /* it has no worker */
    CHECK_EQ(stats_of(inherited).pending, 0);
    CHECK_EQ(invoke_number(inherited_target, 8, 4), 1);
    return; /* the child's only thread ends, and so does the child, with 0 */
  }
  gate_open(&worker_has_forked);
}

TEST(queue_worker_whose_call_forks_ends_in_the_child_and_goes_on_in_the_parent) {
  multicast_delegate d = {fork_in_worker, NULL};
  int status = -1;
  inherit_calls(0);
  add_queued(inherited_target, d, inherited);
  CHECK_OK(multicast_remove(inherited_target, noting()));
  CHECK_OK(multicast_queue_start(inherited));
  CHECK_EQ(invoke_number(inherited_target, 1, 4), 1);
  CHECK_EQ(invoke_number(inherited_target, 2, 4), 1);
  gate_wait(&worker_has_forked);
  EVENTUALLY(stats_of(inherited).pending == 0);
  CHECK_OK(multicast_queue_stop(inherited));
  CHECK_TEXT(noted, "1 2");
  CHECK(waitpid(forked, &status, 0) == forked);
  CHECK_EQ(status, 0);
}

/* ---- exit ------------------------------------------------------------------------------------ */

static void use_queue_at_exit(void) {
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create();
  int calls = 0;
  add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_queue_destroy(q));
}

static void *produce_for_ever(void *unused) {
  (void)unused;
  for (;;) multicast_invoke(inherited_target, 0, NULL, 0);
  return NULL;
}

static void count_quietly(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event;
  (void)payload;
  (void)size;
  ADD(*(int *)context, 1);
}

static void exit_with_a_worker(void *unused) {
  static int calls;
  multicast_delegate d = {count_quietly, NULL};
  (void)unused;
  d.context = &calls;
  CHECK_EQ(atexit(use_queue_at_exit), 0);
  inherited = queue_with(16, MULTICAST_OVERFLOW_BLOCK);
  inherited_target = multicast_create();
  add_queued(inherited_target, d, inherited);
  CHECK_OK(multicast_queue_start(inherited));
  start_thread(produce_for_ever, NULL);
  EVENTUALLY(LOAD(calls) > 10);
  exit(0);
}

TEST(queue_with_a_worker_and_producers_at_exit_is_harmless) {
  int i;
  for (i = 0; i < 3; ++i) in_child(exit_with_a_worker, NULL);
}

/* ---- Threads that end inside a call ---------------------------------------------------------- */

typedef struct ending {
  multicast_queue queue;
  multicast target;
  multicast_token token;
  bool removes_itself;
  int calls, releases;
  int64_t result;
} ending;

static void end_thread(void *context, uint32_t event, const void *payload, size_t size) {
  ending *e = context;
  (void)event;
  (void)payload;
  (void)size;
  if (ADD(e->calls, 1) > 1) return;
  if (e->removes_itself)
    CHECK_STATUS(multicast_token_remove(multicast_token_current()), MULTICAST_PENDING);
  pthread_exit(NULL);
}

static void release_ending(void *context) { ADD(((ending *)context)->releases, 1); }

static void begin_ending(ending *e, bool removes_itself, int calls) {
  multicast_options options;
  multicast_delegate d;
  memset(e, 0, sizeof *e);
  e->removes_itself = removes_itself;
  e->queue = queue_with(16, MULTICAST_OVERFLOW_BLOCK);
  e->target = multicast_create();
  d.function = end_thread;
  d.context = e;
  options = to_queue(e->queue);
  options.release = release_ending;
  e->token = add_with(e->target, d, &options);
  while (calls-- > 0) CHECK_EQ(invoke_number(e->target, calls, calls % 2 == 0 ? 4096 : 4), 1);
}

static void *run_to_the_end(void *argument) {
  ending *e = argument;
  multicast_queue_run(e->queue, 0);
  CHECK(false); /* the thread has ended before */
  return NULL;
}

TEST(queue_call_in_which_its_thread_ends_leaves_the_queue_to_others) {
  ending e;
  begin_ending(&e, false, 3);
  on_another_thread(run_to_the_end, &e);
  CHECK_EQ(stats_of(e.queue).pending, 2);
  CHECK_EQ(multicast_queue_run(e.queue, 1), 1);
  CHECK_OK(multicast_queue_start(e.queue));
  EVENTUALLY(stats_of(e.queue).delivered == 3);
  CHECK_OK(multicast_queue_stop(e.queue));
  CHECK_EQ(e.calls, 3);
  CHECK_OK(multicast_token_remove(e.token));
  CHECK_EQ(LOAD(e.releases), 1);
  CHECK_OK(multicast_queue_destroy(e.queue));
}

TEST(queue_call_in_which_its_thread_ends_is_released_where_it_was_removed) {
  ending e;
  begin_ending(&e, true, 3);
  on_another_thread(run_to_the_end, &e);
  CHECK_EQ(LOAD(e.releases), 1);
  CHECK_EQ(stats_of(e.queue).retracted, 2);
  CHECK_EQ(multicast_queue_run(e.queue, 0), 0);
  CHECK_OK(multicast_queue_destroy(e.queue));
}

TEST(queue_call_in_which_its_thread_ends_leaves_no_payload_behind) {
  int64_t before = 0;
  int round;
  use_test_allocator();
  for (round = 0; round < 20; ++round) {
    ending e;
    begin_ending(&e, false, 1);
    on_another_thread(run_to_the_end, &e);
    CHECK_OK(multicast_destroy(e.target));
    CHECK_OK(multicast_queue_destroy(e.queue));
    if (round == 5) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}

static ending outer_ending;

static void run_inner(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event;
  (void)payload;
  (void)size;
  if (ADD(outer_ending.calls, 1) == 1) multicast_queue_run(((ending *)context)->queue, 0);
}

TEST(queue_call_in_which_its_thread_ends_leaves_the_queue_outside_to_others_too) {
  ending inner;
  multicast_delegate d;
  begin_ending(&inner, false, 2);
  outer_ending.queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  outer_ending.target = multicast_create();
  d.function = run_inner;
  d.context = &inner;
  add_queued(outer_ending.target, d, outer_ending.queue);
  CHECK_EQ(multicast_invoke(outer_ending.target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(outer_ending.target, 0, NULL, 0), 1);
  on_another_thread(run_to_the_end, &outer_ending);
  CHECK_EQ(multicast_queue_run(outer_ending.queue, 0), 1);
  CHECK_EQ(multicast_queue_run(inner.queue, 0), 1);
  CHECK_OK(multicast_queue_destroy(outer_ending.queue));
  CHECK_OK(multicast_queue_destroy(inner.queue));
}

TEST(queue_worker_that_ends_inside_a_call_leaves_the_queue_to_others) {
  ending e;
  multicast_status status;
  begin_ending(&e, false, 3);
  CHECK_OK(multicast_queue_start(e.queue));
  EVENTUALLY(LOAD(e.calls) == 1);
  status = multicast_queue_stop(e.queue); /* must not wait for ever */
  CHECK(status == MULTICAST_OK || status == MULTICAST_ERROR_STATE);
  EVENTUALLY(multicast_queue_run(e.queue, 1) == 1);
  CHECK_OK(multicast_queue_start(e.queue));
  EVENTUALLY(LOAD(e.calls) == 3);
  CHECK_OK(multicast_queue_destroy(e.queue));
  CHECK_EQ(LOAD(e.releases), 1);
}

TEST(queue_destroyed_after_its_worker_ended_inside_a_call) {
  ending e;
  begin_ending(&e, false, 3);
  CHECK_OK(multicast_queue_start(e.queue));
  EVENTUALLY(LOAD(e.calls) == 1);
  CHECK_OK(multicast_queue_destroy(e.queue));
  CHECK_EQ(LOAD(e.releases), 1);
  CHECK_EQ(LOAD(e.calls), 1);
}

TEST(queue_that_blocks_goes_on_where_its_consumer_has_ended) {
  ending e;
  sleeper s;
  multicast m = multicast_create();
  int calls = 0, i;
  begin_ending(&e, false, 1);
  on_another_thread(run_to_the_end, &e);
  add_queued(m, counter(&calls), e.queue);
  for (i = 0; i < 16; ++i) CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  s.target = m;
  s.returned = shut;
  s.thread = start_thread(invoke_into_full, &s);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  CHECK_EQ(multicast_queue_run(e.queue, 1), 1);
  join_thread(s.thread);
  CHECK_EQ(s.result, 1);
}

static void *run_a_little(void *argument) {
  ending *e = argument;
  e->result = multicast_queue_run(e->queue, 1);
  return NULL;
}

TEST(queue_may_be_run_by_ever_new_threads) {
  ending e;
  int i;
  int64_t bytes = 0;
  use_test_allocator();
  begin_ending(&e, false, 0);
  e.calls = 1; /* ends none */
  for (i = 0; i < 300; ++i) {
    CHECK_EQ(invoke_number(e.target, i, 4096), 1);
    on_another_thread(run_a_little, &e);
    CHECK_EQ(e.result, 1);
    if (i == 10) bytes = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, bytes);
}
