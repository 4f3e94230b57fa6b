/// A queue without a library: a std::deque and a mutex, a condition variable for the consumer, and
/// a condition variable for producers that wait for room. The consumer takes all waiting messages
/// out of the deque together.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "receiver.hpp"

struct condition_queue_contender {
  static std::string name() { return "mutex, condition, std::deque"; }
  static constexpr bool is_bounded = true;

  condition_queue_contender(receiver &to, uint32_t capacity) : to(to), capacity(capacity) {}

  void push(uint32_t event, const void *payload, size_t size) {
    message made(event, payload, size);
    bool was_empty;
    {
      std::unique_lock<std::mutex> guard(lock);
      room.wait(guard, [this] { return waiting.size() < capacity; });
      was_empty = waiting.empty();
      waiting.push_back(std::move(made));
    }
    if (was_empty) arrival.notify_one();
  }
  void run_one() { run(); }

  void start() {}
  void deliver() {
    while (!to.is_finished()) run();
  }

 private:
  /// A small payload is stored in the message, without an allocation.
  struct message {
    message(uint32_t event, const void *payload, size_t size) : event(event), size(size) {
      if (size > sizeof small) large.reset(new unsigned char[size]);
      std::memcpy(large ? large.get() : small, payload, size);
    }
    const void *payload() const { return large ? large.get() : small; }

    uint32_t event;
    size_t size;
    std::unique_ptr<unsigned char[]> large;
    alignas(16) unsigned char small[16];
  };

  void run() {
    bool was_full;
    {
      std::unique_lock<std::mutex> guard(lock);
      arrival.wait(guard, [this] { return !waiting.empty(); });
      was_full = waiting.size() >= capacity;
      taken.swap(waiting);
    }
    if (was_full) room.notify_all();
    for (auto &each : taken) to.receive(each.event, each.payload(), each.size);
    taken.clear();
  }

  receiver &to;
  const size_t capacity;
  std::mutex lock;
  std::condition_variable arrival, room;
  std::deque<message> waiting, taken;
};
