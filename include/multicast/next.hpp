// SPDX-License-Identifier: MIT
//
// Waits for the next invocation of a signal, in a thread or, in C++20, in a coroutine.
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

/// Represents the next invocation of a signal; returned by next(). next() registers a delegate that
/// receives the invocation, so an invocation that happens before the wait begins is not missed. The
/// delegate is removed exactly once: by the invocation or when this object is destroyed.
///
///     auto answered = mcast::next(client.answered);   // a signal<void(int, std::string_view)>
///     client.ask();
///     if (auto got = answered.wait_for(1s)) use(std::get<0>(*got), std::get<1>(*got));
///
///     auto [code, text] = *co_await mcast::next(client.answered, mcast::on(loop));   // C++20
///
/// If the result contains no arguments, the invocation will never happen, because the signal has
/// been destroyed or the registration has been removed, for example by `get().remove_nowait()` or
/// by the end of its lifetime. Another thread can cancel the wait by removing the registration.
///
/// Threads:   only one thread or coroutine may use this object at a time.
/// @since 1.1
template <typename... Args>
class [[nodiscard]] next_invocation {
  static_assert((detail::is_queueable<Args>() && ...),
                "the next invocation of this signal cannot be kept: give it arguments that are "
                "copyable values or references to const");

 public:
  /// The arguments, stored by value. A std::string_view or `const char *` is stored as a string.
  /// @since 1.1
  using arguments = detail::kept_arguments<Args...>;

  /// Starts waiting for the next invocation; see next().
  ///
  /// @param target  A signal or a connectable.
  /// @param how     As for next().
  ///
  /// Cost:      like next().
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
    next_invocation taken(std::move(other));  // `other` may be this object
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
  /// @return The arguments; nothing if there will be no invocation or if the arguments have already
  ///         been returned.
  ///
  /// Errors:    exceptions thrown while an argument is copied.
  /// Threads:   sleeps. Do not hold a lock that the invoker needs.
  /// Cost:      the duration of the wait.
  /// @since 1.1
  std::optional<arguments> wait() { return wait_for((std::chrono::nanoseconds::max)()); }
  /// Waits for the invocation, up to a timeout.
  ///
  /// @param timeout  The longest time to wait, measured on the monotonic clock. If it is zero or
  ///                 less, the function does not wait.
  /// @return The arguments; nothing if the wait has timed out, there will be no invocation, or the
  ///         arguments have already been returned. After a timeout, the function may be called
  ///         again.
  ///
  /// Errors:    exceptions thrown while an argument is copied.
  /// Threads:   sleeps.
  /// Cost:      the duration of the wait.
  /// @since 1.1
  std::optional<arguments> wait_for(std::chrono::nanoseconds timeout) {
    if (!arrival_ || !arrival_->wait(timeout)) return std::nullopt;
    return arrival_->take();
  }
  /// Whether wait() would return without waiting.
  ///
  /// @return true if the invocation has happened or will never happen.
  ///
  /// Cost:      O(1); briefly takes a lock.
  /// @since 1.1
  bool is_over() const { return !arrival_ || arrival_->is_over(); }
  /// Returns the registration. Any thread may cancel the wait by removing the registration.
  ///
  /// @return The registration, which becomes stale when the wait ends.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  registration get() const noexcept { return registration(token_); }

#if defined(__cpp_impl_coroutine)
  /// Implements `co_await`, which has the same result as wait(). Available only in C++20.
  ///
  /// The coroutine resumes inside the delegate's call, on the invoking thread. If next() was passed
  /// a queue, the coroutine always resumes in a queued call instead. If there is no invocation, the
  /// coroutine resumes on the thread that removes the registration. If a thread makes the queue
  /// refuse or drop the call, or destroys the queue, the coroutine resumes on that thread, without
  /// arguments.
  ///
  /// A suspended coroutine may be destroyed on the thread that runs the queue, or while no other
  /// thread is invoking the signal.
  ///
  /// @return An awaiter.
  ///
  /// Cost:      O(1); briefly takes a lock. With a queue, like an invocation with one queued call.
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

/// Waits for the next invocation of a signal. Replays, and invocations that have already begun, do
/// not count.
///
/// @param s    The signal. It may be moved or destroyed during the wait.
/// @param how  As for signal::add(). If there is a queue, a coroutine resumes in a queued call.
///             `latest` and `unique` have no effect.
/// @return An object that waits for the invocation.
///
/// Errors:    those of signal::add().
/// Cost:      like signal::add(), plus an allocation; with a queue, also the creation of a
///            multicast and another add.
/// @since 1.1
template <typename... Args>
next_invocation<Args...> next(signal<void(Args...)> &s, const options &how = {}) {
  return next_invocation<Args...>(connectable<void(Args...)>(s), how);
}
template <typename... Args>
next_invocation<Args...> next(const connectable<void(Args...)> &s, const options &how = {}) {
  return next_invocation<Args...>(s, how);
}
/// Waits for the next invocation of a signal, up to a timeout.
///
/// @param s        The signal.
/// @param timeout  The longest time to wait, measured on the monotonic clock.
/// @return The arguments; nothing if the wait has timed out or the signal has been destroyed.
///
/// Errors:    those of signal::add(), and exceptions thrown while an argument is copied.
/// Threads:   sleeps, so another thread must invoke the signal.
/// Cost:      like next(), plus the time of the wait.
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
