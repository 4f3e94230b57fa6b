// SPDX-License-Identifier: MIT
//
// The results of a signal, one by one.
#ifndef MULTICAST_RESULT_RANGE_HPP
#define MULTICAST_RESULT_RANGE_HPP

#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "detail/answer.hpp"
#include "detail/arguments.hpp"
#include "detail/failures.hpp"
#include "detail/frame.hpp"

namespace MULTICAST_HPP_NAMESPACE {

template <typename Signature>
class signal;

/// The results of one invocation of a signal, as an input range: signal<R(Args...)>::results().
///
/// A delegate is called when its result is needed: by `*`, or by a comparison with the end, which
/// has to know whether there is one more result. `++` alone calls nothing; a second `++` calls the
/// delegate that it passes over. Delegates that are removed meanwhile are not called, and those
/// that are added meanwhile are not, either. The signal may be destroyed: the range ends.
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

 public:
  /// An input iterator, of C++17 and C++20. All that are at the end are equal.
  /// @since 1.1
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;  ///< One pass.
    using value_type = std::remove_cv_t<object>;        ///< A result.
    using difference_type = std::ptrdiff_t;             ///< Not used.
    using pointer = object *;                           ///< To a result.
    using reference = object &;                         ///< The range has it until `++`.

    /// At the end.
    ///
    /// Cost:      O(1), no call.
    /// @since 1.1
    iterator() noexcept = default;
    /// The result; it may be moved from.
    ///
    /// @return A reference that is valid until `++`.
    ///
    /// Errors:    what the delegate throws; then the iterator is before the next one.
    /// Cost:      the call of the delegate, if it has not been called.
    /// @since 1.1
    reference operator*() const {
      static_cast<void>(range_->has_result());
      return range_->result();
    }
    /// The same as `*`.
    ///
    /// @return A pointer that is valid until `++`.
    ///
    /// Cost:      as `*`.
    /// @since 1.1
    pointer operator->() const { return std::addressof(**this); }
    /// Goes to the next result.
    ///
    /// @return This iterator.
    ///
    /// Cost:      O(1). If this result was not asked for: the call of its delegate.
    /// @since 1.1
    iterator &operator++() {
      range_->pass();
      return *this;
    }
    /// Goes to the next result, and keeps this one.
    ///
    /// @return Something whose `*` is this result.
    ///
    /// Cost:      as `*` and `++`.
    /// @since 1.1
    auto operator++(int) {
      struct kept {
        std::conditional_t<std::is_reference_v<R>, R, value_type> result;
        object &operator*() { return result; }
      };
      kept was{static_cast<std::conditional_t<std::is_reference_v<R>, R, R &&>>(**this)};
      range_->pass();
      return was;
    }
    /// Whether both are at the end, or neither is.
    ///
    /// @return Whether they are equal.
    ///
    /// Errors:    as for `*`.
    /// Cost:      as `*`.
    /// @since 1.1
    friend bool operator==(const iterator &a, const iterator &b) {
      return a.is_at_end() == b.is_at_end();
    }
    /// The contrary.
    ///
    /// @return Whether one is at the end, and the other is not.
    ///
    /// Errors:    as for `*`.
    /// Cost:      as `*`.
    /// @since 1.1
    friend bool operator!=(const iterator &a, const iterator &b) { return !(a == b); }

   private:
    friend class result_range;
    explicit iterator(result_range *range) noexcept : range_(range) {}
    bool is_at_end() const { return range_ == nullptr || !range_->has_result(); }

    result_range *range_ = nullptr;
  };

  result_range(const result_range &) = delete;
  result_range &operator=(const result_range &) = delete;
  ~result_range() = default;

  /// The first result that was not passed yet. Calls nothing.
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
  template <size_t... I>
  result_range(multicast target, std::index_sequence<I...>, Given &&...given)
      : held_(std::forward<Given>(given)...),
        arguments_(std::get<I>(held_).pass()...),
        question_{target} {
    arguments_.results = &question_;
    arguments_.where.thrown = &thrown_;
    if (target.id == 0) return;
    tokens_.reserve(detail::count(multicast_count(target)));
    detail::check(multicast_visit(target, note, this));
    rethrow();
  }

  static bool note(void *context, const multicast_delegate *) {
    result_range &self = *static_cast<result_range *>(context);
    detail::guard(self.arguments_.where,
                  [&] { self.tokens_.push_back(multicast_token_current()); });
    return !self.thrown_;
  }
  static bool call(void *context, const multicast_delegate *delegate) {
    result_range &self = *static_cast<result_range *>(context);
    delegate->function(delegate->context, 0, &self.arguments_, 0);
    return true;
  }

  /// Calls delegates until there is a result.
  bool has_result() {
    while (!question_.made.is_there() && next_ < tokens_.size()) {
      const int64_t called = multicast_token_visit(tokens_[next_++], call, this);
      rethrow();
      // It may have been removed.
      if (called != MULTICAST_ERROR_INVALID_HANDLE) detail::check(called);
    }
    return question_.made.is_there();
  }
  /// Lets the result go.
  void pass() {
    static_cast<void>(has_result());
    question_.made.clear();
  }
  object &result() { return question_.made.look(); }

  void rethrow() {
    if (thrown_) detail::rethrow(std::exchange(thrown_, nullptr));
  }

  std::tuple<detail::held<Args, Given>...> held_;
  detail::frame<Args...> arguments_;
  detail::question<R> question_;
  std::exception_ptr thrown_;
  std::vector<multicast_token> tokens_;
  size_t next_ = 0;
};

}  // namespace mcast

#endif
