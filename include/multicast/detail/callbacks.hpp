// SPDX-License-Identifier: MIT
//
// C callbacks that forward to a C++ function: a writer and an enumerator.
#ifndef MULTICAST_DETAIL_CALLBACKS_HPP
#define MULTICAST_DETAIL_CALLBACKS_HPP

#include <cstddef>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "failures.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Returns the text that `write(writer, context)` writes.
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

/// Passes registrations to a function until it returns false or throws.
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

}  // namespace mcast::detail

#endif
