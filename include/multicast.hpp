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
 * The sections: 1. errors and exceptions; 2. arguments; 3. registrations and lifetimes; 4. queues;
 * 5. options; 6. objects that are tracked; 7. delegates; 8. signals; 9. signals with results.
 *
 * Errors       A function that fails throws mcast::error or, if out of memory, std::bad_alloc.
 *              Removals return their status instead, so that the caller can check for
 *              MULTICAST_PENDING and other results.
 * Exceptions   Delegates may throw. The other delegates are still called; see signal::invoke() and
 *              set_exception_handler(). A thread may end inside a delegate, by pthread_exit() or by
 *              cancellation. The objects of the delegate are destroyed then. Those of the functions
 *              that have invoked are not: the library has no tables for unwinding.
 * Without them With -fno-exceptions a function that fails returns what means nothing: an empty
 *              registration, 0, an empty optional, or the negative status where it counts.
 *              last_error() then has the status. RTTI is not used.
 * Objects      A delegate may destroy the signal, lifetime or queue that is calling it. As with any
 *              object, no other thread may use it while it is destroyed or moved.
 */

#ifndef MULTICAST_HPP
#define MULTICAST_HPP

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "multicast.h"

#if defined(__cpp_exceptions)
#define MULTICAST_HPP_EXCEPTIONS 1
#else
#define MULTICAST_HPP_EXCEPTIONS 0
#endif

namespace mcast {

#if !MULTICAST_HPP_EXCEPTIONS
// Other names, so that parts of a program with exceptions and parts without do not mix.
inline namespace without_exceptions {
#endif

// ---- 1. Errors and exceptions -------------------------------------------------------------------

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

template <typename>
inline constexpr bool never = false;

#if MULTICAST_HPP_EXCEPTIONS
[[noreturn]] inline void fail(int64_t status) {
  if (status == MULTICAST_ERROR_OUT_OF_MEMORY) throw std::bad_alloc();
  throw error(static_cast<multicast_status>(status));
}
#else
inline thread_local multicast_status last_failure = MULTICAST_OK;
inline void fail(int64_t status) noexcept {
  last_failure = static_cast<multicast_status>(status);
}
#endif

inline int64_t check(int64_t result) {
  if (result < 0) fail(result);
  return result;
}
inline size_t count(int64_t result) {
  return check(result) < 0 ? 0 : static_cast<size_t>(result);
}
inline uint64_t nanoseconds(std::chrono::nanoseconds time) noexcept {
  return time.count() < 0 ? 0 : static_cast<uint64_t>(time.count());
}

/// The first exception of several threads.
struct shared_failure : std::enable_shared_from_this<shared_failure> {
  std::mutex mutex;
  std::exception_ptr first;
};

/// Where the exceptions of a call go: to the invocation, to the one that waits, or, if there is
/// neither, to the handler.
struct failures {
  std::exception_ptr *thrown = nullptr;
  shared_failure *waiting = nullptr;

#if MULTICAST_HPP_EXCEPTIONS
  /// Inside a catch clause.
  void keep() const noexcept {
    if (thrown != nullptr) {
      if (!*thrown) *thrown = std::current_exception();
    } else if (waiting != nullptr) {
      const std::lock_guard<std::mutex> lock(waiting->mutex);
      if (!waiting->first) waiting->first = std::current_exception();
    } else {
      const exception_handler handle = handler.load();
      if (handle == nullptr) std::terminate();
      handle(std::current_exception());
    }
  }
#endif
};

/// Runs code of the user's, and keeps what it throws. The end of a thread passes.
template <typename Body>
void guard(const failures &where, Body &&body) {
#if MULTICAST_HPP_EXCEPTIONS
  try {
    body();
  } catch (...) {
    // The end of a thread comes by as something that is no exception of C++.
    if (std::current_exception() == nullptr) throw;
    where.keep();
  }
#else
  static_cast<void>(where);
  body();
#endif
}

inline void rethrow(std::exception_ptr thrown) {
#if MULTICAST_HPP_EXCEPTIONS
  if (thrown) std::rethrow_exception(std::move(thrown));
#else
  static_cast<void>(thrown);
#endif
}

/// Owns a handle and passes it to a function at the end.
template <typename Handle, multicast_status (*end)(Handle)>
class owner {
 public:
  /// For the functions of multicast.h. Zero after a move.
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

/// A multicast that is made when it is needed first.
class lazy_multicast {
 public:
  constexpr lazy_multicast() noexcept = default;
  lazy_multicast(lazy_multicast &&other) noexcept : id_(other.id_.exchange(0)) {}
  lazy_multicast &operator=(lazy_multicast &&other) noexcept {
    finish(id_.exchange(other.id_.exchange(0)));
    return *this;
  }
  ~lazy_multicast() { finish(id_.load(std::memory_order_relaxed)); }

  multicast get() const noexcept { return {id_.load(std::memory_order_acquire)}; }

  /// `prepare(multicast)` is called before others see it, and returns a status. Returns none if
  /// there is no memory or if that fails.
  template <typename Prepare>
  multicast make(Prepare &&prepare) {
    uint64_t id = id_.load(std::memory_order_acquire);
    if (id != 0) return {id};
    const multicast made = multicast_create();
    if (made.id == 0) {
      fail(multicast_create_error());
      return made;
    }
    const multicast_status status = prepare(made);
    if (status != MULTICAST_OK) {
      finish(made.id);
      fail(status);
      return {0};
    }
    if (id_.compare_exchange_strong(id, made.id)) return made;
    finish(made.id);  // another thread was faster
    return {id};
  }
  multicast make() {
    return make([](multicast) { return MULTICAST_OK; });
  }

 private:
  static void finish(uint64_t id) noexcept {
    if (id != 0) static_cast<void>(multicast_destroy({id}));
  }

  std::atomic<uint64_t> id_{0};
};

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

#if !MULTICAST_HPP_EXCEPTIONS
/// The status of the last function of this header that failed on this thread. Only with
/// -fno-exceptions.
/// @since 1.1
inline multicast_status last_error() noexcept { return detail::last_failure; }
#endif

// ---- 2. Arguments -------------------------------------------------------------------------------

namespace detail {

/// An argument as delegates get it. All delegates share one value, so they get it as const.
template <typename Arg>
using passed = std::conditional_t<std::is_reference_v<Arg>, Arg, const Arg &>;
template <typename Arg>
using value = std::remove_cv_t<std::remove_reference_t<Arg>>;

template <typename T>
inline constexpr bool is_character = std::is_same_v<T, char> || std::is_same_v<T, wchar_t> ||
#if defined(__cpp_char8_t)
                                     std::is_same_v<T, char8_t> ||
#endif
                                     std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>;

/// What a queued call keeps of an argument: a copy.
template <typename T>
struct stored {
  T copy;
  explicit stored(const T &given) : copy(given) {}
  explicit stored(T &&given) : copy(std::move(given)) {}
  const T *address() const { return &copy; }
};
/// The characters of a view.
template <typename Char, typename Traits>
struct stored<std::basic_string_view<Char, Traits>> {
  std::basic_string<Char, Traits> text;
  std::basic_string_view<Char, Traits> view;
  explicit stored(std::basic_string_view<Char, Traits> given) : text(given), view(text) {}
  stored(const stored &) = delete;
  stored &operator=(const stored &) = delete;
  const std::basic_string_view<Char, Traits> *address() const { return &view; }
};
/// The characters of a text that ends with zero.
template <typename Char>
struct stored_text {
  std::basic_string<Char> text;
  const Char *pointer;
  explicit stored_text(const Char *given)
      : text(given == nullptr ? std::basic_string<Char>() : std::basic_string<Char>(given)),
        pointer(given == nullptr ? nullptr : text.c_str()) {}
  stored_text(const stored_text &) = delete;
  stored_text &operator=(const stored_text &) = delete;
  const Char *const *address() const { return &pointer; }
};
template <typename T>
struct is_text : std::false_type {};
template <typename Char>
struct is_text<const Char *> : std::bool_constant<is_character<Char>> {};
template <typename T>
struct storage {
  using type = stored<T>;
};
template <typename Char>
struct storage<const Char *> {
  using type = std::conditional_t<is_character<Char>, stored_text<Char>, stored<const Char *>>;
};

/// Whether it is a value or a reference to const, so that a copy can take its place. Does not need
/// the type, which may be incomplete.
template <typename Arg>
inline constexpr bool is_replaceable =
    std::is_same_v<passed<Arg>, const value<Arg> &> && std::is_object_v<value<Arg>>;

template <typename T, typename = void>
struct is_complete : std::false_type {};
template <typename T>
struct is_complete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};

/// Whether a queued call can have it.
template <typename Arg>
constexpr bool is_queueable() {
  if constexpr (is_replaceable<Arg>) return std::is_copy_constructible_v<value<Arg>>;
  return false;
}

/// Whether its bytes can stand beside those of other arguments: numbers, enumerations, pointers.
template <typename Arg>
constexpr bool is_small() {
  if constexpr (!std::is_reference_v<Arg>) {
    return std::is_scalar_v<Arg> && !is_text<value<Arg>>::value;
  }
  return false;
}

/// Moves where possible: the caller's value is given away, and it is worth it.
template <typename Arg, typename Given>
constexpr bool is_moved() {
  if constexpr (!std::is_reference_v<Arg> && std::is_same_v<value<Arg>, Given>) {
    return std::is_class_v<Arg> && !std::is_trivially_copyable_v<Arg>;
  }
  return false;
}

/// Whether it is moved or copied without an exception.
template <typename T, bool is_moved>
inline constexpr bool is_safe =
    is_moved ? std::is_nothrow_move_constructible_v<T> : std::is_nothrow_copy_constructible_v<T>;

/// One argument of an invocation: its address, or a small one itself.
template <size_t, typename Arg, bool is_here>
struct cell {
  std::remove_reference_t<passed<Arg>> *pointer = nullptr;
  explicit cell(passed<Arg> given) : pointer(std::addressof(given)) {}
  passed<Arg> get() const { return static_cast<passed<Arg>>(*pointer); }
  template <typename Kept>
  void point_to(const Kept &kept) {
    pointer = kept.address();
  }
};
template <size_t i, typename Arg>
struct cell<i, Arg, true> {
  value<Arg> copy;
  explicit cell(const Arg &given) : copy(given) {}
  const Arg &get() const { return copy; }
  template <typename Kept>
  void point_to(const Kept &) {}
};
template <size_t i, typename Arg>
using cell_of = cell<i, Arg, is_small<Arg>()>;

/// What a queued call keeps of one argument.
template <size_t, typename Arg>
struct kept_cell {
  typename storage<value<Arg>>::type kept;
  explicit kept_cell(const value<Arg> &given) : kept(given) {}
  explicit kept_cell(value<Arg> &&given) : kept(std::move(given)) {}
};

/// The payload of an invocation, which direct and queued calls read alike.
template <typename Indices, typename... Args>
struct frame_of;
template <size_t... I, typename... Args>
struct frame_of<std::index_sequence<I...>, Args...> : cell_of<I, Args>... {
  /// Whether a queue may copy it byte by byte.
  static constexpr bool is_plain = (is_small<Args>() && ...);
  /// Whether there may be queued calls, which need a copy.
  static constexpr bool is_replaceable = !is_plain && (detail::is_replaceable<Args> && ...);
  /// Whether the copy can be made here.
  static constexpr bool is_complete = (detail::is_complete<value<Args>>::value && ...);

  failures where;
  void *results = nullptr;  // where results go, in signals that have them

  explicit frame_of(passed<Args>... given)
      : cell_of<I, Args>(static_cast<passed<Args>>(given))... {}

  template <typename F, typename... First>
  decltype(auto) apply(F &&function, First &&...first) const {
    return std::invoke(function, std::forward<First>(first)...,
                       static_cast<const cell_of<I, Args> &>(*this).get()...);
  }
};

/// The copy of a frame, with its own copies of the arguments. What is given away is moved.
template <typename Frame, typename Moves>
struct copied_of;
template <size_t... I, typename... Args, bool... moves>
struct copied_of<frame_of<std::index_sequence<I...>, Args...>,
                 std::integer_sequence<bool, moves...>>
    : frame_of<std::index_sequence<I...>, Args...>, kept_cell<I, Args>... {
  using frame = frame_of<std::index_sequence<I...>, Args...>;

  /// For multicast_invocation.
  static const void *copy(const void *payload, size_t) {
    // The frame of the invocation is not const.
    frame &original = *static_cast<frame *>(const_cast<void *>(payload));
    const frame *result = nullptr;
    guard(original.where, [&] {
      const auto *made = new copied_of(original);
      // What was moved is there now, also for the delegates that are called directly.
      if constexpr ((moves || ...)) made->redirect(original);
      result = made;
    });
    return result;
  }
  static void release(const void *payload, size_t) noexcept {
    delete static_cast<const copied_of *>(static_cast<const frame *>(payload));
  }

 private:
  std::shared_ptr<shared_failure> waiting_;

  explicit copied_of(const frame &original)
      : frame(original), kept_cell<I, Args>(source<I, Args, moves>(original))... {
    if (this->where.waiting != nullptr) waiting_ = this->where.waiting->shared_from_this();
    this->where.thrown = nullptr;
    redirect(*this);
  }
  void redirect(frame &pointing) const {
    static_cast<void>(pointing);
    (static_cast<cell_of<I, Args> &>(pointing).point_to(
         static_cast<const kept_cell<I, Args> &>(*this).kept),
     ...);
  }
  template <size_t i, typename Arg, bool is_moved>
  static decltype(auto) source(const frame &original) {
    const auto &argument = static_cast<const cell_of<i, Arg> &>(original).get();
    if constexpr (is_moved) {
      return std::move(const_cast<value<Arg> &>(argument));
    } else {
      return argument;
    }
  }
};

template <typename... Args>
using frame = frame_of<std::index_sequence_for<Args...>, Args...>;
template <typename Frame, bool... moves>
using copied = copied_of<Frame, std::integer_sequence<bool, moves...>>;
template <typename>
inline constexpr bool is_kept = false;  // no argument is moved

/// How a frame is copied, where its types are not known: set by the first add with a queue.
template <typename... Args>
struct copier {
  MULTICAST_API static inline std::atomic<const void *(*)(const void *, size_t)> copy{nullptr};
  MULTICAST_API static inline std::atomic<void (*)(const void *, size_t)> release{nullptr};

  static const void *call_copy(const void *payload, size_t size) noexcept {
    const auto function = copy.load();
    return function == nullptr ? nullptr : function(payload, size);
  }
  static void call_release(const void *payload, size_t size) noexcept {
    release.load()(payload, size);
  }
};

}  // namespace detail

// ---- 3. Registrations and lifetimes -------------------------------------------------------------

class scoped_pause;
template <typename Signature>
class signal;
template <typename Signature>
class connectable;

namespace detail {

/// How many delegates there are that may die: MULTICAST_API, as `handler`.
MULTICAST_API inline std::atomic<size_t> mortals{0};

/// Removes delegates whose objects are dead, if there may be some.
inline void prune(multicast target) noexcept {
  if (mortals.load(std::memory_order_relaxed) != 0) static_cast<void>(multicast_prune(target));
}

/// Pauses that are counted, by the handle of a registration or signal.
struct pauses {
  struct entry {
    size_t count = 0;
    bool is_kept = false;  // it was paused already
  };
  std::mutex mutex;
  std::unordered_map<uint64_t, entry> entries;

  bool has(uint64_t id) {
    const std::lock_guard<std::mutex> lock(mutex);
    return entries.count(id) != 0;
  }
};
/// Never destroyed: static objects may have signals.
MULTICAST_API inline pauses &all_pauses() {
  static pauses *const all = new pauses;
  return *all;
}
/// How many signals are paused.
MULTICAST_API inline std::atomic<size_t> paused_signals{0};

inline bool is_paused(multicast target) noexcept {
  return paused_signals.load(std::memory_order_relaxed) != 0 && all_pauses().has(target.id);
}

}  // namespace detail

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
  /// Leaves the delegate out of invocations until resume(). Not counted; see scoped_pause.
  multicast_status pause() const noexcept { return multicast_token_pause(token_); }
  /// Ends a pause.
  multicast_status resume() const noexcept { return multicast_token_resume(token_); }
  /// Whether it is paused.
  /// @since 1.1
  bool is_paused() const noexcept {
    multicast_registration all = multicast_registration_default();
    return multicast_token_get(token_, &all) == MULTICAST_OK && all.is_paused;
  }
  /// Whether it is live, and its tracked objects are. If one of them is dead, removes it.
  bool is_live() const noexcept {
    if (!multicast_token_is_live(token_)) return false;
    if (detail::mortals.load(std::memory_order_relaxed) == 0) return true;
    multicast_registration all = multicast_registration_default();
    if (multicast_token_get(token_, &all) != MULTICAST_OK) return false;
    detail::prune(all.target);
    return multicast_token_is_live(token_);
  }
  /// The same as is_live().
  /// @since 1.1
  explicit operator bool() const noexcept { return is_live(); }
  /// For the functions of multicast.h.
  multicast_token token() const noexcept { return token_; }

  friend bool operator==(registration a, registration b) noexcept {
    return a.token_.id == b.token_.id;
  }
  friend bool operator!=(registration a, registration b) noexcept { return !(a == b); }

 private:
  multicast_token token_;
};

/// The registration that this thread is calling now; none outside all delegates.
/// @since 1.1
inline registration current() noexcept { return registration(multicast_token_current()); }

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
  /// Whether it is live.
  /// @since 1.1
  explicit operator bool() const noexcept { return get().is_live(); }
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
  /// How many registrations there are under it.
  /// @since 1.1
  size_t count() const { return detail::count(multicast_lifetime_count(handle_)); }
};

