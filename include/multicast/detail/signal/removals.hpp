// SPDX-License-Identifier: MIT
//
// The functions of a signal that remove delegates.
#ifndef MULTICAST_DETAIL_SIGNAL_REMOVALS_HPP
#define MULTICAST_DETAIL_SIGNAL_REMOVALS_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "../callable.hpp"
#include "../contexts.hpp"
#include "../failures.hpp"
#include "../keyed_contexts.hpp"
#include "../object.hpp"
#include "../retained.hpp"
#include "additions.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The functions of a signal that remove delegates.
template <typename R, typename... Args>
class removals : public additions<R, Args...> {
  using base = additions<R, Args...>;

 public:
  /// Removes every registration of a function, or of an equal lambda that is not larger than a
  /// pointer, and waits as multicast_remove_every() does.
  ///
  /// @param delegate  As it was added.
  /// @return As multicast_remove_every().
  ///
  /// Threads:   waits for running calls of them on other threads.
  /// Reentry:   inside a call of one: MULTICAST_PENDING.
  /// Cost:      as multicast_remove_every().
  /// @since 1.1
  template <typename F>
  multicast_status remove(const F &delegate) {
    using function = std::decay_t<F>;
    static_assert(base::template is_in_context<function>,
                  "only functions and lambdas that are not larger than a pointer can be compared: "
                  "keep the registration that add() returns, and remove that");
    const function copy = delegate;
    return remove_both<detail::in_context<function>>(detail::in_context<function>::pack(copy));
  }
  /// Removes every registration of a method of an object, added as add(object, method).
  ///
  /// @param object  The object or pointer, of the same type as it was added with.
  /// @param method  The method. It may also come first.
  /// @return As multicast_remove_every().
  ///
  /// Threads:   waits for running calls of them on other threads.
  /// Reentry:   inside a call of one: MULTICAST_PENDING.
  /// Cost:      as multicast_remove_every(), and a short lock.
  /// @since 1.1
  template <typename Object, typename Class, typename Method>
  multicast_status remove(Object &&object, Method Class::*method) {
    using given = std::decay_t<Object>;
    if constexpr (detail::has_weak<given>::value) {
      const auto weak = to_weak(object);
      using function = detail::weak_bound<std::decay_t<decltype(weak)>, Method Class::*>;
      return remove_keyed(detail::address_of(weak), function{weak, method});
    } else {
      auto *const pointer = detail::pointer_to(object);
      using function = detail::bound<std::decay_t<decltype(pointer)>, Method Class::*>;
      return remove_keyed(detail::untyped(pointer), function{pointer, method});
    }
  }
  template <typename Class, typename Method, typename Object>
  multicast_status remove(Method Class::*method, Object &&object) {
    return remove(std::forward<Object>(object), method);
  }
  /// Removes every registration added as add<&T::method>(object).
  ///
  /// @param object  The object or a pointer to it.
  /// @return As multicast_remove_every().
  ///
  /// Threads:   waits for running calls of them on other threads.
  /// Reentry:   inside a call of one: MULTICAST_PENDING.
  /// Cost:      as multicast_remove_every().
  /// @since 1.1
  template <auto method, typename Object>
  multicast_status remove(Object &&object) {
    if constexpr (detail::has_weak<std::decay_t<Object>>::value) {
      return remove(object, method);
    } else {
      auto *const pointer = detail::pointer_to(object);
      using object_type = std::remove_pointer_t<std::decay_t<decltype(pointer)>>;
      using access = detail::of_object<method, object_type>;
      return remove_both<access>(access::pack(pointer));
    }
  }
  /// Removes what was added with an object: its methods, and the callables that belong to it.
  ///
  /// @param object  The object or pointer, of the same type as it was added with.
  /// @return How many were removed.
  ///
  /// Threads:   waits for running calls of them on other threads.
  /// Cost:      O(delegates), and for each that is removed as registration::remove().
  /// @since 1.1
  template <typename Object>
  size_t remove_object(Object &&object) {
    const void *address;
    if constexpr (detail::has_weak<std::decay_t<Object>>::value) {
      address = detail::address_of(to_weak(object));
    } else {
      address = detail::untyped(detail::pointer_to(object));
    }
    const multicast target = target_.get();
    if (target.id == 0 || address == nullptr) return 0;
    const int64_t removed = multicast_remove_context(target, detail::untyped(address));
    if (removed < 0) return detail::count(removed);
    return static_cast<size_t>(removed) + detail::count(detail::retained(address, target).remove());
  }
  /// Removes all delegates.
  ///
  /// @return How many there were.
  ///
  /// Threads:   waits for running calls of them on other threads.
  /// Cost:      as multicast_remove_all().
  /// @since 1.0
  size_t clear() {
    const multicast target = target_.get();
    return target.id == 0 ? 0 : detail::count(multicast_remove_all(target));
  }

 protected:
  using base::base;
  using base::target_;

 private:
  template <typename F>
  multicast_status remove_keyed(const void *object, F function) {
    using access = detail::in_keyed<F>;
    detail::keyed *const context = detail::keyed_contexts::retain(detail::keyed_callable<F>(
        {object, target_.get().id, base::template call<access, base::ordinary>},
        std::move(function)));
    if (context == nullptr) return MULTICAST_ERROR_NOT_FOUND;
    const multicast_status status = remove_both<access>(context);
    detail::keyed_contexts::release(context);
    return status;
  }
  template <typename Access>
  multicast_status remove_both(void *context) {
    const multicast target = target_.get();
    if (target.id == 0) return MULTICAST_ERROR_NOT_FOUND;
    const multicast_function function = base::template call<Access, base::ordinary>;
    const multicast_function other = base::template call<Access, base::special>;
    return detail::joined(multicast_remove_every(target, {function, context}),
                          multicast_remove_every(target, {other, context}));
  }
};

}  // namespace mcast::detail

#endif
