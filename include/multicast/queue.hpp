// SPDX-License-Identifier: MIT
//
// Queues of calls.
#ifndef MULTICAST_QUEUE_HPP
#define MULTICAST_QUEUE_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

#include "detail/answer.hpp"
#include "detail/lazy_multicast.hpp"
#include "detail/owners.hpp"
#include "detail/tasks.hpp"
#include "error.hpp"
#include "handle.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// What happens to a new call if the queue is full; see multicast_overflow.
/// @since 1.1
enum class overflow : multicast_overflow {
  refuse = MULTICAST_OVERFLOW_REFUSE,            ///< The queue refuses the call.
  drop_oldest = MULTICAST_OVERFLOW_DROP_OLDEST,  ///< The oldest queued call is dropped.
  block = MULTICAST_OVERFLOW_BLOCK               ///< The invocation waits until there is room.
};

/// A queue, in which calls wait until a thread runs the queue. The destructor removes the delegates
/// that use the queue, as multicast_queue_destroy() does. Each function corresponds to the
/// multicast_queue_...() function of the same name; descriptor() corresponds to
/// multicast_queue_fd(), and statistics() to multicast_queue_get_stats().
///
/// Threads:   any, but only one thread at a time can run the queue.
/// @since 1.0
class queue : public detail::owner<multicast_queue, multicast_queue_destroy> {
 public:
  /// Creates a queue.
  ///
  /// @param capacity  The largest number of pending calls, at most 2^24; 0 means 1024.
  /// @param overflow  What happens to a new call if the queue is full.
  ///
  /// Errors:    those of multicast_queue_create().
  /// Cost:      like multicast_queue_create().
  /// @since 1.0
  explicit queue(uint32_t capacity = 0, mcast::overflow overflow = mcast::overflow::refuse)
      : owner(create(capacity, overflow)) {}
  /// Creates a queue with the C interface's options, such as `wake`, which wakes a program's event
  /// loop.
  ///
  /// @param how  See multicast_queue_options.
  ///
  /// Errors:    those of multicast_queue_create().
  /// Cost:      like multicast_queue_create().
  /// @since 1.1
  explicit queue(const multicast_queue_options &how) : owner(multicast_queue_create(&how)) {}

  /// Makes queued calls, oldest first.
  ///
  /// @param max  The largest number of calls to make. 0 means the number of calls that are queued
  ///             when run() starts.
  /// @return The number of calls made.
  ///
  /// Errors:    like multicast_queue_run().
  /// Threads:   the delegates run on this thread. Their exceptions are passed to the thread that
  ///            waits for the call or, if no thread waits, to the handler of
  ///            set_exception_handler().
  /// Reentry:   a delegate may run the queue.
  /// Cost:      like multicast_queue_run().
  /// @since 1.0
  size_t run(size_t max = 0) {
    runner_.set(detail::this_thread());
    return detail::count(multicast_queue_run(handle_, max));
  }

  /// Makes queued calls, oldest first, as long as a condition holds.
  ///
  /// @param condition  Called without arguments before each call. Once it returns false, the
  ///                   remaining calls stay queued. The condition may, for example, check a
  ///                   deadline or a counter.
  /// @return The number of calls made; 0 if the queue is empty.
  ///
  /// Errors:    those of multicast_queue_run(), and exceptions that the condition throws.
  /// Threads:   like run().
  /// Reentry:   a delegate may run the queue.
  /// Cost:      like multicast_queue_run() for each call.
  /// @since 1.1
  template <typename F>
  size_t run_while(F &&condition) {
    const multicast_queue here = handle_;  // a call may destroy this object
    runner_.set(detail::this_thread());
    size_t made = 0;
    while (condition()) {
      const size_t now = detail::count(multicast_queue_run(here, 1));
      if (now == 0) break;
      made += now;
    }
    return made;
  }

