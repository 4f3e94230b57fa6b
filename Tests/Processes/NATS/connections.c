/* Tests transports whose servers start, end, refuse requests, are slow or are silent. */

#include "../Transports/Harness/broker.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t ns_of_second = 1000000000u;

/* ---- Servers, one after the other ------------------------------------------------------------ */

TEST_OF_BROKER(next_server_is_tried, NULL) {
  SCOPED peer p;
  transport_options options = peer_options(&p, b->port);
  snprintf(p.address, sizeof p.address, "nats://127.0.0.1:%d,127.0.0.1:%d", free_port(), b->port);
  peer_connect(&p, &options);
  CHECK_EQ(LOAD(p.refused), 0);
}

/* ---- Servers that restart -------------------------------------------------------------------- */

/* Nothing is lost when the server ends, because no message is in flight at that time, and later
 * messages wait for the next connection. */
TEST_OF_BROKER(server_that_ends_is_connected_again, NULL) {
  enum { ENDS = 5, EACH = 200 };
  SCOPED peer here, there;
  sequence numbers = {0, 0, 0};
  int number = 0;
  peer_connect_to(&here, b);
  peer_connect_to(&there, b);
  peer_observe(&there, "n", counting(&numbers));
  for (int round = 1; round <= ENDS; ++round) {
    for (int i = 0; i < EACH; ++i, ++number)
      CHECK_OK(peer_publish(&here, "n", 1, &number, sizeof number));
    EVENTUALLY(LOAD(numbers.next) == number || LOAD(numbers.wrong) != 0);
    broker_end(b, round % 2 == 1 ? SIGKILL : SIGTERM);
    EVENTUALLY(LOAD(here.lost) == round && LOAD(there.lost) == round);
    CHECK_EQ(peer_stats(&there).names, 1);
    broker_start_again(b);
    EVENTUALLY(LOAD(there.connected) == round + 1);
    peer_flush(&there);
    EVENTUALLY(LOAD(here.connected) == round + 1);
  }
  CHECK_EQ(numbers.wrong, 0);
  CHECK_EQ(numbers.repeated, 0);
  CHECK_EQ(peer_stats(&here).sent, number);
  CHECK_EQ(peer_stats(&here).dropped, 0);
  CHECK_EQ(peer_stats(&here).connections, ENDS + 1);
  CHECK_EQ(peer_stats(&there).received, number);
}

/* No matter when the server ends, each accepted publication is counted as sent or dropped, and no
 * publication arrives twice or out of order. */
TEST_OF_BROKER(server_that_ends_meanwhile_loses_and_does_not_repeat, NULL) {
  enum { COUNT = 60000 };
  SCOPED peer here, there;
  record *r = record_create();
  int last = -1, ends = 0;
  peer_connect_with(&here, b->port, &OPTIONS(.capacity = 1u << 20));
  peer_connect_to(&there, b);
  peer_observe(&there, "n", recorder(r));
  for (int i = 0; i < COUNT; ++i) {
    CHECK_OK(peer_publish(&here, "n", (uint32_t)i, &i, sizeof i));
    if (i % (COUNT / 4) == COUNT / 8) {
      broker_end(b, SIGKILL);
      broker_start_again(b);
      ++ends;
    }
    if (i % 64 == 0) {
      pthread_mutex_lock(&r->mutex);
      if (r->count > 0) {
        CHECK((int)r->event >= last);
        last = (int)r->event;
      }
      pthread_mutex_unlock(&r->mutex);
    }
  }
  EVENTUALLY(LOAD(here.connected) == LOAD(here.lost) + 1 && LOAD(here.lost) >= 1);
  multicast_nats_flush(&here.transport, 10 * ns_of_second); /* some may be lost */
  peer_flush(&here);
  multicast_nats_stats stats = peer_stats(&here);
  CHECK_EQ(stats.waiting + stats.sending, 0);
  CHECK_EQ(stats.sent + stats.dropped, COUNT);
  CHECK(stats.dropped <= (uint64_t)ends * 1024);
  CHECK(LOAD(here.lost) <= ends);
  CHECK(peer_stats(&there).received <= COUNT);
}

