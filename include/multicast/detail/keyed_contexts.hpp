// SPDX-License-Identifier: MIT
//
// Delegates that can be found by their object.
#ifndef MULTICAST_DETAIL_KEYED_CONTEXTS_HPP
#define MULTICAST_DETAIL_KEYED_CONTEXTS_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <tuple>
#include <utility>

#include "callable.hpp"
#include "contexts.hpp"
#include "owners.hpp"
#include "process.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// The key under which equal delegates find their shared context. `content` contains the bytes of a
/// callable that is compared bytewise.
struct key {
  const void *object;
  uint64_t target;
  multicast_function kind;
  const void *content = nullptr;
};

/// The context of a delegate that can be found by its object. Equal delegates share one context.
/// Removing the last of these delegates destroys the callable. After that, the module that added
/// them may be unloaded. A thread that has looked up the context keeps its memory allocated until
/// let_go(), so that no other context can be created at the same address.
struct keyed {
  const key of;
  const bool is_comparable;  // whether it may equal other contexts
  size_t owners = 1;
  size_t holders = 0;
  size_t alignment = 0;  // the memory's alignment; 0 while the callable exists
  // Every context is in the hash list of its object. A comparable context is also in the hash list
  // of its whole key, which is used to find equal contexts.
  struct {
    keyed *next = nullptr, **link = nullptr;
  } places[2];

  keyed(const key &given, bool comparable) noexcept : of(given), is_comparable(comparable) {}
  keyed(const keyed &) = delete;
  keyed &operator=(const keyed &) = delete;
  virtual ~keyed() = default;
  /// Destroys the callable but does not free the memory. Returns the memory's alignment.
  virtual size_t end() noexcept = 0;
  /// Compares the callables. Called only for contexts of the same kind.
  virtual bool is_equal(const keyed &) const = 0;
  /// Whether the callable is the given method, with any object. `type` is the name_of() its type.
  virtual bool has_method(const char *type, const void *method) const = 0;
};

/// The table of all keyed contexts, split into parts with separate locks. Equal delegates share a
/// context.
class alignas(64) keyed_contexts {
 public:
  static keyed *add(owned<keyed> made) {
    const uint64_t hash = hash_of(made->of.object);
    const process_lock lock(guarded::keyed, part_of(hash));
    keyed_contexts &here = part(part_of(hash));
    if (keyed *const there = here.find(*made)) {
      ++there->owners;
      return there;
    }
    here.insert(made.get());
    return made.release();
  }
  static void release(keyed *context) noexcept {
    const uint64_t hash = hash_of(context->of.object);
    owned<keyed> last;  // destroyed after the lock is released
    {
      const process_lock lock(guarded::keyed, part_of(hash));
      if (--context->owners > 0) return;
      unlink(context, object);
      unlink(context, equal);
      --part(part_of(hash)).count_;
      if (context->holders > 0) {
        ++context->holders;
      } else {
        last.reset(context);
      }
    }
    if (last.get() != nullptr) return;
    context->alignment = context->end();
    let_go(context);
  }
  /// Ends a retain(). Runs no code from the module that created the context.
  static void let_go(keyed *context) noexcept {
    const process_lock lock(guarded::keyed, part_of(hash_of(context->of.object)));
    if (--context->holders > 0 || context->alignment == 0) return;
    if (context->alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
      ::operator delete(static_cast<void *>(context), std::align_val_t{context->alignment});
    } else {
      ::operator delete(static_cast<void *>(context));
    }
  }
  /// Returns the context that equals `wanted`, or nullptr. The caller must call let_go() for the
  /// context.
  static keyed *retain(const keyed &wanted) {
    const uint64_t hash = hash_of(wanted.of.object);
    const process_lock lock(guarded::keyed, part_of(hash));
    keyed *const there = part(part_of(hash)).find(wanted);
    if (there != nullptr) ++there->holders;
    return there;
  }
  /// Finds the contexts of an object in a signal. The caller must call let_go() for each context in
  /// `found`, even if this function throws.
  template <typename Found>
  static void retain(const void *of, multicast target, Found &found) {
    const uint64_t hash = hash_of(of);
    const process_lock lock(guarded::keyed, part_of(hash));
    const keyed_contexts &here = part(part_of(hash));
    if (here.size_ != 0) {
      retain(here.bucket_of(hash), found, [=](const keyed &each) {
        return each.of.object == of && each.of.target == target.id;
      });
    }
  }
  /// Finds the contexts of a method in a signal, with any object.
  template <typename Found>
  static void retain(const char *type, const void *method, multicast target, Found &found) {
    for (size_t number = 0; number < parts; ++number) {
      const process_lock lock(guarded::keyed, number);
      const keyed_contexts &here = part(number);
      for (size_t i = 0; i < here.size_; ++i) {
        retain(here.buckets_[i], found, [=](const keyed &each) {
          return each.of.target == target.id && each.has_method(type, method);
        });
      }
    }
  }