/// A base class of objects whose methods are delegates. What is added with such an object is
/// removed when it is destroyed.
///
/// The destructor of a base class runs after those of the derived class. If other threads invoke,
/// call stop_observing() first in the destructor of the derived class. Copies observe nothing.
///
/// Threads:   the destructor waits for calls on other threads, as multicast_lifetime_end() does.
/// @since 1.1
class observer {
 public:
  /// How many of its registrations there are.
  size_t count() const {
    const multicast_lifetime all = {id_.load(std::memory_order_acquire)};
    return all.id == 0 ? 0 : detail::count(multicast_lifetime_count(all));
  }
  /// The lifetime under which delegates of the object are added; it is made at the first use.
  multicast_lifetime observing() const {
    uint64_t id = id_.load(std::memory_order_acquire);
    if (id != 0) return {id};
    const multicast_lifetime made = multicast_lifetime_create();
    if (made.id == 0) detail::fail(multicast_create_error());
    if (id_.compare_exchange_strong(id, made.id)) return made;
    static_cast<void>(multicast_lifetime_end(made));
    return {id};
  }

 protected:
  observer() noexcept = default;
  observer(const observer &) noexcept {}
  observer &operator=(const observer &) noexcept { return *this; }  // NOLINT(cert-oop54-cpp)
  ~observer() { stop_observing(); }
  /// Removes all of its registrations and waits for running calls.
  void stop_observing() noexcept {
    const multicast_lifetime all = {id_.exchange(0)};
    if (all.id != 0) static_cast<void>(multicast_lifetime_end(all));
  }

 private:
  mutable std::atomic<uint64_t> id_{0};
};

// ---- 4. Queues ----------------------------------------------------------------------------------

