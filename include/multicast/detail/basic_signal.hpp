// SPDX-License-Identifier: MIT
//
// What signals with and without results have in common.
#ifndef MULTICAST_DETAIL_BASIC_SIGNAL_HPP
#define MULTICAST_DETAIL_BASIC_SIGNAL_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "../options.hpp"
#include "../policies.hpp"
#include "../registration.hpp"
#include "../tracked.hpp"
#include "callbacks.hpp"
#include "contexts.hpp"
#include "failures.hpp"
#include "frame.hpp"
#include "handles.hpp"
#include "keyed_contexts.hpp"
#include "object.hpp"
#include "process.hpp"

namespace MULTICAST_HPP_NAMESPACE {

class scoped_pause;
class watch;
template <typename Signature>
class signal;
template <typename Signature>
class connectable;

}  // namespace mcast

namespace MULTICAST_HPP_NAMESPACE::detail {

/// What options in braces mean. Depends on a type so that it is only asked where they are used:
/// until then types of arguments may be incomplete.
template <typename Signal, typename>
struct options_of {
  using type = std::conditional_t<Signal::is_queueable, options, basic_options<no_queue>>;
};

/// What signals with and without results have in common.
template <typename R, typename... Args>
class basic_signal {
  template <typename T>
  using default_options = typename options_of<basic_signal, T>::type;

 public:
  /// Whether delegates can be added with a queue: if there is no result, and if all arguments are
  /// copyable values or references to const. Queued calls share copies, of the types in the
  /// signature, which are made when the first call of an invocation is queued, and destroyed when
  /// the last of them has returned or is given up, on that thread. A std::string_view or a
  /// `const char *` is kept as a string. Of another pointer only the pointer is copied.
  /// @since 1.0
  static constexpr bool is_queueable = std::is_void_v<R> && (detail::is_queueable<Args>() && ...);

  /// Creates a signal without delegates. Its multicast is made by the first add.
  ///
  /// Cost:      8 bytes, no call.
  /// @since 1.0
  constexpr basic_signal() noexcept = default;

  /// Creates a signal with policies.
  ///
  /// @param how  The policies.
  ///
  /// Errors:    MULTICAST_ERROR_INVALID_ARGUMENT: a reentry or a replay that this signal cannot
  ///            have; see policies. Without exceptions the signal has no policies then.
  /// Cost:      as multicast_create_with(). An invocation takes a few nanoseconds more; with replay
  ///            also a lock, a copy of the arguments and some allocations.
  /// @since 1.1
  explicit basic_signal(const policies &how)
      : target_(detail::create_with_policies<R, is_queueable, Args...>(how)) {}
  explicit basic_signal(const detail::replaying_policies &how)
      : basic_signal(static_cast<const policies &>(how)) {
    static_assert(is_queueable,
                  "this signal cannot replay: give it arguments that are copyable values or "
                  "references to const, and the result void");
  }

  /// For the functions of multicast.h; do not invoke it, nor add to it.
  ///
  /// @return Zero before the first add and after a move.
  ///
  /// Cost:      O(1), no call.
  /// @since 1.0
  multicast handle() const noexcept { return target_.get(); }