/* Messages that the process has received are delivered even if the server ends before their
 * delivery. */
TEST_OF_BROKER(what_has_come_is_delivered_after_the_end, NULL) {
  SCOPED peer here, there;
  blocker slow = BLOCKER_INIT;
  sequence numbers = {0, 0, 0};
  peer_connect_to(&here, b);
  peer_connect_to(&there, b);
  peer_observe(&there, "b", blocking(&slow));
  peer_observe(&there, "n", counting(&numbers));
  CHECK_OK(peer_publish(&here, "b", 1, NULL, 0));
  gate_wait(&slow.entered);
  for (int i = 0; i < 100; ++i) CHECK_OK(peer_publish(&here, "n", 1, &i, sizeof i));
  peer_flush(&here);
  broker_end(b, SIGTERM);
  EVENTUALLY(LOAD(here.lost) == 1);
  gate_open(&slow.let_go);
  EVENTUALLY(LOAD(there.lost) == 1);
  CHECK_EQ(numbers.next, 100);
  CHECK_EQ(numbers.wrong, 0);
}

/* ---- Servers that refuse --------------------------------------------------------------------- */

TEST_OF_BROKER(wrong_password_is_refused, "authorization { user: anna, password: secret }") {
  SCOPED peer p;
  expect_refusal_of(&p, b->port, NULL, "Authorization Violation");
  expect_refusal_of(&p, b->port, &OPTIONS(.user = "anna",
                                          .password = "secre"), "Authorization Violation");
  CHECK(p.code != 0);
  expect_refusal_of(&p, b->port, &OPTIONS(.token = "secret"), "Authorization Violation");
  peer_connect_with(&p, b->port, &OPTIONS(.user = "anna", .password = "secret"));
  CHECK_EQ(LOAD(p.refused), 0);
  peer_release(&p);
  /* The reason must not contain the password in the address. */
  transport_options options = peer_options(&p, b->port);
  snprintf(p.address, sizeof p.address, "nats://anna:secret@127.0.0.1:%d", b->port);
  peer_connect(&p, &options);
  CHECK(strstr(p.reason, "127.0.0.1") != NULL);
  CHECK(strstr(p.reason, "secret") == NULL);
}

TEST_OF_BROKER(wrong_token_is_refused, "authorization { token: secret }") {
  SCOPED peer p;
  expect_refusal_of(&p, b->port, &OPTIONS(.token = "secre"), "Authorization Violation");
  peer_connect_with(&p, b->port, &OPTIONS(.token = "secret"));
}

TEST(texts_for_the_server_may_have_any_bytes) {
  broker b;
  SCOPED peer p;
  broker_start(&b, "authorization { user: 'a\"b', password: 'p\"q\\r\ts' }");
  peer_connect_with(&p, b.port, &OPTIONS(.client_name = "the \"new\" \\ \n client", .user = "a\"b",
                                         .password = "p\"q\\r\ts"));
  CHECK_EQ(LOAD(p.refused), 0);
  peer_release(&p);
  broker_delete(&b);
  broker_start(&b, "authorization { token: 'p\"q\\r' }");
  peer_connect_with(&p, b.port, &OPTIONS(.token = "p\"q\\r"));
  CHECK_EQ(LOAD(p.refused), 0);
  broker_delete(&b);
}

TEST_OF_BROKER(full_server_is_tried_again, "max_connections: 1") {
  SCOPED peer second;
  peer first;
  peer_connect_to(&first, b);
  peer_begin(&second, b->port, NULL);
  EVENTUALLY(LOAD(second.refused) >= 2);
  peer_release(&first);
  EVENTUALLY(LOAD(second.connected) == 1);
}

