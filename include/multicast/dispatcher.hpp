// SPDX-License-Identifier: MIT
//
// A dispatcher has a signal for each key. multicast.hpp does not include this header.
#ifndef MULTICAST_DISPATCHER_HPP
#define MULTICAST_DISPATCHER_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "detail/key_tree.hpp"
#include "signal.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// Maps each key to a signal. Finding a signal takes no lock.
///
///     mcast::dispatcher<std::string, void(const event &)> events;
///     events.add("opened", [](const event &e) { ... });
///     events("opened", e);
///     events["opened"].add(window, &Window::open, mcast::on(loop));
///
/// Keys and their signals are not freed until the dispatcher is destroyed, so keys from an
/// untrusted source can use up more and more memory.
///
/// A moved-from dispatcher is empty. Moving does not change the addresses of the signals, which
/// keep their delegates.
///
/// Reentry:   delegates may call anything, and may even destroy this object.
/// @since 1.1
template <typename Key, typename Signature, typename Hash = std::hash<Key>,
          typename Equal = std::equal_to<Key>>
class dispatcher {
 public:
  /// Returns the signal of a key. Creates the signal if it does not exist yet.
  ///
  /// @param key  The key, which is copied.
  /// @return The signal, whose address does not change. Do not move from it.
  ///
  /// Errors:    std::bad_alloc, or any exception thrown while the key is copied.
  /// Cost:      O(log keys); one allocation for a new key.
  /// @since 1.1
  signal<Signature> &operator[](const Key &key) { return signals_.find_or_make(key); }
  /// Returns the signal of a key, if it exists.
  ///
  /// @param key  The key.
  /// @return The signal; nullptr if there is none.
  ///
  /// Cost:      O(log keys); takes no lock.
  /// @since 1.1
  signal<Signature> *find(const Key &key) const { return signals_.find(key); }
  /// Calls `(*this)[key].add(...)`. Options are passed as on(), priority() and so on.
  ///
  /// @param key    The key.
  /// @param given  As for signal::add().
  /// @return The registration.
  ///
  /// Errors:    like operator[] and signal::add().
  /// Cost:      like operator[] and signal::add().
  /// @since 1.1
  template <typename... Given>
  registration add(const Key &key, Given &&...given) {
    return (*this)[key].add(std::forward<Given>(given)...);
  }
  /// Like `(*this)[key].remove(...)`, but does not create a signal if the key has none.
  ///
  /// @param key    The key.
  /// @param given  As for signal::remove().
  /// @return The result of signal::remove().
  ///
  /// Cost:      like find() and signal::remove().
  /// @since 1.1
  template <typename... Given>
  auto remove(const Key &key, Given &&...given) {
    signal<Signature> none;
    signal<Signature> *const found = find(key);
    return (found == nullptr ? none : *found).remove(std::forward<Given>(given)...);
  }
  /// Invokes the signal of a key, if there is one.
  ///
  /// @param key        The key.
  /// @param arguments  The signal's arguments.
  /// @return Nothing if the signal has no results; otherwise the last result, if there is one.
  ///
  /// Errors:    like the signal.
  /// Threads:   like the signal.
  /// Reentry:   delegates may call anything, and may destroy this object.
  /// Cost:      like find() and signal::invoke().
  /// @since 1.1
  template <typename... Given>
  auto operator()(const Key &key, Given &&...arguments) const {
    using result =
        decltype(std::declval<const signal<Signature> &>()(std::forward<Given>(arguments)...));
    const signal<Signature> *const found = find(key);
    if constexpr (std::is_void_v<result>) {
      if (found != nullptr) (*found)(std::forward<Given>(arguments)...);
    } else {
      return found == nullptr ? result() : (*found)(std::forward<Given>(arguments)...);
    }
  }
  /// Like operator(), but returns the number of calls.
  ///
  /// @param key        The key.
  /// @param arguments  The signal's arguments. The signal must not have results.
  /// @return The number of delegates called or queued.
  ///
  /// Errors:    like the signal.
  /// Cost:      like find() and signal::invoke().
  /// @since 1.1
  template <typename... Given>
  int64_t invoke(const Key &key, Given &&...arguments) const {
    const signal<Signature> *const found = find(key);
    return found == nullptr ? 0 : found->invoke(std::forward<Given>(arguments)...);
  }
  /// Returns the number of delegates of a key.
  ///
  /// @param key  The key.
  /// @return The number.
  ///
  /// Cost:      like find() and signal::size().
  /// @since 1.1
  size_t size(const Key &key) const {
    const signal<Signature> *const found = find(key);
    return found == nullptr ? 0 : found->size();
  }
  /// Removes all delegates of a key.
  ///
  /// @param key  The key.
  /// @return The number of removed delegates.
  ///
  /// Threads:   waits for the delegates' running calls on other threads.
  /// Cost:      like find() and signal::clear().
  /// @since 1.1
  size_t clear(const Key &key) {
    signal<Signature> *const found = find(key);
    return found == nullptr ? 0 : found->clear();
  }

 private:
  detail::key_tree<Key, signal<Signature>, Hash, Equal> signals_;
};

}  // namespace mcast

#endif
