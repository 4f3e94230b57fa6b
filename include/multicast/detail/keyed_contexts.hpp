// SPDX-License-Identifier: MIT
//
// Delegates that can be found by their object.
#ifndef MULTICAST_DETAIL_KEYED_CONTEXTS_HPP
#define MULTICAST_DETAIL_KEYED_CONTEXTS_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "callable.hpp"
#include "contexts.hpp"
#include "process.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// What the contexts of equal delegates have in common.
struct key {
  const void *object;
  uint64_t target;
  multicast_function kind;
};

/// The context of a delegate that can be found by its object.
struct keyed {
  const key of;
  const bool is_comparable;  // there may be equal ones
  size_t owners = 1;
  keyed *next = nullptr, **link = nullptr;  // in its bucket

  keyed(const key &given, bool comparable) noexcept : of(given), is_comparable(comparable) {}
  keyed(const keyed &) = delete;
  keyed &operator=(const keyed &) = delete;
  virtual ~keyed() = default;
  /// The kind is the same.
  virtual bool is_equal(const keyed &) const = 0;
  /// Whether it is this method of any object; `type` is that of a method_id.
  virtual bool has_method(const void *type, const void *method) const = 0;
};

/// All of these contexts, in parts. Equal ones are one. MULTICAST_API, as `handler`.
class alignas(64) keyed_contexts {
 public:
  static keyed *add(std::unique_ptr<keyed> made) {
    const uint64_t hash = hash_of(made->of.object);
    const process_lock lock(guarded::keyed, part_of(hash));
    keyed_contexts &here = all[part_of(hash)];
    if (keyed *const equal = here.find(*made, hash)) {
      ++equal->owners;
      return equal;
    }
    here.insert(made.get(), hash);
    return made.release();
  }
  static void release(keyed *context) noexcept {
    const uint64_t hash = hash_of(context->of.object);
    std::unique_ptr<keyed> last;  // destroyed without the lock
    const process_lock lock(guarded::keyed, part_of(hash));
    if (--context->owners > 0) return;
    last.reset(context);
    *context->link = context->next;
    if (context->next != nullptr) context->next->link = context->link;
    --all[part_of(hash)].count_;
  }
  /// The caller owns the result, too.
  static keyed *retain(const keyed &wanted) {
    const uint64_t hash = hash_of(wanted.of.object);
    const process_lock lock(guarded::keyed, part_of(hash));
    keyed *const equal = all[part_of(hash)].find(wanted, hash);
    if (equal != nullptr) ++equal->owners;
    return equal;
  }
  /// Those of an object in a signal.
  static std::vector<keyed *> retain(const void *object, multicast target) {
    std::vector<keyed *> found;
    const uint64_t hash = hash_of(object);
    const process_lock lock(guarded::keyed, part_of(hash));
    const keyed_contexts &here = all[part_of(hash)];
    if (here.size_ == 0) return found;
    for (keyed *const first : here.bucket_of(hash).first) {
      for (keyed *each = first; each != nullptr; each = each->next) {
        if (each->of.object == object && each->of.target == target.id) found.push_back(each);
      }
    }
    for (keyed *context : found) ++context->owners;
    return found;
  }

  /// Those of a method in a signal, of any object.
  static std::vector<keyed *> retain(multicast target, const void *type, const void *method) {
    std::vector<keyed *> found;
    for (size_t part = 0; part < parts; ++part) {
      const size_t before = found.size();
      const process_lock lock(guarded::keyed, part);
      const keyed_contexts &here = all[part];
      for (size_t i = 0; i < here.size_; ++i) {
        for (keyed *const first : here.buckets_[i].first) {
          for (keyed *each = first; each != nullptr; each = each->next) {
            const bool is_here = each->of.target == target.id;
            if (is_here && each->has_method(type, method)) found.push_back(each);
          }
        }
      }
      for (size_t i = before; i < found.size(); ++i) ++found[i]->owners;
    }
    return found;
  }

 private:
  /// Those that are not comparable, and those that are: these are few.
  struct bucket {
    keyed *first[2] = {};

    void insert(keyed *context) noexcept {
      keyed *&head = first[context->is_comparable ? 1 : 0];
      context->next = head;
      context->link = &head;
      if (head != nullptr) head->link = &context->next;
      head = context;
    }
  };

  static uint64_t hash_of(const void *object) noexcept {
    return reinterpret_cast<uintptr_t>(object) * uint64_t{0x9e3779b97f4a7c15};
  }
  static size_t part_of(uint64_t hash) noexcept { return hash >> 62; }
  bucket &bucket_of(uint64_t hash) const noexcept { return buckets_[(hash >> 24) & (size_ - 1)]; }
  keyed *find(const keyed &wanted, uint64_t hash) const {
    if (!wanted.is_comparable || size_ == 0) return nullptr;
    for (keyed *each = bucket_of(hash).first[1]; each != nullptr; each = each->next) {
      if (each->of.object == wanted.of.object && each->of.target == wanted.of.target &&
          each->of.kind == wanted.of.kind && each->is_equal(wanted)) {
        return each;
      }
    }
    return nullptr;
  }
  void insert(keyed *context, uint64_t hash) {
    if (count_ >= size_) grow();
    bucket_of(hash).insert(context);
    ++count_;
  }
  void grow() {
    const size_t before = size_;
    auto made = std::make_unique<bucket[]>(before == 0 ? 8 : 2 * before);
    const std::unique_ptr<bucket[]> old(std::exchange(buckets_, made.release()));
    size_ = before == 0 ? 8 : 2 * before;
    for (size_t i = 0; i < before; ++i) {
      for (keyed *each : old[i].first) {
        while (each != nullptr) {
          keyed *const next = each->next;
          bucket_of(hash_of(each->of.object)).insert(each);
          each = next;
        }
      }
    }
  }

