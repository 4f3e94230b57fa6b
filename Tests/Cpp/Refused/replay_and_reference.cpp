// error: this signal cannot replay: give it arguments that are copyable values
#include <multicast.hpp>

void refused() {
#ifndef ACCEPTED
  const mcast::signal<void(int &)> s{mcast::replay(1)};
#else
  const mcast::signal<void(const int &)> s{mcast::replay(1)};
#endif
}
