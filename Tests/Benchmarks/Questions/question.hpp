/// What the programs share. Each asks one question, of every contender that can answer it.
///
/// Google Benchmark runs them: it shuffles the repetitions, so that all contenders have the same
/// good and bad moments of the machine, and writes JSON. A benchmark is named
/// `measure/contender/parameter`, whatever the program; report.py knows the measures by name.
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "contenders.hpp"

/// `measure/contender/parameter`. Commas and blanks are fine, slashes are not.
inline std::string label(const std::string &measure, const std::string &contender,
                         int64_t parameter) {
  return measure + "/" + contender + "/" + std::to_string(parameter);
}

/// Whether a contender can be given many delegates at once.
template <class Contender, class = void> struct adds_all : std::false_type {};
template <class Contender>
struct adds_all<Contender, std::void_t<decltype(&Contender::add_all)>> : std::true_type {};

/// A contender with so many delegates, each with a counter of its own.
template <class Contender> struct filled {
  Contender contender;
  std::vector<uint64_t> counters;
  std::vector<typename Contender::token> tokens;

  explicit filled(size_t count, multicast_function function = work_in_executable)
      : counters(count) {
    // One by one takes hours where each add copies all that there is.
    if constexpr (adds_all<Contender>::value) {
      tokens = contender.add_all(function, counters);
    } else {
      tokens.reserve(count);
      for (auto &counter : counters) tokens.push_back(contender.add(function, &counter));
    }
  }
};

/// Tells what is not there in the JSON, and runs what has been registered.
int run_question(int argc, char **argv);
