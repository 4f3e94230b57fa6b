// SPDX-License-Identifier: MIT
//
// The common base of signals with and without results.
#ifndef MULTICAST_SIGNAL_BASIC_SIGNAL_HPP
#define MULTICAST_SIGNAL_BASIC_SIGNAL_HPP

#include <cstddef>

#include "../detail/frame.hpp"
#include "../detail/process.hpp"
#include "../error.hpp"
#include "../policies.hpp"
#include "connections.hpp"

namespace MULTICAST_HPP_NAMESPACE {

class scoped_pause;
class watch;
template <typename Signature>
class signal;
template <typename Signature>
class connectable;

}  // namespace mcast

namespace MULTICAST_HPP_NAMESPACE::detail {

// The compiler shows this name in the first line of its message if no other overload matches.
struct these_are_not_the_arguments_of_the_signal;

/// Deleted overloads that match calls with incorrect arguments. `...` matches only if no other
/// overload does. For a signal without arguments, however, a call without arguments would be
/// ambiguous, so the specialization for such signals takes a pointer.
template <bool has_arguments>
struct refused_arguments {
  these_are_not_the_arguments_of_the_signal operator()(...) const = delete;
  these_are_not_the_arguments_of_the_signal invoke(...) const = delete;
};
template <>
struct refused_arguments<false> {
  these_are_not_the_arguments_of_the_signal operator()(const refused_arguments *) const = delete;
  these_are_not_the_arguments_of_the_signal invoke(const refused_arguments *) const = delete;
};

/// Creates a signal's multicast with policies. If the signal does not support these policies,
/// throws or, with -fno-exceptions, returns zero.
template <typename R, bool is_queueable, typename... Args>
multicast create_with_policies(const policies &how) {
  const bool is_recursive = how.reentry == reentry::recurse;
  const bool is_kept = how.replay != 0 || !(is_recursive || how.reentry == reentry::refuse);
  if ((is_kept && !is_queueable) || !(is_recursive || std::is_void_v<R>)) {
    detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
    return {0};
  }
  if constexpr (is_queueable) copier<Args...>::set();
  multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  options.reentry = static_cast<multicast_reentry>(how.reentry);
  options.label = how.label;
  options.replay = how.replay;
  if (how.listeners_changed) {
    options.context = ::new listeners_changed_function(how.listeners_changed);
    options.listeners_changed = [](void *told, multicast, bool has_listeners) {
      detail::guard({}, [&] { (*static_cast<listeners_changed_function *>(told))(has_listeners); });
    };
    options.release = [](void *told) { ::delete static_cast<listeners_changed_function *>(told); };
  }
  const multicast made = multicast_create_with(&options);
  if (made.id == 0) {
    ::delete static_cast<listeners_changed_function *>(options.context);
    detail::fail(multicast_create_error());
  }
  return made;
}

/// The common base of signals with and without results.
template <typename R, typename... Args>
class basic_signal : public connections<R, Args...> {
  using base = connections<R, Args...>;

 public:
  using base::is_queueable;

  /// Creates a signal without delegates. The first add creates its multicast.
  ///
  /// Cost:      8 bytes; does not call the library.
  /// @since 1.0
  constexpr basic_signal() noexcept = default;

  /// Creates a signal with policies.
  ///
  /// @param how  The policies.
  ///
  /// Errors:    MULTICAST_ERROR_INVALID_ARGUMENT: the signal does not support the reentry or replay
  ///            policy; see policies. With -fno-exceptions, the signal is then created without
  ///            policies.
  /// Cost:      like multicast_create_with(). An invocation takes a few nanoseconds longer; with
  ///            replays, it also takes a lock, copies the arguments and allocates several times.
  /// @since 1.1
  explicit basic_signal(const policies &how)
      : base(detail::create_with_policies<R, is_queueable, Args...>(how)) {}
  explicit basic_signal(const detail::replaying_policies &how)
      : basic_signal(static_cast<const policies &>(how)) {
    static_assert(is_queueable,
                  "this signal cannot replay: give it arguments that are copyable values or "
                  "references to const, and the result void");
  }

  /// Returns a view of this signal that can only add and remove delegates.
  ///
  /// @return The view. It must not be used after this signal has been destroyed.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.1
  mcast::connectable<R(Args...)> connectable() noexcept {
    return mcast::connectable<R(Args...)>(static_cast<signal<R(Args...)> &>(*this));
  }
  /// Whether the whole signal is paused.
  ///
  /// @return True while a scoped_pause of this signal exists.
  ///
  /// Cost:      O(1); takes a lock while any signal is paused.
  /// @since 1.1
  bool is_paused() const noexcept { return detail::is_paused(target_.get()); }

 protected:
  /// Creates a signal that uses another signal's multicast. The other signal stays unchanged.
  basic_signal(multicast target, std::nullptr_t) noexcept : base(target) {}
  friend class mcast::scoped_pause;
  friend class mcast::watch;
  using base::target_;

  /// Returns the multicast to invoke, or none if the signal is paused or has no multicast yet.
  multicast invoked() const noexcept {
    const multicast target = target_.get();
    return detail::is_paused(target) ? multicast{0} : target;
  }
};

}  // namespace mcast::detail

#endif
