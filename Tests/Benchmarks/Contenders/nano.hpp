#pragma once

#include <nano_signal_slot.hpp>
#include <string>

#include "work.h"

/// The signal stores the receiver's address, and does not copy the receiver.
struct nano_receiver {
  void receive(uint32_t event, const void *payload, size_t size) {
    work(this, event, payload, size);
  }
};

struct nano_signal_slot_contender {
  static std::string name() { return "nano-signal-slot"; }
  static constexpr bool is_thread_safe = true;
  using token = nano_receiver *;

  token add(multicast_function, void *context) {
    auto receiver = static_cast<nano_receiver *>(context);
    signal.template connect<&nano_receiver::receive>(receiver);
    return receiver;
  }
  void remove(token &t) { signal.template disconnect<&nano_receiver::receive>(t); }
  void invoke(uint32_t event, const void *payload, size_t size) {
    signal.fire(event, payload, size);
  }

 private:
  Nano::Signal<void(uint32_t, const void *, size_t), Nano::TS_Policy<>> signal;
};
