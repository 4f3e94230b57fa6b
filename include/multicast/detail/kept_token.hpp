// SPDX-License-Identifier: MIT
//
// The token of one delegate of an observer.
#ifndef MULTICAST_DETAIL_KEPT_TOKEN_HPP
#define MULTICAST_DETAIL_KEPT_TOKEN_HPP

#include <atomic>

#include "config.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The token of one delegate of an observer. The observer shares it with an add that has begun: as
/// soon as the delegate can be called, a call may destroy the observer, before the add returns.
class kept_token {
 public:
  /// Begins an add. It fails while another one goes on, and while the last delegate is live or may
  /// be in a call, for which the end of the observer has to wait.
  bool begin() noexcept {
    int observer = 1;
    if (!users_.compare_exchange_strong(observer, 2)) return false;
    const multicast_token last = get();
    if (last.id == 0 ||
        (!multicast_token_is_valid(last) &&
         multicast_token_remove_nowait(last) == MULTICAST_ERROR_INVALID_HANDLE)) {
      return true;
    }
    leave();
    return false;
  }
  /// For multicast_add(), which writes the token before the delegate can be called.
  multicast_token *place() noexcept { return &token_; }
  /// Pairs with the library's store, for another thread that ends the observer meanwhile.
  multicast_token get() const noexcept { return {__atomic_load_n(&token_.id, __ATOMIC_RELAXED)}; }
  /// The observer or the add does not use it any more.
  void leave() noexcept {
    if (users_.fetch_sub(1) == 1) ::delete this;
  }

 private:
  /// The observer, and an add.
  std::atomic<int> users_{1};
  multicast_token token_ = {0};
};

}  // namespace mcast::detail

#endif
