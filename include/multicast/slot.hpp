// SPDX-License-Identifier: MIT
//
// A type for callables, with the name that other libraries use.
#ifndef MULTICAST_SLOT_HPP
#define MULTICAST_SLOT_HPP

#include <functional>

#include "detail/config.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// A callable for a signal. Signals also accept any other callable, at a lower cost.
/// @since 1.1
template <typename Signature>
using slot = std::function<Signature>;

}  // namespace mcast

#endif
