/// A broadcaster without a library: one mutex, and a std::unordered_map from each name to a vector
/// of std::function, which is copied on each change.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "slot.hpp"

struct map_broadcaster_contender {
  static std::string name() { return "mutex, std::unordered_map"; }
  using list = std::vector<std::function<void(uint32_t, const void *, size_t)>>;
  using found = std::shared_ptr<list> *;

  void add(const std::string &name, void *context) {
    std::lock_guard<std::mutex> guard(lock);
    auto &current = lists[name];
    if (!current) current = std::make_shared<list>();
    else if (current.use_count() > 1) current = std::make_shared<list>(*current);
    current->emplace_back(slot{context});
  }
  /// Returns an address that stays valid, because the elements of a std::unordered_map do not
  /// move.
  found look_up(const std::string &name) {
    std::lock_guard<std::mutex> guard(lock);
    auto here = lists.find(name);
    return here == lists.end() ? nullptr : &here->second;
  }
  void notify(const std::string &name, uint32_t event, const void *payload, size_t size) {
    std::shared_ptr<const list> now;
    {
      std::lock_guard<std::mutex> guard(lock);
      auto here = lists.find(name);
      if (here == lists.end()) return;
      now = here->second;
    }
    for (auto &each : *now) each(event, payload, size);
  }

 private:
  std::mutex lock;
  std::unordered_map<std::string, std::shared_ptr<list>> lists;
};
