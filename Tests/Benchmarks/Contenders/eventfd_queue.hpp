/// Makes only the system calls with which a queue notifies an epoll loop of a message. Nothing is
/// queued, and there is no second thread.
#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "receiver.hpp"

struct eventfd_queue_contender {
  static std::string name() { return "Linux eventfd and epoll, without a queue"; }
  static constexpr size_t largest = 32;

  eventfd_queue_contender(receiver &to, uint32_t) : to(to) {
    epoll_event interest{};
    interest.events = EPOLLIN;
    epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &interest);
  }
  ~eventfd_queue_contender() {
    close(set);
    close(descriptor);
  }
  eventfd_queue_contender(const eventfd_queue_contender &) = delete;

  void push(uint32_t event, const void *payload, size_t size) {
    this->event = event;
    this->size = size;
    std::memcpy(bytes, payload, size);
    if (eventfd_write(descriptor, 1) != 0) this->size = 0;
  }
  void run_one() {
    epoll_event happened;
    eventfd_t value;
    epoll_wait(set, &happened, 1, -1);
    if (eventfd_read(descriptor, &value) == 0) to.receive(event, bytes, size);
  }

 private:
  receiver &to;
  int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), set = epoll_create1(EPOLL_CLOEXEC);
  uint32_t event = 0;
  size_t size = 0;
  alignas(16) unsigned char bytes[largest];
};
