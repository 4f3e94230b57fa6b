/* Tests that published messages arrive unchanged at other peers. */

#include "../Transports/Harness/broker.h"

#include "../../../Sources/Transports/NATS/nats.h"

TEST_OF_BROKER(notification_arrives, NULL) {
  SCOPED peer here, there;
  record *r = record_create();
  peer_connect_to(&here, b);
  peer_connect_to(&there, b);
  peer_observe(&there, "weather", recorder(r));
  CHECK_OK(peer_publish(&here, "weather", 7, "rain", 4));
  record_wait(r, 1);
  CHECK(record_is(r, 7, "rain", 4));
  peer_flush(&here);
  CHECK_EQ(peer_stats(&here).sent, 1);
  CHECK_EQ(peer_stats(&here).connected, 1);
  CHECK_EQ(peer_stats(&here).connections, 1);
  CHECK_EQ(peer_stats(&here).max_payload, 1 << 20);
  EVENTUALLY(peer_stats(&there).delivered == 1);
  CHECK_EQ(peer_stats(&there).received, 1);
  CHECK_EQ(peer_stats(&there).names, 1);
  CHECK(strstr(here.reason, "127.0.0.1") != NULL);
}

TEST_OF_BROKER(late_observers_are_notified_of_nothing_before, NULL) {
  SCOPED peer here, there;
  record *own = record_create(), *other = record_create();
  peer_connect_to(&here, b);
  peer_connect_to(&there, b);
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  peer_flush(&here);
  peer_observe(&here, "n", recorder(own));
  peer_observe(&there, "n", recorder(other));
  /* The arrival of a later message proves that all earlier messages have been processed. */
  CHECK_OK(peer_publish(&here, "n", 2, "y", 1));
  record_wait(other, 1);
  CHECK(record_is(other, 2, "y", 1));
  CHECK_OK(peer_publish(&there, "n", 3, "z", 1));
  record_wait(own, 1);
  CHECK(record_is(own, 3, "z", 1));
}

/* ---- Order ----------------------------------------------------------------------------------- */

enum { MANY = 100000 };

/* Publishes all numbers, and waits while the outbox is full. */
THREAD(publish_many, void *context) {
  static const char *const names[] = {"a", "b", "c"};
  peer *here = context;
  for (int i = 0; i < MANY; ++i) {
    multicast_status status;
    while ((status = peer_publish(here, names[i % 3], 1, &i, sizeof i)) ==
           MULTICAST_ERROR_QUEUE_FULL)
      pause_ms(1);
    CHECK_OK(status);
  }
}

TEST_OF_BROKER(a_hundred_thousand_arrive_in_order_of_all_names, NULL) {
  SCOPED peer here, there;
  sequence numbers = {0, 0, 0};
  peer_connect_to(&here, b);
  peer_connect_to(&there, b);
  peer_observe(&there, "a", counting(&numbers));
  peer_observe(&there, "b", counting(&numbers));
  peer_observe(&there, "c", counting(&numbers));
  pthread_t thread = start_thread(publish_many, &here);
  while (LOAD(numbers.next) < MANY && LOAD(numbers.wrong) == 0) pause_ms(1);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  peer_flush(&here);
  CHECK_EQ(numbers.wrong, 0);
  CHECK_EQ(numbers.repeated, 0);
  CHECK_EQ(peer_stats(&here).sent, MANY);
  CHECK_EQ(peer_stats(&there).received, MANY);
  CHECK_EQ(peer_stats(&there).lost, 0);
  CHECK_EQ(LOAD(here.lost) + LOAD(there.lost), 0);
}

/* ---- Subjects, without a server -------------------------------------------------------------- */

TEST(subject_of_another_spelling_is_none) {
  static const char *const subjects[] = {
      "",        "p",         "p.",        "p..1",     "q.a.1",         "pp.a.1",
      "p.a",     "p.a.",      "p.a.01",    "p.a.1.",   "p.a.1.2",       "p.a.x",
      "p.a.-1",  "p.a.+",     "p.a. 1",    "p.%61.1",  "p.%.1",         "p.%2.1",
      "p.%2e.1", "p.%00.1",   "p.%GG.1",   "p.\x01.1", "p.\xc3\xa4.1",  "p.%2",
      "p.a%",    "p.a b.1",   "p.a*.1",    "p.>.1",    "p.a.4294967296", "P.a.1",
      "p.a.99999999999999999999"};
  char name[NAME_MAX_SIZE + 1];
  uint32_t event;
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; ++i) {
    if (coding_read(&subject_coding, subjects[i], "p", name, &event) != 0)
      check_failed(__FILE__, __LINE__, subjects[i], "was read");
  }
  CHECK_EQ(coding_read(&subject_coding, "p.%2E%25.0", "p", name, &event), 2);
  CHECK_TEXT(name, ".%");
  CHECK_EQ(event, 0);
}

TEST(subjects_are_written) {
  char subject[ADDRESS_MAX_SIZE];
  CHECK_EQ(coding_write_all(&subject_coding, subject, "p", "n."), 8);
  CHECK_TEXT(subject, "p.n%2E.*");
  CHECK_EQ(coding_write(&subject_coding, subject, "p", "n", 4294967295u), 14);
  CHECK_TEXT(subject, "p.n.4294967295");
}
