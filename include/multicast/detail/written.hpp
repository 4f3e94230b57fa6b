// SPDX-License-Identifier: MIT
//
// Reports as strings.
#ifndef MULTICAST_DETAIL_WRITTEN_HPP
#define MULTICAST_DETAIL_WRITTEN_HPP

#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include "failures.hpp"
#include "statuses.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// What `write(writer, context)` writes.
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
  check(status);
  return std::move(result.text);
}

}  // namespace mcast::detail

#endif
