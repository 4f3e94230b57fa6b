// SPDX-License-Identifier: MIT
//
// The thread that runs a queue.
#ifndef MULTICAST_DETAIL_RUNNER_HPP
#define MULTICAST_DETAIL_RUNNER_HPP

#include <atomic>
#include <cstdint>

#include "config.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

MULTICAST_API inline std::atomic<uint64_t> threads{0};
/// Tells threads apart. Not an address: that of a thread that has ended is used again.
/// MULTICAST_API, as `handler`.
MULTICAST_API inline thread_local const uint64_t this_thread = ++threads;

/// The thread that has run a queue last; 0: perhaps the queue's own, which the library knows.
class runner {
 public:
  runner() noexcept = default;
  runner(runner &&other) noexcept : thread_(other.thread_.load()) {}
  runner &operator=(runner &&other) noexcept {
    thread_.store(other.thread_.load());
    return *this;
  }
  void set(uint64_t thread) noexcept { thread_.store(thread, std::memory_order_relaxed); }
  bool is_this_thread() const noexcept {
    return thread_.load(std::memory_order_relaxed) == this_thread;
  }
  bool may_be_this_thread() const noexcept {
    return is_this_thread() || thread_.load(std::memory_order_relaxed) == 0;
  }

 private:
  std::atomic<uint64_t> thread_{0};
};

}  // namespace mcast::detail

#endif
