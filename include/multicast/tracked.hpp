// SPDX-License-Identifier: MIT
//
// Callables that die with objects.
#ifndef MULTICAST_TRACKED_HPP
#define MULTICAST_TRACKED_HPP

#include <tuple>
#include <type_traits>
#include <utility>

#include "detail/mortals.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The std::weak_ptr that this is or is derived from. Not by its name: programs without it do not
/// include <memory>.
template <typename Weak, typename Made = typename decltype(
                             std::declval<const Weak &>().lock())::weak_type>
using weak_of = std::enable_if_t<std::is_base_of_v<Made, Weak>, Made>;

template <typename Weak, typename = void>
inline constexpr bool is_weak = false;
template <typename Weak>
MULTICAST_HPP_LOCAL inline constexpr bool
    is_weak<Weak, std::void_t<weak_of<Weak>, decltype(std::declval<const Weak &>().expired()),
                              decltype(std::declval<const Weak &>().owner_before(
                                  std::declval<const Weak &>()))>> = true;

template <typename Strong, typename = void>
inline constexpr bool is_shared = false;
template <typename Strong>
inline constexpr bool is_shared<Strong, std::void_t<typename Strong::weak_type>> =
    is_weak<typename Strong::weak_type>;

}  // namespace mcast::detail

namespace MULTICAST_HPP_NAMESPACE {

/// The weak pointer of an object. For other kinds of pointers declare such a function beside the
/// class. What it returns needs lock(), whose result is true while the object lives.
///
/// @param object  The pointer.
/// @return The weak pointer.
///
/// Cost:      O(1).
/// @since 1.1
template <typename Pointer>
typename Pointer::weak_type to_weak(const Pointer &object) noexcept {
  return object;
}
/// The same pointer.
///
/// @param object  The pointer.
/// @return The pointer.
///
/// Cost:      O(1).
/// @since 1.1
template <typename Weak>
detail::weak_of<Weak> to_weak(const Weak &object) noexcept {
  return object;
}

}  // namespace mcast

namespace MULTICAST_HPP_NAMESPACE::detail {

template <typename T, typename = void>
struct has_weak : std::false_type {};
template <typename T>
struct has_weak<T, std::void_t<decltype(to_weak(std::declval<const T &>()).lock())>>
    : std::true_type {};

template <typename Weak>
bool is_dead(const Weak &object) noexcept {
  if constexpr (is_weak<Weak>) {
    return object.expired();
  } else {
    return !object.lock();
  }
}

/// Whether a strong pointer keeps an object alive. A std::shared_ptr may own one and point to none.
template <typename Strong>
bool is_alive(const Strong &object) noexcept {
  if constexpr (is_shared<Strong>) {
    return object.use_count() != 0;
  } else {
    return static_cast<bool>(object);
  }
}

template <typename T>
bool is_same(const T &a, const T &b) {
  if constexpr (is_weak<T>) {
    return !a.owner_before(b) && !b.owner_before(a);
  } else {
    return a == b;
  }
}

/// A callable that is only called while all objects live.
template <typename F, typename... Weak>
struct tracked {
  F function;
  std::tuple<Weak...> objects;
  mortal counted = {};

  bool is_dead() const noexcept {
    return std::apply([](const auto &...each) { return (detail::is_dead(each) || ...); }, objects);
  }
};

}  // namespace mcast::detail

namespace MULTICAST_HPP_NAMESPACE {

/// A callable that is called only while all of the objects live. When one of them is dead, the
/// delegate is removed: by the next invocation, size() or is_valid().
///
/// @param function  Copied or moved from.
/// @param objects   Each a std::shared_ptr or std::weak_ptr, or a pointer with a to_weak(). Each
///                  call keeps them alive while it runs.
/// @return For signal::add().
///
/// Cost:      O(objects). Each call makes the pointers strong.
/// @since 1.1
template <typename F, typename... Objects>
auto tracked(F &&function, const Objects &...objects) {
  static_assert(sizeof...(Objects) > 0 && (detail::has_weak<Objects>::value && ...),
                "tracked() takes a callable and pointers that have a to_weak()");
  return detail::tracked<std::decay_t<F>, decltype(to_weak(objects))...>{
      std::forward<F>(function), {to_weak(objects)...}};
}

}  // namespace mcast

#endif
