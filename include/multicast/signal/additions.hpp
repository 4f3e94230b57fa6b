// SPDX-License-Identifier: MIT
//
// The functions of a signal that add delegates.
#ifndef MULTICAST_SIGNAL_ADDITIONS_HPP
#define MULTICAST_SIGNAL_ADDITIONS_HPP

#include <type_traits>
#include <utility>

#include "../detail/callable.hpp"
#include "../detail/contexts.hpp"
#include "../detail/keyed_contexts.hpp"
#include "../detail/object.hpp"
#include "../error.hpp"
#include "../observer.hpp"
#include "../options.hpp"
#include "../registration.hpp"
#include "../tracked.hpp"
#include "insertion.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The type of options passed in braces. The second template parameter delays the check until
/// options are used, so that the argument types may be incomplete until then.
template <typename Signal, typename>
struct options_of {
  using type = std::conditional_t<Signal::is_queueable, options, basic_options<no_queue>>;
};

/// Whether `T` may be a delegate. Numbers, queues and lifetimes may not; a caller has to pass them
/// as options, through functions such as mcast::on().
template <typename T>
constexpr bool is_no_option() {
  constexpr bool is_option = std::is_arithmetic_v<T> ||
                             std::is_convertible_v<T &, queue_reference> ||
                             std::is_convertible_v<T &, lifetime_reference>;
  static_assert(!is_option,
                "give options as mcast::on(queue), mcast::under(lifetime), mcast::priority(1)");
  return !is_option;
}

/// Checks that the pointer is not null. If the object is an observer, stores the observer's
/// lifetime in the options.
template <typename T>
bool prepare_object(T *object, const options *&how, options &changed) {
  bool is_good = object != nullptr;
  if constexpr (std::is_base_of_v<observer, T>) {
    constexpr bool is_public = std::is_convertible_v<T *, const observer *>;
    static_assert(is_public,
                  "mcast::observer must be a public base class, once, and no object volatile");
    if (how != nullptr) changed = *how;
    is_good = is_good && changed.lifetime.id == 0;
    if constexpr (is_public) {
      if (is_good) changed.lifetime = object->observing();
      if (is_good && changed.lifetime.id == 0) return false;  // failed, with -fno-exceptions
    }
    how = &changed;
  }
  if (!is_good) detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
  return is_good;
}

// The compiler shows this name in the first line of its message if no other overload matches.
struct use_static_cast_to_name_one_overloaded_function;

/// The functions of a signal that add delegates.
template <typename R, typename... Args>
class additions : public insertion<R, Args...> {
  using base = insertion<R, Args...>;
  template <typename T>
  using default_options = typename options_of<base, T>::type;

 public:
  using base::is_queueable;

  /// Adds a lambda, function object or function after all other delegates of the same priority.
  ///
  /// @param delegate  The delegate, which is copied or moved. It is called as a non-const lvalue,
  ///                  so that it keeps its state between calls. There is one exception: each call
  ///                  uses a fresh copy of an object that resembles a small lambda. Such an object
  ///                  is trivially copyable, not larger than a pointer and callable as const, and
  ///                  its class has constructors but no default constructor. If the signal has no
  ///                  result, the delegate's result is ignored. The delegate may take fewer
  ///                  arguments than the signal. If it takes `T &&` where the signal takes `T`, it
  ///                  receives a copy. The delegate may also be another signal: `add(other)` or
  ///                  `add(std::ref(other))`. The result of its last delegate is then used. That
  ///                  signal is invoked until it is destroyed, even if it is moved. After it has
  ///                  been destroyed, the next invocation, size() or registration::is_valid()
  ///                  removes the delegate.
  /// @param how       Options: on(), under(), priority(), once, latest, unique and at_front can be
  ///                  combined with `|`. If the signal cannot be queued, on() does not compile, and
  ///                  a queue in an options struct causes MULTICAST_ERROR_INVALID_ARGUMENT.
  /// @return The registration, with which the delegate can be removed.
  ///
  /// Ownership: the copy is destroyed exactly once, after the last call has returned, on the thread
  ///            that made that call or on the thread that removes the delegate. If the add fails,
  ///            the copy is destroyed before add() throws.
  /// Threads:   if several threads invoke the signal, they may call the delegate concurrently. If
  ///            the signal replays, the delegate is also called on this thread before add()
  ///            returns.
  /// Errors:    MULTICAST_ERROR_INVALID_ARGUMENT if the function is null.
  /// Cost:      like multicast_add(). A function, an object without data, or a lambda that is not
  ///            `mutable` and not larger than a pointer needs no allocation. Other delegates need
  ///            one allocation, and so do options.
  /// @since 1.0
  template <typename F>
  registration add(F &&delegate) {
    return add_callable<false>(std::forward<F>(delegate), nullptr);
  }
  template <typename F, typename How = default_options<F>,
            std::enable_if_t<detail::is_options<How>::value, int> = 0>
  registration add(F &&delegate, const How &how) {
    const options given = base::checked(how);
    return add_callable<is_queueable>(std::forward<F>(delegate), &given);
  }

