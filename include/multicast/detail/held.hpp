// SPDX-License-Identifier: MIT
//
// An argument that is held until it is passed on.
#ifndef MULTICAST_DETAIL_HELD_HPP
#define MULTICAST_DETAIL_HELD_HPP

#include <memory>
#include <type_traits>
#include <utility>

#include "argument.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// How it is held: as a value of its own; with what that value was made of, which it may look at,
/// as a std::string_view does; or as the address of the caller's variable.
enum class holding { own, converted, variable };

template <typename Arg, typename Given>
constexpr holding how_to_hold() {
  using from = value<Given>;
  if constexpr (std::is_lvalue_reference_v<Arg> && std::is_lvalue_reference_v<Given>) {
    // Without a conversion.
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
  // Refers to `source`, if that is derived from what is asked for; or takes it, as a pointer does.
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
  explicit held(Given &&given) noexcept : address(std::addressof(given)) {}
  Arg pass() noexcept { return *address; }
};

}  // namespace mcast::detail

#endif
