// SPDX-License-Identifier: MIT
//
// Signals with results.
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

/// The result of combine(). It must not refer into the range of the results, which ends before.
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

/// Whether a fold goes on.
/// @since 1.1
enum class step {
  go_on,  ///< With the next delegate.
  stop    ///< The other delegates are not called.
};

/// A signal whose delegates return something. It has no queues: a queued call has no result in
/// time.
///
/// Each function calls the delegates in order on this thread, and takes each result before the next
/// delegate is called; so a function that stops early does not call the others. If delegates throw,
/// operator() and collect() still call the others, as signal<void()> does, then rethrow the first
/// exception. The functions that can stop early stop there, and rethrow it. results() rethrows each
/// exception where the result would be, and may be continued.
///
/// The call of a delegate with mcast::once removes it first, which is O(delegates).
///
/// Threads:   any; the delegates run on the calling thread.
/// Reentry:   delegates may call anything, and destroy this object.
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

  /// A result as it is kept: a reference as a `std::reference_wrapper`.
  /// @since 1.1
  using result = std::conditional_t<std::is_reference_v<R>,
                                    std::reference_wrapper<std::remove_reference_t<R>>,
                                    std::remove_cv_t<R>>;
  static_assert(!std::is_reference_v<R> || detail::is_complete<result>::value,
                "results that are references are kept as std::reference_wrapper: include "
                "<functional>");

  /// Calls all delegates.
  ///
  /// @param arguments  Nothing is copied.
  /// @return The last result; nothing if there is none.
  ///
  /// Errors:    the first exception of a delegate, after all have been called.
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
  /// @param arguments  Nothing is copied.
  /// @return All results in order.
  ///
  /// Errors:    the first exception of a delegate, after all have been called.
  /// Cost:      like multicast_visit(), and the vector.
  /// @since 1.1
  std::vector<result> collect(detail::passed<Args>... arguments) const {
    std::vector<result> all;
    visit(true, [&](auto &&made) {
      all.push_back(std::forward<decltype(made)>(made));
      return true;
    }, static_cast<detail::passed<Args>>(arguments)...);
    return all;
  }

  /// Calls delegates until a result is true as a condition, such as an optional or a pointer that
  /// is not empty. If results cannot be conditions: calls the first one.
  ///
  /// @param arguments  Nothing is copied.
  /// @return That result; nothing if there is none.
  ///
  /// Errors:    exceptions of a delegate; the others are not called.
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
  /// @param arguments  Nothing is copied.
  /// @return Also true if there is no delegate.
  ///
  /// Errors:    exceptions of a delegate; the others are not called.
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
  /// @param arguments  Nothing is copied.
  /// @return Also false if there is no delegate.
  ///
  /// Errors:    exceptions of a delegate; the others are not called.
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

  /// Asks all delegates, or none: each is called until one refuses, with a result that is false.
  /// Then the delegates that had agreed are called once more, in reverse, with other arguments,
  /// except those that have since been removed.
  ///
  ///     if (!saving.all_or_undo({step::prepare, file}, {step::roll_back, file})) ...
  ///
  /// @param asked  The arguments with which each is asked.
  /// @param undo   The arguments with which those that had agreed are called. Their results do not
  ///               count.
  /// @return Whether all have agreed; also true if there is no delegate.
  ///
  /// Errors:    the first exception of a delegate. One that throws when it is asked has refused.
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

  /// Passes each result to a function, before the next delegate is called.
  ///
  /// @param function   Gets a result. If it returns bool, false stops.
  /// @param arguments  Nothing is copied.
  /// @return How many results there were.
  ///
  /// Errors:    exceptions of a delegate or of the function; the others are not called.
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
  /// @param function   Either as for std::accumulate(): gets the value so far and a result, and
  ///                   returns the next value. Or gets a reference to the value and a result, and
  ///                   returns mcast::step::go_on or mcast::step::stop.
  /// @param arguments  Nothing is copied.
  /// @return The value.
  ///
  /// Errors:    exceptions of a delegate or of the function; the others are not called.
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

  /// The results one by one: `for (int each : s.results(1))`. A delegate is called when its result
  /// is asked for; the delegates after the last one that was asked are not called.
  ///
  /// @param arguments  A variable that is passed as a reference is referred to. Everything else is
  ///                   copied or moved from, once.
  /// @return An input range; see result_range. The delegates are those that are there now.
  ///
  /// Errors:    exceptions of a delegate, where its result is asked for. The iteration may then go
  ///            on with the next delegate.
  /// Threads:   the delegates run on the thread that iterates. Between them, no call is running: a
  ///            removal does not wait.
  /// Cost:      O(delegates), one allocation; for each result as multicast_token_visit().
  /// @since 1.1
  template <typename... Given>
  result_range<R(Args...), Given...> results(Given &&...arguments) const {
    return result_range<R(Args...), Given...>(base::invoked(), std::forward<Given>(arguments)...);
  }

  /// Passes the results to a combiner, as in Boost.Signals2.
  ///
  /// @param combiner   Called with two iterators of a result_range, its begin and end.
  /// @param arguments  As for results().
  /// @return What the combiner returns. The results end with this call: a reference becomes a
  ///         value, unless the results are references.
  ///
  /// Errors:    like results(); exceptions of the combiner.
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
      bool answer = true;  // of one that was not called: another thread has removed it
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
          goes_on = false;  // if it throws
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
