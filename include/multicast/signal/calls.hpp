// SPDX-License-Identifier: MIT
//
// How the library calls the delegates of a signal.
#ifndef MULTICAST_SIGNAL_CALLS_HPP
#define MULTICAST_SIGNAL_CALLS_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../detail/callable.hpp"
#include "../detail/frame.hpp"
#include "../error.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The functions that the library calls: each calls delegates of one type.
template <typename R, typename... Args>
class calls {
 public:
  /// Whether delegates can be added with a queue: if there is no result, and if all arguments are
  /// copyable values or references to const. Queued calls share copies, of the types in the
  /// signature, which are made when the first call of an invocation is queued, and destroyed when
  /// the last of them has returned or is given up, on that thread. A std::string_view or a
  /// `const char *` is kept as a string. Of another pointer only the pointer is copied.
  /// @since 1.0
  MULTICAST_HPP_LOCAL static constexpr bool is_queueable =
      std::is_void_v<R> && (detail::is_queueable<Args>() && ...);

 protected:
  using frame = detail::frame<Args...>;

  /// The callable: with the registration as the first argument, or without.
  template <typename F, bool is_extended>
  using form_of = std::conditional_t<is_extended, detail::extended<F>, F>;
  template <typename F, bool is_extended>
  static constexpr bool is_const_callable =
      detail::is_delegate<R, form_of<const F, is_extended>, Args...>::value;
  /// Whether a copy does what the object itself would do: it has no data, or none that a call
  /// changes. This cannot be known of a class, which may have `mutable` members. But lambdas with
  /// captures differ from most classes: they are not aggregates, and have no constructor without
  /// arguments. (No lambda can be assigned, either. But asked for that, gcc 12 finds that it is not
  /// trivially copyable any more.)
  template <typename F, bool is_extended>
  static constexpr bool is_constant =
      !std::is_class_v<F> || std::is_empty_v<F> || detail::is_reference<F> ||
      (!std::is_aggregate_v<F> && !std::is_default_constructible_v<F> &&
       is_const_callable<F, is_extended>);
  /// Whether the callable consists of its bytes alone, so that these can be copied and compared.
  template <typename F, bool is_extended>
  static constexpr bool is_plain =
      std::is_trivially_copyable_v<F> && sizeof(F) <= sizeof(void *) && !detail::is_extended<F> &&
      !detail::is_mortal<F> && is_constant<F, is_extended> &&
      detail::is_delegate<R, form_of<F, is_extended>, Args...>::value;
  template <typename F>
  static constexpr bool is_in_context =
      is_plain<typename detail::not_extended<F>::type, detail::is_extended<F>>;

  /// The function of an ordinary delegate, and that of a special delegate, which a queue calls, or
  /// which is called once in a signal with results.
  enum kind : bool { ordinary, special };

  /// The function that the library calls.
  template <typename Access, kind is>
  static void call(void *context, uint32_t, const void *payload, size_t) {
    const frame &arguments = *static_cast<const frame *>(payload);
    detail::failures where = arguments.where;
    if constexpr (std::is_void_v<R>) {
      if constexpr (is == special) {
        where.thrown = nullptr;  // this is a copy
      } else if (detail::is_copy(payload)) {
        where = {};  // deferred or replayed: nothing waits for this call
      }
    } else if constexpr (is == special) {
      // Of several calls at once, the one that removes the delegate is made. It may remove an equal
      // delegate instead.
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
