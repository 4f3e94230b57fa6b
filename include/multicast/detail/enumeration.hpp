// SPDX-License-Identifier: MIT
//
// A function that gets each registration of a signal.
#ifndef MULTICAST_DETAIL_ENUMERATION_HPP
#define MULTICAST_DETAIL_ENUMERATION_HPP

#include <exception>
#include <type_traits>
#include <utility>

#include "failures.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

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

}  // namespace mcast::detail

#endif
