// SPDX-License-Identifier: MIT
//
// Callables that are removed when an object dies.
#ifndef MULTICAST_TRACKED_HPP
#define MULTICAST_TRACKED_HPP

#include <type_traits>
#include <utility>

#include "detail/weak.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// Returns a weak pointer to an object. To support another kind of pointer, declare a to_weak() in
/// the namespace of the pointer's class. Its result must have a lock() function, whose result is
/// true while the object is alive.
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
/// Returns the given weak pointer unchanged.
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

/// Makes a callable that is called only while all of the given objects are alive. After one of them
/// has died, the next invocation, size() or is_valid() removes the delegate.
///
/// @param function  The function, which is copied or moved.
/// @param objects   Each object is given as a std::shared_ptr, a std::weak_ptr, or a pointer that
///                  has a to_weak(). A call keeps the objects alive while it runs.
/// @return A callable for signal::add().
///
/// Cost:      O(objects). Each call converts all pointers to strong pointers.
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
