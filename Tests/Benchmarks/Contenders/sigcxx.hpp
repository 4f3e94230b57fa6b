#pragma once

#include <sigc++/sigc++.h>
#include <string>

#include "slot.hpp"

struct sigcxx_contender {
  static std::string name() { return "libsigc++"; }
  static constexpr bool is_thread_safe = false;
  using token = sigc::connection;

  token add(multicast_function, void *context) { return signal.connect(slot{context}); }
  void remove(token &t) { t.disconnect(); }
  bool pause_and_resume(token &t) { return !t.block(true) && t.block(false); }
  size_t count() { return signal.size(); }
  bool is_valid(token &t) { return t.connected(); }
  void invoke(uint32_t event, const void *payload, size_t size) {
    signal.emit(event, payload, size);
  }

 private:
  sigc::signal<void, uint32_t, const void *, size_t> signal;
};
