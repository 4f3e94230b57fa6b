/* Tests transports whose brokers start, end, refuse requests, are slow or are full. */

#include "../Transports/Harness/asking.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t ns_of_second = 1000000000u;

/* ---- Brokers that restart -------------------------------------------------------------------- */

enum { MANY = 100000 };

/* Publishes all numbers, and waits while the outbox is full. */
THREAD(publish_many, peer *here) {
  for (int i = 0; i < MANY; ++i) {
    multicast_status status;
    while ((status = peer_publish(here, "n", 1, &i, sizeof i)) == MULTICAST_ERROR_QUEUE_FULL)
      multicast_mqtt_flush(&here->transport, 1000000);
    CHECK_OK(status);
  }
}

static void expect_all(uint32_t qos, int ends) {
  broker b;
  peer here, there;
  sequence s = {0, 0, 0};
  broker_start(&b, NULL);
  peer_connect_with(&here, b.port, &OPTIONS(.qos = qos, .session_expiry_s = 60));
  peer_connect_with(&there, b.port, &OPTIONS(.qos = qos, .session_expiry_s = 60));
  peer_observe(&there, "n", counting(&s));
  pthread_t thread = start_thread(publish_many, &here);
  for (int i = 1; i <= ends; ++i) {
    while (LOAD(s.next) < MANY / 6 * i && LOAD(s.wrong) == 0) pause_ms(1);
    broker_end(&b, SIGTERM);
    pause_ms(20);
    broker_start_again(&b);
  }
  CHECK_EQ(pthread_join(thread, NULL), 0);
  while (LOAD(s.next) < MANY && LOAD(s.wrong) == 0) pause_ms(1);
  peer_flush(&here);
  CHECK_EQ(s.wrong, 0);
  if (qos != 1) CHECK_EQ(s.repeated, 0);
  CHECK_EQ(peer_stats(&here).sent, MANY);
  CHECK_EQ(peer_stats(&here).dropped, 0);
  CHECK_EQ(LOAD(here.lost), ends);
  CHECK_EQ(LOAD(here.connected), ends + 1);
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}

TEST(all_arrive_in_order_with_qos_0) { expect_all(0, 0); }
TEST(all_arrive_in_order_with_qos_1) { expect_all(1, 0); }
TEST(all_arrive_in_order_with_qos_2) { expect_all(2, 0); }
TEST(broker_that_ends_five_times_loses_nothing_with_qos_1) { expect_all(1, 5); }

TEST_OF_BROKER(session_collects_what_is_published_meanwhile, NULL) {
  static const char *const gone[] = {"gone", "gone too", "gone 3", "gone 4", "gone 5"};
  enum { GONE = sizeof gone / sizeof *gone };
  SCOPED peer here, there;
  sequence s = {0, 0, 0};
  int i;
  peer_connect_reliably(&here, b->port);
  peer_connect_with(&there, b->port, &OPTIONS(.qos = 1, .client_id = "collector",
                                              .session_expiry_s = 60));
  peer_observe(&there, "n", counting(&s));
  for (i = 0; i < GONE; ++i) peer_observe(&there, gone[i], counting(&s));
  peer_release(&there);
  for (i = 0; i < 10; ++i) CHECK_OK(peer_publish(&here, "n", 1, &i, sizeof i));
  for (i = 0; i < GONE; ++i) CHECK_OK(peer_publish(&here, gone[i], 1, &i, sizeof i));
  peer_flush(&here);
  peer_begin(&there, b->port, &OPTIONS(.qos = 1, .client_id = "collector", .session_expiry_s = 60));
  peer_observe(&there, "n", counting(&s));
  EVENTUALLY(LOAD(s.next) == 10);
  CHECK_EQ(s.wrong, 0);
  /* When the first message of a name without observers arrives, the transport unsubscribes from the
   * name. */
  EVENTUALLY(peer_stats(&there).ignored == GONE);
  peer_flush(&there);
  pause_ms(5 * A_WHILE_MS); /* until the broker has processed the unsubscriptions */
  for (i = 0; i < GONE; ++i) CHECK_OK(peer_publish(&here, gone[i], 1, &i, sizeof i));
  i = 10;
  CHECK_OK(peer_publish(&here, "n", 1, &i, sizeof i));
  EVENTUALLY(LOAD(s.next) == 11);
  CHECK_EQ(peer_stats(&there).ignored, GONE);
}

