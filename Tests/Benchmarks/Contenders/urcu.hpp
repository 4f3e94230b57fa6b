/// An array of delegates that is protected by RCU. The code is what a user of liburcu would write
/// for a list that is mostly read.
#pragma once

#define _LGPL_SOURCE  // inlines the read side, as liburcu recommends for speed
#include <urcu/urcu-memb.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "work.h"

struct urcu_contender {
  static std::string name() { return "liburcu, array"; }
  static constexpr bool is_thread_safe = true;
  using token = multicast_delegate;

  urcu_contender() { register_thread(); }
  ~urcu_contender() { delete current; }
  urcu_contender(const urcu_contender &) = delete;

  token add(multicast_function function, void *context) {
    std::lock_guard<std::mutex> guard(lock);
    // Keep the capacity, as a growing vector does. A plain copy would have no spare capacity and
    // would be reallocated immediately.
    const size_t size = current->size(), room = current->capacity();
    auto *next = new list;
    next->reserve(size < room ? room : 2 * size + 1);
    next->assign(current->begin(), current->end());
    next->push_back({function, context});
    replace(next);
    return next->back();
  }
  std::vector<token> add_all(multicast_function function, std::vector<uint64_t> &contexts) {
    std::lock_guard<std::mutex> guard(lock);
    auto *next = new list(*current);
    for (auto &context : contexts) next->push_back({function, &context});
    std::vector<token> tokens(next->end() - long(contexts.size()), next->end());
    replace(next);
    return tokens;
  }
  void remove(token &t) {
    std::lock_guard<std::mutex> guard(lock);
    auto *next = new list(*current);
    next->erase(std::find_if(next->begin(), next->end(), [&](const multicast_delegate &d) {
      return d.function == t.function && d.context == t.context;
    }));
    replace(next);
  }
  void invoke(uint32_t event, const void *payload, size_t size) {
    register_thread();
    urcu_memb_read_lock();
    for (auto &each : *rcu_dereference(current)) each.function(each.context, event, payload, size);
    urcu_memb_read_unlock();
  }

 private:
  using list = std::vector<multicast_delegate>;

  static void register_thread() {
    struct registration {
      registration() { urcu_memb_register_thread(); }
      ~registration() { urcu_memb_unregister_thread(); }
    };
    static thread_local registration own;
    (void)own;
  }
  void replace(list *next) {
    list *old = current;
    rcu_assign_pointer(current, next);
    urcu_memb_synchronize_rcu();
    delete old;
  }

  std::mutex lock;
  list *current = new list;
};
