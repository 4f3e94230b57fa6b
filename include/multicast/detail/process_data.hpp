// SPDX-License-Identifier: MIT
//
// Data of which a process has only one instance, no matter how many modules include these headers.
#ifndef MULTICAST_DETAIL_PROCESS_DATA_HPP
#define MULTICAST_DETAIL_PROCESS_DATA_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <pthread.h>
#include <type_traits>

#include "config.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

struct pauses;
class watched;
class keyed_contexts;

/// The tables, each of which has a lock, in their order: a thread that holds a lock may take the
/// locks that are further to the right. The last table is divided into parts, so that threads
/// seldom wait for each other. There are only four parts, because the thread sanitizer limits how
/// many locks one thread can hold, and the locks of the library count, too.
enum class guarded : size_t { groups, members, pauses, watches, failures, keyed };
inline constexpr size_t parts = 4;

/// One lock for each table. All locks are held during a fork, so that in the child the locks are
/// free and the tables complete.
struct process_locks {
  struct alignas(64) line {  // one cache line
    pthread_mutex_t mutex;
  };
  line all[static_cast<size_t>(guarded::keyed) + parts];
  std::atomic<pthread_t> forking;  // the thread that is inside fork(), or none
  size_t handlers;                 // how many pairs of handlers run in that fork()
};

/// A running add of a delegate whose token its observer stores. Several observers share one entry.
/// If an add finds its entry in use, it uses the observer's lifetime instead. In the child of a
/// fork, the entries that were in use by other threads of the parent stay in use.
struct alignas(64) kept_add {
  std::atomic<uintptr_t> observer;  // the address of its kept_token, or 0
  multicast_token token;
  bool is_orphan;  // the observer was destroyed; protected by guarded::keyed
};

/// The counts that each invocation reads. While they are zero, it does not need to check anything
/// else.
struct process_counts {
  std::atomic<size_t> paused_signals;  // how many signals are paused
  std::atomic<size_t> mortals;         // how many delegates of all signals track objects
};

/// The library owns the memory and fills it with zeros, which is the initial state of all members.
/// Modules that were built with older headers may use a shorter version of this struct at the same
/// time, so new members may only be added at the end.
struct process_data : process_counts {
  std::atomic<void (*)(std::exception_ptr) noexcept> handler;  // of set_exception_handler()
  std::atomic<uint64_t> threads;     // how many threads have a number
  std::atomic<uint64_t> thread_key;  // the key of their numbers, plus 1
  std::atomic<uint64_t> spied;       // how many calls were recorded by all spies

  /// Each of these objects is created at its first use and never destroyed.
  std::atomic<pauses *> scoped_pauses;
  std::atomic<watched *> watches;
  std::atomic<keyed_contexts *> keyed[parts];

  /// The number of paused signals by a hash of their handles, so that invocations of most other
  /// signals take no lock.
  std::atomic<size_t> paused_alike[64];
  /// The number of delegates with tracked objects by a hash of the handles of their signals, so
  /// that most other signals do not search for dead objects.
  std::atomic<size_t> mortals_alike[256];
  /// The number of delegates that forward to another signal. They are counted here, because it is
  /// unknown to which signals they were added.
  std::atomic<size_t> mortal_signals;
  /// One bit for each hash of a token of a delegate with tracked objects. Other tokens may have the
  /// same hash. Bits are never cleared, because the context of a delegate does not know its token.
  std::atomic<uint64_t> mortal_tokens[64];

  process_locks locks;
  kept_add kept_adds[16];
};
static_assert(sizeof(process_data) <= 8192 && alignof(process_data) <= 64 &&
                  std::is_trivially_destructible_v<process_data>,
              "see multicast_process_memory()");

/// The counts that are used until this module knows the address of the data. They are not zero, so
/// that invocations check further.
MULTICAST_HPP_LOCAL inline process_counts unknown_counts{{1}, {1}};
/// The address of the data. Relaxed order is sufficient, because all threads find the same address,
/// and the memory always exists.
MULTICAST_HPP_LOCAL inline std::atomic<process_counts *> counts_place{&unknown_counts};

inline const process_counts &counts() noexcept {
  return *counts_place.load(std::memory_order_relaxed);
}
inline process_data &process() noexcept {
  process_counts *there = counts_place.load(std::memory_order_relaxed);
  if (there == &unknown_counts) {
    // Code with exceptions, code without them, and code for different standard libraries each use
    // separate data, because their types differ.
#if defined(_LIBCPP_VERSION)
    constexpr uint32_t library = 2;
#else
    constexpr uint32_t library = 0;
#endif
    constexpr uint32_t index = library + (MULTICAST_HPP_EXCEPTIONS ? 0 : 1);
    there = static_cast<process_data *>(multicast_process_memory(index, sizeof(process_data)));
    counts_place.store(there, std::memory_order_relaxed);
  }
  return static_cast<process_data &>(*there);
}

}  // namespace mcast::detail

#endif
