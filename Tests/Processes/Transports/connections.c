/* Tests transports whose brokers start, end or are slow. */

#include "Harness/broker.h"

#include <signal.h>

/* When the broker ends, the session of `there` is lost. After the restart `there` must reconnect
 * first, so that no publication of `here` is lost. */
TEST_OF_BROKER(publications_wait_for_the_broker, NULL) {
  SCOPED peer here, there;
  sequence numbers = {0, 0, 0};
  peer_connect_reliably(&there, b->port);
  peer_observe(&there, "n", counting(&numbers));
  transport_options options = peer_reliable_options(&here, b->port);
  options.reconnect_min_ns = options.reconnect_max_ns = 500000000;
  broker_end(b, SIGTERM);
  CHECK_OK(transport_connect(&options, &here.transport));
  EVENTUALLY(LOAD(here.refused) > 0);
  CHECK(here.reason[0] != '\0');
  CHECK(here.code != 0);
  for (int i = 0; i < 1000; ++i) CHECK_OK(peer_publish(&here, "n", 1, &i, sizeof i));
  CHECK_EQ(peer_stats(&here).waiting, 1000);
  CHECK_ERROR(transport_flush(&here.transport, 10000000), TIMEOUT);
  broker_start_again(b);
  peer_flush(&here);
  CHECK_EQ(peer_stats(&here).sent, 1000);
  EVENTUALLY(LOAD(there.connected) == 2);
}

TEST_OF_BROKER(publications_are_refused_without_a_connection, NULL) {
  SCOPED peer here;
  peer_connect_with(&here, b->port, &OPTIONS(.flags = TRANSPORT_REFUSE_OFFLINE));
  CHECK(TRANSPORT_IS_CONNECTED(peer_stats(&here)));
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  peer_flush(&here);
  broker_end(b, SIGKILL);
  EVENTUALLY(LOAD(here.lost) == 1);
  CHECK_ERROR(peer_publish(&here, "n", 1, "x", 1), STATE);
  CHECK_EQ(peer_stats(&here).refused, 1);
  CHECK_EQ(peer_stats(&here).published, 1);
  CHECK(!TRANSPORT_IS_CONNECTED(peer_stats(&here)));
  broker_start_again(b);
  EVENTUALLY(LOAD(here.connected) == 2);
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
}

TEST(full_outbox_refuses) {
  SCOPED peer here;
  peer_begin(&here, free_port(), &OPTIONS(.capacity = 3));
  for (int i = 0; i < 3; ++i) CHECK_OK(peer_publish(&here, "n", 1, &i, sizeof i));
  CHECK_ERROR(peer_publish(&here, "n", 1, "x", 1), QUEUE_FULL);
  CHECK_EQ(peer_stats(&here).waiting, 3);
  CHECK_EQ(peer_stats(&here).refused, 1);
}

TEST_OF_BROKER(full_outbox_drops_the_oldest, NULL) {
  SCOPED peer here, there;
  sequence numbers = {7, 0, 0};
  peer_connect_reliably(&there, b->port);
  peer_observe(&there, "n", counting(&numbers));
  transport_options options = peer_options(&here, b->port);
  options.capacity = 3;
  options.overflow = MULTICAST_OVERFLOW_DROP_OLDEST;
  CHECK_EQ(kill(b->process, SIGSTOP), 0);
  CHECK_OK(transport_connect(&options, &here.transport));
  for (int i = 0; i < 10; ++i) CHECK_OK(peer_publish(&here, "n", 1, &i, sizeof i));
  CHECK_EQ(peer_stats(&here).dropped, 7);
  CHECK_EQ(peer_stats(&here).waiting, 3);
  CHECK_EQ(kill(b->process, SIGCONT), 0);
  EVENTUALLY(LOAD(numbers.next) == 10);
  CHECK_EQ(numbers.wrong, 0);
  EVENTUALLY(peer_stats(&here).sent == 3);
}

TEST_OF_BROKER(names_are_subscribed_again, NULL) {
  enum { NAMES = 1000 };
  SCOPED peer here, there;
  record *r = record_create();
  char name[16];
  peer_connect_reliably(&there, b->port);
  for (int i = 0; i < NAMES; ++i) {
    snprintf(name, sizeof name, "n%d", i);
    CHECK_OK(multicast_broadcaster_register(there.broadcaster, name, recorder(r), NULL, NULL));
    CHECK_OK(there.transport.subscribe(there.transport.context, name));
  }
  peer_flush(&there);
  /* Unsubscribe from half of the names while there is no connection. */
  broker_end(b, SIGKILL);
  EVENTUALLY(LOAD(there.lost) == 1);
  for (int i = 0; i < NAMES; i += 2) {
    snprintf(name, sizeof name, "n%d", i);
    there.transport.unsubscribe(there.transport.context, name);
  }
  CHECK_ERROR(transport_flush(&there.transport, 10000000), TIMEOUT);
  CHECK_EQ(peer_stats(&there).names, NAMES / 2);
  broker_start_again(b);
  EVENTUALLY(LOAD(there.connected) == 2);
  peer_flush(&there);
  peer_connect_reliably(&here, b->port);
  for (int i = 0; i < NAMES; ++i) {
    snprintf(name, sizeof name, "n%d", i);
    CHECK_OK(peer_publish(&here, name, 1, NULL, 0));
  }
  record_wait(r, NAMES / 2);
  peer_flush(&here);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(peer_stats(&there).received, NAMES / 2);
}
