// error: this signal cannot be queued: give it arguments that are copyable values
#include <multicast.hpp>

void refused(mcast::queue &loop) {
  mcast::signal<int(int)> s;
#ifndef ACCEPTED
  s.add([](int n) { return n; }, mcast::on(loop));
#endif
  s.add([](int n) { return n; });
  static_cast<void>(loop);
}
