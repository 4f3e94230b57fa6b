// error: post\(\) takes a callable without arguments
#include <multicast.hpp>

void refused(mcast::queue &loop) {
#ifndef ACCEPTED
  loop.post([](int) {});
#endif
  loop.post([] {});
  static_cast<void>(loop);
}
