// SPDX-License-Identifier: MIT
//
// What a signal does beside calling its delegates.
#ifndef MULTICAST_POLICIES_HPP
#define MULTICAST_POLICIES_HPP

#include <cstdint>
#include <functional>

#include "detail/config.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// What an invocation does that begins inside a call of the same signal, on the same thread.
/// @since 1.1
enum class reentry : multicast_reentry {
  recurse = MULTICAST_REENTRY_RECURSE,     ///< Calls the delegates now.
  refuse = MULTICAST_REENTRY_REFUSE,       ///< Calls none: MULTICAST_ERROR_STATE.
  defer = MULTICAST_REENTRY_DEFER,         ///< Calls them after the outermost invocation, in order.
  defer_latest = MULTICAST_REENTRY_LATEST  ///< As `defer`, but only the newest invocation.
};

/// How a signal is created: `mcast::signal<void(int)> s{policies}`; see multicast_create_options.
/// @since 1.1
struct policies {
  /// What an invocation does inside a call of the same signal (default: recurse). `defer` and
  /// `defer_latest` keep a copy of the arguments, and so need a signal that is_queueable; what a
  /// delegate throws then goes to the handler of set_exception_handler(). Signals with results
  /// recurse.
  /// @since 1.1
  mcast::reentry reentry = mcast::reentry::recurse;
  /// A name for dump() and describe(). Copied, up to 63 bytes (default: nullptr, none).
  /// @since 1.1
  const char *label = nullptr;
  /// How many of the last invocations a delegate gets when it is added: before add() returns, or in
  /// its queue. Whatever other threads invoke meanwhile, it gets each invocation once; see
  /// multicast_create_options. One that is added with mcast::no_replay gets none (default: 0).
  ///
  /// Each invocation keeps a copy of its arguments, as for a queue, until newer ones take its place
  /// or the signal is destroyed. So replays need a signal that is_queueable; mcast::replay() checks
  /// that at compile time. If the copy of an argument throws, no delegate is called. What is thrown
  /// in a replay goes to the handler of set_exception_handler(). While a scoped_pause pauses the
  /// signal, nothing is kept.
  /// @since 1.1
  uint32_t replay = 0;
  /// Told true when the first delegate has come, false when the last one has gone; see
  /// multicast_create_options. What it throws goes to the handler of set_exception_handler()
  /// (default: none).
  /// @since 1.1
  std::function<void(bool wanted)> interest = {};
};

}  // namespace mcast

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Policies of which is known that there are replays.
struct replaying_policies : policies {
  explicit replaying_policies(uint32_t count) noexcept { replay = count; }
};

}  // namespace mcast::detail

namespace MULTICAST_HPP_NAMESPACE {

/// Policies with replays: `mcast::signal<void(int)> s{mcast::replay(1)}`. A signal that cannot keep
/// its arguments refuses them at compile time.
///
/// @param count  How many of the last invocations are kept; see policies::replay.
/// @return The policies. The other ones can be set.
///
/// Cost:      O(1).
/// @since 1.1
inline detail::replaying_policies replay(uint32_t count) noexcept {
  return detail::replaying_policies(count);
}

}  // namespace mcast

#endif
