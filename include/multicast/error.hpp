// SPDX-License-Identifier: MIT
//
// Errors and exceptions.
#ifndef MULTICAST_ERROR_HPP
#define MULTICAST_ERROR_HPP

#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>

#include "detail/failures.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// An exception for an error status. what() returns the status's message.
/// @since 1.0
class MULTICAST_API error : public std::runtime_error {
 public:
  /// Creates an exception with this status.
  ///
  /// @param status  A negative status.
  ///
  /// Cost:      one allocation, for the message.
  /// @since 1.0
  explicit error(multicast_status status)
      : std::runtime_error(multicast_status_message(status)), status_(status) {}
  /// Returns the status that a function of multicast.h has returned.
  ///
  /// @return The status.
  ///
  /// Cost:      O(1).
  /// @since 1.0
  multicast_status status() const noexcept { return status_; }

 private:
  multicast_status status_;
};

/// Handles exceptions that cannot be rethrown to an invoker. It is called on the thread on which
/// the exception was thrown.
/// @since 1.0
using exception_handler = void (*)(std::exception_ptr) noexcept;

}  // namespace mcast

namespace MULTICAST_HPP_NAMESPACE::detail {

#if MULTICAST_HPP_EXCEPTIONS
[[noreturn]] inline void fail(int64_t status) {
  if (status == MULTICAST_ERROR_OUT_OF_MEMORY) throw std::bad_alloc();
  throw error(static_cast<multicast_status>(status));
}
#else
MULTICAST_HPP_LOCAL inline thread_local multicast_status last_failure = MULTICAST_OK;
inline void fail(int64_t status) noexcept {
  last_failure = static_cast<multicast_status>(status);
}
#endif

}  // namespace mcast::detail

namespace MULTICAST_HPP_NAMESPACE {

/// Sets the handler for exceptions thrown by queued, deferred or replayed calls, or by the
/// functions of policies and watches.
///
/// @param handler  The new handler, which is called on the thread on which an exception was thrown.
///                 If it is nullptr, std::terminate() is called instead, as by default.
/// @return The previous handler.
///
/// Threads:   any. There is one handler per process. A plug-in that has set its own handler must
///            replace it before it is unloaded.
/// Cost:      O(1); takes no lock.
/// @since 1.0
inline exception_handler set_exception_handler(exception_handler handler) noexcept {
  return detail::process().handler.exchange(handler);
}

#if !MULTICAST_HPP_EXCEPTIONS
/// Returns the status with which a function of these headers last failed on this thread. Available
/// only with -fno-exceptions.
///
/// @return The status of the last function that failed; MULTICAST_OK if none has.
///
/// Threads:   each thread has its own status.
/// Cost:      O(1); takes no lock.
/// @since 1.1
inline multicast_status last_error() noexcept { return detail::last_failure; }
#endif

}  // namespace mcast

#endif
