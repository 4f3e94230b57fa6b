// SPDX-License-Identifier: MIT
//
// Signals that are delegates of other signals.
#ifndef MULTICAST_DETAIL_FORWARDING_HPP
#define MULTICAST_DETAIL_FORWARDING_HPP

#include <cstdint>
#include <tuple>  // declares std::reference_wrapper
#include <type_traits>
#include <utility>

#include "process_data.hpp"

namespace MULTICAST_HPP_NAMESPACE {

template <typename Signature>
class signal;

}  // namespace mcast

namespace MULTICAST_HPP_NAMESPACE::detail {

/// A signal that does not own its multicast.
template <typename Signature>
class borrowed : public signal<Signature> {
 public:
  explicit borrowed(multicast target) noexcept : signal<Signature>(target, nullptr) {}
  borrowed(const borrowed &) = delete;
  borrowed &operator=(const borrowed &) = delete;
  ~borrowed() { this->target_.release(); }
};

/// Invokes another signal through its handle. The handle stays valid when the signal is moved and
/// becomes stale when it is destroyed.
template <typename Signature>
struct forwarding {
  multicast target;

  bool is_dead() const noexcept { return !multicast_is_valid(target); }
};
template <typename F>
inline constexpr bool is_forwarding = false;
template <typename Signature>
inline constexpr bool is_forwarding<forwarding<Signature>> = true;

/// The signature of a signal that is passed as a variable or std::ref(); void if the type is not a
/// signal.
template <typename Given>
struct forwarded {
  using type = void;
};
template <typename Signature>
struct forwarded<signal<Signature> &> {
  using type = Signature;
};
template <typename Signature>
struct forwarded<const signal<Signature> &> {
  using type = Signature;
};
template <typename T>
struct forwarded<std::reference_wrapper<T>> : forwarded<T &> {};
template <typename T>
struct forwarded<std::reference_wrapper<T> &> : forwarded<T &> {};
template <typename T>
struct forwarded<const std::reference_wrapper<T> &> : forwarded<T &> {};

/// Accesses another signal, whose handle is the context.
template <typename Signature>
struct of_signal {
  using function = forwarding<Signature>;
  static constexpr bool is_owned = true;  // so that `lock` and `release` are called
  static void *pack(multicast target) noexcept {
    static_assert(sizeof(void *) == sizeof target.id,
                  "on 32-bit processors a signal cannot be added to another signal");
    return reinterpret_cast<void *>(target.id);
  }
  static function get(void *context) noexcept {
    return {{reinterpret_cast<uintptr_t>(context)}};
  }
  static void release(void *) noexcept {
    process().mortals.fetch_sub(1);
    process().mortal_signals.fetch_sub(1);
  }
  template <typename Body>
  static void use(void *context, Body &&body) {
    function called = get(context);
    body(called);
  }
};

}  // namespace mcast::detail

#endif
