// SPDX-License-Identifier: MIT
//
// Reports on the registrations of the process, and on which threads are waiting for which calls.
#ifndef MULTICAST_REPORTS_HPP
#define MULTICAST_REPORTS_HPP

#include <string>

#include "detail/callbacks.hpp"
#include "error.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// Describes the state of the process: all signals, delegates and queues, and which threads are
/// waiting for which calls; see multicast_dump().
///
/// @return A human-readable text.
///
/// Threads:   like multicast_dump().
/// Errors:    std::bad_alloc.
/// Cost:      like multicast_dump(), plus the cost of building the string.
/// @since 1.1
inline std::string dump() {
  return detail::written([](multicast_writer writer, void *context) {
    return multicast_dump(writer, context);
  });
}

}  // namespace mcast

#endif
