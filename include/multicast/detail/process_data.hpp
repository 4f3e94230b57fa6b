// SPDX-License-Identifier: MIT
//
// Data that exist only once in a process, whatever modules these headers are compiled into.
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

/// The tables, each with a lock. A thread that holds one may take those below it. The last one has
/// parts, so that threads seldom wait for each other. There are few, because the thread sanitizer
/// can track only so many locks in one thread, those of the library included.
enum class guarded : size_t { groups, members, pauses, watches, failures, keyed };
inline constexpr size_t parts = 4;

/// One lock for each table. All are held during a fork, so that its child finds the locks free and
/// the tables complete.
struct process_locks {
  struct alignas(64) line {  // of the cache
    process_mutex mutex;
  };
  line all[static_cast<size_t>(guarded::keyed) + parts];
  std::atomic<thread_id> forking;  // the thread that is in fork(), or none
  size_t handlers;                 // how many pairs of handlers run in that fork()
};

/// An add of a delegate whose token its observer keeps. Each observer has one place for it, which
/// other observers share: an add that finds it in use goes another way. In the child of a fork, the
/// places of threads that do not exist there stay in use.
struct alignas(64) kept_add {
  std::atomic<uintptr_t> observer;  // the address of its token, or 0
  multicast_token token;
  bool is_orphan;  // the observer is gone; guarded::keyed
};

/// The counts that each invocation reads: while they are zero, it need not look further.
struct process_counts {
  std::atomic<size_t> paused_signals;  // how many signals are paused
  std::atomic<size_t> mortals;         // how many delegates have tracked objects, of all signals
};

/// The memory is the library's, and zero at first: that is the initial state of all members.
/// Modules that were built with older headers may use a shorter version of this struct at the same
/// time: it only grows at its end.
struct process_data : process_counts {
  std::atomic<void (*)(std::exception_ptr) noexcept> handler;  // of set_exception_handler()
  std::atomic<uint64_t> threads;     // how many threads have a number
  std::atomic<uint64_t> thread_key;  // the key of their numbers, plus 1
  std::atomic<uint64_t> spied;       // how many calls were recorded by all spies

  /// Each is created at its first use, and never destroyed.
  std::atomic<pauses *> scoped_pauses;
  std::atomic<watched *> watches;
  std::atomic<keyed_contexts *> keyed[parts];

  /// How many signals are paused, of those whose handles have these bits: so that the invocations
  /// of most other signals take no lock.
  std::atomic<size_t> paused_alike[64];
  /// How many delegates have tracked objects, of the signals whose handles have these bits: so that
  /// most other signals do not look for dead objects.
  std::atomic<size_t> mortals_alike[256];
  /// How many of them are signals: for these the signal that they are added to is not known here.
  std::atomic<size_t> mortal_signals;
  /// A bit for the token of each of them; others have the same. None is cleared: the context of a
  /// delegate does not know its token.
  std::atomic<uint64_t> mortal_tokens[64];

  process_locks locks;
  kept_add kept_adds[16];
};
static_assert(sizeof(process_data) <= 8192 && alignof(process_data) <= 64 &&
                  std::is_trivially_destructible_v<process_data>,
              "see multicast_process_memory()");

/// The counts until this module knows where the data is: an invocation has to look further.
MULTICAST_HPP_LOCAL inline process_counts unknown_counts{{1}, {1}};
/// Where the data is. Relaxed: all threads find the same address, of memory that is always there.
MULTICAST_HPP_LOCAL inline std::atomic<process_counts *> counts_place{&unknown_counts};

inline const process_counts &counts() noexcept {
  return *counts_place.load(std::memory_order_relaxed);
}
inline process_data &process() noexcept {
  process_counts *there = counts_place.load(std::memory_order_relaxed);
  if (there == &unknown_counts) {
    // Programs with and without exceptions do not mix, nor do the types of two standard libraries.
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
