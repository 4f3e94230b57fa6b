// SPDX-License-Identifier: MIT
//
// Delegates' contexts, either stored in the pointer itself or allocated on the heap.
#ifndef MULTICAST_DETAIL_CONTEXTS_HPP
#define MULTICAST_DETAIL_CONTEXTS_HPP

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "callable.hpp"
#include "config.hpp"

#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define MULTICAST_HPP_CLEAR_PADDING 1
#elif __has_builtin(__builtin_bit_cast)
#define MULTICAST_HPP_BIT_CAST 1
#endif
#endif

namespace MULTICAST_HPP_NAMESPACE::detail {

#if defined(MULTICAST_HPP_BIT_CAST)
template <size_t size>
struct bytes {
  unsigned char all[size];
};
/// Returns byte `i` of an object whose bytes are all zero. If the byte is padding, the call is not
/// a constant expression.
template <typename T>
constexpr unsigned char byte_of_zero(size_t i) {
  return __builtin_bit_cast(bytes<sizeof(T)>, __builtin_bit_cast(T, bytes<sizeof(T)>{})).all[i];
}
template <typename T, size_t i, unsigned char zero = byte_of_zero<T>(i)>
constexpr bool has_value(int) {
  return zero == 0;
}
template <typename T, size_t i>
constexpr bool has_value(long) {
  return false;
}
/// Clears the padding bytes that can be detected. If the class has bit-fields or no constexpr
/// constructor, nothing is cleared, because padding cannot be detected. An object that contains a
/// pointer and is no larger than a pointer has no padding.
template <typename T, size_t... i>
void clear_padding(unsigned char object[], std::index_sequence<i...>) noexcept {
  if constexpr ((has_value<T, i>(0) || ...)) {
    static_cast<void>(((has_value<T, i>(0) ? object[i] : object[i] = 0), ...));
  }
}
#endif

/// Sets an object's padding bytes to zero.
template <typename T>
void clear_padding(unsigned char (&object)[sizeof(T)]) noexcept {
  static_cast<void>(object);
  if constexpr (!std::has_unique_object_representations_v<T>) {
#if defined(MULTICAST_HPP_CLEAR_PADDING)
    __builtin_clear_padding(reinterpret_cast<T *>(object));
#elif defined(MULTICAST_HPP_BIT_CAST)
    clear_padding<T>(object, std::make_index_sequence<sizeof(T)>());
#endif
  }
}

}  // namespace mcast::detail

#undef MULTICAST_HPP_CLEAR_PADDING
#undef MULTICAST_HPP_BIT_CAST

namespace MULTICAST_HPP_NAMESPACE::detail {

/// `lock` only checks whether an object is dead; the call itself creates the strong pointer.
/// Therefore the strong pointer need not be allocated on the heap. If the object dies between the
/// check and the call, the delegate is not called.
template <typename Access>
struct life {
  static constexpr bool is_mortal = detail::is_mortal<typename Access::function>;
  static void *lock(void *context) noexcept {
    if constexpr (is_mortal) return Access::get(context).is_dead() ? nullptr : context;
    return context;
  }
};

/// Accesses a callable on the heap, to which the context points.
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

/// Accesses a callable whose bytes are stored in the context pointer.
template <typename F>
struct in_context {
  using function = F;
  static constexpr bool is_owned = false;
  static void *pack(const F &given) noexcept {
    void *context = nullptr;
    // Skip the single byte of an empty object, because it has an indeterminate value.
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
    body(*std::launder(reinterpret_cast<F *>(bytes)));
  }
};

/// Accesses an extended callable. The context stores only the inner callable.
template <typename F>
struct in_context<extended<F>> {
  using function = extended<F>;
  static constexpr bool is_owned = false;
  static void *pack(const function &given) noexcept { return in_context<F>::pack(given.function); }
  template <typename Body>
  static void use(void *context, Body &&body) {
    in_context<F>::use(context, [&](auto &called) {
      function made{called};
      body(made);
    });
  }
};

/// Converts the address of an object of any type to `void *`.
inline void *untyped(const volatile void *object) noexcept { return const_cast<void *>(object); }

/// Accesses a method that is known at compile time. The context is the object's address.
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
