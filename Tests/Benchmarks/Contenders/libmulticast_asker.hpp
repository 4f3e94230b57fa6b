/// Invokes a delegate whose queue has a worker thread, and waits for the call (MULTICAST_WAIT).
#pragma once

#include <string>

#include "answer.hpp"
#include "libmulticast.hpp"

template <class library> struct libmulticast_asker {
  static std::string name() { return library::name(); }

  libmulticast_asker() {
    multicast_add_options options = multicast_add_options_default();
    options.queue = queue;
    library::add(handle, {receive, nullptr}, &options, nullptr);
    library::queue_start(queue);
  }
  ~libmulticast_asker() {
    library::destroy(handle);
    library::queue_destroy(queue);
  }
  libmulticast_asker(const libmulticast_asker &) = delete;

  uint64_t ask(uint64_t question) {
    request made{question, 0};
    multicast_invocation invocation = multicast_invocation_default();
    invocation.flags = MULTICAST_WAIT;
    // Because the size is 0, the call receives the pointer itself. The request may be on the stack,
    // because this function returns only after the call. The wait has no time limit, and the
    // library does not end it early, because the worker never waits for this thread.
    invocation.payload = &made;
    library::invoke_with(handle, &invocation, nullptr);
    return made.answer;
  }

 private:
  struct request {
    uint64_t question, answer;
  };
  static void receive(void *, uint32_t, const void *payload, size_t) {
    auto *asked = static_cast<request *>(const_cast<void *>(payload));
    asked->answer = answer(asked->question);
  }

  multicast handle = library::create();
  multicast_queue queue = library::queue_create(nullptr);
};
