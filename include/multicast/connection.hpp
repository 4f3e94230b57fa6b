// SPDX-License-Identifier: MIT
//
// Aliases for registration types, with the names that other libraries use.
#ifndef MULTICAST_CONNECTION_HPP
#define MULTICAST_CONNECTION_HPP

#include "registration.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// A registration.
/// @since 1.1
using connection = registration;
/// A registration that is removed when this object is destroyed.
/// @since 1.1
using scoped_connection = scoped_registration;

}  // namespace mcast

#endif
