/* SPDX-License-Identifier: MIT
 *
 * libmulticast for C++17: signals with typed arguments, over multicast.h. Header only; link the C
 * library. The namespace is `mcast`, since `multicast` is a type of the C header.
 *
 *     mcast::signal<void(int, std::string_view)> changed;
 *     mcast::scoped_registration r = changed.add([](int id, std::string_view name) { ... });
 *     changed(1, "Ada");
 *
 * What multicast.h says of order, threads, removal and reentry holds here too.
 *
 * Errors       What cannot be done throws mcast::error or, out of memory, std::bad_alloc. Removals
 *              return their status, so that the caller can look at MULTICAST_PENDING and the like.
 * Exceptions   Delegates may throw. The others are called all the same; see signal::invoke() and
 *              set_exception_handler().
 * Objects      A signal, lifetime or queue may be destroyed by a delegate that it is calling. As
 *              with any object, no other thread may be using it when it is destroyed or moved.
 */

#ifndef MULTICAST_HPP
#define MULTICAST_HPP

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

#include "multicast.h"

namespace mcast {

/// What could not be done: a status below zero, as an exception. what() is its message.
/// @since 1.0
class MULTICAST_API error : public std::runtime_error {
 public:
  explicit error(multicast_status status)
      : std::runtime_error(multicast_status_message(status)), status_(status) {}
  /// Which one it is.
  multicast_status status() const noexcept { return status_; }

 private:
  multicast_status status_;
};

/// Told of exceptions that have no invoker to go to.
/// @since 1.0
using exception_handler = void (*)(std::exception_ptr) noexcept;

namespace detail {

// Exported, so that the parts of a program share one even where they hide their symbols.
MULTICAST_API inline std::atomic<exception_handler> handler{nullptr};

inline int64_t check(int64_t result) {
  if (result >= 0) return result;
  if (result == MULTICAST_ERROR_OUT_OF_MEMORY) throw std::bad_alloc();
  throw error(static_cast<multicast_status>(result));
}
inline size_t count(int64_t result) { return static_cast<size_t>(check(result)); }
inline uint64_t nanoseconds(std::chrono::nanoseconds time) noexcept {
  return time.count() < 0 ? 0 : static_cast<uint64_t>(time.count());
}

/// A handle that is given to a function in the end.
template <typename Handle, multicast_status (*end)(Handle)>
class owner {
 public:
  /// For the functions of multicast.h and the fields of options; zero where it was moved from.
  Handle handle() const noexcept { return handle_; }

 protected:
  owner() noexcept = default;
  explicit owner(Handle made) : handle_(made.id != 0 ? made : throw std::bad_alloc()) {}
  owner(owner &&other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  owner &operator=(owner &&other) noexcept {
    static_cast<void>(end(std::exchange(handle_, std::exchange(other.handle_, Handle{}))));
    return *this;
  }
  ~owner() { static_cast<void>(end(handle_)); }

  Handle handle_ = {0};
};

/// An argument as delegates get it. A value is one for all of them, so they get it as const.
template <typename Arg>
using passed = std::conditional_t<std::is_reference_v<Arg>, Arg, const Arg &>;
template <typename Arg>
using value = std::remove_cv_t<std::remove_reference_t<Arg>>;

/// Whether the library may copy an argument: byte by byte, to an address aligned to 16.
template <typename Arg>
constexpr bool is_queueable() {
  if constexpr (std::is_same_v<passed<Arg>, const value<Arg> &> && std::is_object_v<value<Arg>>) {
    return std::is_trivially_copyable_v<value<Arg>> && std::is_copy_constructible_v<value<Arg>> &&
           alignof(value<Arg>) <= 16;
  }
  return false;  // without a look at the type, which may be incomplete
}

template <size_t, typename T>
struct leaf {
  T value;
};
/// Values, trivially copyable where each of them is: std::tuple never is.
template <typename Indices, typename... T>
struct pack;
template <size_t... I, typename... T>
struct pack<std::index_sequence<I...>, T...> : leaf<I, T>... {
  pack(const T &...values) : leaf<I, T>{values}... {}
  std::tuple<const T &...> references() const { return {leaf<I, T>::value...}; }
};
struct nothing {
  template <typename T>
  nothing(const T &) noexcept {}
};
template <bool are_copied, typename... Args>
using values = pack<std::index_sequence_for<Args...>,
                    std::conditional_t<are_copied, value<Args>, nothing>...>;

}  // namespace detail

/// Says who is told of exceptions that leave a delegate which a queue calls.
///
/// @param handler  Called on the thread that runs the queue; nullptr: std::terminate, the default.
/// @return The one before.
///
/// Threads:   any. One for the process; a plugin opened with dlopen() may have one of its own.
/// @since 1.0
inline exception_handler set_exception_handler(exception_handler handler) noexcept {
  return detail::handler.exchange(handler);
}

/// How a delegate is added; see multicast_options. MULTICAST_UNIQUE is missing, as no two lambdas
/// are equal.
/// @since 1.0
struct options {
  /// Called once at most (default: false).
  bool once = false;
  /// Only the newest of its calls waits in the queue (default: false).
  bool latest = false;
  /// Higher is invoked first (default: 0).
  int32_t priority = 0;
  /// The handle() of a lifetime: the registration is gone when that ends (default: none).
  multicast_lifetime lifetime = {0};
  /// The handle() of a queue: calls wait there; see signal::is_queueable (default: none).
  multicast_queue queue = {0};

