// SPDX-License-Identifier: MIT
//
// Creates a signal's multicast on first use.
#ifndef MULTICAST_DETAIL_LAZY_MULTICAST_HPP
#define MULTICAST_DETAIL_LAZY_MULTICAST_HPP

#include <atomic>
#include <cstdint>

#include "failures.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// A multicast that is created on first use.
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

  /// Gives up ownership of the multicast without destroying it.
  void release() noexcept { id_.store(0, std::memory_order_relaxed); }

  /// Calls `prepare(multicast)`, which returns a status, before other threads can see the
  /// multicast. Returns a zero handle if there is no memory or `prepare` fails.
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
