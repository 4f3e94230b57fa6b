// error: this signal cannot be queued: give it arguments that are copyable values
#include <multicast.hpp>

void refused(mcast::queue &loop) {
  mcast::signal<void(int &)> s;
#ifndef ACCEPTED
  s.add([](int &) {}, mcast::on(loop));
#endif
  s.add([](int &) {}, mcast::priority(1));
  static_cast<void>(loop);
}
