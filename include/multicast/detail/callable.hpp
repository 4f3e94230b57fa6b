// SPDX-License-Identifier: MIT
//
// The types that can be delegates, and how they are called.
#ifndef MULTICAST_DETAIL_CALLABLE_HPP
#define MULTICAST_DETAIL_CALLABLE_HPP

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "answer.hpp"
#include "forwarding.hpp"
#include "frame.hpp"
#include "invoke.hpp"
#include "limited.hpp"
#include "weak.hpp"

namespace MULTICAST_HPP_NAMESPACE {

class registration;

}  // namespace mcast

namespace MULTICAST_HPP_NAMESPACE::detail {

/// A callable that receives its registration as the first argument.
template <typename F>
struct extended {
  F function;

  bool is_dead() const noexcept { return function.is_dead(); }
};

/// A method and a pointer to its object.
template <typename Pointer, typename Method>
struct bound {
  Pointer object;
  Method method;

  template <typename... Args>
  auto operator()(Args &&...arguments) const
      -> std::invoke_result_t<const Method &, decltype(*std::declval<const Pointer &>()), Args...> {
    return detail::invoke(method, *object, std::forward<Args>(arguments)...);
  }
  bool operator==(const bound &other) const {
    return object == other.object && method == other.method;
  }
};

/// A method and a weak pointer to its object.
template <typename Weak, typename Method>
struct weak_bound {
  Weak object;
  Method method;
  mortal counted = {};

