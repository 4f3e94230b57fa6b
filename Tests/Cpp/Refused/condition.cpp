// error: void
#include <multicast.hpp>

bool refused(mcast::signal<void(int)> &s) {
#ifndef ACCEPTED
  bool is_called = s(1);
#else
  bool is_called = s.invoke(1) > 0;
#endif
  return is_called;
}
