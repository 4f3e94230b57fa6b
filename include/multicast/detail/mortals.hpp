// SPDX-License-Identifier: MIT
//
// Counts the delegates that are removed when an object they track dies.
#ifndef MULTICAST_DETAIL_MORTALS_HPP
#define MULTICAST_DETAIL_MORTALS_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "config.hpp"
#include "process_data.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

inline std::atomic<size_t> &mortals_like(uint64_t target) noexcept {
  return process().mortals_alike[(target * 0x9e3779b97f4a7c15) >> 56];
}
inline uint64_t hash_of(multicast_token token) noexcept {
  return (token.id * 0x9e3779b97f4a7c15) >> 52;
}
/// Called when a delegate with tracked objects has been added.
inline void note_mortal(multicast_token token) noexcept {
  const uint64_t hash = hash_of(token);
  process().mortal_tokens[hash / 64].fetch_or(uint64_t{1} << hash % 64);
}
/// Whether a registration may have tracked objects.
inline bool may_be_mortal(multicast_token token) noexcept {
  if (counts().mortals.load(std::memory_order_relaxed) == 0) return false;
  const uint64_t hash = hash_of(token);
  return (process().mortal_tokens[hash / 64].load(std::memory_order_relaxed) >> hash % 64 & 1) != 0;
}
/// Whether a signal may have delegates with tracked objects.
inline bool has_mortals(multicast target) noexcept {
  return counts().mortals.load(std::memory_order_relaxed) != 0 &&
         (process().mortal_signals.load(std::memory_order_relaxed) != 0 ||
          mortals_like(target.id).load(std::memory_order_relaxed) != 0);
}
/// Removes delegates whose tracked objects have died, if the signal may have any.
inline void prune(multicast target) noexcept {
  if (has_mortals(target)) static_cast<void>(multicast_prune(target));
}

/// Counts one delegate with tracked objects from begin() until its destruction. Copies are counted
/// separately.
class mortal {
 public:
  mortal() noexcept = default;
  mortal(const mortal &) noexcept {}
  mortal &operator=(const mortal &) noexcept { return *this; }  // NOLINT(cert-oop54-cpp)
  ~mortal() {
    if (target_ == 0) return;
    mortals_like(target_).fetch_sub(1);
    process().mortals.fetch_sub(1);
  }
  void begin(multicast target) noexcept {
    target_ = target.id;
    mortals_like(target_).fetch_add(1);
    process().mortals.fetch_add(1);
  }

 private:
  uint64_t target_ = 0;
};

/// Whether the tracked objects of a live registration are alive. If not, removes the registration.
inline bool is_alive(multicast_token token) noexcept {
  multicast_registration all = MULTICAST_REGISTRATION_INIT;
  if (multicast_token_get_registration(token, &all) != MULTICAST_OK) return false;
  if (!has_mortals(all.target)) return true;
  // A visit checks only this registration's objects, so it costs less than a prune. But a visit
  // skips paused delegates, and would remove a delegate that was added with MULTICAST_ONCE.
  if (all.is_paused || (all.flags & MULTICAST_ONCE) != 0) {
    static_cast<void>(multicast_prune(all.target));
  } else {
    const auto pass = [](void *, const multicast_delegate *) { return true; };
    static_cast<void>(multicast_token_visit(token, pass, nullptr));
  }
  return multicast_token_is_valid(token);
}

}  // namespace mcast::detail

#endif
