/* Tests observers of prefixes. */

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
