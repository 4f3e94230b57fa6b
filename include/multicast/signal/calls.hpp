// SPDX-License-Identifier: MIT
//
// How the library calls a signal's delegates.
#ifndef MULTICAST_SIGNAL_CALLS_HPP
#define MULTICAST_SIGNAL_CALLS_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../detail/callable.hpp"
#include "../detail/frame.hpp"
#include "../error.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The C functions that the library calls. Each of them calls delegates of one type.
template <typename R, typename... Args>
class calls {
 public:
  /// Whether delegates can be added with a queue. This is true if the signal has no result and all
  /// arguments are copyable values or references to const. The queued calls of an invocation share
  /// one copy of the arguments, with the types in the signature. The copy is made when the first
  /// call is queued, and destroyed on the thread on which the last call returns or is dropped. A
  /// std::string_view or a `const char *` is copied as a string. For any other pointer, only the
  /// pointer itself is copied.
  /// @since 1.0
  MULTICAST_HPP_LOCAL static constexpr bool is_queueable =
      std::is_void_v<R> && (detail::is_queueable<Args>() && ...);

 protected:
  using frame = detail::frame<Args...>;

  /// The type of the callable, with the registration as the first argument or without it.
  template <typename F, bool is_extended>
  using form_of = std::conditional_t<is_extended, detail::extended<F>, F>;
  template <typename F, bool is_extended>
  static constexpr bool is_const_callable =
      detail::is_delegate<R, form_of<const F, is_extended>, Args...>::value;
  /// Whether calling a copy has the same effect as calling the object itself, because a call
  /// changes no data of the object. For a class, this is unknown, because the class may have
  /// `mutable` members. But lambdas with captures can be distinguished from most classes: they are
  /// not aggregates and have no default constructor. (Lambdas cannot be assigned, either, but once
  /// a program checks for that, gcc 12 no longer considers the lambda trivially copyable.)
  template <typename F, bool is_extended>
  static constexpr bool is_constant =
      !std::is_class_v<F> || std::is_empty_v<F> || detail::is_reference<F> ||
      (!std::is_aggregate_v<F> && !std::is_default_constructible_v<F> &&
       is_const_callable<F, is_extended>);
  /// Whether the callable can be copied and compared bytewise, because its bytes are its whole
  /// value.
  template <typename F, bool is_extended>
  static constexpr bool is_plain =
      std::is_trivially_copyable_v<F> && sizeof(F) <= sizeof(void *) && !detail::is_extended<F> &&
      !detail::is_mortal<F> && is_constant<F, is_extended> &&
      detail::is_delegate<R, form_of<F, is_extended>, Args...>::value;
  template <typename F>
  static constexpr bool is_in_context =
      is_plain<typename detail::not_extended<F>::type, detail::is_extended<F>>;

  /// Whether a delegate is special, that is, has a queue or, in a signal with results, is called
  /// only once. Each kind has its own C function.
  enum kind : bool { ordinary, special };

  /// The function that the library calls.
  template <typename Access, kind is>
  static void call(void *context, uint32_t, const void *payload, size_t) {
    const frame &arguments = *static_cast<const frame *>(payload);
    detail::failures where = arguments.where;
    if constexpr (std::is_void_v<R>) {
      if constexpr (is == special) {
        where.thrown = nullptr;  // the frame is a copy
      } else if (detail::is_copy(payload)) {
        where = {};  // deferred or replayed: nothing waits for this call
      }
    } else if constexpr (is == special) {
      // Only the thread that removes the delegate may call it, because it is called only once. If
      // there are equal delegates, that thread may remove a different one.
      const multicast_delegate self = {call<Access, is>, context};
      const multicast target = static_cast<detail::question<R> *>(arguments.results)->target;
      if (multicast_remove_many_within(target, &self, 1, 0, nullptr) != 1) return;
    }
    detail::guard(where, [&] {
      Access::use(context, [&](auto &function) { detail::perform<R>(function, arguments); });
    });
  }
};

}  // namespace mcast::detail

#endif
