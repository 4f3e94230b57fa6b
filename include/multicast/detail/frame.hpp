// SPDX-License-Identifier: MIT
//
// How an invocation's arguments are laid out in memory: the frame and its copies.
#ifndef MULTICAST_DETAIL_FRAME_HPP
#define MULTICAST_DETAIL_FRAME_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

#include "arguments.hpp"
#include "failures.hpp"
#include "invoke.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// One argument of an invocation: its address or, if it is small, the argument itself.
template <size_t, typename Arg, bool is_here>
struct cell {
  std::remove_reference_t<passed<Arg>> *pointer = nullptr;
  explicit cell(passed<Arg> given) : pointer(detail::address(given)) {}
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

/// The payload of an invocation, which both direct and queued calls read.
template <typename Indices, typename... Args>
struct frame_of;
template <size_t... Index, typename... Args>
struct frame_of<std::index_sequence<Index...>, Args...> : cell_of<Index, Args>... {
  /// Whether a queue may copy the frame byte by byte.
  static constexpr bool is_plain = (is_small<Args>() && ...);
  /// Whether calls may be queued although the frame has to be copied argument by argument.
  static constexpr bool is_replaceable = !is_plain && (detail::is_replaceable<Args> && ...);
  /// Whether this code can copy the frame, because all argument types are complete.
  static constexpr bool is_complete = (detail::is_complete<value<Args>>::value && ...);

  failures where;
  void *results = nullptr;  // points to a question<R>

  explicit frame_of(passed<Args>... given)
      : cell_of<Index, Args>(static_cast<passed<Args>>(given))... {}

  /// Calls a callable with the first `count` arguments of the invocation, or with copies of them.
  template <size_t count, bool is_copied, typename F, typename... First>
  decltype(auto) apply(F &&function, First &&...first) const {
    if constexpr (count == sizeof...(Args) && !is_copied) {
      return detail::invoke(function, std::forward<First>(first)...,
                         static_cast<const cell_of<Index, Args> &>(*this).get()...);
    } else {
      return apply_some<is_copied>(std::make_index_sequence<count>(), function,
                                   std::forward<First>(first)...);
    }
  }

 private:
  template <bool is_copied, size_t... Some, typename F, typename... First>
  decltype(auto) apply_some(std::index_sequence<Some...>, F &function, First &&...first) const {
    return detail::invoke(function, std::forward<First>(first)...,
                          pass<is_copied>(*at<Some>(this))...);
  }
  template <size_t i, typename Arg, bool is_here>
  static const cell<i, Arg, is_here> *at(const cell<i, Arg, is_here> *here) noexcept {
    return here;
  }
  template <bool is_copied, size_t i, typename Arg, bool is_here>
  static decltype(auto) pass(const cell<i, Arg, is_here> &here) {
    if constexpr (is_copied && !std::is_reference_v<Arg>) {
      return value<Arg>(here.get());
    } else {
      return here.get();
    }
  }
};

template <typename... Args>
using frame = frame_of<std::index_sequence_for<Args...>, Args...>;

/// The library aligns copies of payloads to this number of bytes.
inline constexpr size_t copy_alignment = 16;

/// The frame of an invocation, on the invoking thread's stack. is_copy() distinguishes a frame from
/// its copies by their alignment. A flag or an address in the frame would not work, because a copy
/// has the same bytes, may outlive the stack frame, and may even be allocated at the same address.
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

/// Whether a payload is a copy of a frame. If so, the target of the frame's `where` may no longer
/// exist.
inline bool is_copy(const void *payload) noexcept {
  return reinterpret_cast<uintptr_t>(payload) % copy_alignment == 0;
}

/// A queued call's copy of one argument.
template <size_t, typename Arg>
struct kept_cell {
  typename storage<value<Arg>>::type kept;
  explicit kept_cell(const value<Arg> &given) : kept(given) {}
  explicit kept_cell(value<Arg> &&given) : kept(std::move(given)) {}
};

/// A base class that gives its derived class the alignment that is_copy() expects, or a stricter
/// one if the derived class needs it.
struct alignas(copy_alignment) aligned_copy {};

/// The copy of a frame, with copies of the arguments. Arguments that were passed as rvalues are
/// moved.
template <typename Frame, typename Moves>
struct copied_of;
template <size_t... Index, typename... Args, bool... moves>
struct copied_of<frame_of<std::index_sequence<Index...>, Args...>,
                 std::integer_sequence<bool, moves...>>
    : frame_of<std::index_sequence<Index...>, Args...>, kept_cell<Index, Args>..., aligned_copy {
  using frame = frame_of<std::index_sequence<Index...>, Args...>;

  /// The `copy` function of multicast_invocation.
  static const void *copy(const void *payload, size_t) {
    // The const_cast is safe, because the invocation's frame is not const.
    frame &original = *static_cast<frame *>(const_cast<void *>(payload));
    const frame *result = nullptr;
    guard(original.where, [&] {
      const auto *made = new copied_of(original);
      // Moved arguments now exist only in the copy, so directly called delegates also have to read
      // them there.
      if constexpr ((moves || ...)) made->redirect(original);
      result = made;
    });
    return result;
  }
  static void release(const void *payload, size_t) noexcept {
    delete static_cast<const copied_of *>(static_cast<const frame *>(payload));
  }

 private:
  shared<shared_failure> waiting_;

  explicit copied_of(const frame &original)
      : frame(original), kept_cell<Index, Args>(source<Index, Args, moves>(original))...,
        waiting_(original.where.waiting) {
    this->where.thrown = nullptr;
    redirect(*this);
  }
  void redirect(frame &pointing) const {
    static_cast<void>(pointing);
    (static_cast<cell_of<Index, Args> &>(pointing).point_to(
         static_cast<const kept_cell<Index, Args> &>(*this).kept),
     ...);
  }
  template <size_t i, typename Arg, bool is_moved>
  static decltype(auto) source(const frame &original) {
    const auto &argument = static_cast<const cell_of<i, Arg> &>(original).get();
    if constexpr (is_moved) {
      return std::move(const_cast<value<Arg> &>(argument));
    } else {
      return argument;
    }
  }
};

template <typename Frame, bool... moves>
using copied = copied_of<Frame, std::integer_sequence<bool, moves...>>;
template <typename>
inline constexpr bool is_kept = false;  // no argument is moved

/// Copies a frame in code that does not know the argument types. The functions are set when a
/// delegate with a queue is added, or when a signal with policies is created.
template <typename... Args>
struct copier {
  static void set() noexcept {
    if constexpr (frame<Args...>::is_replaceable) {
      using copied = detail::copied<frame<Args...>, is_kept<Args>...>;
      release.store(copied::release);
      copy.store(copied::copy);
    }
  }

  // Each module has its own copy of these variables, because a plug-in's functions are unloaded
  // with it.
  MULTICAST_HPP_LOCAL static inline std::atomic<const void *(*)(const void *, size_t)> copy{
      nullptr};
  MULTICAST_HPP_LOCAL static inline std::atomic<void (*)(const void *, size_t)> release{nullptr};

  static const void *call_copy(const void *payload, size_t size) noexcept {
    const auto function = copy.load();
    return function == nullptr ? nullptr : function(payload, size);
  }
  static void call_release(const void *payload, size_t size) noexcept {
    release.load()(payload, size);
  }
};

}  // namespace mcast::detail

#endif
