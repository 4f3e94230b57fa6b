// error: a spy is of a signal without results
#include <multicast/spy.hpp>

void refused(mcast::queue &loop) {
  mcast::signal<int(int)> s;
  mcast::signal<void(int)> kept;
#ifndef ACCEPTED
  const mcast::spy answers(s);
#endif
  const mcast::spy seen(kept);
  static_cast<void>(loop);
}
