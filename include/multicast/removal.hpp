// SPDX-License-Identifier: MIT
//
// The result of a removal.
#ifndef MULTICAST_REMOVAL_HPP
#define MULTICAST_REMOVAL_HPP

#include <cstddef>
#include <type_traits>

#include "detail/config.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// The result of a removal: how many delegates were removed, and whether calls of them still run.
///
///     if (changed.remove(redraw)) ...                       // something was removed
///     const size_t count = changed.remove(redraw);
///     if (changed.remove(redraw) == MULTICAST_OK) ...       // and no call of it runs
///
/// @since 1.1
class removal {
 public:
  /// The number and the status.
  ///
  /// @param status  As the functions of multicast.h that remove.
  /// @param count   How many.
  ///
  /// Cost:      O(1), no call.
  /// @since 1.1
  constexpr removal(multicast_status status, size_t count) noexcept
      : status_(status), count_(count) {}
  /// How many were removed.
  ///
  /// @return The number; 0: there was none, or an error.
  ///
  /// Cost:      O(1), no call.
  /// @since 1.1
  constexpr size_t count() const noexcept { return count_; }
  /// Whether calls of them still run.
  ///
  /// @return MULTICAST_OK: none does, and none ever will. Others as multicast_remove_every().
  ///
  /// Cost:      O(1), no call.
  /// @since 1.1
  constexpr multicast_status status() const noexcept { return status_; }
  /// Whether something was removed.
  ///
  /// @return count() != 0.
  ///
  /// Cost:      O(1), no call.
  /// @since 1.1
  constexpr explicit operator bool() const noexcept { return count_ != 0; }
  /// Like count(). It does not convert to other types of numbers, because a status is not a number.
  ///
  /// @return count().
  ///
  /// Cost:      O(1), no call.
  /// @since 1.1
  template <typename Count, std::enable_if_t<std::is_same_v<Count, size_t>, int> = 0>
  constexpr operator Count() const noexcept {
    return count_;
  }
  /// Whether the status is this one. Not with numbers: `count() == 2`.
  ///
  /// @param r       A result.
  /// @param status  Such as MULTICAST_OK.
  /// @return Whether they are equal.
  ///
  /// Cost:      O(1), no call.
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

/// Of several removals: the first status that is not OK; not found only if all are.
constexpr removal operator+(const removal &a, const removal &b) noexcept {
  if (a == MULTICAST_ERROR_NOT_FOUND) return b;
  if (b == MULTICAST_ERROR_NOT_FOUND) return a;
  return removal(a == MULTICAST_OK ? b.status() : a.status(), a.count() + b.count());
}

}  // namespace mcast::detail

#endif