  // Matches arguments whose type cannot be deduced, such as an overloaded function.
  use_static_cast_to_name_one_overloaded_function add(...) = delete;

  /// Adds a callable that receives its own registration as the first argument, followed by the
  /// signal's arguments.
  ///
  /// @param delegate  As in add().
  /// @param how       As in add().
  /// @return The registration.
  ///
  /// Cost:      like add() with a delegate larger than a pointer.
  /// @since 1.1
  template <typename F>
  registration add_extended(F &&delegate) {
    return add(detail::extended<std::decay_t<F>>{std::forward<F>(delegate)});
  }
  template <typename F, typename How = default_options<F>,
            std::enable_if_t<detail::is_options<How>::value, int> = 0>
  registration add_extended(F &&delegate, const How &how) {
    return add(detail::extended<std::decay_t<F>>{std::forward<F>(delegate)}, how);
  }

  /// Adds a method of an object, or a callable that belongs to an object.
  ///
  /// @param object    An object, a pointer to an object, or a std::ref() is borrowed, so the object
  ///                  must stay valid until the removal has completed. If the object's class is
  ///                  derived from mcast::observer, the delegate is removed when the object is
  ///                  destroyed. A std::shared_ptr, a std::weak_ptr, or a pointer that has a
  ///                  to_weak() is held weakly, and each call keeps the object alive while it runs.
  ///                  After the object has died, the next invocation, size() or
  ///                  registration::is_valid() removes the delegate.
  /// @param delegate  Any callable, or a method of the object's class or of a base class. If the
  ///                  method is overloaded, use static_cast to select one overload. The method may
  ///                  also be the first argument: `add(&C::hear, &object)`.
  /// @param how       As in add().
  /// @return The registration.
  ///
  /// Errors:    MULTICAST_ERROR_INVALID_ARGUMENT if the pointer or method is null, or if `how`
  ///            contains a lifetime although the object is an mcast::observer, which has its own
  ///            lifetime.
  /// Cost:      like add(), plus a briefly held lock. add<&T::method>(object) costs less.
  /// @since 1.0
  template <typename Object, typename F,
            std::enable_if_t<!detail::is_options<std::decay_t<F>>::value, int> = 0>
  registration add(Object &&object, F &&delegate) {
    if constexpr (detail::is_no_option<std::decay_t<F>>()) {
      return add_member<false>(std::forward<Object>(object), std::forward<F>(delegate), nullptr);
    } else {
      return registration();
    }
  }
  template <typename Object, typename F,
            typename How = default_options<Object>,
            std::enable_if_t<!detail::is_options<std::decay_t<F>>::value, int> = 0>
  registration add(Object &&object, F &&delegate, const How &how) {
    const options given = base::checked(how);
    return add_member<is_queueable>(std::forward<Object>(object), std::forward<F>(delegate),
                                    &given);
  }

  template <typename Class, typename Method, typename Object,
            std::enable_if_t<std::is_function_v<Method> &&
                             !detail::is_options<std::decay_t<Object>>::value, int> = 0>
  registration add(Method Class::*method, Object &&object) {
    return add(std::forward<Object>(object), method);
  }
  template <typename Class, typename Method, typename Object,
            typename How = default_options<Object>, std::enable_if_t<std::is_function_v<Method> &&
                             !detail::is_options<std::decay_t<Object>>::value, int> = 0>
  registration add(Method Class::*method, Object &&object, const How &how) {
    return add(std::forward<Object>(object), method, how);
  }

