/// A queue without a library: a ring of fixed size and a mutex, a condition variable for the
/// consumer, and a condition variable for producers that wait for room. Messages are at most 32
/// bytes long. The consumer takes messages out of the ring one at a time.
#pragma once

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "receiver.hpp"

struct ring_queue_contender {
  static std::string name() { return "mutex, condition, ring"; }
  static constexpr bool is_bounded = true;
  static constexpr size_t largest = 32;

  ring_queue_contender(receiver &to, uint32_t capacity) : to(to), messages(capacity) {}

  void push(uint32_t event, const void *payload, size_t size) {
    bool was_empty;
    {
      std::unique_lock<std::mutex> guard(lock);
      room.wait(guard, [this] { return tail - head < messages.size(); });
      was_empty = head == tail;
      message &made = messages[tail++ % messages.size()];
      made.event = event;
      made.size = size;
      std::memcpy(made.bytes, payload, size);
    }
    if (was_empty) arrival.notify_one();
  }
  void run_one() {
    message taken;
    bool was_full;
    {
      std::unique_lock<std::mutex> guard(lock);
      arrival.wait(guard, [this] { return head != tail; });
      was_full = tail - head == messages.size();
      taken = messages[head++ % messages.size()];
    }
    if (was_full) room.notify_all();
    to.receive(taken.event, taken.bytes, taken.size);
  }

  void start() {}
  void deliver() {
    while (!to.is_finished()) run_one();
  }

 private:
  struct message {
    uint32_t event;
    size_t size;
    alignas(16) unsigned char bytes[largest];
  };

  receiver &to;
  std::mutex lock;
  std::condition_variable arrival, room;
  std::vector<message> messages;
  uint64_t head = 0, tail = 0;
};
