/* Removing a delegate cancels its queued calls. */

#include "notes.h"
#include "queues.h"
#include "removals.h"

static multicast_queue released_from;
static int64_t waiting_at_release = -1;

static void release_and_look(void *context) {
  multicast_queue_stats s = multicast_queue_stats_default();
  count_release_of(context);
  if (multicast_queue_get_stats(released_from, &s) == MULTICAST_OK)
    waiting_at_release = (int64_t)s.pending;
}

static void retracts(int64_t (*remove)(removal *)) {
  removal r;
  multicast other = multicast_create();
  unsigned char large[300] = {0};
  int number;
  released_from = default_queue();
  add_removable(&r, noting('a'), released_from, release_and_look);
  add_queued(other, noting('b'), r.queue);
  for (int i = 1; i <= 6; ++i) { /* stored in the queue or in a separate allocation */
    size_t size = i % 3 == 0 ? sizeof large : sizeof number;
    number = i;
    memcpy(large, &number, sizeof number);
    CHECK_EQ(multicast_invoke(r.target, 0, large, size), 1);
    CHECK_EQ(multicast_invoke(other, 0, large, size), 1);
  }
  CHECK_STATUS(remove(&r), MULTICAST_OK);
  CHECK_EQ(releases['a'], 1);
  if (remove == by_queue) {
    CHECK_ERROR(multicast_queue_run(r.queue, 0), INVALID_HANDLE);
    CHECK_TEXT(noted, "");
    CHECK_EQ(multicast_count(other), 0);
    return;
  }
  /* only the other delegate's six calls remained, because the rest were cancelled before the
   * release */
  CHECK_EQ(waiting_at_release, 6);
  CHECK_TEXT(figures(r.queue), "pending 6, queued 12, cancelled 6");
  CHECK_NOTED(multicast_queue_run(r.queue, 0), 6, "b1 b2 b3 b4 b5 b6");
  CHECK_TEXT(figures(r.queue), "queued 12, delivered 6, cancelled 6");
  CHECK_EQ(releases['a'], 1);
  if (remove == by_unique) { /* the replacement is called instead */
    CHECK_EQ(invoke_number(r.target, 9), 1);
    CHECK_NOTED(multicast_queue_run(r.queue, 0), 1, "b1 b2 b3 b4 b5 b6 a9");
  }
}

TEST(queue_calls_are_cancelled_by_remove) { retracts(by_remove); }
TEST(queue_calls_are_cancelled_by_token_remove) { retracts(by_token); }
TEST(queue_calls_are_cancelled_by_token_remove_nowait) { retracts(by_nowait); }
TEST(queue_calls_are_cancelled_by_token_remove_within) { retracts(by_within); }
TEST(queue_calls_are_cancelled_by_remove_context) { retracts(by_context); }
TEST(queue_calls_are_cancelled_by_remove_at) { retracts(by_place); }
TEST(queue_calls_are_cancelled_by_remove_all) { retracts(by_all); }
TEST(queue_calls_are_cancelled_by_remove_many) { retracts(by_many); }
TEST(queue_calls_are_cancelled_by_destroy) { retracts(by_destroy); }
TEST(queue_calls_are_cancelled_by_lifetime_end) { retracts(by_lifetime); }
TEST(queue_calls_are_cancelled_by_unique) { retracts(by_unique); }
TEST(queue_calls_are_cancelled_by_queue_destroy) { retracts(by_queue); }

TEST(queue_payloads_of_cancelled_calls_are_released) {
  static int64_t (*const ways[])(removal *) = {
      by_remove, by_token, by_nowait, by_within, by_context, by_place,
      by_all,    by_many,  by_destroy, by_lifetime, by_queue, by_unique};
  static unsigned char payload[4096];
  int64_t before = 0;
  use_test_allocator();
  for (int round = 0; round < 2; ++round) {
    before = allocated_bytes;
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; ++way) {
      removal r;
      multicast_queue q = default_queue();
      add_removable(&r, noting('a'), q, NULL);
      int64_t without = allocated_bytes;
      for (int i = 0; i < 10; ++i) CHECK_EQ(multicast_invoke(r.target, 0, payload, 4096), 1);
      CHECK(allocated_bytes >= without + INT64_C(10) * 4096);
      CHECK_OK(ways[way](&r));
      if (round > 0 && ways[way] != by_unique) CHECK(allocated_bytes <= without);
      multicast_destroy(r.target);
      multicast_lifetime_end(r.lifetime);
      multicast_queue_destroy(q);
    }
  }
  CHECK_EQ(allocated_bytes, before);
}

static multicast_token removed_inside;
static multicast_status status_inside;

static void remove_other(void *context, uint32_t event, const void *payload, size_t size) {
  note_call(context, event, payload, size);
  status_inside = multicast_token_remove(removed_inside);
  multicast_token_remove(removed_inside);
}

TEST_OF_QUEUE(queue_calls_of_another_delegate_are_cancelled_inside_a_call) {
  multicast_delegate d = noting('d');
  d.function = remove_other;
  status_inside = MULTICAST_ERROR_STATE;
  add_queued(m, d, q);
  removed_inside = add_with(m, noting('a'), &ADD_OPTIONS(.queue = q, .release = count_release_of));
  add_queued(m, noting('b'), q);
  CHECK_EQ(invoke_number(m, 1), 3);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_OK(status_inside);
  CHECK_EQ(releases['a'], 1);
  CHECK_TEXT(noted, "d1 b1");
  CHECK_TEXT(figures(q), "queued 3, delivered 2, cancelled 1");
}