namespace detail {

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

/// A result that is made on another thread.
template <typename R>
struct answer {
  std::optional<R> result;
  template <typename F>
  void take(F &function) {
    result.emplace(std::invoke(function));
  }
  bool is_there() const { return result.has_value(); }
  R get() { return std::move(*result); }
};
template <typename R>
struct answer<R &> {
  R *result = nullptr;
  template <typename F>
  void take(F &function) {
    result = std::addressof(std::invoke(function));
  }
  bool is_there() const { return result != nullptr; }
  R &get() { return *result; }
};
template <>
struct answer<void> {
  bool is_done = false;
  template <typename F>
  void take(F &function) {
    static_cast<void>(std::invoke(function));
    is_done = true;
  }
  bool is_there() const { return is_done; }
  void get() {}
};

/// Its address tells threads apart.
inline thread_local const char this_thread = 0;

/// The thread that has run a queue last; none: perhaps the queue's own, which the library knows.
class runner {
 public:
  runner() noexcept = default;
  runner(runner &&other) noexcept : thread_(other.thread_.load()) {}
  runner &operator=(runner &&other) noexcept {
    thread_.store(other.thread_.load());
    return *this;
  }
  void set(const char *thread) noexcept { thread_.store(thread, std::memory_order_relaxed); }
  bool is_this_thread() const noexcept {
    return thread_.load(std::memory_order_relaxed) == &this_thread;
  }
  bool may_be_this_thread() const noexcept {
    return is_this_thread() || thread_.load(std::memory_order_relaxed) == nullptr;
  }

 private:
  std::atomic<const char *> thread_{nullptr};
};

/// A callable whose result is waited for. The one that asks may give up before it is called.
template <typename F>
struct asked {
  using result = std::decay_t<std::invoke_result_t<F &>>;
  using kept = std::conditional_t<std::is_reference_v<std::invoke_result_t<F &>>,
                                  std::invoke_result_t<F &>, result>;
  F function;
  answer<kept> made;
  std::exception_ptr thrown;
  std::atomic<bool> is_claimed{false};
  std::atomic<bool> is_over{false};

  explicit asked(const F &given) : function(given) {}
  explicit asked(F &&given) : function(std::move(given)) {}
  void run() {
    if (is_claimed.exchange(true)) return;
    guard(failures{&thrown, nullptr}, [this] { made.take(function); });
    is_over.store(true, std::memory_order_release);
  }
};

}  // namespace detail

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
  /// Creates one with all options of C.
  /// @since 1.1
  explicit queue(const multicast_queue_options &how) : owner(multicast_queue_create(&how)) {}

  /// Makes queued calls, oldest first.
  ///
  /// @param max  The most calls to make. 0: at most as many as wait when this starts.
  /// @return How many calls were made.
  size_t run(size_t max = 0) {
    runner_.set(&detail::this_thread);
    return detail::count(multicast_queue_run(handle_, max));
  }

  /// Waits until a call is queued.
  ///
  /// @param timeout  How long to wait at most; by default without limit.
  /// @return How many calls are queued; 0: the timeout passed.
  size_t wait(std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max()) {
    const int64_t result = multicast_queue_wait(handle_, detail::nanoseconds(timeout));
    return result == MULTICAST_ERROR_TIMEOUT ? 0 : detail::count(result);
  }

  /// Queues a callable. It is called once, by the queue, and destroyed then; or without a call, if
  /// the queue drops it or is destroyed.
  ///
  /// @param function  Copied or moved from. Its result is ignored.
  /// @return Whether it was queued; false: the queue is full and refused it.
  ///
  /// Threads:   any. What it throws reaches the handler of set_exception_handler().
  /// Cost:      as an invocation with one queued call, and one allocation.
  /// @since 1.1
  template <typename F>
  bool post(F &&function) {
    static_assert(std::is_invocable_v<std::decay_t<F> &>,
                  "post() takes a callable without arguments: capture them");
    return send(task(std::forward<F>(function)), 0, nullptr) > 0;
  }

  /// Queues a callable, and waits until the queue has called it.
  ///
  /// If this thread is the one that runs the queue, it makes the queued calls up to this one now.
  /// If no thread has run the queue yet, this waits until one does.
  ///
  /// @return What the callable returns.
  ///
  /// Errors:    what the callable throws. mcast::error: MULTICAST_ERROR_QUEUE_FULL: the queue has
  ///            refused it. MULTICAST_ERROR_STATE: it was dropped, or the thread that runs the
  ///            queue waits for this one, or has ended in the call. With -fno-exceptions these end
  ///            the program.
  /// Threads:   any. Do not hold a lock that the callable takes.
  /// @since 1.1
  template <typename F>
  auto post_and_wait(F &&function) -> typename detail::asked<std::decay_t<F>>::kept {
    using state = detail::asked<std::decay_t<F>>;
    const auto shared = std::make_shared<state>(std::forward<F>(function));
    auto run = [shared] { shared->run(); };
    const multicast_queue here = handle_;  // the call may destroy this object
    const auto run_until_over = [&] {
      while (!shared->is_over.load(std::memory_order_acquire) &&
             multicast_queue_run(here, 1) > 0) {
      }
      return shared->is_over.load(std::memory_order_acquire);
    };
    const bool may_be_runner = runner_.may_be_this_thread();
    bool is_over = false;
    if (runner_.is_this_thread()) {
      if (send(task(run), 0, nullptr) == 0) give_up(MULTICAST_ERROR_QUEUE_FULL);
      is_over = run_until_over();
    }
    // It may be that another thread has just begun to run the queue. Only the first call counts.
    if (!is_over && multicast_queue_is_valid(here)) {
      multicast_outcome outcome = multicast_outcome_default();
      if (send(task(run), MULTICAST_WAIT, &outcome) == 0) give_up(MULTICAST_ERROR_QUEUE_FULL);
      if (outcome.unfinished != 0 && may_be_runner) run_until_over();
    }
    // Otherwise it is not called any more.
    if (shared->is_claimed.exchange(true) && shared->is_over.load(std::memory_order_acquire)) {
      if (shared->thrown) detail::rethrow(std::move(shared->thrown));
      return shared->made.get();
    }
    give_up(MULTICAST_ERROR_STATE);
  }

  /// Drops the calls that wait, and returns how many there were.
  /// @since 1.1
  size_t clear() { return detail::count(multicast_queue_clear(handle_)); }

  /// A descriptor that is readable while calls are queued, as that of multicast_queue_fd().
  int descriptor() {
    const int result = multicast_queue_fd(handle_);
    if (result < 0) detail::fail(MULTICAST_ERROR_SYSTEM);
    return result;
  }

  /// Gives the queue a thread of its own.
  void start() {
    if (detail::check(multicast_queue_start(handle_)) == MULTICAST_OK) runner_.set(nullptr);
  }
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
    if (capacity > 1u << 24) detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
    multicast_queue_options given = multicast_queue_options_default();
    given.capacity = capacity;
    given.overflow = overflow;
    return multicast_queue_create(&given);
  }

  template <typename F>
  static std::unique_ptr<detail::task> task(F &&function) {
    return std::make_unique<detail::posted<std::decay_t<F>>>(std::forward<F>(function));
  }
  int64_t send(std::unique_ptr<detail::task> given, uint32_t flags, multicast_outcome *outcome) {
    const multicast target = posts_.make([&](multicast made) {
      multicast_add_options how = multicast_add_options_default();
      how.queue = handle_;
      return multicast_add(made, {detail::task::call, nullptr}, &how, nullptr);
    });
    multicast_invocation how = multicast_invocation_default();
    how.flags = flags;
    how.release = detail::task::release;
    how.payload = given.release();  // the library owns it from here on
    return detail::check(multicast_invoke_with(target, &how, outcome));
  }
  [[noreturn]] static void give_up(multicast_status status) {
    detail::fail(status);
    std::terminate();
  }

  /// Its only delegate delivers to this queue.
  detail::lazy_multicast posts_;
  detail::runner runner_;
};

// ---- 5. Options ---------------------------------------------------------------------------------

/// The queue of a delegate: an mcast::queue or a handle.
/// @since 1.1
struct queue_reference {
  uint64_t id;  ///< That of the handle.
  constexpr queue_reference(multicast_queue given = {0}) noexcept : id(given.id) {}
  queue_reference(const queue &given) noexcept : id(given.handle().id) {}
  constexpr operator multicast_queue() const noexcept { return {id}; }
};

/// The lifetime of a delegate: an mcast::lifetime or a handle.
/// @since 1.1
struct lifetime_reference {
  uint64_t id;  ///< That of the handle.
  constexpr lifetime_reference(multicast_lifetime given = {0}) noexcept : id(given.id) {}
  lifetime_reference(const lifetime &given) noexcept : id(given.handle().id) {}
  constexpr operator multicast_lifetime() const noexcept { return {id}; }
};

namespace detail {

/// The registrations of a group.
class group {
 public:
  void add(multicast_token token) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (tokens_.size() >= limit_) {
      drop_dead();
      limit_ = 2 * tokens_.size() + 8;
    }
    tokens_.push_back(token);
  }
  /// Those that are live.
  std::vector<multicast_token> live() {
    const std::lock_guard<std::mutex> lock(mutex_);
    drop_dead();
    return tokens_;
  }

 private:
  void drop_dead() {
    std::vector<multicast_token> live;
    for (const multicast_token token : tokens_) {
      if (multicast_token_is_live(token)) live.push_back(token);
    }
    tokens_.swap(live);
  }

  std::mutex mutex_;
  std::vector<multicast_token> tokens_;
  size_t limit_ = 8;
};

}  // namespace detail

/// How a delegate is added; see multicast_add_options. In C++20: `add(f, {.priority = 3})`; in
/// C++17: `add(f, mcast::on(loop) | mcast::priority(3))`.
/// @since 1.0
template <typename Queue>
struct basic_options {
  /// Called at most once (default: false).
  bool once = false;
  /// Only the newest of its calls stays in the queue (default: false).
  bool latest = false;
  /// Equal delegates are removed first. Functions, methods of an object, and lambdas that are as
  /// small as a pointer are equal if all their parts are (default: false).
  /// @since 1.1
  bool unique = false;
  /// Before all delegates that are there, whatever `priority` is (default: false).
  /// @since 1.1
  bool at_front = false;
  /// Higher is invoked first; below 2^30 (default: 0).
  int32_t priority = 0;
  /// The end of this lifetime removes the registration (default: none).
  lifetime_reference lifetime = {};
  /// Calls wait in this queue; see signal::is_queueable (default: none).
  Queue queue = {};
  /// Given by groups::in() (default: none).
  /// @since 1.1
  detail::group *group = nullptr;

