/* Tests observers of prefixes. */

#include "../../../Sources/Transports/Common/Names/names.h"
#include "../Transports/Harness/prefixes.h"
#include "groups.h"

enum { RING = 1 << 16 };

static bool keeps_all(void *context, const char *name, uint32_t event) { return true; }

TEST_OF_BROKER(names_that_begin_with_a_prefix_arrive_once, NULL) {
  SCOPED peer here, there;
  publish_to_prefixes(b, &here, &there);
  CHECK_EQ(peer_stats(&here).unwanted, 4);
  end(&there);
}

TEST_OF_BROKER(who_observes_a_prefix_gets_the_last_values_once, NULL) {
  SCOPED peer here, there;
  const transport_options options = OPTIONS(.retains = keeps_all, .ring_bytes = RING);
  log l = no_log;
  peer_connect_with(&here, b->port, &options);
  send(&here, "k/1", "old");
  send(&here, "k/1", "new");
  send(&here, "other", "x");
  peer_connect_to(&there, b);
  attach(&there);
  observe_prefix(&there, "k/", &l);
  expect_log(&l, "k/1=new ");
  /* The value of "k/1" has already been delivered because of the prefix "k/". */
  observe_prefix(&there, "k", &l);
  expect_log(&l, "");
  send(&here, "k/1", "newer");
  send(&here, "k", "one");
  expect_log(&l, "k/1=newer k/1=newer k=one ");
  observe_prefix(&there, "o", &l);
  expect_log(&l, "other=x ");
  end(&there);
}

TEST_OF_BROKER(who_joins_is_told_the_prefixes, NULL) {
  SCOPED peer here, there;
  log l = no_log;
  peer_connect_to(&there, b);
  attach(&there);
  observe_prefix(&there, "", &l);
  peer_connect_to(&here, b);
  send(&here, "first", "a");
  send(&here, "second", "b");
  expect_log(&l, "first=a second=b ");
  end(&there);
}

typedef struct stop {
  gate entered, may_leave;
} stop;

FUNCTION(wait_for_gate, stop *s) {
  gate_open(&s->entered);
  gate_wait(&s->may_leave);
}

/* The peer can announce its prefix to the new member only after its observer has returned. */
TEST_OF_BROKER(prefix_of_a_peer_in_an_observer_gets_earlier_publications, NULL) {
  SCOPED peer there, asker, late;
  stop s = {GATE_INIT, GATE_INIT};
  log l = no_log;
  peer_connect_to(&there, b);
  attach(&there);
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "wait", DELEGATE(wait_for_gate, &s),
                                          NULL, NULL));
  observe_prefix(&there, "door/", &l);
  peer_connect_to(&asker, b);
  peer_meet(&asker, 1);
  send(&asker, "wait", "");
  gate_wait(&s.entered);
  peer_connect_to(&late, b);
  send(&late, "door/1", "a");
  send(&late, "window", "b");
  gate_open(&s.may_leave);
  peer_flush(&late);
  expect_log(&l, "door/1=a ");
  end(&there);
}

/* ---- A full ring ----------------------------------------------------------------------------- */

/* Counts notifications by kind: large old values of event 1, values of event 2, and small new
 * values of event 1. Each name ends with a digit, which is its index. */
typedef struct slow_reader {
  stop s;
  int olds[4], others[4], news[4], count;
  bool is_wrong; /* a new value did not come last */
} slow_reader;

FUNCTION(read_slowly, slow_reader *r) {
  const int i = multicast_current_name()[1] - '0';
  ++*(event == 2 ? &r->others[i] : size == 1 ? &r->news[i] : &r->olds[i]);
  if (r->news[i] > 0 && (event == 2 || size > 1)) r->is_wrong = true;
  ADD(r->count, 1);
  wait_for_gate(&r->s, event, payload, size);
}

/* The ring has room for the large values of two names. While the third name's values wait for room,
 * the large values are replaced, and a fourth name is published for the first time. */
TEST_OF_BROKER(values_that_change_while_they_wait_for_room_arrive_once, NULL) {
  static const char *const names[] = {"n0", "n1", "n2", "n3"};
  static char large[26000];
  SCOPED peer here, there;
  const transport_options options =
      OPTIONS(.retains = keeps_all, .ring_bytes = RING, .max_payload = 0);
  slow_reader r = {.s = {GATE_INIT, GATE_INIT}};
  int calls = 0;
  peer_connect_with(&here, b->port, &options);
  for (uint32_t event = 1; event <= 2; ++event)
    CHECK_OK(peer_publish(&here, "other", event, "y", 1));
  for (int i = 0; i < 3; ++i) {
    CHECK_OK(peer_publish(&here, names[i], 1, large, sizeof large));
    CHECK_OK(peer_publish(&here, names[i], 2, "y", 1));
  }
  peer_connect_to(&there, b);
  attach(&there);
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "other", counter(&calls), NULL, NULL));
  EVENTUALLY(LOAD(calls) == 2);
  CHECK_OK(multicast_broadcaster_register_prefix(there.broadcaster, "n",
                                                 DELEGATE(read_slowly, &r), NULL, NULL));
  gate_wait(&r.s.entered);
  for (int i = 0; i < 4; ++i) send(&here, names[i], "x");
  send(&here, "other", "x"); /* its values are not sent again */
  gate_open(&r.s.may_leave);
  peer_flush(&here);
  EVENTUALLY(LOAD(r.count) >= 9);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(r.count, 9);
  CHECK_EQ(LOAD(calls), 3);
  CHECK(!r.is_wrong);
  CHECK_EQ(r.olds[0] + r.olds[1] + r.olds[2] + r.olds[3], 2);
  for (int i = 0; i < 4; ++i) {
    CHECK_EQ(r.others[i], i < 3);
    CHECK_EQ(r.news[i], 1);
  }
  end(&there);
}

/* ---- Finding prefixes ------------------------------------------------------------------------ */

/* Writes up to `most` random letters. */
static void write_letters(char *text, int most) {
  int size = (int)draw((uint32_t)most + 1);
  text[size] = '\0';
  while (size > 0) text[--size] = "ab"[draw(2)];
}

/* Finds each prefix of random names exactly once, also after some prefixes have been removed. */
TEST(each_prefix_of_a_name_is_found_once) {
  char text[300] = "*";
  for (int round = 0; round < 2000; ++round) {
    const int most = round % 7 == 0 ? 255 : 6;
    names all = {0};
    for (uint32_t i = draw(40); i > 0; --i) {
      write_letters(text + 1, most);
      if (names_find(&all, text) == NULL) CHECK(names_add(&all, text) != NULL);
    }
    while (all.count > 0 && draw(3) == 0) names_remove(&all, names_next(&all, NULL));
    for (int i = 0; i < 20; ++i) {
      const known_name *each = NULL, *found = NULL;
      int expected = 0, count = 0;
      write_letters(text + 1, most);
      while ((each = names_next(&all, each)) != NULL)
        expected += names_begins_with(text + 1, each);
      for (; (found = names_next_prefix(&all, found, text + 1)) != NULL; ++count)
        CHECK(names_begins_with(text + 1, found));
      CHECK_EQ(count, expected);
    }
    names_free(&all);
  }
}