  /// Adds a method of an object, or a callable that belongs to an object. The method or callable
  /// receives its own registration as the first argument, followed by the signal's arguments.
  ///
  /// @param object    As in add().
  /// @param delegate  As in add().
  /// @param how       As in add().
  /// @return The registration.
  ///
  /// Errors:    like add().
  /// Cost:      like add(object, delegate).
  /// @since 1.1
  template <typename Object, typename F,
            std::enable_if_t<!detail::is_options<std::decay_t<F>>::value, int> = 0>
  registration add_extended(Object &&object, F &&delegate) {
    return add_member<false, true>(std::forward<Object>(object), std::forward<F>(delegate),
                                   nullptr);
  }
  template <typename Object, typename F, typename How = default_options<Object>,
            std::enable_if_t<!detail::is_options<std::decay_t<F>>::value, int> = 0>
  registration add_extended(Object &&object, F &&delegate, const How &how) {
    const options given = base::checked(how);
    return add_member<is_queueable, true>(std::forward<Object>(object), std::forward<F>(delegate),
                                          &given);
  }

  /// Adds a method that is known at compile time: `add<&T::method>(object)`.
  ///
  /// @param object  An object or a pointer to it, which is borrowed, or a pointer that is held
  ///                weakly, as in add(object, delegate).
  /// @param how     As in add().
  /// @return The registration.
  ///
  /// Errors:    MULTICAST_ERROR_INVALID_ARGUMENT if the pointer is null, or if `how` contains a
  ///            lifetime although the object is an mcast::observer, which has its own lifetime.
  /// Cost:      like multicast_add(), without an allocation. If the pointer is held weakly, like
  ///            add(object, delegate).
  /// @since 1.1
  template <auto method, typename Object>
  registration add(Object &&object) {
    return add_method<false, method>(std::forward<Object>(object), nullptr);
  }
  template <auto method, typename Object,
            typename How = default_options<Object>>
  registration add(Object &&object, const How &how) {
    const options given = base::checked(how);
    return add_method<is_queueable, method>(std::forward<Object>(object), &given);
  }

 protected:
  using base::base;

 private:
  /// Adds another signal as a delegate, which is invoked until it is destroyed.
  template <bool may_queue, typename Made, typename... Given>
  registration add_signal(const insertion<Made, Given...> &target, const options *how) {
    using access = detail::of_signal<Made(Given...)>;
    static_assert(detail::is_delegate<R, typename access::function, Args...>::value,
                  "the other signal cannot be invoked with the arguments of this one, or has "
                  "other results");
    const multicast invoked = target.target_.make();
    if (invoked.id == 0) return registration();  // failed, with -fno-exceptions
    return this->template insert<access, may_queue>(how, [&](multicast) {
      detail::process().mortal_signals.fetch_add(1);
      detail::process().mortals.fetch_add(1);
      return access::pack(invoked);
    });
  }

  template <bool may_queue, typename Given>
  registration add_callable(Given &&given, const options *how) {
    using function = std::decay_t<Given>;
    using forwarded = typename detail::forwarded<Given>::type;
    if constexpr (!std::is_void_v<forwarded>) {
      const signal<forwarded> &other = given;
      return add_signal<may_queue>(other, how);
    } else {
      return add_function<may_queue, function>(std::forward<Given>(given), how);
    }
  }
  template <bool may_queue, typename function, typename Given>
  registration add_function(Given &&given, const options *how) {
    static_assert(detail::is_delegate<R, function, Args...>::value,
                  "the delegate cannot be called with the arguments of the signal, or returns "
                  "something else than the signal");
    if constexpr (detail::is_delegate<R, function, Args...>::value) {
      if (detail::is_null(given)) {
        detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
        return registration();
      }
      if constexpr (base::template is_in_context<function>) {
        using access = detail::in_context<function>;
        const function copy = std::forward<Given>(given);
        return this->template insert<access, may_queue>(
            how, [&](multicast) { return access::pack(copy); });
      } else {
        return this->template insert<detail::in_heap<function>, may_queue>(
            how, [&](multicast target) -> void * {
              auto *const made = ::new function(std::forward<Given>(given));
              detail::begin_mortal(*made, target);
              return made;
            });
      }
    }
    return registration();
  }

