// SPDX-License-Identifier: MIT
//
// A lock-free table that only grows.
#ifndef MULTICAST_DETAIL_KEY_TREE_HPP
#define MULTICAST_DETAIL_KEY_TREE_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "config.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// A tree of keys and values, in which each level consumes two bits of the hash. Nodes are not
/// moved or freed until the tree is destroyed, so any thread may search while others insert, and
/// the tree is intact in the child of a fork.
template <typename Key, typename Value, typename Hash, typename Equal>
class key_tree {
 public:
  key_tree() = default;
  key_tree(key_tree &&other) noexcept : root_(other.root_.exchange(nullptr)) {}
  key_tree &operator=(key_tree &&other) noexcept {
    key_tree taken(std::move(other));  // `other` may be this object
    taken.root_ = root_.exchange(taken.root_);
    return *this;
  }
  /// Does not recurse, because keys with equal hashes may form a chain too long for the stack.
  ~key_tree() {
    node *rest = root_.load(std::memory_order_relaxed);
    while (rest != nullptr) {
      node *const gone = rest;
      rest = gone->next;
      for (const std::atomic<node *> &place : gone->children) {
        node *const child = place.load(std::memory_order_relaxed);
        if (child == nullptr) continue;
        child->next = rest;
        rest = child;
      }
      delete gone;
    }
  }

  Value *find(const Key &key) const {
    for (path way(key); node *const here = way.place(root_)->load(std::memory_order_acquire);
         way.descend(here)) {
      if (Equal()(here->key, key)) return &here->value;
    }
    return nullptr;
  }
  Value &find_or_make(const Key &key) {
    std::unique_ptr<node> made;
    path way(key);
    for (;;) {
      std::atomic<node *> &place = *way.place(root_);
      node *here = place.load(std::memory_order_acquire);
      if (here == nullptr) {
        if (!made) made = std::make_unique<node>(key);
        // If two threads insert the same key, the second thread finds the first thread's node in
        // `here`.
        if (place.compare_exchange_strong(here, made.get(), std::memory_order_acq_rel)) {
          return made.release()->value;
        }
      }
      if (Equal()(here->key, key)) return here->value;
      way.descend(here);
    }
  }

 private:
  struct node {
    const Key key;
    Value value = {};
    std::atomic<node *> children[4] = {};
    node *next = nullptr;  // used only by the tree's destructor
    explicit node(const Key &k) : key(k) {}
  };
  /// The path of a key through the tree.
  class path {
   public:
    // A number is often its own hash, so the multiplication spreads its bits to the top.
    explicit path(const Key &key)
        : bits_(static_cast<uint64_t>(Hash()(key)) * UINT64_C(0x9e3779b97f4a7c15)) {}
    template <typename Root>
    auto place(Root &root) const {
      return parent_ == nullptr ? const_cast<std::atomic<node *> *>(&root)
                                : &parent_->children[bits_ >> 62];
    }
    void descend(node *here) {
      if (parent_ != nullptr) bits_ <<= 2;
      parent_ = here;
    }

   private:
    uint64_t bits_;
    node *parent_ = nullptr;
  };

  std::atomic<node *> root_{nullptr};
};

}  // namespace mcast::detail

#endif
