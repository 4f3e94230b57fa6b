// SPDX-License-Identifier: MIT
//
// Signals whose delegates return results.
#ifndef MULTICAST_RESULTS_HPP
#define MULTICAST_RESULTS_HPP

#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "signal/basic_signal.hpp"
#include "detail/invoke.hpp"
#include "result_range.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The result type of combine(). It must not refer to an element of the range, because the range is
/// destroyed before combine() returns.
template <typename R, typename Combiner, typename Iterator>
struct combined {
  using made = std::invoke_result_t<Combiner, Iterator, Iterator>;
  using type = std::conditional_t<std::is_reference_v<R>, made, value<made>>;
  static_assert(!std::is_same_v<value<made>, Iterator> &&
                    (std::is_same_v<made, type> || std::is_constructible_v<type, made>),
                "the results end with this call: let the combiner return a value");
};

}  // namespace mcast::detail

namespace MULTICAST_HPP_NAMESPACE {

/// Whether a fold continues.
/// @since 1.1
enum class step {
  go_on,  ///< Continues with the next delegate.
  stop    ///< Does not call the other delegates.
};

/// A signal whose delegates return results. Its delegates cannot have queues, because the result of
/// a queued call would arrive too late.
///
/// Each function calls the delegates in order on this thread, and processes each result before it
/// calls the next delegate. Therefore a function that stops early does not call the remaining
/// delegates. If a delegate throws, operator() and collect() still call the others, as
/// signal<void()> does, and then rethrow the first exception. The functions that can stop early
/// stop at the delegate that throws, and rethrow its exception. An iteration over results()
/// rethrows each exception in place of the result, and can continue after it.
///
/// A delegate added with mcast::once is removed before it is called, which costs O(delegates).
///
/// Threads:   any; the delegates run on the calling thread.
/// Reentry:   delegates may call anything, and may destroy this object.
/// @since 1.1
template <typename R, typename... Args>
class signal<R(Args...)> : public detail::basic_signal<R, Args...>,
                           private detail::refused_arguments<sizeof...(Args) != 0> {
  static_assert(!std::is_rvalue_reference_v<R>, "a result is a value or an lvalue reference");
  using base = detail::basic_signal<R, Args...>;
  using frame = typename base::frame;
  template <typename Combiner, typename Iterator>
  using combined = typename detail::combined<R, Combiner, Iterator>::type;

 public:
  using base::base;
  using detail::refused_arguments<sizeof...(Args) != 0>::operator();
  constexpr signal() noexcept = default;
  signal(const signal &) = delete;  // pass a signal by reference, or move it
  signal &operator=(const signal &) = delete;
  signal(signal &&) noexcept = default;
  signal &operator=(signal &&) noexcept = default;
  ~signal() = default;

  /// The type in which a result is stored. A reference is stored as a `std::reference_wrapper`.
  /// @since 1.1
  using result = std::conditional_t<std::is_reference_v<R>,
                                    std::reference_wrapper<std::remove_reference_t<R>>,
                                    std::remove_cv_t<R>>;
  static_assert(!std::is_reference_v<R> || detail::is_complete<result>::value,
                "results that are references are kept as std::reference_wrapper: include "
                "<functional>");

  /// Calls all delegates.
  ///
  /// @param arguments  Passed to the delegates without being copied.
  /// @return The last result; empty if there is none.
  ///
  /// Errors:    the first exception that a delegate throws, after all delegates have been called.
  /// Cost:      like multicast_visit().
  /// @since 1.1
  std::optional<result> operator()(detail::passed<Args>... arguments) const {
    std::optional<result> last;
    visit(true, [&](auto &&made) {
      last.emplace(std::forward<decltype(made)>(made));
      return true;
    }, static_cast<detail::passed<Args>>(arguments)...);
    return last;
  }

  /// Calls all delegates.
  ///
  /// @param arguments  Passed to the delegates without being copied.
  /// @return All results in order.
  ///
  /// Errors:    the first exception that a delegate throws, after all delegates have been called.
  /// Cost:      like multicast_visit(), plus the cost of building the vector.
  /// @since 1.1
  std::vector<result> collect(detail::passed<Args>... arguments) const {
    std::vector<result> all;
    visit(true, [&](auto &&made) {
      all.push_back(std::forward<decltype(made)>(made));
      return true;
    }, static_cast<detail::passed<Args>>(arguments)...);
    return all;
  }

  /// Calls delegates until a result converts to true, as an optional with a value or a non-null
  /// pointer does. If results cannot be converted to bool, calls only the first delegate.
  ///
  /// @param arguments  Passed to the delegates without being copied.
  /// @return The result that converts to true; empty if there is none.
  ///
  /// Errors:    any exception that a delegate throws. The remaining delegates are then not called.
  /// Cost:      like multicast_visit().
  /// @since 1.1
  std::optional<result> first_of(detail::passed<Args>... arguments) const {
    std::optional<result> first;
    visit(false, [&](auto &&made) {
      if constexpr (std::is_constructible_v<bool, R>) {
        if (!static_cast<bool>(made)) return true;
      }
      first.emplace(std::forward<decltype(made)>(made));
      return false;
    }, static_cast<detail::passed<Args>>(arguments)...);
    return first;
  }

  /// Whether all results are true. Stops at the first result that is false.
  ///
  /// @param arguments  Passed to the delegates without being copied.
  /// @return true if all results are true, or if there is no delegate.
  ///
  /// Errors:    any exception that a delegate throws. The remaining delegates are then not called.
  /// Cost:      like multicast_visit().
  /// @since 1.1
  bool all(detail::passed<Args>... arguments) const {
    bool answer = true;
    visit(false, [&](auto &&made) {
      answer = is_true(made);
      return answer;
    }, static_cast<detail::passed<Args>>(arguments)...);
    return answer;
  }

  /// Whether any result is true. Stops at the first result that is true.
  ///
  /// @param arguments  Passed to the delegates without being copied.
  /// @return true if any result is true; false if there is no delegate.
  ///
  /// Errors:    any exception that a delegate throws. The remaining delegates are then not called.
  /// Cost:      like multicast_visit().
  /// @since 1.1
  bool any(detail::passed<Args>... arguments) const {
    bool answer = false;
    visit(false, [&](auto &&made) {
      answer = is_true(made);
      return !answer;
    }, static_cast<detail::passed<Args>>(arguments)...);
    return answer;
  }

  /// Asks all delegates for their agreement, in order, until one refuses by returning a false
  /// result. If one refuses, the delegates that had agreed are called again with other arguments,
  /// in reverse order, so that they can undo their work. Delegates that have since been removed are
  /// not called again.
  ///
  ///     if (!saving.all_or_undo({step::prepare, file}, {step::roll_back, file})) ...
  ///
  /// @param asked  The arguments of the first calls.
  /// @param undo   The arguments with which the delegates that had agreed are called again. The
  ///               results of these calls are ignored.
  /// @return Whether all delegates have agreed; true if there is no delegate.
  ///
  /// Errors:    the first exception that a delegate throws. A delegate that throws when it is asked
  ///            counts as having refused.
  /// Cost:      like multicast_visit_undo().
  /// @since 1.1
  bool all_or_undo(const std::tuple<detail::passed<Args>...> &asked,
                   const std::tuple<detail::passed<Args>...> &undo) const {
    const multicast target = base::invoked();
    if (target.id == 0) return true;
    std::exception_ptr thrown;
    frame first = std::make_from_tuple<frame>(asked), second = std::make_from_tuple<frame>(undo);
    first.where.thrown = second.where.thrown = &thrown;
    bool agreed = true;
    attempt both{target, &first, &second, &agreed};
    const int64_t visited = multicast_visit_undo(
        target,
        [](void *context, const multicast_delegate *delegate) {
          const attempt &self = *static_cast<attempt *>(context);
          return *self.agreed = self.call(*self.first, delegate);
        },
        [](void *context, const multicast_delegate *delegate) {
          const attempt &self = *static_cast<attempt *>(context);
          static_cast<void>(self.call(*self.second, delegate));
          return true;
        },
        &both);
    if (thrown) detail::rethrow(thrown);
    return detail::ensure(visited) >= 0 && agreed;
  }

  /// Passes each result to a function before it calls the next delegate.
  ///
  /// @param function   Receives a result. If it returns bool, false stops the iteration.
  /// @param arguments  Passed to the delegates without being copied.
  /// @return The number of results.
  ///
  /// Errors:    any exception that a delegate or the function throws. The remaining delegates are
  ///            then not called.
  /// Cost:      like multicast_visit().
  /// @since 1.1
  template <typename F>
  size_t each(F &&function, detail::passed<Args>... arguments) const {
    return visit(false, [&](auto &&made) {
      using answer = decltype(function(std::forward<decltype(made)>(made)));
      if constexpr (std::is_same_v<answer, bool>) {
        return function(std::forward<decltype(made)>(made));
      } else {
        static_cast<void>(function(std::forward<decltype(made)>(made)));
        return true;
      }
    }, static_cast<detail::passed<Args>>(arguments)...);
  }

  /// Combines all results.
  ///
  /// @param sum        The initial value.
  /// @param function   Called with the current value and a result. Like a function for
  ///                   std::accumulate(), it may return the next value. Alternatively, it may take
  ///                   the value by reference, change it, and return mcast::step::go_on or
  ///                   mcast::step::stop.
  /// @param arguments  Passed to the delegates without being copied.
  /// @return The value.
  ///
  /// Errors:    any exception that a delegate or the function throws. The remaining delegates are
  ///            then not called.
  /// Cost:      like multicast_visit().
  /// @since 1.1
  template <typename T, typename F>
  T fold(T sum, F &&function, detail::passed<Args>... arguments) const {
    visit(false, [&](auto &&made) {
      if constexpr (is_step<F, T, decltype(made)>::value) {
        return function(sum, std::forward<decltype(made)>(made)) == step::go_on;
      } else {
        sum = static_cast<T>(function(std::move(sum), std::forward<decltype(made)>(made)));
        return true;
      }
    }, static_cast<detail::passed<Args>>(arguments)...);
    return sum;
  }

  /// Returns the results one at a time: `for (int each : s.results(1))`. Each delegate is called
  /// when its result is used. If the loop ends early, the remaining delegates are not called.
  ///
  /// @param arguments  A variable that the signal takes by reference is passed on as a reference.
  ///                   All other arguments are copied or moved once.
  /// @return A range of the results of the delegates that are registered now; see result_range.
  ///
  /// Errors:    if a delegate throws, using its result rethrows the exception. The iteration can
  ///            then continue with the next delegate.
  /// Threads:   the delegates run on the thread that iterates. While the loop processes a result,
  ///            no call is running, so removals do not wait.
  /// Cost:      O(delegates) and one allocation; each result costs as much as
  ///            multicast_token_visit().
  /// @since 1.1
  template <typename... Given>
  result_range<R(Args...), Given...> results(Given &&...arguments) const {
    return result_range<R(Args...), Given...>(base::invoked(), std::forward<Given>(arguments)...);
  }

  /// Passes the results to a combiner, as in Boost.Signals2.
  ///
  /// @param combiner   Called with the begin and end iterators of a result_range.
  /// @param arguments  As for results().
  /// @return The combiner's result. Because the range is destroyed before combine() returns, a
  ///         reference is returned as a value, unless the signal's results are references
  ///         themselves.
  ///
  /// Errors:    like results(), or any exception that the combiner throws.
  /// Cost:      like results().
  /// @since 1.1
  template <typename Combiner, typename... Given>
  auto combine(Combiner &&combiner, Given &&...arguments) const
      -> combined<Combiner, typename result_range<R(Args...), Given...>::iterator> {
    auto range = results(std::forward<Given>(arguments)...);
    return detail::invoke(std::forward<Combiner>(combiner), range.begin(), range.end());
  }

 private:
  template <typename Made>
  static bool is_true(Made &made) {
    constexpr bool is_condition = std::is_constructible_v<bool, Made &>;
    static_assert(is_condition,
                  "all(), any() and all_or_undo() take results that are conditions");
    if constexpr (is_condition) return static_cast<bool>(made);
    return false;
  }

  template <typename F, typename T, typename Made, typename = void>
  struct is_step : std::false_type {};
  template <typename F, typename T, typename Made>
  struct is_step<F, T, Made,
                 std::enable_if_t<std::is_same_v<std::invoke_result_t<F &, T &, Made>, step>>>
      : std::true_type {};

  struct attempt {
    multicast target;
    frame *first, *second;
    bool *agreed;

    bool call(frame &arguments, const multicast_delegate *delegate) const {
      detail::question<R> question{target};
      arguments.results = &question;
      delegate->function(delegate->context, 0, &arguments, 0);
      bool answer = true;  // stays true if another thread has removed the delegate
      if (question.made.is_there()) {
        decltype(auto) made = question.made.get();
        answer = is_true(made);
      }
      return answer && !*arguments.where.thrown;
    }
  };

  template <typename Body>
  struct visitor {
    multicast target;
    frame *arguments;
    std::exception_ptr *thrown;
    Body *body;
    bool calls_all;
    size_t results = 0;

    static bool call(void *context, const multicast_delegate *delegate) {
      visitor &self = *static_cast<visitor *>(context);
      detail::question<R> asked{self.target};
      self.arguments->results = &asked;
      delegate->function(delegate->context, 0, self.arguments, 0);
      bool goes_on = self.calls_all || !*self.thrown;
      if (asked.made.is_there()) {
        ++self.results;
        detail::guard(self.arguments->where, [&] {
          goes_on = false;  // stays false if the body throws
          goes_on = (*self.body)(asked.made.get());
        });
      }
      return goes_on;
    }
  };

  template <typename Body>
  size_t visit(bool calls_all, Body &&body, detail::passed<Args>... arguments) const {
    const multicast target = base::invoked();
    if (target.id == 0) return 0;
    std::exception_ptr thrown;
    frame here(static_cast<detail::passed<Args>>(arguments)...);
    here.where.thrown = &thrown;
    using called = visitor<std::remove_reference_t<Body>>;
    called context{target, &here, &thrown, &body, calls_all};
    const int64_t visited = multicast_visit(target, called::call, &context);
    if (thrown) detail::rethrow(std::move(thrown));
    return detail::check_invoked(visited) < 0 ? 0 : context.results;
  }
};

}  // namespace mcast

#endif