  /// The same for C.
  operator multicast_options() const noexcept {
    multicast_options result = multicast_options_default();
    result.flags = (once ? MULTICAST_ONCE : 0u) | (latest ? MULTICAST_LATEST : 0u);
    result.priority = priority;
    result.lifetime = lifetime;
    result.queue = queue;
    return result;
  }
};

/// One delegate in one signal, from its add to its removal. A value: copies name the same one, and
/// outlive it, as stale. Each function is as multicast_token_...() of its name.
///
/// Threads:   any.
/// @since 1.0
class registration {
 public:
  /// Of none; or of a token, as from multicast_token_current().
  explicit registration(multicast_token token = {0}) noexcept : token_(token) {}
  /// Removes the delegate and waits: after MULTICAST_OK what it had captured is destroyed.
  multicast_status remove() const noexcept { return multicast_token_remove(token_); }
  /// Removes the delegate without waiting.
  multicast_status remove_nowait() const noexcept { return multicast_token_remove_nowait(token_); }
  /// Removes the delegate and waits for so long at most.
  multicast_status remove_within(std::chrono::nanoseconds timeout) const noexcept {
    return multicast_token_remove_within(token_, detail::nanoseconds(timeout));
  }
  /// Leaves the delegate out of invocations until resume().
  multicast_status pause() const noexcept { return multicast_token_pause(token_); }
  /// Ends a pause.
  multicast_status resume() const noexcept { return multicast_token_resume(token_); }
  /// Whether it still stands.
  bool is_live() const noexcept { return multicast_token_is_live(token_); }
  /// For the functions of multicast.h.
  multicast_token token() const noexcept { return token_; }

 private:
  multicast_token token_;
};

/// A registration that is removed when this goes out of scope or is assigned another.
///
/// Threads:   its end waits for calls on other threads, as registration::remove().
/// Reentry:   may end inside a call of its own delegate, and does not wait then.
/// @since 1.0
class [[nodiscard]] scoped_registration
    : public detail::owner<multicast_token, multicast_token_remove> {
 public:
  /// Of none; or of what signal::add() has returned.
  scoped_registration(registration r = registration()) noexcept { handle_ = r.token(); }

  /// What is going to be removed.
  registration get() const noexcept { return registration(handle_); }
  /// Gives it up: it stays.
  registration release() noexcept { return registration(std::exchange(handle_, {0})); }
};

/// What delegates can be added under, to be removed together.
///
/// Threads:   any; its end waits for calls on other threads, as multicast_lifetime_end().
/// @since 1.0
class lifetime : public detail::owner<multicast_lifetime, multicast_lifetime_end> {
 public:
  /// Creates one.
  lifetime() : owner(multicast_lifetime_create()) {}
  /// Ends it early.
  multicast_status end() noexcept { return multicast_lifetime_end(handle_); }
};

/// Where calls wait until somebody runs them. Its end removes the delegates that deliver there, as
/// multicast_queue_destroy(). Each function is as multicast_queue_...() of its name.
///
/// Threads:   any; one at a time runs it.
/// @since 1.0
class queue : public detail::owner<multicast_queue, multicast_queue_destroy> {
 public:
  /// Creates one.
  ///
  /// @param capacity  How many calls can wait, at most 2^24; 0: 1024.
  /// @param overflow  What becomes of a call when so many wait.
  explicit queue(uint32_t capacity = 0, multicast_overflow overflow = MULTICAST_OVERFLOW_REFUSE)
      : owner(create(capacity, overflow)) {}

