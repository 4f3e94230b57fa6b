// SPDX-License-Identifier: MIT
//
// Finds a signal's delegates that are equal to a given delegate.
#ifndef MULTICAST_SIGNAL_EQUALS_HPP
#define MULTICAST_SIGNAL_EQUALS_HPP

#include <type_traits>
#include <utility>
#include <vector>

#include "../detail/callable.hpp"
#include "../detail/callbacks.hpp"
#include "../detail/contexts.hpp"
#include "../detail/forwarding.hpp"
#include "../detail/keyed_contexts.hpp"
#include "../detail/object.hpp"
#include "../removal.hpp"
#include "additions.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Whether objects of a class can be compared with `==`.
template <typename F, typename = void>
inline constexpr bool has_equality = false;
template <typename F>
inline constexpr bool has_equality<
    F, std::enable_if_t<std::is_class_v<F> && std::is_convertible_v<
                                                  decltype(std::declval<const F &>() ==
                                                           std::declval<const F &>()),
                                                  bool>>> = true;

/// Finds equal delegates. The same callable can be represented by different C delegates, depending
/// on how it was added. All of these are passed to `act`, in an array that contains each of them
/// twice. `act` returns a removal that counts the delegates it found.
template <typename R, typename... Args>
class equals : public additions<R, Args...> {
  using base = additions<R, Args...>;

 protected:
  using base::base;

  /// Whether `F` is a function object with data, whose `==` is used to find equal delegates.
  template <typename F>
  static constexpr bool is_compared = [] {
    if constexpr (has_equality<F> && std::is_void_v<typename detail::forwarded<const F &>::type>) {
      // NOLINTNEXTLINE(misc-redundant-expression): the template arguments differ
      return !base::template is_plain<F, false> && !base::template is_plain<F, true>;
    }
    return false;
  }();

  /// Returns the registrations of the delegates that equal `wanted`.
  template <typename F>
  std::vector<multicast_token> equal_objects(const F &wanted) const {
    std::vector<multicast_token> found;
    const multicast target = base::target_.get();
    if (target.id == 0) return found;
    const auto look = [&](const multicast_registration &each) {
      if (is_equal_object(each.delegate, wanted)) found.push_back(each.token);
    };
    detail::enumeration<decltype(look)> context{&look, nullptr};
    const int64_t passed = multicast_enumerate(target, context.pass, &context);
    detail::rethrow(std::move(context.thrown));
    detail::ensure(passed);
    return found;
  }

