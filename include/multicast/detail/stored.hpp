// SPDX-License-Identifier: MIT
//
// What a queued call keeps of an argument.
#ifndef MULTICAST_DETAIL_STORED_HPP
#define MULTICAST_DETAIL_STORED_HPP

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "argument.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// What a queued call keeps of an argument: a copy.
template <typename T>
struct stored {
  T copy;
  explicit stored(const T &given) : copy(given) {}
  explicit stored(T &&given) : copy(std::move(given)) {}
  const T *address() const { return std::addressof(copy); }
};
/// The characters of a view.
template <typename Char, typename Traits>
struct stored<std::basic_string_view<Char, Traits>> {
  std::basic_string<Char, Traits> text;
  std::basic_string_view<Char, Traits> view;
  explicit stored(std::basic_string_view<Char, Traits> given) : text(given), view(text) {}
  stored(const stored &) = delete;
  stored &operator=(const stored &) = delete;
  const std::basic_string_view<Char, Traits> *address() const { return &view; }
};
/// The characters of a text that ends with zero.
template <typename Char>
struct stored_text {
  std::basic_string<Char> text;
  const Char *pointer;
  explicit stored_text(const Char *given)
      : text(given == nullptr ? std::basic_string<Char>() : std::basic_string<Char>(given)),
        pointer(given == nullptr ? nullptr : text.c_str()) {}
  stored_text(const stored_text &) = delete;
  stored_text &operator=(const stored_text &) = delete;
  const Char *const *address() const { return &pointer; }
};
template <typename T>
struct storage {
  using type = stored<T>;
};
template <typename Char>
struct storage<const Char *> {
  using type = std::conditional_t<is_character<Char>, stored_text<Char>, stored<const Char *>>;
};

}  // namespace mcast::detail

#endif
