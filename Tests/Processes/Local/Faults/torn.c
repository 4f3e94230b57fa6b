/* A publisher overwrites its ring while a peer reads it. If an entry is overwritten while the peer
 * copies it, the peer must not deliver the entry. */

#include "../groups.h"
#include "requests.h"

enum { RING = 1 << 16, MANY = 200, SMALL = 1000, LARGE = 8000 };
static const char name[] = "a torn one"; /* no other copy has this size */

static peer here, there;
static gate entered = GATE_INIT, let_go = GATE_INIT;
static int next, wrong;

/* All bytes of a payload have the same value, which increases from payload to payload. */
FUNCTION(check_whole, int *last) {
  const unsigned char *bytes = payload;
  for (size_t i = 1; i < size; ++i) ADD(wrong, bytes[i] != bytes[0]);
  if (size == 0 || bytes[0] <= *last) ADD(wrong, 1);
  else *last = bytes[0];
  gate_open(&entered);
  gate_wait(&let_go);
}

static void publish_next(size_t size) {
  char payload[LARGE];
  memset(payload, ++next, size);
  CHECK_OK(peer_publish(&here, name, 1, payload, size));
}

static void pair_start(broker *b, int *last) {
  next = *last = 0;
  broker_start(b, NULL);
  peer_connect_with(&there, b->port, NULL);
  peer_connect_with(&here, b->port,
                    &OPTIONS(.ring_bytes = RING, .overflow = MULTICAST_OVERFLOW_DROP_OLDEST));
  peer_observe(&there, name, DELEGATE(check_whole, last));
  peer_flush(&here);
}

static bool are_counted(int count) {
  const transport_stats stats = peer_stats(&there);
  return stats.delivered + stats.overwritten == (uint64_t)count;
}

static void pair_end(broker *b) {
  EVENTUALLY(are_counted(next));
  CHECK(refusal_was_made());
  CHECK(peer_stats(&there).overwritten > 0);
  CHECK_EQ(LOAD(wrong) + LOAD(there.expelled), 0);
  peer_release(&here);
  peer_release(&there);
  broker_delete(b);
}

static void disturb_copy(size_t size, size_t at, asking_thread asking, void (*call)(void)) {
  disturbed_at = at;
  disturb = call;
  STORE(disturbed_size, size); /* the transport's thread may copy meanwhile */
  refuse_request(COPYING, 0, asking);
}

/* ---- A fast publisher ------------------------------------------------------------------------ */

static void overwrite_all(void) {
  while (next < MANY) publish_next(SMALL);
}

/* The publisher overwrites all entries just before the reader copies an entry's header, name or
 * payload, or when the reader is halfway through such a copy. */
TEST(what_is_overwritten_while_it_is_copied_is_not_delivered) {
  static const size_t sizes[] = {32 /* an entry's header */, sizeof name - 1, SMALL};
  requests_are_of_the_test();
  gate_open(&let_go);
  for (row = 0; row < 6; ++row) {
    const size_t size = sizes[row / 2];
    broker b;
    int last;
    pair_start(&b, &last);
    disturb_copy(size, row % 2 * size / 2, OF_A_TRANSPORT, overwrite_all);
    publish_next(SMALL);
    EVENTUALLY(are_counted(MANY));
    pair_end(&b);
  }
  row = -1;
}

/* ---- An interrupted publisher ---------------------------------------------------------------- */

static void read_meanwhile(void) {
  const int before = next - 1;
  gate_open(&let_go);
  EVENTUALLY(are_counted(before));
}

/* The publisher records which entries it is about to overwrite, and then overwrites them. While the
 * reader delivers the first entry, the publisher writes its tenth entry, which overwrites the
 * header of the second entry. The reader must not read the second entry. */
TEST(what_is_being_overwritten_is_not_delivered) {
  broker b;
  int last;
  requests_are_of_the_test();
  pair_start(&b, &last);
  publish_next(LARGE);
  gate_wait(&entered);
  while (next < 9) publish_next(LARGE);
  disturb_copy(LARGE, LARGE / 2, OF_THE_TEST, read_meanwhile);
  publish_next(LARGE);
  pair_end(&b);
}
