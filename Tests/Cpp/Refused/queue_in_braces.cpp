// error: this signal cannot be queued: give it arguments that are copyable values
#include <multicast.hpp>

void refused(mcast::queue &loop) {
  mcast::signal<void(int &)> s;
#ifndef ACCEPTED
  s.add([](int &) {}, {false, false, false, false, 0, {}, loop});
#endif
  s.add([](int &) {}, {true});
  static_cast<void>(loop);
}
