#pragma once

#include <eventpp/callbacklist.h>
#include <string>

#include "slot.hpp"

struct eventpp_contender {
  using list = eventpp::CallbackList<void(uint32_t, const void *, size_t)>;

  static std::string name() { return "eventpp"; }
  static constexpr bool is_thread_safe = true;
  using token = list::Handle;

  token add(multicast_function, void *context) { return callbacks.append(slot{context}); }
  void remove(token &t) { callbacks.remove(t); }
  void invoke(uint32_t event, const void *payload, size_t size) {
    callbacks(event, payload, size);
  }

 private:
  list callbacks;
};
