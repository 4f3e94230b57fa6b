/* Tests that published messages arrive unchanged at other peers. */

#include "Harness/broker.h"

/* A broker and two clients. */
typedef struct pair {
  broker b;
  peer here, there;
} pair;

static void pair_start(pair *p) {
  broker_start(&p->b, NULL);
  peer_connect_reliably(&p->here, p->b.port);
  peer_connect_reliably(&p->there, p->b.port);
}

static void pair_end(pair *p) {
  peer_release(&p->here);
  peer_release(&p->there);
  broker_delete(&p->b);
}

TEST(own_publications_do_not_come_back) {
  pair p;
  record *own = record_create(), *other = record_create();
  pair_start(&p);
  peer_observe(&p.here, "n", recorder(own));
  peer_observe(&p.there, "n", recorder(other));
  CHECK_OK(peer_publish(&p.here, "n", 1, "x", 1));
  record_wait(other, 1);
  /* The arrival of a later message proves that the first message has been processed. */
  CHECK_OK(peer_publish(&p.there, "n", 2, "y", 1));
  record_wait(own, 1);
  CHECK(record_is(own, 2, "y", 1));
  CHECK_EQ(peer_stats(&p.here).received, 1);
  pair_end(&p);
}

TEST(payloads_of_0_to_1_mib_arrive) {
  static const size_t sizes[] = {0,   1,    2,     15,    16,    17,    127,
                                 128, 4095, 16383, 32768, 65536, 65537, 1 << 20};
  static unsigned char payload[1 << 20];
  pair p;
  record *r = record_create();
  pair_start(&p);
  peer_observe(&p.there, "n", recorder(r));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    for (size_t at = 0; at < sizes[i]; ++at) payload[at] = (unsigned char)(at * 7 + i);
    CHECK_OK(peer_publish(&p.here, "n", (uint32_t)i, payload, sizes[i]));
    record_wait(r, (int)i + 1);
    CHECK(record_is(r, (uint32_t)i, payload, sizes[i]));
  }
  pair_end(&p);
}

/* Writes a name of `size` bytes. The bytes of the name cycle through the 255 possible values, and
 * `first` selects the value of the first byte. */
static void write_name(char *name, int size, int first) {
  for (int i = 0; i < size; ++i) name[i] = (char)(1 + (first + i) % 255);
  name[size] = '\0';
}

TEST(names_of_all_lengths_and_bytes_arrive) {
  pair p;
  record *r = record_create();
  char name[256];
  pair_start(&p);
  for (int size = 1; size <= 255; ++size) {
    write_name(name, size, size * 3);
    CHECK_OK(multicast_broadcaster_register(p.there.broadcaster, name, recorder(r), NULL, NULL));
    CHECK_OK(p.there.transport.subscribe(p.there.transport.context, name));
  }
  peer_flush(&p.there);
  CHECK_EQ(peer_stats(&p.there).names, 255);
  for (int size = 1; size <= 255; ++size) {
    write_name(name, size, size * 3);
    CHECK_OK(peer_publish(&p.here, name, (uint32_t)size, name, (size_t)size));
    record_wait(r, size);
    CHECK(record_is(r, (uint32_t)size, name, (size_t)size));
  }
  pair_end(&p);
}

TEST(names_that_differ_do_not_meet) {
  static const char *const names[] = {
      "a",   "a/b", "a/+", "a/#", "a.b", "a.*",   "a.>",   "+",    "#",    "*",  ">",
      "/",   "//",  ".",   "..",  "$",   "$SYS",  "%41",   "A",    "a ",   "a/1", "a.1",
      "a%2Fb", "a%2Eb", "\x01", "\xff", "\t", "\xc3\xa4"};
  enum { COUNT = sizeof names / sizeof *names };
  pair p;
  record *records[COUNT];
  pair_start(&p);
  for (int i = 0; i < COUNT; ++i) {
    records[i] = record_create();
    peer_observe(&p.there, names[i], recorder(records[i]));
  }
  for (int i = 0; i < COUNT; ++i) {
    CHECK_OK(peer_publish(&p.here, names[i], 1, names[i], strlen(names[i])));
    record_wait(records[i], 1);
    CHECK(record_is(records[i], 1, names[i], strlen(names[i])));
    for (int k = i + 1; k < COUNT; ++k) record_wait(records[k], 0);
  }
  pair_end(&p);
  for (int i = 0; i < COUNT; ++i) CHECK_EQ(records[i]->count, 1);
}

TEST(events_of_all_sizes_arrive) {
  static const uint32_t events[] = {0, 1, 9, 10, 99, 4294967294u, 4294967295u};
  pair p;
  record *r = record_create();
  pair_start(&p);
  peer_observe(&p.there, "n", recorder(r));
  for (size_t i = 0; i < sizeof events / sizeof *events; ++i) {
    CHECK_OK(peer_publish(&p.here, "n", events[i], NULL, 0));
    record_wait(r, (int)i + 1);
    CHECK(record_is(r, events[i], NULL, 0));
  }
  pair_end(&p);
}
