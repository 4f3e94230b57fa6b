/// Where queued messages arrive, whatever carried them: contenders call `receive` once for each.
#pragma once

#include <semaphore.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <future>
#include <vector>

/// Nanoseconds on the monotonic clock.
inline int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class receiver {
 public:
  /// @param expected   It has finished when it has received so many.
  /// @param producers  From so many threads.
  /// @param most       A producer that asks for room is never ahead by more than its share of this.
  receiver(uint64_t expected, uint32_t producers, uint32_t most)
      : expected(expected), batch(most / producers / 2), rooms(producers) {
    for (auto &each : rooms) each.until_next = batch;
  }

  /// @param producer  Who sent it: the event.
  /// @param payload   When latencies are recorded, begins with the time of sending.
  void receive(uint32_t producer, const void *payload, size_t size) {
    if (latencies) {
      int64_t sent;
      std::memcpy(&sent, payload, sizeof sent);
      latencies->push_back(now() - sent);
    }
    room &of_producer = rooms[producer];
    if (--of_producer.until_next == 0) {
      of_producer.until_next = batch;
      sem_post(&of_producer.batches);
    }
    bytes += size;
    if (++calls == expected) finished.set_value();
  }

  /// Called by a producer before each batch, to be no further ahead than its share. Two have room:
  /// while one is received the next is sent, for one semaphore operation a batch on either side.
  void wait_for_room(uint32_t producer) {
    while (sem_wait(&rooms[producer].batches) != 0) {}
  }

  /// For the consumer.
  bool is_finished() const { return calls >= expected; }
  /// For others.
  void wait() { finished.get_future().wait(); }

  const uint64_t expected;
  /// How many messages make a batch.
  const uint32_t batch;
  uint64_t calls = 0;
  uint64_t bytes = 0;
  std::vector<int64_t> *latencies = nullptr;

 private:
  struct alignas(64) room {
    room() { sem_init(&batches, 0, 2); }
    ~room() { sem_destroy(&batches); }
    sem_t batches;
    uint32_t until_next;
  };
  std::vector<room> rooms;
  std::promise<void> finished;
};
