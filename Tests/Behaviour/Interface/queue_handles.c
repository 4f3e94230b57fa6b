/* Adding a delegate with a destroyed queue or with an ended lifetime fails. */

#include "notes.h"
#include "queues.h"

TEST_OF_MULTICAST(queue_that_is_gone_keeps_unique_from_removing_the_old_one) {
  multicast_queue q = default_queue(), gone = default_queue();
  multicast_token token = {77};
  CHECK_OK(multicast_queue_destroy(gone));
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  multicast_add_options options = ADD_OPTIONS(.queue = gone, .flags = MULTICAST_UNIQUE,
                                              .release = count_release_of);
  CHECK_ERROR(multicast_add(m, noting('a'), &options, &token), INVALID_HANDLE);
  CHECK_EQ(token.id, 0);
  CHECK_EQ(releases['a'], 1);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
}

TEST_OF_MULTICAST(queue_that_is_gone_fails_an_add_many_and_releases_each) {
  multicast_queue gone = default_queue();
  multicast_delegate d[2];
  multicast_token tokens[2] = {{7}, {8}};
  d[0] = noting('a');
  d[1] = d[0];
  CHECK_OK(multicast_queue_destroy(gone));
  multicast_add_options options = ADD_OPTIONS(.queue = gone, .release = count_release_of);
  CHECK_ERROR(multicast_add_many(m, d, 2, &options, tokens), INVALID_HANDLE);
  CHECK(tokens[0].id == 0 && tokens[1].id == 0);
  CHECK_EQ(releases['a'], 2);
  CHECK_EQ(multicast_count(m), 0);
}

TEST_OF_QUEUE(queue_and_a_lifetime_that_has_ended_fail_an_add) {
  multicast_add_options options = ADD_OPTIONS(.queue = q, .lifetime = multicast_lifetime_create(),
                                              .release = count_release_of);
  CHECK_OK(multicast_lifetime_end(options.lifetime));
  CHECK_ERROR(multicast_add(m, noting('a'), &options, NULL), INVALID_HANDLE);
  CHECK_EQ(releases['a'], 1);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_EQ(releases['a'], 1);
}

TEST_OF_MULTICAST(queue_and_lifetime_both_refer_to_registration_until_one_goes) {
  for (int round = 0; round < 2; ++round) {
    multicast_queue q = default_queue();
    multicast_lifetime lifetime = multicast_lifetime_create();
    multicast_add_options options = ADD_OPTIONS(.queue = q, .lifetime = lifetime,
                                                .release = count_release_of);
    add_with(m, noting('a'), &options);
    CHECK_EQ(multicast_lifetime_count(lifetime), 1);
    invoke_number(m, 1);
    CHECK_OK(round == 0 ? multicast_queue_destroy(q) : multicast_lifetime_end(lifetime));
    CHECK_EQ(multicast_count(m), 0);
    CHECK_EQ(releases['a'], round + 1);
    if (round == 0) CHECK_EQ(multicast_lifetime_count(lifetime), 0);
    CHECK_OK(round == 1 ? multicast_queue_destroy(q) : multicast_lifetime_end(lifetime));
    CHECK_EQ(releases['a'], round + 1);
  }
}
