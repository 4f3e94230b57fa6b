// SPDX-License-Identifier: MIT
//
// Smart pointers, which replace <memory> because it takes longer to compile.
#ifndef MULTICAST_DETAIL_OWNERS_HPP
#define MULTICAST_DETAIL_OWNERS_HPP

#include <atomic>
#include <cstddef>
#include <utility>

#include "config.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The sole owner of an object.
template <typename T>
class owned {
 public:
  explicit owned(T *given = nullptr) noexcept : object_(given) {}
  owned(owned &&other) noexcept : object_(other.release()) {}
  owned &operator=(owned &&) = delete;
  ~owned() { delete object_; }

  T *get() const noexcept { return object_; }
  T &operator*() const noexcept { return *object_; }
  T *operator->() const noexcept { return object_; }
  T *release() noexcept { return std::exchange(object_, nullptr); }
  void reset(T *given) noexcept { delete std::exchange(object_, given); }

 private:
  T *object_;
};

/// A base class for shared objects, which counts their owners.
struct counted_owners {
  std::atomic<size_t> owners{0};
};
/// One of several owners of an object.
template <typename T>
class shared {
 public:
  explicit shared(T *given) noexcept : object_(given) {
    if (given != nullptr) given->owners.fetch_add(1, std::memory_order_relaxed);
  }
  shared(const shared &other) noexcept : shared(other.object_) {}
  shared &operator=(const shared &) = delete;
  ~shared() {
    // The last owner sees all changes that the others have made to the object.
    if (object_ != nullptr && object_->owners.fetch_sub(1) == 1) delete object_;
  }

  T *get() const noexcept { return object_; }
  T *operator->() const noexcept { return object_; }

 private:
  T *object_;
};

}  // namespace mcast::detail

#endif
