// error: the next invocation of this signal cannot be kept
#include <multicast/next.hpp>

void refused(mcast::queue &loop) {
  mcast::signal<void(int &)> s;
  mcast::signal<void(const int &)> kept;
#ifndef ACCEPTED
  static_cast<void>(mcast::next(s));
#endif
  static_cast<void>(mcast::next(kept));
  static_cast<void>(loop);
}
