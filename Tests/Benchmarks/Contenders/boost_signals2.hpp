#pragma once

#include <boost/signals2.hpp>
#include <string>

#include "slot.hpp"

struct boost_signals2_contender {
  static std::string name() { return "Boost.Signals2"; }
  static constexpr bool is_thread_safe = true;
  using token = boost::signals2::connection;

  token add(multicast_function, void *context) { return signal.connect(slot{context}); }
  void remove(token &t) { t.disconnect(); }
  void remove_delegate(multicast_function, void *context) { signal.disconnect(slot{context}); }
  bool is_wanted() { return !signal.empty(); }
  bool pause_and_resume(token &t) { return boost::signals2::shared_connection_block(t).blocking(); }
  size_t count() { return signal.num_slots(); }
  bool is_valid(token &t) { return t.connected(); }
  void invoke(uint32_t event, const void *payload, size_t size) { signal(event, payload, size); }

 private:
  boost::signals2::signal<void(uint32_t, const void *, size_t)> signal;
};
