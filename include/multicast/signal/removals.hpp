// SPDX-License-Identifier: MIT
//
// The functions of a signal that remove delegates.
#ifndef MULTICAST_SIGNAL_REMOVALS_HPP
#define MULTICAST_SIGNAL_REMOVALS_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "../detail/callable.hpp"
#include "../detail/contexts.hpp"
#include "../detail/keyed_contexts.hpp"
#include "../detail/object.hpp"
#include "../detail/retained.hpp"
#include "../error.hpp"
#include "../removal.hpp"
#include "equals.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The functions of a signal that remove delegates.
template <typename R, typename... Args>
class removals : public equals<R, Args...> {
  using base = equals<R, Args...>;

 public:
  /// Removes every registration of an equal delegate. The delegate can be a function, a lambda that
  /// is not larger than a pointer, a function object whose class has an `==`, or another signal.
  /// Then waits like multicast_remove_every().
  ///
  /// @param delegate  The delegate, as it was passed to add() or add_extended().
  /// @return The number of removed delegates, and the status of multicast_remove_every().
  ///
  /// Errors:    exceptions of `==`.
  /// Threads:   waits for the delegates' running calls on other threads. An object may be compared
  ///            by `==` while calls to it are running.
  /// Reentry:   returns MULTICAST_PENDING inside a call to one of the delegates.
  /// Cost:      like multicast_remove_every(). If objects are compared, O(delegates), plus the cost
  ///            of registration::remove() for each delegate removed.
  /// @since 1.1
  template <typename F>
  removal remove(const F &delegate) {
    if constexpr (base::template is_compared<F>) {
      removal all(MULTICAST_ERROR_NOT_FOUND, 0);
      for (const multicast_token token : base::equal_objects(delegate)) {
        const multicast_status status = multicast_token_remove(token);
        if (status >= 0) all = all + removal(status, 1);
      }
      return all;
    } else {
      return base::with_equal(delegate, [this](auto &equal) { return this->remove_all(equal); });
    }
  }
  /// Removes every registration that was made by add(object, method) or add_extended(object,
  /// method). The method may also be a callable.
  ///
  /// @param object    The object or pointer, with the same type as in add().
  /// @param delegate  The method or function, or an equal lambda that is not larger than a pointer.
  ///                  A method may also be the first argument.
  /// @return The number of removed delegates, and the status of multicast_remove_every().
  ///
  /// Threads:   waits for the delegates' running calls on other threads.
  /// Reentry:   returns MULTICAST_PENDING inside a call to one of the delegates.
  /// Cost:      like multicast_remove_every(), plus a briefly held lock.
  /// @since 1.1
  template <typename Object, typename F,
            std::enable_if_t<!std::is_member_function_pointer_v<std::decay_t<Object>>, int> = 0>
  removal remove(Object &&object, const F &delegate) {
    return base::with_equal(object, delegate,
                            [this](auto &equal) { return this->remove_all(equal); });
  }
  template <typename Class, typename Method, typename Object,
            std::enable_if_t<std::is_function_v<Method>, int> = 0>
  removal remove(Method Class::*method, Object &&object) {
    return remove(std::forward<Object>(object), method);
  }
  /// Removes every registration that was made by add(object, method) or add_extended(object,
  /// method) with this method and any object.
  ///
  /// @param method  The method.
  /// @return The number of removed delegates, and the status of multicast_remove_context().
  ///
  /// Threads:   waits for the delegates' running calls on other threads.
  /// Reentry:   returns MULTICAST_PENDING inside a call to one of the delegates.
  /// Cost:      O(delegates with objects, in all signals) under a lock, plus the cost of
  ///            multicast_remove_every() for each of these delegates that has this method.
  /// @since 1.1
  template <typename Class, typename Method,
            std::enable_if_t<std::is_function_v<Method>, int> = 0>
  removal remove(Method Class::*method) {
    using type = Method Class::*;
    removal all(MULTICAST_ERROR_NOT_FOUND, 0);
    const multicast target = target_.get();
    const detail::retained<> equal(detail::name_of<type>(), &method, target);
    equal.each([&](detail::keyed *context) {
      multicast_status status = MULTICAST_OK;
      const int64_t removed =
          target.id == 0 ? 0
                         : multicast_remove_context_within(target, context, MULTICAST_FOREVER,
                                                           &status);
      if (removed > 0) all = all + removal(status, static_cast<size_t>(removed));
    });
    return all;
  }
  /// Removes every registration that was made by add<&T::method>(object).
  ///
  /// @param object  The object or a pointer to it.
  /// @return The number of removed delegates, and the status of multicast_remove_every().
  ///
  /// Threads:   waits for the delegates' running calls on other threads.
  /// Reentry:   returns MULTICAST_PENDING inside a call to one of the delegates.
  /// Cost:      like multicast_remove_every().
  /// @since 1.1
  template <auto method, typename Object>
  removal remove(Object &&object) {
    if constexpr (detail::has_weak<std::decay_t<Object>>::value) {
      return remove(object, method);
    } else {
      auto *const pointer = detail::pointer_to(object);
      using object_type = std::remove_pointer_t<std::decay_t<decltype(pointer)>>;
      using access = detail::of_object<method, object_type>;
      return base::template with_both<access>(
          access::pack(pointer), [this](auto &equal) { return this->remove_all(equal); });
    }
  }
  /// Removes all delegates of an object: its methods and the callables that were added with it.
  ///
  /// @param object  The object or pointer, with the same type as in add().
  /// @return The number of removed delegates.
  ///
  /// Threads:   waits for the delegates' running calls on other threads.
  /// Cost:      O(delegates), plus the cost of registration::remove() for each delegate removed.
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
    const detail::retained<> contexts(address, target);
    return static_cast<size_t>(removed) + detail::count(contexts.remove());
  }
  /// Removes all delegates.
  ///
  /// @return The number of removed delegates.
  ///
  /// Threads:   waits for the delegates' running calls on other threads.
  /// Cost:      like multicast_remove_all().
  /// @since 1.0
  size_t clear() {
    const multicast target = target_.get();
    return target.id == 0 ? 0 : detail::count(multicast_remove_all(target));
  }

 protected:
  using base::base;
  using base::target_;

 private:
  /// Removes every delegate that is equal to an element of `equal`. Each call to
  /// multicast_remove_many_within() removes one delegate per element. Each element occurs twice in
  /// the array, so the loop ends when a call removes fewer than two delegates.
  template <size_t count>
  removal remove_all(const multicast_delegate (&equal)[count]) {
    const multicast target = target_.get();
    removal all(MULTICAST_ERROR_NOT_FOUND, 0);
    for (int64_t removed = 2; target.id != 0 && removed >= 2;) {
      multicast_status status = MULTICAST_OK;
      removed = multicast_remove_many_within(target, equal, count, MULTICAST_FOREVER, &status);
      if (removed == 0) break;
      all = all + removal(status, removed < 0 ? 0 : static_cast<size_t>(removed));
    }
    return all;
  }
};

}  // namespace mcast::detail

#endif
