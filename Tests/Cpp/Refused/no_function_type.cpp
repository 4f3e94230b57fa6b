// error: a signal takes a function type
#include <multicast.hpp>

void refused(mcast::queue &loop) {
#ifndef ACCEPTED
  mcast::signal<int> s;
#else
  mcast::signal<void(int)> s;
#endif
  static_cast<void>(s);
  static_cast<void>(loop);
}
