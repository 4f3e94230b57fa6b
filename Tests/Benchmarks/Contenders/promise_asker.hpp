/// An asker without a library: a std::deque of questions, each with a promise, and a mutex and a
/// condition variable for the deque.
#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <thread>

#include "answer.hpp"

struct promise_asker {
  static std::string name() { return "mutex, condition, std::promise"; }

  promise_asker() : thread([this] { run(); }) {}
  ~promise_asker() {
    {
      std::lock_guard<std::mutex> guard(lock);
      is_over = true;
    }
    arrival.notify_one();
    thread.join();
  }
  promise_asker(const promise_asker &) = delete;

  uint64_t ask(uint64_t question) {
    request made{question, {}};
    std::future<uint64_t> answered = made.answered.get_future();
    {
      std::lock_guard<std::mutex> guard(lock);
      waiting.push_back(std::move(made));
    }
    arrival.notify_one();
    return answered.get();
  }

 private:
  struct request {
    uint64_t question;
    std::promise<uint64_t> answered;
  };

  void run() {
    for (;;) {
      std::unique_lock<std::mutex> guard(lock);
      arrival.wait(guard, [this] { return is_over || !waiting.empty(); });
      if (waiting.empty()) return;
      request taken = std::move(waiting.front());
      waiting.pop_front();
      guard.unlock();
      taken.answered.set_value(answer(taken.question));
    }
  }

  std::mutex lock;
  std::condition_variable arrival;
  std::deque<request> waiting;
  bool is_over = false;
  std::thread thread;
};