  /// Waits until a call is queued.
  ///
  /// @param timeout  The longest time to wait; unlimited by default.
  /// @return The number of queued calls; 0 if the wait has timed out.
  ///
  /// Errors:    those of multicast_queue_wait().
  /// Threads:   sleeps. Fails for a queue with its own thread.
  /// Cost:      like multicast_queue_wait().
  /// @since 1.0
  size_t wait(std::chrono::nanoseconds timeout = (std::chrono::nanoseconds::max)()) {
    const int64_t result = multicast_queue_wait(handle_, detail::nanoseconds(timeout));
    return result == MULTICAST_ERROR_TIMEOUT ? 0 : detail::count(result);
  }

  /// Queues a callable. The queue calls it once and then destroys it. If the queue drops the
  /// callable or is destroyed, the callable is destroyed without being called.
  ///
  /// @param function  The function, which is copied or moved. Its result is ignored.
  /// @return Whether the callable has been queued; false if the queue was full and refused it.
  ///
  /// Errors:    those of multicast_invoke_with().
  /// Threads:   exceptions that the callable throws are passed to the handler of
  ///            set_exception_handler().
  /// Cost:      like an invocation with one queued call, plus one allocation.
  /// @since 1.1
  template <typename F>
  bool post(F &&function) {
    static_assert(std::is_invocable_v<std::decay_t<F> &>,
                  "post() takes a callable without arguments: capture them");
    return send(task(std::forward<F>(function)), 0, nullptr) > 0;
  }

  /// Queues a callable and waits until the queue has called it.
  ///
  /// If this thread runs the queue, it makes the queued calls up to and including the new one. If
  /// no thread has run the queue yet, post_and_wait() waits until a thread does.
  ///
  /// @param function  A function without parameters, which is copied or moved.
  /// @return The callable's result.
  ///
  /// Errors:    any exception that the callable throws. mcast::error with
  ///            MULTICAST_ERROR_QUEUE_FULL if the queue has refused the call; with
  ///            MULTICAST_ERROR_STATE if the call was dropped, if the thread that runs the queue is
  ///            waiting for this thread, or if that thread has exited inside the call. In the last
  ///            two cases, the callable may still run. With -fno-exceptions, these errors end the
  ///            program.
  /// Threads:   any. Do not hold a lock that the callable acquires.
  /// Cost:      like post(), plus two more allocations and a wait.
  /// @since 1.1
  template <typename F>
  detail::kept_result<std::decay_t<F>> post_and_wait(F &&function) {
    using state = detail::asked<std::decay_t<F>>;
    const detail::shared<state> shared(new state(std::forward<F>(function)));
    auto run = [shared] { shared->run(); };
    const multicast_queue here = handle_;  // the call may destroy this object
    const auto run_until_over = [&] {
      while (!shared->is_over.load(std::memory_order_acquire) &&
             multicast_queue_run(here, 1) > 0) {
      }
      return shared->is_over.load(std::memory_order_acquire);
    };
    const bool may_be_runner = runner_.may_be_this_thread();
    bool is_over = false;
    const bool is_runner = runner_.is_this_thread();
    if (is_runner) {
      if (send(task(run), 0, nullptr) == 0) give_up(MULTICAST_ERROR_QUEUE_FULL);
      is_over = run_until_over();
    }
    // If another thread has just begun to run the queue, this posts the callable a second time, and
    // only the first of the two calls runs it.
    if (!is_over && (!is_runner || multicast_queue_is_valid(here))) {
      multicast_outcome outcome = MULTICAST_OUTCOME_INIT;
      if (send(task(run), MULTICAST_WAIT, &outcome) == 0) give_up(MULTICAST_ERROR_QUEUE_FULL);
      if (outcome.unfinished != 0 && may_be_runner) run_until_over();
    }
    // If neither call has claimed the callable yet, this prevents them from running it later.
    if (shared->is_claimed.exchange(true) && shared->is_over.load(std::memory_order_acquire)) {
      if (shared->thrown) detail::rethrow(std::move(shared->thrown));
      return shared->made.get();
    }
    give_up(MULTICAST_ERROR_STATE);
  }

