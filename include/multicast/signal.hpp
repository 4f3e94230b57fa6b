// SPDX-License-Identifier: MIT
//
// Signals whose delegates return no results.
#ifndef MULTICAST_SIGNAL_HPP
#define MULTICAST_SIGNAL_HPP

#include <chrono>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "call_range.hpp"
#include "results.hpp"
#include "signal/basic_signal.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The parameter type of the invoke() overload that moves every movable argument. The second
/// template parameter delays the check until a signal is invoked, so that the argument types may be
/// incomplete until then.
template <typename Arg, typename>
struct given_away {
  using type = std::conditional_t<is_movable<Arg>(), Arg &&, passed<Arg>>;
};

template <typename, typename... Args>
inline constexpr bool is_any_movable =
    std::disjunction_v<std::bool_constant<is_movable<Args>()>...>;

template <typename T>
inline constexpr bool is_number = std::is_arithmetic_v<T> || std::is_enum_v<T>;
/// Whether passing a `Given` as an `Arg` involves a conversion to or from a number, or may involve
/// a bit-field. Such an argument must be converted at the call site, where the compiler can still
/// distinguish a literal from a variable.
template <typename Arg, typename Given>
constexpr bool is_converted_number() {
  using from = value<Given>;
  if (!std::is_same_v<value<Arg>, from>) return is_number<value<Arg>> || is_number<from>;
  return is_number<from> && std::is_same_v<Given, from &> && !std::is_same_v<Arg, Given>;
}

/// Whether the caller moves some of the movable arguments but not others.
template <typename Sequence, typename... Args>
struct is_mixed;
template <typename... Given, typename... Args>
struct is_mixed<std::tuple<Given...>, Args...> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(Given) == sizeof...(Args)) {
      return (std::is_convertible_v<Given &&, passed<Args>> && ...) &&
             (is_moved<Args, Given>() || ...) &&
             ((is_movable<Args>() && std::is_lvalue_reference_v<Given> &&
               std::is_convertible_v<std::add_pointer_t<Given>, const detail::value<Args> *>) ||
              ...) &&
             !(is_converted_number<Args, Given>() || ...);
    }
    return false;
  }();
};

}  // namespace mcast::detail

