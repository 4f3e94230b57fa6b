/* Tests in which requests that only libmulticast-mqtt makes are refused. The tests for all
 * transports are in Tests/Processes/Transports/Faults. */

#include "requests.h"

#include "../../Transports/Faults/faults.h"

/* ---- Connecting ------------------------------------------------------------------------------ */

transport_options all_options(peer *p, const broker *b) {
  multicast_mqtt_options options = peer_options(p, free_port());
  options.client_id = "client";
  options.topic_prefix = "prefix";
  options.user = "user";
  options.password = "password";
  options.ca_file = "/dev/null";
  options.ca_path = "/etc/ssl/certs";
  options.cert_file = "/dev/null";
  options.key_file = "/dev/null";
  options.key_password = "key";
  return options;
}

transport_options asking_options(peer *p, int port) {
  transport_options options = peer_reliable_options(p, port);
  options.session_expiry_s = 60;
  return options;
}

const int least_requests = 10;

/* ---- On the transport's thread --------------------------------------------------------------- */

TEST(transport_without_memory_for_publications_goes_on) {
  CHECK_EQ(expect_to_go_on(PUBLICATION, 1).dropped, 1);
}
TEST(transport_without_memory_for_properties_tries_again) {
  expect_to_go_on(PROPERTY, 0);
  expect_to_go_on(PROPERTY, 1);
}
TEST(transport_without_memory_for_connections_tries_again) { expect_to_go_on(CONNECTION, 0); }
TEST(transport_without_memory_for_subscriptions_tries_again) {
  expect_to_go_on(SUBSCRIPTION, 0);
  expect_to_go_on(SUBSCRIPTION, 1);
}
TEST(transport_without_memory_for_cancellations_tries_again) { expect_to_go_on(CANCELLATION, 0); }
TEST(transport_without_memory_for_packets_tries_again) {
  for (int granted = 0; granted < 8; ++granted) expect_to_go_on(READING, granted);
}

/* The broker's session contains a subscription to a name that the program no longer observes. */
TEST_OF_BROKER(transport_without_memory_for_a_name_ignores_a_message, NULL) {
  peer here, there;
  multicast_mqtt_options options;
  record *r = record_create();
  requests_are_of_the_test();
  belongings before = look();
  peer_connect_reliably(&here, b->port);
  for (int i = 0; i < 2; ++i) {
    options = peer_options(&there, b->port);
    options.qos = 1;
    options.client_id = "collector";
    options.session_expiry_s = 60;
    if (i == 1) refuse_request(CALLOC, 0, OF_A_TRANSPORT);
    CHECK_OK(multicast_mqtt_connect(&options, &there.transport));
    if (i == 1) break; /* the test uses this transport, so messages wait for only a second */
    EVENTUALLY(LOAD(there.connected) == 1);
    peer_observe(&there, "gone", recorder(r));
    there.transport.release(there.transport.context);
    EVENTUALLY(LOAD(there.releases) == 1);
    CHECK_OK(peer_publish(&here, "gone", 1, "x", 1));
    CHECK_OK(peer_publish(&here, "gone", 1, "x", 1));
    peer_flush(&here);
  }
  CHECK_OK(there.transport.subscribe(there.transport.context, "another"));
  EVENTUALLY(peer_stats(&there).ignored == 2);
  CHECK(refusal_was_made());
  CHECK_EQ(LOAD(there.lost), 0);
  CHECK_EQ(r->count, 0);
  here.transport.release(here.transport.context);
  there.transport.release(there.transport.context);
  EVENTUALLY(held_blocks() == before.blocks);
  expect_same(before);
}

/* The first message is lost, because there is no memory for it. The second message waits until it
 * has an observer. */
TEST_OF_BROKER(message_of_a_session_without_memory_is_lost, NULL) {
  SCOPED peer here, there;
  int calls = 0;
  requests_are_of_the_test();
  peer_connect_reliably(&here, b->port);
  for (int i = 0; i < 2; ++i) {
    if (i == 1) refuse_request(MALLOC, 0, OF_A_TRANSPORT);
    peer_connect_with(&there, b->port, &OPTIONS(.qos = 1, .client_id = "collector",
                                                .session_expiry_s = 60));
    if (i == 1) break;
    peer_observe(&there, "n", counter(&calls));
    peer_release(&there);
    for (int k = 0; k < 2; ++k) CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
    peer_flush(&here);
  }
  EVENTUALLY(peer_stats(&there).lost == 1);
  CHECK(refusal_was_made());
  peer_observe(&there, "n", counter(&calls));
  EVENTUALLY(LOAD(calls) == 1);
  CHECK_EQ(peer_stats(&there).lost, 1);
}

/* Without memory for the properties, the library cannot ask the broker to end the session, and only
 * closes the connection. */
TEST_OF_BROKER(release_without_memory_for_properties_closes_the_connection, NULL) {
  peer p;
  requests_are_of_the_test();
  belongings before = look();
  transport_options options = asking_options(&p, b->port);
  peer_connect(&p, &options);
  refuse_request(PROPERTY, 0, OF_A_TRANSPORT);
  end_transport(&p, before);
  CHECK(refusal_was_made());
}

TEST(question_without_memory_for_its_publication_ends) {
  expect_question_lost(PROPERTY, 0);
  expect_question_lost(PROPERTY, 1);
  expect_question_lost(PUBLICATION, 0);
}
