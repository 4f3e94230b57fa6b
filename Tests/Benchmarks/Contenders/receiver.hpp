/// The receiver of queued messages. Each contender calls `receive` once for each message.
#pragma once

#include <semaphore.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <future>
#include <vector>

/// Returns the time of the monotonic clock in nanoseconds.
inline int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class receiver {
 public:
  /// @param expected   The total number of messages.
  /// @param producers  The number of sending threads.
  /// @param most       The largest number of messages in flight, if producers wait for room.
  receiver(uint64_t expected, uint32_t producers, uint32_t most)
      : expected(expected), batch(most / producers / 2), rooms(producers) {
    for (auto &each : rooms) each.until_next = batch;
  }

  /// @param producer  The sender's number, which is passed as the event.
  /// @param payload   The message. If latencies are recorded, it begins with the time of sending.
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

  /// Called by a producer before each batch. Waits until there is room, so that no producer gets
  /// too far ahead of the receiver. There is room for two batches, so that one can be sent while
  /// the other is being received. For each batch, both the producer and the receiver execute one
  /// semaphore operation.
  void wait_for_room(uint32_t producer) {
    while (sem_wait(&rooms[producer].batches) != 0) {}
  }

  /// Called by the consumer.
  bool is_finished() const { return calls >= expected; }
  /// Called by other threads.
  void wait() { finished.get_future().wait(); }

  const uint64_t expected;
  /// The number of messages in a batch.
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