  bucket *buckets_ = nullptr;  // never freed: static objects may use them
  size_t size_ = 0;            // a power of two
  size_t count_ = 0;

  MULTICAST_API static keyed_contexts all[parts];
};
static_assert(parts == 4, "see part_of()");
inline keyed_contexts keyed_contexts::all[parts];

/// Its address tells the types of methods apart.
template <typename Method>
MULTICAST_API inline char method_id = 0;

/// What is equal of delegates with objects: their methods and objects; and of callables whose bytes
/// are all that they are (`is_plain`) these.
template <bool is_plain>
struct equality {
  template <typename Pointer, typename Method>
  static constexpr bool can_be_equal(bound<Pointer, Method> *) {
    return true;
  }
  template <typename T, typename Method>
  static constexpr bool can_be_equal(weak_bound<std::weak_ptr<T>, Method> *) {
    return true;
  }
  template <typename F, typename T>
  static constexpr bool can_be_equal(tracked<F, std::weak_ptr<T>> *) {
    return is_plain;
  }
  template <typename Signature>
  static constexpr bool can_be_equal(forwarding<Signature> *) {
    return true;
  }
  template <typename F>
  static constexpr bool can_be_equal(extended<F> *) {
    return can_be_equal(static_cast<F *>(nullptr));
  }
  template <typename F>
  static constexpr bool can_be_equal(F *) {
    return is_plain && !is_mortal<F>;
  }

  template <typename Pointer, typename Method>
  static bool same(const bound<Pointer, Method> &a, const bound<Pointer, Method> &b) {
    return a == b;
  }
  template <typename T, typename Method>
  static bool same(const weak_bound<std::weak_ptr<T>, Method> &a,
                   const weak_bound<std::weak_ptr<T>, Method> &b) {
    return a.method == b.method && is_same(a.object, b.object);
  }
  template <typename F, typename T>
  static bool same(const tracked<F, std::weak_ptr<T>> &a, const tracked<F, std::weak_ptr<T>> &b) {
    return same(a.function, b.function) && is_same(std::get<0>(a.objects), std::get<0>(b.objects));
  }
  template <typename Signature>
  static bool same(const forwarding<Signature> &a, const forwarding<Signature> &b) {
    return a.target.id == b.target.id;
  }
  template <typename F>
  static bool same(const extended<F> &a, const extended<F> &b) {
    return same(a.function, b.function);
  }
  template <typename F>
  static bool same(const F &a, const F &b) {
    static_cast<void>(a), static_cast<void>(b);
    if constexpr (is_plain && !is_mortal<F>) {
      return in_context<F>::pack(a) == in_context<F>::pack(b);
    }
    return false;
  }
};

template <typename F, bool is_plain>
struct keyed_callable final : keyed {
  F function;

  keyed_callable(const key &given, F callable)
      : keyed(given, equality<is_plain>::can_be_equal(static_cast<F *>(nullptr))),
        function(std::move(callable)) {}
  bool is_equal(const keyed &other) const override {
    return equality<is_plain>::same(function,
                                    static_cast<const keyed_callable &>(other).function);
  }
  bool has_method(const void *type, const void *method) const override {
    return is_method(function, type, method);
  }

 private:
  template <typename Pointer, typename Method>
  static bool is_method(const bound<Pointer, Method> &f, const void *type, const void *method) {
    return type == &method_id<Method> && f.method == *static_cast<const Method *>(method);
  }
  template <typename Weak, typename Method>
  static bool is_method(const weak_bound<Weak, Method> &f, const void *type, const void *method) {
    return type == &method_id<Method> && f.method == *static_cast<const Method *>(method);
  }
  template <typename Extended>
  static bool is_method(const extended<Extended> &f, const void *type, const void *method) {
    return is_method(f.function, type, method);
  }
  template <typename Other>
  static bool is_method(const Other &, const void *, const void *) {
    return false;
  }
};

template <typename F, bool is_plain = false>
struct in_keyed {
  using function = F;
  static constexpr bool is_owned = true;
  static F &get(void *context) noexcept {
    return static_cast<keyed_callable<F, is_plain> *>(static_cast<keyed *>(context))->function;
  }
  static void release(void *context) noexcept {
    keyed_contexts::release(static_cast<keyed *>(context));
  }
  template <typename Body>
  static void use(void *context, Body &&body) {
    body(get(context));
  }
};

}  // namespace mcast::detail

#endif
