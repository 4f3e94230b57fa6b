/// libmulticast as two contenders in one program: a shared library and a static library.
#pragma once

#include <string>

#include "work.h"

// CMakeLists.txt adds the prefix "static_" to the static library's functions.
#define EACH_FUNCTION(X)                                                                       \
  X(create) X(destroy) X(add) X(add_many) X(remove) X(remove_all) X(contains) X(invoke)        \
  X(token_remove) X(token_remove_nowait) X(token_pause) X(token_resume) X(token_is_valid)      \
  X(count) X(enumerate) X(listener_flag)                                                       \
  X(queue_create) X(queue_destroy) X(queue_run) X(queue_wait) X(queue_fd)                      \
  X(queue_start) X(queue_stop) X(queue_get_stats) X(invoke_with)                               \
  X(broadcaster_create) X(broadcaster_destroy) X(broadcaster_register)                         \
  X(broadcaster_notify) X(broadcaster_multicast) X(set_allocator)

extern "C" {
#define X(verb) extern decltype(multicast_##verb) static_multicast_##verb;
EACH_FUNCTION(X)
#undef X
}

struct shared_library {
  static std::string name() { return "libmulticast"; }
#define X(verb) static constexpr auto *verb = multicast_##verb;
  EACH_FUNCTION(X)
#undef X
};

struct static_library {
  static std::string name() { return "libmulticast, static"; }
#define X(verb) static constexpr auto *verb = static_multicast_##verb;
  EACH_FUNCTION(X)
#undef X
};

template <class library> struct libmulticast_contender {
  static std::string name() { return library::name(); }
  static constexpr bool is_thread_safe = true;
  using token = multicast_token;

  libmulticast_contender()
      : handle(library::create()), flag(library::listener_flag(handle)) {}
  ~libmulticast_contender() { library::destroy(handle); }
  libmulticast_contender(const libmulticast_contender &) = delete;

  token add(multicast_function function, void *context) {
    token out;
    library::add(handle, {function, context}, nullptr, &out);
    return out;
  }
  void add_many(const multicast_delegate *delegates, size_t count, token *out) {
    library::add_many(handle, delegates, count, nullptr, out);
  }
  void remove(token &t) { library::token_remove(t); }
  void remove_nowait(token &t) { library::token_remove_nowait(t); }
  void remove_all() { library::remove_all(handle); }
  void remove_delegate(multicast_function function, void *context) {
    library::remove(handle, {function, context});
  }
  bool contains(multicast_function function, void *context) {
    return library::contains(handle, {function, context});
  }
  bool is_wanted() { return multicast_has_listeners(flag); }
  bool pause_and_resume(token &t) {
    return library::token_pause(t) == MULTICAST_OK && library::token_resume(t) == MULTICAST_OK;
  }
  size_t count() { return size_t(library::count(handle)); }
  bool is_valid(token &t) { return library::token_is_valid(t); }
  template <class Function> void enumerate(Function function) {
    library::enumerate(
        handle,
        [](void *context, const multicast_registration *registration) {
          (*static_cast<Function *>(context))(registration->token.id);
          return true;
        },
        &function);
  }
  void invoke(uint32_t event, const void *payload, size_t size) {
    library::invoke(handle, event, payload, size);
  }

 private:
  multicast handle;
  const uint32_t *flag;
};
