/* Tests the policies for a full ring. */

#include "groups.h"

#include <signal.h>

enum { RING = 1 << 16 };

/* An observer that first waits at a gate, and then expects increasing numbers. */
typedef struct reader {
  gate g;
  int count, last, wrong;
} reader;

FUNCTION(read_number, reader *r) {
  int number = -1;
  gate_wait(&r->g);
  if (size >= sizeof number) memcpy(&number, payload, sizeof number);
  if (number <= r->last) ADD(r->wrong, 1);
  STORE(r->last, number);
  ADD(r->count, 1);
}

static const reader no_reader = {GATE_INIT, 0, -1, 0};

/* Starts two peers. `here` has a small ring and the given policy, and `there` has the observer. */
static void pair_start(broker *b, peer *here, peer *there, reader *r,
                       const transport_options *more) {
  broker_start(b, NULL);
  peer_connect_with(there, b->port, NULL);
  peer_connect_with(here, b->port, more);
  peer_observe(there, "n", DELEGATE(read_number, r));
  peer_meet(here, 1);
}

static void pair_end(broker *b, peer *here, peer *there) {
  peer_release(here);
  peer_release(there);
  broker_delete(b);
}

static multicast_status publish_number(peer *p, int number) {
  char payload[100] = {0};
  memcpy(payload, &number, sizeof number);
  return peer_publish(p, "n", 1, payload, sizeof payload);
}

TEST(full_ring_refuses_and_loses_nothing) {
  broker b;
  peer here, there;
  reader r = no_reader;
  int count = 0;
  pair_start(&b, &here, &there, &r, &OPTIONS(.ring_bytes = RING));
  while (publish_number(&here, count) == MULTICAST_OK) CHECK(++count < RING / 100);
  CHECK_ERROR(publish_number(&here, count), QUEUE_FULL);
  CHECK(count >= RING / 160);
  CHECK_EQ(peer_stats(&here).refused, 2);
  CHECK_EQ(peer_stats(&here).sent, count);
  gate_open(&r.g);
  EVENTUALLY(LOAD(r.count) == count);
  CHECK_OK(publish_number(&here, count));
  EVENTUALLY(LOAD(r.count) == count + 1);
  CHECK_EQ(r.wrong, 0);
  CHECK_EQ(peer_stats(&there).lost, 0);
  pair_end(&b, &here, &there);
}

TEST(full_ring_drops_the_oldest_and_counts_them) {
  enum { MANY = 5000 };
  broker b;
  peer here, there;
  reader r = no_reader;
  pair_start(&b, &here, &there, &r,
             &OPTIONS(.ring_bytes = RING, .overflow = MULTICAST_OVERFLOW_DROP_OLDEST));
  for (int i = 0; i < MANY; ++i) CHECK_OK(publish_number(&here, i));
  gate_open(&r.g);
  EVENTUALLY(LOAD(r.last) == MANY - 1);
  EVENTUALLY(peer_stats(&there).delivered + peer_stats(&there).overwritten == MANY);
  CHECK_EQ(r.wrong, 0);
  CHECK_EQ(r.count, (int)peer_stats(&there).delivered);
  CHECK(r.count >= RING / 160);
  EVENTUALLY(LOAD(there.lost) >= 1); /* the loss was reported */
  CHECK_EQ(peer_stats(&here).sent, MANY);
  CHECK_EQ(peer_stats(&here).refused, 0);
  pair_end(&b, &here, &there);
}

/* The publisher repeatedly overwrites entries that the reader has not read, and the reader
 * continues with later entries. Entries of names that the reader does not observe do not count as
 * lost. */
TEST(losses_are_counted_exactly_while_it_goes_on) {
  enum { MANY = 400000 };
  broker b;
  SCOPED peer other;
  peer here, there;
  reader r = no_reader;
  int others = 0;
  gate_open(&r.g);
  pair_start(&b, &here, &there, &r,
             &OPTIONS(.ring_bytes = RING, .overflow = MULTICAST_OVERFLOW_DROP_OLDEST));
  peer_connect_with(&other, b.port, NULL);
  peer_observe(&other, "m", counter(&others));
  peer_meet(&here, 2);
  for (int i = 0; i < MANY; ++i) {
    CHECK_OK(publish_number(&here, i));
    if (i % 3 == 0) CHECK_OK(peer_publish(&here, "m", 1, "x", 1));
  }
  peer_flush(&here);
  EVENTUALLY(peer_stats(&there).delivered + peer_stats(&there).overwritten == MANY);
  EVENTUALLY(peer_stats(&other).delivered + peer_stats(&other).overwritten == MANY / 3 + 1);
  CHECK_EQ(r.wrong, 0);
  CHECK_EQ(r.last, MANY - 1);
  peer_release(&other);
  pair_end(&b, &here, &there);
}

