// How long does it take to notify by name, with 1 to 65,536 names?

#include <algorithm>
#include <random>

#include "broadcasters.hpp"
#include "question.hpp"
#include "repeating_thread.hpp"

/// A broadcaster with `count` names and one observer for each. `names` contains the names in the
/// order of the lookups, which is random but the same for all contenders.
template <class Broadcaster> struct named {
  Broadcaster broadcaster;
  std::vector<uint64_t> counters;
  std::vector<std::string> names;

  explicit named(size_t count) : counters(count) {
    std::vector<std::string> registered;
    for (size_t i = 0; i < count; i++) registered.push_back("Protocol.Number" + std::to_string(i));
    for (size_t i = 0; i < count; i++) broadcaster.add(registered[i], &counters[i]);
    std::shuffle(registered.begin(), registered.end(), std::mt19937(1));
    for (auto &each : registered) names.push_back(each);
  }
};

/// Measures a function. Each iteration passes the next element to the function; after the last
/// element comes the first.
template <class Element, class Function>
static void go_round(benchmark::State &state, const std::vector<Element> &elements,
                     Function function) {
  size_t i = 0;
  for (auto _ : state) {
    function(elements[i]);
    benchmark::ClobberMemory();
    if (++i == elements.size()) i = 0;
  }
}

template <class Broadcaster> static void look_up(benchmark::State &state, size_t count) {
  named<Broadcaster> all(count);
  go_round(state, all.names, [&](const std::string &name) {
    benchmark::DoNotOptimize(all.broadcaster.look_up(name));
  });
}

template <class Broadcaster> static void notify(benchmark::State &state, size_t count) {
  named<Broadcaster> all(count);
  go_round(state, all.names,
           [&](const std::string &name) { all.broadcaster.notify(name, 1, nullptr, 0); });
  uint64_t calls = 0;
  for (uint64_t each : all.counters) calls += each;
  if (calls != uint64_t(state.iterations())) state.SkipWithError("not every observer was called");
}

template <class Broadcaster> static void invoke(benchmark::State &state, size_t count) {
  named<Broadcaster> all(count);
  std::vector<typename Broadcaster::found> found;
  for (auto &name : all.names) found.push_back(all.broadcaster.look_up(name));
  go_round(state, found, [&](typename Broadcaster::found each) {
    all.broadcaster.notify(each, 1, nullptr, 0);
  });
}

template <class Broadcaster>
static void look_up_from_threads(benchmark::State &state, int64_t count) {
  named<Broadcaster> all(4096);
  std::deque<repeating_thread> threads;
  for (int64_t i = 0; i < count; i++) {
    threads.emplace_back([&, i] {
      // Each thread starts at a different name.
      return [&, at = size_t(i) * all.names.size() / size_t(count)]() mutable {
        benchmark::DoNotOptimize(all.broadcaster.look_up(all.names[at]));
        if (++at == all.names.size()) at = 0;
      };
    });
  }
  throughput(state, threads);
}

int main(int argc, char **argv) {
  for (int64_t count : {1, 16, 256, 4096, 65536}) {
    auto by_name = [&](auto each) {
      using broadcaster = typename decltype(each)::contender;
      add_benchmark("look up by name", broadcaster::name(), count,
                    look_up<broadcaster>, size_t(count));
      add_benchmark("notify by name", broadcaster::name(), count,
                    notify<broadcaster>, size_t(count));
    };
    libmulticast_broadcasters::for_each(by_name);
    peer_broadcasters::for_each(by_name);

    libmulticast_broadcasters::for_each([&](auto each) {
      using broadcaster = typename decltype(each)::contender;
      add_benchmark("invoke without a name", broadcaster::name(), count,
                    invoke<broadcaster>, size_t(count));
    });
  }

  for (int64_t threads : {1, 2, 4}) {
    auto from_threads = [&](auto each) {
      using broadcaster = typename decltype(each)::contender;
      add_benchmark("look up by name from threads", broadcaster::name(), threads,
                    look_up_from_threads<broadcaster>, threads)->UseManualTime();
    };
    libmulticast_broadcasters::for_each(from_threads);
    peer_broadcasters::for_each(from_threads);
  }
  return run_question(argc, argv);
}
