// SPDX-License-Identifier: MIT
//
// The tasks posted to a queue, and the thread that last ran it.
#ifndef MULTICAST_DETAIL_TASKS_HPP
#define MULTICAST_DETAIL_TASKS_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "config.hpp"
#include "failures.hpp"
#include "invoke.hpp"
#include "process_data.hpp"
#include "system.hpp"

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

/// Returns this thread's number, which no other thread has ever had. The address of a thread-local
/// variable would not be unique, because it may be reused after the thread has ended. Returns 0 if
/// the system cannot store the number.
inline uint64_t this_thread() noexcept {
  std::atomic<uint64_t> &place = process().thread_key;
  uint64_t known = place.load(std::memory_order_acquire);
  if (known == 0) {
    thread_key made;
    if (!make_key(&made)) return 0;
    if (place.compare_exchange_strong(known, uint64_t{made} + 1)) {
      known = uint64_t{made} + 1;
    } else {
      drop_key(made);  // another thread was faster
    }
  }
  const auto key = static_cast<thread_key>(known - 1);
  void *number = get_value(key);
  if (number == nullptr) {
    number = reinterpret_cast<void *>(++process().threads);
    if (!set_value(key, number)) return 0;
  }
  return reinterpret_cast<uintptr_t>(number);
}

/// The number of the thread that last ran a queue. It is 0 if no thread has run the queue, if the
/// last thread had no number, or if it was the queue's own thread, which the library already knows.
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
    const uint64_t last = thread_.load(std::memory_order_relaxed);
    return last != 0 && last == this_thread();
  }
  bool may_be_this_thread() const noexcept {
    return is_this_thread() || thread_.load(std::memory_order_relaxed) == 0;
  }

 private:
  std::atomic<uint64_t> thread_{0};
};

}  // namespace mcast::detail

#endif