  /// Adds a lambda, function object or function, last among those of its priority.
  ///
  /// @param delegate  Copied or moved from. Called as an lvalue. If it is trivially copyable, not
  ///                  larger than a pointer and can be called as const, each call has a copy of
  ///                  its own. In a signal without results its result is ignored.
  /// @param how       How: options, on(), under(), priority(), once, latest, unique, at_front,
  ///                  joined by `|`. on() a signal that cannot be queued does not compile; a queue
  ///                  in other options is MULTICAST_ERROR_INVALID_ARGUMENT there.
  /// @return The registration, with which the delegate can be removed.
  ///
  /// Ownership: the copy is destroyed once: after the last call has returned, on the thread that
  ///            removes or that made this call; or, if the add fails, before it throws.
  /// Threads:   called on several threads at once if several invoke. If the signal replays, on this
  ///            one, too, before this returns.
  /// Errors:    a null function is MULTICAST_ERROR_INVALID_ARGUMENT.
  /// Cost:      as multicast_add(). A delegate as large as a pointer needs no allocation, a larger
  ///            one needs one, and options.
  /// @since 1.0
  template <typename F>
  registration add(F &&delegate) {
    return add_callable<false>(std::forward<F>(delegate), nullptr);
  }
  template <typename F, typename How = default_options<F>,
            std::enable_if_t<detail::is_options<How>::value, int> = 0>
  registration add(F &&delegate, const How &how) {
    const options given = checked(how);
    return add_callable<is_queueable>(std::forward<F>(delegate), &given);
  }

  /// Adds a callable that gets its registration first, and then the arguments of the signal.
  ///
  /// @param delegate  As in add().
  /// @param how       As in add().
  /// @return The registration.
  ///
  /// Cost:      as add() of a delegate that is larger than a pointer.
  /// @since 1.1
  template <typename F>
  registration add_extended(F &&delegate) {
    return add(detail::extended<std::decay_t<F>>{std::forward<F>(delegate)});
  }
  template <typename F, typename How = default_options<F>>
  registration add_extended(F &&delegate, const How &how) {
    return add(detail::extended<std::decay_t<F>>{std::forward<F>(delegate)}, how);
  }

  /// Adds a method of an object, or a callable that belongs to an object.
  ///
  /// @param object    An object, a pointer to it or std::ref(): borrowed; it must stay valid until
  ///                  the removal has completed. If its class is derived from mcast::observer, the
  ///                  delegate is removed when the object is destroyed. A std::shared_ptr or
  ///                  std::weak_ptr, or a pointer that has a to_weak(): held weakly. Each call
  ///                  keeps the object alive while it runs. When the object is dead, the delegate
  ///                  is removed: by the next invocation, size() or registration::is_live().
  /// @param delegate  A method of its class or a base class; if it is overloaded, use static_cast
  ///                  to select one. Or any callable.
  /// @param how       As in add().
  /// @return The registration.
  ///
  /// Errors:    a null pointer or method is MULTICAST_ERROR_INVALID_ARGUMENT, a lifetime for an
  ///            observer, too.
  /// Cost:      as add(), and a short lock. add<&T::method>(object) costs less.
  /// @since 1.0
  template <typename Object, typename F,
            std::enable_if_t<!detail::is_options<std::decay_t<F>>::value, int> = 0>
  registration add(Object &&object, F &&delegate) {
    return add_member<false>(std::forward<Object>(object), std::forward<F>(delegate), nullptr);
  }
  template <typename Object, typename F,
            typename How = default_options<Object>,
            std::enable_if_t<!detail::is_options<std::decay_t<F>>::value, int> = 0>
  registration add(Object &&object, F &&delegate, const How &how) {
    const options given = checked(how);
    return add_member<is_queueable>(std::forward<Object>(object), std::forward<F>(delegate),
                                    &given);
  }

