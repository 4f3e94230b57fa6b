// SPDX-License-Identifier: MIT
//
// Stores the token of an observer's delegate.
#ifndef MULTICAST_DETAIL_KEPT_TOKEN_HPP
#define MULTICAST_DETAIL_KEPT_TOKEN_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "config.hpp"
#include "process.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Stores the token of one delegate in the observer to which the delegate belongs.
///
/// As soon as the delegate can be called, a call may destroy the observer, even before the add
/// returns. Therefore the library writes the token into a `kept_add`, which outlives the observer
/// and the add. At the end of the add, the token moves to the observer, if the observer still
/// exists.
class kept_token {
 public:
  kept_token() noexcept = default;
  kept_token(const kept_token &) = delete;
  kept_token &operator=(const kept_token &) = delete;
  /// Detaches a running add, so that the add does not access the observer when it ends.
  ~kept_token() {
    if (!is_adding_.load(std::memory_order_acquire)) return;
    const process_lock lock = locked(index_of(this));
    if (is_adding_.load(std::memory_order_relaxed)) add_of(this).is_orphan = true;
  }

  /// Begins an add. Fails while another add is in progress. Also fails while the previous delegate
  /// is live or calls to it may be running, because the observer's destructor has to wait for these
  /// calls.
  bool begin() noexcept {
    kept_add &add = add_of(this);
    uintptr_t none = 0;
    // Pairs with end(), which reads the previous add's token before it frees the slot.
    if (!add.observer.compare_exchange_strong(none, number_of(this))) return false;
    const multicast_token last = get();
    if (last.id != 0 &&
        (multicast_token_is_valid(last) ||
         multicast_token_remove_nowait(last) != MULTICAST_ERROR_INVALID_HANDLE)) {
      add.observer.store(0, std::memory_order_release);
      return false;
    }
    add.token = {0};
    add.is_orphan = false;
    // A call that destroys the observer sees this store, because the library publishes the delegate
    // afterwards.
    is_adding_.store(true, std::memory_order_release);
    return true;
  }
  /// Returns where multicast_add() writes the token before the delegate can be called.
  multicast_token *place() noexcept { return &add_of(this).token; }
  /// Ends an add.
  ///
  /// @param kept  The object on which the add began; its observer may have been destroyed.
  /// @return The token; zero if the add has failed.
  static multicast_token end(kept_token *kept) noexcept {
    kept_add &add = add_of(kept);
    const multicast_token token = add.token;
    const process_lock lock = locked(index_of(kept));
    if (!add.is_orphan) {
      kept->token_.store(token.id, std::memory_order_relaxed);
      kept->is_adding_.store(false, std::memory_order_release);
    }
    add.observer.store(0, std::memory_order_release);
    return token;
  }

  /// Returns the token, even during an add; zero if there has been no add.
  multicast_token get() const noexcept {
    if (is_adding_.load(std::memory_order_acquire)) {
      // The add cannot end while the lock is held. The load is atomic because the library may be
      // writing the token at the same time.
      const process_lock lock = locked(index_of(this));
      if (is_adding_.load(std::memory_order_relaxed))
        return {read_atomically(add_of(this).token.id)};
    }
    return {token_.load(std::memory_order_relaxed)};
  }

 private:
  static uintptr_t number_of(const kept_token *kept) noexcept {
    return reinterpret_cast<uintptr_t>(kept);
  }
  static size_t index_of(const kept_token *kept) noexcept {
    return static_cast<unsigned>((number_of(kept) * 0x9e3779b97f4a7c15) >> 60);
  }
  static kept_add &add_of(const kept_token *kept) noexcept {
    return process().kept_adds[index_of(kept)];
  }
  static process_lock locked(size_t index) noexcept {
    return process_lock(guarded::keyed, index % parts);
  }

  std::atomic<uint64_t> token_{0};
  std::atomic<bool> is_adding_{false};
};

}  // namespace mcast::detail

#endif
