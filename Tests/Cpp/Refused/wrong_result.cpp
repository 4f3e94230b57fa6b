// error: the delegate cannot be called with the arguments of the signal
#include <multicast.hpp>

void refused(mcast::queue &loop) {
  mcast::signal<int(int)> s;
#ifndef ACCEPTED
  s.add([](int) {});
#endif
  s.add([](int n) { return n; });
  static_cast<void>(loop);
}
