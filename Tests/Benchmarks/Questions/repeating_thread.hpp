/// A thread that repeats one function until this object is destroyed.
#pragma once

#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <thread>

class repeating_thread {
 public:
  /// `make` runs on the new thread and returns the function to repeat, so that the function's data
  /// is allocated on that thread. The constructor returns after the first repetition.
  template <class Make> explicit repeating_thread(Make make) {
    thread = std::thread([this, make] {
      for (auto repeated = make(); !stopped.load(std::memory_order_relaxed);) {
        repeated();
        // Only one thread writes, so a load and a store suffice; an atomic increment would slow
        // down the measurement.
        done.store(done.load(std::memory_order_relaxed) + 1, std::memory_order_release);
      }
    });
    meet();
  }
  ~repeating_thread() {
    stopped = true;
    thread.join();
  }
  repeating_thread(const repeating_thread &) = delete;

  /// Waits until the thread is running. On a busy machine, the thread may have been preempted.
  void meet() const {
    const uint64_t before = rounds();
    while (rounds() == before) std::this_thread::yield();
  }

  /// Returns the number of repetitions so far.
  uint64_t rounds() const { return done.load(std::memory_order_acquire); }

 private:
  // Aligned to 128 bytes, because processors fetch cache lines in pairs.
  alignas(128) std::atomic<uint64_t> done{0};
  alignas(128) std::atomic<bool> stopped{false};
  std::thread thread;
};

/// Measures the total repetitions of all threads while all of them are running. (If each thread
/// made a fixed number of repetitions, and there were more threads than processors, the last thread
/// would run alone.) An iteration lasts for a fixed time.
inline void throughput(benchmark::State &state, const std::deque<repeating_thread> &threads) {
  auto sum = [&] {
    uint64_t rounds = 0;
    for (auto &thread : threads) rounds += thread.rounds();
    return rounds;
  };
  uint64_t repeated = 0;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    const uint64_t before = sum();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    repeated += sum() - before;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    state.SetIterationTime(taken.count());
  }
  state.SetItemsProcessed(int64_t(repeated));
}
