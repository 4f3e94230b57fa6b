// SPDX-License-Identifier: MIT
//
// A range of a signal's results.
#ifndef MULTICAST_RESULT_RANGE_HPP
#define MULTICAST_RESULT_RANGE_HPP

#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "detail/answer.hpp"
#include "detail/arguments.hpp"
#include "detail/frame.hpp"
#include "detail/invoke.hpp"
#include "error.hpp"

namespace MULTICAST_HPP_NAMESPACE {

template <typename Signature>
class signal;

/// The results of one invocation of a signal, as a forward range; returned by
/// signal<R(Args...)>::results().
///
/// Each delegate is called once, when its result is needed. The result is needed by `*`, and by a
/// comparison with the end, which checks whether there is another result. `++` calls the delegate
/// at the current position if its result has not been used yet. The range does not call delegates
/// that are added or removed during the iteration. If the signal is destroyed, the range ends. The
/// range stores all results, so that algorithms may iterate over them several times.
///
/// A result_range cannot be copied or moved. Only one thread at a time may use the range and its
/// iterators.
/// @since 1.1
template <typename Signature, typename... Given>
class result_range {
  static_assert(detail::never<Signature>, "it is made by signal::results()");
};

template <typename R, typename... Args, typename... Given>
class result_range<R(Args...), Given...> {
  static_assert(sizeof...(Args) == sizeof...(Given), "these are not the arguments of the signal");
  using object = std::remove_reference_t<R>;
  /// A delegate and the request for its result.
  struct entry : detail::question<R> {
    multicast_token token;
    bool is_called = false;

    entry(multicast asked, multicast_token called) noexcept
        : detail::question<R>{asked}, token(called) {}
  };

 public:
  /// A forward iterator as defined by C++17 and C++20. All end iterators are equal.
  /// @since 1.1
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;  ///< Several passes are possible.
    using value_type = std::remove_cv_t<object>;          ///< A result.
    using difference_type = std::ptrdiff_t;               ///< The distance between two results.
    using pointer = object *;                             ///< Points to a result.
    using reference = object &;                           ///< Valid until the range ends.

    /// Creates an end iterator.
    ///
    /// Cost:      O(1); does not call the library.
    /// @since 1.1
    iterator() noexcept = default;
    /// Returns the result, from which the caller may move.
    ///
    /// @return A reference that stays valid as long as the range exists.
    ///
    /// Errors:    any exception that the delegate throws. After an exception, the iterator is at
    ///            the next delegate.
    /// Cost:      the cost of the delegate's call, unless it has already been called.
    /// @since 1.1
    reference operator*() const {
      static_cast<void>(range_->has_result(at_));
      return range_->all_[at_].made.look();
    }
    /// Like `*`.
    ///
    /// @return A pointer that stays valid as long as the range exists.
    ///
    /// Cost:      like `*`.
    /// @since 1.1
    pointer operator->() const { return detail::address(**this); }
    /// Advances to the next result.
    ///
    /// @return This iterator.
    ///
    /// Cost:      O(1), plus the cost of the delegate's call if its result has not been used yet.
    /// @since 1.1
    iterator &operator++() {
      static_cast<void>(range_->has_result(at_));
      ++at_;
      return *this;
    }
    /// Advances to the next result.
    ///
    /// @return An iterator at the previous position.
    ///
    /// Cost:      like `++`.
    /// @since 1.1
    iterator operator++(int) {
      const iterator was = *this;
      ++*this;
      return was;
    }
    /// Whether both iterators are at the same result or at the end.
    ///
    /// @return Whether they are equal.
    ///
    /// Errors:    like for `*`.
    /// Cost:      like `*`.
    /// @since 1.1
    friend bool operator==(const iterator &a, const iterator &b) {
      return a.position() == b.position();
    }
    /// The opposite of `==`.
    ///
    /// @return Whether they are at different results.
    ///
    /// Errors:    like for `*`.
    /// Cost:      like `*`.
    /// @since 1.1
    friend bool operator!=(const iterator &a, const iterator &b) { return !(a == b); }

   private:
    friend class result_range;
    explicit iterator(result_range *range) noexcept : range_(range) {}
    const entry *position() const {
      return range_ == nullptr || !range_->has_result(at_) ? nullptr : &range_->all_[at_];
    }

    result_range *range_ = nullptr;
    mutable size_t at_ = 0;
  };

  result_range(const result_range &) = delete;
  result_range &operator=(const result_range &) = delete;
  ~result_range() = default;

  /// Returns an iterator at the first result, without calling a delegate.
  ///
  /// @return An iterator that stays valid as long as the range exists.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  iterator begin() noexcept { return iterator(this); }
  /// The end.
  ///
  /// @return An iterator.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  iterator end() noexcept { return iterator(); }

 private:
  friend class signal<R(Args...)>;

  /// Collects the delegates, but does not call them yet.
  explicit result_range(multicast target, Given &&...given)
      : result_range(target, std::index_sequence_for<Args...>(), std::forward<Given>(given)...) {}
  template <size_t... Index>
  result_range(multicast target, std::index_sequence<Index...>, Given &&...given)
      : held_(std::forward<Given>(given)...),
        arguments_(std::get<Index>(held_).pass()...),
        target_(target) {
    arguments_.where.thrown = &thrown_;
    if (target.id == 0) return;
    all_.reserve(detail::count(multicast_count(target)));
    detail::ensure(multicast_visit(target, note, this));
    rethrow();
  }

  static bool note(void *context, const multicast_delegate *) {
    result_range &self = *static_cast<result_range *>(context);
    detail::guard(self.arguments_.where,
                  [&] { self.all_.emplace_back(self.target_, multicast_token_current()); });
    return !self.thrown_;
  }
  static bool call(void *context, const multicast_delegate *delegate) {
    result_range &self = *static_cast<result_range *>(context);
    delegate->function(delegate->context, 0, &self.arguments_, 0);
    return true;
  }

  /// Whether there is a result at the index `at` or later. Calls delegates until one has a result,
  /// and advances `at` to it.
  bool has_result(size_t &at) {
    for (; at < all_.size(); ++at) {
      entry &each = all_[at];
      if (!std::exchange(each.is_called, true)) {
        arguments_.results = static_cast<detail::question<R> *>(&each);
        const int64_t called = multicast_token_visit(each.token, call, this);
        rethrow();
        // If the delegate has been removed, the visit calls nothing, which is not an error.
        if (called != MULTICAST_ERROR_INVALID_HANDLE) detail::ensure(called);
      }
      if (each.made.is_there()) return true;
    }
    return false;
  }
  void rethrow() {
    if (thrown_) detail::rethrow(std::exchange(thrown_, nullptr));
  }

  std::tuple<detail::held<Args, Given>...> held_;
  detail::frame<Args...> arguments_;
  multicast target_;
  std::exception_ptr thrown_;
  std::vector<entry> all_;
};

}  // namespace mcast

#endif
