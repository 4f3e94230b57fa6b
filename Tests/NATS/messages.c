/* What is published arrives elsewhere as it was sent. */

#include "broker.h"

#include "../../Sources/MulticastNATS/nats.h"

/* ---- Two transports -------------------------------------------------------------------------- */

TEST(notification_arrives) {
  broker b;
  peer here, there;
  record *r = record_create();
  broker_start(&b, NULL);
  peer_connect_to(&here, &b);
  peer_connect_to(&there, &b);
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
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
  free(r);
}

TEST(own_publications_do_not_come_back) {
  broker b;
  peer here, there;
  record *own = record_create(), *other = record_create();
  broker_start(&b, NULL);
  peer_connect_to(&here, &b);
  peer_connect_to(&there, &b);
  peer_observe(&here, "n", recorder(own));
  peer_observe(&there, "n", recorder(other));
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  record_wait(other, 1);
  /* What comes after it has passed it. */
  CHECK_OK(peer_publish(&there, "n", 2, "y", 1));
  record_wait(own, 1);
  CHECK(record_is(own, 2, "y", 1));
  CHECK_EQ(peer_stats(&here).received, 1);
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
  free(own);
  free(other);
}

TEST(payloads_of_0_to_1_mib_arrive) {
  static const size_t sizes[] = {0, 1, 2, 15, 16, 17, 4095, 32768, 65536, 65537, 1 << 20};
  static unsigned char payload[1 << 20];
  broker b;
  peer here, there;
  record *r = record_create();
  size_t i, at;
  broker_start(&b, NULL);
  peer_connect_to(&here, &b);
  peer_connect_to(&there, &b);
  peer_observe(&there, "n", recorder(r));
  for (i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    for (at = 0; at < sizes[i]; ++at) payload[at] = (unsigned char)(at * 7 + i);
    CHECK_OK(peer_publish(&here, "n", (uint32_t)i, payload, sizes[i]));
    record_wait(r, (int)i + 1);
    CHECK(record_is(r, (uint32_t)i, payload, sizes[i]));
  }
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
  free(r);
}

/* A name of so many bytes, which begins with any of the 255. */
static void write_name(char *name, int size, int first) {
  for (int i = 0; i < size; ++i) name[i] = (char)(1 + (first + i) % 255);
  name[size] = '\0';
}

TEST(names_of_all_lengths_and_bytes_arrive) {
  broker b;
  peer here, there;
  record *r = record_create();
  char name[256];
  broker_start(&b, NULL);
  peer_connect_to(&here, &b);
  peer_connect_to(&there, &b);
  for (int size = 1; size <= 255; ++size) {
    write_name(name, size, size * 3);
    CHECK_OK(multicast_broadcaster_register(there.broadcaster, name, recorder(r), NULL, NULL));
    CHECK_OK(there.transport.subscribe(there.transport.context, name));
  }
  peer_flush(&there);
  CHECK_EQ(peer_stats(&there).names, 255);
  for (int size = 1; size <= 255; ++size) {
    write_name(name, size, size * 3);
    CHECK_OK(peer_publish(&here, name, (uint32_t)size, name, (size_t)size));
    record_wait(r, size);
    CHECK(record_is(r, (uint32_t)size, name, (size_t)size));
  }
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
  free(r);
}

TEST(names_that_differ_do_not_meet) {
  static const char *const names[] = {"a", "a.b", "a.*", "a.>", "*", ">", "$SYS", "%41", "A", "a ",
                                      "a%2Eb", "\xc3\xa4", "\xff", "\x01", ".", "..", "a.1", "\t"};
  enum { COUNT = sizeof names / sizeof *names };
  broker b;
  peer here, there;
  record *records[COUNT];
  broker_start(&b, NULL);
  peer_connect_to(&here, &b);
  peer_connect_to(&there, &b);
  for (int i = 0; i < COUNT; ++i) {
    records[i] = record_create();
    peer_observe(&there, names[i], recorder(records[i]));
  }
  for (int i = 0; i < COUNT; ++i) {
    CHECK_OK(peer_publish(&here, names[i], 1, names[i], strlen(names[i])));
    record_wait(records[i], 1);
    CHECK(record_is(records[i], 1, names[i], strlen(names[i])));
    for (int k = i + 1; k < COUNT; ++k) CHECK_EQ(records[k]->count, 0);
  }
  peer_release(&here);
  peer_release(&there);
  for (int i = 0; i < COUNT; ++i) {
    CHECK_EQ(records[i]->count, 1);
    free(records[i]);
  }
  broker_delete(&b);
}

TEST(events_of_all_sizes_arrive) {
  static const uint32_t events[] = {0, 1, 9, 10, 99, 4294967294u, 4294967295u};
  broker b;
  peer here, there;
  record *r = record_create();
  broker_start(&b, NULL);
  peer_connect_to(&here, &b);
  peer_connect_to(&there, &b);
  peer_observe(&there, "n", recorder(r));
  for (size_t i = 0; i < sizeof events / sizeof *events; ++i) {
    CHECK_OK(peer_publish(&here, "n", events[i], NULL, 0));
    record_wait(r, (int)i + 1);
    CHECK(record_is(r, events[i], NULL, 0));
  }
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
  free(r);
}

/* ---- Order ----------------------------------------------------------------------------------- */

enum { MANY = 100000 };

