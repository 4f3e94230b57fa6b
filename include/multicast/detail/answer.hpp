// SPDX-License-Identifier: MIT
//
// Storage for the results that delegates and posted callables return to their callers.
#ifndef MULTICAST_DETAIL_ANSWER_HPP
#define MULTICAST_DETAIL_ANSWER_HPP

#include <atomic>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "failures.hpp"
#include "invoke.hpp"
#include "owners.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// A result that a call stores for its caller, which may be waiting on another thread.
template <typename R>
struct answer {
  std::optional<R> result;
  template <typename F>
  void take(F &function) {
    result.emplace(detail::invoke(function));
  }
  void clear() noexcept { result.reset(); }
  bool is_there() const { return result.has_value(); }
  // The caller must have checked that there is a result.
  // NOLINTBEGIN(bugprone-unchecked-optional-access)
  R get() { return std::move(*result); }
  R &look() { return *result; }
  // NOLINTEND(bugprone-unchecked-optional-access)
};
template <typename R>
struct answer<R &> {
  R *result = nullptr;
  template <typename F>
  void take(F &function) {
    result = detail::address(detail::invoke(function));
  }
  void clear() noexcept { result = nullptr; }
  bool is_there() const { return result != nullptr; }
  R &get() { return *result; }
  R &look() { return *result; }
};
template <>
struct answer<void> {
  template <typename F>
  void take(F &function) {
    static_cast<void>(detail::invoke(function));
  }
  void get() {}
};

/// A request for a delegate's result, in a signal with results.
template <typename R>
struct question {
  multicast target;
  answer<R> made = {};
};

template <typename F, typename = void>
struct invoked {
  using type = void;
};
template <typename F>
struct invoked<F, std::enable_if_t<std::is_invocable_v<F &>>> : std::invoke_result<F &> {};
/// The type in which the result of a callable is stored. If the callable cannot be called without
/// arguments, the type is void, and another check reports the error.
template <typename F>
using kept_result = typename std::conditional_t<
    std::is_lvalue_reference_v<typename invoked<F>::type>, invoked<F>,
    std::decay<typename invoked<F>::type>>::type;

/// A callable together with its result, for which a thread is waiting. The thread may stop waiting
/// before the call begins.
template <typename F>
struct asked : counted_owners {
  static_assert(std::is_invocable_v<F &>,
                "post_and_wait() takes a callable without arguments: capture them");
  using kept = kept_result<F>;
  F function;
  answer<kept> made;
  std::exception_ptr thrown;
  std::atomic<bool> is_claimed{false};
  std::atomic<bool> is_over{false};

  explicit asked(const F &given) : function(given) {}
  explicit asked(F &&given) : function(std::move(given)) {}
  void run() {
    if (is_claimed.exchange(true)) return;
    guard(failures{&thrown, nullptr}, [this] { made.take(function); });
    is_over.store(true, std::memory_order_release);
  }
};

}  // namespace mcast::detail

#endif
