// SPDX-License-Identifier: MIT
//
// Calls of a queue: the tasks that are posted, and the thread that ran it last.
#ifndef MULTICAST_DETAIL_TASKS_HPP
#define MULTICAST_DETAIL_TASKS_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "config.hpp"
#include "failures.hpp"
#include "invoke.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// A posted callable.
struct task {
  virtual void run() = 0;
  virtual ~task() = default;

  static void call(void *, uint32_t, const void *payload, size_t) {
    guard(failures(), [&] { static_cast<task *>(const_cast<void *>(payload))->run(); });
  }
  static void release(const void *payload, size_t) noexcept {
    delete static_cast<task *>(const_cast<void *>(payload));
  }
};

template <typename F>
struct posted final : task {
  F function;
  explicit posted(F &&given) : function(std::move(given)) {}
  explicit posted(const F &given) : function(given) {}
  void run() override { static_cast<void>(detail::invoke(function)); }
};

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
