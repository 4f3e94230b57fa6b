// SPDX-License-Identifier: MIT
//
// Calls any callable. This replaces std::invoke(), because <functional> takes longer to compile
// than all headers in multicast/.
#ifndef MULTICAST_DETAIL_INVOKE_HPP
#define MULTICAST_DETAIL_INVOKE_HPP

#include <cstddef>
#include <tuple>  // declares std::reference_wrapper, for std::make_tuple()
#include <type_traits>
#include <utility>

#include "config.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

template <typename T>
inline constexpr bool is_wrapper = false;
template <typename T>
inline constexpr bool is_wrapper<std::reference_wrapper<T>> = true;

/// Returns the object whose member is called, given a reference, a std::ref(), or any kind of
/// pointer.
template <typename Class, typename Given>
constexpr decltype(auto) object_of(Given &&given) {
  if constexpr (std::is_base_of_v<Class, std::decay_t<Given>>) {
    return std::forward<Given>(given);
  } else if constexpr (is_wrapper<std::decay_t<Given>>) {
    return given.get();
  } else {
    return *std::forward<Given>(given);
  }
}
template <typename Class, typename Member, typename Object, typename... Args>
constexpr decltype(auto) invoke_member(Member Class::*member, Object &&object,
                                       Args &&...arguments) {
  if constexpr (std::is_function_v<Member>) {
    return (object_of<Class>(std::forward<Object>(object)).*member)(
        std::forward<Args>(arguments)...);
  } else {
    return (object_of<Class>(std::forward<Object>(object)).*member);
  }
}
/// Like std::invoke().
template <typename F, typename... Args>
constexpr decltype(auto) invoke(F &&function, Args &&...arguments) {
  if constexpr (std::is_member_pointer_v<std::decay_t<F>>) {
    return detail::invoke_member(function, std::forward<Args>(arguments)...);
  } else {
    return std::forward<F>(function)(std::forward<Args>(arguments)...);
  }
}

/// Like std::addressof().
template <typename T>
constexpr T *address(T &object) noexcept {
  return __builtin_addressof(object);
}

/// Converts only to null pointers, and not to classes that can be constructed from a pointer.
struct null {
  constexpr operator std::nullptr_t() const noexcept { return nullptr; }
};
/// Whether a type can be null: a pointer, or a class like std::function, whose objects can be
/// created from nullptr and compared with it.
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

}  // namespace mcast::detail

#endif