TEST(full_ring_blocks_until_there_is_room) {
  enum { MANY = 100000 };
  broker b;
  peer here, there;
  reader r = no_reader;
  gate_open(&r.g);
  pair_start(&b, &here, &there, &r,
             &OPTIONS(.ring_bytes = RING, .overflow = MULTICAST_OVERFLOW_BLOCK,
                      .block_ns = 20000000000u));
  for (int i = 0; i < MANY; ++i) CHECK_OK(publish_number(&here, i));
  EVENTUALLY(LOAD(r.count) == MANY);
  CHECK_EQ(r.wrong, 0);
  pair_end(&b, &here, &there);
}

TEST(block_ends_after_its_time) {
  broker b;
  peer here, there;
  reader r = no_reader;
  multicast_status status;
  uint64_t began;
  int count = 0;
  pair_start(&b, &here, &there, &r,
             &OPTIONS(.ring_bytes = RING, .overflow = MULTICAST_OVERFLOW_BLOCK,
                      .block_ns = 50000000));
  do {
    began = time_now();
    status = publish_number(&here, count++);
  } while (status == MULTICAST_OK);
  CHECK_STATUS(status, MULTICAST_ERROR_QUEUE_FULL);
  CHECK(time_now() - began >= 50000000);
  CHECK(time_now() - began < 5000000000u);
  gate_open(&r.g);
  EVENTUALLY(LOAD(r.count) == count - 1);
  pair_end(&b, &here, &there);
}

THREAD(kill_soon, remote *r) {
  pause_ms(100);
  remote_end(r, SIGKILL);
}

TEST(block_ends_with_the_peer) {
  static const char *const names[] = {"n", NULL};
  broker b;
  peer here;
  broker_prepare(&b, NULL);
  remote r = remote_start(b.port, "stopped", names);
  peer_connect_with(&here, b.port,
                    &OPTIONS(.ring_bytes = RING, .overflow = MULTICAST_OVERFLOW_BLOCK,
                             .block_ns = MULTICAST_FOREVER));
  peer_meet(&here, 1);
  CHECK_EQ(kill(r.pid, SIGSTOP), 0);
  pthread_t thread = start_thread(kill_soon, &r);
  for (int i = 0; i < 2000; ++i) CHECK_OK(publish_number(&here, i));
  join_thread(thread);
  EVENTUALLY(LOAD(here.gone) == 1);
  peer_release(&here);
  broker_delete(&b);
}

TEST(peer_without_observers_of_the_name_holds_up_nothing) {
  static const char *const names[] = {"other", NULL};
  broker b;
  peer here, there;
  reader r = no_reader;
  gate_open(&r.g);
  broker_prepare(&b, NULL);
  remote stopped = remote_start(b.port, "stopped", names);
  peer_connect_with(&there, b.port, NULL);
  peer_observe(&there, "n", DELEGATE(read_number, &r));
  peer_connect_with(&here, b.port,
                    &OPTIONS(.ring_bytes = RING, .overflow = MULTICAST_OVERFLOW_BLOCK,
                             .block_ns = 20000000000u));
  peer_meet(&here, 2);
  do { /* until `here` knows the name of the other process */
    CHECK_OK(peer_publish(&here, "other", 1, "x", 1));
    pause_ms(1);
  } while (LOAD(*stopped.arrived) == 0);
  EVENTUALLY((uint64_t)LOAD(*stopped.arrived) == peer_stats(&here).sent);
  const int before = LOAD(*stopped.arrived);
  CHECK_EQ(kill(stopped.pid, SIGSTOP), 0);
  for (int i = 0; i < 10000; ++i) CHECK_OK(publish_number(&here, i));
  EVENTUALLY(LOAD(r.count) == 10000);
  /* The ring was overwritten many times while the process was stopped, but no entry was for this
   * process. */
  CHECK_OK(peer_publish(&here, "other", 1, "x", 1));
  CHECK_EQ(kill(stopped.pid, SIGCONT), 0);
  EVENTUALLY(LOAD(*stopped.arrived) == before + 1);
  remote_end(&stopped, SIGKILL);
  pair_end(&b, &here, &there);
}

TEST(payload_of_half_a_ring_arrives_and_a_larger_one_is_refused) {
  static char payload[RING];
  broker b;
  SCOPED peer here, there;
  record *r = record_create();
  broker_start(&b, NULL);
  peer_connect_with(&there, b.port, NULL);
  peer_connect_with(&here, b.port, &OPTIONS(.ring_bytes = RING));
  peer_observe(&there, "n", recorder(r));
  CHECK_EQ(peer_stats(&here).max_payload, RING / 2 - 1024);
  for (int i = 1; i <= 20; ++i) {
    memset(payload, i, sizeof payload);
    CHECK_OK(peer_publish(&here, "n", (uint32_t)i, payload, RING / 2 - 1024));
    record_wait(r, i);
    CHECK(record_is(r, (uint32_t)i, payload, RING / 2 - 1024));
  }
  CHECK_ERROR(peer_publish(&here, "n", 1, payload, RING / 2 - 1023), LIMIT);
  CHECK_EQ(peer_stats(&here).refused, 1);
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}
