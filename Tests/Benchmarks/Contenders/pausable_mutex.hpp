/// Like the contender in mutex.hpp, but with delegates that can be paused and inspected. Each
/// delegate has a flag that shows whether it is paused, and a number that identifies it. Only
/// inspect.cpp uses this contender, because reading the flag makes invocations slower.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "slot.hpp"

struct pausable_mutex_contender {
  static std::string name() { return "mutex, std::function"; }
  static constexpr bool is_thread_safe = true;
  using token = uint64_t;

  token add(multicast_function, void *context) {
    std::lock_guard<std::mutex> guard(lock);
    own_copy().push_back({++last, false, slot{context}});
    return last;
  }
  void invoke(uint32_t event, const void *payload, size_t size) {
    const std::shared_ptr<const list> now = snapshot();
    for (auto &each : *now)
      if (!each.is_paused) each.function(event, payload, size);
  }
  bool pause_and_resume(token &t) { return set_paused(t, true) && set_paused(t, false); }
  size_t count() {
    std::lock_guard<std::mutex> guard(lock);
    return current->size();
  }
  bool is_valid(token &t) {
    std::lock_guard<std::mutex> guard(lock);
    return find(*current, t) != current->end();
  }
  template <class Function> void enumerate(Function function) {
    const std::shared_ptr<const list> now = snapshot();
    for (auto &each : *now) function(each.number);
  }

 private:
  struct entry {
    token number;
    bool is_paused;
    std::function<void(uint32_t, const void *, size_t)> function;
  };
  using list = std::vector<entry>;

  bool set_paused(token t, bool value) {
    std::lock_guard<std::mutex> guard(lock);
    auto &own = own_copy();
    const auto place = find(own, t);
    if (place == own.end()) return false;
    place->is_paused = value;
    return true;
  }
  static list::iterator find(list &all, token t) {
    return std::find_if(all.begin(), all.end(), [=](auto &each) { return each.number == t; });
  }
  std::shared_ptr<const list> snapshot() {
    std::lock_guard<std::mutex> guard(lock);
    return current;
  }
  list &own_copy() {
    if (current.use_count() > 1) current = std::make_shared<list>(*current);
    return *current;
  }

  std::mutex lock;
  std::shared_ptr<list> current = std::make_shared<list>();
  token last = 0;
};
