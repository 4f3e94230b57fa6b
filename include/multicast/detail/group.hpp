// SPDX-License-Identifier: MIT
//
// The registrations of a group.
#ifndef MULTICAST_DETAIL_GROUP_HPP
#define MULTICAST_DETAIL_GROUP_HPP

#include <cstddef>
#include <mutex>
#include <vector>

#include "config.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The registrations of a group.
class group {
 public:
  void add(multicast_token token) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (tokens_.size() >= limit_) {
      drop_dead();
      limit_ = 2 * tokens_.size() + 8;
    }
    tokens_.push_back(token);
  }
  /// Those that are live.
  std::vector<multicast_token> live() {
    const std::lock_guard<std::mutex> lock(mutex_);
    drop_dead();
    return tokens_;
  }

 private:
  void drop_dead() {
    std::vector<multicast_token> live;
    for (const multicast_token token : tokens_) {
      if (multicast_token_is_live(token)) live.push_back(token);
    }
    tokens_.swap(live);
  }

  std::mutex mutex_;
  std::vector<multicast_token> tokens_;
  size_t limit_ = 8;
};

}  // namespace mcast::detail

#endif
