/* Tests observers of prefixes. If a prefix has an observer, the transport subscribes to all names
 * in addition to the individual names. */

#include "../Transports/Harness/prefixes.h"

TEST_OF_BROKER(names_that_begin_with_a_prefix_arrive_once, NULL) {
  SCOPED peer here, there;
  publish_to_prefixes(b, &here, &there);
  end(&there);
}

/* Some names have observers before the prefix has an observer, and other names get observers
 * later. */
TEST_OF_BROKER(names_and_a_prefix_of_them_arrive_once, NULL) {
  SCOPED peer here, there;
  log l = no_log;
  const multicast_delegate d = DELEGATE(write_log, &l);
  peer_connect_to(&here, b);
  peer_connect_to(&there, b);
  attach(&there);
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "a/before", d, NULL, NULL));
  peer_flush(&there);
  multicast_token all = observe_prefix(&there, "a/", &l);
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "a/later", d, NULL, NULL));
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "b", d, NULL, NULL));
  peer_flush(&there);
  send(&here, "a/before", "1");
  send(&here, "a/later", "2");
  send(&here, "b", "3");
  send(&here, "c", "4");
  expect_log(&l, "?=1 a/before=1 ?=2 a/later=2 ?=3 ");
  CHECK_EQ(multicast_broadcaster_unregister_all(there.broadcaster, "a/before"), 1);
  CHECK_OK(multicast_token_remove(all));
  peer_flush(&there);
  send(&here, "a/before", "5");
  send(&here, "a/later", "6");
  send(&here, "a/other", "7");
  send(&here, "b", "8");
  expect_log(&l, "?=6 ?=8 ");
  end(&there);
}
