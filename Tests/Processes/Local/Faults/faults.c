/* Tests in which the system refuses requests that only libmulticast-local makes. The tests for all
 * transports are in Tests/Processes/Transports/Faults. */

#include "../strangers.h"
#include "requests.h"

#include "../../Transports/Faults/faults.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

transport_options all_options(peer *p, const broker *b) {
  transport_options options = peer_options(p, b->port);
  options.name = "name";
  /* Prevent the transport from joining a group. If the transport joined, the number of requests
   * that its thread makes would depend on the moment of the release. */
  options.directory = "/missing/folder";
  return options;
}

static bool retains_all(void *context, const char *name, uint32_t event) { return true; }

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
  /* Refuse these allocations in turn: the value, the table of names, the name, and its topic. */
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

/* Stores the last notification and the number of notifications. */
typedef struct last {
  int calls;
  uint32_t event;
  bool has_payload;
} last;

FUNCTION(keep_last, last *l) {
  *l = (last){l->calls + 1, event, payload != NULL || size > 0};
}

TEST_OF_BROKER(kept_value_without_memory_for_its_copy_is_left_out, NULL) {
  SCOPED peer p;
  last l = {0, 0, true};
  requests_are_of_the_test();
  peer_connect_with(&p, b->port, &OPTIONS(.retains = retains_all));
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  CHECK_OK(peer_publish(&p, "n", 2, NULL, 0));
  refuse_request(MALLOC, 0, OF_THE_TEST);
  peer_observe(&p, "n", DELEGATE(keep_last, &l));
  CHECK(refusal_was_made());
  CHECK_EQ(l.calls, 1);
  CHECK_EQ(l.event, 2);
  CHECK(!l.has_payload);
}

/* ---- On the transport's thread --------------------------------------------------------------- */

/* Repeatedly lets a transport join a group. In the Nth round, the Nth request of the given kind is
 * refused. The first attempt to join may then fail, but the next attempt must succeed and the
 * transport must work. */
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
/* The library can record only descriptors below DESCRIPTORS_MAX, so the transport cannot join until
 * the program has closed some files. */
TEST_OF_BROKER(transport_joins_when_smaller_descriptors_are_free, NULL) {
  int files[DESCRIPTORS_THERE], count = 0;
  peer p;
  do files[count] = open("/dev/null", O_RDONLY | O_CLOEXEC);
  while (files[count++] < DESCRIPTORS_THERE - 1);
  transport_options options = peer_reliable_options(&p, b->port);
  CHECK_OK(multicast_local_connect(&options, &p.transport));
  CHECK_ERROR(multicast_local_flush(&p.transport, 100000000), TIMEOUT);
  CHECK_EQ(peer_stats(&p).connected, 0);
  while (count > 0) close(files[--count]);
  peer_flush(&p);
  CHECK_EQ(peer_stats(&p).connected, 1);
  peer_release(&p);
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
TEST(transport_goes_on_without_mappings) { expect_to_go_on_without(MAPPING, 6); }
TEST(transport_goes_on_without_messages) {
  expect_to_go_on_without(SENDING, 10);
  expect_to_go_on_without(RECEIVING_MESSAGE, 10);
  expect_to_go_on_without(EPOLL_WAITING, 4);
}

/* When the first peer ends, the second peer tries to reconnect to it, because the second peer had
 * opened the connection. As long as the second peer cannot create a socket, it cannot find out
 * whether the first peer still exists, and does not report the first peer's end. */
TEST_OF_BROKER(peer_of_which_it_is_not_known_has_not_gone, NULL) {
  SCOPED peer first, second;
  requests_are_of_the_test();
  peer_connect_to(&first, b);
  peer_connect_to(&second, b);
  EVENTUALLY(peer_stats(&second).peers == 1);
  refuse_requests(SOCKET, 0, INT_MAX, OF_A_TRANSPORT);
  peer_release(&first);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(second.gone), 0);
  CHECK(refusal_was_made());
  EVENTUALLY(LOAD(second.gone) == 1);
}

/* The transport's thread allocates memory for a name that a peer has announced. */
TEST_OF_BROKER(name_is_told_though_memory_is_refused, NULL) {
  SCOPED peer here, there;
  int calls = 0;
  requests_are_of_the_test();
  peer_connect_to(&here, b);
  peer_connect_to(&there, b);
  EVENTUALLY(peer_stats(&here).peers == 1);
  peer_flush(&there);
  refuse_request(CALLOC, 0, OF_A_TRANSPORT);
  peer_observe(&there, "n", counter(&calls));
  peer_flush(&there);
  CHECK(refusal_was_made());
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  EVENTUALLY(LOAD(calls) == 1);
}

/* ---- Peers that say nothing ------------------------------------------------------------------ */

