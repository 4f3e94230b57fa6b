/// libmulticast's queue, run in three ways.
#pragma once

#include <sys/epoll.h>
#include <unistd.h>

#include <string>

#include "libmulticast.hpp"
#include "receiver.hpp"

enum class runner { loop, own_thread, epoll };

template <class library, runner who> struct libmulticast_queue_contender {
  static std::string name() {
    return library::name() + (who == runner::loop         ? ", wait and run"
                              : who == runner::own_thread ? ", own thread"
                                                          : ", epoll");
  }
  static constexpr bool is_bounded = true;

  explicit libmulticast_queue_contender(receiver &to, uint32_t capacity) : to(to) {
    multicast_queue_options queue_options = multicast_queue_options_default();
    queue_options.capacity = capacity;
    queue_options.overflow = MULTICAST_OVERFLOW_BLOCK;
    queue = library::queue_create(&queue_options);
    multicast_add_options options = multicast_add_options_default();
    options.queue = queue;
    library::add(handle, {receive, &to}, &options, nullptr);
    if constexpr (who == runner::epoll) {
      int descriptor = library::queue_fd(queue);
      epoll_event interest{};
      interest.events = EPOLLIN;
      epoll_ctl(set = epoll_create1(EPOLL_CLOEXEC), EPOLL_CTL_ADD, descriptor, &interest);
    }
  }
  ~libmulticast_queue_contender() {
    if (set >= 0) close(set);
    library::destroy(handle);
    library::queue_destroy(queue);
  }
  libmulticast_queue_contender(const libmulticast_queue_contender &) = delete;

  void push(uint32_t event, const void *payload, size_t size) {
    library::invoke(handle, event, payload, size);
  }
  void run_one() {
    if constexpr (who == runner::epoll) wait();
    library::queue_run(queue, 1);
  }

  void start() {
    if constexpr (who == runner::own_thread) library::queue_start(queue);
  }
  void deliver() {
    if constexpr (who == runner::own_thread) return to.wait();
    while (!to.is_finished()) {
      wait();
      library::queue_run(queue, 0);
    }
  }

 private:
  static void receive(void *context, uint32_t event, const void *payload, size_t size) {
    static_cast<receiver *>(context)->receive(event, payload, size);
  }
  void wait() {
    epoll_event event;
    if constexpr (who == runner::epoll) epoll_wait(set, &event, 1, -1);
    else library::queue_wait(queue, UINT64_MAX);
  }

  receiver &to;
  multicast handle = library::create();
  multicast_queue queue;
  int set = -1;
};
