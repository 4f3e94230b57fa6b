// SPDX-License-Identifier: MIT
//
// Signals with results.
#ifndef MULTICAST_RESULTS_HPP
#define MULTICAST_RESULTS_HPP

#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "detail/basic_signal.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// Whether a fold goes on.
/// @since 1.1
enum class step { go_on, stop };

/// A signal whose delegates return something. It has no queues: a queued call has no result in
/// time.
///
/// Each function calls the delegates in order on this thread, and takes each result before the next
/// delegate is called; so one that stops early leaves the others uncalled. Where delegates throw:
/// operator() and collect() call the others too, as signal<void()> does, then rethrow the first
/// exception. The functions that can stop early stop there, and rethrow it.
///
/// @since 1.1
template <typename R, typename... Args>
class signal<R(Args...)> : public detail::basic_signal<R, Args...> {
  static_assert(!std::is_rvalue_reference_v<R>, "a result is a value or an lvalue reference");
  using base = detail::basic_signal<R, Args...>;
  using frame = typename base::frame;

 public:
  /// A result as it is kept: a reference as a std::reference_wrapper.
  using result = std::conditional_t<std::is_reference_v<R>,
                                    std::reference_wrapper<std::remove_reference_t<R>>,
                                    std::remove_cv_t<R>>;

  /// Calls all delegates, and returns the last result; nothing if there is none.
  std::optional<result> operator()(detail::passed<Args>... arguments) const {
    std::optional<result> last;
    visit(true, [&](auto &&made) {
      last.emplace(std::forward<decltype(made)>(made));
      return true;
    }, static_cast<detail::passed<Args>>(arguments)...);
    return last;
  }
  /// Calls all delegates, and returns all results in order.
  std::vector<result> collect(detail::passed<Args>... arguments) const {
    std::vector<result> all;
    visit(true, [&](auto &&made) {
      all.push_back(std::forward<decltype(made)>(made));
      return true;
    }, static_cast<detail::passed<Args>>(arguments)...);
    return all;
  }
  /// Returns the first result that is true as a condition, such as an optional or a pointer that is
  /// not empty, and calls no further delegate. If results cannot be conditions: the first one.
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
  /// Whether all results are true; calls no further delegate after one that is not. True of none.
  bool all(detail::passed<Args>... arguments) const {
    bool answer = true;
    visit(false, [&](auto &&made) {
      answer = static_cast<bool>(made);
      return answer;
    }, static_cast<detail::passed<Args>>(arguments)...);
    return answer;
  }
  /// Whether a result is true; calls no further delegate after one that is. False of none.
  bool any(detail::passed<Args>... arguments) const {
    bool answer = false;
    visit(false, [&](auto &&made) {
      answer = static_cast<bool>(made);
      return !answer;
    }, static_cast<detail::passed<Args>>(arguments)...);
    return answer;
  }
  /// Passes each result to a function, before the next delegate is called: what the combiners of
  /// other libraries do with iterators.
  ///
  /// @param function  Gets a result. If it returns bool, false stops.
  /// @return How many delegates were called.
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
  /// @param sum       The initial value.
  /// @param function  Either as for std::accumulate(): gets the value so far and a result, and
  ///                  returns the next value. Or gets a reference to the value and a result, and
  ///                  returns mcast::step::go_on or mcast::step::stop.
  template <typename T, typename F>
  T fold(T sum, F &&function, detail::passed<Args>... arguments) const {
    visit(false, [&](auto &&made) {
      if constexpr (is_step<F, T, decltype(made)>::value) {
        return function(sum, std::forward<decltype(made)>(made)) == step::go_on;
      } else {
        sum = function(std::move(sum), std::forward<decltype(made)>(made));
        return true;
      }
    }, static_cast<detail::passed<Args>>(arguments)...);
    return sum;
  }

 private:
  template <typename F, typename T, typename Made, typename = void>
  struct is_step : std::false_type {};
  template <typename F, typename T, typename Made>
  struct is_step<F, T, Made,
                 std::enable_if_t<std::is_same_v<std::invoke_result_t<F &, T &, Made>, step>>>
      : std::true_type {};

  template <typename Body>
  struct visitor {
    frame *arguments;
    std::exception_ptr *thrown;
    Body *body;
    bool calls_all;

    static bool call(void *context, const multicast_delegate *delegate) {
      const visitor &self = *static_cast<const visitor *>(context);
      detail::answer<R> made;
      self.arguments->results = &made;
      delegate->function(delegate->context, 0, self.arguments, 0);
      bool goes_on = self.calls_all || !*self.thrown;
      if (made.is_there()) {
        detail::guard(self.arguments->where, [&] {
          goes_on = false;  // if it throws
          goes_on = (*self.body)(made.get());
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
    called context{&here, &thrown, &body, calls_all};
    const int64_t visited = multicast_visit(target, called::call, &context);
    if (thrown) detail::rethrow(std::move(thrown));
    return detail::count(visited);
  }
};

}  // namespace mcast

#endif
