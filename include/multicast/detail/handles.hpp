// SPDX-License-Identifier: MIT
//
// Handles of the C interface that end with their owner.
#ifndef MULTICAST_DETAIL_HANDLES_HPP
#define MULTICAST_DETAIL_HANDLES_HPP

#include <atomic>
#include <cstdint>
#include <utility>

#include "../error.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Owns a handle and passes it to a function at the end.
template <typename Handle, multicast_status (*end)(Handle)>
class owner {
 public:
  /// For the functions of multicast.h.
  ///
  /// @return The handle; zero after a move.
  ///
  /// Cost:      O(1), no call.
  /// @since 1.0
  Handle handle() const noexcept { return handle_; }

 protected:
  owner() noexcept = default;
  explicit owner(Handle made) : handle_(made) {
    if (made.id == 0) fail(multicast_create_error());
  }
  owner(owner &&other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  owner &operator=(owner &&other) noexcept {
    finish(std::exchange(handle_, std::exchange(other.handle_, Handle{})));
    return *this;
  }
  ~owner() { finish(handle_); }

  Handle handle_ = {0};

 private:
  static void finish(Handle handle) noexcept {
    if (handle.id != 0) static_cast<void>(end(handle));
  }
};

/// A multicast that is made when it is needed first.
class lazy_multicast {
 public:
  constexpr lazy_multicast() noexcept = default;
  explicit lazy_multicast(multicast made) noexcept : id_(made.id) {}
  lazy_multicast(lazy_multicast &&other) noexcept : id_(other.id_.exchange(0)) {}
  lazy_multicast &operator=(lazy_multicast &&other) noexcept {
    finish(id_.exchange(other.id_.exchange(0)));
    return *this;
  }
  ~lazy_multicast() { finish(id_.load(std::memory_order_relaxed)); }

  multicast get() const noexcept { return {id_.load(std::memory_order_acquire)}; }

  /// Leaves it to its owner.
  void release() noexcept { id_.store(0, std::memory_order_relaxed); }

  /// `prepare(multicast)` is called before others see it, and returns a status. Returns none if
  /// there is no memory or if that fails.
  template <typename Prepare>
  multicast make(Prepare &&prepare) {
    uint64_t id = id_.load(std::memory_order_acquire);
    if (id != 0) return {id};
    const multicast made = multicast_create();
    if (made.id == 0) {
      fail(multicast_create_error());
      return made;
    }
    const multicast_status status = prepare(made);
    if (status != MULTICAST_OK) {
      finish(made.id);
      fail(status);
      return {0};
    }
    if (id_.compare_exchange_strong(id, made.id)) return made;
    finish(made.id);  // another thread was faster
    return {id};
  }
  multicast make() {
    return make([](multicast) { return MULTICAST_OK; });
  }

 private:
  static void finish(uint64_t id) noexcept {
    if (id != 0) static_cast<void>(multicast_destroy({id}));
  }

  std::atomic<uint64_t> id_{0};
};

}  // namespace mcast::detail

#endif
