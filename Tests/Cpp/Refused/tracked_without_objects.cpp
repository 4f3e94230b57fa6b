// error: tracked\(\) takes a callable and pointers
#include <multicast.hpp>

void refused(mcast::queue &loop) {
  mcast::signal<void()> s;
#ifndef ACCEPTED
  s.add(mcast::tracked([] {}, 3));
#endif
  s.add(mcast::tracked([] {}, std::make_shared<int>()));
  static_cast<void>(loop);
}
