// SPDX-License-Identifier: MIT
//
// A signal's policies: reentry, replays, and a function that is called when the first listener is
// added or the last one is removed.
#ifndef MULTICAST_POLICIES_HPP
#define MULTICAST_POLICIES_HPP

#include <cstdint>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "detail/config.hpp"
#include "detail/invoke.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// What happens if a signal is invoked inside another invocation of itself, on the same thread.
/// @since 1.1
enum class reentry : multicast_reentry {
  recurse = MULTICAST_REENTRY_RECURSE,     ///< Calls the delegates now.
  refuse = MULTICAST_REENTRY_REFUSE,       ///< Fails with MULTICAST_ERROR_STATE.
  defer = MULTICAST_REENTRY_DEFER,         ///< Calls them in order, after the outermost invocation.
  defer_latest = MULTICAST_REENTRY_LATEST  ///< Like `defer`, but for the newest invocation only.
};

/// Holds the function that is called when the first delegate is added to a signal or the last one
/// is removed. It behaves like a std::function<void(bool)>, but takes less time to compile.
/// @since 1.1
class listeners_changed_function {
 public:
  /// Holds no function.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  listeners_changed_function(std::nullptr_t = nullptr) noexcept {}
  /// Holds a callable, or nothing if the callable is null.
  ///
  /// @param function  The function, which is copied or moved.
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
  /// @return false if the object is empty.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  explicit operator bool() const noexcept { return told_ != nullptr; }
  /// Calls the function. The object must not be empty.
  ///
  /// @param has_listeners  The argument.
  ///
  /// Cost:      the cost of the call.
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

/// The options with which a signal is created: `mcast::signal<void(int)> s{policies}`; see
/// multicast_create_options.
/// @since 1.1
struct policies {
  /// What happens if the signal is invoked inside another invocation of itself (default: recurse).
  /// `defer` and `defer_latest` store a copy of the arguments, so the signal must be queueable
  /// (signal::is_queueable). Exceptions of deferred calls are passed to the handler of
  /// set_exception_handler(). A signal with results must use `recurse`.
  /// @since 1.1
  mcast::reentry reentry = mcast::reentry::recurse;
  /// A name, which dump() and describe() print (default: nullptr, none). Up to 63 bytes are copied.
  /// @since 1.1
  const char *label = nullptr;
  /// How many of the last invocations are replayed to a delegate when it is added, either before
  /// add() returns or in its queue (default: 0). The delegate receives each invocation exactly
  /// once, even if other threads invoke the signal at the same time; see multicast_create_options.
  /// A delegate that is added with mcast::no_replay receives no replays.
  ///
  /// The signal stores a copy of each invocation's arguments, as a queue would, until newer
  /// invocations replace it or the signal is destroyed. Therefore the signal must be queueable
  /// (signal::is_queueable); mcast::replay() checks this at compile time. If copying an argument
  /// throws, no delegate is called. Exceptions of replays are passed to the handler of
  /// set_exception_handler(). While a scoped_pause pauses the signal, invocations are not stored.
  /// @since 1.1
  uint32_t replay = 0;
  /// Called with true when the first delegate has been added, and with false when the last one has
  /// been removed (default: none); see multicast_create_options. Its exceptions are passed to the
  /// handler of set_exception_handler().
  /// @since 1.1
  listeners_changed_function listeners_changed = {};
};

}  // namespace mcast

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Policies that are known at compile time to replay invocations.
struct replaying_policies : policies {
  explicit replaying_policies(uint32_t count) noexcept { replay = count; }
};

}  // namespace mcast::detail

namespace MULTICAST_HPP_NAMESPACE {

/// Returns policies with replays: `mcast::signal<void(int)> s{mcast::replay(1)}`. This does not
/// compile for a signal that cannot store its arguments.
///
/// @param count  How many of the last invocations are stored; see policies::replay.
/// @return The policies. Their other fields can also be set.
///
/// Cost:      O(1).
/// @since 1.1
inline detail::replaying_policies replay(uint32_t count) noexcept {
  return detail::replaying_policies(count);
}

}  // namespace mcast

#endif
