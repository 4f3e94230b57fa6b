// error: is not a method of the object
#include <multicast.hpp>
struct object {
  void hear() {}
};
struct stranger {
  void hear() {}
};

void refused(mcast::queue &loop) {
  mcast::signal<void()> s;
  object o;
#ifndef ACCEPTED
  s.add(o, &stranger::hear);
#endif
  s.add(o, &object::hear);
  static_cast<void>(loop);
}