  /// The same options for C.
  operator multicast_add_options() const noexcept {
    multicast_add_options result = multicast_add_options_default();
    result.flags = (once ? MULTICAST_ONCE : 0u) | (latest ? MULTICAST_LATEST : 0u) |
                   (unique ? MULTICAST_UNIQUE : 0u);
    result.priority = priority;
    result.lifetime = lifetime;
    result.queue = queue;
    return result;
  }
};
/// @since 1.0
using options = basic_options<queue_reference>;

namespace detail {

/// In the options of a signal that cannot be queued.
struct no_queue {
  constexpr no_queue() noexcept = default;
  template <typename Queue>
  constexpr no_queue(const Queue &) noexcept {
    static_assert(never<Queue>,
                  "this signal cannot be queued: give it arguments that are copyable values or "
                  "references to const, and the result void");
  }
  operator multicast_queue() const noexcept { return {0}; }
};

/// Options of which is known that there is a queue.
struct queued_options : options {};

inline void merge(options &into, const options &more) noexcept {
  into.once |= more.once;
  into.latest |= more.latest;
  into.unique |= more.unique;
  into.at_front |= more.at_front;
  if (more.priority != 0) into.priority = more.priority;
  if (more.lifetime.id != 0) into.lifetime = more.lifetime;
  if (more.queue.id != 0) into.queue = more.queue;
  if (more.group != nullptr) into.group = more.group;
}

template <typename T>
struct is_options : std::false_type {};
template <typename Queue>
struct is_options<basic_options<Queue>> : std::true_type {};
template <>
struct is_options<queued_options> : std::true_type {};

/// Rises with each delegate that is added in front of all others.
MULTICAST_API inline std::atomic<int32_t> front{1 << 30};

}  // namespace detail

/// Options of both.
/// @since 1.1
inline options operator|(options left, const options &right) noexcept {
  detail::merge(left, right);
  return left;
}
inline detail::queued_options operator|(detail::queued_options left,
                                        const options &right) noexcept {
  detail::merge(left, right);
  return left;
}
inline detail::queued_options operator|(const options &left,
                                        detail::queued_options right) noexcept {
  options both = left;
  detail::merge(both, right);
  static_cast<options &>(right) = both;
  return right;
}
inline detail::queued_options operator|(const detail::queued_options &left,
                                        const detail::queued_options &right) noexcept {
  return left | static_cast<const options &>(right);
}

namespace detail {
template <typename Change>
constexpr options changed(Change &&change) noexcept {
  options result = {};
  change(result);
  return result;
}
}  // namespace detail

/// Options with a queue. A signal that cannot be queued refuses them at compile time.
/// @since 1.1
inline detail::queued_options on(queue_reference queue) noexcept {
  detail::queued_options result;
  result.queue = queue;
  return result;
}
/// Options with a lifetime.
/// @since 1.1
inline options under(lifetime_reference lifetime) noexcept {
  return detail::changed([&](options &how) { how.lifetime = lifetime; });
}
/// Options with a priority.
/// @since 1.1
inline options priority(int32_t priority) noexcept {
  return detail::changed([&](options &how) { how.priority = priority; });
}
/// Options with one flag: `add(f, mcast::once | mcast::on(loop))`.
/// @since 1.1
inline constexpr options once = detail::changed([](options &how) { how.once = true; });
inline constexpr options latest = detail::changed([](options &how) { how.latest = true; });
inline constexpr options unique = detail::changed([](options &how) { how.unique = true; });
inline constexpr options at_front = detail::changed([](options &how) { how.at_front = true; });

// ---- 6. Objects that are tracked ----------------------------------------------------------------

/// The weak pointer of an object. For other kinds of pointers declare such a function beside the
/// class. What it returns needs lock(), whose result is true while the object lives.
/// @since 1.1
template <typename T>
std::weak_ptr<T> to_weak(const std::shared_ptr<T> &object) noexcept {
  return object;
}
/// The same pointer.
template <typename T>
std::weak_ptr<T> to_weak(std::weak_ptr<T> object) noexcept {
  return object;
}

namespace detail {

template <typename T, typename = void>
struct has_weak : std::false_type {};
template <typename T>
struct has_weak<T, std::void_t<decltype(to_weak(std::declval<const T &>()).lock())>>
    : std::true_type {};

template <typename Weak>
bool is_dead(const Weak &object) noexcept {
  return !object.lock();
}
template <typename T>
bool is_dead(const std::weak_ptr<T> &object) noexcept {
  return object.expired();
}

template <typename T>
bool is_same(const T &a, const T &b) {
  return a == b;
}
template <typename T>
bool is_same(const std::weak_ptr<T> &a, const std::weak_ptr<T> &b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

/// Counts delegates that may die.
struct mortal {
  mortal() noexcept { mortals.fetch_add(1); }
  mortal(const mortal &) noexcept : mortal() {}
  mortal &operator=(const mortal &) noexcept = default;
  ~mortal() { mortals.fetch_sub(1); }
};

/// A callable that is only called while all objects live.
template <typename F, typename... Weak>
struct tracked {
  F function;
  std::tuple<Weak...> objects;
  mortal counted = {};

  bool is_dead() const noexcept {
    return std::apply([](const auto &...each) { return (detail::is_dead(each) || ...); }, objects);
  }
};

/// A callable that gets its registration first.
template <typename F>
struct extended {
  F function;
};

/// A method of an object behind a pointer.
template <typename Pointer, typename Method>
struct bound {
  Pointer object;
  Method method;

  template <typename... Args>
  auto operator()(Args &&...arguments) const
      -> std::invoke_result_t<const Method &, decltype(*std::declval<const Pointer &>()), Args...> {
    return std::invoke(method, *object, std::forward<Args>(arguments)...);
  }
  bool operator==(const bound &other) const {
    return object == other.object && method == other.method;
  }
};

/// A method of an object behind a weak pointer.
template <typename Weak, typename Method>
struct weak_bound {
  Weak object;
  Method method;
  mortal counted = {};

  bool is_dead() const noexcept { return detail::is_dead(object); }
};

}  // namespace detail

/// A callable that is called only while all of the objects live. When one of them is dead, the
/// delegate is removed: by the next invocation, size() or is_live().
///
/// @param function  Copied or moved from.
/// @param objects   Each a std::shared_ptr or std::weak_ptr, or a pointer with a to_weak(). Each
///                  call keeps them alive while it runs.
/// @since 1.1
template <typename F, typename... Objects>
auto tracked(F &&function, const Objects &...objects) {
  static_assert(sizeof...(Objects) > 0 && (detail::has_weak<Objects>::value && ...),
                "tracked() takes a callable and pointers that have a to_weak()");
  return detail::tracked<std::decay_t<F>, decltype(to_weak(objects))...>{
      std::forward<F>(function), {to_weak(objects)...}};
}

// ---- 7. Delegates -------------------------------------------------------------------------------

namespace detail {

template <typename F>
inline constexpr bool is_tracked = false;
template <typename F, typename... Weak>
inline constexpr bool is_tracked<tracked<F, Weak...>> = true;
template <typename F>
inline constexpr bool is_weak_bound = false;
template <typename Weak, typename Method>
inline constexpr bool is_weak_bound<weak_bound<Weak, Method>> = true;
template <typename F>
inline constexpr bool is_extended = false;
template <typename F>
inline constexpr bool is_extended<extended<F>> = true;
template <typename F>
inline constexpr bool is_mortal = is_tracked<F> || is_weak_bound<F>;

/// Whether it can be called with the arguments of a signal.
template <typename R, typename F, typename... Args>
struct is_delegate : std::is_invocable_r<R, F &, Args...> {};
template <typename R, typename F, typename... Weak, typename... Args>
struct is_delegate<R, tracked<F, Weak...>, Args...> : is_delegate<R, F, Args...> {};
template <typename R, typename F, typename... Args>
struct is_delegate<R, extended<F>, Args...> : std::is_invocable_r<R, F &, registration, Args...> {};
template <typename R, typename Weak, typename Method, typename... Args>
struct is_delegate<R, weak_bound<Weak, Method>, Args...>
    : is_delegate<R, bound<decltype(std::declval<const Weak &>().lock()), Method>, Args...> {};

/// Calls a callable with the arguments of a frame.
template <typename R, typename F, typename Frame>
void perform(F &function, const Frame &frame) {
  const auto deliver = [&](auto &&call) {
    if constexpr (std::is_void_v<R>) {
      static_cast<void>(call());
    } else {
      static_cast<answer<R> *>(frame.results)->take(call);
    }
  };
  static_cast<void>(deliver);
  if constexpr (is_tracked<F>) {
    const auto all = std::apply([](const auto &...each) { return std::make_tuple(each.lock()...); },
                                function.objects);
    if (std::apply([](const auto &...each) { return (static_cast<bool>(each) && ...); }, all)) {
      perform<R>(function.function, frame);
    }
  } else if constexpr (is_weak_bound<F>) {
    if (auto strong = function.object.lock()) {
      const auto method = [&](auto &&...arguments) -> decltype(auto) {
        return ((*strong).*function.method)(std::forward<decltype(arguments)>(arguments)...);
      };
      deliver([&]() -> decltype(auto) { return frame.apply(method); });
    }
  } else if constexpr (is_extended<F>) {
    deliver([&]() -> decltype(auto) { return frame.apply(function.function, current()); });
  } else {
    deliver([&]() -> decltype(auto) { return frame.apply(function); });
  }
}

/// `lock` only checks whether an object is dead; the call itself makes the pointer strong. So no
/// call needs an allocation for the strong pointer. An object that dies in between is not called.
template <typename Access>
struct life {
  static constexpr bool is_mortal = detail::is_mortal<typename Access::function>;
  static void *lock(void *context) noexcept {
    if constexpr (is_mortal) return Access::get(context).is_dead() ? nullptr : context;
    return context;
  }
};

/// A callable whose context is an object of its own.
template <typename F>
struct in_heap {
  using function = F;
  static constexpr bool is_owned = true;
  static F &get(void *context) noexcept { return *static_cast<F *>(context); }
  static void release(void *context) noexcept { delete static_cast<F *>(context); }
  template <typename Body>
  static void use(void *context, Body &&body) {
    body(get(context));
  }
};

/// A callable whose bytes are the context.
template <typename F>
struct in_context {
  using function = F;
  static constexpr bool is_owned = false;
  static void *pack(const F &given) noexcept {
    void *context = nullptr;
    // The byte of an empty object has no value.
    if constexpr (!std::is_empty_v<F>) std::memcpy(&context, &given, sizeof given);
    return context;
  }
  template <typename Body>
  static void use(void *context, Body &&body) {
    alignas(F) unsigned char bytes[sizeof(F)];
    std::memcpy(bytes, &context, sizeof bytes);
    body(*std::launder(reinterpret_cast<const F *>(bytes)));
  }
};

/// A method that is known at compile time; the context is the object.
template <auto method, typename T>
struct of_object {
  using function = bound<T *, decltype(method)>;
  static constexpr bool is_owned = false;
  static void *pack(T *object) noexcept {
    return const_cast<void *>(static_cast<const void *>(object));
  }
  template <typename Body>
  static void use(void *context, Body &&body) {
    const function called{static_cast<T *>(context), method};
    body(called);
  }
};

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
  virtual bool is_equal(const keyed &) const { return false; }
};

/// All of these contexts. Equal ones are one.
class keyed_contexts {
 public:
  keyed *add(std::unique_ptr<keyed> made) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (keyed *const equal = find(*made)) {
      ++equal->owners;
      return equal;
    }
    contexts_.emplace(made->object, made.get());
    return made.release();
  }
  void release(keyed *context) noexcept {
    std::unique_lock<std::mutex> lock(mutex_);
    if (--context->owners > 0) return;
    const auto range = contexts_.equal_range(context->object);
    for (auto i = range.first; i != range.second; ++i) {
      if (i->second == context) {
        contexts_.erase(i);
        break;
      }
    }
    lock.unlock();
    delete context;
  }
  /// The caller owns the result, too.
  keyed *retain(const keyed &wanted) {
    const std::lock_guard<std::mutex> lock(mutex_);
    keyed *const equal = find(wanted);
    if (equal != nullptr) ++equal->owners;
    return equal;
  }
  std::vector<keyed *> retain(const void *object) {
    std::vector<keyed *> all;
    const std::lock_guard<std::mutex> lock(mutex_);
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

  std::mutex mutex_;
  std::unordered_multimap<const void *, keyed *> contexts_;
};
/// Never destroyed: static objects may have signals.
MULTICAST_API inline keyed_contexts &all_keyed() {
  static keyed_contexts *const all = new keyed_contexts;
  return *all;
}

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

/// Of several removals of one delegate.
inline multicast_status joined(multicast_status a, multicast_status b) noexcept {
  if (a == MULTICAST_ERROR_NOT_FOUND) return b;
  if (b == MULTICAST_ERROR_NOT_FOUND) return a;
  return a != MULTICAST_OK ? a : b;
}

/// What options in braces mean. Depends on a type so that it is only asked where they are used:
/// until then types of arguments may be incomplete.
template <typename Signal, typename>
struct options_of {
  using type = std::conditional_t<Signal::is_queueable, options, basic_options<no_queue>>;
};

/// What signals with and without results have in common.
template <typename R, typename... Args>
class basic_signal {
  template <typename T>
  using default_options = typename options_of<basic_signal, T>::type;

