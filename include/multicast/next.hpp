// SPDX-License-Identifier: MIT
//
// The next invocation of a signal, waited for by a thread or, in C++20, by a coroutine.
// multicast.hpp does not include this header.
#ifndef MULTICAST_NEXT_HPP
#define MULTICAST_NEXT_HPP

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#if defined(__cpp_impl_coroutine)
#include <coroutine>
#endif

#include "connectable.hpp"
#include "detail/arrival.hpp"
#include "options.hpp"
#include "registration.hpp"
#include "signal.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// The next invocation of a signal, made by next(). The delegate that waits for it is registered
/// from then on, so that no invocation is missed, and removed exactly once: by the invocation, or
/// when this object is destroyed.
///
///     auto answered = mcast::next(client.answered);   // a signal<void(int, std::string_view)>
///     client.ask();
///     if (auto got = answered.wait_for(1s)) use(std::get<0>(*got), std::get<1>(*got));
///
///     auto [code, text] = *co_await mcast::next(client.answered, mcast::on(loop));   // C++20
///
/// A result without arguments means that there will be no such invocation: the signal was
/// destroyed, or the registration removed, by `get().remove_nowait()`, by the end of a lifetime
/// under which it was added, or in any other way. That is how another thread cancels the wait.
///
/// Threads:   one thread, or one coroutine, uses it at a time.
/// @since 1.1
template <typename... Args>
class [[nodiscard]] next_invocation {
  static_assert((detail::is_queueable<Args>() && ...),
                "the next invocation of this signal cannot be kept: give it arguments that are "
                "copyable values or references to const");

 public:
  /// The arguments: values. A std::string_view or a `const char *` is kept as a string.
  /// @since 1.1
  using arguments = detail::kept_arguments<Args...>;

  /// Waits for the next invocation; see next().
  ///
  /// @param target  A signal or a connectable.
  /// @param how     As for next().
  ///
  /// Cost:      as next().
  /// @since 1.1
  template <typename Target>
  next_invocation(const Target &target, options how)
      : arrival_(new detail::arrived_arguments<Args...>(how.queue)) {
    how.queue = {};
    how.once = how.no_replay = true;
    token_ = target.add(detail::arriving<Args...>(arrival_), how).token();
  }
  next_invocation(next_invocation &&other) noexcept
      : arrival_(std::move(other.arrival_)), token_(std::exchange(other.token_, {0})) {}
  next_invocation &operator=(next_invocation &&other) noexcept {
    next_invocation taken(std::move(other));  // `other` may be this one
    arrival_.swap(taken.arrival_);
    std::swap(token_, taken.token_);
    return *this;
  }
  ~next_invocation() {
    if (arrival_) arrival_->forget();
    static_cast<void>(multicast_token_remove_nowait(token_));
  }

  /// Waits for the invocation.
  ///
  /// @return Its arguments, once. Nothing if there will be no invocation, or if the arguments have
  ///         already been returned.
  ///
  /// Errors:    exceptions of the copy of an argument.
  /// Threads:   sleeps. Do not hold a lock that the invoker needs.
  /// Cost:      a wait.
  /// @since 1.1
  std::optional<arguments> wait() { return wait_for((std::chrono::nanoseconds::max)()); }
  /// Waits for the invocation, at most for a given time.
  ///
  /// @param timeout  The longest time to wait, on the monotonic clock; zero or less: no waiting.
  /// @return Its arguments, once. Nothing if the time has passed, after which this may be called
  ///         again, or if there will be no invocation.
  ///
  /// Errors:    exceptions of the copy of an argument.
  /// Threads:   sleeps.
  /// Cost:      a wait.
  /// @since 1.1
  std::optional<arguments> wait_for(std::chrono::nanoseconds timeout) {
    if (!arrival_ || !arrival_->wait(timeout)) return std::nullopt;
    return arrival_->take();
  }
  /// Whether wait() returns at once.
  ///
  /// @return true: the signal was invoked, or there will be no such invocation.
  ///
  /// Cost:      O(1), one short lock.
  /// @since 1.1
  bool is_over() const { return !arrival_ || arrival_->is_over(); }
  /// The registration, a value: its removal cancels the wait, from any thread.
  ///
  /// @return The registration; stale when the wait is over.
  ///
  /// Cost:      O(1), no call.
  /// @since 1.1
  registration get() const noexcept { return registration(token_); }

#if defined(__cpp_impl_coroutine)
  /// For `co_await`, whose result is that of wait(). Only in C++20.
  ///
  /// The coroutine goes on in the call of the delegate, on the thread that invokes. If next() had a
  /// queue, it always goes on in a call of that queue. Without an invocation it goes on where the
  /// registration is removed. If the queue refuses or drops that call, or is destroyed, it goes on
  /// where that happens, without arguments.
  ///
  /// A coroutine that is suspended may be destroyed: on the thread that runs the queue, or while
  /// no other thread invokes.
  ///
  /// @return What `co_await` needs.
  ///
  /// Cost:      O(1), one short lock; with a queue as an invocation with one queued call.
  /// @since 1.1
  auto operator co_await() noexcept {
    struct awaiter {
      detail::arrived_arguments<Args...> *arrival;

      bool await_ready() const {
        return arrival == nullptr || (!arrival->has_queue() && arrival->is_over());
      }
      bool await_suspend(std::coroutine_handle<> waiting) const {
        return arrival->suspend({[](void *frame) {
                                   std::coroutine_handle<>::from_address(frame).resume();
                                 },
                                 waiting.address()});
      }
      std::optional<arguments> await_resume() const {
        if (arrival == nullptr) return std::nullopt;
        return arrival->take();
      }
    };
    return awaiter{arrival_.get()};
  }
#endif

 private:
  std::shared_ptr<detail::arrived_arguments<Args...>> arrival_;
  multicast_token token_ = {0};
};

/// Waits for the next invocation of a signal, from now on. Invocations that have begun do not
/// count, and replays do not.
///
/// @param s    The signal. It may be moved or destroyed during the wait.
/// @param how  As for signal::add(). With a queue, a coroutine goes on there. `latest` and `unique`
///             have no effect.
/// @return What to wait with.
///
/// Errors:    those of signal::add().
/// Cost:      as signal::add(), and an allocation; with a queue also a multicast and an add.
/// @since 1.1
template <typename... Args>
next_invocation<Args...> next(signal<void(Args...)> &s, const options &how = {}) {
  return next_invocation<Args...>(connectable<void(Args...)>(s), how);
}
template <typename... Args>
next_invocation<Args...> next(const connectable<void(Args...)> &s, const options &how = {}) {
  return next_invocation<Args...>(s, how);
}
/// Waits for the next invocation of a signal, at most for a given time.
///
/// @param s        The signal.
/// @param timeout  The longest time to wait, measured on the monotonic clock.
/// @return The arguments; nothing if the time has passed or the signal was destroyed.
///
/// Errors:    those of signal::add(); exceptions of the copy of an argument.
/// Threads:   sleeps: another thread has to invoke.
/// Cost:      as next() and a wait.
/// @since 1.1
template <typename... Args>
std::optional<typename next_invocation<Args...>::arguments> next(
    signal<void(Args...)> &s, std::chrono::nanoseconds timeout) {
  return next(s).wait_for(timeout);
}
template <typename... Args>
std::optional<typename next_invocation<Args...>::arguments> next(
    const connectable<void(Args...)> &s, std::chrono::nanoseconds timeout) {
  return next(s).wait_for(timeout);
}

}  // namespace mcast

#endif
