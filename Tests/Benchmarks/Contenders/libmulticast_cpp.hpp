/// The C++ header of libmulticast, with the shared library.
#pragma once

#include <multicast.hpp>
#include <string>

#include "slot.hpp"

struct libmulticast_cpp_contender {
  /// Returns a lambda that does the same as `slot`. Two such lambdas are equal if they have the
  /// same context.
  static auto of(void *context) {
    return [context](uint32_t event, const void *payload, size_t size) {
      work(context, event, payload, size);
    };
  }

  static std::string name() { return "libmulticast, C++"; }
  static constexpr bool is_thread_safe = true;
  using token = mcast::registration;

  token add(multicast_function, void *context) { return signal.add(of(context)); }
  void remove(token &t) { t.remove(); }
  void remove_delegate(multicast_function, void *context) { signal.remove(of(context)); }
  bool pause_and_resume(token &t) {
    return t.pause() == MULTICAST_OK && t.resume() == MULTICAST_OK;
  }
  size_t count() { return signal.size(); }
  bool is_valid(token &t) { return t.is_valid(); }
  void invoke(uint32_t event, const void *payload, size_t size) { signal(event, payload, size); }

 private:
  mcast::signal<void(uint32_t, const void *, size_t)> signal;
};
