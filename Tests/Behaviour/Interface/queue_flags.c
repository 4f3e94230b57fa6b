/* With MULTICAST_LATEST, only the newest call to a delegate stays in the queue. With
 * MULTICAST_ONCE, a delegate is called only once. */

#include "notes.h"
#include "queues.h"
#include "removals.h"

/* ---- MULTICAST_LATEST ------------------------------------------------------------------------ */

TEST(queue_keeps_newest_call_of_latest_delegate_in_place_of_first) {
  multicast_queue q = default_queue();
  multicast m = multicast_create(), other = multicast_create();
  int number = 4;
  add_flagged(m, noting('a'), q, MULTICAST_LATEST);
  add_queued(other, noting('b'), q);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_EQ(invoke_number(other, 1), 1);
  CHECK_EQ(invoke_number(m, 2), 1);
  CHECK_EQ(invoke_number(m, 3), 1);
  CHECK_EQ(invoke_number(other, 2), 1);
  CHECK_EQ(multicast_invoke(m, 5, &number, sizeof number), 1);
  CHECK_TEXT(figures(q), "pending 3, queued 6, coalesced 3");
  CHECK_EQ(stats_of(q).highest, 3);
  CHECK_NOTED(multicast_queue_run(q, 0), 3, "a4@5 b1 b2");
  CHECK_TEXT(figures(q), "queued 6, delivered 3, coalesced 3");
}

FUNCTION(invoke_itself, requeuer *r) {
  note_call((void *)(intptr_t)'a', event, payload, size);
  if (r->left-- > 0) {
    CHECK_EQ(invoke_number(r->target, 10), 1);
    CHECK_EQ(invoke_number(r->target, 11), 1);
    CHECK_TEXT(figures(r->queue), "pending 1, queued 3, delivered 1, coalesced 1");
  }
}

TEST(queue_takes_latest_call_again_once_one_before_has_begun) {
  requeuer r = {{0}, {0}, 1, 0, 0};
  r.queue = default_queue();
  r.target = multicast_create();
  add_flagged(r.target, DELEGATE(invoke_itself, &r), r.queue, MULTICAST_LATEST);
  invoke_number(r.target, 1);
  CHECK_EQ(multicast_queue_run(r.queue, 0), 1);
  CHECK_NOTED(multicast_queue_run(r.queue, 0), 1, "a1 a11");
}

TEST_OF_MEMORY(queue_keeps_newest_payload_of_any_size_of_latest_delegate) {
  static const size_t sizes[] = {4, 4096, 16, 33, 4096, 0, 32, 4097, 5};
  static unsigned char payload[4097];
  static parcel p;
  int64_t before = 0;
  multicast_queue q = default_queue();
  add_flagged(m, keeping(&p), q, MULTICAST_LATEST);
  for (int round = 0; round < 2; ++round) {
    for (size_t last = 0; last < 9; ++last) {
      for (size_t i = 0; i <= last; ++i) {
        memset(payload, (int)(i + 1), sizeof payload);
        CHECK_EQ(multicast_invoke(m, (uint32_t)i, payload, sizes[i]), 1);
      }
      CHECK_EQ(multicast_queue_run(q, 0), 1);
      CHECK_EQ(p.size, sizes[last]);
      if (p.size > 0) CHECK(p.bytes[0] == last + 1 && p.bytes[p.size - 1] == last + 1);
      if (p.size > 0) CHECK_EQ((uintptr_t)p.payload % 16, 0);
    }
    if (round == 0) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}

TEST(queue_full_does_not_block_newest_call_of_latest_delegate) {
  narrow n;
  fill_narrow(&n, &ADD_OPTIONS(.flags = MULTICAST_LATEST));
  CHECK_EQ(invoke_number(n.target, 2), 1);
  CHECK_NOTED(multicast_queue_run(n.queue, 0), 1, "a2");
}

TEST_OF_MULTICAST(queue_flag_latest_changes_nothing_without_a_queue) {
  add_with(m, noting('a'), &ADD_OPTIONS(.flags = MULTICAST_LATEST));
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_NOTED(invoke_number(m, 2), 1, "a1 a2");
}

/* ---- MULTICAST_ONCE -------------------------------------------------------------------------- */

static multicast once_target;
static multicast_token once_token;
static int64_t once_count = -1, once_again = -1;
static bool once_was_live;

static void note_once(void *context, uint32_t event, const void *payload, size_t size) {
  note_call(context, event, payload, size);
  once_count = multicast_count(once_target);
  once_was_live = multicast_token_is_valid(once_token);
  once_again = invoke_number(once_target, 99);
  CHECK_EQ(releases[(intptr_t)context], 0);
}

TEST(queue_calls_a_once_delegate_once_and_it_stays_until_then) {
  multicast_queue q = default_queue();
  multicast_delegate d = noting('a');
  d.function = note_once;
  once_target = multicast_create();
  once_token = add_with(once_target, d, &ADD_OPTIONS(.queue = q, .flags = MULTICAST_ONCE,
                                                     .release = count_release_of));
  once_was_live = true;
  CHECK_EQ(invoke_number(once_target, 1), 1);
  CHECK_EQ(invoke_number(once_target, 2), 0);
  CHECK_EQ(multicast_count(once_target), 1);
  CHECK(multicast_contains(once_target, d));
  CHECK(multicast_token_is_valid(once_token));
  CHECK_EQ(releases['a'], 0);
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "a1");
  CHECK_EQ(once_count, 0);
  CHECK_EQ(once_again, 0);
  CHECK(!once_was_live);
  CHECK_EQ(releases['a'], 1);
  CHECK_EQ(invoke_number(once_target, 3), 0);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK_TEXT(figures(q), "queued 1, delivered 1");
}

