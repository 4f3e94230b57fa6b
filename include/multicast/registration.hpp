// SPDX-License-Identifier: MIT
//
// One delegate in one signal.
#ifndef MULTICAST_REGISTRATION_HPP
#define MULTICAST_REGISTRATION_HPP

#include <chrono>
#include <utility>

#include "detail/mortals.hpp"
#include "detail/owner.hpp"
#include "detail/statuses.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// One delegate in one signal, from its add to the end of its removal. It is a value: copies mean
/// the same registration, and are stale after its removal. Each function does what the
/// multicast_token_...() function of that name does.
///
/// Threads:   any.
/// @since 1.0
class registration {
 public:
  /// Of no registration, or of a token, such as that of multicast_token_current().
  explicit registration(multicast_token token = {0}) noexcept : token_(token) {}
  /// Removes the delegate and waits. After MULTICAST_OK its captures have been destroyed.
  multicast_status remove() const noexcept { return multicast_token_remove(token_); }
  /// Removes the delegate without waiting.
  multicast_status remove_nowait() const noexcept { return multicast_token_remove_nowait(token_); }
  /// Removes the delegate and waits at most for `timeout`.
  multicast_status remove_within(std::chrono::nanoseconds timeout) const noexcept {
    return multicast_token_remove_within(token_, detail::nanoseconds(timeout));
  }
  /// Leaves the delegate out of invocations until resume(). Not counted; see scoped_pause.
  multicast_status pause() const noexcept { return multicast_token_pause(token_); }
  /// Ends a pause.
  multicast_status resume() const noexcept { return multicast_token_resume(token_); }
  /// Whether it is paused.
  /// @since 1.1
  bool is_paused() const noexcept {
    multicast_registration all = multicast_registration_default();
    return multicast_token_get(token_, &all) == MULTICAST_OK && all.is_paused;
  }
  /// Whether it is live, and its tracked objects are. If one of them is dead, removes it.
  bool is_live() const noexcept {
    if (!multicast_token_is_live(token_)) return false;
    if (detail::mortals.load(std::memory_order_relaxed) == 0) return true;
    multicast_registration all = multicast_registration_default();
    if (multicast_token_get(token_, &all) != MULTICAST_OK) return false;
    detail::prune(all.target);
    return multicast_token_is_live(token_);
  }
  /// The same as is_live().
  /// @since 1.1
  explicit operator bool() const noexcept { return is_live(); }
  /// For the functions of multicast.h.
  multicast_token token() const noexcept { return token_; }

  friend bool operator==(registration a, registration b) noexcept {
    return a.token_.id == b.token_.id;
  }
  friend bool operator!=(registration a, registration b) noexcept { return !(a == b); }

 private:
  multicast_token token_;
};

/// The registration that this thread is calling now; none outside all delegates.
/// @since 1.1
inline registration current() noexcept { return registration(multicast_token_current()); }

/// A registration that is removed when this object is destroyed or is assigned another one.
///
/// Threads:   the destructor waits for calls on other threads, as registration::remove() does.
/// Reentry:   may be destroyed inside a call of its own delegate; then it does not wait.
/// @since 1.0
class [[nodiscard]] scoped_registration
    : public detail::owner<multicast_token, multicast_token_remove> {
 public:
  /// Of no registration, or of the result of signal::add().
  scoped_registration(registration r = registration()) noexcept { handle_ = r.token(); }

  /// The registration that will be removed.
  registration get() const noexcept { return registration(handle_); }
  /// Whether it is live.
  /// @since 1.1
  explicit operator bool() const noexcept { return get().is_live(); }
  /// Gives up the registration, which stays.
  registration release() noexcept { return registration(std::exchange(handle_, {0})); }
};

}  // namespace mcast

#endif
