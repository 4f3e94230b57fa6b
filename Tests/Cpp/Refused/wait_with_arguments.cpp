// error: post_and_wait\(\) takes a callable without arguments
#include <multicast.hpp>

void refused(mcast::queue &loop) {
#ifndef ACCEPTED
  loop.post_and_wait([](int) {});
#endif
  loop.post_and_wait([] {});
}