TEST_OF_QUEUE(queue_cancels_the_call_of_a_once_delegate) {
  multicast_token token = add_flagged(m, noting('a'), q, MULTICAST_ONCE);
  invoke_number(m, 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(releases['a'], 1);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK_TEXT(figures(q), "queued 1, cancelled 1");
}

TEST(queue_takes_a_once_delegate_again_that_was_refused) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create(), other = multicast_create();
  add_queued(other, noting('x'), q);
  add_flagged(m, noting('a'), q, MULTICAST_ONCE);
  invoke_number(other, 1);
  CHECK_EQ(invoke_number(m, 1), 0);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(invoke_number(m, 2), 1);
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "x1 a2");
  CHECK_EQ(multicast_count(m), 0);
}

TEST(queue_takes_a_once_delegate_again_whose_call_was_dropped) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_DROP_OLDEST);
  multicast m = multicast_create(), other = multicast_create();
  add_queued(other, noting('x'), q);
  add_flagged(m, noting('a'), q, MULTICAST_ONCE);
  invoke_number(m, 1);
  invoke_number(other, 1);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(releases['a'], 0);
  CHECK_EQ(invoke_number(m, 2), 1);
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "a2");
  CHECK_EQ(releases['a'], 1);
  CHECK_TEXT(figures(q), "queued 3, delivered 1, dropped 2");
}

TEST(queue_calls_once_and_latest_delegate_once_with_newest_event) {
  multicast_queue q = queue_with(2, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create(), other = multicast_create();
  int number = 3;
  add_flagged(m, noting('a'), q, MULTICAST_ONCE | MULTICAST_LATEST);
  add_queued(other, noting('b'), q);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_EQ(invoke_number(other, 1), 1); /* fills the queue */
  CHECK_EQ(invoke_padded_number(m, 2, 300), 1);
  CHECK_EQ(multicast_invoke(m, 9, &number, sizeof number), 1);
  CHECK_TEXT(figures(q), "pending 2, queued 4, coalesced 2");
  CHECK_EQ(multicast_count(m), 1);
  CHECK_NOTED(multicast_queue_run(q, 0), 2, "a3@9 b1");
  CHECK_EQ(releases['a'], 1);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(invoke_number(m, 4), 0);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK_TEXT(figures(q), "queued 4, delivered 2, coalesced 2");
}

TEST_OF_QUEUE(queue_cancels_the_call_of_a_once_delegate_that_was_visited) {
  int number = 5;
  add_flagged(m, noting('a'), q, MULTICAST_ONCE);
  invoke_number(m, 1);
  CHECK_NOTED(multicast_visit(m, visit_all, &number), 1, "a5");
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(releases['a'], 1);
  CHECK_NOTED(multicast_queue_run(q, 0), 0, "a5");
  CHECK_TEXT(figures(q), "queued 1, cancelled 1");
}

TEST(queue_call_of_removed_once_delegate_is_waited_for) {
  removal r;
  blocker b = BLOCKER_INIT;
  runner run;
  prepare_removal(&r, multicast_create(), &b, by_token);
  r.queue = default_queue();
  r.token = add_with(r.target, r.delegate, &ADD_OPTIONS(.queue = r.queue, .flags = MULTICAST_ONCE,
                                                        .release = release_blocker));
  invoke_number(r.target, 1);
  run_in_background(&run, r.queue, 0);
  gate_wait(&b.entered);
  CHECK_EQ(multicast_count(r.target), 0);
  expect_to_wait(&r, MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(run_finished(&run), 1);
  CHECK_EQ(LOAD(b.releases), 1);
}
