// SPDX-License-Identifier: MIT
//
// How long calls take, which threads wait for them, and which signals grow.
#ifndef MULTICAST_WATCH_HPP
#define MULTICAST_WATCH_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "detail/watched.hpp"
#include "signal.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// The functions of a watch. Without functions it only counts: see registration::statistics().
///
/// The functions may run on several threads at once. They may use this library; their own calls
/// are not watched. Their exceptions go to the handler of set_exception_handler().
/// @since 1.1
struct watch_options {
  /// The time from which a call is slow, and a wait is stuck (default: zero, never).
  /// @since 1.1
  std::chrono::nanoseconds slow_after{0};
  /// A call took at least `slow_after`. On the thread of the call, when it has returned. `label` is
  /// that of the registration, or nullptr; it is valid until this returns (default: none).
  /// @since 1.1
  std::function<void(registration which, const char *label, std::chrono::nanoseconds elapsed)>
      slow = {};
  /// A removal, or signal::invoke_and_wait(), has waited for `slow_after`, and waits on. Called
  /// once, on the thread that waits. `which` names a call for which it waits; none if the call is
  /// still in the queue (default: none).
  /// @since 1.1
  std::function<void(registration which, const char *label, std::chrono::nanoseconds elapsed)>
      stuck = {};
  /// A call has returned, after `elapsed`; called on its thread. `event` is 0 for signals (default:
  /// none).
  /// @since 1.1
  std::function<void(registration which, uint32_t event, std::chrono::nanoseconds elapsed)>
      called = {};
  /// The number of delegates at which `listener_warning` is called (default: 0, never; 1 is taken
  /// as 2).
  /// @since 1.1
  uint64_t listener_warning_count = 0;
  /// A signal has grown to `listener_warning_count` delegates, or to twice, four times as many and
  /// so on. Called once for each of these numbers, by the thread that adds. `count` is how many
  /// delegates there are; `most` of them have the same `label`, or no label and the same `function`
  /// of the C interface, which a debugger can name. If no label or function is shared by more than
  /// one delegate in nine, `label` and `function` are both null. `label` is valid until this
  /// returns (default: none).
  /// @since 1.1
  std::function<void(multicast target, uint64_t count, const char *label,
                     multicast_function function, uint64_t most)>
      listener_warning = {};
};

/// A watch until the end of a scope: of a signal, or of all signals and multicasts of the process.
///
///     mcast::watch_options how;
///     how.slow_after = std::chrono::milliseconds(10);
///     how.slow = [](mcast::registration, const char *label, std::chrono::nanoseconds elapsed) {
///       std::cerr << (label != nullptr ? label : "?") << ": " << elapsed.count() << " ns\n";
///     };
///     const mcast::watch slow_calls(changed, how);
///
/// A signal with a watch of its own is watched by that watch only. Invocations that begin after the
/// watch are watched, with the calls that they queue. The end of a signal ends its watch.
///
/// Threads:   the destructor waits for functions of the watch on other threads, as
///            multicast_set_watch() does.
/// Reentry:   may be destroyed inside one of its functions; it does not wait for that function.
/// @since 1.1
class [[nodiscard]] watch {
 public:
  /// Watches nothing.
  ///
  /// Cost:      O(1), no call.
  /// @since 1.1
  watch() noexcept = default;
  /// Watches all signals and multicasts of the process, those that are created later included.
  ///
  /// @param how  The functions.
  ///
  /// Errors:    MULTICAST_ERROR_STATE: there is such a watch already.
  /// Cost:      O(multicasts), three allocations. While it is set, each call costs what
  ///            multicast_set_watch() says, and a lock for each function that is notified.
  /// @since 1.1
  explicit watch(watch_options how) { begin({0}, std::move(how)); }
  /// Watches a signal.
  ///
  /// @param s    The signal. It may be moved while it is watched.
  /// @param how  The functions (default: nothing, calls are only counted).
  ///
  /// Errors:    MULTICAST_ERROR_STATE: it has a watch already.
  /// Cost:      O(1), four allocations. While it is set, each call costs what
  ///            multicast_set_watch() says, and a lock for each function that is notified.
  /// @since 1.1
  template <typename R, typename... Args>
  explicit watch(const detail::basic_signal<R, Args...> &s, watch_options how = {}) {
    const multicast target = s.target_.make();
    if (target.id != 0) begin(target, std::move(how));  // 0 without exceptions
  }
  watch(watch &&other) noexcept
      : target_(other.target_), is_set_(std::exchange(other.is_set_, false)) {}
  watch &operator=(watch &&other) noexcept {
    watch taken(std::move(other));  // `other` may be this one
    std::swap(target_, taken.target_);
    std::swap(is_set_, taken.is_set_);
    return *this;
  }
  ~watch() { static_cast<void>(end()); }
  /// Ends the watch early. Calling this again has no effect.
  ///
  /// @return Like multicast_set_watch(): MULTICAST_OK: no function of it runs, and none ever will.
  ///         MULTICAST_ERROR_INVALID_HANDLE: the signal has already been destroyed.
  ///
  /// Threads:   waits for functions of it that run on other threads.
  /// Reentry:   inside one of its functions: MULTICAST_PENDING.
  /// Cost:      like multicast_set_watch().
  /// @since 1.1
  multicast_status end() noexcept {
    if (!std::exchange(is_set_, false)) return MULTICAST_OK;
    const multicast_status status = multicast_set_watch(target_, nullptr);
    detail::all_watched().remove(target_.id);
    return status;
  }

 private:
  void begin(multicast target, watch_options &&how) {
    multicast_watch given = MULTICAST_WATCH_INIT;
    given.slow_ns = detail::nanoseconds(how.slow_after);
    if (how.slow) given.slow = tell<&watch_options::slow>;
    if (how.stuck) given.stuck = tell<&watch_options::stuck>;
    if (how.called) {
      given.called = [](void *context, multicast_token token, uint32_t event, uint64_t elapsed) {
        pass<&watch_options::called>(context, registration(token), event,
                                     detail::duration(elapsed));
      };
    }
    given.listener_warning_count = how.listener_warning_count;
    if (how.listener_warning) given.listener_warning = pass<&watch_options::listener_warning>;
    detail::watched &all = detail::all_watched();
    const uintptr_t number =
        all.add(target.id, detail::watched::functions(new watch_options(std::move(how))));
    if (number == 0) return detail::fail(MULTICAST_ERROR_STATE);
    given.context = reinterpret_cast<void *>(number);
    const multicast_status status = multicast_set_watch(target, &given);
    if (status < 0) {
      all.remove(target.id);
      return detail::fail(status);
    }
    target_ = target;
    is_set_ = true;
  }

  template <auto function>
  static void tell(void *context, multicast_token token, const char *label, uint64_t elapsed) {
    pass<function>(context, registration(token), label, detail::duration(elapsed));
  }
  template <auto function, typename... What>
  static void pass(void *context, What... what) {
    const auto told = detail::all_watched().find(reinterpret_cast<uintptr_t>(context));
    if (told == nullptr) return;
    detail::guard({}, [&] { ((*told).*function)(what...); });
  }

  multicast target_ = {0};
  bool is_set_ = false;
};

}  // namespace mcast

#endif
