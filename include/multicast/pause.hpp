// SPDX-License-Identifier: MIT
//
// Pauses that last until the end of a scope.
#ifndef MULTICAST_PAUSE_HPP
#define MULTICAST_PAUSE_HPP

#include <cstdint>
#include <utility>

#include "detail/process.hpp"
#include "signal.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// Pauses a registration or a whole signal until the end of a scope. Invocations of a paused signal
/// neither call nor queue anything. Pauses are counted, so a target with two pauses resumes when
/// both have ended. A delegate that was also paused by registration::pause() stays paused.
///
/// Threads:   any. Like multicast_token_pause(), the constructors do not wait for running calls.
/// @since 1.1
class [[nodiscard]] scoped_pause {
 public:
  /// Pauses a delegate.
  ///
  /// @param r  Its registration. If it is empty or has been removed, nothing is paused.
  ///
  /// Cost:      O(1); takes a lock and allocates once.
  /// @since 1.1
  explicit scoped_pause(registration r) { begin(r.token().id, false); }
  /// Pauses a delegate.
  ///
  /// @param r  Its registration.
  ///
  /// Cost:      O(1); takes a lock and allocates once.
  /// @since 1.1
  explicit scoped_pause(const scoped_registration &r) : scoped_pause(r.get()) {}
  /// Pauses a signal, so that its invocations neither call nor queue anything.
  ///
  /// @param s  The signal.
  ///
  /// Cost:      O(1); takes a lock and allocates once. During the pause, invocations of this
  ///            signal, and of one in 64 other signals, also take the lock.
  /// @since 1.1
  template <typename R, typename... Args>
  explicit scoped_pause(const detail::basic_signal<R, Args...> &s) {
    begin(s.target_.make().id, true);
  }
  scoped_pause(scoped_pause &&other) noexcept
      : id_(std::exchange(other.id_, 0)), is_signal_(other.is_signal_) {}
  scoped_pause &operator=(scoped_pause &&other) noexcept {
    scoped_pause taken(std::move(other));  // `other` may be this object
    std::swap(id_, taken.id_);
    std::swap(is_signal_, taken.is_signal_);
    return *this;
  }
  ~scoped_pause() { end(); }
  /// Ends the pause early. Calling this again has no effect.
  ///
  /// Cost:      O(1); takes a lock.
  /// @since 1.1
  void end() noexcept {
    const uint64_t id = std::exchange(id_, 0);
    if (id == 0) return;
    detail::pauses &all = detail::all_pauses();
    const detail::process_lock lock(detail::guarded::pauses);
    detail::pauses::entry &found = all.entries[id];  // exists until the last pause ends
    if (--found.count > 0) return;
    if (is_signal_) {
      detail::alike(id).fetch_sub(1);
      detail::process().paused_signals.fetch_sub(1);
    } else if (!found.is_kept) {
      static_cast<void>(multicast_token_resume({id}));
    }
    all.entries.erase(id);
  }

 private:
  void begin(uint64_t id, bool is_signal) {
    if (id == 0) return;
    detail::pauses &all = detail::all_pauses();
    const detail::process_lock lock(detail::guarded::pauses);
    detail::pauses::entry &entry = all.entries[id];
    id_ = id;
    is_signal_ = is_signal;
    if (entry.count++ > 0) return;
    if (is_signal) {
      detail::alike(id).fetch_add(1);
      detail::process().paused_signals.fetch_add(1);
    } else {
      entry.is_kept = registration(multicast_token{id}).is_paused();
      static_cast<void>(multicast_token_pause({id}));
    }
  }

  uint64_t id_ = 0;
  bool is_signal_ = false;
};

}  // namespace mcast

#endif
