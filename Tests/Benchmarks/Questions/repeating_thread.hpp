/// A thread that does one thing over and over until it goes out of scope.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

class repeating_thread {
 public:
  /// `make` runs on the new thread and gives what it repeats: what that owns is the thread's own,
  /// its memory included. Returns when it has been done once.
  template <class Make> explicit repeating_thread(Make make) {
    thread = std::thread([this, make] {
      for (auto repeated = make(); !stopped.load(std::memory_order_relaxed);) {
        repeated();
        // One thread writes, so a plain store will do: what is measured shall not wait for it.
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

  /// Returns when it runs: on a busy machine it may not at any time.
  void meet() const {
    const uint64_t before = rounds();
    while (rounds() == before) std::this_thread::yield();
  }

  /// How many times so far.
  uint64_t rounds() const { return done.load(std::memory_order_acquire); }

 private:
  // Processors fetch lines in pairs.
  alignas(128) std::atomic<uint64_t> done{0};
  alignas(128) std::atomic<bool> stopped{false};
  std::thread thread;
};
