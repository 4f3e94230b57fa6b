// SPDX-License-Identifier: MIT
//
// The type of callables, under the name that other libraries use.
#ifndef MULTICAST_SLOT_HPP
#define MULTICAST_SLOT_HPP

#include <functional>

#include "detail/config.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// A callable for a signal. Signals accept any other callable, too, which costs less.
/// @since 1.1
template <typename Signature>
using slot = std::function<Signature>;

}  // namespace mcast

#endif
