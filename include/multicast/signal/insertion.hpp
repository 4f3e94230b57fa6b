// SPDX-License-Identifier: MIT
//
// Owns a signal's multicast and inserts delegates into it.
#ifndef MULTICAST_SIGNAL_INSERTION_HPP
#define MULTICAST_SIGNAL_INSERTION_HPP

#include <cstdint>
#include <type_traits>
#include <utility>

#include "../detail/contexts.hpp"
#include "../detail/frame.hpp"
#include "../detail/kept_token.hpp"
#include "../detail/lazy_multicast.hpp"
#include "../detail/process.hpp"
#include "../error.hpp"
#include "../options.hpp"
#include "../registration.hpp"
#include "calls.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

template <typename R, typename... Args>
class additions;

/// Owns a signal's multicast and inserts delegates into it.
template <typename R, typename... Args>
class insertion : public calls<R, Args...> {
  using base = calls<R, Args...>;

 public:
  using base::is_queueable;

  /// The multicast, for use with the functions of multicast.h. Do not invoke it or add delegates to
  /// it.
  ///
  /// @return The handle; zero before the first add and after a move.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.0
  multicast handle() const noexcept { return target_.get(); }

 protected:
  template <typename, typename...>
  friend class additions;

  constexpr insertion() noexcept = default;
  explicit insertion(multicast made) noexcept : target_(made) {}

  template <typename Queue>
  static options checked(const basic_options<Queue> &how) {
    options result;
    result.once = how.once;
    result.latest = how.latest;
    result.unique = how.unique;
    result.at_front = how.at_front;
    result.priority = how.priority;
    result.lifetime = how.lifetime;
    result.queue = static_cast<multicast_queue>(how.queue);
    result.label = how.label;
    result.no_replay = how.no_replay;
    result.group = how.group;
    return result;
  }
  static options checked(const detail::queued_options &how) {
    static_assert(is_queueable,
                  "this signal cannot be queued: give it arguments that are copyable values or "
                  "references to const, and the result void");
    return how;
  }

  /// Adds a delegate. `make(target)` creates its context, which the library then owns.
  template <typename Access, bool may_queue, typename Make>
  registration insert(const options *how, Make &&make) {
    const multicast target = target_.make();
    if (target.id == 0) return registration();  // failed, with -fno-exceptions
    multicast_token token = {0};
    constexpr bool needs_options = Access::is_owned;
    multicast_function function = base::template call<Access, base::ordinary>;
    if (!needs_options && how == nullptr) {
      detail::ensure(multicast_add(target, {function, make(target)}, nullptr, &token));
      return registration(token);
    }
    multicast_function other = base::template call<Access, base::special>;
    multicast_add_options given = MULTICAST_ADD_OPTIONS_INIT;
    if (how != nullptr) {
      given = *how;
      if (how->at_front && !find_priority_in_front(target, given.priority)) return registration();
      if constexpr (!std::is_void_v<R>) {
        // MULTICAST_ONCE would remove the delegate too early, when a result_range visits the signal
        // to collect its delegates.
        if (how->once) {
          given.flags &= ~MULTICAST_ONCE;
          std::swap(function, other);
        }
      }
      if (how->queue.id != 0) {
        if constexpr (may_queue) {
          std::swap(function, other);
          detail::copier<Args...>::set();
        } else {
          detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
          return registration();
        }
      }
    }
    if constexpr (Access::is_owned) {
      given.release = Access::release;
      if constexpr (detail::life<Access>::is_mortal) {
        given.lock = detail::life<Access>::lock;
        given.unlock = [](void *) noexcept {};
      }
    }
    void *const context = make(target);
    if (how != nullptr && how->unique) {
      static_cast<void>(multicast_remove_every_within(target, {other, context}, 0));
    }
    detail::ensure(multicast_add(target, {function, context}, &given, &token));
    if constexpr (Access::is_owned) {
      if constexpr (detail::life<Access>::is_mortal) detail::note_mortal(token);
    }
    if (how != nullptr && how->group != nullptr && token.id != 0) how->group->add(token);
    return registration(token);
  }

  /// Adds a delegate without options, for an observer that stores the token.
  template <typename Access>
  static registration insert_kept(multicast target, void *context, kept_token &kept) {
    static_assert(!Access::is_owned);
    const multicast_function function = base::template call<Access, base::ordinary>;
    const multicast_status status =
        multicast_add(target, {function, context}, nullptr, kept.place());
    const registration added(kept_token::end(&kept));
    detail::ensure(status);
    return added;
  }

  mutable detail::lazy_multicast target_;

 private:
  /// Finds a priority above the first delegate's priority. Two concurrent adds may find the same
  /// priority. Their delegates are then called in the order in which they were added, before all
  /// others.
  static bool find_priority_in_front(multicast target, int32_t &found) {
    found = (1 << 30) - 1;
    const auto first = [](void *context, const multicast_registration *each) {
      int32_t &highest = *static_cast<int32_t *>(context);
      if (each->priority > highest) highest = each->priority;
      return false;
    };
    int64_t status = multicast_enumerate(target, first, &found);
    if (found == INT32_MAX) status = MULTICAST_ERROR_LIMIT;
    if (detail::ensure(status) < 0) return false;
    ++found;
    return true;
  }
};

}  // namespace mcast::detail

#endif
