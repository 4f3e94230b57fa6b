// error: is not a method of the object
#include <multicast.hpp>

struct listener {
  void hear() {}
};
void refused(mcast::queue &loop) {
  mcast::signal<void()> s;
  const auto owner = std::make_unique<listener>();
#ifndef ACCEPTED
  s.add(owner, &listener::hear);
#endif
  s.add(owner.get(), &listener::hear);
  static_cast<void>(loop);
}
