/* Tests in which requests that only libmulticast-nats makes are refused. The tests for all
 * transports are in Tests/Processes/Transports/Faults. */

#include "requests.h"

#include "../../Transports/Faults/faults.h"

#include <signal.h>

/* ---- Connecting ------------------------------------------------------------------------------ */

transport_options all_options(peer *p, const broker *b) {
  transport_options options = peer_options(p, free_port());
  broker_run(b, "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=a "
                "-keyout key -out certificate >/dev/null 2>&1");
  options.client_name = "client";
  options.subject_prefix = "prefix";
  options.user = "user";
  options.password = "password";
  options.ca_file = broker_path(b, "certificate");
  options.cert_file = options.ca_file;
  options.key_file = broker_path(b, "key");
  options.tls_name = "a";
  return options;
}

transport_options asking_options(peer *p, int port) {
  transport_options options = peer_options(p, port);
  options.ping_interval_s = 1;
  return options;
}

const int least_requests = 31;

TEST(connect_that_libnats_refuses_says_so_and_keeps_nothing) {
  refuse_with(NATS_ERR);
  expect_no_connection(1);
}

TEST(connect_with_a_refused_token_says_so_and_keeps_nothing) {
  peer p;
  transport_options options = peer_options(&p, free_port());
  belongings before = look();
  int which;
  requests_are_of_the_test();
  options.token = "token";
  for (which = 0;; ++which) {
    p.releases = 0;
    refuse_request(OPTION, which, OF_THE_TEST);
    if (transport_connect(&options, &p.transport) == MULTICAST_OK) break;
    CHECK(refusal_was_made());
    CHECK_EQ(p.releases, 1);
    expect_same(before);
  }
  CHECK(which >= 10);
  end_transport(&p, before);
}

TEST(connect_with_what_is_wrong_for_libnats_says_so) {
  peer p;
  transport_options options = peer_options(&p, free_port());
  requests_are_of_the_test();
  refuse_with(NATS_INVALID_ARG);
  refuse_request(OPTION, 0, OF_THE_TEST);
  CHECK_ERROR(transport_connect(&options, &p.transport), INVALID_ARGUMENT);
  CHECK_EQ(p.releases, 1);
}

/* ---- On the threads of the transport and libnats --------------------------------------------- */

static void expect_to_go_on_twice(int kind, int granted) {
  refuse_with(NATS_NO_MEMORY);
  expect_to_go_on(kind, granted);
  refuse_with(NATS_ERR);
  expect_to_go_on(kind, granted);
}

TEST(transport_that_is_refused_connections_tries_again) { expect_to_go_on_twice(CONNECTION, 0); }
TEST(transport_that_is_refused_publications_goes_on) {
  refuse_with(NATS_NO_MEMORY);
  CHECK(expect_to_go_on(PUBLICATION, 1).dropped >= 1);
  refuse_with(NATS_ERR);
  CHECK(expect_to_go_on(PUBLICATION, 1).dropped >= 1);
}
TEST(transport_that_is_refused_subscriptions_tries_again) {
  expect_to_go_on_twice(SUBSCRIPTION, 0);
}
TEST(transport_without_memory_for_subscriptions_tries_again) {
  CHECK_EQ(expect_to_go_on(MALLOC, 0).connections_lost, 1);
}
TEST(transport_refused_the_end_of_subscriptions_tries_again) {
  CHECK_EQ(expect_to_go_on(COMPLETION, 0).connections_lost, 1);
}
/* If the library cannot remove libnats's limits, it must reconnect, because libnats would drop
 * messages beyond these limits, and the library could not count the dropped messages. */
TEST(transport_that_is_refused_limits_tries_again) {
  CHECK_EQ(expect_to_go_on(LIMITS, 0).connections_lost, 1);
}
TEST(transport_that_is_refused_cancellations_goes_on) { expect_to_go_on_twice(CANCELLATION, 0); }
TEST(transport_that_is_refused_counts_goes_on) {
  expect_to_go_on_twice(COUNTS, 0);
  expect_to_go_on_twice(COUNTS, 1);
}
TEST(transport_that_is_refused_the_address_of_the_server_goes_on) { expect_to_go_on_twice(URL, 0); }
TEST(transport_that_is_refused_questions_asks_again) { expect_to_go_on_twice(QUESTION, 0); }

/* libnats refuses the first publication, but may have written a part of it. The connection
 * therefore ends, and the other publications of the batch are also dropped. */
TEST(publications_behind_one_that_is_refused_are_dropped) {
  broker b;
  peer p;
  requests_are_of_the_test();
  broker_prepare(&b, NULL);
  belongings before = look();
  peer_begin(&p, b.port, NULL);
  for (int i = 0; i < 3; ++i) CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  refuse_request(PUBLICATION, 0, OF_A_TRANSPORT);
  broker_start_again(&b);
  EVENTUALLY(peer_stats(&p).dropped == 3);
  CHECK(refusal_was_made());
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  peer_flush(&p);
  CHECK_EQ(peer_stats(&p).sent, 1);
  CHECK_EQ(LOAD(p.lost), 1);
  end_transport(&p, before);
  broker_delete(&b);
}

TEST_OF_BROKER(transport_that_cannot_count_what_is_pending_goes_on, NULL) {
  peer p;
  int calls = 0;
  requests_are_of_the_test();
  belongings before = look();
  peer_connect_with(&p, b->port, NULL);
  peer_observe(&p, "n", counter(&calls));
  refuse_request(PENDING, 0, OF_A_TRANSPORT);
  broker_end(b, SIGKILL);
  EVENTUALLY(LOAD(p.lost) == 1);
  CHECK(refusal_was_made());
  broker_start_again(b);
  EVENTUALLY(LOAD(p.connected) == 2);
  peer_flush(&p);
  end_transport(&p, before);
}

