// SPDX-License-Identifier: MIT
//
// A registration identifies a delegate in a signal.
#ifndef MULTICAST_REGISTRATION_HPP
#define MULTICAST_REGISTRATION_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>  // std::hash
#include <utility>

#if __has_include(<compare>)
#include <compare>
#endif

#include "detail/mortals.hpp"
#include "error.hpp"
#include "handle.hpp"
#include "statistics.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// Identifies one delegate in one signal, from its addition to the end of its removal. This is a
/// value type: copies refer to the same registration, and become stale when it is removed. Each
/// function corresponds to the multicast_token_...() function of the same name.
/// @since 1.0
class registration {
 public:
  /// Refers to a token's registration, or by default to none.
  ///
  /// @param token  The token, for example the result of multicast_token_current().
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.0
  explicit registration(multicast_token token = {0}) noexcept : token_(token) {}
  /// Removes the delegate and waits for its calls on other threads.
  ///
  /// @return The result of multicast_token_remove(). After MULTICAST_OK, the delegate's captures
  ///         have been destroyed.
  ///
  /// Threads:   waits for the delegate's running calls on other threads.
  /// Reentry:   returns MULTICAST_PENDING inside a call to the delegate.
  /// Cost:      like multicast_token_remove().
  /// @since 1.0
  multicast_status remove() const noexcept { return multicast_token_remove(token_); }
  /// Another name of remove().
  ///
  /// @return The result of remove().
  ///
  /// Cost:      like remove().
  /// @since 1.1
  auto disconnect() const noexcept { return remove(); }
  /// Another name of is_valid().
  ///
  /// @return is_valid().
  ///
  /// Cost:      like is_valid().
  /// @since 1.1
  bool connected() const noexcept { return is_valid(); }
  /// Removes the delegate without waiting.
  ///
  /// @return The result of multicast_token_remove_nowait().
  ///
  /// Cost:      like multicast_token_remove(), without the wait.
  /// @since 1.0
  multicast_status remove_nowait() const noexcept { return multicast_token_remove_nowait(token_); }
  /// Removes the delegate and waits for its calls, up to a timeout.
  ///
  /// @param timeout  The longest time to wait, measured on the monotonic clock. If it is zero or
  ///                 less, the function does not wait.
  /// @return The result of multicast_token_remove_within().
  ///
  /// Threads:   waits for the delegate's running calls on other threads.
  /// Reentry:   returns MULTICAST_PENDING inside a call to the delegate.
  /// Cost:      like multicast_token_remove().
  /// @since 1.0
  multicast_status remove_within(std::chrono::nanoseconds timeout) const noexcept {
    return multicast_token_remove_within(token_, detail::nanoseconds(timeout));
  }
  /// Excludes the delegate from invocations until resume() is called. Calling pause() twice has the
  /// same effect as calling it once, but each scoped_pause counts separately.
  ///
  /// @return The result of multicast_token_pause().
  ///
  /// Threads:   does not wait for running calls.
  /// Cost:      O(1).
  /// @since 1.0
  multicast_status pause() const noexcept { return multicast_token_pause(token_); }
  /// Ends a pause, so that the delegate is called again, in its old position.
  ///
  /// @return The result of multicast_token_resume().
  ///
  /// Cost:      O(1).
  /// @since 1.0
  multicast_status resume() const noexcept { return multicast_token_resume(token_); }
  /// Whether the delegate is paused by pause() or by a scoped_pause of this registration.
  ///
  /// @return true if the delegate is paused; false if it is not paused or has been removed.
  ///
  /// Cost:      O(1); briefly takes a lock.
  /// @since 1.1
  bool is_paused() const noexcept {
    multicast_registration all = MULTICAST_REGISTRATION_INIT;
    return multicast_token_get_registration(token_, &all) == MULTICAST_OK && all.is_paused;
  }
  /// Whether the delegate is registered and all objects that it tracks are alive. If one of the
  /// objects is dead, removes the delegate.
  ///
  /// @return true from the time the delegate is added until it is removed. If the delegate was
  ///         added with `once`, true until its only call begins.
  ///
  /// Cost:      O(1), without a lock. Briefly takes two locks if the delegate tracks objects, or if
  ///            its token has the same hash as the token of another delegate that has tracked
  ///            objects. If such a delegate is paused or was added with `once`, the cost is like
  ///            that of multicast_prune().
  /// @since 1.0
  bool is_valid() const noexcept {
    if (!multicast_token_is_valid(token_)) return false;
    return !detail::may_be_mortal(token_) || detail::is_alive(token_);
  }
  /// Another name of is_valid().
  ///
  /// @return is_valid().
  ///
  /// Cost:      like is_valid().
  /// @since 1.1
  explicit operator bool() const noexcept { return is_valid(); }
  /// Returns statistics about the delegate's calls that were watched; see mcast::watch.
  ///
  /// @return The statistics; all zero if there has been no watch.
  ///
  /// Errors:    MULTICAST_ERROR_INVALID_HANDLE: the delegate has been removed, or this object
  ///            refers to no registration.
  /// Cost:      O(1).
  /// @since 1.1
  call_statistics statistics() const {
    multicast_token_stats stats = MULTICAST_TOKEN_STATS_INIT;
    detail::ensure(multicast_token_get_stats(token_, &stats));
    return {stats.calls, detail::duration(stats.total_ns), detail::duration(stats.longest_ns),
            stats.queued, stats.dropped};
  }
  /// Whether the registration belongs to a signal, or to the signal of a connectable.
  ///
  /// @param s  The signal.
  /// @return true if it does; false if it does not, or if the delegate has been removed.
  ///
  /// Cost:      O(1); briefly takes a lock.
  /// @since 1.1
  template <typename Signal>
  bool belongs_to(const Signal &s) const noexcept {
    multicast_registration all = MULTICAST_REGISTRATION_INIT;
    return multicast_token_get_registration(token_, &all) == MULTICAST_OK &&
           all.target.id == s.handle().id;
  }
  /// The token, for use with the functions of multicast.h.
  ///
  /// @return The token; zero if there is no registration.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.0
  multicast_token token() const noexcept { return token_; }

