// SPDX-License-Identifier: MIT
//
// Callables that die with objects.
#ifndef MULTICAST_TRACKED_HPP
#define MULTICAST_TRACKED_HPP

#include <type_traits>
#include <utility>

#include "detail/weak.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// The weak pointer of an object. For other kinds of pointers declare such a function beside the
/// class. Its result needs a lock(), whose result is true while the object lives.
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
/// A weak pointer itself.
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
