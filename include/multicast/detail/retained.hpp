// SPDX-License-Identifier: MIT
//
// The contexts of an object in a signal, which stay while they are looked at.
#ifndef MULTICAST_DETAIL_RETAINED_HPP
#define MULTICAST_DETAIL_RETAINED_HPP

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "callbacks.hpp"
#include "failures.hpp"
#include "keyed_contexts.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The contexts of an object in a signal, which stay while they are looked at.
class retained {
 public:
  retained(const void *object, multicast target)
      : target_(target), all_(keyed_contexts::retain(object, target)) {
    std::sort(all_.begin(), all_.end(), std::less<const void *>());
  }
  retained(const retained &) = delete;
  retained &operator=(const retained &) = delete;
  ~retained() {
    for (keyed *const each : all_) keyed_contexts::release(each);
  }

  /// Removes their registrations. Returns how many there were, or a status.
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
    if (all_.empty()) return found;
    const auto pass = [&](const multicast_registration &each) {
      const bool is_one = std::binary_search(all_.begin(), all_.end(), each.delegate.context,
                                             std::less<const void *>());
      if (is_one) found.push_back(each.token);
    };
    enumeration<decltype(pass)> context{&pass, nullptr};
    const int64_t passed = multicast_enumerate(target_, context.pass, &context);
    rethrow(std::move(context.thrown));
    check(passed);
    return found;
  }

  multicast target_;
  std::vector<keyed *> all_;
};

}  // namespace mcast::detail

#endif
