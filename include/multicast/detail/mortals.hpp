// SPDX-License-Identifier: MIT
//
// Delegates that may die with their objects.
#ifndef MULTICAST_DETAIL_MORTALS_HPP
#define MULTICAST_DETAIL_MORTALS_HPP

#include <atomic>
#include <cstddef>

#include "config.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// How many delegates there are that may die: MULTICAST_API, as `handler`.
MULTICAST_API inline std::atomic<size_t> mortals{0};

/// Removes delegates whose objects are dead, if there may be some.
inline void prune(multicast target) noexcept {
  if (mortals.load(std::memory_order_relaxed) != 0) static_cast<void>(multicast_prune(target));
}

/// Counts delegates that may die.
struct mortal {
  mortal() noexcept { mortals.fetch_add(1); }
  mortal(const mortal &) noexcept : mortal() {}
  mortal &operator=(const mortal &) noexcept = default;
  ~mortal() { mortals.fetch_sub(1); }
};

}  // namespace mcast::detail

#endif