 public:
  /// Whether delegates can be added with a queue: if there is no result, and if all arguments are
  /// copyable values or references to const. Queued calls share copies, of the types in the
  /// signature, which are made when the first call of an invocation is queued, and destroyed when
  /// the last of them has returned or is given up, on that thread. A std::string_view or a
  /// `const char *` is kept as a string. Of another pointer only the pointer is copied.
  static constexpr bool is_queueable = std::is_void_v<R> && (detail::is_queueable<Args>() && ...);

  /// Creates a signal without delegates. Its multicast is made by the first add.
  constexpr basic_signal() noexcept = default;

  /// For the functions of multicast.h; do not invoke it. Zero before the first add and after a
  /// move.
  multicast handle() const noexcept { return target_.get(); }

  /// Adds a lambda, function object or function, last among those of its priority.
  ///
  /// @param delegate  Copied or moved from. Called as an lvalue. If it is trivially copyable, not
  ///                  larger than a pointer and can be called as const, each call has a copy of
  ///                  its own. In a signal without results its result is ignored.
  /// @param how       How: options, on(), under(), priority(), once, latest, unique, at_front,
  ///                  joined by `|`. on() a signal that cannot be queued does not compile; a queue
  ///                  in other options is MULTICAST_ERROR_INVALID_ARGUMENT there.
  /// @return The registration, with which the delegate can be removed.
  ///
  /// Ownership: the copy is destroyed once: after the last call has returned, on the thread that
  ///            removes or that made this call; or, if the add fails, before it throws.
  /// Threads:   called on several threads at once if several invoke.
  /// Errors:    a null function is MULTICAST_ERROR_INVALID_ARGUMENT.
  /// Cost:      as multicast_add(). A delegate as large as a pointer needs no allocation, a larger
  ///            one needs one, and options.
  template <typename F>
  registration add(F &&delegate) {
    return add_callable<false>(std::forward<F>(delegate), nullptr);
  }
  template <typename F, typename How = default_options<F>,
            std::enable_if_t<detail::is_options<How>::value, int> = 0>
  registration add(F &&delegate, const How &how) {
    const options given = checked(how);
    return add_callable<is_queueable>(std::forward<F>(delegate), &given);
  }

  /// Adds a callable that gets its registration first, and then the arguments of the signal.
  /// @since 1.1
  template <typename F>
  registration add_extended(F &&delegate) {
    return add(detail::extended<std::decay_t<F>>{std::forward<F>(delegate)});
  }
  template <typename F, typename How = default_options<F>>
  registration add_extended(F &&delegate, const How &how) {
    return add(detail::extended<std::decay_t<F>>{std::forward<F>(delegate)}, how);
  }

  /// Adds a method of an object, or a callable that belongs to an object.
  ///
  /// @param object    An object or a pointer to it: borrowed; it must stay valid until the removal
  ///                  has completed. If its class is derived from mcast::observer, the delegate is
  ///                  removed when the object is destroyed. A std::shared_ptr or std::weak_ptr, or
  ///                  a pointer that has a to_weak(): held weakly. Each call keeps the object
  ///                  alive while it runs. When the object is dead, the delegate is removed: by the
  ///                  next invocation, size() or registration::is_live().
  /// @param delegate  A method of its class or a base class; if it is overloaded, use static_cast
  ///                  to select one. Or any callable.
  ///
  /// Errors:    a null pointer or method is MULTICAST_ERROR_INVALID_ARGUMENT, a lifetime for an
  ///            observer, too.
  /// Cost:      as add(), and a short lock. add<&T::method>(object) costs less.
  template <typename Object, typename F,
            std::enable_if_t<!detail::is_options<std::decay_t<F>>::value, int> = 0>
  registration add(Object &&object, F &&delegate) {
    return add_member<false>(std::forward<Object>(object), std::forward<F>(delegate), nullptr);
  }
  template <typename Object, typename F,
            typename How = default_options<Object>,
            std::enable_if_t<!detail::is_options<std::decay_t<F>>::value, int> = 0>
  registration add(Object &&object, F &&delegate, const How &how) {
    const options given = checked(how);
    return add_member<is_queueable>(std::forward<Object>(object), std::forward<F>(delegate),
                                    &given);
  }

  /// Adds a method that is known at compile time: `add<&T::method>(object)`. No allocation.
  ///
  /// @param object  An object or a pointer to it: borrowed. See add(object, delegate).
  /// @since 1.1
  template <auto method, typename Object>
  registration add(Object &&object) {
    return add_method<false, method>(pointer_to(object), nullptr);
  }
  template <auto method, typename Object,
            typename How = default_options<Object>>
  registration add(Object &&object, const How &how) {
    const options given = checked(how);
    return add_method<is_queueable, method>(pointer_to(object), &given);
  }

  /// Removes every registration of a function, or of an equal lambda that is not larger than a
  /// pointer, and waits as multicast_remove_every() does.
  ///
  /// @return As multicast_remove_every().
  /// @since 1.1
  template <typename F>
  multicast_status remove(const F &delegate) {
    using function = std::decay_t<F>;
    static_assert(is_in_context<function>,
                  "only functions and lambdas that are not larger than a pointer can be compared: "
                  "keep the registration that add() returns, and remove that");
    const function copy = delegate;
    return remove_both<detail::in_context<function>>(detail::in_context<function>::pack(copy));
  }
  /// Removes every registration of a method of an object, added as add(object, method).
  /// @since 1.1
  template <typename Object, typename Class, typename Method>
  multicast_status remove(Object &&object, Method Class::*method) {
    using given = std::decay_t<Object>;
    if constexpr (detail::has_weak<given>::value) {
      const auto weak = to_weak(object);
      using function = detail::weak_bound<std::decay_t<decltype(weak)>, Method Class::*>;
      return remove_keyed(address_of(weak), function{weak, method});
    } else {
      auto *const pointer = pointer_to(object);
      using function = detail::bound<std::decay_t<decltype(pointer)>, Method Class::*>;
      return remove_keyed(pointer, function{pointer, method});
    }
  }
  /// Removes every registration added as add<&T::method>(object).
  /// @since 1.1
  template <auto method, typename Object>
  multicast_status remove(Object &&object) {
    auto *const pointer = pointer_to(object);
    using object_type = std::remove_pointer_t<std::decay_t<decltype(pointer)>>;
    using access = detail::of_object<method, object_type>;
    return remove_both<access>(access::pack(pointer));
  }
  /// Removes what was added with an object: its methods, and the callables that belong to it.
  ///
  /// @param object  The object or pointer, of the same type as it was added with.
  /// @return How many were removed.
  /// @since 1.1
  template <typename Object>
  size_t remove_object(Object &&object) {
    const void *address;
    if constexpr (detail::has_weak<std::decay_t<Object>>::value) {
      address = address_of(to_weak(object));
    } else {
      address = pointer_to(object);
    }
    const multicast target = target_.get();
    if (target.id == 0 || address == nullptr) return 0;
    int64_t removed = multicast_remove_context(target, const_cast<void *>(address));
    for (detail::keyed *const context : detail::all_keyed().retain(address)) {
      const int64_t more = multicast_remove_context(target, context);
      detail::all_keyed().release(context);
      removed = removed < 0 ? removed : more < 0 ? more : removed + more;
    }
    return detail::count(removed);
  }

