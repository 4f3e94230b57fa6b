/* The library keeps a name in memory only while a peer needs it, and limits the number of names. */

#include "../strangers.h"
#include "requests.h"

#include "../../Transports/Faults/faults.h"

/* Expects that the library holds exactly `count` memory blocks. First waits until the library holds
 * at most this number, because the transports' threads may free some blocks late. */
static void expect_blocks(int count) {
  EVENTUALLY(held_blocks() <= count);
  CHECK_EQ(held_blocks(), count);
}

static void say_names(const stranger *s, message_kind kind, uint32_t place, int count) {
  char name[16];
  for (int i = 0; i < count; ++i) {
    snprintf(name, sizeof name, "name %d", i);
    EVENTUALLY(message_send(s->socket, kind, place, 0, name, -1) == 0); /* the socket may be full */
  }
}

/* Tells the peer that all names have been sent, and waits until the peer has processed the
 * names. */
static void expect_heard(const stranger *s) {
  message m;
  int file;
  stranger_say(s, MESSAGE_SYNC, 1, NULL);
  do {
    EVENTUALLY(message_receive(s->socket, &m, &file) == RECEIPT_MESSAGE);
  } while (m.kind != MESSAGE_DONE);
}

TEST_OF_BROKER(names_of_others_are_freed_when_nobody_needs_them, NULL) {
  SCOPED peer here;
  stranger s;
  peer_connect_to(&here, b);
  peer_flush(&here);
  for (uint32_t kind = 0; kind < 2; ++kind) {
    const int before = held_blocks();
    stranger_connect(&s, b);
    stranger_greet(&s);
    expect_heard(&s);
    const int met = held_blocks();
    say_names(&s, MESSAGE_WANT, kind, 50);
    expect_heard(&s);
    CHECK(held_blocks() >= met + 100);
    say_names(&s, MESSAGE_UNWANT, kind, 50);
    expect_heard(&s);
    expect_blocks(met);
    say_names(&s, MESSAGE_WANT, kind, 50);
    expect_heard(&s);
    stranger_end(&s);
    expect_blocks(before);
  }
}

static bool retains_all(void *context, const char *protocol, uint32_t event) { return true; }

/* The memory of a retained value is not freed when a peer stops observing the name. Values that are
 * too large are refused, and occupy no memory. */
TEST_OF_BROKER(names_that_are_kept_stay, NULL) {
  SCOPED peer here;
  stranger s;
  static char large[1 << 15];
  peer_connect_with(&here, b->port, &OPTIONS(.retains = retains_all, .ring_bytes = 1 << 16,
                                             .max_payload = 0));
  CHECK_OK(peer_publish(&here, "kept", 1, "x", 1));
  const int before = held_blocks();
  CHECK_ERROR(peer_publish(&here, "large", 1, large, sizeof large), LIMIT);
  for (int i = 0; i < 2; ++i)
    peer_publish(&here, "kept too", (uint32_t)i, large, 20000);
  CHECK_EQ(peer_stats(&here).refused, 2);
  CHECK_EQ(held_blocks(), before + 3);
  stranger_connect(&s, b);
  stranger_greet(&s);
  stranger_say(&s, MESSAGE_WANT, 0, "kept");
  stranger_say(&s, MESSAGE_UNWANT, 0, "kept");
  stranger_say(&s, MESSAGE_WANT, 0, "kept");
  expect_heard(&s);
  stranger_end(&s);
  expect_blocks(before + 3);
}

static void observe(peer *p, int i, bool is_observed) {
  char name[16];
  snprintf(name, sizeof name, "own %d", i);
  if (is_observed) CHECK_OK(p->transport.subscribe(p->transport.context, name));
  else p->transport.unsubscribe(p->transport.context, name);
}

/* Names without observers are freed in both peers, although a third peer is silent and has not
 * received the names. */
TEST_OF_BROKER(names_of_before_are_freed, NULL) {
  SCOPED peer here, there;
  stranger silent;
  peer_connect_to(&here, b);
  stranger_connect(&silent, b);
  peer_connect_to(&there, b);
  peer_meet(&there, 1);
  observe(&there, -1, true);
  peer_flush(&there);
  const int before = held_blocks();
  for (int i = 0; i < 2000; ++i) {
    observe(&there, i, true);
    if (i % 3 == 0) peer_flush(&there);
    observe(&there, i, false);
    if (i % 5 == 0) peer_flush(&there);
  }
  peer_flush(&there);
  peer_flush(&here);
  CHECK(held_blocks() <= before + 4); /* for the observed name and one more */
  stranger_end(&silent);
}

TEST_OF_BROKER(too_many_names_are_refused, NULL) {
  SCOPED peer here, there;
  responder r = {"r", 0, 0};
  peer_connect_to(&here, b);
  peer_connect_to(&there, b);
  peer_meet(&there, 1);
  for (int i = 0; i < NAMES_THERE; ++i) observe(&there, i, true);
  CHECK_ERROR(there.transport.subscribe(there.transport.context, "more"), LIMIT);
  CHECK_ERROR(transport_answer(&there.transport, "more", respond, &r, note_release_of_responder),
              LIMIT);
  CHECK_EQ(r.releases, 1);
  CHECK_EQ(peer_stats(&there).names, NAMES_THERE);
  observe(&there, 0, true); /* the name is observed already */
  observe(&there, 0, false);
  CHECK_OK(transport_answer(&there.transport, "more", respond, &r, NULL));
  CHECK_ERROR(there.transport.subscribe(there.transport.context, "more"), LIMIT);
  CHECK_OK(transport_answer(&there.transport, "more", NULL, NULL, NULL));
  for (int i = 0; i < 1000; ++i) {
    observe(&there, i % NAMES_THERE, false);
    CHECK_OK(there.transport.subscribe(there.transport.context, "more"));
    there.transport.unsubscribe(there.transport.context, "more");
    if (i % NAMES_THERE > 0) observe(&there, i % NAMES_THERE, true);
  }
  peer_flush(&there);
  CHECK_EQ(LOAD(here.expelled) + LOAD(there.expelled), 0);
}