/* The killed broker has lost its sessions. If the publisher reconnects before the subscriber, its
 * publications are lost, because there is no subscription yet. */
TEST_OF_BROKER(broker_that_is_killed_forgets_who_has_subscribed, NULL) {
  SCOPED peer here, there;
  sequence s = {0, 0, 0};
  int i = 0;
  peer_connect_with(&here, b->port, &OPTIONS(.qos = 1, .session_expiry_s = 60));
  peer_connect_with(&there, b->port,
                    &OPTIONS(.qos = 1, .session_expiry_s = 60, .reconnect_min_ns = 2 * ns_of_second,
                             .reconnect_max_ns = 2 * ns_of_second));
  peer_observe(&there, "n", counting(&s));
  CHECK_OK(peer_publish(&here, "n", 1, &i, sizeof i));
  EVENTUALLY(LOAD(s.next) == 1);
  broker_end(b, SIGKILL);
  EVENTUALLY(LOAD(here.lost) == 1 && LOAD(there.lost) == 1);
  broker_start_again(b);
  EVENTUALLY(LOAD(here.connected) == 2);
  CHECK_EQ(LOAD(there.connected), 1);
  for (i = 1; i <= 10; ++i) CHECK_OK(peer_publish(&here, "n", 1, &i, sizeof i));
  peer_flush(&here);
  CHECK_EQ(peer_stats(&here).sent, 11);
  EVENTUALLY(LOAD(there.connected) == 2);
  peer_flush(&there);
  i = 1; /* the next number */
  CHECK_OK(peer_publish(&here, "n", 1, &i, sizeof i));
  EVENTUALLY(LOAD(s.next) == 2);
  CHECK_EQ(s.wrong + s.repeated, 0);
  CHECK_EQ(peer_stats(&here).sent, 12);
  CHECK_EQ(peer_stats(&there).received, 2);
}

TEST_OF_BROKER(session_of_a_random_client_ends_with_it, NULL) {
  peer here;
  peer_connect_with(&here, b->port, &OPTIONS(.session_expiry_s = 60));
  peer_release(&here);
  broker_run(b, "test \"$(mosquitto_sub -h 127.0.0.1 -p $PORT -C 1 "
                "-t '$SYS/broker/clients/disconnected')\" = 0");
}

/* ---- Brokers that refuse --------------------------------------------------------------------- */

TEST_OF_BROKER(wrong_password_is_refused, "allow_anonymous false") {
  peer p;
  multicast_mqtt_options options;
  broker_end(b, SIGTERM);
  broker_run(b, "mosquitto_passwd -b -c $FOLDER/passwords anna secret && "
                "echo password_file $FOLDER/passwords >>$FOLDER/conf");
  broker_start_again(b);
  for (uint32_t protocol = 4; protocol <= 5; ++protocol) {
    options = peer_options(&p, b->port);
    options.protocol = protocol;
    expect_refusal(&options, &p, protocol == 4 ? "not authorised" : "Not authorized");
    CHECK_EQ(p.code, protocol == 4 ? 5 : 0x87);
    options = peer_options(&p, b->port);
    options.protocol = protocol;
    options.user = "anna";
    options.password = "secre";
    expect_refusal(&options, &p, protocol == 4 ? "not authorised" : "Not authorized");
    peer_connect_with(&p, b->port, &OPTIONS(.protocol = protocol, .user = "anna",
                                            .password = "secret"));
    CHECK_EQ(LOAD(p.refused), 0);
    peer_release(&p);
  }
}

TEST_OF_BROKER(full_broker_is_tried_again, "allow_anonymous true\nmax_connections 1") {
  SCOPED peer third;
  peer first, second;
  /* mosquitto 2.0 accepts one connection more than its limit allows. */
  peer_connect_to(&first, b);
  peer_connect_to(&second, b);
  peer_begin(&third, b->port, NULL);
  EVENTUALLY(LOAD(third.refused) >= 2);
  peer_release(&first);
  peer_release(&second);
  EVENTUALLY(LOAD(third.connected) == 1);
}

