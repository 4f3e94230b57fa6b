// SPDX-License-Identifier: MIT
//
// Reports: the registrations of the process, and which thread waits for which call.
#ifndef MULTICAST_REPORTS_HPP
#define MULTICAST_REPORTS_HPP

#include <string>

#include "detail/callbacks.hpp"
#include "error.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// The state of the process: every signal, delegate and queue, and the waits of its threads;
/// see multicast_dump().
///
/// @return A text for people.
///
/// Threads:   like multicast_dump().
/// Errors:    std::bad_alloc.
/// Cost:      like multicast_dump(), and the string.
/// @since 1.1
inline std::string dump() {
  return detail::written([](multicast_writer writer, void *context) {
    return multicast_dump(writer, context);
  });
}

}  // namespace mcast

#endif
