// error: the delegate cannot be called with the arguments of the signal
#include <multicast.hpp>

void refused(mcast::queue &loop) {
  mcast::signal<void(int, bool)> s;
#ifndef ACCEPTED
  s.add([](const char *) {});
#endif
  s.add([](int, bool) {});
  static_cast<void>(loop);
}