  /// How many delegates there are, paused ones included. Removes those whose objects are dead.
  size_t size() const {
    const multicast target = target_.get();
    if (target.id == 0) return 0;
    detail::prune(target);
    return detail::count(multicast_count(target));
  }
  /// Whether there is none.
  /// @since 1.1
  bool empty() const { return size() == 0; }
  /// Removes all delegates, as multicast_remove_all() does, and returns how many there were.
  size_t clear() {
    const multicast target = target_.get();
    return target.id == 0 ? 0 : detail::count(multicast_remove_all(target));
  }
  /// A view of this signal that can only be connected to.
  /// @since 1.1
  mcast::connectable<R(Args...)> connectable() noexcept {
    return mcast::connectable<R(Args...)>(static_cast<signal<R(Args...)> &>(*this));
  }
  /// Whether a scoped_pause of the whole signal exists.
  /// @since 1.1
  bool is_paused() const noexcept { return detail::is_paused(target_.get()); }

 protected:
  using frame = detail::frame<Args...>;
  friend class mcast::scoped_pause;

  /// The multicast to invoke; none if there is nothing to call.
  multicast invoked() const noexcept {
    const multicast target = target_.get();
    return detail::is_paused(target) ? multicast{0} : target;
  }

 private:
  template <typename F>
  static constexpr bool is_const_callable =
      std::is_invocable_r_v<R, const F &, detail::passed<Args>...>;
  template <typename F>
  static constexpr bool is_in_context =
      std::is_trivially_copyable_v<F> && sizeof(F) <= sizeof(void *) && !detail::is_extended<F> &&
      !detail::is_mortal<F> && is_const_callable<F>;

  /// What the library calls.
  template <typename Access, bool is_queued>
  static void call(void *context, uint32_t, const void *payload, size_t) {
    const frame &arguments = *static_cast<const frame *>(payload);
    detail::failures where = arguments.where;
    if constexpr (is_queued) where.thrown = nullptr;  // that of the invocation is gone
    detail::guard(where, [&] {
      Access::use(context, [&](auto &function) { detail::perform<R>(function, arguments); });
    });
  }

  template <typename Queue>
  static options checked(const basic_options<Queue> &how) {
    options result;
    result.once = how.once;
    result.latest = how.latest;
    result.unique = how.unique;
    result.at_front = how.at_front;
    result.priority = how.priority;
    result.lifetime = how.lifetime;
    result.queue = static_cast<multicast_queue>(how.queue);
    result.group = how.group;
    return result;
  }
  static options checked(const detail::queued_options &how) {
    static_assert(is_queueable,
                  "this signal cannot be queued: give it arguments that are copyable values or "
                  "references to const, and the result void");
    return how;
  }

  /// `make()` makes the context, which the library owns from then on.
  template <typename Access, bool may_queue, typename Make>
  registration insert(const options *how, Make &&make) {
    const multicast target = target_.make();
    multicast_token token = {0};
    constexpr bool needs_options = Access::is_owned;
    if (!needs_options && how == nullptr) {
      detail::check(multicast_add(target, {call<Access, false>, make()}, nullptr, &token));
      return registration(token);
    }
    multicast_function function = call<Access, false>, other = call<Access, true>;
    multicast_add_options given = multicast_add_options_default();
    if (how != nullptr) {
      given = *how;
      if (how->at_front) given.priority = next_in_front();
      if (how->queue.id != 0) {
        if constexpr (may_queue) {
          std::swap(function, other);
          if constexpr (frame::is_replaceable) {
            using copied = detail::copied<frame, detail::is_kept<Args>...>;
            detail::copier<Args...>::release.store(copied::release);
            detail::copier<Args...>::copy.store(copied::copy);
          }
        } else {
          detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
          return registration();
        }
      }
    }
    if constexpr (Access::is_owned) {
      given.release = Access::release;
      if constexpr (detail::life<Access>::is_mortal) {
        given.lock = detail::life<Access>::lock;
        given.unlock = [](void *) noexcept {};
      }
    }
    void *const context = make();
    if (how != nullptr && how->unique) {
      static_cast<void>(multicast_remove_within(target, {other, context}, 0));
    }
    detail::check(multicast_add(target, {function, context}, &given, &token));
    if (how != nullptr && how->group != nullptr && token.id != 0) how->group->add(token);
    return registration(token);
  }
  static int32_t next_in_front() noexcept {
    const int32_t last = detail::front.load();
    return last == INT32_MAX ? last : detail::front.fetch_add(1);
  }

  template <bool may_queue, typename Given>
  registration add_callable(Given &&given, const options *how) {
    using function = std::decay_t<Given>;
    static_assert(detail::is_delegate<R, function, detail::passed<Args>...>::value,
                  "the delegate cannot be called with the arguments of the signal");
    if constexpr (detail::is_delegate<R, function, detail::passed<Args>...>::value) {
      if (is_null(given)) {
        detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
        return registration();
      }
      if constexpr (is_in_context<function>) {
        using access = detail::in_context<function>;
        const function copy = std::forward<Given>(given);
        return insert<access, may_queue>(how, [&] { return access::pack(copy); });
      } else {
        return insert<detail::in_heap<function>, may_queue>(
            how, [&]() -> void * { return new function(std::forward<Given>(given)); });
      }
    }
    return registration();
  }

  template <bool may_queue, typename Object, typename Given>
  registration add_member(Object &&object, Given &&given, const options *how) {
    using function = std::decay_t<Given>;
    constexpr bool is_method = std::is_member_function_pointer_v<function>;
    if (is_null(given)) {
      detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
      return registration();
    }
    if constexpr (detail::has_weak<std::decay_t<Object>>::value) {
      auto weak = to_weak(object);
      const void *const address = address_of(weak);
      if constexpr (is_method) {
        return add_keyed<may_queue>(
            address, detail::weak_bound<decltype(weak), function>{std::move(weak), given}, how);
      } else {
        return add_keyed<may_queue>(address,
                                    detail::tracked<function, decltype(weak)>{
                                        std::forward<Given>(given), {std::move(weak)}},
                                    how);
      }
    } else {
      static_assert(std::is_pointer_v<std::decay_t<Object>> || std::is_lvalue_reference_v<Object>,
                    "the object must live longer than this call: pass a variable or a pointer");
      auto *const pointer = pointer_to(object);
      options changed;
      if (!prepare_object(pointer, how, changed)) return registration();
      if constexpr (is_method) {
        return add_keyed<may_queue>(
            pointer, detail::bound<std::decay_t<decltype(pointer)>, function>{pointer, given}, how);
      } else {
        return add_keyed<may_queue>(pointer, function(std::forward<Given>(given)), how);
      }
    }
  }

  template <bool may_queue, auto method, typename T>
  registration add_method(T *object, const options *how) {
    using access = detail::of_object<method, T>;
    static_assert(detail::is_delegate<R, typename access::function, detail::passed<Args>...>::value,
                  "the method cannot be called with this object and the arguments of the signal");
    options changed;
    if (!prepare_object(object, how, changed)) return registration();
    return insert<access, may_queue>(how, [&] { return access::pack(object); });
  }

  /// Checks a pointer, and uses the lifetime of an observer.
  template <typename T>
  static bool prepare_object(T *object, const options *&how, options &changed) {
    bool is_good = object != nullptr;
    if constexpr (std::is_base_of_v<observer, T>) {
      if (how != nullptr) changed = *how;
      is_good = is_good && changed.lifetime.id == 0;
      if (is_good) changed.lifetime = object->observing();
      how = &changed;
    }
    if (!is_good) detail::fail(MULTICAST_ERROR_INVALID_ARGUMENT);
    return is_good;
  }

  template <bool may_queue, typename F>
  registration add_keyed(const void *object, F function, const options *how) {
    static_assert(detail::is_delegate<R, F, detail::passed<Args>...>::value,
                  "the delegate cannot be called with the arguments of the signal, or is not a "
                  "method of the object");
    if constexpr (detail::is_delegate<R, F, detail::passed<Args>...>::value) {
      using access = detail::in_keyed<F>;
      return insert<access, may_queue>(how, [&]() -> void * {
        return detail::all_keyed().add(std::make_unique<detail::keyed_callable<F>>(
            object, call<access, false>, std::move(function)));
      });
    }
    return registration();
  }

  template <typename F>
  multicast_status remove_keyed(const void *object, F function) {
    using access = detail::in_keyed<F>;
    detail::keyed *const context = detail::all_keyed().retain(
        detail::keyed_callable<F>(object, call<access, false>, std::move(function)));
    if (context == nullptr) return MULTICAST_ERROR_NOT_FOUND;
    const multicast_status status = remove_both<access>(context);
    detail::all_keyed().release(context);
    return status;
  }
  template <typename Access>
  multicast_status remove_both(void *context) {
    const multicast target = target_.get();
    if (target.id == 0) return MULTICAST_ERROR_NOT_FOUND;
    return detail::joined(multicast_remove_every(target, {call<Access, false>, context}),
                          multicast_remove_every(target, {call<Access, true>, context}));
  }