/* If there is no memory for the prefix, the transport reconnects and then subscribes again. */
TEST_OF_BROKER(transport_without_memory_for_a_prefix_connects_again, NULL) {
  peer p;
  requests_are_of_the_test();
  belongings before = look();
  peer_connect_with(&p, b->port, NULL);
  refuse_request(CALLOC, 0, OF_A_TRANSPORT);
  CHECK_OK(p.transport.subscribe(p.transport.context, "\0prefix"));
  EVENTUALLY(LOAD(p.lost) == 1);
  CHECK(refusal_was_made());
  EVENTUALLY(LOAD(p.connected) == 2);
  peer_flush(&p);
  end_transport(&p, before);
}

/* If a PING cannot be sent, the transport tries again later. Until a PING has been sent, the
 * transport must not conclude that the server does not answer. */
TEST_OF_BROKER(transport_that_cannot_ask_a_silent_server_asks_again, NULL) {
  peer p;
  requests_are_of_the_test();
  belongings before = look();
  transport_options options = asking_options(&p, b->port);
  refuse_request(QUESTION, 0, OF_A_TRANSPORT);
  peer_connect(&p, &options);
  pause_ms(3500);
  CHECK(refusal_was_made());
  CHECK_EQ(LOAD(p.lost), 0);
  end_transport(&p, before);
}

/* libnats refuses to report the end of a subscription, so the transport must reconnect. The client
 * must remain in memory while libnats still delivers a message. */
TEST_OF_BROKER(client_refused_the_end_of_subscriptions_gets_messages, NULL) {
  peer here, there;
  int calls = 0;
  requests_are_of_the_test();
  belongings before = look();
  peer_connect_to(&here, b);
  transport_options options = peer_options(&there, b->port);
  refuse_request(COMPLETION, 0, OF_A_TRANSPORT);
  peer_connect(&there, &options);
  peer_observe(&there, "n", counter(&calls));
  CHECK(refusal_was_made());
  hold_messages();
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  EVENTUALLY(is_message_held());
  there.transport.release(there.transport.context);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(there.releases), 0);
  let_messages_go();
  EVENTUALLY(LOAD(there.releases) == 1);
  peer_release(&here);
  EVENTUALLY(held_blocks() == before.blocks);
  expect_same(before);
}

/* libnats holds the last reference to the client. If the library cannot start another thread for
 * the release, it calls `release` on libnats's thread. */
static void expect_release(int kind) {
  broker b;
  peer here, there;
  int calls = 0;
  requests_are_of_the_test();
  broker_start(&b, NULL);
  belongings before = look();
  peer_connect_to(&here, &b);
  peer_connect_to(&there, &b);
  peer_observe(&there, "n", counter(&calls));
  hold_messages();
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  EVENTUALLY(is_message_held());
  there.transport.release(there.transport.context);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(there.releases), 0);
  refuse_request(kind, 0, OF_A_TRANSPORT);
  let_messages_go();
  EVENTUALLY(LOAD(there.releases) == 1);
  CHECK(refusal_was_made());
  CHECK_EQ(calls, 0);
  peer_release(&here);
  EVENTUALLY(held_blocks() == before.blocks);
  expect_same(before);
  broker_delete(&b);
}

TEST(release_without_a_thread_is_on_another_one) { expect_release(THREAD); }
TEST(release_without_attributes_is_on_another_one) { expect_release(THREAD_ATTRIBUTES); }

/* ---- Waiting --------------------------------------------------------------------------------- */

/* A flush that cannot send a PING to the server tries again. */
static void expect_flush(int kind, int refused, asking_thread asking) {
  broker b;
  peer p;
  requests_are_of_the_test();
  broker_start(&b, NULL);
  belongings before = look();
  peer_connect_to(&p, &b);
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  refuse_requests(kind, 0, refused, asking);
  CHECK_OK(transport_flush(&p.transport, MULTICAST_FOREVER));
  CHECK(refusal_was_made());
  CHECK_EQ(LOAD(p.lost), 0);
  end_transport(&p, before);
  broker_delete(&b);
}

TEST(flush_without_memory_asks_again) { expect_flush(MALLOC, 3, OF_THE_TEST); }
TEST(flush_without_attributes_asks_again) { expect_flush(THREAD_ATTRIBUTES, 3, OF_THE_TEST); }
TEST(flush_without_a_thread_asks_again) { expect_flush(THREAD, 3, OF_THE_TEST); }
TEST(flush_that_libnats_refuses_asks_again) {
  expect_flush(QUESTION, 3, OF_A_TRANSPORT);
  refuse_with(NATS_ERR);
  expect_flush(QUESTION, 3, OF_A_TRANSPORT);
}

/* If there is no memory at all, the flush ends when its timeout expires. */
TEST_OF_BROKER(flush_without_memory_ends, NULL) {
  SCOPED peer p;
  requests_are_of_the_test();
  peer_connect_to(&p, b);
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  refuse_requests(MALLOC, 0, 1000000, OF_THE_TEST);
  CHECK_ERROR(transport_flush(&p.transport, 50000000), TIMEOUT);
  CHECK(refusal_was_made());
  peer_flush(&p);
}

TEST(question_without_memory_for_its_publication_ends) { expect_question_lost(PUBLICATION, 0); }
