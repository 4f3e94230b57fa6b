// How much do closures of one and four words, typed arguments, and strings in queues cost in C++?
//
// invoke.cpp, change.cpp and memory.cpp also measure the C++ header as a contender.

#include <deque>

#include "methods.hpp"
#include "question.hpp"
#include "string_queues.hpp"
#include "typed_signals.hpp"

// ---- Signals ------------------------------------------------------------------------------------

/// Calls the function with a closure that is `words` words long. `words` must be at least 1.
template <class Function>
static void with_closure(size_t words, uint64_t &sum, Function function) {
  uint64_t a = 1, b = 2, c = 3;
  benchmark::DoNotOptimize(a);
  benchmark::DoNotOptimize(b);
  benchmark::DoNotOptimize(c);
  uint64_t *to = &sum;
  if (words == 1) function([to](uint64_t value) { *to += value; });
  else function([to, a, b, c](uint64_t value) { *to += value + (a & b & c & 4); });
}

/// Connects and disconnects a closure next to `others` connections.
template <class Signal>
static void connect_and_disconnect(benchmark::State &state, size_t words, size_t others) {
  Signal signal;
  uint64_t sum = 0;
  for (size_t i = 0; i < others; i++) with_closure(words, sum, [&](auto f) { signal.connect(f); });
  with_closure(words, sum, [&](auto f) {
    for (auto _ : state) {
      auto connection = signal.connect(f);
      signal.disconnect(connection);
    }
  });
  signal.emit(1);
  if (sum != others) state.SkipWithError("a call is missing");
}

/// Creates and destroys an object whose method is connected, next to 16 others.
template <class Methods> static void connect_method(benchmark::State &state) {
  Methods all;
  uint64_t sum = 0;
  std::deque<typename Methods::object> others;
  for (int i = 0; i < 16; i++) others.emplace_back(all, sum);
  for (auto _ : state) {
    typename Methods::object made(all, sum);
    benchmark::DoNotOptimize(made);
  }
  all.emit(1);
  if (sum != others.size()) state.SkipWithError("a call is missing, or one too many");
}

/// Creates a signal, connects once, emits once, and destroys it.
template <class Signal> static void whole_life(benchmark::State &state) {
  uint64_t sum = 0;
  for (auto _ : state) {
    Signal signal;
    with_closure(1, sum, [&](auto f) { signal.connect(f); });
    signal.emit(1);
    benchmark::ClobberMemory();
  }
  if (sum != uint64_t(state.iterations())) state.SkipWithError("a call is missing");
}

// ---- Strings ------------------------------------------------------------------------------------

template <class Queue> static void string_through_queue(benchmark::State &state, size_t size) {
  size_t bytes = 0;
  Queue queue(bytes);
  const std::string text(size, 'x');
  for (auto _ : state) {
    queue.push(text);
    queue.run_one();
  }
  if (bytes != size * uint64_t(state.iterations())) state.SkipWithError("a call is missing");
}

/// Returns the names of the typed signals that are not thread-safe. One of them, libsigc++, is also
/// in the list of contenders.
static std::string not_thread_safe() {
  std::string names;
  typed_signals::for_each([&](auto each) {
    using signal = typename decltype(each)::contender;
    if (!signal::is_thread_safe) names += (names.empty() ? "" : ";") + signal::name();
  });
  return names;
}

int main(int argc, char **argv) {
  typed_signals::for_each([](auto each) {
    using signal = typename decltype(each)::contender;
    for (size_t words : {1, 4})
      add_benchmark("connect and disconnect a closure", signal::name(), int64_t(words),
                    connect_and_disconnect<signal>, words, 16);
    add_benchmark("whole life of a signal", signal::name(), 1, whole_life<signal>);
  });
  methods::for_each([](auto each) {
    using contender = typename decltype(each)::contender;
    add_benchmark("connect a method of an object", contender::name(), 0,
                  connect_method<contender>);
  });
  string_queues::for_each([](auto each) {
    using queue = typename decltype(each)::contender;
    for (size_t size : {8, 100})
      add_benchmark("std::string through a queue", queue::name(), int64_t(size),
                    string_through_queue<queue>, size);
  });
  return run_question(argc, argv, not_thread_safe());
}
