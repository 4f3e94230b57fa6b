// SPDX-License-Identifier: MIT
//
// A hash table, which replaces <unordered_map> because it takes longer to compile.
#ifndef MULTICAST_DETAIL_TABLE_HPP
#define MULTICAST_DETAIL_TABLE_HPP

#include <cstddef>
#include <cstdint>
#include <utility>

#include "config.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Maps nonzero numbers to values. The number of a free entry is 0.
template <typename Value>
class table {
 public:
  table() noexcept = default;
  table(const table &) = delete;
  table &operator=(const table &) = delete;
  ~table() { delete[] entries_; }

  size_t size() const noexcept { return count_; }
  /// Returns nullptr if the table does not contain the number.
  Value *find(uint64_t number) const noexcept {
    if (count_ == 0) return nullptr;
    entry &found = at(number);
    return number != 0 && found.number == number ? &found.value : nullptr;
  }
  /// Returns the number's value, after inserting the number if the table does not contain it.
  Value &operator[](uint64_t number) {
    if (Value *const there = find(number)) return *there;
    if (2 * count_ >= size_) grow();
    entry &made = at(number);
    made.number = number;
    ++count_;
    return made.value;
  }
  void erase(uint64_t number) noexcept {
    if (find(number) == nullptr) return;
    entry *hole = &at(number);
    *hole = entry();
    --count_;
    // Reinsert the entries that follow, because a search for them would now stop at the hole.
    for (size_t i = index(hole); entries_[i = next(i)].number != 0;) {
      const entry moved = std::exchange(entries_[i], entry());
      at(moved.number) = moved;
    }
  }
  template <typename F>
  void each(F &&function) const {
    for (size_t i = 0; i < size_; ++i) {
      if (entries_[i].number != 0) function(entries_[i].value);
    }
  }
  void swap(table &other) noexcept {
    std::swap(entries_, other.entries_);
    std::swap(size_, other.size_);
    std::swap(count_, other.count_);
  }

 private:
  struct entry {
    uint64_t number = 0;
    Value value = {};
  };

  size_t next(size_t i) const noexcept { return (i + 1) & (size_ - 1); }
  size_t index(const entry *of) const noexcept { return static_cast<size_t>(of - entries_); }
  /// Returns the number's entry or, if it has none, the free entry in which to insert it. There is
  /// always a free entry.
  entry &at(uint64_t number) const noexcept {
    size_t i = static_cast<uint32_t>((number * 0x9e3779b97f4a7c15) >> 32) & (size_ - 1);
    while (entries_[i].number != 0 && entries_[i].number != number) i = next(i);
    return entries_[i];
  }
  void grow() {
    table larger;
    larger.size_ = size_ == 0 ? 8 : 2 * size_;
    larger.entries_ = new entry[larger.size_];
    for (size_t i = 0; i < size_; ++i) {
      if (entries_[i].number != 0) larger.at(entries_[i].number) = entries_[i];
    }
    larger.count_ = count_;
    swap(larger);
  }

  entry *entries_ = nullptr;
  size_t size_ = 0;  // a power of two
  size_t count_ = 0;
};

/// A set of numbers.
struct nothing_more {};
using numbers = table<nothing_more>;

}  // namespace mcast::detail

#endif
