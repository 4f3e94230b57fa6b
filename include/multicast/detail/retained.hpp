// SPDX-License-Identifier: MIT
//
// Prevents an object's contexts in a signal from being freed while they are in use.
#ifndef MULTICAST_DETAIL_RETAINED_HPP
#define MULTICAST_DETAIL_RETAINED_HPP

#include <cstdint>
#include <utility>
#include <vector>

#include "callbacks.hpp"
#include "failures.hpp"
#include "keyed_contexts.hpp"
#include "table.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Prevents an object's or a method's contexts in a signal from being freed while they are in use.
/// This is a template, so that it is compiled only in programs that use it.
template <typename Context = keyed>
class retained {
 public:
  retained(const void *object, multicast target) : retained(target) {
    keyed_contexts::retain(object, target, all_);
  }
  retained(const char *type, const void *method, multicast target) : retained(target) {
    keyed_contexts::retain(type, method, target, all_);
  }
  retained(const retained &) = delete;
  retained &operator=(const retained &) = delete;
  ~retained() { all_.each(keyed_contexts::let_go); }

  template <typename F>
  void each(F &&function) const {
    all_.each(function);
  }

  /// Removes the registrations of the retained contexts. Returns the number of removed
  /// registrations, or a negative status.
  int64_t remove() const {
    int64_t removed = 0;
    for (const multicast_token token : tokens()) {
      const multicast_status status = multicast_token_remove(token);
      if (status >= 0) ++removed;
      if (status < 0 && status != MULTICAST_ERROR_INVALID_HANDLE) return status;
    }
    return removed;
  }

 private:
  std::vector<multicast_token> tokens() const {
    std::vector<multicast_token> found;
    if (all_.size() == 0) return found;
    const auto pass = [&](const multicast_registration &each) {
      const auto number = reinterpret_cast<uintptr_t>(each.delegate.context);
      if (all_.find(number) != nullptr) found.push_back(each.token);
    };
    enumeration<decltype(pass)> context{&pass, nullptr};
    const int64_t passed = multicast_enumerate(target_, context.pass, &context);
    rethrow(std::move(context.thrown));
    ensure(passed);
    return found;
  }

  explicit retained(multicast target) noexcept : target_(target) {}

  multicast target_;
  table<Context *> all_;  // keyed by address
};

}  // namespace mcast::detail

#endif
