// error: this signal cannot replay: give it arguments that are copyable values
#include <multicast.hpp>

void refused() {
  auto how = mcast::replay(1);
  how.label = "texts";
#ifndef ACCEPTED
  const mcast::signal<void(std::unique_ptr<int>)> s{how};
#else
  const mcast::signal<void(std::shared_ptr<int>)> s{how};
#endif
}
