// SPDX-License-Identifier: MIT
//
// Callables that are called a number of times.
#ifndef MULTICAST_TIMES_HPP
#define MULTICAST_TIMES_HPP

#include <cstdint>
#include <type_traits>
#include <utility>

#include "detail/limited.hpp"

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
