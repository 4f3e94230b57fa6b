// SPDX-License-Identifier: MIT
//
// Callables with a limited number of calls.
#ifndef MULTICAST_TIMES_HPP
#define MULTICAST_TIMES_HPP

#include <cstdint>
#include <type_traits>
#include <utility>

#include "detail/limited.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// Makes a callable that is called a limited number of times: `s.add(mcast::times(3, f))`. The last
/// call removes the delegate when it begins. For a single call, use mcast::once, which costs less.
///
/// @param count     The number of calls. If it is 0 or less, the function is never called, and the
///                  first invocation removes the delegate.
/// @param function  The function, which is copied or moved.
/// @return A callable for signal::add().
///
/// Cost:      one additional atomic operation for each call.
/// @since 1.1
template <typename F>
detail::limited<std::decay_t<F>> times(int64_t count, F &&function) {
  return {std::forward<F>(function), count};
}

}  // namespace mcast

#endif
