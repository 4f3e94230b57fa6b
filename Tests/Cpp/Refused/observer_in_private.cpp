// error: mcast::observer must be a public base class
#include <multicast.hpp>

#ifdef ACCEPTED
#define ACCESS public
#else
#define ACCESS private
#endif

struct listener : ACCESS mcast::observer {
  void hear() {}
};
void refused(mcast::queue &loop) {
  mcast::signal<void()> s;
  listener l;
  s.add(l, &listener::hear);
  static_cast<void>(loop);
}
