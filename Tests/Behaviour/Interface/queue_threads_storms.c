/* No call is lost or made twice while delegates are added and removed, or while the process
 * forks. */

#include "producers.h"

#include <poll.h>

/* ---- Every call is accounted for ------------------------------------------------------------- */

static bool is_over;

typedef struct churner {
  multicast target;
  multicast_queue queue;
  uint32_t flags;
  int rounds, removed;
  pthread_t thread;
} churner;

static guest *add_guest(const churner *c, int round) {
  guest *g = calloc(1, sizeof *g);
  CHECK(g != NULL);
  g->magic = ALIVE;
  g->by_lifetime = round % 3 == 0;
  multicast_add_options options = ADD_OPTIONS(.queue = c->queue, .flags = c->flags,
                                              .priority = round % 2);
  if (g->by_lifetime) options.lifetime = g->lifetime = multicast_lifetime_create();
  g->token = add_with(c->target, DELEGATE(call_guest, g), &options);
  return g;
}

static void remove_guest(churner *c, guest *g, int round) {
  ++c->removed;
  if (g->by_lifetime) {
    CHECK_OK(multicast_lifetime_end(g->lifetime));
  } else if (round % 4 == 1) {
    CHECK_OK(multicast_remove(c->target, DELEGATE(call_guest, g)));
  } else if (round % 4 == 2) {
    CHECK_EQ(multicast_remove_context(c->target, g), 1);
  } else {
    CHECK_OK(multicast_token_remove(g->token));
  }
  STORE(g->magic, DEAD);
  memset(g, 0xDD, sizeof *g);
  free(g);
}

THREAD(come_and_go, churner *c) {
  enum { GUESTS = 5 };
  guest *guests[GUESTS] = {NULL};
  for (int round = 0; round < c->rounds || !LOAD(is_over); ++round) {
    guest **g = &guests[round % GUESTS];
    if (*g != NULL) remove_guest(c, *g, round);
    *g = add_guest(c, round);
    if (round % 16 == 0) sched_yield();
  }
  for (int round = 0; round < GUESTS; ++round) {
    if (guests[round] != NULL) remove_guest(c, guests[round], round);
  }
}

THREAD(look_at_figures, const multicast_queue *q) {
  while (!LOAD(is_over)) {
    multicast_queue_stats s = stats_of(*q);
    CHECK(s.pending <= s.highest);
    sched_yield();
  }
}

static bool no_more_calls;

enum { SECOND = 1000000000 };

THREAD(run_until_notified, const multicast_queue *q) {
  while (!LOAD(no_more_calls)) {
    int64_t waiting = multicast_queue_wait(*q, SECOND / 1000);
    CHECK(waiting > 0 || waiting == MULTICAST_ERROR_TIMEOUT);
    CHECK(multicast_queue_run(*q, 7) >= 0);
  }
}

enum { MESSAGES = 1500 };

static void conserves(multicast_overflow overflow, uint32_t flags, bool has_worker) {
  for (uint32_t producers = 1; producers <= MOST_PRODUCERS; producers += 3) {
    producer p[MOST_PRODUCERS];
    guest stays = {ALIVE, 0, {0}, {0}, false};
    multicast_queue q = queue_with(16, overflow);
    multicast m = multicast_create();
    pthread_t consumer = 0, looker;
    calls_seen = 0;
    is_over = no_more_calls = false;
    add_with(m, DELEGATE(call_guest, &stays), &ADD_OPTIONS(.queue = q, .flags = flags));
    churner c = {.target = m, .queue = q, .flags = flags, .rounds = 500, .removed = 0};
    if (has_worker) {
      CHECK_OK(multicast_queue_start(q));
    } else {
      consumer = start_thread(run_until_notified, &q);
    }
    looker = start_thread(look_at_figures, &q);
    c.thread = start_thread(come_and_go, &c);
    start_producers(p, producers, m, MESSAGES);
    int64_t queued = join_producers(p, producers);
    STORE(is_over, true);
    join_thread(c.thread);
    join_thread(looker);
    STORE(no_more_calls, true);
    if (has_worker) {
      CHECK_OK(multicast_queue_stop(q));
    } else {
      join_thread(consumer);
    }
    multicast_queue_stats s = stats_of(q);
    CHECK_EQ(s.queued, queued);
    CHECK_EQ(s.delivered, calls_seen);
    if (overflow == MULTICAST_OVERFLOW_DROP_OLDEST) CHECK_EQ(s.refused, 0);
    /* A blocked call is refused only if its delegate is removed. Each producer has at most one
     * blocked call. */
    if (overflow == MULTICAST_OVERFLOW_BLOCK)
      CHECK(s.refused <= (uint64_t)c.removed * producers);
    if (overflow != MULTICAST_OVERFLOW_DROP_OLDEST) CHECK_EQ(s.dropped, 0);
    if ((flags & MULTICAST_LATEST) == 0) CHECK_EQ(s.coalesced, 0);
    CHECK(s.highest <= 16);
    CHECK_EQ(multicast_queue_run(q, 0), s.pending);
    CHECK_EQ(stats_of(q).delivered, calls_seen);
    if (overflow == MULTICAST_OVERFLOW_BLOCK && (flags & MULTICAST_LATEST) == 0)
      CHECK_EQ(stays.calls, producers * MESSAGES); /* no call of the remaining delegate is lost */
    CHECK_EQ(multicast_count(m), 1);
    CHECK_OK(multicast_queue_destroy(q));
    CHECK_EQ(multicast_count(m), 0);
    CHECK_OK(multicast_destroy(m));
  }
}