TEST_OF_BROKER(slow_broker_loses_nothing, NULL) {
  SCOPED peer here, there;
  sequence s = {0, 0, 0};
  static unsigned char large[65536];
  int accepted = 0;
  peer_connect_reliably(&there, b->port);
  peer_observe(&there, "n", counting(&s));
  peer_connect_with(&here, b->port, &OPTIONS(.qos = 1, .capacity = 100));
  CHECK_EQ(kill(b->process, SIGSTOP), 0);
  for (int i = 0; i < 1000; ++i) {
    memcpy(large, &i, sizeof i);
    multicast_status status = peer_publish(&here, "large", 1, large, sizeof large);
    if (status != MULTICAST_OK) break;
    ++accepted;
  }
  CHECK(accepted >= 100 && accepted < 200);
  CHECK_EQ(kill(b->process, SIGCONT), 0);
  peer_flush(&here);
  CHECK_EQ(peer_stats(&here).sent, accepted);
  for (int i = 0; i < 50; ++i) CHECK_OK(peer_publish(&here, "n", 1, &i, sizeof i));
  EVENTUALLY(LOAD(s.next) == 50);
  CHECK_EQ(s.wrong, 0);
}

THREAD(flush_what_is_dropped, peer *p) {
  const multicast_status status = multicast_mqtt_flush(&p->transport, 20 * ns_of_second);
  CHECK(status == MULTICAST_ERROR_STATE || status == MULTICAST_OK);
}

TEST(flush_ends_when_what_it_waits_for_was_dropped) {
  SCOPED peer p;
  multicast_mqtt_options options = peer_create(&p);
  options.port = free_port();
  options.capacity = 3;
  options.overflow = MULTICAST_OVERFLOW_DROP_OLDEST;
  CHECK_OK(transport_connect(&options, &p.transport));
  CHECK_OK(peer_publish(&p, "n", 1, NULL, 0));
  pthread_t thread = start_thread(flush_what_is_dropped, &p);
  pause_ms(100); /* so that the thread usually waits in the flush */
  for (int i = 0; i < 3; ++i) CHECK_OK(peer_publish(&p, "n", 1, NULL, 0));
  join_thread(thread);
  CHECK_EQ(peer_stats(&p).dropped, 1);
}

/* Returns how many times the transport's thread has waited. */
static long count_waits(void) {
  char path[64], line[256];
  long count = -1;
  struct dirent *entry;
  DIR *tasks = opendir("/proc/self/task");
  CHECK(tasks != NULL);
  while (count < 0 && (entry = readdir(tasks)) != NULL) {
    FILE *status;
    bool is_transport = false;
    snprintf(path, sizeof path, "/proc/self/task/%.16s/status", entry->d_name);
    status = fopen(path, "r");
    if (status == NULL) continue;
    while (fgets(line, sizeof line, status) != NULL) {
      if (strcmp(line, "Name:\tmulticast-mqtt\n") == 0) is_transport = true;
      if (is_transport && sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1) break;
    }
    fclose(status);
  }
  closedir(tasks);
  CHECK(count >= 0);
  return count;
}

/* A publication must not wake the transport's thread while the maximum number of publications is
 * unacknowledged, or while there is no connection. */
TEST_OF_BROKER(publications_that_cannot_be_sent_do_not_wake_the_thread, NULL) {
  enum { PUBLICATIONS = 200, FEW = 50 };
  SCOPED peer p;
  multicast_mqtt_options options = peer_options(&p, b->port);
  options.qos = 1;
  options.reconnect_min_ns = options.reconnect_max_ns = 20 * ns_of_second;
  peer_connect(&p, &options);
  CHECK_EQ(kill(b->process, SIGSTOP), 0);
  for (int i = 0; i < 20; ++i) CHECK_OK(peer_publish(&p, "n", 1, &i, sizeof i));
  EVENTUALLY(peer_stats(&p).sending == 20);
  long before = count_waits();
  for (int i = 0; i < PUBLICATIONS; ++i) {
    CHECK_OK(peer_publish(&p, "n", 1, &i, sizeof i));
    pause_ms(1);
  }
  long waits = count_waits() - before;
  if (waits > FEW) CHECK_EQ(waits, FEW);
  CHECK_EQ(kill(b->process, SIGCONT), 0);
  peer_flush(&p);
  broker_end(b, SIGKILL);
  EVENTUALLY(LOAD(p.lost) == 1);
  before = count_waits();
  for (int i = 0; i < PUBLICATIONS; ++i) {
    CHECK_OK(peer_publish(&p, "n", 1, &i, sizeof i));
    pause_ms(1);
  }
  waits = count_waits() - before;
  if (waits > FEW) CHECK_EQ(waits, FEW);
}

