// SPDX-License-Identifier: MIT
//
// Lets a thread or, in C++20, a coroutine wait for the next invocation of a signal. multicast.hpp
// does not include this header.
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

/// A wait for the next invocation of a signal, created by next(). It registers a delegate right
/// away, so that no invocation is missed. The delegate is removed exactly once: by the invocation,
/// or when this object is destroyed.
///
///     auto answered = mcast::next(client.answered);   // a signal<void(int, std::string_view)>
///     client.ask();
///     if (auto got = answered.wait_for(1s)) use(std::get<0>(*got), std::get<1>(*got));
///
///     auto [code, text] = *co_await mcast::next(client.answered, mcast::on(loop));   // C++20
///
/// An empty result means that the wait has ended without an invocation, because the signal was
/// destroyed or the registration was removed. Another thread can cancel the wait in this way, for
/// example by `get().remove_nowait()` or by ending the lifetime under which the delegate was added.
///
/// Threads:   only one thread or coroutine may use the object at a time.
/// @since 1.1
template <typename... Args>
class [[nodiscard]] next_invocation {
  static_assert((detail::is_queueable<Args>() && ...),
                "the next invocation of this signal cannot be kept: give it arguments that are "
                "copyable values or references to const");

 public:
  /// The arguments as values. A std::string_view or a `const char *` is stored as a string.
  /// @since 1.1
  using arguments = detail::kept_arguments<Args...>;

  /// Waits for the next invocation; see next().
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
  /// @return The arguments of the invocation. Empty if there will be no invocation, or if the
  ///         arguments have already been returned.
  ///
  /// Errors:    exceptions that were thrown while an argument was copied.
  /// Threads:   sleeps. Do not hold a lock that the invoker needs.
  /// Cost:      the time of the wait.
  /// @since 1.1
  std::optional<arguments> wait() { return wait_for((std::chrono::nanoseconds::max)()); }
  /// Waits for the invocation, but no longer than a given time.
  ///
  /// @param timeout  The longest time to wait, on the monotonic clock; zero or less: no waiting.
  /// @return The arguments of the invocation. Empty if there will be no invocation, if the
  ///         arguments have already been returned, or if the time has passed. After a timeout the
  ///         caller may wait again.
  ///
  /// Errors:    exceptions that were thrown while an argument was copied.
  /// Threads:   sleeps.
  /// Cost:      the time of the wait.
  /// @since 1.1
  std::optional<arguments> wait_for(std::chrono::nanoseconds timeout) {
    if (!arrival_ || !arrival_->wait(timeout)) return std::nullopt;
    return arrival_->take();
  }
  /// Whether wait() returns immediately.
  ///
  /// @return true if the signal was invoked, or if there will be no invocation.
  ///
  /// Cost:      O(1); briefly takes a lock.
  /// @since 1.1
  bool is_over() const { return !arrival_ || arrival_->is_over(); }
  /// The registration of the delegate. Any thread can cancel the wait by removing it.
  ///
  /// @return The registration, which is stale after the wait has ended.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  registration get() const noexcept { return registration(token_); }

#if defined(__cpp_impl_coroutine)
  /// Lets a coroutine wait by `co_await`, which has the same result as wait(). Only in C++20.
  ///
  /// The coroutine resumes in the call of the delegate, on the thread that invokes. If a queue was
  /// passed to next(), the coroutine always resumes in a call of that queue. If there is no
  /// invocation, it resumes on the thread that removes the registration. If the queue refuses or
  /// drops the call that resumes the coroutine, or is destroyed, the coroutine resumes on the
  /// thread on which that happens, with an empty result.
  ///
  /// A suspended coroutine may be destroyed on the thread that runs the queue, or while no other
  /// thread invokes the signal.
  ///
  /// @return An awaiter for `co_await`.
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

/// Starts to wait for the next invocation of a signal. The wait ignores replays, and invocations
/// that have already begun.
///
/// @param s    The signal. It may be moved or destroyed during the wait.
/// @param how  As for signal::add(). With a queue, a coroutine resumes in a call of this queue.
///             `latest` and `unique` have no effect.
/// @return The object with which the caller waits.
///
/// Errors:    like signal::add().
/// Cost:      like signal::add(), plus an allocation; with a queue also a multicast and an add.
/// @since 1.1
template <typename... Args>
next_invocation<Args...> next(signal<void(Args...)> &s, const options &how = {}) {
  return next_invocation<Args...>(connectable<void(Args...)>(s), how);
}
template <typename... Args>
next_invocation<Args...> next(const connectable<void(Args...)> &s, const options &how = {}) {
  return next_invocation<Args...>(s, how);
}
/// Waits for the next invocation of a signal, but no longer than a given time.
///
/// @param s        The signal.
/// @param timeout  The longest time to wait, measured on the monotonic clock.
/// @return The arguments; empty if the time has passed or the signal was destroyed.
///
/// Errors:    like signal::add(); also exceptions that were thrown while an argument was copied.
/// Threads:   sleeps until another thread invokes the signal.
/// Cost:      like next(), plus a wait.
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
