// SPDX-License-Identifier: MIT
//
// Arguments that are stored beyond the end of their invocation.
#ifndef MULTICAST_DETAIL_KEPT_ARGUMENTS_HPP
#define MULTICAST_DETAIL_KEPT_ARGUMENTS_HPP

#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "arguments.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The stored form of an argument: its value or, for a string view, its characters.
template <typename T>
struct keeping {
  using type = T;
  static const T &keep(const T &given) { return given; }
};
template <typename Char, typename Traits>
struct keeping<std::basic_string_view<Char, Traits>> {
  using type = std::basic_string<Char, Traits>;
  static type keep(std::basic_string_view<Char, Traits> given) { return type(given); }
};
template <typename Char>
struct keeping_text {
  using type = std::basic_string<Char>;
  static type keep(const Char *given) { return given == nullptr ? type() : type(given); }
};
template <typename Char>
struct keeping_pointer {
  using type = const Char *;
  static type keep(const Char *given) { return given; }
};
template <typename Char>
struct keeping<const Char *>
    : std::conditional_t<is_character<Char>, keeping_text<Char>, keeping_pointer<Char>> {};

template <typename... Args>
using kept_arguments = std::tuple<typename keeping<value<Args>>::type...>;

}  // namespace mcast::detail

#endif
