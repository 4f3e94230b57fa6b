// SPDX-License-Identifier: MIT
//
// Where a callable is: in an object of its own, or in the context itself.
#ifndef MULTICAST_DETAIL_CONTEXT_HPP
#define MULTICAST_DETAIL_CONTEXT_HPP

#include <cstring>
#include <new>
#include <type_traits>

#include "callable.hpp"
#include "padding.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// `lock` only checks whether an object is dead; the call itself makes the pointer strong. So no
/// call needs an allocation for the strong pointer. An object that dies in between is not called.
template <typename Access>
struct life {
  static constexpr bool is_mortal = detail::is_mortal<typename Access::function>;
  static void *lock(void *context) noexcept {
    if constexpr (is_mortal) return Access::get(context).is_dead() ? nullptr : context;
    return context;
  }
};

/// A callable whose context is an object of its own.
template <typename F>
struct in_heap {
  using function = F;
  static constexpr bool is_owned = true;
  static F &get(void *context) noexcept { return *static_cast<F *>(context); }
  static void release(void *context) noexcept { ::delete static_cast<F *>(context); }
  template <typename Body>
  static void use(void *context, Body &&body) {
    body(get(context));
  }
};

/// A callable whose bytes are the context.
template <typename F>
struct in_context {
  using function = F;
  static constexpr bool is_owned = false;
  static void *pack(const F &given) noexcept {
    void *context = nullptr;
    // The byte of an empty object has no value.
    if constexpr (!std::is_empty_v<F>) {
      alignas(F) unsigned char bytes[sizeof(F)];
      std::memcpy(bytes, &given, sizeof bytes);
      clear_padding<F>(bytes);
      std::memcpy(&context, bytes, sizeof bytes);
    }
    return context;
  }
  template <typename Body>
  static void use(void *context, Body &&body) {
    alignas(F) unsigned char bytes[sizeof(F)];
    std::memcpy(bytes, &context, sizeof bytes);
    body(*std::launder(reinterpret_cast<const F *>(bytes)));
  }
};

/// The address of an object of any type.
inline void *untyped(const volatile void *object) noexcept { return const_cast<void *>(object); }

/// A method that is known at compile time; the context is the object.
template <auto method, typename T>
struct of_object {
  using function = bound<T *, decltype(method)>;
  static constexpr bool is_owned = false;
  static void *pack(T *object) noexcept {
    return untyped(object);
  }
  template <typename Body>
  static void use(void *context, Body &&body) {
    const function called{static_cast<T *>(context), method};
    body(called);
  }
};

}  // namespace mcast::detail

#endif
