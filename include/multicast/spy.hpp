// SPDX-License-Identifier: MIT
//
// Records a signal's invocations, for tests. multicast.hpp does not include this header.
#ifndef MULTICAST_SPY_HPP
#define MULTICAST_SPY_HPP

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "connectable.hpp"
#include "detail/kept_arguments.hpp"
#include "options.hpp"
#include "registration.hpp"
#include "signal.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// A call that a spy has recorded.
/// @since 1.1
template <typename... Args>
struct spied_call {
  /// The arguments as values. A std::string_view or a `const char *` is stored as a string.
  std::tuple<typename detail::keeping<detail::value<Args>>::type...> arguments;
  /// The thread on which the call was made. If the spy has a queue, this is the thread that ran the
  /// queue.
  std::thread::id thread;
  /// A number that increases with each call that any spy records, so that invocations of several
  /// signals can be ordered.
  uint64_t order = 0;
};

/// Records a signal's invocations, for use in tests.
///
///     mcast::spy seen(window.renamed);        // a signal<void(int, std::string_view)>
///     worker.start();
///     CHECK(seen.wait(2, 1s));                // another thread has invoked it twice
///     CHECK(seen.calls()[0].arguments == std::tuple(7, "Ada"));
///
/// The destructor removes the delegate that records the calls. The signal may be destroyed before
/// the spy. A spy also records replays.
/// @since 1.1
template <typename Signal>
class spy {
  static_assert(detail::never<Signal>, "a spy is of a signal without results");
};

template <typename... Args>
class spy<signal<void(Args...)>> {
  static_assert((detail::is_queueable<Args>() && ...),
                "a spy cannot keep the arguments of this signal: give it copyable values or "
                "references to const");

 public:
  /// The type of a recorded invocation.
  /// @since 1.1
  using call = spied_call<Args...>;

  /// Starts to record invocations.
  ///
  /// @param s    The signal, or a view of it.
  /// @param how  As for signal::add(). With on(), the spy records the calls that a queue makes.
  ///
  /// Errors:    those of signal::add().
  /// Cost:      like signal::add().
  /// @since 1.1
  explicit spy(signal<void(Args...)> &s, const options &how = {})
      : spy(connectable<void(Args...)>(s), how) {}
  explicit spy(const connectable<void(Args...)> &s, const options &how = {})
      : registration_(s.template add<&spy::record>(*this, how)) {}
  spy(const spy &) = delete;
  spy &operator=(const spy &) = delete;
  ~spy() = default;

  /// Returns the calls recorded since the spy was created, or since the last clear() or take().
  ///
  /// @return A copy of the calls, in the order in which they were recorded.
  ///
  /// Cost:      O(calls); takes a lock.
  /// @since 1.1
  std::vector<call> calls() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return calls_;
  }
  /// Returns the recorded calls and discards the spy's own copy, in one step.
  ///
  /// @return The recorded calls.
  ///
  /// Cost:      O(1); takes a lock.
  /// @since 1.1
  std::vector<call> take() {
    std::vector<call> result;
    const std::lock_guard<std::mutex> lock(mutex_);
    result.swap(calls_);
    return result;
  }
  /// The number of recorded calls.
  ///
  /// @return The number.
  ///
  /// Cost:      O(1); takes a lock.
  /// @since 1.1
  size_t size() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return calls_.size();
  }
  /// Whether no call has been recorded.
  ///
  /// @return size() == 0.
  ///
  /// Cost:      like size().
  /// @since 1.1
  bool empty() const { return size() == 0; }
  /// Discards the recorded calls.
  ///
  /// Cost:      O(calls); takes a lock.
  /// @since 1.1
  void clear() { static_cast<void>(take()); }
  /// Waits until a given number of calls have been recorded.
  ///
  /// @param count    The number of calls, including those already recorded.
  /// @param timeout  The longest time to wait, measured on the monotonic clock (default: 5
  ///                 seconds).
  /// @return true if the calls have been recorded; false if the wait has timed out.
  ///
  /// Threads:   sleeps, so another thread must invoke the signal or run the queue.
  /// Cost:      the duration of the wait.
  /// @since 1.1
  bool wait(size_t count = 1, std::chrono::nanoseconds timeout = std::chrono::seconds(5)) const {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto have_come = [&] { return calls_.size() >= count; };
    if (timeout <= longest) return changed_.wait_for(lock, timeout, have_come);
    changed_.wait(lock, have_come);
    return true;
  }
  /// The registration of the delegate that records the calls.
  ///
  /// @return The registration.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  registration get() const noexcept { return registration_.get(); }

 private:
  MULTICAST_HPP_LOCAL static constexpr std::chrono::nanoseconds longest =
      std::chrono::hours(24 * 365);

  void record(detail::passed<Args>... given) {
    call made{{detail::keeping<detail::value<Args>>::keep(given)...},
              std::this_thread::get_id(),
              0};
    const std::lock_guard<std::mutex> lock(mutex_);
    made.order = ++detail::process().spied;
    calls_.push_back(std::move(made));
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<call> calls_;
  scoped_registration registration_;  // the last member, so it is destroyed first
};

template <typename... Args>
spy(signal<void(Args...)> &) -> spy<signal<void(Args...)>>;
template <typename... Args>
spy(signal<void(Args...)> &, const options &) -> spy<signal<void(Args...)>>;
template <typename... Args>
spy(const connectable<void(Args...)> &) -> spy<signal<void(Args...)>>;
template <typename... Args>
spy(const connectable<void(Args...)> &, const options &) -> spy<signal<void(Args...)>>;
template <typename R, typename... Args>
spy(signal<R(Args...)> &) -> spy<signal<R(Args...)>>;

}  // namespace mcast

#endif
