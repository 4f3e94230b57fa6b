// error: a spy cannot keep the arguments of this signal
#include <memory>
#include <multicast/spy.hpp>

void refused(mcast::queue &loop) {
  mcast::signal<void(std::unique_ptr<int>)> s;
  mcast::signal<void(int)> kept;
#ifndef ACCEPTED
  const mcast::spy unkept(s);
#endif
  const mcast::spy seen(kept);
  static_cast<void>(loop);
}
