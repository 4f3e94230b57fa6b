// error: all\(\), any\(\) and all_or_undo\(\) take results that are conditions
#include <multicast.hpp>

void refused(mcast::queue &loop) {
  mcast::signal<std::string()> s;
#ifndef ACCEPTED
  static_cast<void>(s.all());
#endif
  static_cast<void>(s.first_of());
  static_cast<void>(loop);
}
