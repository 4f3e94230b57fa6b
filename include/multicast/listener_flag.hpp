// SPDX-License-Identifier: MIT
//
// A flag that shows whether a signal has listeners.
#ifndef MULTICAST_LISTENER_FLAG_HPP
#define MULTICAST_LISTENER_FLAG_HPP

#include <cstdint>

#include "detail/config.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// Shows whether a signal has listeners, so that a program can prepare expensive arguments only if
/// a listener will receive them; see multicast_listener_flag().
///
///     const mcast::listener_flag has_listeners = changed.listener_flag();  // once
///     if (has_listeners) changed(describe(document));                      // each time
///
/// The flag may be read even after the signal has been destroyed, but its value is meaningless
/// from then on.
/// @since 1.1
class listener_flag {
 public:
  /// Like signal::listener_flag().
  ///
  /// @param target  The multicast. A zero handle creates a flag that is never set.
  ///
  /// Cost:      like multicast_listener_flag().
  /// @since 1.1
  explicit listener_flag(multicast target) noexcept
      : flag_(multicast_listener_flag(target)) {}
  /// Whether there are listeners. Paused delegates count. A delegate whose tracked object has died
  /// counts as a listener until a call detects this.
  ///
  /// @return The result of multicast_has_listeners().
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  explicit operator bool() const noexcept { return multicast_has_listeners(flag_); }

 private:
  const uint32_t *flag_;
};

}  // namespace mcast

#endif