namespace MULTICAST_HPP_NAMESPACE {

/// A multicast whose delegates are called with the arguments that `Signature` lists. The destructor
/// removes the delegates, as multicast_destroy() does. All delegates called by an invocation
/// receive the same arguments. An argument declared by value is not copied; the delegates receive
/// the invoker's value as const.
///
/// A moved-from signal is empty.
///
/// Reentry:   delegates may call anything, and may even destroy this object.
/// @since 1.0
template <typename Signature>
class signal {
  static_assert(detail::never<Signature>,
                "a signal takes a function type: signal<void(int, bool)>");
};

/// A signal whose delegates return nothing, or return results that are ignored.
/// @since 1.0
template <typename... Args>
class signal<void(Args...)> : public detail::basic_signal<void, Args...>,
                              private detail::refused_arguments<sizeof...(Args) != 0> {
  using base = detail::basic_signal<void, Args...>;
  using refused = detail::refused_arguments<sizeof...(Args) != 0>;
  using frame = typename base::frame;

 public:
  using base::base;
  using refused::invoke;
  using refused::operator();
  constexpr signal() noexcept = default;
  signal(const signal &) = delete;  // pass a signal by reference, or move it
  signal &operator=(const signal &) = delete;
  signal(signal &&) noexcept = default;
  signal &operator=(signal &&) noexcept = default;
  ~signal() = default;

  /// Calls all delegates, sorted by priority and then by order of addition, as multicast_invoke()
  /// does.
  ///
  /// If a delegate throws, the others are still called. invoke() then rethrows the first exception
  /// thrown by a call on this thread, or by copying an argument. If copying an argument throws, no
  /// calls are queued. If the signal also replays invocations, no delegate is called at all.
  ///
  /// @param arguments  Delegates without a queue receive the arguments without a copy. If there are
  ///                   calls to queue, a temporary or a value passed with std::move() is moved into
  ///                   the queue, provided that neither this move nor the copies of the other
  ///                   arguments can throw.
  /// @return The number of delegates called or queued.
  ///
  /// Threads:   any; delegates without a queue run on the calling thread.
  /// Reentry:   delegates may call anything, and may even destroy this object.
  /// Cost:      like multicast_invoke(). If calls are queued, the arguments are also copied once.
  /// @since 1.0
  int64_t invoke(detail::passed<Args>... arguments) const {
    return send<detail::is_kept<Args>...>(nullptr, nullptr,
                                          static_cast<detail::passed<Args>>(arguments)...);
  }
  template <typename Later = void,
            std::enable_if_t<detail::is_any_movable<Later, Args...>, int> = 0>
  int64_t invoke(typename detail::given_away<Args, Later>::type... arguments) const {
    return send<detail::is_movable<Args>()...>(
        nullptr, nullptr,
        static_cast<typename detail::given_away<Args, Later>::type>(arguments)...);
  }
  template <typename... Given,
            std::enable_if_t<detail::is_mixed<std::tuple<Given...>, Args...>::value, int> = 0>
  int64_t invoke(Given &&...arguments) const {
    return send<detail::is_moved<Args, Given>()...>(nullptr, nullptr,
                                                    std::forward<Given>(arguments)...);
  }

  /// Like invoke(), but returns nothing.
  ///
  /// @param arguments  As for invoke().
  ///
  /// Cost:      like invoke().
  /// @since 1.0
  void operator()(detail::passed<Args>... arguments) const {
    static_cast<void>(invoke(static_cast<detail::passed<Args>>(arguments)...));
  }
  template <typename Later = void,
            std::enable_if_t<detail::is_any_movable<Later, Args...>, int> = 0>
  void operator()(typename detail::given_away<Args, Later>::type... arguments) const {
    static_cast<void>(
        invoke(static_cast<typename detail::given_away<Args, Later>::type>(arguments)...));
  }
  template <typename... Given,
            std::enable_if_t<detail::is_mixed<std::tuple<Given...>, Args...>::value, int> = 0>
  void operator()(Given &&...arguments) const {
    static_cast<void>(invoke(std::forward<Given>(arguments)...));
  }

  /// Lets a combiner make the calls, as in Boost.Signals2.
  ///
  /// @param combiner   Called with the begin and end iterators of a call_range. Dereferencing an
  ///                   iterator calls a delegate and yields mcast::nothing.
  /// @param arguments  A variable that the signal takes by reference is passed on as a reference.
  ///                   All other arguments are copied or moved once.
  /// @return The combiner's result.
  ///
  /// Errors:    MULTICAST_ERROR_STATE: a delegate has a queue. Rethrows exceptions of the combiner,
  ///            and of delegates when an iterator is dereferenced.
  /// Threads:   the delegates run on this thread. The arguments are not stored for replays.
  /// Cost:      O(delegates) and some allocations; each call costs as much as
  ///            multicast_token_visit().
  /// @since 1.1
  template <typename Combiner, typename... Given>
  auto combine(Combiner &&combiner, Given &&...arguments) const {
    call_range<void(Args...), Given...> range(base::invoked(), std::forward<Given>(arguments)...);
    return std::forward<Combiner>(combiner)(range.begin(), range.end());
  }

  /// Like invoke(), but also waits until the queued calls have been made or dropped, as
  /// MULTICAST_WAIT does. Rethrows the first exception of the delegates on this thread or, if there
  /// is none, the first exception of the queued calls.
  ///
  /// @param arguments  As for invoke().
  /// @return The outcome of the calls.
  ///
  /// Threads:   waits for the threads that run the queues. Do not hold a lock that a delegate
  ///            acquires.
  /// Reentry:   inside a call made by a queue, other calls in the same queue are reported as
  ///            `unfinished`.
  /// Cost:      like multicast_invoke_with(), plus one allocation.
  /// @since 1.1
  multicast_outcome invoke_and_wait(detail::passed<Args>... arguments) const {
    return wait(0, static_cast<detail::passed<Args>>(arguments)...);
  }
  /// Like invoke_and_wait(), but with a timeout. After a timeout, the remaining calls are reported
  /// as `unfinished`, and their exceptions are lost. Exceptions thrown by later replays are passed
  /// to the handler of set_exception_handler().
  ///
  /// @param timeout    The longest time to wait, measured on the monotonic clock.
  /// @param arguments  As for invoke().
  /// @return The outcome of the calls.
  ///
  /// Threads:   waits for the threads that run the queues.
  /// Cost:      like invoke_and_wait(). If calls are `unfinished`: O(delegates), with some
  ///            allocations.
  /// @since 1.1
  multicast_outcome invoke_and_wait_for(std::chrono::nanoseconds timeout,
                                        detail::passed<Args>... arguments) const {
    const uint64_t limit = detail::nanoseconds(timeout);
    return wait(limit == 0 ? 1 : limit, static_cast<detail::passed<Args>>(arguments)...);
  }

 private:
  struct waiting {
    multicast target;
    uint64_t timeout;
    const multicast_outcome *outcome;
    detail::shared<detail::shared_failure> failure{new detail::shared_failure()};

    /// Ends the wait. Replays and unfinished calls that run later no longer report exceptions to
    /// this object.
    std::exception_ptr end() const noexcept {
      if (failure->is_over) return nullptr;  // only this thread changes it
      queued late;
      if (outcome->unfinished != 0) {
        static_cast<void>(multicast_enumerate(target, queued::add, &late));
      }
      const detail::process_lock lock(detail::guarded::failures);
      failure->is_over = !late.thrown;  // if memory ran out, replays count as unfinished
      failure->late.swap(late.found);
      return std::exchange(failure->first, nullptr);
    }
    ~waiting() { static_cast<void>(end()); }

   private:
    /// Collects the registrations that have queues, because the unfinished calls belong to them.
    struct queued {
      detail::numbers found;
      std::exception_ptr thrown;

      static bool add(void *context, const multicast_registration *each) {
        queued &self = *static_cast<queued *>(context);
        detail::guard(detail::failures{&self.thrown, nullptr}, [&] {
          if (each->queue.id != 0) static_cast<void>(self.found[each->token.id]);
        });
        return !self.thrown;
      }
    };
  };

  multicast_outcome wait(uint64_t timeout, detail::passed<Args>... arguments) const {
    multicast_outcome outcome = MULTICAST_OUTCOME_INIT;
    const waiting how{base::handle(), timeout, &outcome};
    static_cast<void>(send<detail::is_kept<Args>...>(
        &how, &outcome, static_cast<detail::passed<Args>>(arguments)...));
    detail::rethrow(how.end());
    return outcome;
  }

  template <bool... is_moved>
  int64_t send(const waiting *waits, multicast_outcome *outcome,
               detail::passed<Args>... arguments) const {
    const multicast target = base::invoked();
    if (target.id == 0) return 0;
    detail::original_frame<frame> here(std::in_place,
                                       static_cast<detail::passed<Args>>(arguments)...);
    int64_t result;
    if (frame::is_replaceable || waits != nullptr) {
      multicast_invocation how = MULTICAST_INVOCATION_INIT;
      how.payload = &here.arguments;
      if constexpr (frame::is_replaceable || frame::is_plain) set_copy<is_moved...>(how);
      if (waits != nullptr) {
        here.arguments.where.waiting = waits->failure.get();
        how.flags = MULTICAST_WAIT;
        how.timeout_ns = waits->timeout;
      }
      result = multicast_invoke_with(target, &how, outcome);
      if (waits != nullptr && result == MULTICAST_ERROR_TIMEOUT) result = 0;
    } else {
      result = multicast_invoke(target, 0, &here.arguments, frame::is_plain ? sizeof(frame) : 0);
    }
    // A delegate may have destroyed `this` by now.
    if (here.thrown) detail::rethrow(std::move(here.thrown));
    return detail::check_invoked(result);
  }

  template <bool... is_moved>
  static void set_copy(multicast_invocation &how) noexcept {
    if constexpr (!frame::is_complete) {
      how.copy = detail::copier<Args...>::call_copy;
      how.release = detail::copier<Args...>::call_release;
    } else if constexpr (base::is_queueable) {
      using moves = std::bool_constant<(detail::is_safe<detail::value<Args>, is_moved> && ...)>;
      using copied = detail::copied<frame, (is_moved && moves::value)...>;
      how.copy = copied::copy;
      how.release = copied::release;
    }
  }
};

}  // namespace mcast

#endif
