// SPDX-License-Identifier: MIT
//
// Whether a signal has listeners.
#ifndef MULTICAST_LISTENER_FLAG_HPP
#define MULTICAST_LISTENER_FLAG_HPP

#include <cstdint>

#include "detail/config.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// Tells whether a signal has listeners, so that a program prepares costly arguments only if they
/// are used; see multicast_listener_flag().
///
///     const mcast::listener_flag has_listeners = changed.listener_flag();  // once
///     if (has_listeners) changed(describe(document));                      // each time
///
/// The flag may outlive the signal, but then its value is meaningless.
/// @since 1.1
class listener_flag {
 public:
  /// Like signal::listener_flag().
  ///
  /// @param target  A multicast; zero: a flag that is never set.
  ///
  /// Cost:      like multicast_listener_flag().
  /// @since 1.1
  explicit listener_flag(multicast target) noexcept
      : flag_(multicast_listener_flag(target)) {}
  /// Whether there are listeners. Paused delegates are listeners, and so are delegates whose
  /// objects are dead, until a call detects that.
  ///
  /// @return Like multicast_has_listeners().
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  explicit operator bool() const noexcept { return multicast_has_listeners(flag_); }

 private:
  const uint32_t *flag_;
};

}  // namespace mcast

#endif
