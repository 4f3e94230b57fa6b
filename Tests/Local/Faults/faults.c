/* What libmulticast-local alone asks for. The tests of all transports are in
 * Tests/Transports/Faults. */

#include "requests.h"

#include "../../Transports/Faults/faults.h"

transport_options all_options(peer *p, const broker *b) {
  transport_options options = peer_options(p, b->port);
  options.name = "name";
  /* It does not join: what its thread asks for depends on when it is released. */
  options.directory = "/missing/folder";
  return options;
}

static bool retains_all(void *context, const char *protocol, uint32_t event) { return true; }

transport_options asking_options(peer *p, int port) {
  transport_options options = peer_reliable_options(p, port);
  options.retains = retains_all;
  return options;
}

const int least_requests = 9;

/* ---- Publishing ------------------------------------------------------------------------------ */

TEST(value_without_memory_is_refused_and_counted) {
  peer p;
  requests_are_of_the_test();
  belongings before = look();
  transport_options options = peer_options(&p, free_port());
  options.retains = retains_all;
  CHECK_OK(transport_connect(&options, &p.transport));
  /* The value, the table of names, the name, and what goes with it. */
  for (int which = 0; which < 4; ++which) {
    refuse_request(which == 0 ? MALLOC : CALLOC, which >= 2, OF_THE_TEST);
    CHECK_ERROR(peer_publish(&p, "n", 1, "x", 1), OUT_OF_MEMORY);
    CHECK(refusal_was_made());
  }
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  CHECK_EQ(peer_stats(&p).refused, 4);
  CHECK_EQ(peer_stats(&p).published, 1);
  end_transport(&p, before);
}

/* ---- On the thread of the transport ---------------------------------------------------------- */

/* Each request in turn, of a transport that joins a group with a peer; the first tries may fail. */
static void expect_to_go_on_without(int kind, int most) {
  bool was_made = true;
  int granted;
  for (granted = 0; granted < most && was_made; ++granted) go_on(kind, granted, 1, &was_made);
  CHECK(granted > 1 || was_made);
}

TEST(transport_goes_on_without_descriptors) {
  expect_to_go_on_without(OPENING, 8);
  expect_to_go_on_without(SOCKET, 4);
  expect_to_go_on_without(ACCEPTING, 2);
}
TEST(transport_goes_on_without_a_folder) {
  expect_to_go_on_without(FOLDER, 4);
  expect_to_go_on_without(STATUS, 4);
  expect_to_go_on_without(LOCKING, 3);
}
TEST(transport_goes_on_without_sockets) {
  expect_to_go_on_without(BINDING, 1);
  expect_to_go_on_without(LISTENING, 1);
  expect_to_go_on_without(CONNECTING, 2);
  expect_to_go_on_without(CREDENTIALS, 2);
  expect_to_go_on_without(EPOLL_CHANGE, 6);
}
TEST(transport_goes_on_without_messages) {
  expect_to_go_on_without(SENDING, 10);
  expect_to_go_on_without(RECEIVING_MESSAGE, 10);
  expect_to_go_on_without(EPOLL_WAITING, 4);
}