TEST(what_is_not_permitted_is_told) {
  broker b;
  SCOPED peer here, there;
  record *r = record_create();
  char name[16];
  broker_start(&b, "authorization { default_permissions: { publish: \"multicast.open.*\", "
                   "subscribe: \"multicast.open.*\" }, users: [ { user: a, password: b } ] }");
  peer_connect_with(&here, b.port, &OPTIONS(.user = "a", .password = "b"));
  peer_connect_with(&there, b.port, &OPTIONS(.user = "a", .password = "b"));
  peer_observe(&there, "open", recorder(r));
  CHECK_EQ(LOAD(there.subscriptions_refused), 0);
  CHECK_OK(there.transport.subscribe(there.transport.context, "closed"));
  EVENTUALLY(LOAD(there.subscriptions_refused) == 1);
  CHECK(strcasestr(there.refusal, "multicast.closed.*") != NULL);
  CHECK_OK(peer_publish(&here, "closed", 1, "x", 1));
  EVENTUALLY(LOAD(here.publications_refused) == 1);
  CHECK(strcasestr(here.refusal, "multicast.closed.1") != NULL);
  CHECK_EQ(peer_stats(&here).rejected, 1);
  /* The refusals have not closed any connection. */
  CHECK_OK(peer_publish(&here, "open", 2, "y", 1));
  record_wait(r, 1);
  CHECK(record_is(r, 2, "y", 1));
  CHECK_EQ(LOAD(here.lost) + LOAD(there.lost), 0);
  CHECK_EQ(LOAD(here.subscriptions_refused) + LOAD(there.publications_refused), 0);
  /* Each refusal is reported, even if many refusals arrive together and have the same text. */
  for (int i = 0; i < 1000; ++i) CHECK_OK(peer_publish(&here, "closed", 1, "x", 1));
  peer_flush(&here);
  EVENTUALLY(LOAD(here.publications_refused) == 1001);
  for (int i = 1; i < 3000; ++i) {
    snprintf(name, sizeof name, "closed%d", i % 1500);
    CHECK_OK(peer_publish(&here, name, (uint32_t)i, "x", 1));
    if (i % 10 == 0) CHECK_OK(there.transport.subscribe(there.transport.context, name));
  }
  peer_flush(&here);
  peer_flush(&there);
  EVENTUALLY(LOAD(here.publications_refused) == 4000);
  EVENTUALLY(LOAD(there.subscriptions_refused) == 1 + 150);
  CHECK_EQ(peer_stats(&here).rejected, 4000);
  broker_delete(&b);
}

