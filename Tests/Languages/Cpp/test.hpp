// Helpers for the tests of the C++ header.
#ifndef TESTS_CPP_TEST_HPP
#define TESTS_CPP_TEST_HPP

#include <doctest/doctest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <multicast.hpp>

// A gate that is opened once. Threads can wait until the gate is open.
class gate {
 public:
  void open() { opening_.set_value(); }
  void wait() const { opened_.wait(); }

 private:
  std::promise<void> opening_;
  std::shared_future<void> opened_ = opening_.get_future().share();
};

// A value that counts its copies, its moves and its live objects.
struct counted {
  static inline std::atomic<int> alive{0}, copies{0}, moves{0};
  int number;

  explicit counted(int n = 0) : number(n) { ++alive; }
  counted(const counted &other) : number(other.number) { ++alive, ++copies; }
  counted(counted &&other) noexcept : number(std::exchange(other.number, -1)) { ++alive, ++moves; }
  counted &operator=(const counted &) = delete;
  ~counted() { --alive; }
  static void reset() { copies = moves = 0; }
};

// Returns the status that a body throws, or MULTICAST_OK if the body does not throw.
template <typename Body>
multicast_status failure(Body &&body) {
  try {
    body();
  } catch (const mcast::error &error) {
    return error.status();
  }
  return MULTICAST_OK;
}

// Collects the exceptions of queued calls in a test that expects them.
class handled {
 public:
  handled() {
    count() = 0;
    mcast::set_exception_handler([](std::exception_ptr) noexcept { ++count(); });
  }
  ~handled() { mcast::set_exception_handler(nullptr); }
  static std::atomic<int> &count() {
    static std::atomic<int> all{0};
    return all;
  }
};

#endif
