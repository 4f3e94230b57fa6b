// SPDX-License-Identifier: MIT
//
// Objects that delegates are added with: references, pointers, weak pointers, observers.
#ifndef MULTICAST_DETAIL_OBJECT_HPP
#define MULTICAST_DETAIL_OBJECT_HPP

#include <type_traits>

#include "../observer.hpp"
#include "../options.hpp"
#include "contexts.hpp"
#include "failures.hpp"
#include "invoke.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The address of what a delegate is added with.
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
/// The address of what a weak pointer points to; nullptr if it is dead.
template <typename Weak>
const void *address_of(const Weak &object) {
  const auto strong = object.lock();
  if constexpr (is_weak<Weak>) {
    return detail::untyped(strong.get());  // also if it owns nothing
  } else {
    return strong ? detail::untyped(detail::address(*strong)) : nullptr;
  }
}

/// Refuses temporary objects at compile time.
template <typename Object>
constexpr void check_object() {
  static_assert(is_reference<std::decay_t<Object>> || std::is_lvalue_reference_v<Object>,
                "the object must live longer than this call: pass a variable or a pointer");
}

/// Checks a pointer, and uses the lifetime of an observer.
template <typename T>
bool prepare_object(T *object, const options *&how, options &changed) {
  bool is_good = object != nullptr;
  if constexpr (std::is_base_of_v<observer, T>) {
    constexpr bool is_public = std::is_convertible_v<T *, const observer *>;
    static_assert(is_public,
                  "mcast::observer must be a public base class, once, and no object volatile");
    if (how != nullptr) changed = *how;
    is_good = is_good && changed.lifetime.id == 0;
    if constexpr (is_public) {
      if (is_good) changed.lifetime = object->observing();
      if (is_good && changed.lifetime.id == 0) return false;  // without exceptions
    }
    how = &changed;
  }
  if (!is_good) detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
  return is_good;
}

}  // namespace mcast::detail

#endif
