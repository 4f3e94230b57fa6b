// SPDX-License-Identifier: MIT
//
// The results of a signal, one by one.
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

/// The results of one invocation of a signal, as a forward range: signal<R(Args...)>::results().
///
/// A delegate is called once, when its result is needed: by `*`, or by a comparison with the end,
/// which has to know whether there is one more result. `++` alone calls nothing; a second `++`
/// calls the delegate that it passes over. Delegates that are removed meanwhile are not called, and
/// those that are added meanwhile are not, either. The signal may be destroyed: the range ends. The
/// range keeps all results, so that algorithms may pass over them several times.
///
/// It is neither copied nor moved. One thread at a time uses it and its iterators.
/// @since 1.1
template <typename Signature, typename... Given>
class result_range {
  static_assert(detail::never<Signature>, "it is made by signal::results()");
};

template <typename R, typename... Args, typename... Given>
class result_range<R(Args...), Given...> {
  static_assert(sizeof...(Args) == sizeof...(Given), "these are not the arguments of the signal");
  using object = std::remove_reference_t<R>;
  /// A delegate, and what it was asked.
  struct entry : detail::question<R> {
    multicast_token token;
    bool is_called = false;

    entry(multicast asked, multicast_token called) noexcept
        : detail::question<R>{asked}, token(called) {}
  };

 public:
  /// A forward iterator, of C++17 and C++20. All end iterators are equal.
  /// @since 1.1
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;  ///< Copies stay where they are.
    using value_type = std::remove_cv_t<object>;          ///< A result.
    using difference_type = std::ptrdiff_t;               ///< Between two results.
    using pointer = object *;                             ///< To a result.
    using reference = object &;                           ///< The range has it until its end.

    /// At the end.
    ///
    /// Cost:      O(1), no call.
    /// @since 1.1
    iterator() noexcept = default;
    /// The result; it may be moved from.
    ///
    /// @return A reference that is valid as long as the range.
    ///
    /// Errors:    exceptions of the delegate; then the iterator is before the next one.
    /// Cost:      the call of the delegate, if it has not been called.
    /// @since 1.1
    reference operator*() const {
      static_cast<void>(range_->has_result(at_));
      return range_->all_[at_].made.look();
    }
    /// Like `*`.
    ///
    /// @return A pointer that is valid as long as the range.
    ///
    /// Cost:      like `*`.
    /// @since 1.1
    pointer operator->() const { return detail::address(**this); }
    /// Goes to the next result.
    ///
    /// @return This iterator.
    ///
    /// Cost:      O(1). If this result was not asked for: the call of its delegate.
    /// @since 1.1
    iterator &operator++() {
      static_cast<void>(range_->has_result(at_));
      ++at_;
      return *this;
    }
    /// Goes to the next result.
    ///
    /// @return An iterator at this one.
    ///
    /// Cost:      like `++`.
    /// @since 1.1
    iterator operator++(int) {
      const iterator was = *this;
      ++*this;
      return was;
    }
    /// Whether both are at the same result, or at the end.
    ///
    /// @return Whether they are equal.
    ///
    /// Errors:    like for `*`.
    /// Cost:      like `*`.
    /// @since 1.1
    friend bool operator==(const iterator &a, const iterator &b) {
      return a.position() == b.position();
    }
    /// The contrary.
    ///
    /// @return Whether they are at different places.
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

  /// The first result. Calls nothing.
  ///
  /// @return An iterator, valid as long as the range.
  ///
  /// Cost:      O(1), no call.
  /// @since 1.1
  iterator begin() noexcept { return iterator(this); }
  /// The end.
  ///
  /// @return An iterator.
  ///
  /// Cost:      O(1), no call.
  /// @since 1.1
  iterator end() noexcept { return iterator(); }

 private:
  friend class signal<R(Args...)>;

  /// Binds the delegates. Their calls begin later.
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

  /// Whether there is a result, `at` this place or a later one. Calls the delegates up to it.
  bool has_result(size_t &at) {
    for (; at < all_.size(); ++at) {
      entry &each = all_[at];
      if (!std::exchange(each.is_called, true)) {
        arguments_.results = static_cast<detail::question<R> *>(&each);
        const int64_t called = multicast_token_visit(each.token, call, this);
        rethrow();
        // It may have been removed.
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
