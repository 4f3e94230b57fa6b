// SPDX-License-Identifier: MIT
//
// A base class for objects whose methods are delegates.
#ifndef MULTICAST_OBSERVER_HPP
#define MULTICAST_OBSERVER_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "detail/kept_token.hpp"
#include "error.hpp"

namespace MULTICAST_HPP_NAMESPACE {

namespace detail {
template <typename R, typename... Args>
class additions;
}

/// A base class for objects whose methods are delegates. The destructor removes all delegates that
/// were added with the object.
///
/// A base class's destructor runs after the derived class's destructor. If other threads invoke the
/// delegates, call stop_observing() at the beginning of the derived class's destructor. A copy of
/// an observer has no registrations.
///
/// A single method that is known at compile time and added without options needs no allocation, and
/// costs little more than a scoped_registration. Any other delegate is added under a lifetime,
/// which the object creates when it first needs one. Adding such a delegate costs several times as
/// much.
///
/// Threads:   the destructor waits for calls on other threads, as multicast_lifetime_end() does.
/// @since 1.1
class observer {
 public:
  /// Returns the number of the object's registrations.
  ///
  /// @return The number.
  ///
  /// Cost:      O(1).
  /// @since 1.1
  size_t count() const {
    const multicast_lifetime all = {id_.load(std::memory_order_acquire)};
    const size_t one = multicast_token_is_valid(kept_.get()) ? 1 : 0;
    return one + (all.id == 0 ? 0 : detail::count(multicast_lifetime_count(all)));
  }
  /// Returns a lifetime that ends with the object, and creates it on first use.
  ///
  /// @return The lifetime. Delegates added under it, with `options::lifetime`, are also removed
  ///         with the object.
  ///
  /// Cost:      O(1); the first time, like multicast_lifetime_create().
  /// @since 1.1
  multicast_lifetime observing() const {
    uint64_t id = id_.load(std::memory_order_acquire);
    if (id != 0) return {id};
    const multicast_lifetime made = multicast_lifetime_create();
    if (made.id == 0) detail::fail(multicast_create_error());
    if (id_.compare_exchange_strong(id, made.id)) return made;
    static_cast<void>(multicast_lifetime_end(made));
    return {id};
  }

 protected:
  /// Creates an observer without registrations. A copy of an observer has none either.
  ///
  /// Cost:      O(1); does not allocate.
  /// @since 1.1
  observer() noexcept = default;
  observer(const observer &) noexcept {}
  observer &operator=(const observer &) noexcept { return *this; }  // NOLINT(cert-oop54-cpp)
  ~observer() { stop_observing(); }
  /// Removes all of the object's registrations and waits for their running calls.
  ///
  /// Threads:   waits for calls on other threads, as multicast_lifetime_end() does.
  /// Reentry:   inside a call to one of the object's delegates, does not wait for that call.
  /// Cost:      like multicast_lifetime_end().
  /// @since 1.1
  void stop_observing() noexcept {
    if (id_.load(std::memory_order_acquire) != 0) {
      static_cast<void>(multicast_lifetime_end({id_.exchange(0)}));
    }
    // This is necessary even if the token is stale, because calls may still be running.
    const multicast_token kept = kept_.get();
    if (kept.id != 0) static_cast<void>(multicast_token_remove(kept));
  }

 private:
  template <typename R, typename... Args>
  friend class detail::additions;

  mutable std::atomic<uint64_t> id_{0};
  mutable detail::kept_token kept_;
};

}  // namespace mcast

#endif
