// SPDX-License-Identifier: MIT
//
// Delegates that can be found by their object.
#ifndef MULTICAST_DETAIL_KEYED_CONTEXTS_HPP
#define MULTICAST_DETAIL_KEYED_CONTEXTS_HPP

#include <atomic>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "callable.hpp"
#include "process.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The context of a delegate that can be found by its object.
struct keyed {
  const void *object;
  multicast_function kind;
  size_t owners = 1;

  keyed(const void *of, multicast_function type) noexcept : object(of), kind(type) {}
  keyed(const keyed &) = delete;
  keyed &operator=(const keyed &) = delete;
  virtual ~keyed() = default;
  /// The kind is the same.
  virtual bool is_equal(const keyed &) const = 0;
};

/// All of these contexts. Equal ones are one.
class keyed_contexts {
 public:
  keyed *add(std::unique_ptr<keyed> made) {
    const process_lock lock(guarded::keyed);
    if (keyed *const equal = find(*made)) {
      ++equal->owners;
      return equal;
    }
    contexts_.emplace(made->object, made.get());
    return made.release();
  }
  void release(keyed *context) noexcept {
    std::unique_ptr<keyed> last;  // destroyed without the lock
    const process_lock lock(guarded::keyed);
    if (--context->owners > 0) return;
    last.reset(context);
    const auto range = contexts_.equal_range(context->object);
    for (auto i = range.first; i != range.second; ++i) {
      if (i->second == context) {
        contexts_.erase(i);
        break;
      }
    }
  }
  /// The caller owns the result, too.
  keyed *retain(const keyed &wanted) {
    const process_lock lock(guarded::keyed);
    keyed *const equal = find(wanted);
    if (equal != nullptr) ++equal->owners;
    return equal;
  }
  std::vector<keyed *> retain(const void *object) {
    std::vector<keyed *> all;
    const process_lock lock(guarded::keyed);
    const auto range = contexts_.equal_range(object);
    for (auto i = range.first; i != range.second; ++i) all.push_back(i->second);
    for (keyed *context : all) ++context->owners;
    return all;
  }

 private:
  keyed *find(const keyed &wanted) const {
    const auto range = contexts_.equal_range(wanted.object);
    for (auto i = range.first; i != range.second; ++i) {
      if (i->second->kind == wanted.kind && i->second->is_equal(wanted)) return i->second;
    }
    return nullptr;
  }

  std::unordered_multimap<const void *, keyed *> contexts_;
};
MULTICAST_API inline std::atomic<keyed_contexts *> keyed_delegates{nullptr};
inline keyed_contexts &all_keyed() { return lasting(keyed_delegates); }

template <typename F>
struct keyed_callable final : keyed {
  F function;

  keyed_callable(const void *of, multicast_function type, F given)
      : keyed(of, type), function(std::move(given)) {}
  bool is_equal(const keyed &other) const override {
    return same(function, static_cast<const keyed_callable &>(other).function);
  }

 private:
  template <typename Pointer, typename Method>
  static bool same(const bound<Pointer, Method> &a, const bound<Pointer, Method> &b) {
    return a == b;
  }
  template <typename T, typename Method>
  static bool same(const weak_bound<std::weak_ptr<T>, Method> &a,
                   const weak_bound<std::weak_ptr<T>, Method> &b) {
    return a.method == b.method && !a.object.owner_before(b.object) &&
           !b.object.owner_before(a.object);
  }
  template <typename Other>
  static bool same(const Other &, const Other &) {
    return false;
  }
};

template <typename F>
struct in_keyed {
  using function = F;
  static constexpr bool is_owned = true;
  static F &get(void *context) noexcept {
    return static_cast<keyed_callable<F> *>(static_cast<keyed *>(context))->function;
  }
  static void release(void *context) noexcept {
    all_keyed().release(static_cast<keyed *>(context));
  }
  template <typename Body>
  static void use(void *context, Body &&body) {
    body(get(context));
  }
};

}  // namespace mcast::detail

#endif
