// SPDX-License-Identifier: MIT
//
// How arguments are passed to delegates, and how they are stored until the call.
#ifndef MULTICAST_DETAIL_ARGUMENTS_HPP
#define MULTICAST_DETAIL_ARGUMENTS_HPP

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "config.hpp"
#include "invoke.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The type in which delegates receive an argument. It is const, because all delegates share one
/// value.
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

/// The type of a delegate's own copy of an argument; `passed<Arg>` if the argument cannot be
/// copied.
template <typename Arg, typename = void>
struct copy_of_value {
  using type = passed<Arg>;
};
template <typename Arg>
struct copy_of_value<Arg, std::void_t<decltype(sizeof(Arg))>> {
  using type =
      std::conditional_t<!std::is_reference_v<Arg> && std::is_copy_constructible_v<value<Arg>>,
                         value<Arg>, passed<Arg>>;
};
template <typename Arg>
using copy_of = typename copy_of_value<Arg>::type;

/// How many arguments a callable takes, and whether it needs its own copies of them.
struct taking {
  bool is_possible;
  size_t count;
  bool is_copied;
};

/// Whether a copy can replace an argument, because the argument is a value or a reference to const.
/// The type may be incomplete.
template <typename Arg>
inline constexpr bool is_replaceable =
    std::is_same_v<passed<Arg>, const value<Arg> &> && std::is_object_v<value<Arg>>;

template <typename T, typename = void>
struct is_complete : std::false_type {};
template <typename T>
struct is_complete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};

/// Whether an argument of this type can be queued.
template <typename Arg>
constexpr bool is_queueable() {
  if constexpr (is_replaceable<Arg>) return std::is_copy_constructible_v<value<Arg>>;
  return false;
}

/// Whether the frame can store the argument itself, as it does for numbers, enumerations and
/// pointers. original_frame explains the limit on the alignment.
template <typename Arg>
constexpr bool is_small() {
  if constexpr (!std::is_reference_v<Arg> && std::is_scalar_v<Arg>) {
    return alignof(Arg) <= alignof(void *) && !is_text<value<Arg>>::value;
  }
  return false;
}

/// Whether moving the argument is cheaper than copying it.
template <typename Arg>
constexpr bool is_movable() {
  if constexpr (std::is_class_v<Arg> && !std::is_const_v<Arg> && is_complete<Arg>::value) {
    return !std::is_trivially_copyable_v<Arg>;
  }
  return false;
}
/// Whether this argument is moved, because the caller passes an rvalue that is cheaper to move than
/// to copy.
template <typename Arg, typename Given>
constexpr bool is_moved() {
  if constexpr (std::is_same_v<Arg, Given>) return is_movable<Arg>();
  return false;
}

/// Whether storing the argument, by a move or a copy, cannot throw.
template <typename T, bool is_moved>
inline constexpr bool is_safe =
    is_moved ? std::is_nothrow_move_constructible_v<T> : std::is_nothrow_copy_constructible_v<T>;

/// An argument is held in one of three ways: as the address of the caller's variable, as a value,
/// or as a value together with its source. The source is kept because a value such as a
/// std::string_view may refer to it.
enum class holding { own, converted, variable };

template <typename Arg, typename Given>
constexpr holding how_to_hold() {
  using from = value<Given>;
  if constexpr (std::is_lvalue_reference_v<Arg> && std::is_lvalue_reference_v<Given>) {
    // Use the variable's address only if no conversion is needed.
    if (std::is_convertible_v<std::add_pointer_t<Given>, std::add_pointer_t<Arg>>) {
      return holding::variable;
    }
  }
  const bool is_temporary = !std::is_reference_v<Given> && std::is_class_v<from> &&
                            (!std::is_lvalue_reference_v<Arg> ||
                             std::is_const_v<std::remove_reference_t<Arg>>);
  return is_temporary && !std::is_same_v<from, value<Arg>> ? holding::converted : holding::own;
}

template <typename Arg, typename Given, holding = how_to_hold<Arg, Given>()>
struct held {
  static_assert(std::is_convertible_v<Given &&, passed<Arg>> &&
                    (!std::is_lvalue_reference_v<Arg> || std::is_same_v<Arg, const value<Arg> &>),
                "these are not the arguments of the signal; a reference takes a variable");
  value<Arg> own;
  explicit held(Given &&given) : own(static_cast<value<Arg>>(std::forward<Given>(given))) {}
  passed<Arg> pass() noexcept { return static_cast<passed<Arg>>(own); }
};
template <typename Arg, typename Given>
struct held<Arg, Given, holding::converted> {
  // Refers to `source` if its type is derived from the requested type; otherwise copies `source`.
  static constexpr bool is_looked_at = std::is_convertible_v<Given &, passed<Arg>>;
  using made = std::conditional_t<is_looked_at, held<Arg, Given &>, held<Arg, Given, holding::own>>;
  Given source;
  made result;
  explicit held(Given &&given)
      : source(std::move(given)),
        result(static_cast<std::conditional_t<is_looked_at, Given &, Given &&>>(source)) {}
  passed<Arg> pass() noexcept { return result.pass(); }
};
template <typename Arg, typename Given>
struct held<Arg, Given, holding::variable> {
  std::add_pointer_t<Arg> address;
  explicit held(Given &&given) noexcept : address(detail::address(given)) {}
  Arg pass() noexcept { return *address; }
};

/// A queued call's copy of an argument.
template <typename T>
struct stored {
  T copy;
  explicit stored(const T &given) : copy(given) {}
  explicit stored(T &&given) : copy(std::move(given)) {}
  const T *address() const { return detail::address(copy); }
};
/// A copy of a string view's characters.
template <typename Char, typename Traits>
struct stored<std::basic_string_view<Char, Traits>> {
  std::basic_string<Char, Traits> text;
  std::basic_string_view<Char, Traits> view;
  explicit stored(std::basic_string_view<Char, Traits> given) : text(given), view(text) {}
  stored(const stored &) = delete;
  stored &operator=(const stored &) = delete;
  const std::basic_string_view<Char, Traits> *address() const { return &view; }
};
/// The characters of a null-terminated string.
template <typename Char>
struct stored_text {
  std::basic_string<Char> text;
  const Char *pointer;
  explicit stored_text(const Char *given)
      : text(given == nullptr ? std::basic_string<Char>() : std::basic_string<Char>(given)),
        pointer(given == nullptr ? nullptr : text.c_str()) {}
  stored_text(const stored_text &) = delete;
  stored_text &operator=(const stored_text &) = delete;
  const Char *const *address() const { return &pointer; }
};
template <typename T>
struct storage {
  using type = stored<T>;
};
template <typename Char>
struct storage<const Char *> {
  using type = std::conditional_t<is_character<Char>, stored_text<Char>, stored<const Char *>>;
};

}  // namespace mcast::detail

#endif
