// SPDX-License-Identifier: MIT
//
// The thread that runs a queue.
#ifndef MULTICAST_DETAIL_RUNNER_HPP
#define MULTICAST_DETAIL_RUNNER_HPP

#include <atomic>

#include "config.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Its address tells threads apart.
inline thread_local const char this_thread = 0;

/// The thread that has run a queue last; none: perhaps the queue's own, which the library knows.
class runner {
 public:
  runner() noexcept = default;
  runner(runner &&other) noexcept : thread_(other.thread_.load()) {}
  runner &operator=(runner &&other) noexcept {
    thread_.store(other.thread_.load());
    return *this;
  }
  void set(const char *thread) noexcept { thread_.store(thread, std::memory_order_relaxed); }
  bool is_this_thread() const noexcept {
    return thread_.load(std::memory_order_relaxed) == &this_thread;
  }
  bool may_be_this_thread() const noexcept {
    return is_this_thread() || thread_.load(std::memory_order_relaxed) == nullptr;
  }

 private:
  std::atomic<const char *> thread_{nullptr};
};

}  // namespace mcast::detail

#endif
