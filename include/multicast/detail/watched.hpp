// SPDX-License-Identifier: MIT
//
// The functions of watches.
#ifndef MULTICAST_DETAIL_WATCHED_HPP
#define MULTICAST_DETAIL_WATCHED_HPP

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "failures.hpp"
#include "process.hpp"
#include "table.hpp"

namespace MULTICAST_HPP_NAMESPACE {

struct watch_options;

}  // namespace mcast

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Maps unique numbers, which are the contexts of the C watches, to the watches' functions. Numbers
/// are not reused. Therefore, if a watch ends during a call, the call finds no functions when it
/// returns, not even those of the next watch. Functions are not destroyed while they are running.
class watched {
 public:
  using functions = std::shared_ptr<const watch_options>;

  /// Adds the watch of a handle, where 0 means all signals. Returns the watch's number, or 0 if the
  /// handle already has a watch.
  uintptr_t add(uint64_t target, functions told) {
    const process_lock lock(guarded::watches);
    if (numbers_.find(target + 1) != nullptr) return 0;
    // If the second insertion throws, nothing refers to the first entry, which does no harm.
    all_[++last_] = std::move(told);
    numbers_[target + 1] = last_;
    return last_;
  }
  void remove(uint64_t target) noexcept {
    functions last;  // destroyed after the lock is released
    const process_lock lock(guarded::watches);
    const uintptr_t number = numbers_[target + 1];  // always exists
    last = std::move(all_[number]);
    all_.erase(number);
    numbers_.erase(target + 1);
  }
  functions find(uintptr_t number) {
    const process_lock lock(guarded::watches);
    const functions *const found = all_.find(number);
    return found == nullptr ? nullptr : *found;
  }

 private:
  uintptr_t last_ = 0;  // never reused, because calls under an ended watch may still run
  table<uintptr_t> numbers_;  // keyed by the handle plus 1
  table<functions> all_;
};
inline watched &all_watched() { return lasting(process().watches); }

}  // namespace mcast::detail

#endif