TEST_OF_BROKER(peer_with_too_many_names_is_cut_off, NULL) {
  SCOPED peer here;
  stranger s;
  peer_connect_to(&here, b);
  const int before = held_blocks();
  stranger_connect(&s, b);
  stranger_greet(&s);
  /* A name that is announced twice counts only once. */
  for (int i = 0; i < 3; ++i) {
    say_names(&s, MESSAGE_WANT, 0, NAMES_THERE);
    say_names(&s, MESSAGE_WANT, 1, NAMES_THERE);
    expect_heard(&s);
  }
  CHECK_EQ(LOAD(here.expelled), 0);
  stranger_say(&s, MESSAGE_WANT, 0, "one more");
  EVENTUALLY(LOAD(here.expelled) == 1);
  stranger_end(&s);
  expect_blocks(before);
}

/* ---- Many changes ---------------------------------------------------------------------------- */

static void observe_each(peer *p, int first, bool is_observed) {
  for (int i = first; i < first + NAMES_THERE - 10; ++i) observe(p, i, is_observed);
}

/* Makes these names the first ones in the list of changes. */
static void change_each(peer *p, int first) {
  for (int i = first; i < first + NAMES_THERE - 10; ++i) {
    observe(p, i, true);
    observe(p, i, false);
  }
}

/* Makes the thread of a transport stay in its observer of `name` until `let_go` is opened. */
static void block(peer *asker, const char *name, blocker *b) {
  CHECK_OK(peer_publish(asker, name, 1, NULL, 0));
  gate_wait(&b->entered);
}

FUNCTION(replace_first_name, peer *p) {
  observe(p, 2, true);
  CHECK_OK(p->transport.subscribe(p->transport.context, "\0own")); /* a prefix */
  observe(p, 1, false);
}

/* A program that replaces an observer by another one, such as one of a prefix, misses nothing. */
TEST_OF_BROKER(names_are_announced_in_the_order_of_their_changes, NULL) {
  SCOPED peer here, there;
  static const struct {
    message_kind kind;
    const char *text;
  } expected[] = {{MESSAGE_WANT, "own 2"}, {MESSAGE_WANT, "*own"}, {MESSAGE_UNWANT, "own 1"}};
  stranger s;
  message m;
  int file;
  peer_connect_to(&here, b);
  peer_observe(&here, "replace", DELEGATE(replace_first_name, &here));
  observe(&here, 1, true);
  stranger_connect(&s, b);
  stranger_greet(&s);
  EVENTUALLY(peer_stats(&here).joined == 1);
  peer_connect_to(&there, b);
  peer_meet(&there, 1);
  CHECK_OK(peer_publish(&there, "replace", 1, NULL, 0));
  memset(&m, 0, sizeof m);
  do {
    EVENTUALLY(message_receive(s.socket, &m, &file) == RECEIPT_MESSAGE);
  } while (m.kind != MESSAGE_UNWANT && strcmp(m.text, "own 2") != 0);
  for (int i = 0; i < 3; ++i) {
    CHECK_EQ(m.kind, expected[i].kind);
    CHECK_TEXT(m.text, expected[i].text);
    if (i < 2) EVENTUALLY(message_receive(s.socket, &m, &file) == RECEIPT_MESSAGE);
  }
  stranger_end(&s);
}

/* The peer reads the announcements slowly, and meanwhile all names are replaced twice. At no time
 * are there too many names. */
TEST_OF_BROKER(names_that_are_replaced_meanwhile_are_not_too_many, NULL) {
  enum { A = 0, B = 1000, C = 2000 };
  SCOPED peer here, there, asker;
  blocker first = BLOCKER_INIT, second = BLOCKER_INIT, of_here = BLOCKER_INIT;
  peer_connect_to(&here, b);
  peer_connect_to(&there, b);
  peer_connect_to(&asker, b);
  peer_meet(&asker, 2);
  observe_each(&there, A, true);
  peer_observe(&there, "first", blocking(&first));
  peer_observe(&there, "second", blocking(&second));
  peer_observe(&here, "here", blocking(&of_here));
  block(&asker, "here", &of_here);
  block(&asker, "first", &first);
  change_each(&there, B);
  observe_each(&there, A, false);
  observe_each(&there, B, true);
  gate_open(&first.let_go); /* announces the changes until the socket is full */
  pause_ms(A_WHILE_MS);
  block(&asker, "second", &second);
  change_each(&there, C);
  observe_each(&there, B, false);
  change_each(&there, A);
  observe_each(&there, C, true);
  gate_open(&second.let_go);
  pause_ms(A_WHILE_MS);
  gate_open(&of_here.let_go);
  peer_flush(&there);
  CHECK_EQ(LOAD(here.expelled) + LOAD(there.expelled), 0);
}
