/* Prefixes: one subscription of all names, beside those of names. */

#include "../Transports/Harness/prefixes.h"

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
  end(&there);
}


/* Names that were subscribed before, and those that are observed later. */
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
