// error: the other signal cannot be invoked with the arguments of this one
#include <multicast.hpp>

void refused(mcast::queue &loop) {
  mcast::signal<int(int)> s;
  mcast::signal<void(int)> other;
  mcast::signal<int(int)> alike;
#ifndef ACCEPTED
  s.add(other);
#endif
  s.add(alike);
  static_cast<void>(loop);
}
