// SPDX-License-Identifier: MIT
//
// Whether anybody listens to a signal.
#ifndef MULTICAST_INTEREST_HPP
#define MULTICAST_INTEREST_HPP

#include <cstdint>

#include "detail/config.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// Whether anybody listens to a signal, for what is costly to prepare; see multicast_interest().
///
///     const mcast::interest wanted = changed.interest();   // once
///     if (wanted) changed(describe(document));             // each time
///
/// It may outlive the signal. After that its value says nothing.
///
/// Threads:   any.
/// @since 1.1
class interest {
 public:
  /// The same as signal::interest().
  ///
  /// @param target  A multicast; none: nobody listens, for ever.
  ///
  /// Cost:      as multicast_interest().
  /// @since 1.1
  explicit interest(multicast target) noexcept : word_(multicast_interest(target)) {}
  /// Whether anybody listens: paused delegates count, and those whose objects are dead until a call
  /// finds that.
  ///
  /// @return As multicast_is_wanted().
  ///
  /// Cost:      O(1), no call.
  /// @since 1.1
  explicit operator bool() const noexcept { return multicast_is_wanted(word_); }

 private:
  const uint32_t *word_;
};

}  // namespace mcast

#endif
