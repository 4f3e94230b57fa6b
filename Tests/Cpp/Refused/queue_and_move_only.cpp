// error: this signal cannot be queued: give it arguments that are copyable values
#include <multicast.hpp>

void refused(mcast::queue &loop) {
  mcast::signal<void(std::unique_ptr<int>)> s;
#ifndef ACCEPTED
  s.add([](const std::unique_ptr<int> &) {}, mcast::once | mcast::on(loop));
#endif
  s.add([](const std::unique_ptr<int> &) {}, mcast::once);
  static_cast<void>(loop);
}
