// SPDX-License-Identifier: MIT
//
// Results of functions of multicast.h.
#ifndef MULTICAST_DETAIL_STATUSES_HPP
#define MULTICAST_DETAIL_STATUSES_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "../error.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

template <typename>
inline constexpr bool never = false;

inline int64_t check(int64_t result) {
  if (result < 0) fail(result);
  return result;
}
inline size_t count(int64_t result) {
  return check(result) < 0 ? 0 : static_cast<size_t>(result);
}
inline uint64_t nanoseconds(std::chrono::nanoseconds time) noexcept {
  return time.count() < 0 ? 0 : static_cast<uint64_t>(time.count());
}
inline std::chrono::nanoseconds duration(uint64_t nanoseconds) noexcept {
  return std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(nanoseconds));
}

/// Of several removals of one delegate.
inline multicast_status joined(multicast_status a, multicast_status b) noexcept {
  if (a == MULTICAST_ERROR_NOT_FOUND) return b;
  if (b == MULTICAST_ERROR_NOT_FOUND) return a;
  return a != MULTICAST_OK ? a : b;
}

}  // namespace mcast::detail

#endif
