// error: these are not the arguments of the signal; a reference takes a variable
#include <multicast.hpp>

void refused(mcast::signal<int(int &)> &s) {
  int variable = 1;
#ifndef ACCEPTED
  static_cast<void>(s.results(1));
#endif
  static_cast<void>(s.results(variable));
}
