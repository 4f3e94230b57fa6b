#pragma once

#include <string>

#include "libmulticast.hpp"

template <class library> struct libmulticast_broadcaster_contender {
  static std::string name() { return library::name(); }
  using found = multicast;

  ~libmulticast_broadcaster_contender() { library::broadcaster_destroy(broadcaster); }

  void add(const std::string &name, void *context) {
    library::broadcaster_register(broadcaster, name.c_str(), {work_in_executable, context},
                                  nullptr, nullptr);
  }
  found look_up(const std::string &name) {
    return library::broadcaster_multicast(broadcaster, name.c_str());
  }
  void notify(const std::string &name, uint32_t event, const void *payload, size_t size) {
    library::broadcaster_notify(broadcaster, name.c_str(), event, payload, size);
  }
  void notify(found multicast, uint32_t event, const void *payload, size_t size) {
    library::invoke(multicast, event, payload, size);
  }

 private:
  multicast_broadcaster broadcaster = library::broadcaster_create(nullptr);
};
