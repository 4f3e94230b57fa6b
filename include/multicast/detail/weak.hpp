// SPDX-License-Identifier: MIT
//
// Weak pointers, and callables that are removed when an object dies.
#ifndef MULTICAST_DETAIL_WEAK_HPP
#define MULTICAST_DETAIL_WEAK_HPP

#include <tuple>
#include <type_traits>
#include <utility>

#include "mortals.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The std::weak_ptr type of a std::weak_ptr, or of a class derived from one. It is detected
/// without naming std::weak_ptr, so that programs that do not use it need not include <memory>.
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

template <typename Pointer>
typename Pointer::weak_type to_weak(const Pointer &object) noexcept;
template <typename Weak>
detail::weak_of<Weak> to_weak(const Weak &object) noexcept;

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

/// Whether a strong pointer keeps an object alive. A std::shared_ptr may own an object and still be
/// null.
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

/// A callable that is called only while all of its objects are alive.
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

#endif
