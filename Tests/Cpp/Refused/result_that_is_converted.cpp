// error: the delegate cannot be called .*, or returns something else
#include <multicast.hpp>

void refused(mcast::queue &loop) {
  static double number = 0;
  mcast::signal<const double &()> s;
#ifndef ACCEPTED
  s.add([] { return 1.0; });
#endif
  s.add([]() -> double & { return number; });
  static_cast<void>(loop);
}
