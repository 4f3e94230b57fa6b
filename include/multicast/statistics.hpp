// SPDX-License-Identifier: MIT
//
// Statistics of a delegate's calls.
#ifndef MULTICAST_STATISTICS_HPP
#define MULTICAST_STATISTICS_HPP

#include <chrono>
#include <cstdint>

#include "detail/config.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// Statistics about a delegate's watched calls; see registration::statistics().
/// @since 1.1
struct call_statistics {
  /// Calls that have returned.
  uint64_t calls = 0;
  /// The total time of these calls.
  std::chrono::nanoseconds total{0};
  /// The time of the longest call.
  std::chrono::nanoseconds longest{0};
  /// Calls that were queued.
  uint64_t queued = 0;
  /// Calls that the queue refused, or dropped to make room for newer calls to any delegate.
  uint64_t dropped = 0;
};

}  // namespace mcast

#endif
