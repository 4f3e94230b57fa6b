/* Prefixes: a peer wants all names that begin with one. */

#include "../Transports/Harness/prefixes.h"
#include "groups.h"

enum { RING = 1 << 16 };

static bool keeps_all(void *context, const char *name, uint32_t event) { return true; }

TEST_OF_BROKER(names_that_begin_with_a_prefix_arrive_once, NULL) {
  SCOPED peer here, there;
  log l = no_log;
  peer_connect_to(&here, b);
  peer_connect_to(&there, b);
  attach(&there);
  multicast_token doors = observe_prefix(&there, "door/", &l);
  peer_flush(&there);
  send(&here, "door/1", "a");
  send(&here, "window/1", "b");
  send(&here, "door", "c");
  expect_log(&l, "door/1=a ");
  CHECK_EQ(peer_stats(&here).unwanted, 2);
  /* A longer prefix, all names, and the name itself: each is called once. */
  multicast_token first = observe_prefix(&there, "door/1", &l);
  multicast_token all = observe_prefix(&there, "", &l);
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "door/1", DELEGATE(write_log, &l),
                                          NULL, NULL));
  peer_flush(&there);
  send(&here, "door/1", "d");
  send(&here, "window/1", "e");
  expect_log(&l, "?=d door/1=d door/1=d door/1=d window/1=e ");
  CHECK_OK(multicast_token_remove(all));
  CHECK_OK(multicast_token_remove(first));
  CHECK_EQ(multicast_broadcaster_unregister_all(there.broadcaster, "door/1"), 1);
  peer_flush(&there);
  send(&here, "door/1", "f");
  send(&here, "window/1", "g");
  expect_log(&l, "door/1=f ");
  CHECK_OK(multicast_token_remove(doors));
  peer_flush(&there);
  send(&here, "door/1", "h");
  expect_log(&l, "");
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
  /* The name was given with the other prefix. */
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

/* The peer announces its prefix to the new member only after its observer has returned. */
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
