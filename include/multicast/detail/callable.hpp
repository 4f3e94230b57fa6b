// SPDX-License-Identifier: MIT
//
// What can be a delegate, and how it is called.
#ifndef MULTICAST_DETAIL_CALLABLE_HPP
#define MULTICAST_DETAIL_CALLABLE_HPP

#include <cstddef>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../registration.hpp"
#include "../tracked.hpp"
#include "answer.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// A callable that gets its registration first.
template <typename F>
struct extended {
  F function;
};

/// A method of an object behind a pointer.
template <typename Pointer, typename Method>
struct bound {
  Pointer object;
  Method method;

  template <typename... Args>
  auto operator()(Args &&...arguments) const
      -> std::invoke_result_t<const Method &, decltype(*std::declval<const Pointer &>()), Args...> {
    return std::invoke(method, *object, std::forward<Args>(arguments)...);
  }
  bool operator==(const bound &other) const {
    return object == other.object && method == other.method;
  }
};

/// A method of an object behind a weak pointer.
template <typename Weak, typename Method>
struct weak_bound {
  Weak object;
  Method method;
  mortal counted = {};

  bool is_dead() const noexcept { return detail::is_dead(object); }
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
inline constexpr bool is_mortal = is_tracked<F> || is_weak_bound<F>;

/// Whether it is a pointer to an object, or a std::ref().
template <typename T>
inline constexpr bool is_reference = std::is_pointer_v<T>;
template <typename T>
inline constexpr bool is_reference<std::reference_wrapper<T>> = true;

/// Only a null pointer can be made of it: not an object that has a constructor from a pointer.
struct null {
  constexpr operator std::nullptr_t() const noexcept { return nullptr; }
};
/// Whether it can be null: a pointer, or an object as std::function, which can be made of nullptr
/// and be compared with it.
template <typename F, typename = void>
struct is_nullable : std::bool_constant<std::is_pointer_v<F> || std::is_member_pointer_v<F>> {};
template <typename F>
struct is_nullable<F, std::enable_if_t<std::is_class_v<F> &&
                                       std::is_convertible_v<std::nullptr_t, F> &&
                                       std::is_convertible_v<
                                           decltype(std::declval<const F &>() == null()), bool>>>
    : std::true_type {};

template <typename F>
bool is_null(const F &function) {
  if constexpr (std::is_class_v<F> && is_nullable<F>::value) return function == null();
  if constexpr (!std::is_class_v<F> && is_nullable<F>::value) return function == nullptr;
  return false;
}

/// Whether a call makes the result of a signal. A reference refers to what the call returns, not to
/// something that was converted.
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

/// Whether it can be called with the arguments of a signal.
template <typename R, typename F, typename... Args>
struct is_delegate : makes<R, F &, Args...> {};
template <typename R, typename T, typename Method, typename Class, typename... Args>
struct is_delegate<R, bound<T *, Method Class::*>, Args...>
    : std::conjunction<std::is_convertible<T *, const volatile Class *>,
                       makes<R, const bound<T *, Method Class::*> &, Args...>> {};
template <typename R, typename F, typename... Weak, typename... Args>
struct is_delegate<R, tracked<F, Weak...>, Args...> : is_delegate<R, F, Args...> {};
template <typename R, typename F, typename... Args>
struct is_delegate<R, extended<F>, Args...> : makes<R, F &, registration, Args...> {};
template <typename R, typename Weak, typename Method, typename... Args>
struct is_delegate<R, weak_bound<Weak, Method>, Args...>
    : is_delegate<R, bound<decltype(std::declval<const Weak &>().lock()), Method>, Args...> {};

/// Calls a callable with the arguments of a frame.
template <typename R, typename F, typename Frame>
void perform(F &function, const Frame &frame) {
  const auto deliver = [&](auto &&call) {
    if constexpr (std::is_void_v<R>) {
      static_cast<void>(call());
    } else {
      static_cast<question<R> *>(frame.results)->made.take(call);
    }
  };
  static_cast<void>(deliver);
  if constexpr (is_tracked<F>) {
    const auto all = std::apply([](const auto &...each) { return std::make_tuple(each.lock()...); },
                                function.objects);
    if (std::apply([](const auto &...each) { return (is_alive(each) && ...); }, all)) {
      perform<R>(function.function, frame);
    }
  } else if constexpr (is_weak_bound<F>) {
    if (auto strong = function.object.lock()) {
      const auto method = [&](auto &&...arguments) -> decltype(auto) {
        return ((*strong).*function.method)(std::forward<decltype(arguments)>(arguments)...);
      };
      deliver([&]() -> decltype(auto) { return frame.apply(method); });
    }
  } else if constexpr (is_extended<F>) {
    deliver([&]() -> decltype(auto) { return frame.apply(function.function, current()); });
  } else {
    deliver([&]() -> decltype(auto) { return frame.apply(function); });
  }
}

}  // namespace mcast::detail

#endif
