// SPDX-License-Identifier: MIT
//
// A wait for one invocation, by a thread or a coroutine.
#ifndef MULTICAST_DETAIL_ARRIVAL_HPP
#define MULTICAST_DETAIL_ARRIVAL_HPP

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "arguments.hpp"
#include "failures.hpp"
#include "kept_arguments.hpp"
#include "lazy_multicast.hpp"
#include "process.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// A waiting coroutine.
struct continuation {
  void (*resume)(void *) = nullptr;
  void *address = nullptr;

  explicit operator bool() const noexcept { return resume != nullptr; }
  void operator()() const { resume(address); }
};

/// The wait for one invocation. It is over when the delegate has been called or has been destroyed
/// without a call.
///
/// If there is a queue, a separate queued call resumes the coroutine. The coroutine stays in
/// `waiting_` until that call begins, so that the thread that runs the queue can still destroy it.
class arrival : public std::enable_shared_from_this<arrival> {
 public:
  explicit arrival(multicast_queue queue) {
    // Registers the fork handlers, which `is_inside_fork()` relies on.
    static_cast<void>(process_lock(guarded::groups));
    if (queue.id == 0) return;
    static_cast<void>(resumptions_.make([&](multicast made) {
      multicast_add_options how = MULTICAST_ADD_OPTIONS_INIT;
      how.queue = queue;
      return multicast_add(made, {resume_there, nullptr}, &how, nullptr);
    }));
  }
  arrival(const arrival &) = delete;
  arrival &operator=(const arrival &) = delete;
  virtual ~arrival() = default;

  bool is_over() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return is_over_;
  }
  bool has_queue() const noexcept { return resumptions_.get().id != 0; }
  /// Waits until the delegate has been called or destroyed. Returns false if the wait times out.
  bool wait(std::chrono::nanoseconds timeout) const {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto is_over = [this] { return is_over_; };
    if (timeout <= longest) return changed_.wait_for(lock, timeout, is_over);
    changed_.wait(lock, is_over);
    return true;
  }
  /// Suspends a coroutine. Returns false if the wait is already over, so that the coroutine
  /// continues immediately.
  bool suspend(continuation waiting) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (is_over_ && !has_queue()) return false;
    waiting_ = waiting;
    if (!is_over_) return true;
    lock.unlock();
    const auto self = shared_from_this();  // keeps this alive if the coroutine ends
    self->post();
    return true;
  }
  /// Called when the coroutine has been destroyed or has stopped waiting.
  void forget() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_ = {};
  }
  /// Ends the wait without a call. Does nothing if the wait is over.
  void end() noexcept {
    // Inside fork(), this runs in the child, which lacks the threads that are waiting or may hold
    // the lock.
    if (process_lock::is_inside_fork()) return;
    continuation next;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (is_over_) return;
      next = finish();
    }
    guard({}, [&] { go_on(next); });
  }

 protected:
  /// Calls `keep()`, which stores the arguments, before other threads can see that the wait is
  /// over.
  template <typename Keep>
  void come(Keep &&keep) {
    guard(failures{&thrown_, nullptr}, keep);
    continuation next;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      next = finish();
    }
    go_on(next);
  }
  /// Drops the stored arguments, so that the wait returns nothing.
  virtual void drop() noexcept = 0;

  /// The exception thrown by keep(). Only the waiting thread or coroutine reads it, once the wait
  /// is over.
  std::exception_ptr thrown_;

 private:
  MULTICAST_HPP_LOCAL static constexpr std::chrono::nanoseconds longest =
      std::chrono::hours(24 * 365);

  /// Called under the lock. Returns the coroutine to resume. If there is a queue, the coroutine
  /// also stays in `waiting_`.
  continuation finish() noexcept {
    is_over_ = true;
    changed_.notify_all();
    return has_queue() ? waiting_ : std::exchange(waiting_, {});
  }
  void go_on(continuation next) {
    if (!next) return;
    if (has_queue()) {
      post();
    } else {
      next();
    }
  }
  /// The payload keeps this object alive until the library releases the payload. If the queue
  /// refuses or drops the call, or is destroyed, `release` runs although no call was made.
  void post() noexcept {
    multicast_invocation how = MULTICAST_INVOCATION_INIT;
    how.payload = this;
    how.release = release;
    self_ = shared_from_this();
    static_cast<void>(multicast_invoke_with(resumptions_.get(), &how, nullptr));
  }
  static void resume_there(void *, uint32_t, const void *payload, size_t) {
    arrival &self = *static_cast<arrival *>(const_cast<void *>(payload));
    self.resume(false);
  }
  static void release(const void *payload, size_t) noexcept {
    arrival &self = *static_cast<arrival *>(const_cast<void *>(payload));
    const auto last = std::move(self.self_);
    last->resume(true);  // has no effect after a call has resumed it
  }
  void resume(bool is_given_up) {
    continuation next;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      next = std::exchange(waiting_, {});
    }
    if (!next) return;
    if (is_given_up) drop();
    guard({}, [&] { next(); });
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool is_over_ = false;
  continuation waiting_;
  /// A multicast whose only delegate resumes the coroutine. It is created only if there is a queue.
  lazy_multicast resumptions_;
  std::shared_ptr<arrival> self_;
};

/// The wait for one invocation, and the arguments of that invocation.
template <typename... Args>
class arrived_arguments final : public arrival {
 public:
  using arrival::arrival;
  void receive(passed<Args>... given) {
    come([&] { made_.emplace(keeping<value<Args>>::keep(given)...); });
  }
  /// Returns the arguments when called for the first time, and nothing after that. The wait must be
  /// over.
  std::optional<kept_arguments<Args...>> take() {
    rethrow(std::exchange(thrown_, nullptr));
    auto result = std::move(made_);
    made_.reset();
    return result;
  }

 private:
  void drop() noexcept override {
    made_.reset();
    thrown_ = nullptr;
  }

  std::optional<kept_arguments<Args...>> made_;
};

/// The delegate that receives the invocation. Destroying it ends the wait.
template <typename... Args>
class arriving {
 public:
  explicit arriving(std::shared_ptr<arrived_arguments<Args...>> to) noexcept : to_(std::move(to)) {}
  arriving(arriving &&) noexcept = default;
  arriving &operator=(arriving &&) = delete;
  ~arriving() {
    if (to_) to_->end();
  }
  void operator()(passed<Args>... given) {
    to_->receive(static_cast<passed<Args>>(given)...);
  }

 private:
  std::shared_ptr<arrived_arguments<Args...>> to_;
};

}  // namespace mcast::detail

#endif