  bool is_dead() const noexcept { return detail::is_dead(object); }
};

/// The first argument of an extended callable. It is a template, so that `registration` may be
/// incomplete in this header.
template <typename>
struct first_of_extended {
  using type = registration;
};

template <typename F>
inline constexpr bool is_tracked = false;
template <typename F, typename... Weak>
inline constexpr bool is_tracked<tracked<F, Weak...>> = true;
template <typename F>
inline constexpr bool is_weak_bound = false;
template <typename Weak, typename Method>
inline constexpr bool is_weak_bound<weak_bound<Weak, Method>> = true;
template <typename F>
inline constexpr bool is_extended = false;
template <typename F>
inline constexpr bool is_extended<extended<F>> = true;
template <typename F>
struct not_extended {
  using type = F;
};
template <typename F>
struct not_extended<extended<F>> {
  using type = F;
};
template <typename F>
inline constexpr bool is_mortal = is_tracked<F> || is_weak_bound<F> || is_forwarding<F>;
template <typename F>
inline constexpr bool is_mortal<extended<F>> = is_mortal<F>;
template <typename F>
inline constexpr bool is_mortal<limited<F>> = is_mortal<F>;

/// Starts counting a delegate with tracked objects, once its signal is known.
template <typename F>
void begin_mortal(F &function, multicast target) noexcept {
  static_cast<void>(function), static_cast<void>(target);
  if constexpr (is_tracked<F> || is_weak_bound<F>) {
    function.counted.begin(target);
  } else if constexpr (is_mortal<F>) {
    begin_mortal(function.function, target);
  }
}

/// Whether a type is a pointer or a std::reference_wrapper.
template <typename T>
inline constexpr bool is_reference = std::is_pointer_v<T>;
template <typename T>
inline constexpr bool is_reference<std::reference_wrapper<T>> = true;

/// Whether a call returns a valid result for the signal. If the result is a reference, it must
/// refer to the returned object itself, not to a converted copy.
template <typename R, typename F, typename... Args>
struct makes : std::is_invocable_r<R, F, Args...> {};
template <typename R, typename F, typename... Args>
struct makes<R &, F, Args...> {
  static constexpr bool value = [] {
    if constexpr (std::is_invocable_v<F, Args...>) {
      using made = std::invoke_result_t<F, Args...>;
      return std::is_lvalue_reference_v<made> &&
             std::is_convertible_v<std::add_pointer_t<made>, std::add_pointer_t<R>>;
    }
    return false;
  }();
};

/// Extra arguments that a callable receives before the signal's arguments.
template <typename...>
struct leading {};

/// Whether a callable, a method or another signal returns a valid result when called with these
/// arguments.
template <typename R, typename F, typename... Args>
struct makes_of : makes<R, F &, Args...> {};
template <typename R, typename T, typename Method, typename Class, typename... Args>
struct makes_of<R, bound<T *, Method Class::*>, Args...>
    : std::conjunction<std::is_convertible<T *, const volatile Class *>,
                       makes<R, const bound<T *, Method Class::*> &, Args...>> {};

/// Invoking a signal returns an optional, so the result has to be converted and cannot be returned
/// as a reference.
template <typename R, typename Made, typename... Given, typename... Args>
struct makes_of<R, forwarding<Made(Given...)>, Args...>
    : std::conjunction<std::is_invocable<const signal<Made(Given...)> &, Args...>,
                       makes<R, Made (*)()>> {};

/// Whether a callable can be called with a signal's first arguments, or with copies of them.
template <typename R, typename F, typename Leading, typename Indices, typename... Args>
struct takes_first;
template <typename R, typename F, typename... First, size_t... Index, typename... Args>
struct takes_first<R, F, leading<First...>, std::index_sequence<Index...>, Args...>
    : makes_of<R, F, First..., std::tuple_element_t<Index, std::tuple<Args...>>...> {};

template <typename R, typename F, typename Leading, size_t count, typename... Args>
constexpr taking find_taking() {
  using indices = std::make_index_sequence<count>;
  if constexpr (takes_first<R, F, Leading, indices, passed<Args>...>::value) {
    return {true, count, false};
  } else if constexpr (takes_first<R, F, Leading, indices, copy_of<Args>...>::value) {
    return {true, count, true};
  } else if constexpr (count > 0) {
    return find_taking<R, F, Leading, count - 1, Args...>();
  } else {
    return {false, 0, false};
  }
}
/// The longest prefix of a signal's arguments with which a callable can be called.
template <typename R, typename F, typename Leading, typename... Args>
struct takes {
  static constexpr taking value = find_taking<R, F, Leading, sizeof...(Args), Args...>();
};
template <typename R, typename F, typename... Weak, typename Leading, typename... Args>
struct takes<R, tracked<F, Weak...>, Leading, Args...> : takes<R, F, Leading, Args...> {};
template <typename R, typename F, typename Leading, typename... Args>
struct takes<R, limited<F>, Leading, Args...> : takes<R, F, Leading, Args...> {};
template <typename R, typename F, typename... Args>
struct takes<R, extended<F>, leading<>, Args...> : takes<R, F, leading<registration>, Args...> {};
template <typename R, typename Weak, typename Method, typename Leading, typename... Args>
struct takes<R, weak_bound<Weak, Method>, Leading, Args...>
    : takes<R, bound<decltype(std::declval<const Weak &>().lock()), Method>, Leading, Args...> {};

/// Whether a callable can be called with a signal's arguments.
template <typename R, typename F, typename... Args>
struct is_delegate : std::bool_constant<takes<R, F, leading<>, Args...>::value.is_possible> {};

/// Invokes another signal with the arguments of a frame.
template <typename R, typename Made, typename... Given, size_t... Index, typename... Args,
          typename Deliver>
void forward(forwarding<Made(Given...)> function,
             const frame_of<std::index_sequence<Index...>, Args...> &arguments, Deliver &&deliver) {
  constexpr taking how = takes<R, forwarding<Made(Given...)>, leading<>, Args...>::value;
  const borrowed<Made(Given...)> to(function.target);
  const signal<Made(Given...)> &invoked = to;
  if constexpr (std::is_void_v<R>) {
    static_cast<void>(arguments.template apply<how.count, how.is_copied>(invoked));
  } else {
    auto last = arguments.template apply<how.count, how.is_copied>(invoked);
    if (last) deliver([&]() -> Made { return static_cast<Made>(std::move(*last)); });
  }
}

/// Calls a callable with the arguments of a frame.
template <typename R, typename F, size_t... Index, typename... Args, typename... First>
void perform(F &function, const frame_of<std::index_sequence<Index...>, Args...> &arguments,
             First &&...first) {
  constexpr taking how = takes<R, F, leading<First...>, Args...>::value;
  const auto deliver = [&](auto &&call) {
    if constexpr (std::is_void_v<R>) {
      static_cast<void>(call());
    } else {
      static_cast<question<R> *>(arguments.results)->made.take(call);
    }
  };
  static_cast<void>(deliver);
  static_cast<void>(how);
  if constexpr (is_tracked<F>) {
    const auto all = std::apply([](const auto &...each) { return std::make_tuple(each.lock()...); },
                                function.objects);
    if (std::apply([](const auto &...each) { return (is_alive(each) && ...); }, all)) {
      perform<R>(function.function, arguments, std::forward<First>(first)...);
    }
  } else if constexpr (is_weak_bound<F>) {
    if (auto strong = function.object.lock()) {
      const auto method = [&](auto &&...given) -> decltype(auto) {
        return ((*strong).*function.method)(std::forward<decltype(given)>(given)...);
      };
      deliver([&]() -> decltype(auto) {
        return arguments.template apply<how.count, how.is_copied>(method,
                                                                  std::forward<First>(first)...);
      });
    }
  } else if constexpr (is_limited<F>) {
    if (function.take()) {
      perform<R>(function.function, arguments, std::forward<First>(first)...);
    }
  } else if constexpr (is_forwarding<F>) {
    forward<R>(function, arguments, deliver);
  } else if constexpr (is_extended<F>) {
    using registered = typename first_of_extended<F>::type;
    perform<R>(function.function, arguments, registered(multicast_token_current()));
  } else {
    deliver([&]() -> decltype(auto) {
      return arguments.template apply<how.count, how.is_copied>(function,
                                                                std::forward<First>(first)...);
    });
  }
}

}  // namespace mcast::detail

#endif
