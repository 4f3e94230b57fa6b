/* Tests messages of a persistent session that arrive before their names have observers. */

#include "../Transports/Harness/asking.h"

#include <signal.h>
#include <unistd.h>

/* The options of a client whose session the broker keeps. */
#define COLLECTOR(...) \
  &OPTIONS(.qos = 1, .client_id = "collector", .session_expiry_s = 60, __VA_ARGS__)

/* Imitates an earlier process that observed `n` and answered questions about `q`. After that
 * process has ended, publishes `count` numbers and a question, which the broker stores. */
static void collect(broker *b, peer *here, int count) {
  peer earlier;
  int calls = 0;
  told t = {0};
  transport_question kept = {0};
  peer_connect_with(&earlier, b->port, COLLECTOR(.flags = 0));
  CHECK_OK(transport_answer(&earlier.transport, "q", keep_question, &kept, NULL));
  peer_observe(&earlier, "n", counter(&calls));
  peer_release(&earlier);
  for (int i = 0; i < count; ++i) CHECK_OK(peer_publish(here, "n", 1, &i, sizeof i));
  CHECK_ERROR(ask(here, &t, "q", "x", 100000000), TIMEOUT); /* the broker stores the question */
  peer_flush(here);
}

static void expect_all(const sequence *s, const peer *p, int count) {
  EVENTUALLY(LOAD(s->next) == count);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(s->wrong + s->repeated, 0);
  CHECK_EQ(peer_stats(p).ignored, 0);
}

/* The stored messages wait until the program attaches the transport, even if this takes longer than
 * a second. */
TEST_OF_BROKER(what_a_session_has_collected_waits_until_it_is_attached, NULL) {
  static const int pauses_ms[] = {0, 20, 1500};
  SCOPED peer here;
  peer_connect_reliably(&here, b->port);
  for (int i = 0; i < 3; ++i) {
    peer there;
    sequence s = {0, 0, 0};
    transport_question kept = {0};
    collect(b, &here, 50);
    peer_begin(&there, b->port, COLLECTOR(.flags = 0));
    CHECK_OK(multicast_broadcaster_register(there.broadcaster, "n", counting(&s), NULL, NULL));
    pause_ms(pauses_ms[i]);
    CHECK_OK(multicast_broadcaster_attach(there.broadcaster, &there.transport));
    CHECK_OK(transport_answer(&there.transport, "q", keep_question, &kept, NULL));
    expect_all(&s, &there, 50);
    EVENTUALLY(LOAD(kept.transport) != 0);
    peer_detach(&there);
  }
}

/* The program registers the observer after attaching. Messages that are published before the
 * registration must be delivered after the stored messages. */
TEST_OF_BROKER(what_a_session_has_collected_waits_for_observers, NULL) {
  SCOPED peer here, there;
  sequence s = {0, 0, 0};
  int other = 0, i = 50;
  peer_connect_reliably(&here, b->port);
  collect(b, &here, 50);
  peer_connect_with(&there, b->port, COLLECTOR(.flags = 0));
  peer_observe(&there, "other", counter(&other));
  CHECK_OK(peer_publish(&here, "n", 1, &i, sizeof i));
  peer_flush(&here);
  pause_ms(100);
  peer_observe(&there, "n", counting(&s));
  CHECK_OK(peer_publish(&here, "n", 1, (++i, &i), sizeof i));
  expect_all(&s, &there, 52);
}

enum { MUCH = 3000 }; /* of these messages, the transport stores less than half */

/* Like collect(), but with many large messages. */
static void collect_much(broker *b, peer *here) {
  static char payload[1000];
  collect(b, here, 0);
  for (int i = 0; i < MUCH; ++i)
    EVENTUALLY(peer_publish(here, "n", 1, payload, sizeof payload) == MULTICAST_OK);
  peer_flush(here);
}

/* The broker has stored more messages than the transport buffers, and the transport has a queue.
 * When its buffer is full, the transport stops reading. The transport must continue to read when
 * some messages have been delivered. */
TEST_OF_BROKER(much_that_a_session_has_collected_waits,
               "allow_anonymous true\nmax_queued_messages 0") {
  SCOPED peer here, there;
  int arrived = 0;
  multicast_queue queue = queue_with(64, MULTICAST_OVERFLOW_BLOCK);
  CHECK_OK(multicast_queue_start(queue));
  peer_connect_reliably(&here, b->port);
  collect_much(b, &here);
  peer_connect_with(&there, b->port, COLLECTOR(.queue = queue));
  pause_ms(300);
  CHECK_EQ(peer_stats(&there).received, 0);
  peer_observe(&there, "n", counter(&arrived));
  EVENTUALLY(LOAD(arrived) == MUCH);
  EVENTUALLY(peer_stats(&there).ignored == 1); /* only the question is ignored */
  peer_release(&there);
  CHECK_OK(multicast_queue_destroy(queue));
}

/* Connects to a broker that has stored many messages. `there` stops reading them. */
static void connect_to_much(broker *b, peer *here, peer *there) {
  peer_connect_reliably(here, b->port);
  collect_much(b, here);
  peer_connect_with(there, b->port, COLLECTOR(.keep_alive_s = 5));
}

/* The transport keeps its connection, although it does not read the broker's answers to pings. */
TEST_OF_BROKER(connection_lasts_while_a_session_waits, NULL) {
  SCOPED peer here, there;
  int arrived = 0;
  connect_to_much(b, &here, &there);
  pause_ms(12000); /* both sides would have left a silent connection */
  CHECK_EQ(LOAD(there.lost), 0);
  peer_observe(&there, "n", counter(&arrived));
  EVENTUALLY(LOAD(arrived) == MUCH);
  CHECK_EQ(LOAD(there.lost), 0);
}

/* The transport has stopped reading, but reads the answer of the broker that has started again. */
TEST_OF_BROKER(broker_may_restart_while_a_session_waits, NULL) {
  SCOPED peer here, there;
  int arrived = 0;
  connect_to_much(b, &here, &there);
  pause_ms(300);
  broker_end(b, SIGTERM);
  broker_start_again(b);
  EVENTUALLY(LOAD(there.connected) == 2);
  pause_ms(300);
  CHECK_EQ(peer_stats(&there).received, 0);
  peer_observe(&there, "n", counter(&arrived));
  EVENTUALLY(LOAD(arrived) >= MUCH); /* the last messages may arrive again */
  CHECK_EQ(LOAD(there.lost), 1);
}

TEST_OF_BROKER(what_nobody_observes_is_ignored_after_a_second, NULL) {
  SCOPED peer here, there;
  sequence s = {0, 0, 0};
  int other = 0;
  peer_connect_reliably(&here, b->port);
  collect(b, &here, 5);
  peer_connect_with(&there, b->port, COLLECTOR(.flags = 0));
  pause_ms(1200); /* the transport is not used */
  CHECK_EQ(peer_stats(&there).received, 0);
  const uint64_t before = time_now();
  peer_observe(&there, "other", counter(&other));
  EVENTUALLY(peer_stats(&there).ignored == 6);
  CHECK(time_now() - before >= 900000000 && time_now() - before < 5000000000u);
  /* The transport has unsubscribed from the name without observers. */
  peer_flush(&there);
  int i = 0;
  CHECK_OK(peer_publish(&here, "n", 1, &i, sizeof i));
  peer_flush(&here);
  pause_ms(100);
  CHECK_EQ(peer_stats(&there).received, 6);
  peer_observe(&there, "n", counting(&s));
  CHECK_EQ(s.next, 0);
}
