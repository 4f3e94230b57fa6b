// SPDX-License-Identifier: MIT
//
// The callables of a signal, under the name that other libraries have.
#ifndef MULTICAST_SLOT_HPP
#define MULTICAST_SLOT_HPP

#include <functional>

#include "detail/config.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// A callable for a signal; any other callable will do, and costs less.
/// @since 1.1
template <typename Signature>
using slot = std::function<Signature>;

}  // namespace mcast

#endif
