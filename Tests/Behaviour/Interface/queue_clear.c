/* Clearing a queue drops its waiting calls. */

#include "notes.h"
#include "producers.h"
#include "queues.h"

TEST_OF_QUEUE(queue_clear_drops_and_counts_the_calls_that_wait) {
  add_queued(m, noting('a'), q);
  add_queued(m, noting('b'), q);
  for (int i = 1; i <= 5; ++i) CHECK_EQ(invoke_number(m, i), 2);
  CHECK_EQ(multicast_queue_run(q, 3), 3);
  CHECK_EQ(multicast_queue_clear(q), 7);
  CHECK_TEXT(figures(q), "queued 10, delivered 3, dropped 7");
  CHECK_EQ(stats_of(q).highest, 10);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK_ERROR(multicast_queue_wait(q, 0), TIMEOUT);
  CHECK_EQ(multicast_queue_clear(q), 0);
  CHECK_EQ(multicast_count(m), 2);
  CHECK_EQ(invoke_number(m, 6), 2);
  CHECK_NOTED(multicast_queue_run(q, 0), 2, "a1 b1 a2 a6 b6");
  CHECK_TEXT(figures(q), "queued 12, delivered 5, dropped 7");
}

TEST_OF_MEMORY(queue_clear_frees_the_payloads) {
  multicast_queue q = default_queue();
  add_queued(m, noting('a'), q);
  add_queued(m, noting('b'), q);
  add_flagged(m, noting('c'), q, MULTICAST_LATEST);
  invoke_padded_number(m, 1, 4096);
  CHECK_EQ(multicast_queue_run(q, 0), 3);
  int64_t bytes = allocated_bytes;
  int64_t blocks = allocated_blocks;
  for (int i = 0; i < 50; ++i) CHECK_EQ(invoke_padded_number(m, i, 4096), 3);
  CHECK(allocated_bytes >= bytes + (int64_t)50 * 4096);
  CHECK_EQ(multicast_queue_clear(q), 101);
  CHECK_EQ(allocated_bytes, bytes);
  CHECK_EQ(allocated_blocks, blocks);
}

TEST_OF_QUEUE(queue_clear_makes_the_descriptor_not_readable) {
  int fd = multicast_queue_fd(q);
  add_queued(m, noting('a'), q);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK(is_readable(fd));
  CHECK_EQ(multicast_queue_clear(q), 1);
  CHECK(!is_readable(fd));
  CHECK_EQ(invoke_number(m, 2), 1);
  CHECK(is_readable(fd));
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(!is_readable(fd));
}

TEST_OF_QUEUE(queue_clear_lets_latest_and_once_delegates_queue_again) {
  add_flagged(m, noting('a'), q, MULTICAST_LATEST);
  add_flagged(m, noting('b'), q, MULTICAST_ONCE);
  add_flagged(m, noting('c'), q, MULTICAST_ONCE | MULTICAST_LATEST);
  CHECK_EQ(invoke_number(m, 1), 3);
  CHECK_EQ(multicast_queue_clear(q), 3);
  CHECK_EQ(multicast_count(m), 3);
  CHECK_EQ(invoke_number(m, 2), 3);
  CHECK_NOTED(multicast_queue_run(q, 0), 3, "a2 b2 c2");
  CHECK_TEXT(figures(q), "queued 6, delivered 3, dropped 3");
}

TEST(queue_clear_lets_blocked_producers_go_on) {
  enum { PRODUCERS = 3 };
  sleeper s[PRODUCERS];
  narrow n;
  fill_narrow(&n, NULL);
  for (int i = 0; i < PRODUCERS; ++i) {
    s[i].target = n.target;
    s[i].returned = shut;
    s[i].thread = start_thread(invoke_into_full, &s[i]);
  }
  CHECK(!gate_opens_within(&s[0].returned, A_WHILE_MS));
  for (int i = 0; i < PRODUCERS; ++i) {
    CHECK_EQ(multicast_queue_clear(n.queue), 1);
    EVENTUALLY(stats_of(n.queue).pending == 1); /* the next producer has queued its call */
  }
  for (int i = 0; i < PRODUCERS; ++i) {
    join_thread(s[i].thread);
    CHECK_EQ(s[i].result, 1);
  }
  CHECK_TEXT(figures(n.queue), "pending 1, queued 4, dropped 3");
}

static multicast_queue cleared;

static void clear_inside(void *context, uint32_t event, const void *payload, size_t size) {
  note_call(context, event, payload, size);
  CHECK_EQ(multicast_queue_clear(cleared), 2);
  CHECK_TEXT(figures(cleared), "queued 3, delivered 1, dropped 2");
}

TEST_OF_MULTICAST(queue_clear_inside_a_call_of_the_queue_drops_the_later_ones) {
  multicast_delegate d = noting('a');
  cleared = default_queue();
  d.function = clear_inside;
  add_queued(m, d, cleared);
  invoke_padded_number(m, 1, 100);
  invoke_padded_number(m, 2, 100);
  invoke_padded_number(m, 3, 100);
  CHECK_NOTED(multicast_queue_run(cleared, 0), 1, "a1");
}

TEST_OF_QUEUE(queue_clear_does_not_wait_for_call_that_queues_thread_makes) {
  blocker b = BLOCKER_INIT;
  add_queued(m, blocking(&b), q);
  CHECK_OK(multicast_queue_start(q));
  for (int i = 0; i < 3; ++i) CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  gate_wait(&b.entered);
  CHECK_EQ(multicast_queue_clear(q), 2);
  CHECK(!LOAD(b.has_left));
  gate_open(&b.let_go);
  CHECK_OK(multicast_queue_stop(q));
  CHECK_EQ(b.calls, 1);
  CHECK_TEXT(figures(q), "queued 3, delivered 1, dropped 2");
}

static bool is_over;

THREAD(clear_all_the_time, int64_t *dropped) {
  while (!LOAD(is_over)) {
    int64_t now = multicast_queue_clear(cleared);
    CHECK(now >= 0);
    *dropped += now;
  }
}

TEST_OF_MULTICAST(queue_clear_conserves_calls_while_others_queue_and_run_them) {
  producer p[2];
  inbox in;
  multicast_delegate d = receiving(&in);
  int64_t dropped = 0, queued;
  in.has_gaps = true;
  cleared = queue_with(8, MULTICAST_OVERFLOW_BLOCK);
  add_queued(m, d, cleared);
  CHECK_OK(multicast_queue_start(cleared));
  pthread_t thread = start_thread(clear_all_the_time, &dropped);
  start_producers(p, 2, m, 3000);
  queued = join_producers(p, 2);
  STORE(is_over, true);
  join_thread(thread);
  CHECK_OK(multicast_queue_stop(cleared));
  dropped += multicast_queue_clear(cleared);
  multicast_queue_stats s = stats_of(cleared);
  CHECK_EQ(queued, 6000);
  CHECK_EQ(s.queued, 6000);
  CHECK_EQ(s.dropped, dropped);
  CHECK_EQ(s.delivered, in.received);
  CHECK_EQ(s.refused, 0);
}
