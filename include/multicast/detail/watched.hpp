// SPDX-License-Identifier: MIT
//
// The functions of watches.
#ifndef MULTICAST_DETAIL_WATCHED_HPP
#define MULTICAST_DETAIL_WATCHED_HPP

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "failures.hpp"
#include "process.hpp"

namespace MULTICAST_HPP_NAMESPACE {

struct watch_options;

}  // namespace mcast

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The functions of each watch, by a number of its own, which C gets as the context. So a call that
/// ends the watch finds no functions when it returns, and not those of the next watch either. And
/// functions are not destroyed while they run.
class watched {
 public:
  using functions = std::shared_ptr<const watch_options>;

  /// Adds the watch of a handle; 0: that of all. Returns its number; 0: there is one already.
  uintptr_t add(uint64_t target, functions told) {
    const process_lock lock(guarded::watches);
    if (numbers_.count(target) != 0) return 0;
    // If the second throws, nothing finds the first.
    all_.emplace(++last_, std::move(told));
    numbers_.emplace(target, last_);
    return last_;
  }
  void remove(uint64_t target) noexcept {
    functions last;  // destroyed without the lock
    const process_lock lock(guarded::watches);
    const auto number = numbers_.find(target);
    const auto found = all_.find(number->second);
    last = std::move(found->second);
    all_.erase(found);
    numbers_.erase(number);
  }
  functions find(uintptr_t number) {
    const process_lock lock(guarded::watches);
    const auto found = all_.find(number);
    return found == all_.end() ? nullptr : found->second;
  }

 private:
  uintptr_t last_ = 0;  // never used again: calls of a watch that has ended may go on
  std::unordered_map<uint64_t, uintptr_t> numbers_;
  std::unordered_map<uintptr_t, functions> all_;
};
MULTICAST_API inline std::atomic<watched *> watches{nullptr};
inline watched &all_watched() { return lasting(watches); }

}  // namespace mcast::detail

#endif
