// SPDX-License-Identifier: MIT
//
// What was posted to a queue.
#ifndef MULTICAST_DETAIL_TASK_HPP
#define MULTICAST_DETAIL_TASK_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "failures.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// What was posted.
struct task {
  virtual void run() = 0;
  virtual ~task() = default;

  static void call(void *, uint32_t, const void *payload, size_t) {
    guard(failures(), [&] { static_cast<task *>(const_cast<void *>(payload))->run(); });
  }
  static void release(const void *payload, size_t) noexcept {
    delete static_cast<task *>(const_cast<void *>(payload));
  }
};

template <typename F>
struct posted final : task {
  F function;
  explicit posted(F &&given) : function(std::move(given)) {}
  explicit posted(const F &given) : function(given) {}
  void run() override { static_cast<void>(std::invoke(function)); }
};

}  // namespace mcast::detail

#endif