  template <typename F, typename Act>
  removal with_equal(const F &delegate, Act &&act) const {
    using forwarded = typename detail::forwarded<const F &>::type;
    removal all(MULTICAST_ERROR_NOT_FOUND, 0);
    if constexpr (!std::is_void_v<forwarded>) {
      const signal<forwarded> &other = delegate;
      using access = detail::of_signal<forwarded>;
      const multicast invoked = other.handle();
      if (invoked.id != 0) all = with_both<access>(access::pack(invoked), act);
    } else {
      using function = std::decay_t<F>;
      constexpr bool may_be_plain = base::template is_plain<function, false>;
      constexpr bool may_be_extended = base::template is_plain<function, true>;
      static_assert(may_be_plain || may_be_extended,
                    "only functions, function objects with ==, and lambdas that are not larger "
                    "than a pointer can be compared: keep the registration that add() returns, "
                    "and remove that");
      const function copy = delegate;
      if constexpr (may_be_plain) {
        using access = detail::in_context<function>;
        all = with_both<access>(access::pack(copy), act);
      }
      if constexpr (may_be_extended) {
        using access = detail::in_context<detail::extended<function>>;
        all = all + with_both<access>(access::pack({copy}), act);
      }
    }
    return all;
  }
  template <typename Object, typename F, typename Act>
  removal with_equal(Object &object, const F &delegate, Act &&act) const {
    using function = std::decay_t<F>;
    constexpr bool is_method = std::is_member_function_pointer_v<function>;
    static_assert(is_method || base::template is_plain<function, false> ||
                      base::template is_plain<function, true>,
                  "only functions and lambdas that are not larger than a pointer can be compared: "
                  "keep the registration that add() returns, and remove that");
    if constexpr (detail::has_weak<std::decay_t<Object>>::value) {
      const auto weak = to_weak(object);
      using pointer = std::decay_t<decltype(weak)>;
      const void *const address = detail::address_of(weak);
      if constexpr (is_method) {
        using bound = detail::weak_bound<pointer, function>;
        return with_keyed<function>(address, [&] { return bound{weak, delegate}; }, act);
      } else {
        using tracked = detail::tracked<function, pointer>;
        return with_keyed<function>(address, [&] { return tracked{delegate, {weak}}; }, act);
      }
    } else {
      auto *const pointer = detail::pointer_to(object);
      const void *const address = detail::untyped(pointer);
      if constexpr (is_method) {
        using bound = detail::bound<std::decay_t<decltype(pointer)>, function>;
        return with_keyed<function>(address, [&] { return bound{pointer, delegate}; }, act);
      } else {
        return with_keyed<function>(address, [&] { return function(delegate); }, act);
      }
    }
  }
  template <typename Access, typename Act>
  removal with_both(void *context, Act &&act) const {
    const multicast_delegate plain = {base::template call<Access, base::ordinary>, context};
    const multicast_delegate other = {base::template call<Access, base::special>, context};
    const multicast_delegate both[] = {plain, plain, other, other};
    return act(both);
  }

 private:
  template <typename Access>
  static bool is_made_by(multicast_function function) {
    // NOLINTNEXTLINE(misc-redundant-expression): the template arguments differ
    return function == base::template call<Access, base::ordinary> ||
           function == base::template call<Access, base::special>;
  }
  /// Whether a delegate's context is an object that equals `wanted`. The context is an object of
  /// class `F` only if the delegate's function is the one that calls such objects.
  template <typename F>
  static bool is_equal_object(const multicast_delegate &delegate, const F &wanted) {
    using extended = detail::extended<F>;
    if constexpr (detail::is_delegate<R, F, Args...>::value) {
      using access = detail::in_heap<F>;
      if (is_made_by<access>(delegate.function)) return access::get(delegate.context) == wanted;
    }
    if constexpr (detail::is_delegate<R, extended, Args...>::value) {
      using access = detail::in_heap<extended>;
      if (is_made_by<access>(delegate.function)) {
        return access::get(delegate.context).function == wanted;
      }
    }
    return false;
  }

  /// Finds delegates that were added by add() or by add_extended().
  template <typename F, typename Make, typename Act>
  removal with_keyed(const void *object, Make &&make, Act &&act) const {
    using made = decltype(make());
    constexpr bool is_method = std::is_member_function_pointer_v<F>;
    return with_key<is_method, base::template is_plain<F, false>>(object, make(), act) +
           with_key<is_method, base::template is_plain<F, true>>(
               object, detail::extended<made>{make()}, act);
  }
  template <bool is_method, bool is_comparable, typename F, typename Act>
  removal with_key(const void *object, F function, Act &&act) const {
    constexpr bool may_be_there = detail::is_delegate<R, F, Args...>::value;
    if constexpr (may_be_there && (is_method || is_comparable)) {
      using access = detail::in_keyed<F, is_comparable>;
      const multicast_function function_of = base::template call<access, base::ordinary>;
      detail::keyed *const context =
          detail::keyed_contexts::retain(detail::keyed_callable<F, is_comparable>(
              {object, base::target_.get().id, function_of}, std::move(function)));
      if (context != nullptr) {
        const removal result = with_both<access>(context, act);
        detail::keyed_contexts::let_go(context);
        return result;
      }
    }
    return removal(MULTICAST_ERROR_NOT_FOUND, 0);
  }
};

}  // namespace mcast::detail

#endif
