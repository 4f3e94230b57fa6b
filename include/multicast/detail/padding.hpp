// SPDX-License-Identifier: MIT
//
// Equal objects have equal bytes.
#ifndef MULTICAST_DETAIL_PADDING_HPP
#define MULTICAST_DETAIL_PADDING_HPP

#include <cstddef>
#include <type_traits>
#include <utility>

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
/// A byte of an object whose bytes are zero: no constant if it is padding.
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
/// With bit-fields, or without a constructor for constants, no byte is known: then none is cleared.
/// Something small that has a pointer has no padding.
template <typename T, size_t... i>
void clear_padding(unsigned char object[], std::index_sequence<i...>) noexcept {
  if constexpr ((has_value<T, i>(0) || ...)) {
    static_cast<void>(((has_value<T, i>(0) ? object[i] : object[i] = 0), ...));
  }
}
#endif

/// Sets the bytes of an object to zero that have no value.
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

#endif
