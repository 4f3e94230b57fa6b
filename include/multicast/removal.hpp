// SPDX-License-Identifier: MIT
//
// The result of a removal.
#ifndef MULTICAST_REMOVAL_HPP
#define MULTICAST_REMOVAL_HPP

#include <cstddef>
#include <type_traits>

#include "detail/config.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// The result of a removal: the number of removed delegates, and whether any of their calls are
/// still running.
///
///     if (changed.remove(redraw)) ...                       // a delegate was removed
///     const size_t count = changed.remove(redraw);
///     if (changed.remove(redraw) == MULTICAST_OK) ...       // and no call is running
///
/// @since 1.1
class removal {
 public:
  /// Creates a result from a status and a count.
  ///
  /// @param status  The status returned by a removal function of multicast.h.
  /// @param count   The number of removed delegates.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  constexpr removal(multicast_status status, size_t count) noexcept
      : status_(status), count_(count) {}
  /// Returns how many delegates were removed.
  ///
  /// @return The number; 0 if no delegate matched or the removal failed.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  constexpr size_t count() const noexcept { return count_; }
  /// Returns the status, which tells whether calls to the removed delegates are still running.
  ///
  /// @return MULTICAST_OK if no call is running and none will ever begin. For other statuses, see
  ///         multicast_remove_every().
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  constexpr multicast_status status() const noexcept { return status_; }
  /// Whether any delegate was removed.
  ///
  /// @return count() != 0.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  constexpr explicit operator bool() const noexcept { return count_ != 0; }
  /// Like count(). There is no conversion to other number types, because such a number could be
  /// mistaken for a status.
  ///
  /// @return count().
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  template <typename Count, std::enable_if_t<std::is_same_v<Count, size_t>, int> = 0>
  constexpr operator Count() const noexcept {
    return count_;
  }
  /// Compares the status. To compare the number of delegates, write `count() == 2`.
  ///
  /// @param r       A result.
  /// @param status  A status, such as MULTICAST_OK.
  /// @return Whether they are equal.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  template <typename Code, std::enable_if_t<std::is_same_v<Code, multicast_status_code>, int> = 0>
  friend constexpr bool operator==(const removal &r, Code status) noexcept {
    return r.status_ == status;
  }
  template <typename Code, std::enable_if_t<std::is_same_v<Code, multicast_status_code>, int> = 0>
  friend constexpr bool operator!=(const removal &r, Code status) noexcept {
    return r.status_ != status;
  }

 private:
  multicast_status status_;
  size_t count_;
};

}  // namespace mcast

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Combines the results of two removals. The status is the first status other than MULTICAST_OK.
/// MULTICAST_ERROR_NOT_FOUND is ignored unless both removals returned it.
constexpr removal operator+(const removal &a, const removal &b) noexcept {
  if (a == MULTICAST_ERROR_NOT_FOUND) return b;
  if (b == MULTICAST_ERROR_NOT_FOUND) return a;
  return removal(a == MULTICAST_OK ? b.status() : a.status(), a.count() + b.count());
}

}  // namespace mcast::detail

#endif
