// error: the results end with this call: let the combiner return a value
#include <multicast.hpp>

void refused(mcast::signal<int()> &s) {
#ifndef ACCEPTED
  static_cast<void>(s.combine([](auto first, auto) { return first; }));
#endif
  static_cast<void>(s.combine([](auto first, auto) { return *first; }));
}