TEST_OF_BROKER(peer_that_says_nothing_loses_its_place, NULL) {
  SCOPED peer here, next;
  stranger silent[3], s;
  message m;
  int file;
  peer_connect_to(&here, b);
  const uint64_t before = time_now();
  stranger_connect(&s, b);
  stranger_greet(&s);
  for (int i = 0; i < 3; ++i) stranger_connect(&silent[i], b);
  for (int i = 0; i < 3; ++i) {
    EVENTUALLY(message_receive(silent[i].socket, &m, &file) == RECEIPT_END);
    CHECK(time_now() - before >= (uint64_t)HELLO_MS * 1000000);
    stranger_end(&silent[i]);
  }
  peer_connect_to(&next, b);
  EVENTUALLY(peer_stats(&here).peers == 2); /* including a peer that has only sent its hello */
  CHECK_EQ(LOAD(here.gone) + LOAD(here.expelled), 0);
  peer_release(&next);
  stranger_end(&s);
}

TEST_OF_BROKER(peer_that_cannot_be_greeted_loses_its_place, NULL) {
  SCOPED peer here;
  stranger s;
  peer_connect_to(&here, b);
  stranger_reach(&s, b);
  CHECK_EQ(shutdown(s.socket, SHUT_RD), 0);
  struct pollfd connection = {s.socket, 0, 0};
  EVENTUALLY(poll(&connection, 1, 0) == 1 && (connection.revents & POLLHUP) != 0);
  CHECK_EQ(LOAD(here.gone) + LOAD(here.expelled), 0);
  close(s.socket);
}

static gate greeting = GATE_INIT;

static void wait_in_joined(void *context, multicast_local_state state, int32_t pid,
                           const char *text) {
  if (state == MULTICAST_LOCAL_JOINED) gate_wait(&greeting);
}

/* A peer does not read another peer's ring before announcing its own names, because these names
 * decide which entries the peer must deliver. */
TEST_OF_BROKER(publication_for_a_peer_that_cannot_tell_its_names_arrives, NULL) {
  SCOPED peer here, late;
  int calls = 0;
  requests_are_of_the_test();
  transport_options options = peer_options(&here, b->port);
  options.changed = wait_in_joined;
  CHECK_OK(transport_connect(&options, &here.transport));
  peer_observe(&here, "n", counter(&calls));
  peer_begin(&late, b->port, NULL);
  EVENTUALLY(peer_stats(&here).joined == 1 && peer_stats(&late).joined == 1);
  for (int i = 0; i < 20; ++i) CHECK_OK(peer_publish(&late, "n", 1, "x", 1));
  refuse_requests(SENDING, 0, 5, OF_A_TRANSPORT);
  gate_open(&greeting);
  EVENTUALLY(LOAD(calls) == 20);
  CHECK(refusal_was_made());
  peer_release(&late);
  peer_release(&here);
}

/* A peer sends its hello in time, but the transport does not read the hello until HELLO_MS have
 * passed, because the transport's thread is running one of the program's functions. The peer must
 * keep its place in the group. */
TEST_OF_BROKER(peer_that_is_heard_late_keeps_its_place, NULL) {
  SCOPED peer here;
  stranger first, second;
  message m;
  int file;
  transport_options options = peer_options(&here, b->port);
  options.changed = wait_in_joined;
  CHECK_OK(transport_connect(&options, &here.transport));
  peer_flush(&here);
  stranger_connect(&first, b);
  stranger_connect(&second, b);
  stranger_greet(&second);
  EVENTUALLY(peer_stats(&here).joined == 1);
  stranger_greet(&first);
  pause_ms(HELLO_MS + HELLO_MS / 4);
  gate_open(&greeting);
  EVENTUALLY(peer_stats(&here).joined == 2);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(peer_stats(&here).peers, 2);
  EVENTUALLY(message_receive(first.socket, &m, &file) != RECEIPT_END && m.kind == MESSAGE_SYNC);
  stranger_end(&first);
  stranger_end(&second);
}

/* The peer sends its hello too late, as if a debugger had stopped it. */
TEST_OF_BROKER(peer_that_says_hello_late_is_met, NULL) {
  SCOPED peer here, there;
  int calls = 0;
  requests_are_of_the_test();
  peer_connect_to(&here, b);
  refuse_requests(SENDING, 0, INT_MAX, OF_A_TRANSPORT);
  peer_begin(&there, b->port, NULL);
  pause_ms(2 * HELLO_MS + HELLO_MS / 2);
  CHECK_EQ(peer_stats(&here).joined, 0);
  CHECK(refusal_was_made());
  peer_observe(&there, "n", counter(&calls));
  EVENTUALLY(peer_stats(&here).peers == 1);
  peer_flush(&here);
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  EVENTUALLY(LOAD(calls) == 1);
  CHECK_EQ(LOAD(here.gone) + LOAD(here.expelled), 0);
}