TEST_OF_BROKER(silent_broker_is_left, NULL) {
  SCOPED peer p;
  peer_connect_with(&p, b->port, &OPTIONS(.keep_alive_s = 5));
  CHECK_EQ(kill(b->process, SIGSTOP), 0);
  EVENTUALLY(LOAD(p.lost) == 1);
  CHECK_TEXT(p.end, "the broker has not answered within the keep-alive");
  CHECK_EQ(kill(b->process, SIGCONT), 0);
  EVENTUALLY(LOAD(p.connected) == 2);
}

TEST_OF_BROKER(refused_publications_are_told, "allow_anonymous true") {
  SCOPED peer p;
  record *r = record_create();
  multicast_delegate observer = recorder(r);
  broker_end(b, SIGTERM);
  broker_run(b, "printf 'topic readwrite multicast/open/#\n' >$FOLDER/acl && "
                "echo acl_file $FOLDER/acl >>$FOLDER/conf");
  broker_start_again(b);
  peer_connect_with(&p, b->port, &OPTIONS(.qos = 1));
  peer_observe(&p, "open", observer);
  CHECK_EQ(LOAD(p.subscriptions_refused), 0);
  CHECK_OK(peer_publish(&p, "open", 1, "x", 1));
  peer_flush(&p);
  CHECK_EQ(peer_stats(&p).sent, 1);
  CHECK_OK(peer_publish(&p, "closed", 1, "x", 1));
  peer_flush(&p);
  CHECK_EQ(peer_stats(&p).sent, 1);
  CHECK_EQ(peer_stats(&p).rejected, 1);
  EVENTUALLY(LOAD(p.publications_refused) == 1);
  CHECK_TEXT(p.refusal, "Not authorized");
  CHECK_EQ(p.refusal_code, 0x87);
}

THREAD(flush_what_is_lost, peer *p) {
  CHECK_ERROR(multicast_mqtt_flush(&p->transport, 20 * ns_of_second), STATE);
}

/* With `qos` 0, a publication is lost if the connection ends while the publication is being
 * written. */
TEST_OF_BROKER(flush_says_that_a_publication_was_lost_with_the_connection, NULL) {
  static char large[4 << 20];
  SCOPED peer p;
  peer_connect_with(&p, b->port, NULL);
  CHECK_EQ(kill(b->process, SIGSTOP), 0);
  for (int i = 0; i < 4; ++i) CHECK_OK(peer_publish(&p, "n", 1, large, sizeof large));
  EVENTUALLY(peer_stats(&p).sending == 1);
  pthread_t thread = start_thread(flush_what_is_lost, &p);
  pause_ms(A_WHILE_MS);
  broker_end(b, SIGKILL);
  EVENTUALLY(LOAD(p.lost) == 1);
  CHECK(peer_stats(&p).dropped >= 1);
  broker_start_again(b);
  join_thread(thread);
}

THREAD(flush_first, peer *p) { CHECK_OK(multicast_mqtt_flush(&p->transport, 20 * ns_of_second)); }

/* The broker is stopped. The flush waits for a publication that is in flight and therefore cannot
 * be dropped. The flush must succeed although later publications are dropped. */
TEST_OF_BROKER(flush_does_not_care_for_what_is_dropped_later, NULL) {
  SCOPED peer p;
  peer_connect_with(&p, b->port, &OPTIONS(.qos = 1, .capacity = 1,
                                          .overflow = MULTICAST_OVERFLOW_DROP_OLDEST));
  CHECK_EQ(kill(b->process, SIGSTOP), 0);
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  EVENTUALLY(peer_stats(&p).sending == 1);
  pthread_t thread = start_thread(flush_first, &p);
  pause_ms(A_WHILE_MS);
  while (peer_stats(&p).dropped == 0) CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  CHECK_EQ(kill(b->process, SIGCONT), 0);
  join_thread(thread);
  CHECK(peer_stats(&p).dropped > 0);
}

