// SPDX-License-Identifier: MIT
//
// Callables that are called a number of times.
#ifndef MULTICAST_TIMES_HPP
#define MULTICAST_TIMES_HPP

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "detail/config.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// A callable that is called so many times at most, also by several threads at once.
template <typename F>
struct limited {
  F function;
  std::atomic<int64_t> left;

  limited(F given, int64_t count) : function(std::move(given)), left(count) {}
  limited(limited &&other) noexcept(std::is_nothrow_move_constructible_v<F>)
      : function(std::move(other.function)), left(other.left.load()) {}
  limited(const limited &other) : function(other.function), left(other.left.load()) {}
  bool is_dead() const noexcept { return function.is_dead(); }
  /// Whether this call is one of them. The last one removes the delegate.
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

namespace MULTICAST_HPP_NAMESPACE {

/// A callable that is called a number of times. The last call removes the delegate, as it begins:
/// `s.add(mcast::times(3, f))`. For one call there is mcast::once, which costs less.
///
/// @param count     How many calls; 0 or less: none, and the first invocation removes the delegate.
/// @param function  Copied or moved from.
/// @return For signal::add().
///
/// Cost:      each call has one more atomic operation.
/// @since 1.1
template <typename F>
detail::limited<std::decay_t<F>> times(int64_t count, F &&function) {
  return {std::forward<F>(function), count};
}

}  // namespace mcast

#endif