TEST_OF_BROKER(too_many_names_are_told, "max_subscriptions: 2") {
  SCOPED peer p;
  peer_begin(&p, b->port, NULL);
  CHECK_OK(p.transport.subscribe(p.transport.context, "a"));
  CHECK_OK(p.transport.subscribe(p.transport.context, "b"));
  CHECK_OK(p.transport.subscribe(p.transport.context, "c"));
  EVENTUALLY(LOAD(p.subscriptions_refused) >= 1);
  EVENTUALLY(LOAD(p.lost) >= 1);
  CHECK(strcasestr(p.refusal, "maximum subscriptions exceeded") != NULL);
  /* Two subscriptions are within the limit, so the server keeps the connection open. */
  p.transport.unsubscribe(p.transport.context, "c");
  EVENTUALLY(transport_flush(&p.transport, 1000000000) == MULTICAST_OK);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

TEST_OF_BROKER(payload_that_is_too_large_is_refused, NULL) {
  static unsigned char large[(1 << 20) + 1];
  SCOPED peer here, there;
  record *r = record_create();
  transport_options options = peer_options(&here, b->port);
  peer_connect(&here, &options);
  CHECK_ERROR(peer_publish(&here, "n", 1, large, sizeof large), LIMIT);
  CHECK_EQ(peer_stats(&here).refused, 1);
  CHECK_OK(peer_publish(&here, "n", 1, large, sizeof large - 1));
  peer_flush(&here);
  CHECK_EQ(peer_stats(&here).sent, 1);
  peer_release(&here);
  /* The limit in the options applies to published messages and to arriving messages. */
  peer_connect_with(&there, b->port, &OPTIONS(.max_payload = 100));
  CHECK_ERROR(peer_publish(&there, "n", 1, large, 101), LIMIT);
  CHECK_OK(peer_publish(&there, "n", 1, large, 100));
  peer_observe(&there, "n", recorder(r));
  peer_connect_to(&here, b);
  CHECK_OK(peer_publish(&here, "n", 1, large, 101));
  CHECK_OK(peer_publish(&here, "n", 2, large, 100));
  record_wait(r, 1);
  CHECK(record_is(r, 2, large, 100));
  CHECK_EQ(peer_stats(&there).ignored, 1);
}

/* The library accepted the payload before it knew the server's limit. */
TEST_OF_BROKER(payload_that_the_server_does_not_take_is_dropped, "max_payload: 1000") {
  static unsigned char large[2000];
  SCOPED peer here;
  broker_end(b, SIGTERM);
  peer_begin(&here, b->port, NULL);
  CHECK_OK(peer_publish(&here, "n", 1, large, 1001));
  CHECK_OK(peer_publish(&here, "n", 1, large, 1000));
  broker_start_again(b);
  peer_flush(&here);
  EVENTUALLY(LOAD(here.publications_refused) == 1);
  CHECK_TEXT(here.refusal, "the payload is larger than the server takes");
  CHECK_EQ(peer_stats(&here).dropped, 1);
  CHECK_EQ(peer_stats(&here).sent, 1);
  CHECK_EQ(peer_stats(&here).max_payload, 1000);
  CHECK_ERROR(peer_publish(&here, "n", 1, large, 1001), LIMIT);
  CHECK_EQ(LOAD(here.lost), 0);
}

/* An observer that records the largest backlog, which is the number of messages that have arrived
 * but have not been delivered. */
typedef struct backlog {
  blocker first;
  peer *p;
  int calls;
  uint64_t largest;
} backlog;

FUNCTION(look, backlog *found) {
  multicast_nats_stats stats = multicast_nats_stats_default();
  if (LOAD(found->calls) == 0) block_call(&found->first, event, payload, size);
  CHECK_OK(multicast_nats_get_stats(&found->p->transport, &stats));
  if (stats.received - stats.delivered > found->largest)
    found->largest = stats.received - stats.delivered;
  ADD(found->calls, 1);
}

TEST_OF_BROKER(what_waits_for_observers_has_a_limit, NULL) {
  enum { COUNT = 20000 };
  SCOPED peer here, there;
  backlog found = {BLOCKER_INIT, &there, 0, 0};
  peer_connect_with(&here, b->port, &OPTIONS(.capacity = COUNT));
  peer_connect_with(&there, b->port, &OPTIONS(.receive_bytes = 20000));
  peer_observe(&there, "n", DELEGATE(look, &found));
  for (int i = 0; i < COUNT; ++i) CHECK_OK(peer_publish(&here, "n", 1, NULL, 0));
  peer_flush(&here);
  gate_open(&found.first.let_go);
  EVENTUALLY(LOAD(found.calls) == COUNT);
  if (found.largest > 6000) CHECK_EQ(found.largest, 6000);
  CHECK_EQ(peer_stats(&there).lost, 0);
  CHECK_EQ(LOAD(there.lost), 0);
}

/* ---- Servers that are slow ------------------------------------------------------------------- */

/* Publishes to a stopped server until a message is refused. Returns the number of accepted
 * messages. */
static int fill(peer *here) {
  static unsigned char large[65536];
  int accepted = 0;
  for (int i = 0; i < 100000; ++i) {
    multicast_status status = peer_publish(here, "large", 1, large, sizeof large);
    if (status == MULTICAST_OK) ++accepted;
    if (status == MULTICAST_ERROR_QUEUE_FULL && peer_stats(here).sending > 0 && i > 1000) break;
    if (status == MULTICAST_ERROR_QUEUE_FULL) pause_ms(1);
  }
  CHECK_EQ(peer_stats(here).waiting, 100);
  return accepted;
}

TEST_OF_BROKER(slow_server_loses_nothing, NULL) {
  SCOPED peer here, there;
  sequence numbers = {0, 0, 0};
  peer_connect_to(&there, b);
  peer_observe(&there, "n", counting(&numbers));
  peer_connect_with(&here, b->port, &OPTIONS(.capacity = 100));
  CHECK_EQ(kill(b->process, SIGSTOP), 0);
  int accepted = fill(&here);
  CHECK_ERROR(multicast_nats_flush(&here.transport, ns_of_second / 20), TIMEOUT);
  CHECK_EQ(kill(b->process, SIGCONT), 0);
  peer_flush(&here);
  CHECK_EQ(peer_stats(&here).sent, accepted);
  for (int i = 0; i < 50; ++i) CHECK_OK(peer_publish(&here, "n", 1, &i, sizeof i));
  EVENTUALLY(LOAD(numbers.next) == 50);
  CHECK_EQ(numbers.wrong, 0);
}

TEST_OF_BROKER(what_is_being_written_when_the_server_ends_is_dropped, NULL) {
  SCOPED peer here;
  peer_connect_with(&here, b->port, &OPTIONS(.capacity = 100));
  CHECK_EQ(kill(b->process, SIGSTOP), 0);
  int accepted = fill(&here);
  multicast_nats_stats stats = peer_stats(&here);
  CHECK(stats.sending >= 1);
  broker_end(b, SIGKILL);
  EVENTUALLY(LOAD(here.lost) == 1);
  CHECK_EQ(peer_stats(&here).sending, 0);
  CHECK_EQ(peer_stats(&here).dropped, stats.sending);
  CHECK_EQ(peer_stats(&here).sent, stats.sent);
  broker_start_again(b);
  /* The server cannot have read what the system had accepted for it. */
  CHECK_ERROR(multicast_nats_flush(&here.transport, 10 * ns_of_second), STATE);
  peer_flush(&here);
  CHECK_EQ(peer_stats(&here).sent, accepted - (int)stats.sending);
}

THREAD(flush_with_code, peer *p) {
  STORE(p->code, multicast_nats_flush(&p->transport, 10 * ns_of_second));
}

TEST_OF_BROKER(flush_says_that_a_server_may_have_lost_something, NULL) {
  SCOPED peer here;
  peer_connect_to(&here, b);
  CHECK_EQ(kill(b->process, SIGSTOP), 0);
  for (int i = 0; i < 10; ++i) CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  EVENTUALLY(peer_stats(&here).sent == 10);
  CHECK_ERROR(multicast_nats_flush(&here.transport, 1), TIMEOUT);
  pthread_t thread = start_thread(flush_with_code, &here);
  pause_ms(A_WHILE_MS);
  broker_end(b, SIGKILL);
  broker_start_again(b);
  join_thread(thread);
  CHECK_EQ(here.code, MULTICAST_ERROR_STATE);
  peer_flush(&here);
}

TEST_OF_BROKER(silent_server_is_left, NULL) {
  SCOPED peer p;
  peer_connect_with(&p, b->port, &OPTIONS(.ping_interval_s = 1));
  /* The server answers PINGs, so it does not count as silent. */
  pause_ms(3500);
  CHECK_EQ(LOAD(p.lost), 0);
  CHECK_EQ(kill(b->process, SIGSTOP), 0);
  EVENTUALLY(LOAD(p.lost) == 1);
  CHECK_TEXT(p.end, "the server does not answer");
  CHECK_EQ(kill(b->process, SIGCONT), 0);
  EVENTUALLY(LOAD(p.connected) == 2);
}

/* ---- TLS ------------------------------------------------------------------------------------- */

static const char tls[] = "tls { cert_file: localhost.crt, key_file: localhost.key }";
static const char tls_of_clients[] = "tls { cert_file: localhost.crt, key_file: localhost.key, "
                                     "ca_file: ours.crt, verify: true }";

static multicast_nats_options tls_options(peer *p, const broker *b, const char *authority) {
  transport_options options = peer_options(p, b->port);
  snprintf(p->address, sizeof p->address, "tls://127.0.0.1:%d", b->port);
  if (authority != NULL) options.ca_file = broker_path(b, authority);
  return options;
}

TEST(tls_connects_and_refuses) {
  static unsigned char large[1 << 20];
  broker b;
  peer here, there;
  record *r = record_create();
  broker_prepare(&b, tls);
  broker_make_certificates(&b);
  broker_start_again(&b);

  transport_options options = tls_options(&here, &b, "ours.crt");
  peer_connect(&here, &options);
  options = tls_options(&there, &b, "ours.crt");
  /* The flag requests TLS. The address and the certificate name different hosts, so `tls_name`
   * specifies the host in the certificate. */
  snprintf(there.address, sizeof there.address, "127.0.0.1:%d", b.port);
  options.flags = MULTICAST_NATS_TLS;
  options.tls_name = "localhost";
  peer_connect(&there, &options);
  peer_observe(&there, "n", recorder(r));
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  record_wait(r, 1);
  for (int i = 2; i < 50; ++i) {
    CHECK_OK(peer_publish(&here, "n", 1, large, sizeof large));
    if (i % 10 == 0) record_wait(r, i);
  }
  record_wait(r, 49);
  peer_release(&here);
  peer_release(&there);

  options = tls_options(&here, &b, "theirs.crt");
  expect_refusal(&options, &here, "unable to get local issuer certificate");
  options = tls_options(&here, &b, NULL);
  expect_refusal(&options, &here, "unable to get local issuer certificate");
  options = tls_options(&here, &b, "ours.crt");
  options.tls_name = "example.org";
  expect_refusal(&options, &here, "mismatch");
  options = tls_options(&here, &b, "ours.crt");
  snprintf(here.address, sizeof here.address, "tls://127.1:%d", b.port);
  expect_refusal(&options, &here, "mismatch");
  /* If the server requires TLS, the transport uses TLS and checks the server's certificate. */
  expect_refusal_of(&here, b.port, NULL, "unable to get local issuer certificate");
  options = tls_options(&here, &b, "missing.crt");
  CHECK_ERROR(multicast_nats_connect(&options, &here.transport), SYSTEM);
  CHECK_EQ(here.releases, 1);
  broker_delete(&b);
}

TEST_OF_BROKER(tls_is_not_given_up, NULL) {
  peer p;
  expect_refusal_of(&p, b->port, &OPTIONS(.flags = MULTICAST_NATS_TLS), "");
  transport_options options = peer_options(&p, b->port);
  snprintf(p.address, sizeof p.address, "tls://127.0.0.1:%d", b->port);
  expect_refusal(&options, &p, "");
}

TEST(tls_certificate_of_the_client) {
  broker b;
  peer p;
  broker_prepare(&b, tls_of_clients);
  broker_make_certificates(&b);
  broker_start_again(&b);
  transport_options options = tls_options(&p, &b, "ours.crt");
  expect_refusal(&options, &p, "");
  options = tls_options(&p, &b, "ours.crt");
  options.cert_file = broker_path(&b, "client.crt");
  options.key_file = broker_path(&b, "client.key");
  peer_connect(&p, &options);
  peer_release(&p);
  /* Without the library's check, OpenSSL would ask for the password on the terminal. */
  options = tls_options(&p, &b, "ours.crt");
  options.cert_file = broker_path(&b, "client.crt");
  options.key_file = broker_path(&b, "locked.key");
  CHECK_ERROR(multicast_nats_connect(&options, &p.transport), SYSTEM);
  CHECK_EQ(p.releases, 1);
  broker_delete(&b);
}