/* A question waits only for the subscription to its answers. The broker is stopped, so that changes
 * of other names cannot be sent. */
TEST_OF_BROKER(question_does_not_wait_for_changes_of_names, NULL) {
  SCOPED peer p;
  told t = {0};
  asking a = {.p = &p};
  peer_connect_with(&p, b->port, NULL);
  CHECK_ERROR(ask(&p, &t, "q", "x", 20 * ns_of_second), NOT_FOUND);
  CHECK_EQ(kill(b->process, SIGSTOP), 0);
  for (int i = 0; i < 100; ++i) {
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    CHECK_OK(p.transport.subscribe(p.transport.context, name));
  }
  pthread_t thread = start_asking(&a);
  EVENTUALLY(peer_stats(&p).sending == 1);
  CHECK_EQ(kill(b->process, SIGCONT), 0);
  join_thread(thread);
  CHECK_ERROR(a.result, NOT_FOUND);
}

/* Each refusal is reported, even if there are many refusals and the connection ends before all of
 * them have been reported. */
TEST_OF_BROKER(each_refusal_is_told, NULL) {
  enum { COUNT = 100 };
  SCOPED peer p;
  broker_end(b, SIGTERM);
  broker_run(b, "printf 'topic readwrite multicast/open/#\n' >$FOLDER/acl && "
                "echo acl_file $FOLDER/acl >>$FOLDER/conf");
  broker_start_again(b);
  peer_connect_with(&p, b->port, &OPTIONS(.qos = 1));
  for (int i = 0; i < COUNT; ++i) CHECK_OK(peer_publish(&p, "closed", 1, "x", 1));
  peer_flush(&p);
  CHECK_EQ(peer_stats(&p).rejected, COUNT);
  EVENTUALLY(LOAD(p.publications_refused) == COUNT);
}

TEST_OF_BROKER(message_that_is_too_large_is_refused,
               "allow_anonymous true\nmax_packet_size 10000") {
  static unsigned char large[20000];
  SCOPED peer p;
  peer_connect_with(&p, b->port, &OPTIONS(.qos = 1, .max_payload = 15000));
  CHECK_ERROR(peer_publish(&p, "n", 1, large, 15001), LIMIT);
  CHECK_OK(peer_publish(&p, "n", 1, large, 15000));
  peer_flush(&p);
  EVENTUALLY(LOAD(p.publications_refused) == 1);
  CHECK_EQ(peer_stats(&p).rejected, 1);
  CHECK_EQ(peer_stats(&p).refused, 1);
  CHECK_OK(peer_publish(&p, "n", 1, large, 9000));
  peer_flush(&p);
  CHECK_EQ(peer_stats(&p).sent, 1);
  CHECK_EQ(LOAD(p.lost), 0);
}

TEST_OF_BROKER(question_that_is_too_large_is_refused,
               "allow_anonymous true\nmax_packet_size 10000") {
  static unsigned char large[20000];
  SCOPED peer p;
  told t = {0};
  peer_connect_to(&p, b);
  CHECK_ERROR(multicast_mqtt_ask(&p.transport, "q", 1, large, sizeof large, MULTICAST_FOREVER,
                                 note_told, &t), STATE);
  EVENTUALLY(LOAD(p.publications_refused) == 1);
  CHECK_EQ(peer_stats(&p).rejected, 1);
}

TEST_OF_BROKER(two_clients_with_one_identifier_do_not_fight, NULL) {
  SCOPED peer first, second;
  peer_connect_with(&first, b->port, &OPTIONS(.client_id = "one",
                                              .reconnect_max_ns = 3 * ns_of_second));
  peer_connect_with(&second, b->port, &OPTIONS(.client_id = "one",
                                               .reconnect_max_ns = 3 * ns_of_second));
  EVENTUALLY(LOAD(first.lost) >= 1);
  pause_ms(2000);
  int changes = LOAD(first.connected) + LOAD(second.connected);
  if (changes > 20) CHECK_EQ(changes, 20);
}

