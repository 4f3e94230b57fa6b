// SPDX-License-Identifier: MIT
//
// Delegates that are removed together.
#ifndef MULTICAST_LIFETIME_HPP
#define MULTICAST_LIFETIME_HPP

#include <cstddef>

#include "detail/owner.hpp"
#include "detail/statuses.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// A lifetime: delegates that are added under it are removed together.
///
/// Threads:   any. The destructor waits for calls on other threads, as multicast_lifetime_end()
///            does.
/// @since 1.0
class lifetime : public detail::owner<multicast_lifetime, multicast_lifetime_end> {
 public:
  /// Creates one.
  lifetime() : owner(multicast_lifetime_create()) {}
  /// Ends it early.
  multicast_status end() noexcept { return multicast_lifetime_end(handle_); }
  /// How many registrations there are under it.
  /// @since 1.1
  size_t count() const { return detail::count(multicast_lifetime_count(handle_)); }
};

}  // namespace mcast

#endif
