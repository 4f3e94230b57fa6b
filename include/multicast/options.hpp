// SPDX-License-Identifier: MIT
//
// Options for adding a delegate.
#ifndef MULTICAST_OPTIONS_HPP
#define MULTICAST_OPTIONS_HPP

#include <cstdint>
#include <type_traits>

#include "error.hpp"
#include "lifetime.hpp"
#include "queue.hpp"

namespace MULTICAST_HPP_NAMESPACE {

/// A delegate's queue, which may be given as an mcast::queue or as a handle.
/// @since 1.1
struct queue_reference {
  /// The handle's value.
  uint64_t id;
  /// Refers to the given handle, or by default to none.
  ///
  /// @param given  The handle.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  constexpr queue_reference(multicast_queue given = {0}) noexcept : id(given.id) {}
  /// Refers to a queue object, which must outlive the delegate.
  ///
  /// @param given  The object.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  queue_reference(const queue &given) noexcept : id(given.handle().id) {}
  /// The handle.
  ///
  /// @return The handle; zero if there is none.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  constexpr operator multicast_queue() const noexcept { return {id}; }
};

/// A delegate's lifetime, which may be given as an mcast::lifetime or as a handle.
/// @since 1.1
struct lifetime_reference {
  /// The handle's value.
  uint64_t id;
  /// Refers to the given handle, or by default to none.
  ///
  /// @param given  The handle.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  constexpr lifetime_reference(multicast_lifetime given = {0}) noexcept : id(given.id) {}
  /// Refers to a lifetime object.
  ///
  /// @param given  The object.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  lifetime_reference(const lifetime &given) noexcept : id(given.handle().id) {}
  /// The handle.
  ///
  /// @return The handle; zero if there is none.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  constexpr operator multicast_lifetime() const noexcept { return {id}; }
};

}  // namespace mcast

namespace MULTICAST_HPP_NAMESPACE::detail {

/// A group in mcast::groups. A signal calls add() with the token of each delegate that it adds to
/// the group.
class group {
 public:
  virtual void add(multicast_token token) = 0;

 protected:
  ~group() = default;
};

}  // namespace mcast::detail

namespace MULTICAST_HPP_NAMESPACE {

/// Options for adding a delegate; see multicast_add_options. In C++20, write `add(f, {.priority =
/// 3})`; in C++17, write `add(f, mcast::on(loop) | mcast::priority(3))`.
/// @since 1.0
template <typename Queue>
struct basic_options {
  /// The delegate is called at most once (default: false).
  /// @since 1.0
  bool once = false;
  /// Only the delegate's newest call stays in the queue (default: false).
  /// @since 1.0
  bool latest = false;
  /// Equal delegates are removed before the delegate is added (default: false). Delegates can be
  /// equal if they are functions, methods of an object, or lambdas that are not larger than a
  /// pointer. All of their parts must then be equal.
  /// @since 1.1
  bool unique = false;
  /// The delegate is placed before all existing ones, and its `priority` is ignored (default:
  /// false). Each such delegate receives a new priority, one above the highest existing priority.
  /// There are 2^30 such priorities. All of them become available again when the signal has no more
  /// delegates that were added this way. If they are used up, add() fails with
  /// MULTICAST_ERROR_LIMIT.
  /// @since 1.1
  bool at_front = false;
  /// The priority, which must be below 2^30 (default: 0). Delegates with a higher priority are
  /// called first.
  /// @since 1.0
  int32_t priority = 0;
  /// The delegate is removed when this lifetime ends (default: none).
  /// @since 1.0
  lifetime_reference lifetime = {};
  /// The queue that makes the delegate's calls; see signal::is_queueable (default: none).
  /// @since 1.0
  Queue queue = {};
  /// A human-readable name, which dump() and describe() print (default: nullptr, none). Up to 63
  /// bytes are copied.
  /// @since 1.1
  const char *label = nullptr;
  /// The delegate receives no replays; see policies::replay (default: false).
  /// @since 1.1
  bool no_replay = false;
  /// The delegate's group, set by groups::in() (default: none).
  /// @since 1.1
  detail::group *group = nullptr;

  /// Converts the options to the struct of the C interface, except for `at_front` and `group`.
  ///
  /// @return The options for multicast_add().
  ///
  /// Cost:      O(1).
  /// @since 1.0
  operator multicast_add_options() const noexcept {
    multicast_add_options result = MULTICAST_ADD_OPTIONS_INIT;
    result.flags = (once ? MULTICAST_ONCE : 0u) | (latest ? MULTICAST_LATEST : 0u) |
                   (unique ? MULTICAST_UNIQUE : 0u) | (no_replay ? MULTICAST_NO_REPLAY : 0u);
    result.priority = priority;
    result.lifetime = lifetime;
    result.queue = queue;
    result.label = label;
    return result;
  }
};
/// Options for signals whose calls can be queued. priority(), under() and similar functions return
/// this type.
/// @since 1.0
using options = basic_options<queue_reference>;

}  // namespace mcast

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Takes the place of the queue in the options of a signal whose calls cannot be queued.
struct no_queue {
  constexpr no_queue() noexcept = default;
  template <typename Queue>
  constexpr no_queue(const Queue &) noexcept {
    static_assert(never<Queue>,
                  "this signal cannot be queued: give it arguments that are copyable values or "
                  "references to const, and the result void");
  }
  operator multicast_queue() const noexcept { return {0}; }
};

