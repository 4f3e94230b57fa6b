// error: the object must live longer than this call
#include <multicast.hpp>
struct object {
  void hear() {}
};

void refused(mcast::queue &loop) {
  mcast::signal<void()> s;
#ifndef ACCEPTED
  s.add(object(), &object::hear);
#endif
  object o;
  s.add(o, &object::hear);
  static_cast<void>(loop);
}