/* Publishes all numbers, and waits where the outbox is full. */
static void *publish_many(void *context) {
  static const char *const names[] = {"a", "b", "c"};
  peer *here = context;
  for (int i = 0; i < MANY; ++i) {
    multicast_status status;
    while ((status = peer_publish(here, names[i % 3], 1, &i, sizeof i)) ==
           MULTICAST_ERROR_QUEUE_FULL)
      pause_ms(1);
    CHECK_OK(status);
  }
  return NULL;
}

TEST(a_hundred_thousand_arrive_in_order_of_all_names) {
  broker b;
  peer here, there;
  sequence numbers = {0, 0, 0};
  pthread_t thread;
  broker_start(&b, NULL);
  peer_connect_to(&here, &b);
  peer_connect_to(&there, &b);
  peer_observe(&there, "a", counting(&numbers));
  peer_observe(&there, "b", counting(&numbers));
  peer_observe(&there, "c", counting(&numbers));
  thread = start_thread(publish_many, &here);
  while (LOAD(numbers.next) < MANY && LOAD(numbers.wrong) == 0) pause_ms(1);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  peer_flush(&here);
  CHECK_EQ(numbers.wrong, 0);
  CHECK_EQ(numbers.repeated, 0);
  CHECK_EQ(peer_stats(&here).sent, MANY);
  CHECK_EQ(peer_stats(&there).received, MANY);
  CHECK_EQ(peer_stats(&there).lost, 0);
  CHECK_EQ(here.lost + there.lost, 0);
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}

/* ---- Subjects, without a server -------------------------------------------------------------- */

TEST(subjects_are_read_back) {
  char subject[ADDRESS_MAX_SIZE], name[NAME_MAX_SIZE + 1], again[NAME_MAX_SIZE + 1];
  uint32_t event;
  size_t written;
  for (int size = 1; size <= 255; size += 2) {
    for (int first = 0; first < 255; first += 5) {
      write_name(name, size, first);
      written = coding_write(&subject_coding, subject, "a.b", name, (uint32_t)first);
      CHECK_EQ(written, strlen(subject));
      CHECK_EQ(coding_read(&subject_coding, subject, "a.b", again, &event), size);
      CHECK_EQ(event, first);
      CHECK_TEXT(again, name);
    }
  }
  CHECK_EQ(coding_write(&subject_coding, subject, "p", "", 1), 0);
  CHECK_EQ(coding_write_all(&subject_coding, subject, "p", ""), 0);
  CHECK_EQ(coding_write_all(&subject_coding, subject, "p", "n."), 8);
  CHECK_TEXT(subject, "p.n%2E.*");
  CHECK_EQ(coding_write(&subject_coding, subject, "p", "n", 4294967295u), 14);
  CHECK_TEXT(subject, "p.n.4294967295");
}

TEST(subject_of_another_spelling_is_none) {
  static const char *const subjects[] = {
      "",        "p",         "p.",        "p..1",     "q.a.1",         "pp.a.1",
      "p.a",     "p.a.",      "p.a.01",    "p.a.1.",   "p.a.1.2",       "p.a.x",
      "p.a.-1",  "p.a.+",     "p.a. 1",    "p.%61.1",  "p.%.1",         "p.%2.1",
      "p.%2e.1", "p.%00.1",   "p.%GG.1",   "p.\x01.1", "p.\xc3\xa4.1",  "p.%2",
      "p.a%",    "p.a b.1",   "p.a*.1",    "p.>.1",    "p.a.4294967296", "P.a.1",
      "p.a.99999999999999999999"};
  char name[NAME_MAX_SIZE + 1], subject[300];
  uint32_t event;
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; ++i) {
    if (coding_read(&subject_coding, subjects[i], "p", name, &event) != 0)
      check_failed(__FILE__, __LINE__, subjects[i], "was read");
  }
  CHECK_EQ(coding_read(&subject_coding, "p.%2E%25.0", "p", name, &event), 2);
  CHECK_TEXT(name, ".%");
  CHECK_EQ(event, 0);
  /* A name of 256 bytes; one of 255. */
  memset(subject, 'a', sizeof subject);
  subject[0] = 'p';
  subject[1] = '.';
  memcpy(subject + 2 + 256, ".1", 3);
  CHECK_EQ(coding_read(&subject_coding, subject, "p", name, &event), 0);
  memcpy(subject + 2 + 255, ".1", 3);
  CHECK_EQ(coding_read(&subject_coding, subject, "p", name, &event), 255);
}

/* What can be read is written in the same way. */
TEST(each_subject_has_one_spelling) {
  static const char bytes[] = "p.%0123456789ABCDEFaf*>$ \x01\x7f\xc3.%p";
  char subject[32], again[ADDRESS_MAX_SIZE], name[NAME_MAX_SIZE + 1];
  unsigned seed = 1;
  int read = 0;
  for (int round = 0; round < 2000000; ++round) {
    uint32_t event;
    size_t size;
    seed = seed * 1103515245u + 12345u;
    size = 3 + (seed >> 16) % 12;
    memcpy(subject, "p.", 2);
    for (size_t i = 2; i < size; ++i) {
      seed = seed * 1103515245u + 12345u;
      subject[i] = bytes[(seed >> 16) % (sizeof bytes - 1)];
    }
    subject[size] = '\0';
    if (coding_read(&subject_coding, subject, "p", name, &event) == 0) continue;
    ++read;
    CHECK(coding_write(&subject_coding, again, "p", name, event) > 0);
    CHECK_TEXT(again, subject);
  }
  CHECK(read > 1000);
}
