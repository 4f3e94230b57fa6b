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

#include "detail/process.hpp"
#include "options.hpp"
#include "pause.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The registrations of a group.
class members final : public group {
 public:
  void add(multicast_token token) override {
    const process_lock lock(guarded::members);
    if (tokens_.size() >= limit_) {
      drop_dead();
      limit_ = 2 * tokens_.size() + 8;
    }
    tokens_.push_back(token);
  }
  /// The registrations that are live.
  std::vector<multicast_token> live() {
    const process_lock lock(guarded::members);
    drop_dead();
    return tokens_;
  }

 private:
  void drop_dead() {
    std::vector<multicast_token> live;
    for (const multicast_token token : tokens_) {
      if (multicast_token_is_valid(token)) live.push_back(token);
    }
    tokens_.swap(live);
  }

  std::vector<multicast_token> tokens_;
  size_t limit_ = 8;
};

}  // namespace mcast::detail

namespace MULTICAST_HPP_NAMESPACE {

/// Groups of delegates, by keys of any ordered type: they are called in the order of their keys,
/// and can be removed and paused together. `s.add(f, ui.in("menu") | mcast::on(loop))`
///
/// One object may serve several signals. Delegates stay registered when it is destroyed, which must
/// not happen during an add with it. Delegates without a group have priority 0: groups of numbers
/// above 0 are called after these. As in Boost.Signals2, delegates without a group are called after
/// all groups if they are added with mcast::at_back, and before them with mcast::at_front.
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
  /// @param key  A group that is not there yet is made, between its neighbours. Any number can be a
  ///             key; a number that is not far from zero gets its negative as its priority.
  /// @return For signal::add().
  ///
  /// Errors:    mcast::error, MULTICAST_ERROR_LIMIT: there is no priority left between the
  ///            neighbours. Keys that are not numbers: some thousands fit in any order, and 100,000
  ///            if they come in order, but only 28 if each is put between the last two.
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
    detail::members members;
  };
  using map = std::map<Key, entry, Compare>;
  // Between at_front and at_back.
  static constexpr int64_t highest = (int64_t{1} << 30) - 1, lowest = -highest - highest - 1;
  // The numbers between which each has a priority of its own.
  static constexpr int64_t most = int64_t{1} << 30, least = -most / 2;

  entry &find_or_make(const Key &key) {
    const auto next = entries_.lower_bound(key);
    if (next != entries_.end() && !entries_.key_comp()(key, next->first)) return next->second;
    const bool is_first = next == entries_.begin(), is_last = next == entries_.end();
    const int64_t above = is_first ? highest + 1 : std::prev(next)->second.priority;
    const int64_t below = is_last ? lowest - 1 : next->second.priority;
    int64_t chosen = wanted(key);
    // Far from zero numbers do not have all priorities: they leave room for their neighbours.
    const int64_t room = chosen < -most || chosen > -least ? 1024 : 1;
    if (chosen - below < room || above - chosen < room) {
      chosen = between(above, below, is_first, is_last);
    }
    if (chosen <= below || chosen >= above) {
      detail::fail(MULTICAST_ERROR_LIMIT);
      chosen = 0;
    }
    return entries_.emplace_hint(next, key, entry{static_cast<int32_t>(chosen), {}})->second;
  }
  /// At the ends a part of the room that is left, which becomes smaller with the number of groups:
  /// so there is room for many keys in order, and also between them.
  int64_t between(int64_t above, int64_t below, bool is_first, bool is_last) const {
    const int64_t part = entries_.size() < 8 ? 8 : static_cast<int64_t>(entries_.size());
    if (is_first && is_last) return 0;
    if (is_last) return above - 1 - (above - below) / part;
    if (is_first) return below + 1 + (above - below) / part;
    return below + (above - below) / 2;
  }
  /// The priority of a number: below zero what is above zero. Far from zero several numbers have
  /// one priority, and the first of them gets it. Others have none.
  static int64_t wanted(const Key &key) {
    constexpr bool is_less = std::is_same_v<Compare, std::less<Key>>;
    constexpr bool is_greater = std::is_same_v<Compare, std::greater<Key>>;
    if constexpr ((std::is_integral_v<Key> || std::is_enum_v<Key>) && (is_less || is_greater)) {
      constexpr int64_t end = int64_t{1} << 31;
      const bool is_large = key > Key() && static_cast<uint64_t>(key) >= uint64_t{1} << 31;
      int64_t number = is_large ? end : static_cast<int64_t>(key);
      if (is_greater) number = -number;
      if (number < -end || number >= end) return highest + 1;
      if (number > most) return -most - (number - most) / 2;
      if (number < least) return -least + (least - number) / 4;
      return -number;
    } else {
      return highest + 1;
    }
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
