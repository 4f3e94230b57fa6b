// error: the results end with this call: let the combiner return a value
#include <memory>
#include <utility>

#include <multicast.hpp>

void refused(mcast::signal<std::unique_ptr<int>()> &s) {
#ifndef ACCEPTED
  static_cast<void>(s.combine([](auto first, auto) -> decltype(auto) { return *first; }));
#endif
  static_cast<void>(s.combine([](auto first, auto) { return std::move(*first); }));
}
