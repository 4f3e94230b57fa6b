/// A contender without a library: a vector of std::function, which is copied on each change, and a
/// mutex that protects the pointer to the vector.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "slot.hpp"

struct mutex_contender {
  static std::string name() { return "mutex, std::function"; }
  static constexpr bool is_thread_safe = true;
  using token = uint64_t;

  token add(multicast_function, void *context) {
    std::lock_guard<std::mutex> guard(lock);
    own_copy().emplace_back(++last, slot{context});
    return last;
  }
  void remove(token &t) {
    std::lock_guard<std::mutex> guard(lock);
    auto &own = own_copy();
    for (auto i = own.begin(); i != own.end(); ++i)
      if (i->first == t) { own.erase(i); return; }
  }
  void invoke(uint32_t event, const void *payload, size_t size) {
    std::shared_ptr<const list> now;
    {
      std::lock_guard<std::mutex> guard(lock);
      now = current;
    }
    for (auto &each : *now) each.second(event, payload, size);
  }

 private:
  using list = std::vector<
      std::pair<token, std::function<void(uint32_t, const void *, size_t)>>>;

  list &own_copy() {
    if (current.use_count() > 1) current = std::make_shared<list>(*current);
    return *current;
  }

  std::mutex lock;
  std::shared_ptr<list> current = std::make_shared<list>();
  token last = 0;
};
