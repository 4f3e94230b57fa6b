// SPDX-License-Identifier: MIT
//
// The arguments of an invocation.
#ifndef MULTICAST_DETAIL_FRAME_HPP
#define MULTICAST_DETAIL_FRAME_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "argument.hpp"
#include "failures.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// One argument of an invocation: its address, or a small one itself.
template <size_t, typename Arg, bool is_here>
struct cell {
  std::remove_reference_t<passed<Arg>> *pointer = nullptr;
  explicit cell(passed<Arg> given) : pointer(std::addressof(given)) {}
  passed<Arg> get() const { return static_cast<passed<Arg>>(*pointer); }
  template <typename Kept>
  void point_to(const Kept &kept) {
    pointer = kept.address();
  }
};
template <size_t i, typename Arg>
struct cell<i, Arg, true> {
  value<Arg> copy;
  explicit cell(const Arg &given) : copy(given) {}
  const Arg &get() const { return copy; }
  template <typename Kept>
  void point_to(const Kept &) {}
};
template <size_t i, typename Arg>
using cell_of = cell<i, Arg, is_small<Arg>()>;

/// The payload of an invocation, which direct and queued calls read alike.
template <typename Indices, typename... Args>
struct frame_of;
template <size_t... I, typename... Args>
struct frame_of<std::index_sequence<I...>, Args...> : cell_of<I, Args>... {
  /// Whether a queue may copy it byte by byte.
  static constexpr bool is_plain = (is_small<Args>() && ...);
  /// Whether there may be queued calls, which need a copy.
  static constexpr bool is_replaceable = !is_plain && (detail::is_replaceable<Args> && ...);
  /// Whether the copy can be made here.
  static constexpr bool is_complete = (detail::is_complete<value<Args>>::value && ...);

  failures where;
  void *results = nullptr;  // the question<R>

  explicit frame_of(passed<Args>... given)
      : cell_of<I, Args>(static_cast<passed<Args>>(given))... {}

  template <typename F, typename... First>
  decltype(auto) apply(F &&function, First &&...first) const {
    return std::invoke(function, std::forward<First>(first)...,
                       static_cast<const cell_of<I, Args> &>(*this).get()...);
  }
};

template <typename... Args>
using frame = frame_of<std::index_sequence_for<Args...>, Args...>;

/// The library aligns copies of payloads to this.
inline constexpr size_t copy_alignment = 16;

/// The frame of an invocation, on its stack. It is not aligned as a copy is: that tells them apart.
/// What is in the frame cannot: a copy has the same bytes, may outlive the stack of its invocation,
/// and may even be where that was.
template <typename Frame>
struct alignas(copy_alignment) original_frame {
  std::exception_ptr thrown;
  Frame arguments;

  template <typename... Given>
  explicit original_frame(std::in_place_t, Given &&...given)
      : arguments(std::forward<Given>(given)...) {
    static_assert(alignof(Frame) <= sizeof thrown && sizeof thrown < copy_alignment,
                  "the frame follows, with no room between, and is not aligned as a copy");
    arguments.where.thrown = &thrown;
  }
};

/// Whether a payload is a copy of a frame: then what `where` points to may not be there any more.
inline bool is_copy(const void *payload) noexcept {
  return reinterpret_cast<uintptr_t>(payload) % copy_alignment == 0;
}

}  // namespace mcast::detail

#endif
