/// A loop over function pointers. Its time is a lower bound for every library.
#pragma once

#include <string>
#include <vector>

#include "work.h"

template <bool in_library, int placement> struct bare_loop_contender {
  static std::string name() {
    return std::string("bare loop in ") + (in_library ? "a library" : "the executable") + " " +
           std::to_string(placement);
  }
  static constexpr bool is_thread_safe = false;
  using token = size_t;

  token add(multicast_function function, void *context) {
    delegates.push_back({function, context});
    return delegates.size() - 1;
  }
  void invoke(uint32_t event, const void *payload, size_t size) {
    (in_library ? bare_loops_in_library : bare_loops_in_executable)[placement](
        delegates.data(), delegates.size(), event, payload, size);
  }

 private:
  std::vector<multicast_delegate> delegates;
};
