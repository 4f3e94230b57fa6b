// SPDX-License-Identifier: MIT
//
// The registrations of a group.
#ifndef MULTICAST_DETAIL_GROUP_HPP
#define MULTICAST_DETAIL_GROUP_HPP

#include <cstddef>
#include <vector>

#include "process_lock.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The registrations of a group.
class group {
 public:
  void add(multicast_token token) {
    const process_lock lock(guarded::members);
    if (tokens_.size() >= limit_) {
      drop_dead();
      limit_ = 2 * tokens_.size() + 8;
    }
    tokens_.push_back(token);
  }
  /// Those that are live.
  std::vector<multicast_token> live() {
    const process_lock lock(guarded::members);
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

  std::vector<multicast_token> tokens_;
  size_t limit_ = 8;
};

}  // namespace mcast::detail

#endif
