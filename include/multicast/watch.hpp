// SPDX-License-Identifier: MIT
//
// Watches, which report how long calls take, which threads are waiting for them, and which signals
// keep gaining delegates.
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

/// The functions of a watch. A watch without functions only counts calls; see
/// registration::statistics().
///
/// The functions may run on several threads concurrently. They may use this library; the calls that
/// they cause are not watched. Their exceptions are passed to the handler of
/// set_exception_handler().
/// @since 1.1
struct watch_options {
  /// Calls that take at least this long are reported as slow, and waits of this duration are
  /// reported as stuck (default: zero, never).
  /// @since 1.1
  std::chrono::nanoseconds slow_after{0};
  /// Called when a call has taken at least `slow_after`, on the thread that made the call (default:
  /// none). `label` is the registration's label, or nullptr if it has none; it is valid until this
  /// function returns.
  /// @since 1.1
  std::function<void(registration which, const char *label, std::chrono::nanoseconds elapsed)>
      slow = {};
  /// Called when a removal or signal::invoke_and_wait() has waited for `slow_after` and is still
  /// waiting (default: none). The function is called once per wait, on the waiting thread. `which`
  /// is the registration of a call that the thread is waiting for; it is empty if the call is still
  /// queued.
  /// @since 1.1
  std::function<void(registration which, const char *label, std::chrono::nanoseconds elapsed)>
      stuck = {};
  /// Called when a call has returned, on the thread that made the call (default: none). `event` is
  /// 0 for signals.
  /// @since 1.1
  std::function<void(registration which, uint32_t event, std::chrono::nanoseconds elapsed)>
      called = {};
  /// The number of delegates at which `listener_warning` is called (default: 0, never). 1 has the
  /// same meaning as 2.
  /// @since 1.1
  uint64_t listener_warning_count = 0;
  /// Called when the number of a signal's delegates first reaches `listener_warning_count`, twice
  /// this number, four times this number, and so on, on the thread that adds the delegate (default:
  /// none). `count` is the number of delegates. Either `label` is the most frequent label, or
  /// `function` is the most frequent C function of the delegates without a label; a debugger can
  /// show the function's name. `most` is the number of delegates that share this label or function.
  /// If no label or function is shared by more than one delegate in nine, both are null. `label` is
  /// valid until this function returns.
  /// @since 1.1
  std::function<void(multicast target, uint64_t count, const char *label,
                     multicast_function function, uint64_t most)>
      listener_warning = {};
};

/// Watches a signal, or all signals and multicasts of the process, until the end of a scope.
///
///     mcast::watch_options how;
///     how.slow_after = std::chrono::milliseconds(10);
///     how.slow = [](mcast::registration, const char *label, std::chrono::nanoseconds elapsed) {
///       std::cerr << (label != nullptr ? label : "?") << ": " << elapsed.count() << " ns\n";
///     };
///     const mcast::watch slow_calls(changed, how);
///
/// If a signal has its own watch, the process-wide watch does not apply to it. A watch covers
/// invocations that begin after it has been set, and the calls that they queue. When a signal is
/// destroyed, its watch ends.
///
/// Threads:   the destructor waits for the watch's functions that are running on other threads, as
///            multicast_set_watch() does.
/// Reentry:   may be destroyed inside one of its functions; the destructor does not wait for that
///            function.
/// @since 1.1
class [[nodiscard]] watch {
 public:
  /// Watches nothing.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  watch() noexcept = default;
  /// Watches all signals and multicasts of the process, including those that are created later.
  ///
  /// @param how  The functions.
  ///
  /// Errors:    MULTICAST_ERROR_STATE: the process already has such a watch.
  /// Cost:      O(multicasts); makes three allocations. While the watch is set, each call has the
  ///            additional cost stated in multicast_set_watch(), and takes a lock for each watch
  ///            function that it calls.
  /// @since 1.1
  explicit watch(watch_options how) { begin({0}, std::move(how)); }
  /// Watches a signal.
  ///
  /// @param s    The signal. It may be moved while it is watched.
  /// @param how  The functions (default: none, so that the watch only counts calls).
  ///
  /// Errors:    MULTICAST_ERROR_STATE: the signal already has a watch.
  /// Cost:      O(1); makes four allocations. While the watch is set, each call has the additional
  ///            cost stated in multicast_set_watch(), and takes a lock for each watch function that
  ///            it calls.
  /// @since 1.1
  template <typename R, typename... Args>
  explicit watch(const detail::basic_signal<R, Args...> &s, watch_options how = {}) {
    const multicast target = s.target_.make();
    if (target.id != 0) begin(target, std::move(how));  // 0 if make() failed
  }
  watch(watch &&other) noexcept
      : target_(other.target_), is_set_(std::exchange(other.is_set_, false)) {}
  watch &operator=(watch &&other) noexcept {
    watch taken(std::move(other));  // `other` may be this object
    std::swap(target_, taken.target_);
    std::swap(is_set_, taken.is_set_);
    return *this;
  }
  ~watch() { static_cast<void>(end()); }
  /// Ends the watch early. Calling this again has no effect.
  ///
  /// @return The result of multicast_set_watch(). MULTICAST_OK means that no function of the watch
  ///         is running and none will run again. MULTICAST_ERROR_INVALID_HANDLE means that the
  ///         signal has already been destroyed.
  ///
  /// Threads:   waits for the watch's functions that are running on other threads.
  /// Reentry:   returns MULTICAST_PENDING inside one of the watch's functions.
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
