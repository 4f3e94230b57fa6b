/* SPDX-License-Identifier: MIT
 *
 * libmulticast for C++17: signals with typed arguments, on top of multicast.h. It is header-only;
 * link the C library. The namespace is `mcast`, because `multicast` is a type of the C header.
 *
 *     mcast::signal<void(int, std::string_view)> changed;
 *     mcast::scoped_registration r = changed.add([](int id, std::string_view name) { ... });
 *     changed(1, "Ada");
 *
 * The rules of multicast.h for order, threads, removal and reentry hold here too.
 *
 * Errors       A function that fails throws mcast::error or, if out of memory, std::bad_alloc.
 *              Removals return their status instead, so that the caller can check for
 *              MULTICAST_PENDING and other results.
 * Exceptions   Delegates may throw. The other delegates are still called; see signal::invoke() and
 *              set_exception_handler().
 * Objects      A delegate may destroy the signal, lifetime or queue that is calling it. As with any
 *              object, no other thread may use it while it is destroyed or moved.
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

/// An error status as an exception. what() is its message.
/// @since 1.0
class MULTICAST_API error : public std::runtime_error {
 public:
  explicit error(multicast_status status)
      : std::runtime_error(multicast_status_message(status)), status_(status) {}
  /// The status.
  multicast_status status() const noexcept { return status_; }

 private:
  multicast_status status_;
};

/// Called with exceptions that cannot be passed to an invoker.
/// @since 1.0
using exception_handler = void (*)(std::exception_ptr) noexcept;

namespace detail {

// Exported, so that all parts of a program share one, even if they hide their symbols.
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

/// Owns a handle and passes it to a function at the end.
template <typename Handle, multicast_status (*end)(Handle)>
class owner {
 public:
  /// For the functions of multicast.h and the fields of options. Zero after a move.
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

/// An argument as delegates get it. All delegates share one value, so they get it as const.
template <typename Arg>
using passed = std::conditional_t<std::is_reference_v<Arg>, Arg, const Arg &>;
template <typename Arg>
using value = std::remove_cv_t<std::remove_reference_t<Arg>>;

/// Whether the library may copy an argument byte by byte, to an address aligned to 16.
template <typename Arg>
constexpr bool is_queueable() {
  if constexpr (std::is_same_v<passed<Arg>, const value<Arg> &> && std::is_object_v<value<Arg>>) {
    return std::is_trivially_copyable_v<value<Arg>> && std::is_copy_constructible_v<value<Arg>> &&
           alignof(value<Arg>) <= 16;
  }
  return false;  // does not need the type, which may be incomplete
}

template <size_t, typename T>
struct leaf {
  T value;
};
/// Values; trivially copyable if each of them is, unlike std::tuple.
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

/// Sets the handler of exceptions that leave a delegate which is called by a queue.
///
/// @param handler  Called on the thread that runs the queue; nullptr: std::terminate, the default.
/// @return The previous handler.
///
/// Threads:   any. There is one handler in the process; a plugin opened with dlopen() may have its
///            own.
/// @since 1.0
inline exception_handler set_exception_handler(exception_handler handler) noexcept {
  return detail::handler.exchange(handler);
}

/// How a delegate is added; see multicast_add_options. There is no MULTICAST_UNIQUE, because no two
/// lambdas are equal.
/// @since 1.0
struct options {
  /// Called at most once (default: false).
  bool once = false;
  /// Only the newest of its calls stays in the queue (default: false).
  bool latest = false;
  /// Higher is invoked first (default: 0).
  int32_t priority = 0;
  /// The handle() of a lifetime, whose end removes the registration (default: none).
  multicast_lifetime lifetime = {0};
  /// The handle() of a queue, in which calls wait; see signal::is_queueable (default: none).
  multicast_queue queue = {0};

  /// The same options for C.
  operator multicast_add_options() const noexcept {
    multicast_add_options result = multicast_add_options_default();
    result.flags = (once ? MULTICAST_ONCE : 0u) | (latest ? MULTICAST_LATEST : 0u);
    result.priority = priority;
    result.lifetime = lifetime;
    result.queue = queue;
    return result;
  }
};

/// One delegate in one signal, from its add to the end of its removal. It is a value: copies mean
/// the same registration, and are stale after its removal. Each function does what the
/// multicast_token_...() function of that name does.
///
/// Threads:   any.
/// @since 1.0
class registration {
 public:
  /// Of no registration, or of a token, such as that of multicast_token_current().
  explicit registration(multicast_token token = {0}) noexcept : token_(token) {}
  /// Removes the delegate and waits. After MULTICAST_OK its captures have been destroyed.
  multicast_status remove() const noexcept { return multicast_token_remove(token_); }
  /// Removes the delegate without waiting.
  multicast_status remove_nowait() const noexcept { return multicast_token_remove_nowait(token_); }
  /// Removes the delegate and waits at most for `timeout`.
  multicast_status remove_within(std::chrono::nanoseconds timeout) const noexcept {
    return multicast_token_remove_within(token_, detail::nanoseconds(timeout));
  }
  /// Leaves the delegate out of invocations until resume().
  multicast_status pause() const noexcept { return multicast_token_pause(token_); }
  /// Ends a pause.
  multicast_status resume() const noexcept { return multicast_token_resume(token_); }
  /// Whether it is live.
  bool is_live() const noexcept { return multicast_token_is_live(token_); }
  /// For the functions of multicast.h.
  multicast_token token() const noexcept { return token_; }

 private:
  multicast_token token_;
};

/// A registration that is removed when this object is destroyed or is assigned another one.
///
/// Threads:   the destructor waits for calls on other threads, as registration::remove() does.
/// Reentry:   may be destroyed inside a call of its own delegate; then it does not wait.
/// @since 1.0
class [[nodiscard]] scoped_registration
    : public detail::owner<multicast_token, multicast_token_remove> {
 public:
  /// Of no registration, or of the result of signal::add().
  scoped_registration(registration r = registration()) noexcept { handle_ = r.token(); }

  /// The registration that will be removed.
  registration get() const noexcept { return registration(handle_); }
  /// Gives up the registration, which stays.
  registration release() noexcept { return registration(std::exchange(handle_, {0})); }
};

/// A lifetime: delegates that are added under it are removed together.
///
/// Threads:   any. The destructor waits for calls on other threads, as multicast_lifetime_end()
///            does.
/// @since 1.0
class lifetime : public detail::owner<multicast_lifetime, multicast_lifetime_end> {
 public:
  /// Creates one.
  lifetime() : owner(multicast_lifetime_create()) {}
  /// Ends it early.
  multicast_status end() noexcept { return multicast_lifetime_end(handle_); }
};

/// A queue, in which calls wait until it is run. The destructor removes the delegates that deliver
/// there, as multicast_queue_destroy() does. Each function does what the multicast_queue_...()
/// function of that name does.
///
/// Threads:   any; one thread at a time runs it.
/// @since 1.0
class queue : public detail::owner<multicast_queue, multicast_queue_destroy> {
 public:
  /// Creates one.
  ///
  /// @param capacity  How many calls fit, at most 2^24; 0 means 1024.
  /// @param overflow  What happens to a call if the queue is full.
  explicit queue(uint32_t capacity = 0, multicast_overflow overflow = MULTICAST_OVERFLOW_REFUSE)
      : owner(create(capacity, overflow)) {}

  /// Makes queued calls, oldest first.
  ///
  /// @param max  The most calls to make. 0: at most as many as wait when this starts.
  /// @return How many calls were made.
  size_t run(size_t max = 0) { return detail::count(multicast_queue_run(handle_, max)); }

  /// Waits until a call is queued.
  ///
  /// @param timeout  How long to wait at most; by default without limit.
  /// @return How many calls are queued; 0: the timeout passed.
  size_t wait(std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max()) {
    const int64_t result = multicast_queue_wait(handle_, detail::nanoseconds(timeout));
    return result == MULTICAST_ERROR_TIMEOUT ? 0 : detail::count(result);
  }

  /// A descriptor that is readable while calls are queued, as that of multicast_queue_fd().
  int descriptor() {
    const int result = multicast_queue_fd(handle_);
    if (result < 0) throw error(MULTICAST_ERROR_SYSTEM);
    return result;
  }

  /// Gives the queue a thread of its own.
  void start() { detail::check(multicast_queue_start(handle_)); }
  /// Ends the queue's thread.
  multicast_status stop() noexcept { return multicast_queue_stop(handle_); }

  /// All statistics, at one moment.
  multicast_queue_stats statistics() const {
    multicast_queue_stats result = multicast_queue_stats_default();
    detail::check(multicast_queue_get_stats(handle_, &result));
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

/// A multicast whose delegates are called with arguments of these types. The destructor removes
/// them, as multicast_destroy() does. An argument by value is one value for all delegates; they get
/// it as const.
///
/// Threads:   any.
/// Reentry:   delegates may do anything, also destroy this object.
/// @since 1.0
template <typename... Args>
class signal<void(Args...)> : public detail::owner<multicast, multicast_destroy> {
 public:
  /// Whether delegates can be added with a queue: if all arguments are values or references to
  /// const, of trivially copyable types with an alignment of at most 16 bytes. Queued calls get
  /// copies, of the types in the signature. Of a pointer or std::string_view only the pointer is
  /// copied: the memory that it points to must stay valid.
  static constexpr bool is_queueable = (detail::is_queueable<Args>() && ...);

  /// Creates a signal without delegates. Do not invoke its handle().
  signal() : owner(multicast_create()) {}

  /// Adds a lambda, function object or function, last among those of its priority.
  ///
  /// @param delegate  Copied or moved from. Called as an lvalue; its result is ignored.
  /// @param how       How. A queue without is_queueable is MULTICAST_ERROR_INVALID_ARGUMENT.
  /// @return The registration, with which the delegate can be removed.
  ///
  /// Ownership: the copy is destroyed once: after the last call has returned, on the thread that
  ///            removes or that made this call; or, if the add fails, before it throws.
  /// Threads:   called on several threads at once if several invoke.
  /// Cost:      as multicast_add() with options, and one allocation.
  template <typename F>
  registration add(F &&delegate, const options &how = {}) {
    static_assert(std::is_invocable_v<std::decay_t<F> &, detail::passed<Args>...>,
                  "the delegate cannot be called with the arguments of the signal");
    return add_slot<std::decay_t<F>>(std::forward<F>(delegate), how, nullptr);
  }

  /// Adds a method of an object. If it is overloaded, use static_cast to select one.
  ///
  /// @param object  Borrowed: must stay valid until the removal has completed.
  /// @param method  Of its class or a base class. Its result is ignored.
  template <typename T, typename Class, typename Method>
  registration add(T &object, Method Class::*method, const options &how = {}) {
    static_assert(std::is_base_of_v<Class, T>, "not its method; of a shared_ptr add a weak_ptr");
    const auto call = [&object, method](detail::passed<Args>... arguments) {
      (object.*method)(static_cast<detail::passed<Args>>(arguments)...);
    };
    return add(call, how);
  }

  /// Adds a method of an object through a weak pointer. Each call keeps the object alive while it
  /// runs. When the object is dead, the next invocation removes the delegate.
  template <typename T, typename Class, typename Method>
  registration add(std::weak_ptr<T> object, Method Class::*method, const options &how = {}) {
    using weak = weak_method<T, Method Class::*>;
    return add_slot<weak>(weak{std::move(object), method}, how, weak::lock);
  }

  /// Calls every delegate, by priority, then by order of addition, as multicast_invoke() does.
  ///
  /// If delegates throw, the others are still called. Then the first exception of a call that was
  /// made on this thread is rethrown.
  ///
  /// @return How many delegates were called or queued.
  ///
  /// Threads:   any; delegates without a queue run on the calling thread.
  /// Cost:      as multicast_invoke(), plus one copy of queueable arguments.
  int64_t invoke(Args... arguments) const {
    frame here{{static_cast<detail::passed<Args>>(arguments)...}, nullptr};
    const envelope sent{&here, {arguments...}};
    const int64_t result = multicast_invoke(handle_, 0, &sent, is_queueable ? sizeof sent : 0);
    // `this` may be destroyed by now: a delegate may have done it.
    if (here.thrown) std::rethrow_exception(std::move(here.thrown));
    return detail::check(result);
  }
  /// The same as invoke().
  int64_t operator()(Args... arguments) const { return invoke(std::forward<Args>(arguments)...); }

  /// How many delegates there are, paused ones included.
  size_t size() const { return detail::count(multicast_count(handle_)); }
  /// Removes all delegates, as multicast_remove_all() does, and returns how many there were.
  size_t clear() { return detail::count(multicast_remove_all(handle_)); }

 private:
  /// One invocation. Delegates that it calls itself get the arguments, not copies of them.
  struct frame {
    std::tuple<detail::passed<Args>...> arguments;
    std::exception_ptr thrown;
  };

  /// The payload.
  struct envelope {
    frame *invocation;  // no longer valid when a queue makes the call
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
        // Moves nothing: the tuple holds references, which keep their kind.
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

  /// `lock` only checks whether the object is dead; the call itself makes the pointer strong. So no
  /// call needs an allocation for the strong pointer. An object that dies in between is not called.
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
    multicast_add_options given = how;
    given.release = [](void *context) noexcept { delete static_cast<slot<F> *>(context); };
    given.lock = lock;
    if (lock != nullptr) given.unlock = [](void *) noexcept {};
    multicast_token token = {0};
    // From multicast_add() on the library owns it, also if that fails.
    auto *context = new slot<F>{std::forward<Given>(function), is_queued};
    detail::check(multicast_add(handle_, {slot<F>::call, context}, &given, &token));
    return registration(token);
  }
};

}  // namespace mcast

#endif
