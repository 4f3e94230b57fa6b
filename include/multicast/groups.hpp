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
  /// Returns the live registrations.
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

/// Groups of delegates with keys of any ordered type. Groups are called in the order of their keys,
/// and each can be removed or paused as a whole. `s.add(f, ui.in("menu") | mcast::on(loop))`
///
/// One object may be used for several signals. Delegates stay registered when the object is
/// destroyed. The object must not be destroyed while an add uses it. Delegates without a group have
/// priority 0, so groups with numeric keys above 0 are called after them. As in Boost.Signals2,
/// delegates without a group are called after all groups if they are added with mcast::at_back, and
/// before them with mcast::at_front.
///
/// Threads:   any. A process-wide lock is held while keys are compared and copied.
/// Reentry:   the functions that compare or copy keys must not use groups.
/// @since 1.1
template <typename Key, typename Compare = std::less<Key>>
class groups {
 public:
  groups() = default;
  groups(const groups &) = delete;
  groups &operator=(const groups &) = delete;
  /// Returns options that contain a group and its priority.
  ///
  /// @param key  The group. If it does not exist yet, it is created between its neighbours. Any
  ///             number can be a key. The priority of a small key is the negated key.
  /// @return Options for signal::add().
  ///
  /// Errors:    mcast::error, MULTICAST_ERROR_LIMIT: no priority is left between the neighbours.
  ///            Keys that are not numbers need free priorities between their neighbours. There is
  ///            room for several thousand keys in any order, for 100,000 in sorted order, but for
  ///            only 28 if each is inserted between the previous two.
  /// Cost:      O(log groups); takes a lock, and allocates memory for a new group.
  /// @since 1.1
  options in(const Key &key) {
    const detail::process_lock lock(detail::guarded::groups);
    entry &found = find_or_make(key);
    options how;
    how.priority = found.priority;
    how.group = &found.members;
    return how;
  }
  /// Removes the delegates of a group and waits for their calls, as registration::remove() does.
  ///
  /// @param key  The group, which need not exist.
  /// @return The number of removed delegates.
  ///
  /// Threads:   waits for running calls on other threads.
  /// Cost:      like registration::remove() for each delegate.
  /// @since 1.1
  size_t remove(const Key &key) {
    size_t removed = 0;
    for (const multicast_token token : live(key)) {
      const multicast_status status = multicast_token_remove(token);
      if (status == MULTICAST_OK || status == MULTICAST_PENDING) ++removed;
    }
    return removed;
  }
  /// Returns the number of delegates in a group.
  ///
  /// @param key  The group, which need not exist.
  /// @return The number.
  ///
  /// Cost:      O(delegates); takes a lock.
  /// @since 1.1
  size_t count(const Key &key) { return live(key).size(); }
  /// Pauses the current delegates of a group until the returned pauses are destroyed.
  ///
  /// @param key  The group, which need not exist.
  /// @return One pause for each delegate.
  ///
  /// Cost:      like one scoped_pause for each delegate.
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
  // The range of priorities between at_front and at_back.
  static constexpr int64_t highest = (int64_t{1} << 30) - 1, lowest = -highest - highest - 1;
  // Each number in this range has a separate priority.
  static constexpr int64_t most = int64_t{1} << 30, least = -most / 2;

  entry &find_or_make(const Key &key) {
    const auto next = entries_.lower_bound(key);
    if (next != entries_.end() && !entries_.key_comp()(key, next->first)) return next->second;
    const bool is_first = next == entries_.begin(), is_last = next == entries_.end();
    const int64_t above = is_first ? highest + 1 : std::prev(next)->second.priority;
    const int64_t below = is_last ? lowest - 1 : next->second.priority;
    int64_t chosen = wanted(key);
    // Numbers far from zero must not use up the priorities that their neighbours need, so leave
    // gaps.
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
  /// Chooses a priority between two others. If the new key is the first or the last, uses only a
  /// fraction of the remaining range. The more groups there are, the smaller the fraction. This
  /// leaves room for many keys in sorted order, and for keys between them.
  int64_t between(int64_t above, int64_t below, bool is_first, bool is_last) const {
    const int64_t part = entries_.size() < 8 ? 8 : static_cast<int64_t>(entries_.size());
    if (is_first && is_last) return 0;
    if (is_last) return above - 1 - (above - below) / part;
    if (is_first) return below + 1 + (above - below) / part;
    return below + (above - below) / 2;
  }
  /// The preferred priority of a number, which is the negated number. Far from zero, several
  /// numbers share a preferred priority, which goes to the first of them that is added. Keys that
  /// are not numbers have no preference.
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
