// SPDX-License-Identifier: MIT
//
// Exceptions of delegates.
#ifndef MULTICAST_DETAIL_FAILURES_HPP
#define MULTICAST_DETAIL_FAILURES_HPP

#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "../error.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The first exception of several threads.
struct shared_failure : std::enable_shared_from_this<shared_failure> {
  std::mutex mutex;
  std::exception_ptr first;
};

/// Where the exceptions of a call go: to the invocation, to the one that waits, or, if there is
/// neither, to the handler.
struct failures {
  std::exception_ptr *thrown = nullptr;
  shared_failure *waiting = nullptr;

#if MULTICAST_HPP_EXCEPTIONS
  /// Inside a catch clause.
  void keep() const noexcept {
    if (thrown != nullptr) {
      if (!*thrown) *thrown = std::current_exception();
    } else if (waiting != nullptr) {
      const std::lock_guard<std::mutex> lock(waiting->mutex);
      if (!waiting->first) waiting->first = std::current_exception();
    } else {
      const exception_handler handle = handler.load();
      if (handle == nullptr) std::terminate();
      handle(std::current_exception());
    }
  }
#endif
};

/// Runs code of the user's, and keeps what it throws. The end of a thread passes.
template <typename Body>
void guard(const failures &where, Body &&body) {
#if MULTICAST_HPP_EXCEPTIONS
  try {
    body();
  } catch (...) {
    // The end of a thread comes by as something that is no exception of C++.
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
