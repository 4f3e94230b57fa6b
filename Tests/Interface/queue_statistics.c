/* The statistics of a queue add up after every step. */

#include "notes.h"
#include "queues.h"

#include <stddef.h>

TEST(queue_statistics_of_a_bad_struct_size_are_invalid_argument) {
  multicast_queue q = default_queue();
  multicast_queue_stats s;
  for (uint32_t size = 0; size < sizeof s; ++size) {
    memset(&s, 0xAB, sizeof s);
    s.struct_size = size;
    CHECK_ERROR(multicast_queue_get_stats(q, &s), INVALID_ARGUMENT);
    CHECK_EQ(s.struct_size, size);
    CHECK(s.pending == UINT64_C(0xABABABABABABABAB) && s.highest == s.pending);
  }
  s.struct_size = 1025;
  CHECK_ERROR(multicast_queue_get_stats(q, &s), INVALID_ARGUMENT);
  s.struct_size = UINT32_MAX;
  CHECK_ERROR(multicast_queue_get_stats(q, &s), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_queue_get_stats(q, NULL), INVALID_ARGUMENT);
}

/* A struct of a later version, and what comes after it. */
typedef struct struct_of_newer {
  multicast_queue_stats known;
  uint64_t unknown[8], beyond;
} struct_of_newer;

TEST_OF_QUEUE(queue_statistics_serve_newer_callers_with_any_rest) {
  struct_of_newer newer;
  const uint32_t size = (uint32_t)offsetof(struct_of_newer, beyond);
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  memset(&newer, 0xAB, sizeof newer);
  newer.known.struct_size = size;
  CHECK_OK(multicast_queue_get_stats(q, &newer.known));
  CHECK_EQ(newer.known.struct_size, size);
  CHECK_EQ(newer.known.flags, 0);
  CHECK_EQ(newer.known.pending, 1);
  CHECK_EQ(newer.known.queued, 1);
  CHECK_EQ(newer.known.delivered, 0);
  CHECK_EQ(newer.known.highest, 1);
  for (size_t i = 0; i < 8; ++i) CHECK_EQ(newer.unknown[i], 0);
  CHECK(newer.beyond == UINT64_C(0xABABABABABABABAB));
}

FUNCTION(look_at_figures, requeuer *r) {
  ++r->made;
  CHECK_TEXT(figures(r->queue), r->made == 1 ? "pending 1, queued 2, delivered 1"
                                             : "queued 2, delivered 2");
}

TEST(queue_statistics_count_the_call_that_runs_as_delivered) {
  requeuer r;
  begin_requeuing(&r, look_at_figures, 0);
  invoke_number(r.target, 2);
  CHECK_EQ(multicast_queue_run(r.queue, 0), 2);
}

TEST(queue_statistics_add_up_at_every_step) {
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_DROP_OLDEST);
  multicast m = multicast_create();
  multicast_token token = add_queued(m, noting('a'), q);
  add_flagged(m, noting('b'), q, MULTICAST_LATEST);
  for (int i = 0; i < 200; ++i) {
    invoke_number(m, i);
    stats_of(q);
    if (i % 3 == 0) multicast_queue_run(q, 1);
    stats_of(q);
    if (i % 7 == 0) {
      CHECK_OK(multicast_token_remove(token));
      stats_of(q);
      token = add_queued(m, noting('a'), q);
    }
    noted_length = 0;
  }
}
