// SPDX-License-Identifier: MIT
//
// Finds the object with which a delegate is added, given a reference, pointer or weak pointer.
#ifndef MULTICAST_DETAIL_OBJECT_HPP
#define MULTICAST_DETAIL_OBJECT_HPP

#include <type_traits>

#include "contexts.hpp"
#include "invoke.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The address of the object with which a delegate is added.
template <typename T>
T *pointer_to(T &object) noexcept {
  return detail::address(object);
}
template <typename T>
T *pointer_to(T *&object) noexcept {
  return object;
}
template <typename T>
T *pointer_to(T *const &object) noexcept {
  return object;
}
template <typename T>
T *pointer_to(std::reference_wrapper<T> &object) noexcept {
  return detail::address(object.get());
}
template <typename T>
T *pointer_to(const std::reference_wrapper<T> &object) noexcept {
  return detail::address(object.get());
}
/// The address of a weak pointer's object; nullptr if the object is dead.
template <typename Weak>
const void *address_of(const Weak &object) {
  const auto strong = object.lock();
  if constexpr (is_weak<Weak>) {
    return detail::untyped(strong.get());  // nullptr if it owns nothing
  } else {
    return strong ? detail::untyped(detail::address(*strong)) : nullptr;
  }
}

/// Rejects temporary objects at compile time.
template <typename Object>
constexpr void check_object() {
  static_assert(is_reference<std::decay_t<Object>> || std::is_lvalue_reference_v<Object>,
                "the object must live longer than this call: pass a variable or a pointer");
}

}  // namespace mcast::detail

#endif
