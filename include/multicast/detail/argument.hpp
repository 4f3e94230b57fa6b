// SPDX-License-Identifier: MIT
//
// What is known of an argument at compile time.
#ifndef MULTICAST_DETAIL_ARGUMENT_HPP
#define MULTICAST_DETAIL_ARGUMENT_HPP

#include <cstddef>
#include <type_traits>

#include "config.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// An argument as delegates get it. All delegates share one value, so they get it as const.
template <typename Arg>
using passed = std::conditional_t<std::is_reference_v<Arg>, Arg, const Arg &>;
template <typename Arg>
using value = std::remove_cv_t<std::remove_reference_t<Arg>>;

template <typename T>
inline constexpr bool is_character = std::is_same_v<T, char> || std::is_same_v<T, wchar_t> ||
#if defined(__cpp_char8_t)
                                     std::is_same_v<T, char8_t> ||
#endif
                                     std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>;


template <typename T>
struct is_text : std::false_type {};
template <typename Char>
struct is_text<const Char *> : std::bool_constant<is_character<Char>> {};

/// Whether it is a value or a reference to const, so that a copy can take its place. Does not need
/// the type, which may be incomplete.
template <typename Arg>
inline constexpr bool is_replaceable =
    std::is_same_v<passed<Arg>, const value<Arg> &> && std::is_object_v<value<Arg>>;

template <typename T, typename = void>
struct is_complete : std::false_type {};
template <typename T>
struct is_complete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};

/// Whether a queued call can have it.
template <typename Arg>
constexpr bool is_queueable() {
  if constexpr (is_replaceable<Arg>) return std::is_copy_constructible_v<value<Arg>>;
  return false;
}

/// Whether its bytes can stand beside those of other arguments: numbers, enumerations, pointers.
/// For the alignment see original_frame.
template <typename Arg>
constexpr bool is_small() {
  if constexpr (!std::is_reference_v<Arg> && std::is_scalar_v<Arg>) {
    return alignof(Arg) <= alignof(void *) && !is_text<value<Arg>>::value;
  }
  return false;
}

/// Whether it is worth moving.
template <typename Arg>
constexpr bool is_movable() {
  if constexpr (std::is_class_v<Arg> && !std::is_const_v<Arg> && is_complete<Arg>::value) {
    return !std::is_trivially_copyable_v<Arg>;
  }
  return false;
}
/// Moves where possible: the caller's value is given away, and it is worth it.
template <typename Arg, typename Given>
constexpr bool is_moved() {
  if constexpr (std::is_same_v<Arg, Given>) return is_movable<Arg>();
  return false;
}

/// Whether it is moved or copied without an exception.
template <typename T, bool is_moved>
inline constexpr bool is_safe =
    is_moved ? std::is_nothrow_move_constructible_v<T> : std::is_nothrow_copy_constructible_v<T>;

}  // namespace mcast::detail

#endif