  /// Adds a method that is known at compile time: `add<&T::method>(object)`.
  ///
  /// @param object  An object or a pointer to it: borrowed; or as add(object, delegate) takes it.
  /// @param how     As in add().
  /// @return The registration.
  ///
  /// Errors:    a null pointer is MULTICAST_ERROR_INVALID_ARGUMENT, a lifetime for an observer,
  ///            too.
  /// Cost:      as multicast_add(), no allocation. With a shared pointer as add(object, delegate).
  /// @since 1.1
  template <auto method, typename Object>
  registration add(Object &&object) {
    return add_method<false, method>(std::forward<Object>(object), nullptr);
  }
  template <auto method, typename Object,
            typename How = default_options<Object>>
  registration add(Object &&object, const How &how) {
    const options given = checked(how);
    return add_method<is_queueable, method>(std::forward<Object>(object), &given);
  }

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
    static_assert(is_in_context<function>,
                  "only functions and lambdas that are not larger than a pointer can be compared: "
                  "keep the registration that add() returns, and remove that");
    const function copy = delegate;
    return remove_both<detail::in_context<function>>(detail::in_context<function>::pack(copy));
  }
  /// Removes every registration of a method of an object, added as add(object, method).
  ///
  /// @param object  The object or pointer, of the same type as it was added with.
  /// @param method  The method.
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
  /// Cost:      as multicast_remove_context(), for each method and each callable of the object.
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
    int64_t removed = multicast_remove_context(target, detail::untyped(address));
    for (detail::keyed *const context : detail::all_keyed().retain(address)) {
      const int64_t more = multicast_remove_context(target, context);
      detail::all_keyed().release(context);
      removed = removed < 0 ? removed : more < 0 ? more : removed + more;
    }
    return detail::count(removed);
  }

  /// How many delegates there are, paused ones included. Removes those whose objects are dead.
  ///
  /// @return The number.
  ///
  /// Cost:      as multicast_count(). While any signal has delegates that track objects: as
  ///            multicast_prune().
  /// @since 1.0
  size_t size() const {
    const multicast target = target_.get();
    if (target.id == 0) return 0;
    detail::prune(target);
    return detail::count(multicast_count(target));
  }
  /// Whether there is no delegate.
  ///
  /// @return size() == 0.
  ///
  /// Cost:      as size().
  /// @since 1.1
  bool empty() const { return size() == 0; }
  /// Passes what there is to know about each registration, in the order of invocation; see
  /// multicast_enumerate().
  ///
  /// @param function  Gets a const multicast_registration &. If it returns bool, false stops.
  /// @return How many were passed.
  ///
  /// Errors:    what the function throws, which stops.
  /// Reentry:   the function may call anything, and destroy this object.
  /// Cost:      as multicast_enumerate().
  /// @since 1.1
  template <typename F>
  size_t enumerate(F &&function) const {
    const multicast target = target_.get();
    if (target.id == 0) return 0;
    detail::enumeration<std::remove_reference_t<F>> context{std::addressof(function), nullptr};
    const int64_t passed = multicast_enumerate(target, context.pass, &context);
    detail::rethrow(std::move(context.thrown));
    return detail::count(passed);
  }
  /// What there is to know about this signal and its delegates; see multicast_describe().
  ///
  /// @return A text for people; empty before the first add.
  ///
  /// Threads:   as multicast_describe().
  /// Errors:    std::bad_alloc.
  /// Cost:      as multicast_describe(), and the string.
  /// @since 1.1
  std::string describe() const {
    const multicast target = target_.get();
    if (target.id == 0) return {};
    return detail::written([&](multicast_writer writer, void *context) {
      return multicast_describe(target, writer, context);
    });
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
  /// A view of this signal that can only be connected to.
  ///
  /// @return The view. It must not be used after this object.
  ///
  /// Cost:      O(1), no call.
  /// @since 1.1
  mcast::connectable<R(Args...)> connectable() noexcept {
    return mcast::connectable<R(Args...)>(static_cast<signal<R(Args...)> &>(*this));
  }
  /// Whether the whole signal is paused.
  ///
  /// @return Whether there is a scoped_pause of this signal.
  ///
  /// Cost:      O(1); while there is one of any signal: a lock.
  /// @since 1.1
  bool is_paused() const noexcept { return detail::is_paused(target_.get()); }

 protected:
  using frame = detail::frame<Args...>;
  friend class mcast::scoped_pause;
  friend class mcast::watch;

  /// The multicast to invoke; none if there is nothing to call.
  multicast invoked() const noexcept {
    const multicast target = target_.get();
    return detail::is_paused(target) ? multicast{0} : target;
  }

 private:
  template <typename F>
  static constexpr bool is_const_callable =
      std::is_invocable_r_v<R, const F &, detail::passed<Args>...>;
  template <typename F>
  static constexpr bool is_in_context =
      std::is_trivially_copyable_v<F> && sizeof(F) <= sizeof(void *) && !detail::is_extended<F> &&
      !detail::is_mortal<F> && is_const_callable<F>;

  /// The function of an ordinary delegate, and that of a special one: one that is called by a
  /// queue, or, in a signal with results, called once.
  enum kind : bool { ordinary, special };

  /// What the library calls.
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
      // Of several calls at once, the one that removes it is made. An equal one may go instead.
      const multicast_delegate self = {call<Access, is>, context};
      const multicast target = static_cast<detail::question<R> *>(arguments.results)->target;
      if (multicast_remove_many_within(target, &self, 1, 0, nullptr) != 1) return;
    }
    detail::guard(where, [&] {
      Access::use(context, [&](auto &function) { detail::perform<R>(function, arguments); });
    });
  }

  template <typename Queue>
  static options checked(const basic_options<Queue> &how) {
    options result;
    result.once = how.once;
    result.latest = how.latest;
    result.unique = how.unique;
    result.at_front = how.at_front;
    result.priority = how.priority;
    result.lifetime = how.lifetime;
    result.queue = static_cast<multicast_queue>(how.queue);
    result.label = how.label;
    result.no_replay = how.no_replay;
    result.group = how.group;
    return result;
  }
  static options checked(const detail::queued_options &how) {
    static_assert(is_queueable,
                  "this signal cannot be queued: give it arguments that are copyable values or "
                  "references to const, and the result void");
    return how;
  }

  /// `make()` makes the context, which the library owns from then on.
  template <typename Access, bool may_queue, typename Make>
  registration insert(const options *how, Make &&make) {
    const multicast target = target_.make();
    if (target.id == 0) return registration();  // without exceptions
    multicast_token token = {0};
    constexpr bool needs_options = Access::is_owned;
    if (!needs_options && how == nullptr) {
      detail::check(multicast_add(target, {call<Access, ordinary>, make()}, nullptr, &token));
      return registration(token);
    }
    multicast_function function = call<Access, ordinary>, other = call<Access, special>;
    multicast_add_options given = MULTICAST_ADD_OPTIONS_INIT;
    if (how != nullptr) {
      given = *how;
      if (how->at_front) given.priority = next_in_front();
      if constexpr (!std::is_void_v<R>) {
        // MULTICAST_ONCE would use the delegate up when a result_range looks at it.
        if (how->once) {
          given.flags &= ~MULTICAST_ONCE;
          std::swap(function, other);
        }
      }
      if (how->queue.id != 0) {
        if constexpr (may_queue) {
          std::swap(function, other);
          detail::copier<Args...>::set();
        } else {
          detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
          return registration();
        }
      }
    }
    if constexpr (Access::is_owned) {
      given.release = Access::release;
      if constexpr (detail::life<Access>::is_mortal) {
        given.lock = detail::life<Access>::lock;
        given.unlock = [](void *) noexcept {};
      }
    }
    void *const context = make();
    if (how != nullptr && how->unique) {
      static_cast<void>(multicast_remove_within(target, {other, context}, 0));
    }
    detail::check(multicast_add(target, {function, context}, &given, &token));
    if (how != nullptr && how->group != nullptr && token.id != 0) how->group->add(token);
    return registration(token);
  }
  static int32_t next_in_front() noexcept {
    const int32_t last = detail::front.load();
    return last == INT32_MAX ? last : detail::front.fetch_add(1);
  }

  template <bool may_queue, typename Given>
  registration add_callable(Given &&given, const options *how) {
    using function = std::decay_t<Given>;
    static_assert(detail::is_delegate<R, function, detail::passed<Args>...>::value,
                  "the delegate cannot be called with the arguments of the signal, or returns "
                  "something else than the signal");
    if constexpr (detail::is_delegate<R, function, detail::passed<Args>...>::value) {
      if (detail::is_null(given)) {
        detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
        return registration();
      }
      if constexpr (is_in_context<function>) {
        using access = detail::in_context<function>;
        const function copy = std::forward<Given>(given);
        return insert<access, may_queue>(how, [&] { return access::pack(copy); });
      } else {
        return insert<detail::in_heap<function>, may_queue>(
            how, [&]() -> void * { return ::new function(std::forward<Given>(given)); });
      }
    }
    return registration();
  }

  template <bool may_queue, typename Object, typename Given>
  registration add_member(Object &&object, Given &&given, const options *how) {
    using function = std::decay_t<Given>;
    constexpr bool is_method = std::is_member_function_pointer_v<function>;
    if (detail::is_null(given)) {
      detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
      return registration();
    }
    if constexpr (detail::has_weak<std::decay_t<Object>>::value) {
      auto weak = to_weak(object);
      const void *const address = detail::address_of(weak);
      if constexpr (is_method) {
        return add_keyed<may_queue>(
            address, detail::weak_bound<decltype(weak), function>{std::move(weak), given}, how);
      } else {
        return add_keyed<may_queue>(address,
                                    detail::tracked<function, decltype(weak)>{
                                        std::forward<Given>(given), {std::move(weak)}},
                                    how);
      }
    } else {
      detail::check_object<Object>();
      auto *const pointer = detail::pointer_to(object);
      options changed;
      if (!detail::prepare_object(pointer, how, changed)) return registration();
      if constexpr (is_method) {
        return add_keyed<may_queue>(
            detail::untyped(pointer),
            detail::bound<std::decay_t<decltype(pointer)>, function>{pointer, given}, how);
      } else {
        return add_keyed<may_queue>(detail::untyped(pointer), function(std::forward<Given>(given)),
                                    how);
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
    static_assert(detail::is_delegate<R, typename Access::function, detail::passed<Args>...>::value,
                  "the method cannot be called with this object and the arguments of the signal, "
                  "or returns something else than the signal");
    options changed;
    if (!detail::prepare_object(object, how, changed)) return registration();
    return insert<Access, may_queue>(how, [&] { return Access::pack(object); });
  }

  template <bool may_queue, typename F>
  registration add_keyed(const void *object, F function, const options *how) {
    static_assert(detail::is_delegate<R, F, detail::passed<Args>...>::value,
                  "the delegate cannot be called with the arguments of the signal, or returns "
                  "something else, or is not a method of the object");
    if constexpr (detail::is_delegate<R, F, detail::passed<Args>...>::value) {
      using access = detail::in_keyed<F>;
      return insert<access, may_queue>(how, [&]() -> void * {
        return detail::all_keyed().add(std::make_unique<detail::keyed_callable<F>>(
            object, call<access, ordinary>, std::move(function)));
      });
    }
    return registration();
  }

  template <typename F>
  multicast_status remove_keyed(const void *object, F function) {
    using access = detail::in_keyed<F>;
    detail::keyed *const context = detail::all_keyed().retain(
        detail::keyed_callable<F>(object, call<access, ordinary>, std::move(function)));
    if (context == nullptr) return MULTICAST_ERROR_NOT_FOUND;
    const multicast_status status = remove_both<access>(context);
    detail::all_keyed().release(context);
    return status;
  }
  template <typename Access>
  multicast_status remove_both(void *context) {
    const multicast target = target_.get();
    if (target.id == 0) return MULTICAST_ERROR_NOT_FOUND;
    return detail::joined(multicast_remove_every(target, {call<Access, ordinary>, context}),
                          multicast_remove_every(target, {call<Access, special>, context}));
  }

  mutable detail::lazy_multicast target_;
};

}  // namespace mcast::detail

#endif