  /// Makes calls that wait, oldest first.
  ///
  /// @param max  The most calls to make; 0: as many as wait now.
  /// @return How many were made.
  size_t run(size_t max = 0) { return detail::count(multicast_queue_run(handle_, max)); }

  /// Sleeps until a call waits.
  ///
  /// @param timeout  For so long at most; by default for ever.
  /// @return How many wait; 0: the time was up.
  size_t wait(std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max()) {
    const int64_t result = multicast_queue_wait(handle_, detail::nanoseconds(timeout));
    return result == MULTICAST_ERROR_TIMEOUT ? 0 : detail::count(result);
  }

  /// A descriptor that is readable while calls wait, as multicast_queue_fd().
  int descriptor() {
    const int result = multicast_queue_fd(handle_);
    if (result < 0) throw error(MULTICAST_ERROR_SYSTEM);
    return result;
  }

  /// Gives the queue a thread of its own.
  void start() { detail::check(multicast_queue_start(handle_)); }
  /// Ends that thread.
  multicast_status stop() noexcept { return multicast_queue_stop(handle_); }

  /// What it has counted, all at one moment.
  multicast_queue_stats statistics() const {
    multicast_queue_stats result = multicast_queue_stats_default();
    detail::check(multicast_queue_statistics(handle_, &result));
    return result;
  }

 private:
  static multicast_queue create(uint32_t capacity, multicast_overflow overflow) {
    if (capacity > 1u << 24) throw error(MULTICAST_ERROR_INVALID_ARGUMENT);
    multicast_queue_options given = multicast_queue_options_default();
    given.capacity = capacity;
    given.overflow = overflow;
    return multicast_queue_create(&given);
  }
};

template <typename Signature>
class signal {
  static_assert(!sizeof(Signature *), "a signal is of void(...); for answers pass a reference");
};

/// A multicast whose delegates are called with arguments of these types; its end removes them, as
/// multicast_destroy(). What is taken by value is one value for all delegates, who get it as const.
///
/// Threads:   any.
/// Reentry:   delegates may do anything, destroying this included.
/// @since 1.0
template <typename... Args>
class signal<void(Args...)> : public detail::owner<multicast, multicast_destroy> {
 public:
  /// Whether delegates can be added with a queue: all arguments are values or references to const,
  /// of trivially copyable types aligned to 16 bytes at most. Queued calls get copies, of the types
  /// named here. A pointer or std::string_view is copied as such: what it points at must live on.
  static constexpr bool is_queueable = (detail::is_queueable<Args>() && ...);

  /// Creates one, without delegates. Its handle() is not for invoking.
  signal() : owner(multicast_create()) {}

  /// Adds a lambda, function object or function, last among those of its priority.
  ///
  /// @param delegate  Copied or moved from; called as an lvalue, and what it returns is ignored.
  /// @param how       How; a queue where nothing is_queueable: MULTICAST_ERROR_INVALID_ARGUMENT.
  /// @return What removes it.
  ///
  /// Ownership: the copy is destroyed once, after the last call has returned, on the thread that
  ///            removes or made that call; when the add fails, before it throws.
  /// Threads:   called on several at once where several invoke.
  /// Cost:      as multicast_add() with options, and one allocation.
  template <typename F>
  registration add(F &&delegate, const options &how = {}) {
    static_assert(std::is_invocable_v<std::decay_t<F> &, detail::passed<Args>...>,
                  "the delegate cannot be called with the arguments of the signal");
    return add_slot<std::decay_t<F>>(std::forward<F>(delegate), how, nullptr);
  }

  /// Adds a method of an object; static_cast says which of several of that name.
  ///
  /// @param object  Borrowed: must live until the removal has finished.
  /// @param method  Of its class or a base class. What it returns is ignored.
  template <typename T, typename Class, typename Method>
  registration add(T &object, Method Class::*method, const options &how = {}) {
    static_assert(std::is_base_of_v<Class, T>, "not its method; of a shared_ptr add a weak_ptr");
    const auto call = [&object, method](detail::passed<Args>... arguments) {
      (object.*method)(static_cast<detail::passed<Args>>(arguments)...);
    };
    return add(call, how);
  }

