// SPDX-License-Identifier: MIT
//
// A view of a signal.
#ifndef MULTICAST_CONNECTABLE_HPP
#define MULTICAST_CONNECTABLE_HPP

#include <cstddef>
#include <utility>

#include "removal.hpp"
#include "signal.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// A view of a signal that can only add and remove delegates. A class can offer a view in its
/// public interface instead of the signal, so that other code cannot invoke the signal. The view
/// must not be used after the signal has been destroyed.
///
/// @since 1.1
template <typename Signature>
class connectable {
 public:
  /// Creates a view of a signal; see signal::connectable().
  ///
  /// @param target  The signal.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  explicit connectable(signal<Signature> &target) noexcept : target_(&target) {}
  /// Like signal::add(). Options must be passed as on(), priority() and so on, not in braces.
  ///
  /// @param given  As for signal::add().
  /// @return The result of signal::add().
  ///
  /// Cost:      like signal::add().
  /// @since 1.1
  template <typename... Given>
  registration add(Given &&...given) const {
    return target_->add(std::forward<Given>(given)...);
  }
  detail::use_static_cast_to_name_one_overloaded_function add(...) const = delete;
  /// Like signal::add<method>().
  ///
  /// @param given  As for signal::add<method>().
  /// @return The result of signal::add<method>().
  ///
  /// Cost:      like signal::add<method>().
  /// @since 1.1
  template <auto method, typename... Given>
  registration add(Given &&...given) const {
    return target_->template add<method>(std::forward<Given>(given)...);
  }
  /// Like signal::add_extended().
  ///
  /// @param given  As for signal::add_extended().
  /// @return The result of signal::add_extended().
  ///
  /// Cost:      like signal::add_extended().
  /// @since 1.1
  template <typename... Given>
  registration add_extended(Given &&...given) const {
    return target_->add_extended(std::forward<Given>(given)...);
  }
  /// Like signal::remove().
  ///
  /// @param given  As for signal::remove().
  /// @return The result of signal::remove().
  ///
  /// Cost:      like signal::remove().
  /// @since 1.1
  template <typename... Given>
  removal remove(Given &&...given) const {
    return target_->remove(std::forward<Given>(given)...);
  }
  /// Like signal::remove<method>().
  ///
  /// @param object  As for signal::remove<method>().
  /// @return The result of signal::remove<method>().
  ///
  /// Cost:      like signal::remove<method>().
  /// @since 1.1
  template <auto method, typename Object>
  removal remove(Object &&object) const {
    return target_->template remove<method>(std::forward<Object>(object));
  }
  /// Like signal::remove_object().
  ///
  /// @param object  As for signal::remove_object().
  /// @return The result of signal::remove_object().
  ///
  /// Cost:      like signal::remove_object().
  /// @since 1.1
  template <typename Object>
  size_t remove_object(Object &&object) const {
    return target_->remove_object(std::forward<Object>(object));
  }

 private:
  signal<Signature> *target_;
};

}  // namespace mcast

#endif