/* ---- TLS ------------------------------------------------------------------------------------- */

/* Starts a broker that uses TLS with the authority `ours` and the certificate for localhost.
 * `lines` is the rest of the broker's configuration. */
static void start_with_tls(broker *b, const char *lines) {
  char whole[512];
  broker_start(b, NULL);
  broker_end(b, SIGTERM);
  broker_make_certificates(b);
  snprintf(whole, sizeof whole,
           "mkdir path && cp ours.crt path && openssl rehash path && printf 'cafile ours.crt\n"
           "certfile localhost.crt\nkeyfile localhost.key\n%s\n' >>conf",
           lines);
  broker_run(b, whole);
  broker_start_again(b);
}

static multicast_mqtt_options tls_options(peer *p, const broker *b, const char *authority) {
  multicast_mqtt_options options = peer_options(p, b->port);
  options.host = "127.0.0.1";
  options.ca_file = broker_path(b, authority);
  return options;
}

TEST(tls_connects_and_refuses) {
  broker b;
  peer p, other;
  record *r = record_create();
  start_with_tls(&b, "");

  multicast_mqtt_options options = tls_options(&p, &b, "ours.crt");
  options.qos = 1;
  peer_connect(&p, &options);
  options = tls_options(&other, &b, "ours.crt");
  options.ca_file = NULL;
  options.ca_path = broker_path(&b, "path");
  peer_connect(&other, &options);
  peer_observe(&other, "n", recorder(r));
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  record_wait(r, 1);
  CHECK_OK(peer_publish(&p, "n", 1, r->payload, sizeof r->payload));
  record_wait(r, 2);
  peer_release(&p);
  peer_release(&other);

  options = tls_options(&p, &b, "theirs.crt");
  expect_refusal(&options, &p, "certificate verify failed");
  options = tls_options(&p, &b, "ours.crt");
  options.ca_file = NULL;
  options.flags = MULTICAST_MQTT_TLS;
  expect_refusal(&options, &p, "certificate verify failed");
  options = tls_options(&p, &b, "ours.crt");
  options.host = "127.1";
  expect_refusal(&options, &p, "host name verification failed");
  options = tls_options(&p, &b, "ours.crt");
  options.host = "127.1";
  options.flags = MULTICAST_MQTT_TLS_ANY_HOST;
  peer_connect(&p, &options);
  peer_release(&p);
  expect_refusal_of(&p, b.port, NULL, "");
  options = tls_options(&p, &b, "missing.crt");
  CHECK_ERROR(multicast_mqtt_connect(&options, &p.transport), SYSTEM);
  CHECK_EQ(p.releases, 1);
  broker_delete(&b);
}

TEST(tls_certificate_of_the_client) {
  static char long_password[2000];
  broker b;
  peer p;
  start_with_tls(&b, "require_certificate true");
  multicast_mqtt_options options = tls_options(&p, &b, "ours.crt");
  expect_refusal(&options, &p, "");
  options = tls_options(&p, &b, "ours.crt");
  options.cert_file = broker_path(&b, "client.crt");
  options.key_file = broker_path(&b, "client.key");
  peer_connect(&p, &options);
  peer_release(&p);
  options = tls_options(&p, &b, "ours.crt");
  options.cert_file = broker_path(&b, "client.crt");
  options.key_file = broker_path(&b, "locked.key");
  options.key_password = "secret";
  peer_connect(&p, &options);
  peer_release(&p);
  options = tls_options(&p, &b, "ours.crt");
  options.cert_file = broker_path(&b, "client.crt");
  options.key_file = broker_path(&b, "locked.key");
  options.key_password = "wrong";
  expect_refusal(&options, &p, "");
  /* A password that is too long for OpenSSL. */
  memset(long_password, 'a', sizeof long_password - 1);
  options = tls_options(&p, &b, "ours.crt");
  options.cert_file = broker_path(&b, "client.crt");
  options.key_file = broker_path(&b, "locked.key");
  options.key_password = long_password;
  expect_refusal(&options, &p, "");
  broker_delete(&b);
}
