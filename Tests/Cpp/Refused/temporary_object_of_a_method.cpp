// error: the object must live longer than this call
#include <multicast.hpp>

struct listener {
  void hear(int) {}
};
void refused(mcast::queue &loop) {
  mcast::signal<void(int)> s;
  listener kept;
#ifndef ACCEPTED
  s.add<&listener::hear>(listener());
#endif
  s.add<&listener::hear>(kept, mcast::on(loop));
}
