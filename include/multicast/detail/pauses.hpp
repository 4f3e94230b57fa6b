// SPDX-License-Identifier: MIT
//
// Pauses that are counted.
#ifndef MULTICAST_DETAIL_PAUSES_HPP
#define MULTICAST_DETAIL_PAUSES_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "process_lock.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Pauses that are counted, by the handle of a registration or signal. guarded::pauses.
struct pauses {
  struct entry {
    size_t count = 0;
    bool is_kept = false;  // it was paused already
  };
  std::unordered_map<uint64_t, entry> entries;

  bool has(uint64_t id) {
    const process_lock lock(guarded::pauses);
    return entries.count(id) != 0;
  }
};
MULTICAST_API inline std::atomic<pauses *> scoped_pauses{nullptr};
inline pauses &all_pauses() { return lasting(scoped_pauses); }
/// How many signals are paused, and how many of those whose handles have these bits: so that the
/// invocations of most other signals take no lock.
MULTICAST_API inline std::atomic<size_t> paused_signals{0};
MULTICAST_API inline std::atomic<size_t> paused_alike[64] = {};

inline std::atomic<size_t> &alike(uint64_t id) noexcept {
  return paused_alike[(id * 0x9e3779b97f4a7c15) >> 58];
}
inline bool is_paused(multicast target) noexcept {
  return paused_signals.load(std::memory_order_relaxed) != 0 &&
         alike(target.id).load(std::memory_order_relaxed) != 0 && all_pauses().has(target.id);
}

}  // namespace mcast::detail

#endif
