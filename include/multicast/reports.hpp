// SPDX-License-Identifier: MIT
//
// What is registered, and which thread waits for what.
#ifndef MULTICAST_REPORTS_HPP
#define MULTICAST_REPORTS_HPP

#include <string>

#include "detail/callbacks.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// What there is in the process: every signal, delegate and queue, and which thread waits for what;
/// see multicast_dump().
///
/// @return A text for people.
///
/// Threads:   as multicast_dump().
/// Errors:    std::bad_alloc.
/// Cost:      as multicast_dump(), and the string.
/// @since 1.1
inline std::string dump() {
  return detail::written([](multicast_writer writer, void *context) {
    return multicast_dump(writer, context);
  });
}

}  // namespace mcast

#endif