TEST(queue_that_refuses_conserves_calls_beside_changes) {
  conserves(MULTICAST_OVERFLOW_REFUSE, 0, false);
}
TEST(queue_that_drops_conserves_calls_while_delegates_come_and_go) {
  conserves(MULTICAST_OVERFLOW_DROP_OLDEST, 0, false);
}
TEST(queue_that_blocks_conserves_calls_beside_changes) {
  conserves(MULTICAST_OVERFLOW_BLOCK, 0, false);
}
TEST(queue_of_latest_calls_conserves_them_beside_changes) {
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

/* ---- The descriptor -------------------------------------------------------------------------- */

THREAD(poll_until_notified, const multicast_queue *q) {
  struct pollfd polled = {0, POLLIN, 0};
  polled.fd = multicast_queue_fd(*q);
  while (!LOAD(no_more_calls)) {
    if (poll(&polled, 1, 1) == 1) CHECK(multicast_queue_run(*q, 0) >= 0);
  }
}

TEST(queue_fd_is_right_after_storm_of_calls_cancelled_and_dropped) {
  for (int round = 0; round < 12; ++round) {
    producer p[2];
    multicast_queue q = queue_with(1 + (uint32_t)round % 3, round % 2 == 0
                                                                ? MULTICAST_OVERFLOW_DROP_OLDEST
                                                                : MULTICAST_OVERFLOW_REFUSE);
    multicast m = multicast_create();
    int fd = multicast_queue_fd(q);
    is_over = no_more_calls = false;
    churner c = {.target = m, .queue = q, .flags = round % 3 == 0 ? MULTICAST_LATEST : 0,
                 .rounds = 100};
    pthread_t consumer = start_thread(poll_until_notified, &q);
    c.thread = start_thread(come_and_go, &c);
    start_producers(p, 2, m, 400);
    join_producers(p, 2);
    for (int stage = 0; stage < 2; ++stage) {
      if (stage == 0) {
        STORE(no_more_calls, true);
        join_thread(consumer);
      } else {
        STORE(is_over, true);
        join_thread(c.thread);
        CHECK_EQ(stats_of(q).pending, 0); /* all delegates have been removed */
        CHECK(!is_readable(fd));
      }
    }
    CHECK_OK(multicast_queue_destroy(q));
    CHECK_OK(multicast_destroy(m));
  }
}

/* ---- fork ------------------------------------------------------------------------------------ */

static inbox *inherited_inbox;

static multicast_queue inherited;
static multicast inherited_target;

static void use_queue_in_child(void *unused) {
  unsigned char bytes[100];
  int calls = 0;
  CHECK_EQ(stats_of(inherited).pending, 0);
  CHECK_EQ(multicast_queue_run(inherited, 0), 0); /* the worker does not exist in this process */
  CHECK_ERROR(multicast_queue_stop(inherited), STATE);
  multicast_token token = add_queued(inherited_target, counter(&calls), inherited);
  inherited_inbox->inside = 0; /* the parent's worker may have been inside a call */
  inherited_inbox->has_gaps = true;
  CHECK_EQ(multicast_invoke(inherited_target, 0, bytes, write_message(bytes, 3, 1000000)), 2);
  CHECK_EQ(multicast_queue_run(inherited, 0), 2);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_token_remove(token));
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_BLOCK);
  multicast m = multicast_create();
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

static int inherited_fd;

static void forks_at_any_moment(multicast_overflow overflow) {
  enum { PRODUCERS = 2, COUNT = 4000 };
  producer p[PRODUCERS];
  inbox in;
  pthread_t looker;
  int64_t queued;
  int i;
#if defined(__SANITIZE_ADDRESS__)
  /* Use payloads that fit into the queue without an allocation, because the address sanitizer's
   * allocator cannot be used in a child that has been forked during an allocation. */
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
  pause_ms(A_WHILE_MS); /* the threads have started and no longer allocate */
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

TEST(queue_in_the_child_at_any_moment_of_producers_and_a_worker) {
  forks_at_any_moment(MULTICAST_OVERFLOW_BLOCK);
}
TEST(queue_that_drops_in_the_child_of_a_fork_at_any_moment) {
  forks_at_any_moment(MULTICAST_OVERFLOW_DROP_OLDEST);
}
