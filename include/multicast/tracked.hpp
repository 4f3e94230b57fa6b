// SPDX-License-Identifier: MIT
//
// Callables that die with objects.
#ifndef MULTICAST_TRACKED_HPP
#define MULTICAST_TRACKED_HPP

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "detail/mortals.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// The weak pointer of an object. For other kinds of pointers declare such a function beside the
/// class. What it returns needs lock(), whose result is true while the object lives.
///
/// @param object  The pointer.
/// @return The weak pointer.
///
/// Cost:      O(1).
/// @since 1.1
template <typename T>
std::weak_ptr<T> to_weak(const std::shared_ptr<T> &object) noexcept {
  return object;
}
/// The same pointer.
///
/// @param object  The pointer.
/// @return The pointer.
///
/// Cost:      O(1).
/// @since 1.1
template <typename T>
std::weak_ptr<T> to_weak(std::weak_ptr<T> object) noexcept {
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
  return !object.lock();
}
template <typename T>
bool is_dead(const std::weak_ptr<T> &object) noexcept {
  return object.expired();
}

/// Whether a strong pointer keeps an object alive. A std::shared_ptr may own one and point to none.
template <typename Strong>
bool is_alive(const Strong &object) noexcept {
  return static_cast<bool>(object);
}
template <typename T>
bool is_alive(const std::shared_ptr<T> &object) noexcept {
  return object.use_count() != 0;
}

template <typename T>
bool is_same(const T &a, const T &b) {
  return a == b;
}
template <typename T>
bool is_same(const std::weak_ptr<T> &a, const std::weak_ptr<T> &b) {
  return !a.owner_before(b) && !b.owner_before(a);
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
/// delegate is removed: by the next invocation, size() or is_live().
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
