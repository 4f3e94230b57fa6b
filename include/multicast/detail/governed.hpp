// SPDX-License-Identifier: MIT
//
// A multicast with policies.
#ifndef MULTICAST_DETAIL_GOVERNED_HPP
#define MULTICAST_DETAIL_GOVERNED_HPP

#include <functional>
#include <type_traits>

#include "../policies.hpp"
#include "copied.hpp"
#include "failures.hpp"
#include "statuses.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Creates the multicast of a signal with policies. Without exceptions zero, if the signal cannot
/// have them.
template <typename R, bool is_queueable, typename... Args>
multicast governed(const policies &how) {
  const bool is_recursive = how.reentry == reentry::recurse;
  const bool is_kept = how.replay != 0 || !(is_recursive || how.reentry == reentry::refuse);
  if ((is_kept && !is_queueable) || !(is_recursive || std::is_void_v<R>)) {
    detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
    return {0};
  }
  if constexpr (is_queueable) copier<Args...>::set();
  using function = std::function<void(bool)>;
  multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  options.reentry = static_cast<multicast_reentry>(how.reentry);
  options.label = how.label;
  options.replay = how.replay;
  if (how.interest) {
    options.context = ::new function(how.interest);
    options.interest = [](void *told, multicast, bool wanted) {
      detail::guard({}, [&] { (*static_cast<function *>(told))(wanted); });
    };
    options.release = [](void *told) { ::delete static_cast<function *>(told); };
  }
  const multicast made = multicast_create_with(&options);
  if (made.id == 0) {
    ::delete static_cast<function *>(options.context);
    detail::fail(multicast_create_error());
  }
  return made;
}

}  // namespace mcast::detail

#endif