 private:
  enum list : size_t { object, equal };
  struct bucket {
    keyed *first[2] = {};
  };

  static void link(keyed *context, bucket &into, list which) noexcept {
    keyed *&head = into.first[which];
    context->places[which].next = head;
    context->places[which].link = &head;
    if (head != nullptr) head->places[which].link = &context->places[which].next;
    head = context;
  }
  static void unlink(keyed *context, list which) noexcept {
    const auto &place = context->places[which];
    if (place.link == nullptr) return;
    *place.link = place.next;
    if (place.next != nullptr) place.next->places[which].link = place.link;
  }
  template <typename Found, typename Condition>
  static void retain(const bucket &from, Found &into, Condition &&is_wanted) {
    for (keyed *each = from.first[object]; each != nullptr; each = each->places[object].next) {
      if (!is_wanted(*each)) continue;
      into[reinterpret_cast<uintptr_t>(each)] = each;
      ++each->holders;
    }
  }

  static keyed_contexts &part(size_t number) { return lasting(process().keyed[number]); }
  static uint64_t hash_of(const void *object) noexcept {
    return reinterpret_cast<uintptr_t>(object) * uint64_t{0x9e3779b97f4a7c15};
  }
  static size_t part_of(uint64_t hash) noexcept { return static_cast<unsigned>(hash >> 62); }
  bucket &bucket_of(uint64_t hash) const noexcept {
    return buckets_[static_cast<uint32_t>(hash >> 24) & (size_ - 1)];
  }
  /// The hash that selects the list of all contexts with an equal key.
  static uint64_t hash_of(const key &given) noexcept {
    return hash_of(given.object) + hash_of(given.content) / 2;
  }
  keyed *find(const keyed &wanted) const {
    if (!wanted.is_comparable || size_ == 0) return nullptr;
    keyed *each = bucket_of(hash_of(wanted.of)).first[equal];
    for (; each != nullptr; each = each->places[equal].next) {
      if (each->of.object == wanted.of.object && each->of.target == wanted.of.target &&
          each->of.kind == wanted.of.kind && each->is_equal(wanted)) {
        return each;
      }
    }
    return nullptr;
  }
  void insert(keyed *context) {
    if (count_ >= size_) grow();
    put(context);
    ++count_;
  }
  void put(keyed *context) noexcept {
    link(context, bucket_of(hash_of(context->of.object)), object);
    if (context->is_comparable) link(context, bucket_of(hash_of(context->of)), equal);
  }
  void grow() {
    const size_t before = size_;
    const size_t after = before == 0 ? 8 : 2 * before;
    bucket *const old = std::exchange(buckets_, new bucket[after]);
    size_ = after;
    for (size_t i = 0; i < before; ++i) {
      for (keyed *each = old[i].first[object]; each != nullptr;) {
        keyed *const next = each->places[object].next;
        put(each);
        each = next;
      }
    }
    delete[] old;
  }

