// SPDX-License-Identifier: MIT
//
// The copy of the arguments that queued calls share.
#ifndef MULTICAST_DETAIL_COPIED_HPP
#define MULTICAST_DETAIL_COPIED_HPP

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "frame.hpp"
#include "stored.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// What a queued call keeps of one argument.
template <size_t, typename Arg>
struct kept_cell {
  typename storage<value<Arg>>::type kept;
  explicit kept_cell(const value<Arg> &given) : kept(given) {}
  explicit kept_cell(value<Arg> &&given) : kept(std::move(given)) {}
};

/// The copy of a frame, with its own copies of the arguments. What is given away is moved.
template <typename Frame, typename Moves>
struct copied_of;
template <size_t... I, typename... Args, bool... moves>
struct copied_of<frame_of<std::index_sequence<I...>, Args...>,
                 std::integer_sequence<bool, moves...>>
    : frame_of<std::index_sequence<I...>, Args...>, kept_cell<I, Args>... {
  using frame = frame_of<std::index_sequence<I...>, Args...>;

  /// For multicast_invocation.
  static const void *copy(const void *payload, size_t) {
    // The frame of the invocation is not const.
    frame &original = *static_cast<frame *>(const_cast<void *>(payload));
    const frame *result = nullptr;
    guard(original.where, [&] {
      const auto *made = new copied_of(original);
      // What was moved is there now, also for the delegates that are called directly.
      if constexpr ((moves || ...)) made->redirect(original);
      result = made;
    });
    return result;
  }
  static void release(const void *payload, size_t) noexcept {
    delete static_cast<const copied_of *>(static_cast<const frame *>(payload));
  }

 private:
  std::shared_ptr<shared_failure> waiting_;

  explicit copied_of(const frame &original)
      : frame(original), kept_cell<I, Args>(source<I, Args, moves>(original))... {
    static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= copy_alignment, "see is_copy()");
    if (this->where.waiting != nullptr) waiting_ = this->where.waiting->shared_from_this();
    this->where.thrown = nullptr;
    redirect(*this);
  }
  void redirect(frame &pointing) const {
    static_cast<void>(pointing);
    (static_cast<cell_of<I, Args> &>(pointing).point_to(
         static_cast<const kept_cell<I, Args> &>(*this).kept),
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

/// How a frame is copied, where its types are not known: set by the first add with a queue, or by
/// policies.
template <typename... Args>
struct copier {
  static void set() noexcept {
    if constexpr (frame<Args...>::is_replaceable) {
      using copied = detail::copied<frame<Args...>, is_kept<Args>...>;
      release.store(copied::release);
      copy.store(copied::copy);
    }
  }

  MULTICAST_API static inline std::atomic<const void *(*)(const void *, size_t)> copy{nullptr};
  MULTICAST_API static inline std::atomic<void (*)(const void *, size_t)> release{nullptr};

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
