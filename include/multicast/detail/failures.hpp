// SPDX-License-Identifier: MIT
//
// Reports the failures of calls, as statuses or exceptions.
#ifndef MULTICAST_DETAIL_FAILURES_HPP
#define MULTICAST_DETAIL_FAILURES_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

#include "owners.hpp"
#include "process.hpp"
#include "table.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

// This function is defined in error.hpp, which is included by all public headers that need it.
#if MULTICAST_HPP_EXCEPTIONS
[[noreturn]] inline void fail(int64_t status);
#else
inline void fail(int64_t status) noexcept;
#endif

template <typename>
inline constexpr bool never = false;

inline int64_t ensure(int64_t result) {
  if (result < 0) fail(result);
  return result;
}
/// Checks the result of an invocation. It is not an error if another signal invokes this signal
/// while this signal is being destroyed.
inline int64_t check_invoked(int64_t result) {
  return result == MULTICAST_ERROR_INVALID_HANDLE ? 0 : ensure(result);
}
inline size_t count(int64_t result) {
  return ensure(result) < 0 ? 0 : static_cast<size_t>(result);
}
inline uint64_t nanoseconds(std::chrono::nanoseconds time) noexcept {
  return time.count() < 0 ? 0 : static_cast<uint64_t>(time.count());
}
inline std::chrono::nanoseconds duration(uint64_t nanoseconds) noexcept {
  return std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(nanoseconds));
}

/// The first exception that any of several threads throws, stored for a waiting thread. Protected
/// by guarded::failures.
struct shared_failure : counted_owners {
  std::exception_ptr first;
  bool is_over = false;  // if set, exceptions are passed to the handler
  numbers late;          // but exceptions of these registrations are dropped

  bool is_late(multicast_token token) const noexcept {
    return late.find(token.id) != nullptr;
  }
};

/// Receives the exceptions of calls and passes them to the invocation, to the waiting thread or, if
/// there is neither, to the handler.
struct failures {
  std::exception_ptr *thrown = nullptr;
  shared_failure *waiting = nullptr;

#if MULTICAST_HPP_EXCEPTIONS
  /// Stores the current exception. Called inside a catch clause.
  void keep() const noexcept {
    if (thrown != nullptr) {
      if (!*thrown) *thrown = std::current_exception();
    } else if (waiting == nullptr || !keep_for(*waiting)) {
      const auto handle = process().handler.load();
      if (handle == nullptr) std::terminate();
      handle(std::current_exception());
    }
  }

 private:
  static bool keep_for(shared_failure &waiting) noexcept {
    const multicast_token token = multicast_token_current();
    const bool is_removed = !multicast_token_is_valid(token);  // such as a delegate with `once`
    const process_lock lock(guarded::failures);
    if (waiting.is_over) return is_removed || waiting.is_late(token);
    if (!waiting.first) waiting.first = std::current_exception();
    return true;
  }
#endif
};

/// Runs user code, and stores its exception. Does not stop the unwinding of an exiting thread.
template <typename Body>
void guard(const failures &where, Body &&body) {
#if MULTICAST_HPP_EXCEPTIONS
  try {
    body();
  } catch (...) {
    // Rethrow the foreign (non-C++) exception with which glibc unwinds an exiting thread.
    if (std::current_exception() == nullptr) throw;
    where.keep();
  }
#else
  static_cast<void>(where);
  body();
#endif
}

inline void rethrow(std::exception_ptr thrown) {
#if MULTICAST_HPP_EXCEPTIONS
  if (thrown) std::rethrow_exception(std::move(thrown));
#else
  static_cast<void>(thrown);
#endif
}

}  // namespace mcast::detail

#endif