  template <typename T>
  static T *pointer_to(T &object) noexcept {
    return std::addressof(object);
  }
  template <typename T>
  static T *pointer_to(T *&object) noexcept {
    return object;
  }
  template <typename T>
  static T *pointer_to(T *const &object) noexcept {
    return object;
  }
  template <typename Weak>
  static const void *address_of(const Weak &object) {
    const auto strong = object.lock();
    return strong ? static_cast<const void *>(std::addressof(*strong)) : nullptr;
  }
  template <typename F>
  static bool is_null(const F &function) {
    if constexpr (std::is_convertible_v<std::nullptr_t, F>) {
      return function == nullptr;
    } else {
      return false;
    }
  }

  mutable detail::lazy_multicast target_;
};

/// A parameter as invoke() takes it, for arguments that are given away.
template <typename Sequence, typename... Args>
struct given_away;
template <typename... Given, typename... Args>
struct given_away<std::tuple<Given...>, Args...> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(Given) == sizeof...(Args)) {
      return (std::is_convertible_v<Given &&, passed<Args>> && ...) &&
             (is_moved<Args, Given>() || ...);
    }
    return false;
  }();
};

}  // namespace detail

// ---- 8. Signals ---------------------------------------------------------------------------------

/// A multicast whose delegates are called with arguments of these types. The destructor removes
/// them, as multicast_destroy() does. All delegates of an invocation get the same arguments: an
/// argument by value is the invoker's own value, which they get as const.
///
/// A signal that was moved from is empty.
///
/// Threads:   any.
/// Reentry:   delegates may do anything, also destroy this object.
/// @since 1.0
template <typename Signature>
class signal {
  static_assert(detail::never<Signature>,
                "a signal takes a function type: signal<void(int, bool)>");
};

template <typename... Args>
class signal<void(Args...)> : public detail::basic_signal<void, Args...> {
  using base = detail::basic_signal<void, Args...>;
  using frame = typename base::frame;

 public:
  /// Calls every delegate, by priority, then by order of addition, as multicast_invoke() does.
  ///
  /// If delegates throw, the others are still called. Then the first exception of a call that was
  /// made on this thread is rethrown. What the copy of an argument throws counts likewise: the
  /// calls that would have been queued are refused.
  ///
  /// @param arguments  Nothing is copied for delegates without a queue. A value that is given away
  ///                   by std::move() or as a temporary is moved into the queue, if there are calls
  ///                   to queue and if nothing of this can throw.
  /// @return How many delegates were called or queued.
  ///
  /// Threads:   any; delegates without a queue run on the calling thread.
  /// Cost:      as multicast_invoke(). If calls are queued: one copy of the arguments.
  int64_t invoke(detail::passed<Args>... arguments) const {
    return send<detail::is_kept<Args>...>(nullptr, nullptr,
                                          static_cast<detail::passed<Args>>(arguments)...);
  }
  template <typename... Given,
            std::enable_if_t<detail::given_away<std::tuple<Given...>, Args...>::value, int> = 0>
  int64_t invoke(Given &&...arguments) const {
    return send<detail::is_moved<Args, Given>()...>(nullptr, nullptr,
                                                    std::forward<Given>(arguments)...);
  }

  /// The same as invoke(), without a result.
  void operator()(detail::passed<Args>... arguments) const {
    static_cast<void>(invoke(static_cast<detail::passed<Args>>(arguments)...));
  }
  template <typename... Given,
            std::enable_if_t<detail::given_away<std::tuple<Given...>, Args...>::value, int> = 0>
  void operator()(Given &&...arguments) const {
    static_cast<void>(invoke(std::forward<Given>(arguments)...));
  }

  /// The same as invoke(), and waits until the queued calls were made or given up, as
  /// MULTICAST_WAIT does. The first exception is rethrown, of the delegates on this thread first,
  /// then of the queued calls.
  ///
  /// @return What became of the calls.
  /// @since 1.1
  multicast_outcome invoke_and_wait(detail::passed<Args>... arguments) const {
    return wait(0, static_cast<detail::passed<Args>>(arguments)...);
  }
  /// The same, and waits at most for a given time. What is left is `unfinished`, and its exceptions
  /// are lost.
  /// @since 1.1
  multicast_outcome invoke_and_wait_for(std::chrono::nanoseconds timeout,
                                        detail::passed<Args>... arguments) const {
    const uint64_t limit = detail::nanoseconds(timeout);
    return wait(limit == 0 ? 1 : limit, static_cast<detail::passed<Args>>(arguments)...);
  }

 private:
  struct waiting {
    uint64_t timeout;
    std::shared_ptr<detail::shared_failure> failure;
  };

  multicast_outcome wait(uint64_t timeout, detail::passed<Args>... arguments) const {
    const waiting how{timeout, std::make_shared<detail::shared_failure>()};
    multicast_outcome outcome = multicast_outcome_default();
    static_cast<void>(send<detail::is_kept<Args>...>(
        &how, &outcome, static_cast<detail::passed<Args>>(arguments)...));
    std::exception_ptr thrown;
    {
      const std::lock_guard<std::mutex> lock(how.failure->mutex);
      thrown = std::exchange(how.failure->first, nullptr);
    }
    detail::rethrow(std::move(thrown));
    return outcome;
  }

  template <bool... is_moved>
  int64_t send(const waiting *waits, multicast_outcome *outcome,
               detail::passed<Args>... arguments) const {
    const multicast target = base::invoked();
    if (target.id == 0) return 0;
    std::exception_ptr thrown;
    frame here(static_cast<detail::passed<Args>>(arguments)...);
    here.where.thrown = &thrown;
    int64_t result;
    if (frame::is_replaceable || waits != nullptr) {
      multicast_invocation how = multicast_invocation_default();
      how.payload = &here;
      if constexpr (frame::is_replaceable || frame::is_plain) set_copy<is_moved...>(how);
      if (waits != nullptr) {
        here.where.waiting = waits->failure.get();
        how.flags = MULTICAST_WAIT;
        how.timeout_ns = waits->timeout;
      }
      result = multicast_invoke_with(target, &how, outcome);
      if (waits != nullptr && result == MULTICAST_ERROR_TIMEOUT) result = 0;
    } else {
      result = multicast_invoke(target, 0, &here, frame::is_plain ? sizeof here : 0);
    }
    // `this` may be destroyed by now: a delegate may have done it.
    if (thrown) detail::rethrow(std::move(thrown));
    return detail::check(result);
  }

  template <bool... is_moved>
  static void set_copy(multicast_invocation &how) noexcept {
    if constexpr (!frame::is_complete) {
      how.copy = detail::copier<Args...>::call_copy;
      how.release = detail::copier<Args...>::call_release;
    } else if constexpr (base::is_queueable) {
      using moves = std::bool_constant<(detail::is_safe<detail::value<Args>, is_moved> && ...)>;
      using copied = detail::copied<frame, (is_moved && moves::value)...>;
      how.copy = copied::copy;
      how.release = copied::release;
    }
  }
};

// ---- 9. Signals with results --------------------------------------------------------------------

/// Whether a fold goes on.
/// @since 1.1
enum class step { go_on, stop };

/// A signal whose delegates return something. It has no queues: a queued call has no result in
/// time.
///
/// Each function calls the delegates in order on this thread, and takes each result before the next
/// delegate is called; so one that stops early leaves the others uncalled. Where delegates throw:
/// operator() and collect() call the others too, as signal<void()> does, then rethrow the first
/// exception. The functions that can stop early stop there, and rethrow it.
///
/// @since 1.1
template <typename R, typename... Args>
class signal<R(Args...)> : public detail::basic_signal<R, Args...> {
  static_assert(!std::is_rvalue_reference_v<R>, "a result is a value or an lvalue reference");
  using base = detail::basic_signal<R, Args...>;
  using frame = typename base::frame;

 public:
  /// A result as it is kept: a reference as a std::reference_wrapper.
  using result = std::conditional_t<std::is_reference_v<R>,
                                    std::reference_wrapper<std::remove_reference_t<R>>,
                                    std::remove_cv_t<R>>;

  /// Calls all delegates, and returns the last result; nothing if there is none.
  std::optional<result> operator()(detail::passed<Args>... arguments) const {
    std::optional<result> last;
    visit(true, [&](auto &&made) {
      last.emplace(std::forward<decltype(made)>(made));
      return true;
    }, static_cast<detail::passed<Args>>(arguments)...);
    return last;
  }
  /// Calls all delegates, and returns all results in order.
  std::vector<result> collect(detail::passed<Args>... arguments) const {
    std::vector<result> all;
    visit(true, [&](auto &&made) {
      all.push_back(std::forward<decltype(made)>(made));
      return true;
    }, static_cast<detail::passed<Args>>(arguments)...);
    return all;
  }
  /// Returns the first result that is true as a condition, such as an optional or a pointer that is
  /// not empty, and calls no further delegate. If results cannot be conditions: the first one.
  std::optional<result> first_of(detail::passed<Args>... arguments) const {
    std::optional<result> first;
    visit(false, [&](auto &&made) {
      if constexpr (std::is_constructible_v<bool, R>) {
        if (!static_cast<bool>(made)) return true;
      }
      first.emplace(std::forward<decltype(made)>(made));
      return false;
    }, static_cast<detail::passed<Args>>(arguments)...);
    return first;
  }
  /// Whether all results are true; calls no further delegate after one that is not. True of none.
  bool all(detail::passed<Args>... arguments) const {
    bool answer = true;
    visit(false, [&](auto &&made) {
      answer = static_cast<bool>(made);
      return answer;
    }, static_cast<detail::passed<Args>>(arguments)...);
    return answer;
  }
  /// Whether a result is true; calls no further delegate after one that is. False of none.
  bool any(detail::passed<Args>... arguments) const {
    bool answer = false;
    visit(false, [&](auto &&made) {
      answer = static_cast<bool>(made);
      return !answer;
    }, static_cast<detail::passed<Args>>(arguments)...);
    return answer;
  }
  /// Passes each result to a function, before the next delegate is called: what the combiners of
  /// other libraries do with iterators.
  ///
  /// @param function  Gets a result. If it returns bool, false stops.
  /// @return How many delegates were called.
  template <typename F>
  size_t each(F &&function, detail::passed<Args>... arguments) const {
    return visit(false, [&](auto &&made) {
      using answer = decltype(function(std::forward<decltype(made)>(made)));
      if constexpr (std::is_same_v<answer, bool>) {
        return function(std::forward<decltype(made)>(made));
      } else {
        static_cast<void>(function(std::forward<decltype(made)>(made)));
        return true;
      }
    }, static_cast<detail::passed<Args>>(arguments)...);
  }
  /// Combines all results.
  ///
  /// @param sum       The initial value.
  /// @param function  Either as for std::accumulate(): gets the value so far and a result, and
  ///                  returns the next value. Or gets a reference to the value and a result, and
  ///                  returns mcast::step::go_on or mcast::step::stop.
  template <typename T, typename F>
  T fold(T sum, F &&function, detail::passed<Args>... arguments) const {
    visit(false, [&](auto &&made) {
      if constexpr (is_step<F, T, decltype(made)>::value) {
        return function(sum, std::forward<decltype(made)>(made)) == step::go_on;
      } else {
        sum = function(std::move(sum), std::forward<decltype(made)>(made));
        return true;
      }
    }, static_cast<detail::passed<Args>>(arguments)...);
    return sum;
  }

