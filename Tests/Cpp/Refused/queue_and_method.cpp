// error: this signal cannot be queued: give it arguments that are copyable values
#include <multicast.hpp>
struct object {
  void hear(int &) {}
};

void refused(mcast::queue &loop) {
  mcast::signal<void(int &)> s;
  object o;
#ifndef ACCEPTED
  s.add(o, &object::hear, mcast::on(loop) | mcast::latest);
#endif
  s.add(o, &object::hear);
  static_cast<void>(loop);
}
