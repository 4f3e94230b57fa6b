// error: this signal cannot replay: .*the result void
#include <multicast.hpp>

void refused() {
#ifndef ACCEPTED
  const mcast::signal<int(int)> s{mcast::replay(1)};
#else
  const mcast::signal<void(int)> s{mcast::replay(1)};
#endif
}
