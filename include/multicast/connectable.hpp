// SPDX-License-Identifier: MIT
//
// A view of a signal.
#ifndef MULTICAST_CONNECTABLE_HPP
#define MULTICAST_CONNECTABLE_HPP

#include <cstddef>
#include <utility>

#include "signal.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// A view of a signal that can only be connected to: for the interface of a class whose signals
/// others must not invoke. It must not be used after the signal.
///
/// @since 1.1
template <typename Signature>
class connectable {
 public:
  explicit connectable(signal<Signature> &target) noexcept : target_(&target) {}
  /// As signal::add(). Options are given as on(), priority() and so on.
  template <typename... Given>
  registration add(Given &&...given) const {
    return target_->add(std::forward<Given>(given)...);
  }
  template <auto method, typename... Given>
  registration add(Given &&...given) const {
    return target_->template add<method>(std::forward<Given>(given)...);
  }
  template <typename... Given>
  registration add_extended(Given &&...given) const {
    return target_->add_extended(std::forward<Given>(given)...);
  }
  /// As signal::remove().
  template <typename... Given>
  multicast_status remove(Given &&...given) const {
    return target_->remove(std::forward<Given>(given)...);
  }
  template <auto method, typename Object>
  multicast_status remove(Object &&object) const {
    return target_->template remove<method>(std::forward<Object>(object));
  }
  template <typename Object>
  size_t remove_object(Object &&object) const {
    return target_->remove_object(std::forward<Object>(object));
  }

 private:
  signal<Signature> *target_;
};

}  // namespace mcast

#endif
