// SPDX-License-Identifier: MIT
//
// The functions of a signal that report its delegates.
#ifndef MULTICAST_SIGNAL_CONTENTS_HPP
#define MULTICAST_SIGNAL_CONTENTS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "../detail/callbacks.hpp"
#include "../detail/invoke.hpp"
#include "../detail/mortals.hpp"
#include "../error.hpp"
#include "../listener_flag.hpp"
#include "removals.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The functions of a signal that report its contents.
template <typename R, typename... Args>
class contents : public removals<R, Args...> {
  using base = removals<R, Args...>;

 public:
  /// Returns the number of delegates, including paused ones. First removes delegates whose tracked
  /// objects have died.
  ///
  /// @return The number.
  ///
  /// Cost:      like multicast_count(). While this signal, or another signal with the same hash
  ///            (one in 256), has delegates that track objects, the cost is like that of
  ///            multicast_prune().
  /// @since 1.0
  size_t size() const {
    const multicast target = target_.get();
    if (target.id == 0) return 0;
    detail::prune(target);
    return detail::count(multicast_count(target));
  }
  /// Whether there are no delegates.
  ///
  /// @return size() == 0.
  ///
  /// Cost:      like size().
  /// @since 1.1
  bool empty() const { return size() == 0; }
  /// Returns a flag that is set while the signal has listeners. A program can check it before it
  /// prepares expensive arguments.
  ///
  /// @return The flag. Store it next to the signal and test it as a bool.
  ///
  /// Errors:    those of the first add. With -fno-exceptions, the flag is never set after an error.
  /// Cost:      like multicast_listener_flag(). The first call also creates the multicast, as the
  ///            first add does.
  /// @since 1.1
  MULTICAST_HPP_NAMESPACE::listener_flag listener_flag() const {
    return MULTICAST_HPP_NAMESPACE::listener_flag(target_.make());
  }
  /// Whether a delegate is registered.
  ///
  /// @param delegate  A function, a small lambda, an object with `==`, or another signal, as in
  ///                  remove().
  /// @return true if it is registered, even if it is paused.
  ///
  /// Cost:      O(delegates).
  /// @since 1.1
  template <typename F>
  bool contains(const F &delegate) const {
    if constexpr (base::template is_compared<F>) {
      return !base::equal_objects(delegate).empty();
    } else {
      return base::with_equal(delegate, [this](auto &equal) { return this->found(equal); })
                 .count() != 0;
    }
  }
  /// Whether a method or callable is registered for an object.
  ///
  /// @param object    The object or pointer, with the same type as in add().
  /// @param delegate  The method or callable; see remove().
  /// @return true if it is registered, even if it is paused.
  ///
  /// Cost:      O(delegates); briefly takes a lock.
  /// @since 1.1
  template <typename Object, typename F>
  bool contains(Object &&object, const F &delegate) const {
    return base::with_equal(object, delegate, [this](auto &equal) { return this->found(equal); })
               .count() != 0;
  }
  /// Passes the properties of each registration to a function, in the order of invocation; see
  /// multicast_enumerate().
  ///
  /// @param function  Receives a const multicast_registration &. If it returns bool, false stops
  ///                  the enumeration.
  /// @return The number of registrations passed.
  ///
  /// Errors:    exceptions that the function throws, which end the enumeration.
  /// Reentry:   the function may call anything, and may destroy this object.
  /// Cost:      like multicast_enumerate().
  /// @since 1.1
  template <typename F>
  size_t enumerate(F &&function) const {
    const multicast target = target_.get();
    if (target.id == 0) return 0;
    detail::enumeration<std::remove_reference_t<F>> context{detail::address(function), nullptr};
    const int64_t passed = multicast_enumerate(target, context.pass, &context);
    detail::rethrow(std::move(context.thrown));
    return detail::count(passed);
  }
  /// Describes this signal and its delegates; see multicast_describe().
  ///
  /// @return A human-readable text; empty before the first add.
  ///
  /// Threads:   like multicast_describe().
  /// Errors:    std::bad_alloc.
  /// Cost:      like multicast_describe(), plus the cost of building the string.
  /// @since 1.1
  std::string describe() const {
    const multicast target = target_.get();
    if (target.id == 0) return {};
    return detail::written([&](multicast_writer writer, void *context) {
      return multicast_describe(target, writer, context);
    });
  }

 protected:
  using base::base;
  using base::target_;

 private:
  template <size_t count>
  removal found(const multicast_delegate (&equal)[count]) const {
    const multicast target = target_.get();
    for (const multicast_delegate &each : equal) {
      if (multicast_contains(target, each)) return removal(MULTICAST_OK, 1);
    }
    return removal(MULTICAST_ERROR_NOT_FOUND, 0);
  }
};

}  // namespace mcast::detail

#endif