/// Options that are known at compile time to contain a queue.
struct queued_options : options {};

inline void merge(options &into, const options &more) noexcept {
  into.once |= more.once;
  into.latest |= more.latest;
  into.unique |= more.unique;
  into.at_front |= more.at_front;
  into.no_replay |= more.no_replay;
  if (more.priority != 0) into.priority = more.priority;
  if (more.lifetime.id != 0) into.lifetime = more.lifetime;
  if (more.queue.id != 0) into.queue = more.queue;
  if (more.label != nullptr) into.label = more.label;
  if (more.group != nullptr) into.group = more.group;
}

template <typename T>
struct is_options : std::false_type {};
template <typename Queue>
struct is_options<basic_options<Queue>> : std::true_type {};
template <>
struct is_options<queued_options> : std::true_type {};

}  // namespace mcast::detail

namespace MULTICAST_HPP_NAMESPACE {

/// Combines options. If both sides set a queue, a lifetime, a priority, a label or a group, the
/// value of `right` is used.
///
/// @param left   Options.
/// @param right  Options.
/// @return The options.
///
/// Cost:      O(1).
/// @since 1.1
inline options operator|(options left, const options &right) noexcept {
  detail::merge(left, right);
  return left;
}
inline detail::queued_options operator|(detail::queued_options left,
                                        const options &right) noexcept {
  detail::merge(left, right);
  return left;
}
inline detail::queued_options operator|(const options &left,
                                        detail::queued_options right) noexcept {
  options both = left;
  detail::merge(both, right);
  static_cast<options &>(right) = both;
  return right;
}
inline detail::queued_options operator|(const detail::queued_options &left,
                                        const detail::queued_options &right) noexcept {
  return left | static_cast<const options &>(right);
}

}  // namespace mcast

namespace MULTICAST_HPP_NAMESPACE::detail {

template <typename Change>
constexpr options changed(Change &&change) noexcept {
  options result = {};
  change(result);
  return result;
}

}  // namespace mcast::detail

namespace MULTICAST_HPP_NAMESPACE {

/// Returns options with a queue. Adding a delegate with them does not compile if the signal's calls
/// cannot be queued.
///
/// @param queue  An mcast::queue or a handle.
/// @return The options.
///
/// Cost:      O(1).
/// @since 1.1
inline detail::queued_options on(queue_reference queue) noexcept {
  detail::queued_options result;
  result.queue = queue;
  return result;
}
/// Returns options with a lifetime.
///
/// @param lifetime  An mcast::lifetime or a handle.
/// @return The options.
///
/// Cost:      O(1).
/// @since 1.1
inline options under(lifetime_reference lifetime) noexcept {
  return detail::changed([&](options &how) { how.lifetime = lifetime; });
}
/// Returns options with a priority.
///
/// @param priority  The priority, below 2^30. Delegates with a higher priority are called first.
/// @return The options.
///
/// Cost:      O(1).
/// @since 1.1
inline options priority(int32_t priority) noexcept {
  return detail::changed([&](options &how) { how.priority = priority; });
}
/// Returns options with a label: `add(f, mcast::label(MULTICAST_HERE))`.
///
/// @param label  A human-readable name. Up to 63 bytes are copied when the delegate is added.
/// @return The options.
///
/// Cost:      O(1).
/// @since 1.1
inline options label(const char *label) noexcept {
  return detail::changed([&](options &how) { how.label = label; });
}
/// Calls the delegate at most once: `add(f, mcast::once | mcast::on(loop))`.
/// @since 1.1
MULTICAST_HPP_LOCAL inline constexpr options once =
    detail::changed([](options &how) { how.once = true; });
/// Only the delegate's newest call stays in the queue.
/// @since 1.1
MULTICAST_HPP_LOCAL inline constexpr options latest =
    detail::changed([](options &how) { how.latest = true; });
/// Removes equal delegates before the delegate is added; see basic_options::unique.
/// @since 1.1
MULTICAST_HPP_LOCAL inline constexpr options unique =
    detail::changed([](options &how) { how.unique = true; });
/// Places the delegate before all existing ones.
/// @since 1.1
MULTICAST_HPP_LOCAL inline constexpr options at_front =
    detail::changed([](options &how) { how.at_front = true; });
/// Places the delegate after all delegates with another priority, even those in groups.
/// Boost.Signals2 does this for slots without a group. Several such delegates are called in the
/// order in which they were added.
/// @since 1.1
MULTICAST_HPP_LOCAL inline constexpr options at_back =
    detail::changed([](options &how) { how.priority = INT32_MIN; });
/// The delegate receives no replays; see policies::replay.
/// @since 1.1
MULTICAST_HPP_LOCAL inline constexpr options no_replay =
    detail::changed([](options &how) { how.no_replay = true; });

}  // namespace mcast

#endif
