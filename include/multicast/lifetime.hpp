// SPDX-License-Identifier: MIT
//
// Delegates that are removed together.
#ifndef MULTICAST_LIFETIME_HPP
#define MULTICAST_LIFETIME_HPP

#include <cstddef>

#include "error.hpp"
#include "handle.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// A lifetime. Delegates added under a lifetime are removed together when the lifetime ends.
///
/// Threads:   any. The destructor waits for calls on other threads, as multicast_lifetime_end()
///            does.
/// @since 1.0
class lifetime : public detail::owner<multicast_lifetime, multicast_lifetime_end> {
 public:
  /// Creates a lifetime, as multicast_lifetime_create() does.
  ///
  /// Cost:      O(1); memory is allocated for many lifetimes at a time.
  /// @since 1.0
  lifetime() : owner(multicast_lifetime_create()) {}
  /// Ends the lifetime early: removes its registrations and waits for running calls.
  ///
  /// @return The result of multicast_lifetime_end().
  ///
  /// Threads:   waits for calls on other threads.
  /// Reentry:   returns MULTICAST_PENDING inside a call to one of its delegates.
  /// Cost:      like multicast_lifetime_end().
  /// @since 1.0
  multicast_status end() noexcept { return multicast_lifetime_end(handle_); }
  /// Returns the number of registrations under the lifetime.
  ///
  /// @return The number. A delegate whose tracked object has died is counted until it is removed.
  ///
  /// Cost:      O(1).
  /// @since 1.1
  size_t count() const { return detail::count(multicast_lifetime_count(handle_)); }
};

}  // namespace mcast

#endif