  bucket *buckets_ = nullptr;  // never freed, because static objects may use them
  size_t size_ = 0;            // a power of two
  size_t count_ = 0;
};
static_assert(parts == 4, "see part_of()");

/// The name of a type. All modules compiled with the same compiler use the same name.
template <typename Type>
const char *name_of() noexcept {
  return __PRETTY_FUNCTION__;
}

/// Delegates with objects are equal if their methods and objects are equal. Callables that are
/// compared bytewise (`is_plain`) are equal if their bytes are equal.
template <bool is_plain>
struct equality {
  template <typename Pointer, typename Method>
  static bool same(const bound<Pointer, Method> &a, const bound<Pointer, Method> &b) {
    return a == b;
  }
  template <typename Weak, typename Method, std::enable_if_t<is_weak<Weak>, int> = 0>
  static bool same(const weak_bound<Weak, Method> &a, const weak_bound<Weak, Method> &b) {
    return a.method == b.method && is_same(a.object, b.object);
  }
  template <typename F, typename Weak, std::enable_if_t<is_weak<Weak>, int> = 0>
  static bool same(const tracked<F, Weak> &a, const tracked<F, Weak> &b) {
    return same(a.function, b.function) && is_same(std::get<0>(a.objects), std::get<0>(b.objects));
  }
  template <typename F>
  static bool same(const extended<F> &a, const extended<F> &b) {
    return same(a.function, b.function);
  }
  template <typename F>
  static bool same(const F &a, const F &b) {
    static_cast<void>(a);
    static_cast<void>(b);
    if constexpr (is_plain && !is_mortal<F>) {
      return in_context<F>::pack(a) == in_context<F>::pack(b);
    }
    return false;
  }
};

/// Whether a callable is a method of an object, and may therefore be equal to other callables.
template <typename F>
inline constexpr bool is_bound = is_weak_bound<F>;
template <typename Pointer, typename Method>
inline constexpr bool is_bound<bound<Pointer, Method>> = true;
template <typename F>
inline constexpr bool is_bound<extended<F>> = is_bound<F>;

template <typename F, bool is_plain>
struct keyed_callable final : keyed {
  using callable = F;
  union {
    F function;
  };

  keyed_callable(const key &given, F from)
      : keyed(with_content(given, from), is_plain || is_bound<F>), function(std::move(from)) {}
  ~keyed_callable() override { function.~callable(); }
  size_t end() noexcept override {
    function.~callable();
    return alignof(keyed_callable);
  }
  bool is_equal(const keyed &other) const override {
    return equality<is_plain>::same(function,
                                    static_cast<const keyed_callable &>(other).function);
  }
  bool has_method(const char *type, const void *method) const override {
    return is_method(function, type, method);
  }

 private:
  /// A wrapper of a callable, such as a tracked callable, has no bytes to compare. Therefore all
  /// wrappers with the same object share one list.
  static key with_content(key given, const F &callable) noexcept {
    static_cast<void>(callable);
    if constexpr (is_plain && !is_mortal<F> && !is_extended<F>) {
      given.content = in_context<F>::pack(callable);
    }
    return given;
  }
  template <typename Method>
  static bool is_named(const char *type) noexcept {
    return std::strcmp(type, name_of<Method>()) == 0;
  }
  template <typename Pointer, typename Method>
  static bool is_method(const bound<Pointer, Method> &f, const char *type, const void *method) {
    return is_named<Method>(type) && f.method == *static_cast<const Method *>(method);
  }
  template <typename Weak, typename Method>
  static bool is_method(const weak_bound<Weak, Method> &f, const char *type, const void *method) {
    return is_named<Method>(type) && f.method == *static_cast<const Method *>(method);
  }
  template <typename Extended>
  static bool is_method(const extended<Extended> &f, const char *type, const void *method) {
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