 private:
  template <typename F, typename T, typename Made, typename = void>
  struct is_step : std::false_type {};
  template <typename F, typename T, typename Made>
  struct is_step<F, T, Made,
                 std::enable_if_t<std::is_same_v<std::invoke_result_t<F &, T &, Made>, step>>>
      : std::true_type {};

  template <typename Body>
  struct visitor {
    frame *arguments;
    std::exception_ptr *thrown;
    Body *body;
    bool calls_all;

    static bool call(void *context, const multicast_delegate *delegate) {
      const visitor &self = *static_cast<const visitor *>(context);
      detail::answer<R> made;
      self.arguments->results = &made;
      delegate->function(delegate->context, 0, self.arguments, 0);
      bool goes_on = self.calls_all || !*self.thrown;
      if (made.is_there()) {
        detail::guard(self.arguments->where, [&] {
          goes_on = false;  // if it throws
          goes_on = (*self.body)(made.get());
        });
      }
      return goes_on;
    }
  };

  template <typename Body>
  size_t visit(bool calls_all, Body &&body, detail::passed<Args>... arguments) const {
    const multicast target = base::invoked();
    if (target.id == 0) return 0;
    std::exception_ptr thrown;
    frame here(static_cast<detail::passed<Args>>(arguments)...);
    here.where.thrown = &thrown;
    using called = visitor<std::remove_reference_t<Body>>;
    called context{&here, &thrown, &body, calls_all};
    const int64_t visited = multicast_visit(target, called::call, &context);
    if (thrown) detail::rethrow(std::move(thrown));
    return detail::count(visited);
  }
};

/// A view of a signal that can only be connected to: for the interface of a class whose signals
/// others must not invoke. It must not be used after the signal.
///
/// @since 1.1
template <typename Signature>
class connectable {
 public:
  explicit connectable(signal<Signature> &target) noexcept : target_(&target) {}
  /// As signal::add(). Options are given as on(), priority() and so on.
  template <typename... Given>
  registration add(Given &&...given) const {
    return target_->add(std::forward<Given>(given)...);
  }
  template <auto method, typename... Given>
  registration add(Given &&...given) const {
    return target_->template add<method>(std::forward<Given>(given)...);
  }
  template <typename... Given>
  registration add_extended(Given &&...given) const {
    return target_->add_extended(std::forward<Given>(given)...);
  }
  /// As signal::remove().
  template <typename... Given>
  multicast_status remove(Given &&...given) const {
    return target_->remove(std::forward<Given>(given)...);
  }
  template <auto method, typename Object>
  multicast_status remove(Object &&object) const {
    return target_->template remove<method>(std::forward<Object>(object));
  }
  template <typename Object>
  size_t remove_object(Object &&object) const {
    return target_->remove_object(std::forward<Object>(object));
  }

 private:
  signal<Signature> *target_;
};

/// A pause until the end of a scope: of a registration, or of a whole signal, whose invocations
/// then call and queue nothing. Counted: two pauses of one thing end with the second. What was
/// paused by registration::pause() before stays paused.
///
/// Threads:   any. As multicast_token_pause(): does not wait for running calls.
/// @since 1.1
class [[nodiscard]] scoped_pause {
 public:
  explicit scoped_pause(registration r) { begin(r.token().id, false); }
  explicit scoped_pause(const scoped_registration &r) : scoped_pause(r.get()) {}
  template <typename R, typename... Args>
  explicit scoped_pause(const detail::basic_signal<R, Args...> &s) {
    begin(s.target_.make().id, true);
  }
  scoped_pause(scoped_pause &&other) noexcept
      : id_(std::exchange(other.id_, 0)), is_signal_(other.is_signal_) {}
  scoped_pause &operator=(scoped_pause &&other) noexcept {
    std::swap(id_, other.id_);
    std::swap(is_signal_, other.is_signal_);
    other.end();
    return *this;
  }
  ~scoped_pause() { end(); }
  /// Ends it early.
  void end() noexcept {
    const uint64_t id = std::exchange(id_, 0);
    if (id == 0) return;
    detail::pauses &all = detail::all_pauses();
    const std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.entries.find(id);
    if (--found->second.count > 0) return;
    if (is_signal_) {
      detail::paused_signals.fetch_sub(1);
    } else if (!found->second.is_kept) {
      static_cast<void>(multicast_token_resume({id}));
    }
    all.entries.erase(found);
  }

 private:
  void begin(uint64_t id, bool is_signal) {
    if (id == 0) return;
    detail::pauses &all = detail::all_pauses();
    const std::lock_guard<std::mutex> lock(all.mutex);
    detail::pauses::entry &entry = all.entries[id];
    id_ = id;
    is_signal_ = is_signal;
    if (entry.count++ > 0) return;
    if (is_signal) {
      detail::paused_signals.fetch_add(1);
    } else {
      entry.is_kept = registration(multicast_token{id}).is_paused();
      static_cast<void>(multicast_token_pause({id}));
    }
  }

  uint64_t id_ = 0;
  bool is_signal_ = false;
};

/// Groups of delegates, by keys of any ordered type: they are called in the order of their keys,
/// and can be removed and paused together. `s.add(f, ui.in("menu") | mcast::on(loop))`
///
/// One object may serve several signals. What was added stays when it is destroyed, which must not
/// happen during an add with it. Delegates without a group have priority 0: groups of numbers above
/// 0 are called after these.
///
/// Threads:   any.
/// @since 1.1
template <typename Key, typename Compare = std::less<Key>>
class groups {
 public:
  /// Options with a group, and with the priority that it has.
  ///
  /// @param key  A group that is not there yet is made, between its neighbours. A number is its own
  ///             priority, below zero.
  ///
  /// Errors:    mcast::error, MULTICAST_ERROR_LIMIT: there is no priority left between the
  ///            neighbours: after 16 groups that were each put between the last one and its
  ///            neighbour. Or the number is not between -2^30 and 2^30.
  options in(const Key &key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    entry &found = find_or_make(key);
    options how;
    how.priority = found.priority;
    how.group = &found.members;
    return how;
  }
  /// Removes the delegates of a group and waits, as registration::remove() does for each.
  ///
  /// @return How many were removed.
  size_t remove(const Key &key) {
    size_t removed = 0;
    for (const multicast_token token : live(key)) {
      const multicast_status status = multicast_token_remove(token);
      if (status == MULTICAST_OK || status == MULTICAST_PENDING) ++removed;
    }
    return removed;
  }
  /// How many delegates a group has.
  size_t count(const Key &key) { return live(key).size(); }
  /// Pauses the delegates that a group has now, until the result is destroyed. Counted, as
  /// scoped_pause is.
  [[nodiscard]] std::vector<scoped_pause> pause(const Key &key) {
    std::vector<scoped_pause> all;
    for (const multicast_token token : live(key)) all.emplace_back(registration(token));
    return all;
  }

 private:
  struct entry {
    int32_t priority = 0;
    detail::group members;
  };
  using map = std::map<Key, entry, Compare>;
  static constexpr int64_t limit = int64_t{1} << 30;

  entry &find_or_make(const Key &key) {
    const auto next = entries_.lower_bound(key);
    if (next != entries_.end() && !entries_.key_comp()(key, next->first)) return next->second;
    int64_t chosen = 0;
    if constexpr (std::is_integral_v<Key> && std::is_same_v<Compare, std::less<Key>>) {
      chosen = key < static_cast<Key>(0) || static_cast<uint64_t>(key) < uint64_t{1} << 30
                   ? -static_cast<int64_t>(key)
                   : limit;
    } else {
      constexpr int64_t apart = 1 << 16;
      const bool is_first = next == entries_.begin(), is_last = next == entries_.end();
      const int64_t above = is_first ? 0 : std::prev(next)->second.priority;
      const int64_t below = is_last ? 0 : next->second.priority;
      if (is_first && is_last) {
        chosen = 0;
      } else if (is_last) {
        chosen = above - apart;
      } else if (is_first) {
        chosen = below + apart;
      } else {
        chosen = below + (above - below) / 2;
        if (chosen == below) chosen = limit;
      }
    }
    if (chosen >= limit || chosen <= -limit) {
      detail::fail(MULTICAST_ERROR_LIMIT);
      chosen = 0;
    }
    entry &made = entries_[key];
    made.priority = static_cast<int32_t>(chosen);
    return made;
  }
  std::vector<multicast_token> live(const Key &key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? std::vector<multicast_token>() : found->second.members.live();
  }

  std::mutex mutex_;
  map entries_;
};

#if !MULTICAST_HPP_EXCEPTIONS
}  // inline namespace without_exceptions
#endif

}  // namespace mcast

#endif