  /// Whether both refer to the same registration.
  ///
  /// @return true if they are equal, or if neither refers to a registration.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  friend bool operator==(registration a, registration b) noexcept {
    return a.token_.id == b.token_.id;
  }
  friend bool operator!=(registration a, registration b) noexcept { return !(a == b); }
  /// An arbitrary order of registrations, for use in std::set and std::map.
  ///
  /// @return Whether `a` is before `b`.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  friend bool operator<(registration a, registration b) noexcept {
    return a.token_.id < b.token_.id;
  }
  friend bool operator>(registration a, registration b) noexcept { return b < a; }
  friend bool operator<=(registration a, registration b) noexcept { return !(b < a); }
  friend bool operator>=(registration a, registration b) noexcept { return !(a < b); }
#if defined(__cpp_lib_three_way_comparison)
  friend std::strong_ordering operator<=>(registration a, registration b) noexcept {
    return a.token_.id <=> b.token_.id;
  }
#endif

 private:
  multicast_token token_;
};

/// Returns the registration whose delegate this thread is calling; if calls are nested, the
/// innermost one.
///
/// @return The registration; empty outside calls to delegates.
///
/// Threads:   the result depends on the calling thread.
/// Cost:      O(1); takes no lock.
/// @since 1.1
inline registration current() noexcept { return registration(multicast_token_current()); }

/// Owns a registration, and removes it when this object is destroyed or another registration is
/// assigned to it.
///
/// Threads:   the destructor waits for calls on other threads, as registration::remove() does.
/// Reentry:   may be destroyed inside a call to its own delegate. The destructor then does not
///            wait.
/// @since 1.0
class [[nodiscard]] scoped_registration
    : public detail::owner<multicast_token, multicast_token_remove> {
 public:
  /// Owns a registration, such as the result of signal::add(), or by default none.
  ///
  /// @param r  The registration to remove.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.0
  scoped_registration(registration r = registration()) noexcept { handle_ = r.token(); }

  /// The registration that will be removed.
  ///
  /// @return The registration; empty after a move or release().
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.0
  registration get() const noexcept { return registration(handle_); }
  /// Removes the delegate now, as registration::remove() does.
  ///
  /// @return The result of registration::remove().
  ///
  /// Threads:   like registration::remove().
  /// Reentry:   returns MULTICAST_PENDING inside a call to the delegate. The destructor then waits
  ///            for this call, unless the destructor also runs inside the call.
  /// Cost:      like registration::remove().
  /// @since 1.1
  multicast_status remove() const noexcept { return get().remove(); }
  /// Another name of remove().
  ///
  /// @return The result of remove().
  ///
  /// Cost:      like remove().
  /// @since 1.1
  auto disconnect() const noexcept { return remove(); }
  /// Whether the delegate is still registered.
  ///
  /// @return registration::is_valid().
  ///
  /// Cost:      like registration::is_valid().
  /// @since 1.1
  bool is_valid() const noexcept { return get().is_valid(); }
  /// Another name of is_valid().
  ///
  /// @return is_valid().
  ///
  /// Cost:      like is_valid().
  /// @since 1.1
  bool connected() const noexcept { return is_valid(); }
  /// Another name of is_valid().
  ///
  /// @return is_valid().
  ///
  /// Cost:      like is_valid().
  /// @since 1.1
  explicit operator bool() const noexcept { return is_valid(); }
  /// Releases ownership of the registration, so that the delegate stays registered.
  ///
  /// @return The registration.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.0
  registration release() noexcept { return registration(std::exchange(handle_, {0})); }
};

}  // namespace mcast

/// Hashes registrations, for use in std::unordered_set and std::unordered_map.
/// @since 1.1
template <>
struct std::hash<MULTICAST_HPP_NAMESPACE::registration> {
  /// The hash.
  ///
  /// @param r  The registration.
  /// @return The hash. Equal registrations have equal hashes.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  size_t operator()(MULTICAST_HPP_NAMESPACE::registration r) const noexcept {
    return std::hash<uint64_t>()(r.token().id);
  }
};

#endif
