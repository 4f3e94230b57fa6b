#pragma once

#include <sigslot/signal.hpp>
#include <string>

#include "slot.hpp"

struct sigslot_contender {
  static std::string name() { return "sigslot"; }
  static constexpr bool is_thread_safe = true;
  using token = sigslot::connection;

  token add(multicast_function, void *context) { return signal.connect(slot{context}); }
  void remove(token &t) { t.disconnect(); }
  bool pause_and_resume(token &t) {
    t.block();
    t.unblock();
    return true;
  }
  size_t count() { return signal.slot_count(); }
  bool is_valid(token &t) { return t.connected(); }
  void invoke(uint32_t event, const void *payload, size_t size) { signal(event, payload, size); }

 private:
  sigslot::signal<uint32_t, const void *, size_t> signal;
};
