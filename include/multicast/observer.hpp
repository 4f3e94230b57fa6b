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

/// A base class for objects whose methods are delegates. The destructor of such an object removes
/// the delegates that were added with it.
///
/// The destructor of a base class runs after the destructor of the derived class. If other threads
/// may invoke the signal, the destructor of the derived class must therefore call stop_observing()
/// first. Copies of an observer have no registrations.
///
/// The first delegate needs no allocation if it is a method that is known at compile time and has
/// no options; it costs little more than a scoped_registration. For all other delegates the
/// observer creates a lifetime, and adding them takes several times as long.
///
/// Threads:   the destructor waits for calls on other threads, as multicast_lifetime_end() does.
/// @since 1.1
class observer {
 public:
  /// How many registrations the object has.
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
  /// A lifetime that ends with the object. It is created at its first use.
  ///
  /// @return The lifetime. Other delegates that are added with it as `options::lifetime` are also
  ///         removed when the object is destroyed.
  ///
  /// Cost:      O(1); the first time like multicast_lifetime_create().
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
  /// Creates an observer without registrations. A copy does not take over the registrations of the
  /// original.
  ///
  /// Cost:      O(1); does not allocate.
  /// @since 1.1
  observer() noexcept = default;
  observer(const observer &) noexcept {}
  observer &operator=(const observer &) noexcept { return *this; }  // NOLINT(cert-oop54-cpp)
  ~observer() { stop_observing(); }
  /// Removes all registrations of this object and waits for running calls.
  ///
  /// Threads:   waits for calls on other threads, as multicast_lifetime_end() does.
  /// Reentry:   may be called inside a call of one of the object's delegates, and does not wait for
  ///            that call.
  /// Cost:      like multicast_lifetime_end().
  /// @since 1.1
  void stop_observing() noexcept {
    if (id_.load(std::memory_order_acquire) != 0) {
      static_cast<void>(multicast_lifetime_end({id_.exchange(0)}));
    }
    // Calls of the registration may still run even if the token is stale.
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
