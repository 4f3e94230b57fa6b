/// Code that all programs share. Each program measures one operation for every contender that
/// supports it.
///
/// Google Benchmark runs the measures. It shuffles the repetitions, so that the machine's slow
/// moments affect all contenders equally, and writes JSON. In every program, benchmarks are named
/// `measure/contender/parameter`; measures.py lists all measures.
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "work.h"

/// Registers `measure/contender/parameter`. The parts may contain commas and spaces, but no
/// slashes.
template <class... Rest>
auto *add_benchmark(const std::string &measure, const std::string &contender, int64_t parameter,
                    Rest... rest) {
  const std::string name = measure + "/" + contender + "/" + std::to_string(parameter);
  return benchmark::RegisterBenchmark(name.c_str(), rest...);
}

/// Whether a contender can add many delegates in one call.
template <class Contender, class = void> struct adds_all : std::false_type {};
template <class Contender>
struct adds_all<Contender, std::void_t<decltype(&Contender::add_all)>> : std::true_type {};

/// A contender with `count` delegates, each of which has its own counter.
template <class Contender> struct filled {
  Contender contender;
  std::vector<uint64_t> counters;
  std::vector<typename Contender::token> tokens;

  explicit filled(size_t count, multicast_function function = work_in_executable)
      : counters(count) {
    // With contenders that copy all delegates in each add, adding many of them one at a time
    // would take hours.
    if constexpr (adds_all<Contender>::value) {
      tokens = contender.add_all(function, counters);
    } else {
      tokens.reserve(count);
      for (auto &counter : counters) tokens.push_back(contender.add(function, &counter));
    }
  }
};

/// Writes the missing peers and the contenders that are not thread-safe to the JSON output, and
/// runs the registered benchmarks.
int run_question(int argc, char **argv, const std::string &not_thread_safe = "");
