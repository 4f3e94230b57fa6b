// SPDX-License-Identifier: MIT
//
// Data shared by all modules of a process: locks that are held during forks, and the tables they
// protect.
#ifndef MULTICAST_DETAIL_PROCESS_HPP
#define MULTICAST_DETAIL_PROCESS_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "config.hpp"
#include "owners.hpp"
#include "process_data.hpp"
#include "system.hpp"
#include "table.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Whether this module has registered handlers that hold the locks during forks. Each module
/// registers its own handlers, because a plug-in's handlers are removed when it is unloaded.
MULTICAST_HPP_LOCAL inline std::atomic<bool> is_held_by_forks{false};

/// Holds a process-wide lock until the end of a scope.
class process_lock {
 public:
  explicit process_lock(guarded what, size_t part = 0) noexcept
      : mutex_(process().locks.all[static_cast<size_t>(what) + part].mutex) {
    if (is_inside_fork()) return;
    if (!is_held_by_forks.load(std::memory_order_acquire)) hold_by_forks();
    mutex_.lock();
  }
  process_lock(const process_lock &) = delete;
  process_lock &operator=(const process_lock &) = delete;
  ~process_lock() {
    if (!is_inside_fork()) mutex_.unlock();
  }

  /// Whether this thread is inside fork(). Inside fork(), the thread holds all locks, and the
  /// library may call release functions.
  static bool is_inside_fork() noexcept {
    return process().locks.forking.load(std::memory_order_relaxed) == this_thread_id();
  }

 private:
  /// Makes the library register its fork handlers first. Handlers run in reverse order before a
  /// fork, so a fork takes these locks before the library's locks, as all other code does. If there
  /// is no memory for the handlers, the next thread that takes a lock tries again.
  static void hold_by_forks() noexcept {
    const multicast first = multicast_create();
    if (first.id == 0) return;
    static_cast<void>(multicast_destroy(first));
    if (call_at_forks(before_fork, after_fork)) {
      is_held_by_forks.store(true, std::memory_order_release);
    }
  }
  /// Several threads and modules may have registered handlers. Only the first handler to run takes
  /// the locks.
  static void before_fork() noexcept {
    process_locks &locks = process().locks;
    if (!is_inside_fork()) {
      for (auto &each : locks.all) each.mutex.lock();
      locks.forking.store(this_thread_id(), std::memory_order_relaxed);
    }
    ++locks.handlers;
  }
  static void after_fork() noexcept {
    process_locks &locks = process().locks;
    if (!is_inside_fork() || --locks.handlers > 0) return;
    locks.forking.store(thread_id(), std::memory_order_relaxed);
    for (auto &each : locks.all) each.mutex.unlock();
  }

  process_mutex &mutex_;
};

/// Returns a process-wide object, which is created on first use. It is never destroyed, because
/// static objects may use it. It is not a function's static variable, because a forked child would
/// wait forever if another thread had been initializing the variable during the fork.
template <typename T>
T &lasting(std::atomic<T *> &place) {
  T *there = place.load(std::memory_order_acquire);
  if (there == nullptr) {
    owned<T> made(new T());
    if (place.compare_exchange_strong(there, made.get())) there = made.release();
  }
  return *there;
}

/// Maps the handle of each registration or signal to its number of pauses. Protected by
/// guarded::pauses.
struct pauses {
  struct entry {
    size_t count = 0;
    bool is_kept = false;  // it had already been paused by pause()
  };
  table<entry> entries;

  bool has(uint64_t id) {
    const process_lock lock(guarded::pauses);
    return entries.find(id) != nullptr;
  }
};
inline pauses &all_pauses() { return lasting(process().scoped_pauses); }

inline std::atomic<size_t> &alike(uint64_t id) noexcept {
  return process().paused_alike[(id * 0x9e3779b97f4a7c15) >> 58];
}
inline bool is_paused(multicast target) noexcept {
  return counts().paused_signals.load(std::memory_order_relaxed) != 0 &&
         alike(target.id).load(std::memory_order_relaxed) != 0 && all_pauses().has(target.id);
}

}  // namespace mcast::detail

#endif
