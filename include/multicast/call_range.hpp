// SPDX-License-Identifier: MIT
//
// A range over the calls of an invocation, for signals without results.
#ifndef MULTICAST_CALL_RANGE_HPP
#define MULTICAST_CALL_RANGE_HPP

#include <cstddef>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "detail/arguments.hpp"
#include "detail/frame.hpp"
#include "error.hpp"

namespace MULTICAST_HPP_NAMESPACE {

template <typename Signature>
class signal;

/// Represents the result of a delegate that returns nothing, so that combiners can handle it.
/// @since 1.1
struct nothing {};

/// The calls of one invocation of a signal without results, as an input range for
/// signal<void(...)>::combine(): `*` calls a delegate, and `++` moves on to the next.
///
/// A call_range cannot be copied or moved. Only one thread at a time may use the range and its
/// iterators.
/// @since 1.1
template <typename Signature, typename... Given>
class call_range {
  static_assert(detail::never<Signature>, "it is made by signal::combine()");
};

template <typename... Args, typename... Given>
class call_range<void(Args...), Given...> {
  static_assert(sizeof...(Args) == sizeof...(Given), "these are not the arguments of the signal");

 public:
  /// An input iterator. All end iterators are equal.
  /// @since 1.1
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;  ///< One pass.
    using value_type = nothing;                         ///< No result.
    using difference_type = std::ptrdiff_t;             ///< Not used.
    using pointer = const nothing *;                    ///< Not used.
    using reference = nothing;                          ///< No result.

    /// Creates an end iterator.
    ///
    /// Cost:      O(1); does not call the library.
    /// @since 1.1
    iterator() noexcept = default;
    /// Calls the delegate. Dereferencing the iterator again does not repeat the call.
    ///
    /// @return No result.
    ///
    /// Errors:    any exception that the delegate throws.
    /// Cost:      the cost of the delegate's call.
    /// @since 1.1
    nothing operator*() const {
      range_->call_next();
      return {};
    }
    /// Moves to the next delegate. If the current delegate has not been called yet, it is skipped.
    ///
    /// @return This iterator.
    ///
    /// Cost:      O(1). Skips delegates that have since been removed, as `==` does.
    /// @since 1.1
    iterator &operator++() noexcept {
      range_->pass();
      return *this;
    }
    /// Like the prefix `++`.
    ///
    /// Cost:      O(1). Skips delegates that have since been removed, as `==` does.
    /// @since 1.1
    void operator++(int) noexcept { range_->pass(); }
    /// Compares iterators. Two iterators are equal if both or neither of them are at the end.
    ///
    /// @return Whether they are equal.
    ///
    /// Cost:      O(1). Skips delegates that have since been removed, by calling
    ///            multicast_token_is_valid().
    /// @since 1.1
    friend bool operator==(const iterator &a, const iterator &b) noexcept {
      return a.is_at_end() == b.is_at_end();
    }
    friend bool operator!=(const iterator &a, const iterator &b) noexcept { return !(a == b); }

   private:
    friend class call_range;
    explicit iterator(call_range *range) noexcept : range_(range) {}
    bool is_at_end() const noexcept { return range_ == nullptr || !range_->has_next(); }

    call_range *range_ = nullptr;
  };

  call_range(const call_range &) = delete;
  call_range &operator=(const call_range &) = delete;
  ~call_range() = default;

  /// Returns an iterator at the current delegate.
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
  friend class signal<void(Args...)>;

  explicit call_range(multicast target, Given &&...given)
      : call_range(target, std::index_sequence_for<Args...>(), std::forward<Given>(given)...) {}
  template <size_t... Index>
  call_range(multicast target, std::index_sequence<Index...>, Given &&...given)
      : held_(std::forward<Given>(given)...),
        here_(std::in_place, std::get<Index>(held_).pass()...) {
    if (target.id == 0) return;
    detail::ensure(multicast_enumerate(target, note, this));
    rethrow();
  }

  static bool note(void *context, const multicast_registration *each) {
    call_range &self = *static_cast<call_range *>(context);
    detail::guard(self.here_.arguments.where, [&] {
      // Fail if the delegate has a queue, because the range would call the delegate directly.
      if (each->queue.id != 0) detail::fail(MULTICAST_ERROR_STATE);
      if (!each->is_paused && each->queue.id == 0) self.tokens_.push_back(each->token);
    });
    return !self.here_.thrown;
  }
  static bool call(void *context, const multicast_delegate *delegate) {
    call_range &self = *static_cast<call_range *>(context);
    delegate->function(delegate->context, 0, &self.here_.arguments, 0);
    return true;
  }

  bool has_next() noexcept {
    while (next_ < tokens_.size() && !is_called_ && !multicast_token_is_valid(tokens_[next_])) {
      ++next_;
    }
    return next_ < tokens_.size();
  }
  void call_next() {
    if (!has_next() || std::exchange(is_called_, true)) return;
    const int64_t called = multicast_token_visit(tokens_[next_], call, this);
    rethrow();
    // If the delegate has been removed, the visit calls nothing, which is not an error.
    if (called != MULTICAST_ERROR_INVALID_HANDLE) detail::ensure(called);
  }
  void pass() noexcept {
    if (has_next()) ++next_;
    is_called_ = false;
  }
  void rethrow() {
    if (here_.thrown) detail::rethrow(std::exchange(here_.thrown, nullptr));
  }

  std::tuple<detail::held<Args, Given>...> held_;
  detail::original_frame<detail::frame<Args...>> here_;
  std::vector<multicast_token> tokens_;
  size_t next_ = 0;
  bool is_called_ = false;
};

}  // namespace mcast

#endif
