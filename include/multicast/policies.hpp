// SPDX-License-Identifier: MIT
//
// Policies: the behaviour of a signal apart from calling its delegates.
#ifndef MULTICAST_POLICIES_HPP
#define MULTICAST_POLICIES_HPP

#include <cstdint>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "detail/config.hpp"
#include "detail/invoke.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// The effect of an invocation that begins inside a call of the same signal, on the same thread.
/// @since 1.1
enum class reentry : multicast_reentry {
  recurse = MULTICAST_REENTRY_RECURSE,     ///< Calls the delegates now.
  refuse = MULTICAST_REENTRY_REFUSE,       ///< Calls none: MULTICAST_ERROR_STATE.
  defer = MULTICAST_REENTRY_DEFER,         ///< Calls them after the outermost invocation, in order.
  defer_latest = MULTICAST_REENTRY_LATEST  ///< As `defer`, but only the newest invocation.
};

/// Holds the function that is called when a signal gets its first delegate or loses its last one:
/// takes a bool, or is empty. Copied and compared with nullptr like a std::function<void(bool)>,
/// which takes longer to compile.
/// @since 1.1
class listeners_changed_function {
 public:
  /// Holds no function.
  ///
  /// Cost:      O(1), no call.
  /// @since 1.1
  listeners_changed_function(std::nullptr_t = nullptr) noexcept {}
  /// Holds a callable; holds none if it is null.
  ///
  /// @param function  Copied or moved from.
  ///
  /// Cost:      one allocation.
  /// @since 1.1
  template <typename F,
            std::enable_if_t<!std::is_base_of_v<listeners_changed_function, std::decay_t<F>> &&
                                 std::is_invocable_v<std::decay_t<F> &, bool>,
                             int> = 0>
  listeners_changed_function(F &&function) {
    if (detail::is_null(function)) return;
    told_ = new held<std::decay_t<F>>(std::forward<F>(function));
  }
  listeners_changed_function(const listeners_changed_function &other)
      : told_(other.told_ == nullptr ? nullptr : other.told_->copy()) {}
  listeners_changed_function(listeners_changed_function &&other) noexcept
      : told_(std::exchange(other.told_, nullptr)) {}
  listeners_changed_function &operator=(listeners_changed_function other) noexcept {
    std::swap(told_, other.told_);
    return *this;
  }
  ~listeners_changed_function() { delete told_; }

  /// Whether there is a function.
  ///
  /// @return false: none.
  ///
  /// Cost:      O(1), no call.
  /// @since 1.1
  explicit operator bool() const noexcept { return told_ != nullptr; }
  /// Calls the function. There must be one.
  ///
  /// @param has_listeners  The argument.
  ///
  /// Cost:      that of the call.
  /// @since 1.1
  void operator()(bool has_listeners) const { told_->tell(has_listeners); }

 private:
  struct any {
    virtual any *copy() const = 0;
    virtual void tell(bool has_listeners) = 0;
    virtual ~any() = default;
  };
  template <typename F>
  struct held final : any {
    F function;
    explicit held(const F &given) : function(given) {}
    explicit held(F &&given) : function(std::move(given)) {}
    any *copy() const override { return new held(function); }
    void tell(bool has_listeners) override {
      static_cast<void>(detail::invoke(function, has_listeners));
    }
  };

  any *told_ = nullptr;
};

/// How a signal is created: `mcast::signal<void(int)> s{policies}`; see multicast_create_options.
/// @since 1.1
struct policies {
  /// The effect of an invocation inside a call of the same signal (default: recurse). `defer` and
  /// `defer_latest` keep a copy of the arguments, and so need a signal that is_queueable;
  /// exceptions of delegates then go to the handler of set_exception_handler(). Signals with
  /// results recurse.
  /// @since 1.1
  mcast::reentry reentry = mcast::reentry::recurse;
  /// A name for dump() and describe(). Copied, up to 63 bytes (default: nullptr, none).
  /// @since 1.1
  const char *label = nullptr;
  /// How many of the last invocations a delegate gets when it is added: before add() returns, or in
  /// its queue. It gets each invocation once, whatever other threads invoke at the time; see
  /// multicast_create_options. A delegate that is added with mcast::no_replay gets none (default:
  /// 0).
  ///
  /// Each invocation keeps a copy of its arguments, as for a queue, until newer ones take its place
  /// or the signal is destroyed. So replays need a signal that is_queueable; mcast::replay() checks
  /// that at compile time. If the copy of an argument throws, no delegate is called. Exceptions
  /// of replays go to the handler of set_exception_handler(). While a scoped_pause pauses the
  /// signal, nothing is kept.
  /// @since 1.1
  uint32_t replay = 0;
  /// Called with true when the first delegate has been added, with false when the last one has been
  /// removed; see multicast_create_options. Exceptions go to the handler of set_exception_handler()
  /// (default: none).
  /// @since 1.1
  listeners_changed_function listeners_changed = {};
};

}  // namespace mcast

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Policies that are known to replay.
struct replaying_policies : policies {
  explicit replaying_policies(uint32_t count) noexcept { replay = count; }
};

}  // namespace mcast::detail

namespace MULTICAST_HPP_NAMESPACE {

/// Policies with replays: `mcast::signal<void(int)> s{mcast::replay(1)}`. A signal that cannot keep
/// its arguments refuses them at compile time.
///
/// @param count  How many of the last invocations are kept; see policies::replay.
/// @return The policies. Other policies can be set in the result.
///
/// Cost:      O(1).
/// @since 1.1
inline detail::replaying_policies replay(uint32_t count) noexcept {
  return detail::replaying_policies(count);
}

}  // namespace mcast

#endif
