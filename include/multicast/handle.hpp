// SPDX-License-Identifier: MIT
//
// Owners of C handles.
#ifndef MULTICAST_HANDLE_HPP
#define MULTICAST_HANDLE_HPP

#include <utility>

#include "error.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Owns a handle, and passes it to the function `end` when this object is destroyed.
template <typename Handle, multicast_status (*end)(Handle)>
class owner {
 public:
  /// The handle, for use with the functions of multicast.h.
  ///
  /// @return The handle; zero after a move.
  ///
  /// Cost:      O(1); does not call the library.
  /// @since 1.0
  Handle handle() const noexcept { return handle_; }

 protected:
  owner() noexcept = default;
  explicit owner(Handle made) : handle_(made) {
    if (made.id == 0) fail(multicast_create_error());
  }
  owner(owner &&other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  owner &operator=(owner &&other) noexcept {
    finish(std::exchange(handle_, std::exchange(other.handle_, Handle{})));
    return *this;
  }
  ~owner() { finish(handle_); }

  Handle handle_ = {0};

 private:
  static void finish(Handle handle) noexcept {
    if (handle.id != 0) static_cast<void>(end(handle));
  }
};

}  // namespace mcast::detail

#endif
