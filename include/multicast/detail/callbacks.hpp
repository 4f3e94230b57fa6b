// SPDX-License-Identifier: MIT
//
// C functions that call a function of the user's: a writer, an enumerator, those of policies.
#ifndef MULTICAST_DETAIL_CALLBACKS_HPP
#define MULTICAST_DETAIL_CALLBACKS_HPP

#include <cstddef>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "../policies.hpp"
#include "failures.hpp"
#include "frame.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The text that `write(writer, context)` writes.
template <typename Write>
std::string written(Write &&write) {
  struct sink {
    std::string text = {};
    std::exception_ptr thrown = {};

    static bool append(void *context, const char *text, size_t size) {
      sink &self = *static_cast<sink *>(context);
      guard(failures{&self.thrown, nullptr}, [&] { self.text.append(text, size); });
      return !self.thrown;
    }
  } result;
  const multicast_status status = write(sink::append, &result);
  rethrow(result.thrown);
  ensure(status);
  return std::move(result.text);
}

/// Passes registrations until the function returns false or throws.
template <typename F>
struct enumeration {
  F *function;
  std::exception_ptr thrown;

  static bool pass(void *context, const multicast_registration *each) {
    enumeration &self = *static_cast<enumeration *>(context);
    bool goes_on = true;
    detail::guard(failures{&self.thrown, nullptr}, [&] {
      if constexpr (std::is_same_v<decltype((*self.function)(*each)), bool>) {
        goes_on = (*self.function)(*each);
      } else {
        static_cast<void>((*self.function)(*each));
      }
    });
    return goes_on && !self.thrown;
  }
};

/// Creates the multicast of a signal with policies. Without exceptions zero, if the signal cannot
/// have them.
template <typename R, bool is_queueable, typename... Args>
multicast create_with_policies(const policies &how) {
  const bool is_recursive = how.reentry == reentry::recurse;
  const bool is_kept = how.replay != 0 || !(is_recursive || how.reentry == reentry::refuse);
  if ((is_kept && !is_queueable) || !(is_recursive || std::is_void_v<R>)) {
    detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
    return {0};
  }
  if constexpr (is_queueable) copier<Args...>::set();
  multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  options.reentry = static_cast<multicast_reentry>(how.reentry);
  options.label = how.label;
  options.replay = how.replay;
  if (how.listeners_changed) {
    options.context = ::new listeners_changed_function(how.listeners_changed);
    options.listeners_changed = [](void *told, multicast, bool has_listeners) {
      detail::guard({}, [&] { (*static_cast<listeners_changed_function *>(told))(has_listeners); });
    };
    options.release = [](void *told) { ::delete static_cast<listeners_changed_function *>(told); };
  }
  const multicast made = multicast_create_with(&options);
  if (made.id == 0) {
    ::delete static_cast<listeners_changed_function *>(options.context);
    detail::fail(multicast_create_error());
  }
  return made;
}

}  // namespace mcast::detail

#endif
