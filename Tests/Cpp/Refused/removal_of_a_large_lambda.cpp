// error: keep the registration that add\(\) returns
#include <multicast.hpp>

void refused(mcast::queue &loop) {
  mcast::signal<void()> s;
  char large[64] = {};
  const auto lambda = [large] { static_cast<void>(large); };
  s.add(lambda);
#ifndef ACCEPTED
  s.remove(lambda);
#endif
  static_cast<void>(loop);
}