  /// Drops all queued calls.
  ///
  /// @return The number of dropped calls.
  ///
  /// Errors:    those of multicast_queue_clear().
  /// Cost:      like multicast_queue_clear().
  /// @since 1.1
  size_t clear() { return detail::count(multicast_queue_clear(handle_)); }

  /// A file descriptor for poll() and similar functions. It is readable while calls are queued.
  ///
  /// @return The result of multicast_queue_fd(). The queue owns the descriptor.
  ///
  /// Errors:    MULTICAST_ERROR_SYSTEM.
  /// Cost:      like multicast_queue_fd().
  /// @since 1.0
  int descriptor() {
    const int result = multicast_queue_fd(handle_);
    if (result < 0) detail::fail(MULTICAST_ERROR_SYSTEM);
    return result;
  }

  /// Starts a thread that makes this queue's calls.
  ///
  /// Errors:    like multicast_queue_start().
  /// Cost:      the cost of starting a thread.
  /// @since 1.0
  void start() {
    if (detail::ensure(multicast_queue_start(handle_)) == MULTICAST_OK) runner_.set(0);
  }
  /// Ends the queue's own thread. The remaining calls stay in the queue.
  ///
  /// @return The result of multicast_queue_stop().
  ///
  /// Threads:   waits for the running call.
  /// Reentry:   inside a call that the queue's thread makes, returns MULTICAST_PENDING.
  /// Cost:      the cost of ending a thread.
  /// @since 1.0
  multicast_status stop() noexcept { return multicast_queue_stop(handle_); }

  /// Returns a consistent snapshot of the number of calls with each outcome.
  ///
  /// @return The statistics, as multicast_queue_get_stats() returns them.
  ///
  /// Errors:    like multicast_queue_get_stats().
  /// Cost:      O(1); briefly takes a lock.
  /// @since 1.0
  multicast_queue_stats statistics() const {
    multicast_queue_stats result = MULTICAST_QUEUE_STATS_INIT;
    detail::ensure(multicast_queue_get_stats(handle_, &result));
    return result;
  }

 private:
  static multicast_queue create(uint32_t capacity, mcast::overflow overflow) {
    if (capacity > 1u << 24) detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
    multicast_queue_options given = MULTICAST_QUEUE_OPTIONS_INIT;
    given.capacity = capacity;
    given.overflow = static_cast<multicast_overflow>(overflow);
    return multicast_queue_create(&given);
  }

  template <typename F>
  static detail::owned<detail::task> task(F &&function) {
    return detail::owned<detail::task>(
        new detail::posted<std::decay_t<F>>(std::forward<F>(function)));
  }
  int64_t send(detail::owned<detail::task> given, uint32_t flags, multicast_outcome *outcome) {
    // Without a queue, the delegate would be called immediately, on this thread.
    if (handle_.id == 0) {
      detail::fail(MULTICAST_ERROR_INVALID_HANDLE);
      return MULTICAST_ERROR_INVALID_HANDLE;
    }
    const multicast target = posts_.make([&](multicast made) {
      multicast_add_options how = MULTICAST_ADD_OPTIONS_INIT;
      how.queue = handle_;
      return multicast_add(made, {detail::task::call, nullptr}, &how, nullptr);
    });
    multicast_invocation how = MULTICAST_INVOCATION_INIT;
    how.flags = flags;
    how.release = detail::task::release;
    how.payload = given.release();  // the library owns it from here on
    return detail::ensure(multicast_invoke_with(target, &how, outcome));
  }
  [[noreturn]] static void give_up(multicast_status status) {
    detail::fail(status);
    std::terminate();
  }

  /// A multicast whose only delegate uses this queue.
  detail::lazy_multicast posts_;
  detail::runner runner_;
};

}  // namespace mcast

#endif