  /// Adds a method of an object that is held weakly: each call keeps it alive while it runs; once
  /// it is dead the next invocation removes the delegate.
  template <typename T, typename Class, typename Method>
  registration add(std::weak_ptr<T> object, Method Class::*method, const options &how = {}) {
    using weak = weak_method<T, Method Class::*>;
    return add_slot<weak>(weak{std::move(object), method}, how, weak::lock);
  }

  /// Calls every delegate, by priority, then by order of addition, as multicast_invoke().
  ///
  /// When delegates throw, the others are called all the same; then the first exception of a call
  /// made here is thrown on.
  ///
  /// @return How many were called or queued.
  ///
  /// Threads:   any; delegates without a queue run on this one.
  /// Cost:      as multicast_invoke(), and queueable arguments are copied once.
  int64_t invoke(Args... arguments) const {
    frame here{{static_cast<detail::passed<Args>>(arguments)...}, nullptr};
    const envelope sent{&here, {arguments...}};
    const int64_t result = multicast_invoke(handle_, 0, &sent, is_queueable ? sizeof sent : 0);
    // From here on this may be gone: a delegate may have destroyed it.
    if (here.thrown) std::rethrow_exception(std::move(here.thrown));
    return detail::check(result);
  }
  /// The same.
  int64_t operator()(Args... arguments) const { return invoke(std::forward<Args>(arguments)...); }

  /// How many delegates there are, paused ones included.
  size_t size() const { return detail::count(multicast_count(handle_)); }
  /// Removes all delegates, as multicast_remove_all(), and returns how many those were.
  size_t clear() { return detail::count(multicast_remove_all(handle_)); }

 private:
  /// One invocation. What it calls itself gets the arguments as they are, not as copies.
  struct frame {
    std::tuple<detail::passed<Args>...> arguments;
    std::exception_ptr thrown;
  };

  /// The payload.
  struct envelope {
    frame *invocation;  // gone when a queue makes the call
    detail::values<is_queueable, Args...> copies;
  };

  /// The context of a delegate.
  template <typename F>
  struct slot {
    F function;
    bool is_queued;

    static void call(void *context, uint32_t, const void *payload, size_t) noexcept {
      slot &self = *static_cast<slot *>(context);
      const envelope &sent = *static_cast<const envelope *>(payload);
      try {
        if constexpr (is_queueable) {
          static_assert(std::is_trivially_copyable_v<envelope> && alignof(envelope) <= 16);
          if (self.is_queued) return void(std::apply(self.function, sent.copies.references()));
        }
        // Moves nothing: they are references, which go on as what they are.
        static_cast<void>(std::apply(self.function, std::move(sent.invocation->arguments)));
      } catch (...) {
        if (self.is_queued) {
          const exception_handler handler = detail::handler.load();
          if (handler == nullptr) std::terminate();
          handler(std::current_exception());
        } else if (!sent.invocation->thrown) {
          sent.invocation->thrown = std::current_exception();
        }
      }
    }
  };

  /// The library's lock asks whether the object is dead, and the call itself makes it strong: so no
  /// call needs an allocation to keep the strong pointer in. Who dies in between is not called.
  template <typename T, typename Method>
  struct weak_method {
    std::weak_ptr<T> object;
    Method method;

    void operator()(detail::passed<Args>... arguments) const {
      if (const std::shared_ptr<T> strong = object.lock()) {
        (strong.get()->*method)(static_cast<detail::passed<Args>>(arguments)...);
      }
    }

    static void *lock(void *context) noexcept {
      const weak_method &self = static_cast<slot<weak_method> *>(context)->function;
      return self.object.expired() ? nullptr : context;
    }
  };

  template <typename F, typename Given>
  registration add_slot(Given &&function, const options &how, void *(*lock)(void *)) {
    const bool is_queued = how.queue.id != 0;
    if (is_queued && !is_queueable) throw error(MULTICAST_ERROR_INVALID_ARGUMENT);
    if constexpr (std::is_pointer_v<std::remove_reference_t<Given>>) {
      if (function == nullptr) throw error(MULTICAST_ERROR_INVALID_ARGUMENT);
    }
    multicast_options given = how;
    given.release = [](void *context) noexcept { delete static_cast<slot<F> *>(context); };
    given.lock = lock;
    if (lock != nullptr) given.unlock = [](void *) noexcept {};
    multicast_token token = {0};
    // The library's from the call on, also where it fails.
    auto *context = new slot<F>{std::forward<Given>(function), is_queued};
    detail::check(multicast_add(handle_, {slot<F>::call, context}, &given, &token));
    return registration(token);
  }
};

}  // namespace mcast

#endif