  template <bool is_extended, typename F>
  static auto extend(F function) {
    if constexpr (is_extended) {
      return detail::extended<F>{std::move(function)};
    } else {
      return function;
    }
  }

  template <bool may_queue, bool is_extended = false, typename Object, typename Given>
  registration add_member(Object &&object, Given &&given, const options *how) {
    using function = std::decay_t<Given>;
    constexpr bool is_method = std::is_member_function_pointer_v<function>;
    constexpr bool is_comparable = base::template is_plain<function, is_extended>;
    if (detail::is_null(given)) {
      detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
      return registration();
    }
    if constexpr (detail::has_weak<std::decay_t<Object>>::value) {
      auto weak = to_weak(object);
      const void *const address = detail::address_of(weak);
      if constexpr (is_method) {
        if (address == nullptr && !detail::is_dead(weak)) {
          // A std::shared_ptr can own an object and still contain a null pointer.
          detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
          return registration();
        }
        using bound = detail::weak_bound<decltype(weak), function>;
        return add_keyed<may_queue>(
            address, extend<is_extended>(bound{std::move(weak), given}), how);
      } else {
        using tracked = detail::tracked<function, decltype(weak)>;
        return add_keyed<may_queue, is_comparable>(
            address, extend<is_extended>(tracked{std::forward<Given>(given), {std::move(weak)}}),
            how);
      }
    } else {
      detail::check_object<Object>();
      auto *const pointer = detail::pointer_to(object);
      options changed;
      if (!detail::prepare_object(pointer, how, changed)) return registration();
      if constexpr (is_method) {
        using bound = detail::bound<std::decay_t<decltype(pointer)>, function>;
        return add_keyed<may_queue>(detail::untyped(pointer),
                                    extend<is_extended>(bound{pointer, given}), how);
      } else {
        return add_keyed<may_queue, is_comparable>(
            detail::untyped(pointer),
            extend<is_extended>(function(std::forward<Given>(given))), how);
      }
    }
  }

  template <bool may_queue, auto method, typename Object>
  registration add_method(Object &&object, const options *how) {
    if constexpr (detail::has_weak<std::decay_t<Object>>::value) {
      return add_member<may_queue>(std::forward<Object>(object), method, how);
    } else {
      detail::check_object<Object>();
      auto *const pointer = detail::pointer_to(object);
      using type = std::remove_reference_t<decltype(*pointer)>;
      return add_bound<may_queue, detail::of_object<method, type>>(pointer, how);
    }
  }
  template <bool may_queue, typename Access, typename T>
  registration add_bound(T *object, const options *how) {
    static_assert(detail::is_delegate<R, typename Access::function, Args...>::value,
                  "the method cannot be called with this object and the arguments of the signal, "
                  "or returns something else than the signal");
    if constexpr (std::is_convertible_v<T *, const observer *>) {
      if (how == nullptr && object != nullptr) {
        const multicast target = this->target_.make();
        if (target.id == 0) return registration();  // failed, with -fno-exceptions
        const observer &kept_by = *object;
        if (kept_by.kept_.begin())
          return base::template insert_kept<Access>(target, Access::pack(object), kept_by.kept_);
      }
    }
    options changed;
    if (!detail::prepare_object(object, how, changed)) return registration();
    return this->template insert<Access, may_queue>(
        how, [&](multicast) { return Access::pack(object); });
  }

  template <bool may_queue, bool is_comparable = false, typename F>
  registration add_keyed(const void *object, F function, const options *how) {
    static_assert(detail::is_delegate<R, F, Args...>::value,
                  "the delegate cannot be called with the arguments of the signal, or returns "
                  "something else, or is not a method of the object");
    if constexpr (detail::is_delegate<R, F, Args...>::value) {
      using access = detail::in_keyed<F, is_comparable>;
      return this->template insert<access, may_queue>(how, [&](multicast target) -> void * {
        auto *const made = new detail::keyed_callable<F, is_comparable>(
            detail::key{object, target.id, base::template call<access, base::ordinary>},
            std::move(function));
        detail::owned<detail::keyed> owner(made);
        detail::begin_mortal(made->function, target);
        return detail::keyed_contexts::add(std::move(owner));
      });
    }
    return registration();
  }
};

}  // namespace mcast::detail

#endif
