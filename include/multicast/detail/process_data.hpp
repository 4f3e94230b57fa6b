// SPDX-License-Identifier: MIT
//
// Data that exists once per process, however many modules these headers are compiled into.
#ifndef MULTICAST_DETAIL_PROCESS_DATA_HPP
#define MULTICAST_DETAIL_PROCESS_DATA_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>

#include "config.hpp"
#include "system.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

struct pauses;
class watched;
class keyed_contexts;

/// The tables, each with a lock. A thread that holds a lock may take the locks of later tables. The
/// last table is split into parts, so that threads seldom wait for each other. There are few parts,
/// because the thread sanitizer can track only a limited number of locks per thread, and the
/// library's own locks count as well.
enum class guarded : size_t { groups, members, pauses, watches, failures, keyed };
inline constexpr size_t parts = 4;

/// One lock for each table. The fork handlers take all locks before a fork, so that the child finds
/// consistent tables, and release them in both processes.
struct process_locks {
  struct alignas(64) line {  // a cache line
    process_mutex mutex;
  };
  line all[static_cast<size_t>(guarded::keyed) + parts];
  std::atomic<thread_id> forking;  // the thread that is inside fork(), or none
  size_t handlers;                 // how many pairs of handlers run in this fork()
};

/// An add in progress. The delegate's token will be stored in the delegate's observer. Each
/// observer maps to one of these slots, which it shares with other observers; an add that finds its
/// slot in use takes a slower path. In the child of a fork, slots that the parent's other threads
/// were using stay in use.
struct alignas(64) kept_add {
  std::atomic<uintptr_t> observer;  // the address of its kept_token, or 0
  multicast_token token;
  bool is_orphan;  // the observer has been destroyed; protected by guarded::keyed
};

/// The counts that each invocation reads. While they are zero, the invocation can skip further
/// checks.
struct process_counts {
  std::atomic<size_t> paused_signals;  // how many signals are paused
  std::atomic<size_t> mortals;         // how many delegates of all signals track objects
};

/// The library provides the memory, filled with zeros. All members are zero initially. Modules
/// built with older headers may use a shorter version of this struct at the same time, so new
/// members are only added at the end.
struct process_data : process_counts {
  std::atomic<void (*)(std::exception_ptr) noexcept> handler;  // set by set_exception_handler()
  std::atomic<uint64_t> threads;     // how many threads have a number
  std::atomic<uint64_t> thread_key;  // thread-local key of the number, plus 1
  std::atomic<uint64_t> spied;       // how many calls all spies have recorded

  /// These tables are created on first use and never destroyed.
  std::atomic<pauses *> scoped_pauses;
  std::atomic<watched *> watches;
  std::atomic<keyed_contexts *> keyed[parts];

  /// The number of paused signals for each hash of their handles, so that invocations of most other
  /// signals take no lock.
  std::atomic<size_t> paused_alike[64];
  /// The number of delegates with tracked objects for each hash of their signals' handles, so that
  /// most other signals do not search for dead objects.
  std::atomic<size_t> mortals_alike[256];
  /// How many delegates forward to another signal. They are not counted per signal, because their
  /// context does not identify the signal to which they were added.
  std::atomic<size_t> mortal_signals;
  /// For each delegate with tracked objects, the bit selected by the hash of the delegate's token
  /// is set. Bits are never cleared, because a delegate's context does not contain its token.
  std::atomic<uint64_t> mortal_tokens[64];

  process_locks locks;
  kept_add kept_adds[16];
};
static_assert(sizeof(process_data) <= 8192 && alignof(process_data) <= 64 &&
                  std::is_trivially_destructible_v<process_data>,
              "see multicast_process_memory()");

/// Until this module knows the address of the data, it uses these nonzero counts instead, so that
/// invocations do not skip their checks.
MULTICAST_HPP_LOCAL inline process_counts unknown_counts{{1}, {1}};
/// The address of the data. Relaxed order suffices, because all threads obtain the same address,
/// and the memory is always valid.
MULTICAST_HPP_LOCAL inline std::atomic<process_counts *> counts_place{&unknown_counts};

inline const process_counts &counts() noexcept {
  return *counts_place.load(std::memory_order_relaxed);
}
inline process_data &process() noexcept {
  process_counts *there = counts_place.load(std::memory_order_relaxed);
  if (there == &unknown_counts) {
    // Code compiled with exceptions shares no data with code compiled without them, or with code
    // that uses another standard library.
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
