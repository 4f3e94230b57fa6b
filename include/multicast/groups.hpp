// SPDX-License-Identifier: MIT
//
// Groups of delegates.
#ifndef MULTICAST_GROUPS_HPP
#define MULTICAST_GROUPS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <type_traits>
#include <vector>

#include "options.hpp"
#include "pause.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// Groups of delegates, by keys of any ordered type: they are called in the order of their keys,
/// and can be removed and paused together. `s.add(f, ui.in("menu") | mcast::on(loop))`
///
/// One object may serve several signals. What was added stays when it is destroyed, which must not
/// happen during an add with it. Delegates without a group have priority 0: groups of numbers above
/// 0 are called after these.
///
/// Threads:   any. One lock of the process is held while keys are compared and copied.
/// Reentry:   comparing or copying a key must not use groups.
/// @since 1.1
template <typename Key, typename Compare = std::less<Key>>
class groups {
 public:
  groups() = default;
  groups(const groups &) = delete;
  groups &operator=(const groups &) = delete;
  /// Options with a group, and with the priority that it has.
  ///
  /// @param key  A group that is not there yet is made, between its neighbours. A number is its own
  ///             priority, below zero.
  ///
  /// @return For signal::add().
  ///
  /// Errors:    mcast::error, MULTICAST_ERROR_LIMIT: there is no priority left between the
  ///            neighbours: after 16 groups that were each put between the last one and its
  ///            neighbour. Or the number is not between -2^30 and 2^30.
  /// Cost:      O(log groups), a lock; an allocation for a new group.
  /// @since 1.1
  options in(const Key &key) {
    const detail::process_lock lock(detail::guarded::groups);
    entry &found = find_or_make(key);
    options how;
    how.priority = found.priority;
    how.group = &found.members;
    return how;
  }
  /// Removes the delegates of a group and waits, as registration::remove() does for each.
  ///
  /// @param key  The group; it need not be there.
  /// @return How many were removed.
  ///
  /// Threads:   waits for running calls on other threads.
  /// Cost:      as registration::remove() for each.
  /// @since 1.1
  size_t remove(const Key &key) {
    size_t removed = 0;
    for (const multicast_token token : live(key)) {
      const multicast_status status = multicast_token_remove(token);
      if (status == MULTICAST_OK || status == MULTICAST_PENDING) ++removed;
    }
    return removed;
  }
  /// How many delegates a group has.
  ///
  /// @param key  The group; it need not be there.
  /// @return The number.
  ///
  /// Cost:      O(delegates), a lock.
  /// @since 1.1
  size_t count(const Key &key) { return live(key).size(); }
  /// Pauses the delegates that a group has now, until the result is destroyed.
  ///
  /// @param key  The group; it need not be there.
  /// @return Pauses, which are counted.
  ///
  /// Cost:      as a scoped_pause for each.
  /// @since 1.1
  [[nodiscard]] std::vector<scoped_pause> pause(const Key &key) {
    std::vector<scoped_pause> all;
    for (const multicast_token token : live(key)) all.emplace_back(registration(token));
    return all;
  }

 private:
  struct entry {
    int32_t priority = 0;
    detail::group members;
  };
  using map = std::map<Key, entry, Compare>;
  static constexpr int64_t limit = int64_t{1} << 30;

  entry &find_or_make(const Key &key) {
    const auto next = entries_.lower_bound(key);
    if (next != entries_.end() && !entries_.key_comp()(key, next->first)) return next->second;
    int64_t chosen = 0;
    if constexpr (std::is_integral_v<Key> && std::is_same_v<Compare, std::less<Key>>) {
      chosen = key < static_cast<Key>(0) || static_cast<uint64_t>(key) < uint64_t{1} << 30
                   ? static_cast<int64_t>(0 - static_cast<uint64_t>(key))
                   : limit;
    } else {
      constexpr int64_t apart = 1 << 16;
      const bool is_first = next == entries_.begin(), is_last = next == entries_.end();
      const int64_t above = is_first ? 0 : std::prev(next)->second.priority;
      const int64_t below = is_last ? 0 : next->second.priority;
      if (is_first && is_last) {
        chosen = 0;
      } else if (is_last) {
        chosen = above - apart;
      } else if (is_first) {
        chosen = below + apart;
      } else {
        chosen = below + (above - below) / 2;
        if (chosen == below) chosen = limit;
      }
    }
    if (chosen >= limit || chosen <= -limit) {
      detail::fail(MULTICAST_ERROR_LIMIT);
      chosen = 0;
    }
    entry &made = entries_[key];
    made.priority = static_cast<int32_t>(chosen);
    return made;
  }
  std::vector<multicast_token> live(const Key &key) {
    const detail::process_lock lock(detail::guarded::groups);
    const auto found = entries_.find(key);
    return found == entries_.end() ? std::vector<multicast_token>() : found->second.members.live();
  }

  map entries_;
};

}  // namespace mcast

#endif
