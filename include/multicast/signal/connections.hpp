// SPDX-License-Identifier: MIT
//
// A signal's functions, under the names that other libraries use.
#ifndef MULTICAST_SIGNAL_CONNECTIONS_HPP
#define MULTICAST_SIGNAL_CONNECTIONS_HPP

#include <utility>

#include "contents.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// A signal's functions, under the names that other libraries use.
template <typename R, typename... Args>
class connections : public contents<R, Args...> {
  using base = contents<R, Args...>;

 public:
  /// Another name of add(). Options must be passed as on(), priority() and so on, not in braces.
  ///
  /// @param given  As for add().
  /// @return The result of add().
  ///
  /// Cost:      like add().
  /// @since 1.1
  template <typename... Given>
  registration connect(Given &&...given) {
    return base::add(std::forward<Given>(given)...);
  }
  use_static_cast_to_name_one_overloaded_function connect(...) = delete;
  template <auto method, typename... Given>
  registration connect(Given &&...given) {
    return base::template add<method>(std::forward<Given>(given)...);
  }
  /// Another name of remove().
  ///
  /// @param first  As for remove().
  /// @param more   As for remove().
  /// @return The result of remove().
  ///
  /// Cost:      like remove().
  /// @since 1.1
  template <typename First, typename... More>
  auto disconnect(First &&first, More &&...more) {
    return base::remove(std::forward<First>(first), std::forward<More>(more)...);
  }
  template <auto method, typename... Given>
  auto disconnect(Given &&...given) {
    return base::template remove<method>(std::forward<Given>(given)...);
  }

 protected:
  using base::base;
  using base::target_;
};

}  // namespace mcast::detail

#endif
