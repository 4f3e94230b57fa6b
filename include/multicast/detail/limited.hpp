// SPDX-License-Identifier: MIT
//
// Callables that are called a limited number of times.
#ifndef MULTICAST_DETAIL_LIMITED_HPP
#define MULTICAST_DETAIL_LIMITED_HPP

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "config.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// A callable that is called at most `left` times, even if several threads call it concurrently.
template <typename F>
struct limited {
  F function;
  std::atomic<int64_t> left;

  limited(F given, int64_t count) : function(std::move(given)), left(count) {}
  limited(limited &&other) noexcept(std::is_nothrow_move_constructible_v<F>)
      : function(std::move(other.function)), left(other.left.load()) {}
  limited(const limited &other) : function(other.function), left(other.left.load()) {}
  bool is_dead() const noexcept { return function.is_dead(); }
  /// Returns whether this call may run. The last call removes the delegate.
  bool take() noexcept {
    const int64_t count = left.fetch_sub(1);
    if (count <= 1) static_cast<void>(multicast_token_remove_nowait(multicast_token_current()));
    return count >= 1;
  }
};
template <typename F>
inline constexpr bool is_limited = false;
template <typename F>
inline constexpr bool is_limited<limited<F>> = true;

}  // namespace mcast::detail

#endif
